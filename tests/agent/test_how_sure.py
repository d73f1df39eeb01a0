"""How sure an answer is of a unit: over what its bounds hold, and what it does on records that chose nothing."""

from __future__ import annotations

from typing import Any

from agent.answering.answers import bounds_sentence, why
from agent.answering.checker import check
from agent.answering.sources import Evidence

DATA: dict[str, Any] = {
    "run": "c2c0",
    "neuron": "m1.14",
    "certificate": "1a0a8d977ae2",
    "chain": None,
    "flipped": [],
    "account": {},
    "explanation": ["It flips answers [run:c2c0]."],
    "slices": {
        "associated": {"flips": 16, "n": 48, "lower": 0.111, "upper": 0.48},
        "unrelated": {"flips": 13, "n": 48, "lower": 0.076, "upper": 0.42},
    },
    "at_random": True,
    "searched": 256,
    "confidence": 0.95,
    "tau": 0.2,
    "controls": {"flips": {"flips": 19, "n": 64}, "claims": "not ranked among random units"},
}


def test_the_bounds_say_over_how_many_units_they_hold_and_held_out_flips_stand_beside_them() -> None:
    said = why(DATA).sentences
    assert (
        "How sure: its lower bounds are 0.11 on all of D+ and 0.08 on all of D-, against τ = 0.2; they hold over both "
        "slices of all 256 units searched at once (95 % confidence) [run:c2c0]." in said
    )
    assert "On 64 held-out records, which chose nothing, it flips 19 [run:c2c0]." in said
    evidence = Evidence()
    evidence.add_result("c2c0", DATA, "")
    for sentence in said[1:4]:
        assert check(sentence, evidence).verified, check(sentence, evidence).text


def test_no_bound_of_a_cover_and_no_held_out_count_without_controls() -> None:
    data = DATA | {"at_random": False, "controls": None}
    assert "lower bound" not in bounds_sentence(data)
    assert not [each for each in why(data).sentences if "held-out" in each]
