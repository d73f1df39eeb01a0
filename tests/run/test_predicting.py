"""What first order costs before a guided search, and against how many competitors it is asked."""

from __future__ import annotations

import pytest

from mecharule_ops.run.planning import PredictionPrice
from mecharule_ops.run.predicting import tokens_in_reach
from mecharule_ops.thresholds import COMPETITORS
from mecharule_ops.types import BehaviourRecord, Example


@pytest.mark.parametrize(
    ("units", "competitors"),
    [(0, 0), (8, 0), (139, 0), (140, 1), (900, 1), (950, COMPETITORS), (17_280, COMPETITORS)],
)
def test_the_prediction_is_asked_as_far_as_it_pays(units: int, competitors: int) -> None:
    """128 examples with 3 tokens in reach each: three competitors cost 19 forwards an example, 2 % of 950 units."""
    price = PredictionPrice.of(128, 3 * 128, units)
    assert price.competitors == competitors
    assert price.example_forwards == (128 * (1 + 2 * competitors * 3) if competitors else 0)


def test_nothing_to_ask_costs_nothing() -> None:
    """No example, no price, and no division by nothing."""
    assert PredictionPrice.of(0, 0, 270).competitors == 0


def test_the_first_token_is_out_of_reach() -> None:
    """A completion of one token has none, and neither has an empty one."""
    example = Example(id=0, prompt="", fields={})
    records = [
        BehaviourRecord(example=example, tokens=tokens, completion="", parsed={}, label=True)
        for tokens in [(), (1,), (1, 2, 3)]
    ]
    assert tokens_in_reach(records) == 2
