"""The price of a run, said without a model and again before it searches, beside what the run then asked."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundled_run import new_run

from mecharule_ops import events, types
from mecharule_ops.cha.prediction import LayerPrediction
from mecharule_ops.run.analyse import analyse_run
from mecharule_ops.run.outlook import SearchOutlook, outlook
from mecharule_ops.run.planning import STILL_ASKED

SMALL: dict[str, Any] = {
    **{"model": "arith-tiny", "regimes": (1,), "records": 300, "slice_size": 32, "proposals": 0},
    **{"controls": 0, "controls_for": 0, "anchor_for": 0, "accounts_for": 0, "chains_for": 0},
}
KINDS: dict[str, dict[str, Any]] = {
    "heads": {"bases": ("attn_head",)},
    "exhaustive": {"search": "exhaustive"},
    "audited": {"rest": "audited", "audit": 32},
    "grouped": {"rest": "grouped"},
    "cha": {"search": "cha"},
    "parity": {"parity": True},
    "layer": {"layer": 0},
}


def priced(path: Path, settings: dict[str, Any]) -> tuple[SearchOutlook, events.Price, int, int]:
    """What a dry run says, what is said before the search, and (groups, example-forwards) that it took."""
    with new_run(path, settings) as run:
        (said,) = outlook(run.config).searches
        prices: list[events.Price] = []
        paid = 0, 0

        def show(event: events.Event) -> None:
            nonlocal paid
            if isinstance(event, events.Price):
                prices.append(event)
            if isinstance(event, events.StageFinished) and not event.stage.startswith(
                ("anchored", "controls", "cert", "held-out")
            ):
                paid = run.cost.group_evaluations, run.cost.example_forwards

        analyse_run(run, show, clock=lambda: 0.0)
        return said, prices[0], *paid


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_is_what_is_asked(tmp_path: Path, kind: str) -> None:
    """Units tested alone to the ablation; an audited rest within half; groups between the least and the most."""
    said, price, groups, forwards = priced(tmp_path / "a.mecharule", SMALL | KINDS[kind])
    assert said.least.groups <= groups <= said.most.groups
    assert price.least_evaluations <= groups <= price.evaluations
    assert forwards <= price.example_forwards <= said.most.example_forwards
    if kind in ("heads", "exhaustive"):
        assert said.least.groups == price.evaluations == groups
        assert price.ablations == f"{groups:,} group ablations"
    if kind == "layer":
        assert said.prediction_forwards <= STILL_ASKED * said.units * 64
    if kind == "exhaustive":
        assert said.least.example_forwards == price.example_forwards == forwards
    if kind == "audited":
        assert groups / 1.5 <= price.likely_evaluations <= 1.5 * groups
        assert price.evaluations == 256 + 2


def test_each_kind_of_search_has_its_own_price() -> None:
    """The settings that cost otherwise once said the same three numbers."""
    from mecharule_ops.config import make_config

    said = [outlook(make_config(**SMALL | kind)).searches[0] for kind in KINDS.values()]
    assert len({(one.least.groups, one.most.groups, one.most.example_forwards) for one in said}) == len(KINDS)


@pytest.mark.parametrize("kind", ["grouped", "cha"])
def test_no_search_asks_less_than_the_least_or_more_than_the_most(kind: str) -> None:
    """Of a basis that is tested alone in the end, whatever units flip which answers: 30 plants, without a model."""
    from mecharule_ops.config import make_config
    from mecharule_ops.run.planning import Rehearsed, least_and_most, plan_of, rehearsed, search_settings

    config = make_config(**SMALL | KINDS[kind] | {"exhaustive_up_to": 100})
    settings = search_settings(config, types.Regime.BASELINE_POSITIVE, 32, 32)
    candidates = types.Candidates.unranked(types.Basis.MLP_OUT, (2, 40))
    generator = np.random.default_rng(0)
    for _ in range(30):
        strength = np.where(generator.random(80) < generator.choice([0, 0.05, 0.3]), generator.random(80), 0)
        moved = generator.random((80, 2, 32)) < strength[:, None, None]
        believed = np.where(generator.random(80) < 0.7, strength, 0).reshape(2, 40)
        predictions = [LayerPrediction(associated=rates, unrelated=rates, scores=rates) for rates in believed]
        plan = plan_of(config, settings, () if kind == "cha" else predictions)

        def flips(question: types.GroupQuery, moved: np.ndarray = moved) -> types.FlipEstimate:
            chosen = moved[[40 * question.layer + channel for channel in question.channels]].any(0)
            sides = zip(chosen, (question.associated, question.unrelated), strict=True)
            counts = [types.FlipCount(flips=int(side[list(part)].sum()), n=len(part)) for side, part in sides]
            return types.FlipEstimate(associated=counts[0], unrelated=counts[1])

        least, most = least_and_most(config, candidates, plan)
        paid: Rehearsed = rehearsed(config, candidates, plan, flips)
        assert least.groups <= paid.groups <= most.groups
        assert paid.example_forwards <= most.example_forwards
