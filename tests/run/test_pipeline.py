"""The whole method on the bundled model: true to brute force, to its own file, and to its seed."""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from bundled_run import QUICK, finish, new_run, opened
from events_told import folded
from outcome_audit import cells

from mecharule_ops import events as kinds
from mecharule_ops import numbers, types
from mecharule_ops.facts.found import opening
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.run.analyse import analyse_run
from mecharule_ops.run.live_run import Run
from mecharule_ops.tasks.arithmetic import Arithmetic


@pytest.fixture(scope="module")
def search(run: Run) -> SearchOutcome:
    return run.findings.searches[0]


@pytest.fixture(scope="module")
def events(run: Run) -> list[kinds.Event]:
    return [event for _, _, event in run.store.events()]


def test_brute_force_tests_every_unit_once_and_what_it_finds_is_found_or_reported_missed(
    run: Run, search: SearchOutcome
) -> None:
    """N units, each on every example of both slices; the search asked for less. `missed` names the difference."""
    strong = {unit.neuron for unit in search.exhaustive if unit.estimate.strength >= run.config.tau}
    missed = {unit.neuron for unit in search.missed(run.config.tau)}
    assert strong - {agonist.neuron for agonist in search.agonists} == missed == set()
    assert strong
    units, slices = search.basis_units, search.associated_n + search.unrelated_n
    assert units == run.subject.n_layers * run.subject.width(types.Basis.MLP_OUT)
    assert len(search.exhaustive) == units == search.cost.candidates
    assert {u.estimate.associated.n + u.estimate.unrelated.n for u in search.exhaustive} == {slices}
    assert search.cost.queries < units
    assert search.cost.example_forwards < units * slices


def test_findings_are_what_events_told(run: Run, search: SearchOutcome, events: list[kinds.Event]) -> None:
    """Trees, agonists, costs, rules and certificates of the file's events equal those of the findings."""
    state = folded(events)
    of_search = [e for e in events if getattr(e, "search", "").startswith("guided:")]
    told = {e.neuron for e in of_search if isinstance(e, kinds.AgonistFound)}
    assert told == {str(agonist.neuron) for agonist in search.agonists}
    ended = {e.search: e for e in of_search if isinstance(e, kinds.SearchFinished)}.values()
    assert sum(e.queries for e in ended) == search.cost.queries
    assert sum(e.example_forwards for e in ended) == search.cost.example_forwards
    tested = [e for e in of_search if isinstance(e, kinds.NodeTested)]
    kept = [(f"guided:1:m{node.layer}", node) for node in search.tree]
    assert sorted(map(repr, kept)) == sorted(repr((e.search, e.node)) for e in tested)
    assert {e.neuron: e.rule for e in events if isinstance(e, kinds.RuleAnchored)} == {
        str(rule.neuron): str(rule.rule) for rule in search.anchored if rule.rule is not None
    }
    assert {e.certificate for e in events if isinstance(e, kinds.CertificateWritten)} == {
        certificate.id for certificate in run.store.certificates()
    }
    assert state.finished
    assert state.status == f"finished: {numbers.plural(len(run.findings.shown()), 'unit')} shown"


def test_findings_are_what_the_file_holds(run: Run, search: SearchOutcome) -> None:
    """Each exhaustive count is found again in the stored outcomes, which need no engine."""
    slices = run.slices(types.Regime.BASELINE_POSITIVE).positions
    engine = run.engine(run.intervention(types.Basis.MLP_OUT))
    before = run.cost.example_forwards
    labels = engine.labels([(unit.neuron,) for unit in search.exhaustive], slices)
    assert run.cost.example_forwards == before
    assert (~labels).sum(axis=1).tolist() == [
        unit.estimate.associated.flips + unit.estimate.unrelated.flips for unit in search.exhaustive
    ]


def test_no_outcome_is_stored_twice(finished_run: Path) -> None:
    """Search, brute force, rules and controls share every cell: no (context, group, example) has two blocks."""
    assert max(cells(finished_run).values()) == 1


def test_stages_come_in_order_and_each_ends(events: list[kinds.Event]) -> None:
    """Every stage that starts finishes before the next; each has a line to read. Questions may follow the run."""
    open_stage = None
    for event in events:
        if isinstance(event, kinds.StageStarted):
            assert open_stage is None
            open_stage = event.stage
        elif isinstance(event, kinds.StageFinished):
            assert event.stage == open_stage
            assert event.summary
            open_stage = None
    names = [event.stage.split(" ")[0] for event in events if isinstance(event, kinds.StageFinished)]
    assert names[:3] == ["behaviour", "predicates", "splitter"]
    assert (
        names.index("guided") < names.index("exhaustive") < names.index("anchored") < names.index("controls")
    )
    of_the_run = [
        it
        for it in events
        if not isinstance(it, kinds.QuestionAnswered | kinds.LlmMessage | kinds.ToolCalled)
    ]
    assert isinstance(of_the_run[-1], kinds.RunFinished)


def result_of(path: Path) -> tuple[Findings, Counter]:
    """What a small run came to, whatever its name and speed, and its stored cells."""
    with opened(path, read_only=True) as run:
        return replace(run.findings, run="", stages={}), cells(path)


def priced(run: Run, clock: Callable[[], float] = lambda: 0.0) -> kinds.Price:
    """The price of a run, which is cut there."""
    told: list[kinds.Price] = []

    def show(event: kinds.Event) -> None:
        if isinstance(event, kinds.Price):
            told.append(event)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        analyse_run(run, show, clock=clock)
    return told[0]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run that is cut before its search."""
    path = tmp_path_factory.mktemp("prepared") / "dec1.mecharule"
    with new_run(path, QUICK) as run:
        priced(run)
    return path


def test_the_price_is_of_the_pace_after_the_first_ablation(tmp_path: Path) -> None:
    """By a clock on which the first takes 1,000 s more, once, and each example-forward two seconds."""
    with new_run(tmp_path / "slow.mecharule", QUICK) as run:
        cost = run.cost
        price = priced(run, lambda: 2.0 * cost.example_forwards + 1_000.0 * (cost.group_evaluations > 0))
    assert price.seconds == 2.0 * price.example_forwards > 0


def test_the_same_seed_gives_the_same_findings_whatever_the_batches(quick_run: Path, tmp_path: Path) -> None:
    """A second run, in small batches, has the same findings and asked the same of the model."""
    with new_run(tmp_path / "a.mecharule", {**QUICK, "rows": 200}) as run:
        finish(run)
    assert result_of(tmp_path / "a.mecharule") == result_of(quick_run)


def test_the_order_of_a_tasks_examples_changes_nothing(
    quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turned round, the same examples give the same table, slices, units, rules and figures."""
    plain = Arithmetic.examples
    monkeypatch.setattr(Arithmetic, "examples", lambda task, *asked: plain(task, *asked)[::-1])
    path = tmp_path / "turned.mecharule"
    with new_run(path, QUICK) as other:
        finish(other)
    assert result_of(path) == result_of(quick_run)


def test_a_stopped_run_says_so_and_goes_on(prepared: Path, quick_run: Path, tmp_path: Path) -> None:
    """Stopped at once it is partial, and told apart; continued it is as if never interrupted."""
    path = Path(shutil.copy(prepared, tmp_path))
    with opened(path) as run:
        partial, told = finish(run, should_stop=lambda: True)
        assert partial.searches[0].status == (types.SearchStatus.STOPPED.value,)
        assert partial.searches[0].agonists == ()
        assert _status(told).startswith("partial")
    assert result_of(path) != result_of(quick_run)
    with opened(path) as run:
        assert _status(finish(run)[1]).startswith("finished")
    assert result_of(path) == result_of(quick_run)


def test_a_budget_ends_the_search_as_partial(prepared: Path, tmp_path: Path) -> None:
    """Findings and status name the budget, and the search stays within it."""
    with opened(Path(shutil.copy(prepared, tmp_path))) as run:
        run.config = run.config.model_copy(update={"budget": 5})
        findings, told = finish(run)
    assert types.SearchStatus.BUDGET_SPENT.value in findings.searches[0].status
    assert findings.searches[0].cost.queries <= 5
    assert _status(told).startswith("partial")
    assert f"Partial: {findings.cut_short}. What was not tested may hold more: " in opening(findings)[2]


def _status(told: Sequence[kinds.Event]) -> str:
    return next(event.status for event in told if isinstance(event, kinds.RunFinished))
