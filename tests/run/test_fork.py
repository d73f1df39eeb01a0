"""A fork searches again on what an earlier run observed: same findings as a run of its own, and nothing asked twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bundled_run import QUICK, finish, finished, new_run, opened
from command_process import Child, Commands

from mecharule_ops.config import make_config
from mecharule_ops.errors import UsageError
from mecharule_ops.findings.records import Findings
from mecharule_ops.run.journal import Journal
from mecharule_ops.run.opening import OBSERVED, check_fork, take_over
from mecharule_ops.run.preparation import prepare
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.types import Regime

OTHER = {**QUICK, "tau": 0.35}


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run at the usual τ."""
    return finished(tmp_path_factory.mktemp("fork") / "aaaa.mecharule", QUICK)


def _timeless(findings: Findings) -> Findings:
    """Findings without what names or times a run."""
    return replace(findings, run="", stages=())


def test_a_fork_finds_what_a_run_of_its_own_finds_and_asks_less(earlier: Path, tmp_path: Path) -> None:
    """Equal findings at the other τ; the earlier run's groups are answered from the file."""
    with new_run(tmp_path / "bbbb.mecharule", OTHER) as fresh:
        expected, paid = finish(fresh)[0], fresh.cost.group_evaluations
    with new_run(tmp_path / "cccc.mecharule", OTHER) as fork:
        with RunStore.open(earlier, read_only=True) as source:
            take_over(fork.store, source)
        found = finish(fork)[0]
        asked, reused = fork.cost.group_evaluations, fork.cost.reused
    assert _timeless(found) == _timeless(expected)
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


def test_a_fork_may_not_change_what_was_observed() -> None:
    """Each such setting is refused by name; so is a fork that changes nothing."""
    config = make_config(**QUICK)
    changes = {"records": 170, "seed": 5, "test_share": 0.4, "proposals": 1, "model": "smollm2-135m"}
    for name, value in changes.items():
        with pytest.raises(UsageError, match=f"keep {name}"):
            check_fork(config, config.model_copy(update={name: value}))
    assert changes.keys() < set(OBSERVED)
    with pytest.raises(UsageError, match="got none"):
        check_fork(config, config)
    check_fork(config, config.model_copy(update={"tau": 0.3}))


@pytest.fixture
def commands(child: Child, earlier: Path) -> Commands:
    return Commands(child, earlier.parent)


@pytest.mark.slow
def test_the_command_forks_and_names_what_cannot_change(commands: Commands, earlier: Path) -> None:
    """A new run file that knows where it came from; the earlier one is untouched."""
    before = earlier.read_bytes()
    refused = commands.main("fork", "aaaa", "--records", "400", "--yes")
    assert refused.code == 2
    assert "keep records" in refused.err
    done = commands.main("fork", "aaaa", "--tau", ".35", "--yes", "--display", "none")
    assert done.code == 0, done.err
    (path,) = set(earlier.parent.glob("*.mecharule")) - {earlier}
    with RunStore.open(path, read_only=True) as store:
        assert store.config["forked_from"] == "aaaa"
        assert store.has("findings")
    assert earlier.read_bytes() == before


def test_forks_split_by_the_next_best_rules(earlier: Path, tmp_path: Path) -> None:
    """Five splitters, as the paper has on arithmetic: each parts the train records otherwise and leaves both slices
    power, the observed answers are asked once, and a rank beyond them is refused.
    """
    sides = []
    for rank in range(1, 6):
        with new_run(tmp_path / f"rank{rank}", {**QUICK, "splitter": rank}) as fork:
            with RunStore.open(earlier, read_only=True) as source:
                take_over(fork.store, source)
            prepare(fork, Journal(fork.store, lambda event: None, lambda: 0.0))
            rule, _, note = fork.splitter
            assert rule is not None
            assert (rank == 1) or note.startswith(f"splitter {rank}, by train MCC")
            fires = rule.fires(fork.fires)[fork.train]
            assert not any((fires == other).all() or (fires != other).all() for other in sides)
            sides.append(fires)
            slices = fork.slices(Regime.BASELINE_POSITIVE)
            assert min(len(slices.associated), len(slices.unrelated)) >= 14
    with opened(earlier, read_only=True) as run:
        assert run.splitter.rule is not None
        assert (run.splitter.rule.fires(run.fires)[run.train] == sides[0]).all()
    with new_run(tmp_path / "many", {**QUICK, "splitter": 20, "slice_size": 4096, "tau": 0.03}) as fork:
        with RunStore.open(earlier, read_only=True) as source:
            take_over(fork.store, source)
        with pytest.raises(UsageError, match=r"expected one of the \d+ splitters .* got splitter=20"):
            prepare(fork, Journal(fork.store, lambda event: None, lambda: 0.0))
