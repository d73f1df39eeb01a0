"""The solver: what columns tell of an answer, how sure it is, and when it had better keep silent."""

import numpy as np

from mecharule_ops.gates.testing import SURE, solver, sure_enough


def columns(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two digits of each record, as one-hot columns."""
    digits = np.random.default_rng(seed).integers(0, 10, (count, 2))
    return np.eye(10, dtype=np.float32)[digits].reshape(count, 20), digits


def test_answers_that_columns_tell_are_learned_and_others_are_not() -> None:
    """A number made of both digits comes back on new records, from few characters; one of neither does not."""
    features, digits = columns(600)
    said = [f"{a}{b}" if a else f"-{b}" for a, b in digits]
    answers, sure = solver(features[:400], said[:400], features[400:], seed=0)
    assert np.mean([one == other for one, other in zip(answers, said[400:], strict=True)]) > 0.97
    chance = np.random.default_rng(1).integers(0, 90, 600).astype(str).tolist()
    answers, doubt = solver(features[:400], chance[:400], features[400:], seed=0)
    assert np.mean([one == other for one, other in zip(answers, chance[400:], strict=True)]) < 0.1
    assert doubt.mean() < sure.mean() - 0.3


def test_it_is_as_sure_as_gains_most() -> None:
    """Against every threshold, counted record by record; where each answer harms it never answers."""
    generator = np.random.default_rng(2)
    sure = generator.random(400)
    right, before = generator.random(400) < sure, generator.random(400) < 0.6

    def gain(least: float) -> float:
        total = 0.0
        for place in range(400):
            if sure[place] >= least:
                total += right[place] and not before[place]
                total -= 3.0 * (before[place] and not right[place])
        return total

    least = sure_enough(sure, right, before, 3.0)
    assert gain(least) == max(map(gain, SURE))
    assert 0.5 < least < 1
    assert sure_enough(sure, np.zeros(400, bool), before, 3.0) == 1.0
