"""Clauses of net gain: planted ones come back, every clause is worth what it says, chance gives none."""

from itertools import combinations, product

import numpy as np
import pytest
from predicate_columns import table

from mecharule_ops.gates import learning
from mecharule_ops.gates.learning import gate_clauses
from mecharule_ops.rules.algebra import Clause, lookup_in

NAMES = [f"p{place} >= 1" for place in range(12)]


def worth(fires: np.ndarray, value: np.ndarray) -> float:
    """The definition, record by record."""
    fixed = sum(1 for one in value[fires] if one > 0)
    broken = sum(1 for one in value[fires] if one < 0)
    return fixed - learning.HARM * broken - learning.CAUTION * (fixed + learning.HARM**2 * broken) ** 0.5


def planted(seed: int, records: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Half the records where p0 and not p1 hold are fixed; of the others a tenth is broken."""
    generator = np.random.default_rng(seed)
    matrix = generator.random((records, len(NAMES))) < 0.4
    inside = matrix[:, 0] & ~matrix[:, 1]
    value = np.where(inside & (generator.random(records) < 0.5), 1, 0)
    return matrix, np.where(~inside & (generator.random(records) < 0.1), -1, value)


def test_a_planted_clause_comes_back() -> None:
    """Exactly, first, in nine of ten draws."""
    found = [
        gate_clauses(table(matrix, NAMES), value) for matrix, value in (planted(seed) for seed in range(10))
    ]
    assert sum([str(clauses[0]) == "p0 >= 1 and not (p1 >= 1)" for clauses in found]) >= 9


@pytest.mark.parametrize("seed", range(4))
def test_the_first_clause_is_the_best_of_all(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against every clause of two literals over few predicates."""
    settings = {"MAX_CLAUSES": 1, "MAX_LITERALS": 2, "LITERAL_GAIN": 0.0, "CAUTION": 0.5, "HARM": 1.0}
    for name, value_of in settings.items():
        monkeypatch.setattr(learning, name, value_of)
    generator = np.random.default_rng(seed)
    matrix = generator.random((300, 5)) < 0.5
    value = generator.choice([-1, 0, 0, 1], 300)
    names = NAMES[:5]
    clauses = gate_clauses(table(matrix, names), value)
    every = []
    for size in (1, 2):
        for places in combinations(range(5), size):
            for wanted in product((True, False), repeat=size):
                fires = np.all([matrix[:, p] == w for p, w in zip(places, wanted, strict=True)], axis=0)
                if np.sum(value[fires] > 0) >= learning.LEAST_FIXED:
                    every.append(worth(fires, value))
    best = max(every)
    if best <= 0:
        assert clauses == ()
    else:
        assert worth(clauses[0].fires(lookup_in(matrix, names)), value) == pytest.approx(best)


def test_chance_gives_few_clauses() -> None:
    """Values drawn at random, as many fixed as broken, give none at the default caution in most draws."""
    empty = 0
    for seed in range(20):
        generator = np.random.default_rng(seed)
        matrix = generator.random((1000, len(NAMES))) < 0.5
        empty += gate_clauses(table(matrix, NAMES), generator.choice([-1, 0, 1], 1000)) == ()
    assert empty >= 18


def test_later_clauses_cover_what_the_first_leaves() -> None:
    """Two planted clauses are both found."""
    generator = np.random.default_rng(3)
    matrix = generator.random((3000, len(NAMES))) < 0.4
    first, second = matrix[:, 0] & matrix[:, 2], matrix[:, 4] & matrix[:, 5]
    value = np.where((first | second) & (generator.random(3000) < 0.6), 1, 0)
    value = np.where(~(first | second) & (generator.random(3000) < 0.2), -1, value)
    found: set[Clause] = set(gate_clauses(table(matrix, NAMES), value)[:2])
    assert {str(one) for one in found} == {"p0 >= 1 and p2 >= 1", "p4 >= 1 and p5 >= 1"}
