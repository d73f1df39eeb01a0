"""`run --from RUN` searches again on what that observed: findings as of a run of its own, and nothing asked twice."""

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from bundled_run import QUICK, Ask, finish, finished, new_run, opened
from command_process import Child, Commands

from agent.verbs import runner
from mecharule_ops import errors, types
from mecharule_ops.config import RunConfig, make_config
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import OBSERVED, begun, observed_otherwise, take_over, tell_first
from mecharule_ops.store import keys
from mecharule_ops.store.run_store import RunStore

OTHER = {**QUICK, "tau": 0.35}


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run at the usual τ."""
    return finished(tmp_path_factory.mktemp("fork") / "aaaa.mecharule", QUICK)


def test_a_fork_finds_what_a_run_of_its_own_finds_and_asks_less(earlier: Path, tmp_path: Path) -> None:
    """Equal findings at the other τ; the earlier run's groups are answered from the file."""
    with new_run(tmp_path / "bbbb.mecharule", OTHER) as fresh:
        expected, paid = finish(fresh)[0], fresh.cost.group_evaluations
    with new_run(tmp_path / "cccc.mecharule", OTHER) as fork:
        with RunStore.open(earlier, read_only=True) as source:
            take_over(fork.store, source)
        found = finish(fork)[0]
        asked, reused = fork.cost.group_evaluations, fork.cost.reused
    assert replace(found, run="", stages={}) == replace(expected, run="", stages={})
    assert asked < paid / 2
    assert reused > 0


def test_only_what_does_not_depend_on_the_search_is_taken_over(earlier: Path, tmp_path: Path) -> None:
    """Records and replacement values come along; the splitter, ranking, findings, events and certificates do not."""
    with new_run(tmp_path / "dddd.mecharule", OTHER) as fork, opened(earlier, read_only=True) as source:
        take_over(fork.store, source.store)
        names = fork.store.names()
        assert {"records", "train", "vocabulary", "representation"} <= set(names)
        assert not [name for name in names if name.startswith(("splitter", "attribution", "findings"))]
        assert not list(fork.store.events())
        assert fork.store.certificates() == ()
        assert fork.records == source.records


def test_nothing_is_taken_over_where_rows_changed(
    earlier: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(earlier, read_only=True) as source, new_run(tmp_path / "eeee.mecharule", OTHER) as fork:
        monkeypatch.setattr(Run, "task", SimpleNamespace(describe=lambda: {"content": "mine"}))
        for name, had in (
            ("findings", SimpleNamespace(task_settings={"content": "others"})),
            ("finished", False),
        ):
            monkeypatch.setattr(Run, name, had)
            monkeypatch.setattr(Run, "placed", {"rows": "others"})
            with pytest.raises(errors.UsageError, match="put the old ones back"):
                take_over(fork.store, source.store)
            with pytest.raises(errors.UsageError, match="put the old ones back"):
                fork.begun_with(cast(Any, "not looked at"))
        monkeypatch.setattr(Run, "placed", {"rows": "mine"})
        take_over(fork.store, source.store)


def test_what_a_run_began_with_is_noted_until_it_has_records(earlier: Path, tmp_path: Path) -> None:
    """Of a run of an earlier version nothing is, or what is refused now would be for good; a fork has its source's."""
    other: Any = SimpleNamespace(model_hash="other", device_name="cpu", dtype_name="float32")
    older = keys.Placed(device="cpu", dtype="float32")
    for given in "a0.h0", "":
        file = tmp_path / f"f{given}.mecharule"
        with opened(earlier, read_only=True) as source, new_run(file, {**OTHER, "given": given}) as fork:
            take_over(fork.store, source.store)
            assert fork.placed == source.placed
            with pytest.raises(errors.ModelUnavailable, match="its weights have changed"):
                fork.begun_with(other)
            fork.store.put(keys.PLACED, older)
            assert fork.begun_with(other) is other
            assert fork.placed == older


def test_nothing_is_taken_over_where_something_else_is_observed() -> None:
    """Each such setting is named; a run that changes nothing is refused."""
    config = make_config(**QUICK)
    changes = {"records": 170, "seed": 5, "test_share": 0.4, "model": "smollm2-135m"}
    for name, value in changes.items():
        assert observed_otherwise(config, config.model_copy(update={name: value})) == [name]
    assert changes.keys() < set(OBSERVED)
    for other in ({"proposals": 1}, {"tau": 0.3}):
        assert observed_otherwise(config, config.model_copy(update=other)) == []
    with pytest.raises(errors.UsageError, match="got none"):
        observed_otherwise(config, config)


def test_a_run_counts_in_how_many_on_other_records_its_units_are_shown_again(
    ask: Ask, copied_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each seed once, in `why` and on the screen; nothing but seed and prompts may differ."""
    with opened(copied_run, read_only=True) as run:
        config, found, first = run.config, run.findings, run.findings.shown()[0].neuron

    def started(config: RunConfig, show: object, again_of: str, llm_budget: int | None) -> None:
        """A run whose odd seeds show what the first does, and even ones nothing."""
        assert llm_budget == 1000
        nothing = replace(found, searches=()) if config.seed % 2 == 0 else found
        with begun(config, again_of=again_of) as store:
            settings = {**found.task_settings, "prefix": str(config.seed)}
            tell_first(Run(store), replace(nothing, seed=config.seed, task_settings=settings))

    monkeypatch.setattr(runner, "start", started)
    how: Any = {"show": lambda event: None, "granted": True, "llm_budget": 1000}
    for wrong in ({"tau": 0.35}, {"task_settings": {**config.task_settings, "operators": ["+"]}}):
        with pytest.raises(errors.UsageError, match=r"another (tau|operators); drop"):
            runner.run_again("b00d", config.model_copy(update=wrong), 1, **how)
    runner.run_again("b00d", config, 2, **how)
    started(config.model_copy(update={"seed": 2}), None, "b00d", 1000)
    told = runner.run_again("b00d", config, 1, **how).text
    assert "In 3 more runs with other draws (seeds 1, 2, 3; other prefix) none of" in " ".join(told.split())
    with opened(copied_run, read_only=True) as run:
        assert {unit.again for unit in run.findings.shown()} == {types.Share(count=2, n=3)}
    assert "It is shown in 2 of 3 more runs with other draws" in ask("why", neuron=str(first)).text


@pytest.fixture
def commands(child: Child, earlier: Path) -> Commands:
    return Commands(child, earlier.parent)


@pytest.mark.slow
def test_the_command_takes_over_what_was_observed_alike(commands: Commands, earlier: Path) -> None:
    """A new run file that knows where it came from; with other records it observes anew. The earlier is untouched."""
    before = earlier.read_bytes()
    same = commands.main("run", "--from", "aaaa", "--yes")
    assert same.code == 2
    assert "another setting" in same.err
    for setting, notice, source in (
        (("--tau", ".35"), "", "aaaa"),
        (("--records", "170"), "run aaaa had another records: all is observed and asked anew", None),
    ):
        known = set(earlier.parent.glob("*.mecharule"))
        done = commands.main("run", "--from", "aaaa", *setting, "--yes", "--display", "plain")
        assert done.code == 0, done.err
        assert notice in done.err
        (path,) = set(earlier.parent.glob("*.mecharule")) - known
        with RunStore.open(path, read_only=True) as store:
            assert store.config.get("forked_from") == source
            assert store.has("findings")
    assert earlier.read_bytes() == before
    assert commands.main("run", "--from", "aaaa", "--again", "1", "--yes").code == 0
    with opened(earlier, read_only=True) as run:
        assert [one.seed for one in run.findings.again] == [1]


@pytest.mark.slow
def test_one_layer_is_searched_alone(commands: Commands, earlier: Path) -> None:
    """As a job that a tool starts: its id at once, then how far it is; its units are all of that layer."""
    refused = commands.main("run", "--from", "aaaa", "--layer", "9", "--yes")
    assert (refused.code, "expected one of 2 layers" in refused.err) == (2, True)
    asked = {"run": "aaaa", "search": "exhaustive"}
    one, both = (commands.tool("run", **asked, **more, estimate=True).data for more in ({"layer": 1}, {}))
    assert 0 < one["price"]["example_forwards"] < both["price"]["example_forwards"]
    begun = commands.tool("run", **asked, layer=1, yes=True).data["run.begun"]
    while (row := _row(commands, begun))["status"].startswith("running"):
        assert "localized so far" in row["status"] or "beginning" in row["status"]
        time.sleep(0.2)
    with opened(earlier.parent / f"{begun}.mecharule", read_only=True) as run:
        whole = [search.whole_layers for search in run.findings.searches]
        assert {layer.layer for layers in whole for layer in layers} == {1}
        assert {one.neuron.layer for search in run.findings.searches for one in search.agonists} <= {1}
    with pytest.raises(errors.UsageError, match=f"expected a run that another process makes, {begun} is"):
        commands.tool("runs", stop=begun)


@pytest.mark.slow
def test_a_job_is_stopped_and_keeps_what_it_has(commands: Commands) -> None:
    asked = {"run": "aaaa", "basis": "mlp_hidden", "search": "exhaustive"}
    begun = commands.tool("run", **asked, yes=True).data["run.begun"]
    assert "keeps what it found" in commands.tool("runs", stop=begun).text
    while _row(commands, begun)["status"].startswith("running"):
        time.sleep(0.1)
    assert _row(commands, begun)["status"] == "interrupted"


def _row(commands: Commands, run: str) -> dict[str, str]:
    return next(row for row in commands.tool("runs").data["rows"] if row["run"] == run)
