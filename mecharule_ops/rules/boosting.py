"""Boosted trees over Boolean predicates: fit, read their paths, attribute exactly (paper, §4.2).

A literal is an integer: 2·j for "predicate j is false", 2·j + 1 for "predicate j is true". XGBoost splits
read `x < t` (the `yes` child) against `x >= t`; on 0/1 features with 0 < t ≤ 1 these are "false" and "true".
"""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import xgboost as xgb
from jaxtyping import Bool, Float, Int

from mecharule_ops.rules.clause_pool import Literals


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Distinct rows with how often each occurs."""

    features: Bool[np.ndarray, "row predicate"]
    target: Bool[np.ndarray, " row"]
    counts: Int[np.ndarray, " row"]

    def sample(self, draws: int, generator: np.random.Generator) -> "Rows":
        """All rows when there are at most `draws`, otherwise the rows hit by that many draws by count."""
        if len(self.counts) <= draws:
            return self
        hits = generator.multinomial(draws, self.counts / self.counts.sum())
        hit = hits > 0
        return Rows(features=self.features[hit], target=self.target[hit], counts=hits[hit])


def distinct_rows(matrix: Bool[np.ndarray, "record predicate"], target: Bool[np.ndarray, " record"]) -> Rows:
    """The distinct (features, target) rows in a canonical order, whatever the order of the records."""
    keys = np.packbits(np.column_stack([target, matrix]), axis=1)
    _, first, counts = np.unique(keys, axis=0, return_index=True, return_counts=True)
    return Rows(features=matrix[first], target=target[first], counts=counts)


def parameters(depth: int, seed: int) -> dict[str, object]:
    """What all trees here have in common; each split chooses among half of the columns, so that paths vary."""
    return {
        "objective": "binary:logistic",
        "max_depth": depth,
        "eta": 0.1,
        "colsample_bynode": 0.5,
        "tree_method": "hist",
        "nthread": 1,
        "seed": seed,
        "verbosity": 0,
    }


def fit(rows: Rows, rounds: int, depth: int, seed: int) -> xgb.Booster:
    """A logistic booster of the target, both classes weighing the same in total.

    Deterministic for a seed.
    """
    data = xgb.DMatrix(
        rows.features.astype(np.float32),
        label=rows.target.astype(np.float32),
        weight=rows.counts.astype(np.float32),
        nthread=1,
    )
    positives = int(rows.counts[rows.target].sum())
    assert 0 < positives < rows.counts.sum(), "a constant target is refused before fitting"
    weight = (int(rows.counts.sum()) - positives) / positives
    return xgb.train({**parameters(depth, seed), "base_score": 0.5, "scale_pos_weight": weight}, data, rounds)


def shap_values(
    booster: xgb.Booster, features: Bool[np.ndarray, "row predicate"]
) -> Float[np.ndarray, "row predicate"]:
    """Exact path-dependent TreeSHAP values φ of each predicate on each row, in log-odds.

    Source: Lundberg et al. (2020).
    """
    data = xgb.DMatrix(features.astype(np.float32), nthread=1)
    return booster.predict(data, pred_contribs=True)[:, :-1].astype(np.float64)


def path_prefixes(booster: xgb.Booster) -> set[Literals]:
    """Every prefix of every root-to-leaf path, as sorted literals."""
    found: set[Literals] = set()
    for dump in booster.get_dump(dump_format="json"):
        _collect(json.loads(dump), frozenset(), found)
    return found


def _collect(node: dict[str, Any], path: frozenset[int], found: set[Literals]) -> None:
    if path:
        found.add(tuple(sorted(path)))
    if "leaf" in node:
        return
    assert 0 < node["split_condition"] <= 1, "predicates are 0 or 1"
    predicate = int(node["split"].removeprefix("f"))
    for child in node["children"]:
        _collect(child, path | {2 * predicate + (child["nodeid"] == node["no"])}, found)
