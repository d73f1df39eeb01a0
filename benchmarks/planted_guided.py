"""What predictions are worth: guided searches of a million planted units against today's, needs no model.

Each unit flips examples at its own rate: the k strongest at τ and above, the unit of rank r at τ · (r / k)^−1.5 of
one slice and a random part of that of the other; a group flips what any of its units flips. Predictions have the
same marginal distribution and a given rank correlation with the rates (a Gaussian copula), and are counts of the
slices' examples like those of a model. Every line is one search in a process of its own.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pages import put_rows
from planted import each_apart
from scipy.stats import spearmanr

from mecharule_ops.cha.group_search import Search
from mecharule_ops.cha.guided import GuidedSettings, guided_searches
from mecharule_ops.cha.prediction import LayerPrediction
from mecharule_ops.cha.search import ChaSearch
from mecharule_ops.types import (
    FlipCount,
    FlipEstimate,
    GroupAnswer,
    GroupQuery,
    LayerCandidates,
    Regime,
)

EXAMPLES = 64
CORRELATIONS = (0.9, 0.5, 0.0, -0.5)
AGONISTS = (10, 100, 1_000)
SETTINGS = GuidedSettings()
DECAY = 1.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranked:
    """Planted units with their flips as bits of D⁺ and D⁻, and what is predicted of them."""

    flips: np.ndarray
    """`unit slice`, one bit an example."""
    prediction: LayerPrediction
    spearman: float

    @classmethod
    def draw(cls, units: int, agonists: int, correlation: float, rng: np.random.Generator) -> Ranked:
        latent = rng.normal(size=units)
        rates = np.minimum(SETTINGS.cha.tau * (np.arange(1, units + 1) / agonists) ** -DECAY, 0.95)
        louder = rng.random(units) < 0.5
        softer = rng.random(units)
        strength = np.empty(units)
        strength[np.argsort(-latent)] = rates
        counts = rng.binomial(EXAMPLES, _both(strength, louder, softer))
        flips = np.zeros((units, 2), dtype=np.uint64)
        for unit, part in zip(*np.nonzero(counts), strict=True):
            chosen = rng.choice(EXAMPLES, size=counts[unit, part], replace=False).tolist()
            flips[unit, part] = sum(1 << example for example in chosen)
        normal = 2 * np.sin(np.pi * correlation / 6)
        seen = normal * latent + np.sqrt(1 - normal**2) * rng.normal(size=units)
        predicted = np.empty(units)
        predicted[np.argsort(-seen)] = rates
        told = np.where(rng.random(units) < (1 + correlation) / 2, louder, ~louder)
        shares = rng.binomial(EXAMPLES, _both(predicted, told, softer)) / EXAMPLES
        return cls(
            flips=flips,
            prediction=LayerPrediction(associated=shares[:, 0], unrelated=shares[:, 1], scores=seen),
            spearman=float(spearmanr(latent, seen).statistic),
        )

    @property
    def agonists(self) -> set[int]:
        """What brute force says: the units that alone flip τ of a slice."""
        strongest = np.bitwise_count(self.flips).max(axis=1) / EXAMPLES
        return set(np.flatnonzero(strongest >= SETTINGS.cha.tau).tolist())

    def answer(self, query: GroupQuery) -> GroupAnswer:
        """The counts of a group: the union of its units' flips."""
        united = np.bitwise_or.reduce(self.flips[list(query.channels)], axis=0).tolist()
        counts = [
            FlipCount(flips=(bits >> asked.start & (1 << len(asked)) - 1).bit_count(), n=len(asked))
            for bits, asked in zip(united, (query.associated, query.unrelated), strict=True)
        ]
        return GroupAnswer(node=query.node, estimate=FlipEstimate(associated=counts[0], unrelated=counts[1]))


def _both(strength: np.ndarray, associated: np.ndarray, softer: np.ndarray) -> np.ndarray:
    """Rates of both slices: the strength in one, a part of it in the other."""
    rates = np.stack([strength, strength * softer], axis=1)
    return np.where(associated[:, None], rates, rates[:, ::-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One search."""

    search: str
    spearman: float
    units: int
    agonists: int
    found: int
    queries: int
    share_of_exhaustive: float
    """Example-forwards over those of N exact singleton tests."""
    seconds: float
    """Processor time of the search itself; answers are not counted."""
    peak_mib: float
    fallback: str
    """Why predictions were given up; empty when they were not."""


def driven(search: Search, planted: Ranked) -> float:
    """Answer until the search is done; seconds spent on answers."""
    answering = 0.0
    while not search.done:
        for query in search.ask():
            asked = time.process_time()
            answer = planted.answer(query)
            answering += time.process_time() - asked
            search.tell(answer)
    return answering


def measure(guided: bool, units: int, agonists: int, correlation: float, seed: int) -> Row:
    """Search one planted layer to its end."""
    rng = np.random.default_rng([seed, units, agonists])
    planted = Ranked.draw(units, agonists, correlation, rng)
    layer = LayerCandidates(layer=0, channels=np.arange(units), scores=planted.prediction.scores)
    regime = Regime.BASELINE_POSITIVE
    begun = time.process_time()
    search: Search
    if guided:
        (search,) = guided_searches([layer], [planted.prediction], settings=SETTINGS, regime=regime)
    else:
        search = ChaSearch(layer, settings=SETTINGS.cha, regime=regime)
    answering = driven(search, planted)
    tree = search.tree
    seconds = time.process_time() - begun - answering
    found = {node.channels[0] for node in tree.kept}
    return Row(
        search="guided" if guided else "cha",
        spearman=planted.spearman,
        units=units,
        agonists=len(planted.agonists),
        found=len(planted.agonists & found),
        queries=tree.queries,
        share_of_exhaustive=tree.example_forwards / (units * SETTINGS.cha.full_test),
        seconds=seconds,
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        fallback=search.fallback.sentence if search.fallback else "",
    )


def line(row: Row) -> str:
    """A row of the table."""
    return (
        f"{row.search:<7} {row.spearman:>8.2f} {row.units:>9,} {row.agonists:>6,} {row.found:>6,} {row.queries:>8,} "
        f"{row.share_of_exhaustive:>9.3%} {row.seconds:>7.2f} {row.peak_mib:>5,.0f}  {row.fallback}"
    )


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="and into docs/tables/search-planted-guided.csv")
    parser.add_argument("--units", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(given)
    cases = [
        (guided, options.units, agonists, correlation, options.seed)
        for agonists in AGONISTS
        for correlation in CORRELATIONS
        for guided in (False, True)
    ]
    print(
        f"{'search':<7} {'Spearman':>8} {'N':>9} {'k':>6} {'found':>6} {'queries':>8} {'of exh.':>9} {'seconds':>7} MiB"
    )
    rows = each_apart(measure, cases, line)
    if options.write:
        put_rows("search-planted-guided", rows)


if __name__ == "__main__":
    main()
