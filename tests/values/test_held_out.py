"""Strata keep their share, and no processor, thread count or order of the records decides who is held out."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from mecharule_ops.subsets import held_out


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def blocks(sizes: tuple[int, ...]) -> np.ndarray:
    """One predicate pattern a block."""
    return np.repeat(np.kron(np.eye(len(sizes), dtype=bool), np.ones(4, dtype=bool)), sizes, axis=0)


@pytest.mark.parametrize("seed", range(6))
def test_every_stratum_keeps_its_share_to_one_record(seed: int) -> None:
    """Blocks of predicate space times outcome; a plain random split of the same size breaks this."""
    sizes = (100, 40, 10, 3)
    matrix, block = blocks(sizes), np.repeat(np.arange(4), sizes)
    target = rng(seed).random(len(block)) < 0.3
    held = held_out(matrix, target, range(len(block)), strata=4, seed=seed)

    def excess(held: np.ndarray) -> float:
        strata = [(block == b) & (target == outcome) for b in range(4) for outcome in (False, True)]
        return max(abs(held[s].sum() - 0.3 * s.sum()) for s in strata)

    assert excess(held) < 1
    assert max(excess(rng(s).permutation(held)) for s in range(50)) > 1


@pytest.mark.parametrize("share", [0.001, 0.1, 0.3, 0.5, 0.9, 0.999])
def test_the_whole_is_exact_too(share: float) -> None:
    """Of each outcome the rounded share is held out, at least one and never all."""
    for n in (2, 3, 7, 40, 101):
        matrix, target = rng(n).random((n, 5)) < 0.4, np.arange(n) % 3 == 0
        held = held_out(matrix, target, range(n), test_share=share, seed=1)
        for outcome in (False, True):
            size = int((target == outcome).sum())
            assert (target[held] == outcome).sum() == min(max(1, round(share * size)), size - 1)


def test_every_record_is_held_out_as_often_as_the_share_says() -> None:
    """Over 600 seeds each of 23 records in strata of 1 to 9 is held out near 30 % of the time."""
    matrix = blocks((9, 7, 4, 2, 1))
    often = np.zeros(23)
    for seed in range(600):
        often += held_out(matrix, np.ones(23, dtype=bool), range(23), seed=seed)
    assert (np.abs(often / 600 - 7 / 23) < 0.1).all()


def test_split_is_a_function_of_the_seed_and_the_ids_not_of_the_order() -> None:
    """Same seed, same split, in whatever order the records come; another seed, another split."""
    matrix, target, ids = rng(1).random((80, 6)) < 0.5, rng(2).random(80) < 0.5, rng(3).permutation(999)[:80]
    once, again, other = (held_out(matrix, target, ids.tolist(), seed=s) for s in (3, 3, 4))
    assert once.tolist() == again.tolist() != other.tolist()
    order = rng(5).permutation(80)
    assert (held_out(matrix[order], target[order], ids[order].tolist(), seed=3) == once[order]).all()


def test_a_record_with_another_outcome_moves_few_others() -> None:
    """Each of 50 records flipped alone changes at most six places of a split of 400."""
    matrix, target = rng(1).random((400, 6)) < 0.5, rng(2).random(400) < 0.5
    before = held_out(matrix, target, range(400), seed=0)
    for record in range(50):
        flipped = target.copy()
        flipped[record] = not flipped[record]
        assert (before ^ held_out(matrix, flipped, range(400), seed=0)).sum() <= 6


SELECTION = """
import json
import numpy as np
from mecharule_ops.subsets import held_out
from mecharule_ops.slices import E1Condition, compact_slices
from mecharule_ops.spectral import project
from mecharule_ops.types import Regime

made = np.random.default_rng(0)
steps = made.integers(-2, 3, (60, 96))
representation = (steps[made.integers(0, 60, 600)] / 3).astype(np.float32)
representation[300:] += made.normal(size=(300, 96)).astype(np.float32)
matrix, labels = made.random((600, 30)) < 0.3, made.random(600) < 0.5
held = held_out(matrix, labels, range(600), seed=0)
told = {"held out": held.tolist(), "float": project(representation).sum(axis=0).tolist()}
for condition in E1Condition:
    for regime in Regime:
        slices = compact_slices(
            labels, matrix[:, 0], representation, np.full(600, 5), np.flatnonzero(~held), identifiers=range(600),
            regime=regime, condition=condition, rule="a", seed=1,
        )
        parts = slices.associated, slices.unrelated, slices.pairs
        told[f"{condition} {regime}"] = [part.tolist() for part in parts]
print(json.dumps(told))
"""


def test_selection_is_the_same_on_another_processor() -> None:
    """Two BLAS kernels and thread counts, with many records alike: equal choices, though the floats differ."""
    told = []
    for kernel, threads in (("Prescott", "1"), ("Haswell", "2")):
        place = os.environ | {"OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": threads}
        place |= {"OMP_NUM_THREADS": threads, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", SELECTION], env=place, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        told.append(json.loads(done.stdout))
    floats = [one.pop("float") for one in told]
    assert floats[0] != floats[1], "the kernels do not differ, so this test shows nothing"
    assert told[0] == told[1]
