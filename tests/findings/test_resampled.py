"""How often a unit is found on the same records drawn anew: a plain loop says the same, planted rates come out."""

import numpy as np
import pytest

from mecharule_ops.findings.counts import DRAWS, Resampled, resampled
from mecharule_ops.types import Neuron, Share

TAU = 0.2


def told(flips: np.ndarray, associated: int, seed: int = 0) -> list[Resampled]:
    every = [(Neuron.parse(f"a0.h{row}"), row) for row in range(len(flips))]
    return list(resampled(flips, associated, every, TAU, seed))


def plain(flips: np.ndarray, associated: int, seed: int) -> list[Resampled]:
    """Record by record: each half's records drawn, flips counted, the better half against τ, ranks by comparing all."""
    rng = np.random.default_rng(seed)
    halves = [part for part in (range(associated), range(associated, flips.shape[1])) if part]
    draws = [rng.multinomial(len(half), [1 / len(half)] * len(half), DRAWS) for half in halves]
    strengths = [
        [
            max(
                sum(int(times) * bool(unit[record]) for record, times in zip(half, of[draw], strict=True))
                / len(half)
                for half, of in zip(halves, draws, strict=True)
            )
            for unit in flips
        ]
        for draw in range(DRAWS)
    ]
    said = []
    for row in range(len(flips)):
        found = sum(draw[row] >= TAU for draw in strengths)
        ranks = sorted(1 + sum(other > draw[row] for other in draw) for draw in strengths)
        said.append(
            Resampled(
                neuron=Neuron.parse(f"a0.h{row}"),
                found=Share(count=found, n=DRAWS),
                first=ranks[2],
                last=ranks[97],
                alone=len(flips),
            )
        )
    return said


@pytest.mark.parametrize(("associated", "records"), [(20, 44), (0, 30), (30, 30)])
def test_a_plain_loop_says_the_same(associated: int, records: int) -> None:
    for seed in range(3):
        flips = np.random.default_rng([7, seed]).random((9, records)) < np.linspace(0, 0.5, 9)[:, None]
        assert told(flips, associated, seed) == plain(flips, associated, seed)


def test_a_strong_unit_is_always_found_and_one_at_tau_about_half_the_time() -> None:
    """64 records a half; rates .6 and .2 on D+, none on D-, over 200 samples; one that never flips is never found."""
    rng, counts, ranks = np.random.default_rng(3), [], []
    for sample in range(200):
        flips = rng.random((3, 128)) < np.array([0.6, TAU, 0.0])[:, None] * (np.arange(128) < 64)
        units = told(flips, 64, sample)
        counts.append([unit.found.count for unit in units])
        ranks.append([(unit.first, unit.last) for unit in units])
    strong, at_tau, never = np.mean(counts, axis=0)
    assert (strong, never) == (DRAWS, 0)
    assert 42 <= at_tau <= 58
    assert {each[0] for each in ranks} == {(1, 1)}
