"""What the searches of one basis and regime will cost, at most and at least, before any of it is spent."""

from __future__ import annotations

import math

from mecharule_ops.cha.search import ChaSearch
from mecharule_ops.cha.settings import ChaSettings
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.config import RunConfig
from mecharule_ops.events import Price
from mecharule_ops.types import Candidates, FlipCount, FlipEstimate, GroupAnswer, LayerCandidates, Regime

AUDITED_AT_MOST = 256
"""Units that an audit draws unless the config says how many."""


def audit_tests(config: RunConfig, pruned: int) -> int:
    """Units that the audit of a search draws when so many were pruned."""
    return min(pruned, AUDITED_AT_MOST, pruned // 8) if config.audit is None else min(pruned, config.audit)


def price(
    config: RunConfig, candidates: Candidates, settings: ChaSettings, seconds_a_forward: float
) -> Price:
    """The most that the searches of one basis and regime can cost, and the least: if no group flips anything."""
    afterwards = _afterwards(config, candidates.total)
    evaluations = most_evaluations(config, candidates.total, settings)
    forwards = evaluations * settings.full_test
    quiet = [_where_nothing_flips(layer, settings) for layer in candidates.layers]
    least_forwards = sum(tree.example_forwards for tree in quiet) + afterwards * settings.full_test
    return Price(
        evaluations=evaluations,
        example_forwards=forwards,
        seconds=forwards * seconds_a_forward,
        least_evaluations=sum(tree.queries for tree in quiet) + afterwards,
        least_seconds=least_forwards * seconds_a_forward,
    )


def most_evaluations(config: RunConfig, units: int, settings: ChaSettings) -> int:
    """Group ablations that searching, then auditing or exhausting, so many units takes at most."""
    overhead = settings.overhead
    search = 2 * units - 1 if overhead is None else math.ceil((1 + overhead) * units)
    return search + _afterwards(config, units)


def _afterwards(config: RunConfig, units: int) -> int:
    """Units that are tested singly when a search has ended."""
    return units if units <= config.exhaustive_up_to else audit_tests(config, units)


def _where_nothing_flips(layer: LayerCandidates, settings: ChaSettings) -> ChaTree:
    """The cheapest tree that the search of a layer can end with. No model call."""
    search = ChaSearch(layer, settings=settings, regime=Regime.BASELINE_POSITIVE)
    while questions := search.ask():
        for question in questions:
            nothing = FlipEstimate(
                associated=FlipCount(flips=0, n=len(question.associated)),
                unrelated=FlipCount(flips=0, n=len(question.unrelated)),
            )
            search.tell(GroupAnswer(node=question.node, estimate=nothing))
    return search.tree
