"""A rule to be found again in a random table, with one label in ten turned."""

import numpy as np

from mecharule_ops.rules.algebra import Clause, Condition, Rule, lookup_in


def planted(seed: int, records: int, predicates: int) -> tuple[np.ndarray, list[str], Rule, np.ndarray]:
    """A random table, two clauses of two literals each over four predicates, and their target with 10 % noise."""
    rng = np.random.default_rng(seed)
    texts = [f"p{index} > 0" for index in range(predicates)]
    matrix = rng.random((records, predicates)) < 0.5
    places, signs = rng.choice(predicates, 4, replace=False), rng.random(4) < 0.5
    literals = [Condition(texts[place], bool(sign)) for place, sign in zip(places, signs, strict=True)]
    rule = Rule((Clause(tuple(literals[:2])), Clause(tuple(literals[2:]))))
    return matrix, texts, rule, rule.fires(lookup_in(matrix, texts)) ^ (rng.random(records) < 0.1)
