"""The free-form predictor: the trees grown again, and Shapley values that add up to what it says."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest

from mecharule_ops.codec import decode, encode
from mecharule_ops.rules.families import Trees
from mecharule_ops.rules.free_form_trees import grown
from mecharule_ops.rules.predictor import FreeFormPredictor

TREES = Trees(depth=2, rounds=20, threshold=0.5, validated=1.0)
NAMES = ("a", "b", "c", "d")


def planted(seed: int, records: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Four conditions, and a target of two of them with a tenth of its labels turned."""
    rng = np.random.default_rng(seed)
    matrix = rng.random((records, 4)) < 0.5
    return matrix, (matrix[:, 0] & ~matrix[:, 2]) ^ (rng.random(records) < 0.1)


@pytest.fixture
def predictor() -> FreeFormPredictor:
    return grown_from(*planted(0))


def grown_from(matrix: np.ndarray, target: np.ndarray) -> FreeFormPredictor:
    booster = grown(matrix.astype(np.float32), target, TREES, 0)
    return FreeFormPredictor(predicates=NAMES, threshold=0.5, model=booster.save_raw("json").decode("ascii"))


def log_odds(predictor: FreeFormPredictor, matrix: np.ndarray) -> np.ndarray:
    probability = predictor.probabilities(matrix).astype(float)
    return np.log(probability / (1 - probability))


def test_shapley_values_and_the_base_add_up_to_the_log_odds(predictor: FreeFormPredictor) -> None:
    """On every record; and they differ between predicates that matter and those that do not."""
    matrix, _ = planted(1)
    base, values = predictor.shapley(matrix)
    assert values.sum(1) + base == pytest.approx(log_odds(predictor, matrix), abs=1e-4)
    strength = np.abs(values).mean(0)
    assert min(strength[0], strength[2]) > 5 * max(strength[1], strength[3])


def test_they_are_those_of_every_coalition(predictor: FreeFormPredictor) -> None:
    """Brute force over the conditional expectations that the trees define on their own train records' covers."""
    matrix = planted(2, 5)[0]
    trees = predictor.booster.get_dump(dump_format="json", with_stats=True)
    _, values = predictor.shapley(matrix)
    for row, found in zip(matrix, values, strict=True):
        expected = [_shapley(trees, row, place) for place in range(4)]
        assert found == pytest.approx(expected, abs=1e-4)


def _shapley(trees: list[str], row: np.ndarray, place: int) -> float:
    """By definition: the weighted gain of knowing one predicate over all coalitions of the others."""
    others = [other for other in range(4) if other != place]
    total = 0.0
    for size in range(4):
        for chosen in combinations(others, size):
            gain = _known(trees, row, {*chosen, place}) - _known(trees, row, set(chosen))
            total += gain / (4 * comb(3, size))
    return total


def _known(trees: list[str], row: np.ndarray, known: set[int]) -> float:
    import json

    def walk(node: dict) -> float:
        if "leaf" in node:
            return node["leaf"]
        yes, no = (next(c for c in node["children"] if c["nodeid"] == node[side]) for side in ("yes", "no"))
        place = int(node["split"].removeprefix("f"))
        if place in known:
            return walk(yes if float(row[place]) < node["split_condition"] else no)
        return (yes["cover"] * walk(yes) + no["cover"] * walk(no)) / node["cover"]

    return sum(walk(json.loads(tree)) for tree in trees)


def test_pushes_are_the_strongest_predicates_with_what_they_do_on_each_record(
    predictor: FreeFormPredictor,
) -> None:
    """`a` pushes towards the target where it holds, `c` away from it; a predicate that never pushes is left out."""
    matrix, _ = planted(1, 50)
    pushes = predictor.pushes(matrix, shown=2)
    assert {push.predicate for push in pushes.predicates} == {"a", "c"}
    a = next(push for push in pushes.predicates if push.predicate == "a")
    c = next(push for push in pushes.predicates if push.predicate == "c")
    assert (a.mean(holds=True) or 0) > 0 > (a.mean(holds=False) or 0)
    assert (c.mean(holds=True) or 0) < 0 < (c.mean(holds=False) or 0)
    assert a.holds == tuple(matrix[:, 0].tolist())
    assert predictor.pushes(np.zeros((0, 4), bool)).predicates == ()


def test_it_is_the_same_after_it_was_stored(predictor: FreeFormPredictor) -> None:
    """Encoded and read back it predicts the same; grown again from the same records it is the same text."""
    matrix, target = planted(0)
    again = decode(FreeFormPredictor, encode(predictor))
    assert again.probabilities(matrix).tolist() == predictor.probabilities(matrix).tolist()
    assert grown_from(matrix, target).model == predictor.model
