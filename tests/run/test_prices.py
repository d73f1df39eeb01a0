"""The price of a run, said without a model and again before it searches, beside what the run then asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bundled_run import new_run

from mecharule_ops.events import Event, Price, StageFinished
from mecharule_ops.run.analyse import analyse
from mecharule_ops.run.outlook import SearchOutlook, outlook

SMALL: dict[str, Any] = {
    **{"model": "arith-tiny", "regimes": (1,), "records": 300, "slice_size": 32, "proposals": 0},
    **{"controls": 0, "controls_for": 0, "anchor_for": 0, "accounts_for": 0, "chains_for": 0},
}
KINDS: dict[str, dict[str, Any]] = {
    "heads": {"bases": ("attn_head",)},
    "exhaustive": {"search": "exhaustive"},
    "audited": {"rest": "audited"},
    "grouped": {"rest": "grouped"},
    "cha": {"search": "cha"},
    "parity": {"parity": True},
}


def priced(path: Path, settings: dict[str, Any]) -> tuple[SearchOutlook, Price, int, int]:
    """What a dry run says, what is said before the search, and (groups, example-forwards) that it took."""
    with new_run(path, settings) as run:
        (said,) = outlook(run.config).searches
        prices: list[Price] = []
        paid = 0, 0

        def show(event: Event) -> None:
            nonlocal paid
            if isinstance(event, Price):
                prices.append(event)
            if isinstance(event, StageFinished) and not event.stage.startswith(
                ("anchored", "controls", "cert", "held-out")
            ):
                paid = run.cost.group_evaluations, run.cost.example_forwards

        analyse(run, show, clock=lambda: 0.0)
        return said, prices[0], *paid


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_is_what_is_asked(tmp_path: Path, kind: str) -> None:
    """Units tested alone to the ablation; an audited rest within half; groups between the least and the most."""
    said, price, groups, forwards = priced(tmp_path / "a.mecharule", SMALL | KINDS[kind])
    assert said.least_evaluations <= groups <= said.evaluations
    assert price.least_evaluations <= groups <= price.evaluations
    assert forwards <= price.example_forwards <= said.example_forwards
    if kind in ("heads", "exhaustive"):
        assert said.least_evaluations == price.evaluations == groups
        assert price.ablations == f"{groups:,} group ablations"
    if kind == "exhaustive":
        assert said.least_forwards == price.example_forwards == forwards
    if kind == "audited":
        assert groups / 1.5 <= price.likely_evaluations <= 1.5 * groups
        assert price.evaluations == 256 + 2


def test_each_kind_of_search_has_its_own_price() -> None:
    """The settings that cost otherwise once said the same three numbers."""
    from mecharule_ops.config import make_config

    said = [outlook(make_config(**SMALL | kind)).searches[0] for kind in KINDS.values()]
    assert len({(one.least_evaluations, one.evaluations, one.example_forwards) for one in said}) == len(KINDS)
