"""The refinement loop, headless: every edge, scripted and offline; held-out data chooses nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from llm_scripted import Recorder, asker

from agent.graph import checkpoints, refinement_graph, run_to_end
from agent.refining import refinement_nodes as nodes_refining
from agent.refining import screening
from agent.refining.loop import cases_of, played_again, refine
from agent.refining.refinement_state import RefinementRuntime, Suggester, Tried, UnitCase
from agent.refining.suggesting import LlmSuggester, OfflineSuggester, learned_on
from mecharule_ops.errors import BudgetSpent
from mecharule_ops.events import Event, HypothesisDecided, HypothesisRegistered, RefinementFinished
from mecharule_ops.rules.algebra import mcc
from mecharule_ops.state.run_state import RunState
from mecharule_ops.store.keys import REFINEMENTS, Artefact
from mecharule_ops.store.ledger import Ledger
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.types import AnchoredRule, Neuron, Regime, RuleScore

IDEA = {
    "statement": "It flips where a carry leaves the units.",
    "condition": "carry_at(a, b, 0)",
    "refuted_by": "Flips without a carry.",
}
GOOD = {"json": {"predicates": ["carry_at(a, b, 0)"], "hypothesis": IDEA}}


def _columns(records: int = 300) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    a, b = generator.integers(0, 100, (2, records))
    prompt = np.array([f"record-{place} {x}+{y}=" for place, (x, y) in enumerate(zip(a, b, strict=True))])
    return {"a": a, "b": b, "prompt": prompt}


def _carry(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    noise = np.random.default_rng(9).random(len(columns["a"])) < 0.05
    return (columns["a"] % 10 + columns["b"] % 10 >= 10) ^ noise


def _case(unit: str = "m4.1", flips: np.ndarray | None = None) -> UnitCase:
    columns = _columns()
    held_out = RuleScore(mcc=0.05, coverage=0.5, n=100, positives=50)
    rule = AnchoredRule(
        neuron=Neuron.parse(unit),
        regime=Regime.BASELINE_POSITIVE,
        rule="a > b",
        train=replace(held_out, n=200),
        held_out=held_out,
        full_rule=None,
        full=None,
        prompt_only=True,
        flips=150,
        eligible=300,
    )
    return UnitCase(
        unit=unit,
        arrow="1→0",
        columns=columns,
        flips=_carry(columns) if flips is None else flips,
        train=np.arange(300) % 3 > 0,
        vocabulary=("a > b", "a >= 50"),
        prompt_columns=frozenset(columns),
        anchored=rule,
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    with RunStore.create(tmp_path / "0c1f.mecharule", {"run": "0c1f"}) as made:
        yield made


def _scripted(model: Recorder, **limits: Any) -> LlmSuggester:
    return LlmSuggester(asker=asker(model, **limits), seed=0)


def _run(
    store: RunStore, suggester: Suggester, *cases: UnitCase, rounds: int = 3
) -> tuple[list[dict[str, Any]], list[Event]]:
    """The reports of a refinement and every event told."""
    told: list[Event] = []
    runtime = RefinementRuntime(
        suggester=suggester,
        cases={case.unit: case for case in cases},
        ledger=Ledger(store, told.append),
        seed=0,
    )
    begin = {"units": [case.unit for case in cases], "rounds": rounds}
    with checkpoints(store.path) as saver:
        ended = run_to_end(refinement_graph(saver), begin, runtime, "r")
    return ended.get("reports", []), told


def test_a_good_idea_is_registered_tested_and_becomes_a_rule(tmp_path: Path, store: RunStore) -> None:
    """HQ-T before and after, idea and rule supported, and only train records in the prompts."""
    model, case = Recorder(tmp_path, GOOD), _case()
    (report,), told = _run(store, _scripted(model), case)
    assert (report["before"], report["rule"], report["ended"]) == (
        0.05,
        "carry_at(a, b, 0)",
        "its rule is good on train records it did not see; its hypothesis is supported; its refined rule is supported",
    )
    truth = mcc(_columns()["a"] % 10 + _columns()["b"] % 10 >= 10, case.flips)
    assert report["after"] == pytest.approx(
        mcc((_columns()["a"] % 10 + _columns()["b"] % 10 >= 10)[~case.train], case.flips[~case.train])
    )
    assert truth > 0.8
    assert (report["good_before"], report["good_after"]) == (False, True)
    entries = {entry.id: entry for entry in Ledger(store).entries()}
    assert len(entries) == 3
    assert {report["hypothesis"], report["prediction"]} < set(entries)
    assert {entry.state for entry in entries.values()} == {"supported"}
    assert [entry.outcome.n for entry in entries.values() if entry.outcome] == [200, 100, 100]
    assert (report["proposed"], report["accepted"], report["in_rule"], report["stands"]) == (1, 1, 1, True)
    held_out = [f'"{text}"' for text in case.columns["prompt"][~case.train].tolist()]
    assert not any(text in sent for text in held_out for sent in model.sent)
    assert [type(event) for event in told] == [HypothesisRegistered, HypothesisDecided] * 3


def test_the_transcript_reads_from_the_statement_to_the_verdict(tmp_path: Path, store: RunStore) -> None:
    """What is held, what would refute it in words and numbers, the cheapest test, then the one look at the held out."""
    (report,), _ = _run(store, _scripted(Recorder(tmp_path, GOOD)), _case())
    held, words, numbers, test, kept, rule = report["transcript"]
    assert held == (
        "round 1: It flips where a carry leaves the units. Expected exactly where carry_at(a, b, 0)."
    )
    assert words == "  what would refute it, in its words: Flips without a carry."
    assert numbers == "  what would refute it, in numbers: an MCC interval that ends below 0.70"
    assert test.startswith("  tested on 200 stored train records, no ablation: MCC .")
    assert "; kept [h:" in test
    assert kept.startswith("the hypothesis that was kept, on the held-out records, once: MCC 0.")
    assert rule.startswith("the refined rule carry_at(a, b, 0), on the held-out records, once: MCC 0.")


def test_a_statement_without_words_is_not_shown(tmp_path: Path, store: RunStore) -> None:
    """A model that only repeats digits; of a long condition the beginning is shown."""
    digits = "1." * 190
    babble = {"statement": digits, "condition": digits, "refuted_by": digits}
    model = Recorder(tmp_path, {"json": _said("a >= 33", babble)})
    (report,), _ = _run(store, _scripted(model), _case(), rounds=1)
    held, numbers, refused, *_ = report["transcript"]
    assert held.startswith("round 1: A statement without words. Expected exactly where 1.1.1.")
    assert max(map(len, report["transcript"])) < 300
    assert "in numbers" in numbers
    assert "not registered" in refused


def test_a_refuted_hypothesis_is_dropped_told_and_never_looks_at_the_held_out(
    tmp_path: Path, store: RunStore
) -> None:
    """Its reason goes back to the model; of two that stand the one that fits train better is put to the last test."""
    weak = {**IDEA, "condition": "a < b"}
    fair = {**IDEA, "condition": "carry_at(a, b, 0) and a != 3", "refuted_by": ""}
    model = Recorder(
        tmp_path,
        {"unless": ['Hypotheses dropped so far, and why:\n"a < b"'], "json": _said("a >= 33", weak)},
        {"unless": ["a >= 41"], "json": _said("a >= 41", fair)},
        {"json": _said("a >= 77", IDEA)},
    )
    (report,), _ = _run(store, _scripted(model), _case(), rounds=3)
    entries = Ledger(store).entries()
    screens = [entry for entry in entries if entry.prediction.test == screening.TEST]
    assert [(entry.prediction.condition, entry.state) for entry in screens] == [
        ("a < b", "refuted"),
        ("holds(carry_at(a, b, 0) and a != 3)", "supported"),
        ("carry_at(a, b, 0)", "supported"),
    ]
    looks = [entry for entry in entries if entry.prediction.test == nodes_refining.TEST]
    best = max(screens[1:], key=lambda entry: _train_mcc(entry.prediction.condition))
    assert [entry.prediction.condition for entry in looks] == [best.prediction.condition]
    assert sum("; dropped" in line for line in report["transcript"]) == 1


def _said(predicate: str, idea: Mapping[str, str]) -> dict[str, object]:
    return {"predicates": [predicate], "hypothesis": dict(idea)}


def _train_mcc(condition: str) -> float:
    case = _case()
    found = screening.train_interval(case, condition)
    assert found is not None
    return found.mcc


def test_every_way_out_of_a_unit_is_taken_and_the_next_one_follows(tmp_path: Path, store: RunStore) -> None:
    """Rounds spent with a refuted idea, nothing new, a fault, no predicate at all: four units, four reports."""
    wrong = {**IDEA, "condition": "a < b"}
    model = Recorder(
        tmp_path,
        {
            "when": ["Unit: m4.1."],
            "unless": ["a >= 33"],
            "json": {"predicates": ["a >= 33"], "hypothesis": wrong},
        },
        {"when": ["Unit: m4.1."], "json": {"predicates": ["b >= 44"], "hypothesis": IDEA}},
        {"when": ["Unit: m4.2."], "json": {"predicates": ["a > b"], "hypothesis": None}},
        {"when": ["Unit: m4.3."], "fault": "refusal"},
        {
            "when": ["Unit: m4.4."],
            "json": {"predicates": ["a + "], "hypothesis": {**IDEA, "condition": "os.system('x')"}},
        },
    )
    cases = [_case("m4.1"), _case("m4.2"), _case("m4.3"), _case("m4.4")]
    reports, _ = _run(store, _scripted(model), *cases, rounds=2)
    assert [report["unit"] for report in reports] == ["m4.1", "m4.2", "m4.3", "m4.4"]
    assert reports[0]["ended"].startswith("the rounds are spent; its hypothesis is supported")
    assert (reports[1]["ended"], reports[1]["after"]) == ("mock:script had nothing new to propose", 0.05)
    assert (
        reports[2]["ended"]
        == "mock:script gave no usable reply: the model declined to answer; ask another way"
    )
    assert [report["failed"] for report in reports] == [False, False, True, False]
    assert reports[3]["ended"].endswith("1 hypothesis dropped")
    assert any("not registered: " in line for line in reports[3]["transcript"])
    ideas = [entry for entry in Ledger(store).entries() if entry.prediction.test == nodes_refining.TEST]
    assert [(entry.prediction.condition, entry.state) for entry in ideas] == [
        ("carry_at(a, b, 0)", "supported")
    ]


def test_flips_all_alike_are_a_sentence(tmp_path: Path, store: RunStore) -> None:
    """One value of the target only: nothing to learn, said in words, and the loop goes on."""
    suggester = _scripted(Recorder(tmp_path, {"json": {"predicates": ["b >= 44"], "hypothesis": None}}))
    (report,), _ = _run(store, suggester, _case(flips=np.zeros(300, bool)))
    assert "some train records to flip, got 0 of 200" in report["ended"]
    assert (report["rule"], report["after"], Ledger(store).entries()) == ("a > b", 0.05, ())


def test_a_test_on_few_flips_decides_nothing(tmp_path: Path, store: RunStore) -> None:
    """Four held-out flips: underpowered, whatever the MCC is."""
    case = _case()
    flips = case.flips.copy()
    flips[np.flatnonzero(flips & ~case.train)[4:]] = False
    (report,), _ = _run(store, _scripted(Recorder(tmp_path, GOOD)), replace(case, flips=flips))
    assert "its hypothesis is underpowered" in report["ended"]


def test_no_units_no_questions(tmp_path: Path, store: RunStore) -> None:
    """An empty list ends at once."""
    model = Recorder(tmp_path)
    assert _run(store, _scripted(model)) == ([], [])
    assert model.sent == []


def test_offline_the_grammar_finds_the_cause_and_states_it(store: RunStore) -> None:
    """No model: the best predicate on train becomes a hypothesis, and a rule, and both are tested once."""
    (report,), told = _run(store, OfflineSuggester(), _case())
    assert report["ended"] == (
        "its rule is good on train records it did not see; its hypothesis is supported; its refined rule is supported"
    )
    assert report["good_after"]
    (idea,) = [entry for entry in Ledger(store).entries() if entry.id == report["hypothesis"]]
    assert idea.prediction.statement == f"m4.1 flips exactly where {idea.prediction.condition}."
    assert sum(isinstance(event, HypothesisDecided) for event in told) == 3


def test_offline_a_budget_and_too_few_flips_end_without_a_suggestion(store: RunStore) -> None:
    """The second unit is beyond the budget; a unit with nine train flips gets no proposal."""
    suggester = OfflineSuggester(most_suggestions=1)
    _, spent = _run(store, suggester, _case("m4.1"), _case("m4.2"))[0]
    assert spent["failed"]
    assert "the budget is spent: 1 rounds" in spent["ended"]
    with pytest.raises(BudgetSpent):
        suggester.suggest(_case(), Tried(rounds=0, accepted=(), refused=()))
    case = _case()
    rare = np.zeros(300, bool)
    rare[np.flatnonzero(case.train)[:9]] = True
    said = OfflineSuggester().suggest(replace(case, flips=rare), Tried(rounds=0, accepted=(), refused=()))
    assert (said.predicates, said.hypothesis) == ([], None)


def test_held_out_flips_choose_nothing(store: RunStore) -> None:
    """With the held-out flips shuffled, predicates, rule and hypothesis are the same; only the verdict moves."""
    case = _case()
    shuffled = case.flips.copy()
    held_out = np.flatnonzero(~case.train)
    shuffled[held_out] = np.random.default_rng(4).permutation(shuffled[held_out])
    (true,), _ = _run(store, OfflineSuggester(), case)
    with RunStore.create(store.path.with_name("0c20.mecharule"), {"run": "0c20"}) as other:
        (false,), _ = _run(other, OfflineSuggester(), replace(case, flips=shuffled))
        states = {entry.state for entry in Ledger(other).entries() if entry.prediction.test != screening.TEST}
    assert (true["rule"], true["hypothesis"], true["prediction"]) == (
        false["rule"],
        false["hypothesis"],
        false["prediction"],
    )
    assert states == {"refuted"}
    assert true["after"] != false["after"]


@pytest.mark.parametrize(
    ("room", "node", "states"),
    [
        (screening, "mcc_interval", ["open"]),
        (nodes_refining, "table_of", ["supported"]),
        (nodes_refining, "held_out_test", ["supported", "open"]),
    ],
    ids=["examining", "judging", "testing"],
)
def test_a_killed_refinement_resumes_at_its_node(
    tmp_path: Path,
    store: RunStore,
    monkeypatch: pytest.MonkeyPatch,
    room: ModuleType,
    node: str,
    states: list[str],
) -> None:
    """The reply is paid for once, and a hypothesis that was registered is the one that is decided."""
    first = Recorder(tmp_path, GOOD)

    def killed(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(room, node, killed)
        with pytest.raises(KeyboardInterrupt):
            _run(store, _scripted(first), _case())
    assert len(first.sent) == 1
    before = Ledger(store).entries()
    assert [entry.state for entry in before] == states
    second = Recorder(tmp_path, GOOD)
    (report,), told = _run(store, _scripted(second), _case())
    assert second.sent == []
    assert report["ended"].endswith("its hypothesis is supported; its refined rule is supported")
    assert [entry.prediction for entry in before] == [
        entry.prediction for entry in Ledger(store).entries()[: len(before)]
    ]
    state = RunState()
    for event in told:
        state = state.apply(event)
    assert {view.state for view in state.hypotheses.values()} == {"supported"}


def _killed_before(monkeypatch: pytest.MonkeyPatch, write: int) -> None:
    """From now on the process dies before it stores the checkpoint of that number."""
    put, count = SqliteSaver.put, iter(range(1, 1000))

    def struck(*given: Any, **named: Any) -> Any:
        if next(count) == write:
            raise KeyboardInterrupt
        return put(*given, **named)

    monkeypatch.setattr(SqliteSaver, "put", struck)


def test_a_refinement_killed_between_a_result_and_its_step_comes_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There a node's result is stored and the step that follows is not: nothing seems left to do."""
    with RunStore.create(tmp_path / "whole.mecharule", {"run": "0c1f"}) as store:
        whole, _ = _run(store, _scripted(Recorder(tmp_path, GOOD)), _case(), rounds=1)
    assert whole
    for write in range(2, 6):
        with RunStore.create(tmp_path / f"{write}.mecharule", {"run": "0c1f"}) as store:
            with monkeypatch.context() as patch:
                _killed_before(patch, write)
                with pytest.raises(KeyboardInterrupt):
                    _run(store, _scripted(Recorder(tmp_path, GOOD)), _case(), rounds=1)
            again, _ = _run(store, _scripted(Recorder(tmp_path, GOOD)), _case(), rounds=1)
            assert again == whole, write


# --- on a real run ---------------------------------------------------------------------------------------


def test_refining_a_real_run_costs_no_ablation_and_is_read_back(copied_run: Path, tmp_path: Path) -> None:
    """Without anything accepted the rule is anchoring's own; findings stay; what is finished is read back."""
    from bundled_run import opened

    model = Recorder(tmp_path, {"json": {"predicates": ["digit(a, 0) >= 6"], "hypothesis": IDEA}})
    told: list[Event] = []
    with opened(copied_run) as run:
        before = run.store.get(Artefact("findings"))
        for case in cases_of(run, 12).values():
            learned = learned_on(case, (), run.config.seed)
            assert case.anchored.rule == (None if learned.rule is None else str(learned.rule))
            assert case.anchored.train == learned.train
        refined = refine(run, _scripted(model), rounds=1, most_units=2, emit=told.append)
        entries = Ledger(run.store).entries()
        again = refine(run, _scripted(Recorder(tmp_path)), rounds=1, most_units=2)
        anew = refine(run, _scripted(model), rounds=1, most_units=2, again=True)
        kept = Ledger(run.store).entries()
        replayed = played_again(run)
        assert Ledger(run.store).entries() == kept
        assert run.cost.group_evaluations == 0
        assert run.store.get(Artefact("findings")) == before
        assert len(run.store.get(REFINEMENTS)) == 2  # type: ignore[arg-type]
    assert len(refined.reports) == 2
    assert (again.reports, again.reused) == (refined.reports, True)
    assert anew.reports == replayed.reports == refined.reports
    assert all(report["transcript"] and report["said"] for report in refined.reports)
    assert {entry.prediction.subject for entry in entries} == {report["unit"] for report in refined.reports}
    assert all(entry.state in ("supported", "refuted", "underpowered") for entry in entries)
    assert refined.sentence().startswith(
        f"HQ-T anchors among {refined.anchored} units: {refined.before} before"
    )
    (finished,) = [event for event in told if isinstance(event, RefinementFinished)]
    assert (finished.before, finished.after, finished.units) == (refined.before, refined.after, 2)


def test_a_refinement_that_could_not_ask_is_tried_again(copied_run: Path, tmp_path: Path) -> None:
    """A wrong key today is no verdict for ever."""
    from bundled_run import opened

    with opened(copied_run) as run:
        failed = refine(run, _scripted(Recorder(tmp_path, {"fault": "key"})), rounds=1, most_units=1)
        model = Recorder(tmp_path, {"json": {"predicates": [], "hypothesis": None}})
        anew = refine(run, _scripted(model), rounds=1, most_units=1)
    assert failed.reports[0]["failed"]
    assert not anew.reused
    assert len(model.sent) == 1
