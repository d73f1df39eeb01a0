"""Which units are shown: worked cases, and tables of noise and of planted units by the thousand."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from scipy import stats

from mecharule_ops.confidence import lower_bound
from mecharule_ops.findings.evidence import Certainty, Evidence, HeldOut, HeldOutFlips, evidence_of
from mecharule_ops.types import Neuron

ALPHA, TAU = 0.05, 0.2
UNITS, HEADS, RANDOM, RECORDS = 270, 9, 99, 64
"""Those of SmolLM2, and the defaults of a run."""


def held_out(found: Mapping[str, int], random: list[int], records: int) -> HeldOut:
    units = tuple(HeldOutFlips(neuron=Neuron.parse(name), flips=flips) for name, flips in found.items())
    return HeldOut(records=records, found=units, random=tuple(random))


def said(found: Mapping[str, int], random: list[int], records: int) -> Mapping[str, Evidence]:
    return {str(unit): each for unit, each in evidence_of(held_out(found, random, records), ALPHA).items()}


def test_one_head_of_68_that_flips_8_of_8_is_shown_and_none_else() -> None:
    noise = {f"a{place % 30}.h{place // 30}": place % 2 for place in range(67)}
    evidence = said({**noise, "a23.h4": 8}, [0] * 85 + [1] * 14, 8)
    assert [name for name, each in evidence.items() if each.certainty is Certainty.SHOWN] == ["a23.h4"]
    assert next(iter(evidence)) == "a23.h4"
    assert evidence["a23.h4"].rank == 1
    assert 0.40 < evidence["a23.h4"].lower < 0.41
    assert {each.rank for name, each in evidence.items() if name != "a23.h4"} == {None}
    others = [Neuron.parse(name) for name in list(evidence)[1:]]
    assert others == sorted(others)


@pytest.mark.parametrize(("drawn", "place"), [(19, 19), (20, 20), (39, 38), (59, 57), (99, 95)])
def test_the_rate_of_random_units_is_their_upper_95_percent_point(drawn: int, place: int) -> None:
    rate = held_out({}, list(range(1, drawn + 1)), 1000).random_rate(ALPHA)
    assert rate == place / 1000


@pytest.mark.parametrize(("random", "records"), [([0] * 18, 64), ([], 64), ([0] * 99, 0)])
def test_with_fewer_than_19_random_units_or_no_record_nothing_is_shown(
    random: list[int], records: int
) -> None:
    evidence = said({"a1.h1": records, "a2.h2": 0}, random, records)
    assert {each.certainty for each in evidence.values()} == {Certainty.OPEN}


def test_a_single_flip_is_not_shown_where_random_units_flip_nothing() -> None:
    assert said({"a1.h1": 1}, [0] * 99, 64)["a1.h1"].certainty is not Certainty.SHOWN


def test_between_shown_and_open_there_is_suggestive() -> None:
    evidence = said({"a1.h1": 60, "a2.h2": 8, "a3.h3": 6}, [6] * 99, 64)
    assert [each.certainty.value for each in evidence.values()] == ["shown", "suggestive", "open"]


def test_it_is_holm_of_exact_binomial_tests_and_the_bounds_keep_their_order() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        n = int(rng.integers(1, 65))
        found = {f"a{place}.h0": int(rng.integers(0, n + 1)) for place in range(int(rng.integers(1, 12)))}
        random = rng.integers(0, n + 1, 19).tolist()
        q = max(1, *random) / n
        p = sorted(
            (float(stats.binomtest(flips, n, q, alternative="greater").pvalue), -flips, Neuron.parse(name))
            for name, flips in found.items()
        )
        shown, bounds = [], []
        for place, (value, _, unit) in enumerate(p):
            if value >= ALPHA / (len(p) - place):
                break
            shown.append(unit)
            bounds.append(lower_bound(found[str(unit)], n, ALPHA / (len(p) - place)))
        evidence = evidence_of(held_out(found, random, n), ALPHA)
        assert [unit for unit, each in evidence.items() if each.rank] == shown
        assert [each.rank for each in evidence.values() if each.rank] == list(range(1, len(shown) + 1))
        told = [each.lower for each in evidence.values() if each.rank]
        assert told == sorted(told, reverse=True)
        assert all(q < lower <= own for lower, own in zip(told, bounds, strict=True))


Flips = Callable[[np.random.Generator, int], np.ndarray]
"""(unit, right answer) → whether it flips: one table."""


def common_rate(rate: float) -> Flips:
    return lambda rng, right: rng.random((UNITS, right)) < rate


def own_rates(most: float) -> Flips:
    """Rates that differ from unit to unit, uniform below `most`, which lies below τ."""
    return lambda rng, right: rng.random((UNITS, right)) < most * rng.random((UNITS, 1))


def hard_records(share: float, rate: float) -> Flips:
    """A few answers that many units turn: the counts of all units hang on the same records."""

    def flips(rng: np.random.Generator, right: int) -> np.ndarray:
        hard = rng.random(right) < share
        return rng.random((UNITS, right)) < np.where(hard, rate, 0.01)

    return flips


def named(rng: np.random.Generator, flips: np.ndarray) -> set[int]:
    """Units that one table names: halved at random, τ-agonists of either half's slice, then held-out records."""
    right = flips.shape[1]
    order = rng.permutation(right)
    train, kept = order[: round(0.7 * right)], order[round(0.7 * right) :][:RECORDS]
    cut = int(rng.integers(1, len(train)))
    slices = [half[:RECORDS] for half in (train[:cut], train[cut:])]
    found = np.flatnonzero(np.max([flips[:, half].mean(1) for half in slices], 0) >= TAU)
    counts = flips[:, kept].sum(1)
    drawn = rng.permutation(UNITS)[:RANDOM]
    units = {f"a{unit // HEADS}.h{unit % HEADS}": int(counts[unit]) for unit in found}
    evidence = said(units, counts[drawn].tolist(), len(kept))
    return {
        Neuron.parse(name).layer * HEADS + Neuron.parse(name).channel
        for name, each in evidence.items()
        if each.rank
    }


NOISE: Mapping[str, Flips] = {
    **{f"rate {rate}": common_rate(rate) for rate in (0.002, 0.02, 0.1, 0.3)},
    **{f"rates below {most}": own_rates(most) for most in (0.02, 0.1, 0.19)},
    "hard 5 %": hard_records(0.05, 0.6),
    "hard 20 %": hard_records(0.2, 0.5),
}
QUIET = [name for name in NOISE if name not in ("rate 0.3", "rates below 0.19")]
"""Noise beside which 60 % of 29 answers kept aside can be told apart."""
TABLES = 200


@pytest.mark.parametrize("right", [20, 26, 48, 200])
@pytest.mark.parametrize("noise", NOISE)
def test_noise_names_a_unit_in_at_most_5_percent_of_tables(noise: str, right: int) -> None:
    rng = np.random.default_rng([right, *noise.encode()])
    wrong = sum(bool(named(rng, NOISE[noise](rng, right))) for _ in range(TABLES))
    assert stats.binomtest(wrong, TABLES, 0.05, alternative="greater").pvalue > 0.001, wrong / TABLES


@pytest.mark.parametrize("right", [96, 200])
@pytest.mark.parametrize("noise", QUIET)
def test_a_unit_of_60_percent_is_named_in_at_least_90_percent_of_tables(noise: str, right: int) -> None:
    rng = np.random.default_rng([right, *noise.encode()])
    hits = 0
    for _ in range(TABLES):
        flips = NOISE[noise](rng, right)
        flips[137] = rng.random(right) < 0.6
        hits += 137 in named(rng, flips)
    assert hits / TABLES >= 0.9, hits / TABLES
