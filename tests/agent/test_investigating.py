"""Investigations, headless: verdicts on a program with known units, purses, kills at every node, replay, a model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundled_run import made_once, opened
from llm_scripted import Recorder, asker

from agent.investigating import nodes as nodes_investigating
from agent.investigating.asking import NotRead, reading_of
from agent.investigating.investigation import QUESTION, Purse
from agent.investigating.investigation_loop import as_far_as_it_got, investigate, nothing_read, played_again
from agent.investigating.policies import AtRandom, GreedyPolicy
from agent.investigating.priced_tests import LOOK
from agent.investigating.report import reported, shown, verdict
from agent.investigating.with_model import ModelPolicy, ModelProposer, Rivals
from agent.verbs.investigate import investigate_run, investigate_task, purse_of, replay_investigation
from agent.verbs.options import InvestigateOptions
from agent.verbs.runner import agreed, nobody
from mecharule_ops.errors import UsageError
from mecharule_ops.events import LlmMessage
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import Part, count_look, drawn, fires, forwards_missing
from mecharule_ops.saying.looks import looks_words
from mecharule_ops.store.keys import LOOKS
from mecharule_ops.store.ledger import Ledger
from mecharule_ops.types import FlipsWhere, Neuron

EITHER: Mapping[str, object] = {
    "task": "program",
    "model": "known/either",
    "bases": ("mlp_hidden",),
    "regimes": (1,),
    "tau": 0.05,
    "proposals": 0,
    "controls": 0,
    "anchor_for": 1,
    "accounts_for": 0,
    "chains_for": 0,
}
FREE = Purse(forwards=None, seconds=None)
PROPOSES = {"when": ["Known rivals"], "json": {"predicates": ["t1 != t4", "the moon == 1"]}}
PICKS = {"when": ["Tests, each"], "json": {"test": 99}}


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A finished run on the program `either`, to be written to."""
    with opened(made_once(tmp_path_factory, "e1e1.mecharule", EITHER)) as made:
        yield made


def _strongest(run: Run) -> str:
    return str(run.findings.searches[0].agonists[0].neuron)


def test_what_decides_is_supported_with_its_counts(run: Run) -> None:
    """The counts are those of the flips on held-out records, and the verdict comes first."""
    unit = _strongest(run)
    found = investigate(run, f"when does {unit} flip?", FREE)
    shown = [rival for rival in found.state["rivals"] if rival["state"] == "supported"]
    assert shown
    for rival in shown:
        positions = drawn(run, run.regimes[0], Part.HELD_OUT)
        flips = run.flips([(Neuron.parse(unit),)], positions, run.regimes[0])[0]
        where = FlipsWhere.of(fires(run, rival["condition"])[positions], flips)
        assert rival["held_out"] == [
            where.holds.flips,
            where.holds.n,
            where.elsewhere.flips,
            where.elsewhere.n,
        ]
        assert rival["value"] is not None
        assert rival["value"] >= rival["threshold"]
    result = reported(run, found)
    assert result.text.splitlines()[0] == verdict(found)
    assert f"{unit} flips {shown[0]['held_out'][0]}" in result.text
    assert result.exit_code == 0


def test_everything_is_registered_before_it_is_decided(run: Run) -> None:
    """No prediction is registered once one was decided, comparisons that may come included; each is decided once."""
    told: list[Any] = []
    found = investigate(run, f"when does {_strongest(run)} flip?", FREE, emit=told.append)
    kinds = [type(event).__name__ for event in told]
    first = kinds.index("HypothesisDecided")
    assert "HypothesisRegistered" not in kinds[first:]
    decided = [event.hypothesis for event in told[first:]]
    assert len(decided) == len(set(decided))
    rivals = [rival for rival in found.state["rivals"] if rival["state"] != "dropped"]
    n = len(rivals)
    assert n > 2
    assert len({event.hypothesis for event in told}) == n + n * (n - 1) // 2
    assert {look["condition"] for look in run.store.get(LOOKS)} == {rival["condition"] for rival in rivals}


def test_what_was_decided_is_read_back_whatever_its_threshold(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time thresholds differ, as they do once more train flips are known: nothing is decided twice."""
    question = f"when does {_strongest(run)} flip?"
    first = investigate(run, question, FREE)
    decided = {entry.id for entry in Ledger(run.store).entries() if entry.outcome is not None}
    made = nodes_investigating.made.proposed

    def higher(*given: Any, **also: Any) -> list[Any]:
        return [{**rival, "threshold": rival["threshold"] + 0.07} for rival in made(*given, **also)]

    monkeypatch.setattr(nodes_investigating.made, "proposed", higher)
    again = investigate(run, question, Purse(forwards=10**6, seconds=None))
    assert {entry.id for entry in Ledger(run.store).entries() if entry.outcome is not None} == decided
    for name in ("state", "threshold", "hypothesis", "value", "low", "high", "p"):
        assert [rival[name] for rival in _tested(again)] == [rival[name] for rival in _tested(first)]


def _tested(found: Any) -> list[Any]:
    return [rival for rival in found.state["rivals"] if rival["state"] != "dropped"]


class TablesOnly:
    """Picks no comparison."""

    def pick(self, offered: list[Any], rivals: list[Any], board: list[Any]) -> Any:
        return next((step for step in offered if step["kind"] == "table"), None)


def test_an_earlier_verdict_stands_with_its_own_counts(run: Run) -> None:
    """Decided on 64 records for want of a purse, read back with a larger one: interval, counts and n are of the 64."""
    unit, question = "n0.2", "does n0.2 flip where t1 == 'a'?"
    run.flips([(Neuron.parse(unit),)], drawn(run, run.regimes[0], Part.TRAIN, LOOK), run.regimes[0])
    price = forwards_missing(run, (Neuron.parse(unit),), drawn(run, run.regimes[0], Part.HELD_OUT, 64))
    poor, rich = (
        investigate(run, question, Purse(forwards=forwards, seconds=None), policy=TablesOnly())
        for forwards in (price, 200)
    )
    before, after = _tested(poor)[0], _tested(rich)[0]
    assert [step["n"] for step in (*poor.state["steps"], *rich.state["steps"])] == [64, 77]
    assert before["held_out"][1] + before["held_out"][3] == 64
    same = ("state", "held_out", "value", "low", "high", "p", "hypothesis")
    assert [after[name] for name in same] == [before[name] for name in same]
    assert [each["said"] for each in after["beside"]] == ["decided before, on 64 records"]
    assert "decided before, on 64 records" in reported(run, rich).text


def test_looks_are_told_apart_by_who_made_them(run: Run) -> None:
    """One a unit, direction and condition; a condition that two verbs read is one. What the run did itself is said."""
    unit = _strongest(run)
    condition = _tested(investigate(run, f"when does {unit} flip?", FREE))[0]["condition"]
    n = len(_tested(investigate(run, f"when does {unit} flip?", FREE)))
    for _ in range(2):
        count_look(run, unit, run.regimes[0], condition, "tabulate")
    told = looks_words(run, unit, run.regimes[0])
    assert f"were read for {n} conditions so far, by investigate for {n} and by tabulate for 1" in told
    assert told.endswith("; rules of this run were scored on these records before")
    assert told in reported(run, investigate(run, f"when does {unit} flip?", FREE)).text


def test_a_claim_that_is_not_so_is_said_to_be_not_so(run: Run) -> None:
    """A predicate that has nothing to do with the unit: no, with the counts; a negative outcome is plain."""
    unit = _strongest(run)
    found = investigate(run, f"does {unit} flip where t2 == 'a'?", FREE)
    (claim,) = [rival for rival in found.state["rivals"] if rival["by"] == "the question"]
    assert claim["condition"] == "t2 == 'a'"
    assert claim["state"] != "supported"
    assert verdict(found).split(":")[0] in ("No", "Undecided", "Not by as much as was predicted")


def test_what_the_question_asks_keeps_its_own_verdict_beside_a_better_rival(run: Run) -> None:
    """It loses a comparison, and is decided by its own counts all the same; the winner is named."""
    unit = _strongest(run)
    found = investigate(run, f"does {unit} flip where t1 == 'a'?", FREE)
    (asked,) = [rival for rival in found.state["rivals"] if rival["by"] == QUESTION]
    assert asked["state"] not in ("open", "weaker")
    assert asked["held_out"]
    assert any(each["kind"] == "loses" for each in asked["beside"])
    assert "tells more" in verdict(found)
    assert any(rival["state"] == "supported" for rival in found.state["rivals"])


def test_without_a_purse_nothing_is_ablated_and_what_it_would_cost_is_said(run: Run) -> None:
    """A unit whose flips are not stored: undecided, exit code 5, the price listed."""
    unit = "n0.0" if _strongest(run) != "n0.0" else "n0.1"
    found = investigate(run, f"when does {unit} flip?", Purse(forwards=0, seconds=None))
    result = reported(run, found)
    assert found.state.get("forwards", 0) == 0
    assert result.exit_code == 5
    assert "Not affordable: look of" in result.text
    assert result.text.startswith("Undecided")


def test_what_is_spent_stays_within_the_purse(run: Run) -> None:
    """Whoever picks."""
    for seed in range(3):
        purse = Purse(forwards=150 + seed, seconds=None)
        policy = AtRandom(np.random.default_rng(seed))
        found = investigate(run, f"when does n0.{seed} flip?", purse, policy=policy)
        assert found.state.get("forwards", 0) <= 150 + seed


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("node", ["propose", "register", "choose", "run", "decide"])
@pytest.mark.parametrize("after", [False, True])
def test_killed_at_every_node_it_goes_on_to_the_same(
    run: Run, tmp_path: Path, node: str, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its begin, or when its work is done and nothing of it is kept yet."""
    question = f"when does {_strongest(run)} flip?"
    whole = getattr(nodes_investigating, node)

    def dies(state: Any, runtime: Any) -> Any:
        if after:
            whole(state, runtime)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(nodes_investigating, node, dies)
        with pytest.raises(Killed):
            investigate(run, question, FREE)
    resumed = investigate(run, question, FREE)
    assert not resumed.reused
    again, same = played_again(run)
    assert same
    assert [rival["state"] for rival in again.state["rivals"]] == [
        rival["state"] for rival in resumed.state["rivals"]
    ]
    decided = [entry.prediction for entry in Ledger(run.store).entries() if entry.outcome is not None]
    assert len({(one.subject, one.condition, one.test) for one in decided}) == len(decided)


def test_stopped_it_reports_what_is_known(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """^C in the middle: the rivals as they were registered, none of them decided, and that it goes on."""
    question = f"when does {_strongest(run)} flip?"

    def stopped(state: Any, runtime: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(nodes_investigating, "run", stopped)
        with pytest.raises(KeyboardInterrupt):
            investigate(run, question, FREE)
    kept = as_far_as_it_got(run, question, FREE, "offline")
    assert kept is not None
    assert {rival["state"] for rival in kept.state["rivals"]} <= {"open", "dropped"}
    assert "it was stopped; the same command goes on where it was" in reported(run, kept).text


def test_a_model_proposes_predicates_and_picks_by_number_only(run: Run, tmp_path: Path) -> None:
    """Its predicates are tested like others; what does not read is refused; a number out of range is not taken."""
    question = f"when does {_strongest(run)} flip?"
    model = Recorder(tmp_path, PROPOSES, PICKS)
    policy, proposer = _with_model(model, question)
    found = investigate(run, question, FREE, policy=policy, proposer=proposer)
    assert "t1 != t4" in [rival["condition"] for rival in found.state["rivals"]]
    assert len(found.state["refused"]) == 1
    assert found.state["refused"][0].startswith("the moon == 1: ")
    assert all("expected a test of 0 to" in fault for fault in policy.failed)
    held = [request.patterns for request in model.requests if request.schema is Rivals]
    assert len(held) == 1
    assert re.fullmatch(held[0]["predicates"], "t1 == t4")
    held_out = {str(run.records[place].example.prompt) for place in drawn(run, run.regimes[0], Part.HELD_OUT)}
    assert not any(f'"{prompt}"' in sent for prompt in held_out for sent in model.sent)
    asked_before = len(model.sent)
    assert played_again(run)[1]
    assert len(model.sent) == asked_before


def test_what_is_stored_is_read_without_asking_what_to_test(run: Run, tmp_path: Path) -> None:
    """A pick is asked for where every test that is left costs something, and never else."""
    question = "when does n0.2 flip?"
    model = Recorder(tmp_path, PROPOSES, PICKS)
    policy, proposer = _with_model(model, question)
    told: list[list[int]] = []

    class Watched:
        def pick(self, offered: list[Any], rivals: list[Any], board: list[Any]) -> Any:
            before = len(model.sent)
            picked = policy.pick(offered, rivals, board)
            told.append([len(offered), offered[0]["forwards"], len(model.sent) - before])
            return picked

    investigate(run, question, FREE, policy=Watched(), proposer=proposer)
    assert {asked > 0 for n, forwards, asked in told if n > 1 and forwards} == {True}
    assert {asked for n, forwards, asked in told if n == 1 or not forwards} == {0}


def test_a_model_is_asked_for_rivals_once_a_question(run: Run, tmp_path: Path) -> None:
    """Of every unit that the question is about the same predicates are tested."""
    units = [str(unit.neuron) for unit in run.findings.searches[0].agonists][:2]
    question = f"do the flips of {units[0]} or {units[1]} go with t1?"
    model = Recorder(tmp_path, PROPOSES, PICKS)
    policy, proposer = _with_model(model, question)
    found = investigate(run, question, FREE, policy=policy, proposer=proposer)
    assert len([request for request in model.requests if request.schema is Rivals]) == 1
    proposed = [rival["unit"] for rival in found.state["rivals"] if rival["condition"] == "t1 != t4"]
    assert sorted(proposed) == sorted(units)


def test_a_model_reads_what_is_not_understood(run: Run, tmp_path: Path) -> None:
    """Names that there are not are left out; what it read is said to be its reading, and is played again without it."""
    question, unit = "is there something with the ends of the word?", _strongest(run)
    reads = {
        "units": [unit, unit, "n9.99"],
        "ideas": ["the column t1", "luck"],
        "conditions": ["t1 == t4", "moon"],
    }
    model = Recorder(tmp_path, {"when": ["Ideas:"], "json": reads}, PROPOSES, PICKS)
    policy, proposer = _with_model(model, question)
    found = investigate(run, question, FREE, policy=policy, proposer=proposer, read=proposer.read)
    (asked,) = found.state["asked"]
    assert (asked["units"], asked["families"], asked["claims"]) == (
        [unit],
        ["the column t1"],
        {"t1 == t4": ""},
    )
    assert found.state["read_by"] == "mock:script"
    assert verdict(found).startswith("As mock:script read it: ")
    assert {rival["by"] for rival in found.state["rivals"] if rival["condition"] == "t1 == t4"} == {QUESTION}
    assert played_again(run)[1]


def test_a_model_that_reads_nothing_leaves_the_question_refused(run: Run, tmp_path: Path) -> None:
    """Nothing is registered, and the refusal is that of the program; a fault of the model is named with it."""
    reads = {"units": [], "ideas": [], "conditions": []}
    policy, proposer = _with_model(Recorder(tmp_path, {"when": ["Ideas:"], "json": reads}), "who are you?")
    with pytest.raises(NotRead, match="expected a question about when a unit flips"):
        investigate(run, "who are you?", FREE, policy=policy, proposer=proposer, read=proposer.read)
    policy, proposer = _with_model(Recorder(tmp_path, {"when": ["nothing"], "json": reads}), "who are you?")
    with pytest.raises(NotRead, match=r"expected a question about when a unit flips.*; "):
        investigate(run, "who are you?", FREE, policy=policy, proposer=proposer, read=proposer.read)
    assert not Ledger(run.store).entries()


def test_what_a_model_read_is_not_asked_again_on_resume(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed behind the reading and asked again with a model that knows nothing: it goes on with what was read."""
    question, unit = "is there something with the ends of the word?", _strongest(run)
    reads = {"units": [unit], "ideas": ["the column t1"], "conditions": []}
    model = Recorder(tmp_path, {"when": ["Ideas:"], "json": reads}, PROPOSES, PICKS)
    policy, proposer = _with_model(model, question)

    def dies(state: Any, runtime: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(nodes_investigating, "choose", dies)
        with pytest.raises(Killed):
            investigate(run, question, FREE, policy=policy, proposer=proposer, read=proposer.read)
    found = investigate(run, question, FREE, policy=policy, proposer=proposer, read=nothing_read)
    assert found.state["read_by"] == "mock:script"
    assert found.state["asked"][0]["units"] == [unit]


def test_the_verb_answers_by_tools_what_is_no_question_about_flips(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model reads nothing, calls a tool, and its facts are the answer; what it cost is kept in the run file."""
    path = run.store.path
    run.store.close()
    monkeypatch.setenv("MECHARULE_RUNS", str(path.parent))
    script = tmp_path / "tools.json"
    replies = [
        {"when": ["Ideas:"], "json": {"units": [], "ideas": [], "conditions": []}},
        {"when": ["Ablating"], "text": "⟦f1⟧"},
        {"when": ["qwx zzv kkr plomf"], "text": '{"tool": "neurons"}'},
    ]
    script.write_text(json.dumps({"replies": replies}))
    asked = InvestigateOptions(run=str(path), question="qwx zzv kkr plomf?", llm=f"mock:{script}")
    told: list[Any] = []
    result = investigate_run(asked, told.append)
    assert any("is asked with the tools" in getattr(event, "text", "") for event in told)
    assert [call["tool"] for call in result.data["tools"]] == ["neurons"]  # type: ignore[index,union-attr]
    with opened(path) as kept:
        assert [event for _, _, event in kept.store.events() if isinstance(event, LlmMessage)]


def _with_model(model: Recorder, question: str) -> tuple[ModelPolicy, ModelProposer]:
    patient = asker(model)
    return (
        ModelPolicy(asker=patient, question=question, fallback=GreedyPolicy()),
        ModelProposer(asker=patient, question=question),
    )


def test_what_is_no_question_about_flips_is_refused(run: Run) -> None:
    """With what can be asked; a unit that there is not is named."""
    with pytest.raises(UsageError, match="expected a question about when a unit flips"):
        reading_of("what is the meaning of life?", run)
    with pytest.raises(UsageError, match=r"n0\.9999"):
        reading_of("when does n0.9999 flip?", run)


def test_a_predicate_in_the_question_is_its_claim(run: Run) -> None:
    """After where, or quoted; the words of families beside it name theirs."""
    (asked,) = reading_of("does n0.0 flip where t1 == t4?", run).asked
    assert (asked["claims"], asked["families"]) == ({"t1 == t4": ""}, [])
    (asked,) = reading_of("do flips of n0.0 go with t1, or two that are equal?", run).asked
    assert (asked["claims"], asked["families"]) == ({}, ["the column t1", "two columns that are equal"])
    assert fires(run, "t1 == t4").any()
    (asked,) = reading_of("does n0.0 flip where the T1 is A?", run).asked
    assert asked["claims"] == {"t1 == 'a'": ""}
    assert reading_of("does n0.0 flip where the t1 is purple?", run).unread == ("the t1 is purple",)


def test_the_verb_ends_with_what_is_known_when_it_is_stopped(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 130 and the report; asked again it goes on and ends well; the verb replays it."""
    path = run.store.path
    question = f"when does {_strongest(run)} flip?"
    run.store.close()
    monkeypatch.setenv("MECHARULE_RUNS", str(path.parent))
    asked = InvestigateOptions(run=str(path), question=question, yes=True)

    def stopped(state: Any, runtime: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(nodes_investigating, "run", stopped)
        result = investigate_run(asked, lambda event: None)
    assert result.exit_code == 130
    assert "it was stopped" in result.text
    result = investigate_run(asked, lambda event: None)
    assert result.exit_code == 0
    assert result.data["ended"] == "no test is left that would tell the rivals apart"
    assert "it came to the same" in replay_investigation(str(path)).text


def test_who_watches_hears_every_state_and_a_stop_between_batches_keeps_them(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped at the first ablation that is not stored; then to the end: the last state told is the one reported."""
    path = run.store.path
    run.store.close()
    monkeypatch.setenv("MECHARULE_RUNS", str(path.parent))
    asked = InvestigateOptions(run=str(path), question="when does n0.2 flip?", yes=True)
    heard: list[Any] = []
    result = investigate_run(asked, lambda event: None, watch=heard.append, should_stop=lambda: True)
    assert result.exit_code == 130
    assert "it was stopped" in result.text
    assert [one.state.get("ended", "") for one in heard[-2:]] == ["", result.data["ended"]]
    result = investigate_run(asked, lambda event: None, watch=heard.append)
    assert result.exit_code == 0
    assert {one.state["read_as"] for one in heard} == {result.data["read_as"]}
    assert heard[-1].state["rivals"] == result.data["rivals"]
    assert shown(heard[-1], result.text).text == result.text
    known = [len(one.state.get("steps", [])) for one in heard]
    assert known == sorted(known)
    with opened(path) as again:
        assert played_again(again)[1]


def test_a_minute_is_the_purse_unless_more_is_said() -> None:
    """A purse of forwards alone, or a yes, leaves the seconds open."""
    purses = [
        purse_of(InvestigateOptions(run="last", question="?", **given))
        for given in ({}, {"yes": True}, {"forwards": 9}, {"seconds": 5.0, "yes": True})
    ]
    assert [(purse["forwards"], purse["seconds"]) for purse in purses] == [
        (None, 60.0),
        (None, None),
        (9, None),
        (None, 5.0),
    ]


def test_two_units_are_ablated_together(run: Run) -> None:
    """The counts are those of the three ablations; at most one of the two rivals is supported."""
    first, second = (str(agonist.neuron) for agonist in run.findings.searches[0].agonists[:2])
    found = investigate(run, f"do {first} and {second} back each other up?", FREE)
    pair = found.state["rivals"]
    assert [rival["condition"] for rival in pair] == ["back each other up", "undo each other"]
    groups = [(Neuron.parse(first),), (Neuron.parse(second),), (Neuron.parse(first), Neuron.parse(second))]
    places = drawn(run, run.regimes[0], Part.HELD_OUT, found.state["steps"][0]["n"])
    one, two, together = run.flips(groups, places, run.regimes[0])
    assert pair[0]["held_out"][0] == (together & ~(one | two)).sum()
    assert pair[1]["held_out"][0] == ((one | two) & ~together).sum()
    assert sum(rival["state"] == "supported" for rival in pair) <= 1


def test_a_smaller_table_is_for_a_purse_that_cannot_pay_enough(run: Run) -> None:
    """The price of a first look is spent, nothing is left: both sizes are said; with more, the larger one is made."""
    question = "does n0.2 flip where t1 == 'a'?"
    price = forwards_missing(run, (Neuron.parse("n0.2"),), drawn(run, run.regimes[0], Part.TRAIN, LOOK))
    poor = investigate(run, question, Purse(forwards=price, seconds=None))
    assert poor.state["forwards"] == price
    assert [step["n"] for step in poor.state["offered"] if step["kind"] == "table"] == [77, 64]
    assert reported(run, poor).exit_code == 5
    rich = investigate(run, question, Purse(forwards=200, seconds=None))
    assert [step["n"] for step in rich.state["steps"] if step["kind"] == "table"] == [77]
    assert rich.state["forwards"] <= 200


def test_a_unit_that_flips_too_little_is_not_asked_when(run: Run) -> None:
    """Whatever the question states: nothing is registered, and the counts are the verdict."""
    found = investigate(run, "does n0.0 flip where t1 == 'a'?", FREE)
    assert found.state["rivals"] == []
    assert verdict(found) == "Undecided: 0 of 128 are too few to ask what the flips of n0.0 go with."
    assert Ledger(run.store).entries() == ()


def test_a_condition_in_words_is_its_claim(copied_run: Path) -> None:
    """The words in which rules are said, with another number too; what reads as none is said to be so."""
    with opened(copied_run) as run:
        read = reading_of("does the strongest unit flip where the answer's units digit is 1?", run)
        assert (read.asked[0]["claims"], read.asked[0]["families"]) == ({"digit(expected, 0) == 1": ""}, [])
        read = reading_of("does the strongest unit flip where the answer's glow digit is 1?", run)
        assert read.asked[0]["claims"] == {}
        assert read.words.endswith("""(not read as a condition: "the answer's glow digit is 1")""")


def test_registrations_are_one_line_a_turn_and_numbers_do_not_jump(run: Run) -> None:
    """What is put to a test is r1 to rn in the order of the report; what is not has no number."""
    lines: list[str] = []
    found = investigate(run, f"when does {_strongest(run)} flip?", FREE, tell=lines.append)
    tested = _tested(found)
    assert [rival["id"] for rival in tested] == [f"r{place}" for place in range(1, len(tested) + 1)]
    assert [rival["mcc"] for rival in tested] == sorted((rival["mcc"] for rival in tested), reverse=True)
    assert {rival["id"] for rival in found.state["rivals"][len(tested) :]} <= {""}
    told = [line for line in lines if "registered" in line]
    assert 1 <= len(told) <= 2
    result = reported(run, found)
    assert "those that fit train records best first (held-out records choose no order)" in result.text
    n = len(tested)
    assert len(result.data["predictions"]) >= n + n * (n - 1) // 2


class ComparisonsFirst:
    """Picks a comparison where one is offered."""

    def pick(self, offered: list[Any], rivals: list[Any], board: list[Any]) -> Any:
        return next((step for step in offered if step["kind"] == "duel"), offered[0])


def test_a_comparison_leaves_enough_for_the_table_that_was_fixed_before_it(run: Run) -> None:
    """Whatever the purse: where a comparison was made, the table of the size fixed before it follows."""
    compared = 0
    asked = ((_strongest(run), 0), ("n0.2", 150), ("n0.2", 170), ("n0.2", 190))
    for unit, forwards in asked:
        question = f"when does {unit} flip?"
        found = investigate(run, question, Purse(forwards=forwards, seconds=None), policy=ComparisonsFirst())
        duels = [step for step in found.state["steps"] if step["kind"] == "duel"]
        tables = [step for step in found.state["steps"] if step["kind"] == "table"]
        compared += len(duels)
        if duels:
            assert all(step["n"] == duels[0]["table"] for step in tables)
            assert not any(rival["state"] == "open" for rival in found.state["rivals"])
    assert compared


def test_a_task_is_run_first_at_a_price_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it comes to before it begins; nothing is begun where nobody can agree; then it is investigated."""
    monkeypatch.setenv("MECHARULE_RUNS", str(tmp_path))
    quick = [(name, list(value) if isinstance(value, tuple) else value) for name, value in EITHER.items()]
    settings = [(name, value) for name, value in quick if name not in ("task", "model")]
    asked = InvestigateOptions.model_validate(
        {
            "run": "program",
            "model": "known/either",
            "set": settings,
            "question": "when does the strongest unit flip?",
            "yes": True,
        }
    )
    with pytest.raises(UsageError, match="expected --yes"):
        investigate_task(asked, lambda event: None, nobody)
    assert not list(tmp_path.glob("*.mecharule"))
    told: list[Any] = []
    result = investigate_task(asked, told.append, agreed)
    (path,) = tmp_path.glob("*.mecharule")
    assert result.data["run"] == path.stem
    assert result.data["rivals"]
    assert any("ablat" in getattr(event, "text", "") for event in told[:12])
