"""`why-not` follows the search that the run made: every basis, both regimes."""

from pathlib import Path

import pytest
from bundled_run import QUICK, finished, opened

from mecharule_ops.types import Basis, Regime
from tools.registry import call

Place = tuple[Basis, Regime]

BOTH = {
    **QUICK,
    "bases": tuple(basis.value for basis in Basis),
    "regimes": (1, 0),
    **{"cap": 32, "tau": 0.4, "search": "cha"},
    **dict.fromkeys(("exhaustive_up_to", "audit"), 0),
    **dict.fromkeys(("controls_for", "anchor_for", "accounts_for", "chains_for"), 0),
}
"""Few candidates, a τ that the few failures of 0→1 can bound, nothing beyond the search."""
PLACES = [(basis, regime) for basis in Basis for regime in Regime]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of every basis in both regimes."""
    return finished(tmp_path_factory.mktemp("both") / "b07h.mecharule", BOTH)


@pytest.fixture(scope="module")
def cut(both: Path) -> Path:
    """A run whose searches its budget ended."""
    return finished(both.with_name("c07c.mecharule"), {**BOTH, "bases": ("mlp_out",), "budget": 30})


def _check(path: Path, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the units that events name, first and last of a group, the one of the largest and of the smallest."""
    monkeypatch.setenv("MECHARULE_RUNS", str(path.parent))
    basis, regime = place
    settled: dict[str, tuple[str, int]] = {}
    with opened(path, read_only=True) as run:
        for view in run.told.searches.values():
            if (view.at.basis, view.at.regime) == (basis, regime.value):
                for node in view.nodes.values():
                    if node.verdict in ("pruned", "kept", "dropped"):
                        units = node.printed(basis).split(" … ")
                        settled |= dict.fromkeys(units, (str(node.verdict), node.size))
    assert settled
    for unit in {pick(settled, key=lambda unit: settled[unit][1]) for pick in (max, min)}:
        given = {"run": path.stem, "neuron": unit, "regime": str(regime.value)}
        last = call("why-not", given).as_json[f"unit.{unit}.why_not.tests"][-1]
        assert (last["verdict"], last["size"]) == settled[unit], unit


@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{place[0]} {place[1].arrow}")
def test_the_path_ends_where_the_search_settled_the_unit(
    both: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two routes to one node: its own event, and the search made again from what the run keeps."""
    _check(both, place, monkeypatch)


def test_so_it_does_where_a_budget_ended_the_search(cut: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was settled before the end is told; every outcome that the run keeps is used."""
    with opened(cut, read_only=True) as run:
        assert any("budget" in said for search in run.findings.searches for said in search.status)
    _check(cut, (Basis.MLP_OUT, Regime.BASELINE_POSITIVE), monkeypatch)
