"""How the layers of one basis and regime are searched, whatever the kind, and what that costs before any is spent.

One search a layer, all driven together. A price says the most and the least that they can cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from mecharule_ops.cha.exhaustive import exhaustive_search
from mecharule_ops.cha.group_search import Search
from mecharule_ops.cha.guided import GuidedSettings, guided_searches
from mecharule_ops.cha.partition import Order
from mecharule_ops.cha.prediction import LayerPrediction
from mecharule_ops.cha.search import ChaSearch
from mecharule_ops.cha.settings import ALGORITHM_1, ChaSettings
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.confidence import AlphaPolicy
from mecharule_ops.config import RunConfig
from mecharule_ops.events import Price
from mecharule_ops.run.driver import NamedSearch
from mecharule_ops.state import search_id
from mecharule_ops.thresholds import COMPETITORS
from mecharule_ops.types import Candidates, FlipCount, FlipEstimate, GroupAnswer, Regime

LARGEST = {Regime.BASELINE_POSITIVE: 8, Regime.BASELINE_NEGATIVE: 4}
"""Units of the largest group asked where the config names none: units that repair an answer hide one another more."""
ORDER = {Regime.BASELINE_POSITIVE: Order.ATTRIBUTION, Regime.BASELINE_NEGATIVE: Order.CHANNEL}
"""How units are grouped: attribution puts those that may repair an answer side by side, where they hide one another."""

AUDITED_AT_MOST = 256
"""Units that an audit draws unless the config says how many."""
_EIGHTH = 8

AFFORDABLE = 0.02
"""Share of testing every unit alone that first order may cost before it is asked about the runner-up alone."""
STILL_ASKED = 0.05
"""… before it is not asked: a basis so small is searched faster than predicted."""


def search_settings(config: RunConfig, regime: Regime, n_associated: int, n_unrelated: int) -> ChaSettings:
    """The settings of every layer's search; with `parity`, Algorithm 1 as printed."""
    if config.parity:
        settings = ALGORITHM_1
    else:
        largest = config.largest or LARGEST[regime]
        settings = ChaSettings(testing=config.testing, largest=largest, order=ORDER[regime])
    return replace(
        settings,
        tau=config.tau,
        epsilon=config.epsilon,
        alpha=AlphaPolicy(alpha=config.alpha, spending=config.spending, halved=config.parity),
        n_associated=n_associated,
        n_unrelated=n_unrelated,
        seed=config.seed,
    )


class SearchKind(StrEnum):
    """How units are searched; also the head of a search's id."""

    GUIDED = search_id.GUIDED
    """What predictions promise alone, the rest in large groups."""
    CHA = search_id.CHA
    """Groups by attribution, opened by bisection."""
    EXHAUSTIVE = search_id.EXHAUSTIVE
    """Every unit alone, on all examples."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchPlan:
    """How the layers of one basis and regime are searched."""

    kind: SearchKind = SearchKind.CHA
    settings: ChaSettings
    """How a group is tested, whatever the kind."""
    sweep: int | None = None
    """Units of the largest group of a guided sweep, where the run bounds it."""
    sweeps: bool = True
    """Whether a guided search asks in groups about what first order does not promise."""
    predictions: Sequence[LayerPrediction] = ()
    """Of each layer of the candidates, for a guided search."""
    prediction_forwards: int = 0
    """Example-forwards that the predictions took."""

    def searches(self, candidates: Candidates, regime: Regime) -> list[NamedSearch]:
        """New searches of all layers; nothing is asked yet.

        Raises `PredictionError` when a guided plan has no predictions of these candidates.
        """
        return [
            NamedSearch(
                id=search_id.search_id(self.kind, regime, candidates.basis, layer.layer),
                search=search,
                layer=layer.layer,
            )
            for layer, search in zip(candidates.layers, self._unnamed(candidates, regime), strict=True)
        ]

    def _unnamed(self, candidates: Candidates, regime: Regime) -> Sequence[Search]:
        layers = candidates.layers
        if self.kind is SearchKind.GUIDED:
            guided = GuidedSettings(cha=self.settings, sweep=self.sweep, sweeps=self.sweeps)
            return guided_searches(layers, self.predictions, settings=guided, regime=regime)
        if self.kind is SearchKind.EXHAUSTIVE:
            return [exhaustive_search(layer, settings=self.settings, regime=regime) for layer in layers]
        return [ChaSearch(layer, settings=self.settings, regime=regime) for layer in layers]


def audit_tests(config: RunConfig, pruned: int) -> int:
    """Exact tests that the audit of a search may cost when so many units were pruned.

    Of fewer than eight that are left to it alone all are tested: an eighth of them would bound nothing.
    """
    if config.audit is not None:
        return min(pruned, config.audit)
    least = min(pruned, _EIGHTH) if config.rest == "audited" else 0
    return max(least, min(AUDITED_AT_MOST, pruned // _EIGHTH))


def price(config: RunConfig, candidates: Candidates, plan: SearchPlan, seconds_a_forward: float) -> Price:
    """The most that the searches of one basis and regime can cost, and the least: if no group flips anything.

    What a guided search spends on its predictions is spent before, and not in it.
    """
    afterwards = _afterwards(config, candidates.total)
    evaluations = most_evaluations(config, candidates.total, plan.settings)
    forwards = evaluations * plan.settings.full_test
    quiet = where_nothing_flips(plan, candidates)
    least_forwards = sum(tree.example_forwards for tree in quiet) + afterwards * plan.settings.full_test
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


def where_nothing_flips(plan: SearchPlan, candidates: Candidates) -> list[ChaTree]:
    """The cheapest trees that the searches of all layers can end with. No model call."""
    searches = [named.search for named in plan.searches(candidates, Regime.BASELINE_POSITIVE)]
    while pending := [(search, question) for search in searches for question in search.ask()]:
        for search, question in pending:
            nothing = FlipEstimate(
                associated=FlipCount(flips=0, n=len(question.associated)),
                unrelated=FlipCount(flips=0, n=len(question.unrelated)),
            )
            search.tell(GroupAnswer(node=question.node, estimate=nothing))
    return [search.tree for search in searches]


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionPrice:
    """What asking first order about every unit of a basis takes, whatever the number of units."""

    competitors: int
    """All where they cost at most `AFFORDABLE` of testing every unit alone; one up to `STILL_ASKED`; else 0, which is
    not asking at all."""
    example_forwards: int
    """One an example, and two for each backward, one a token in reach and competitor."""
    share: float
    """Of testing every unit alone on the examples; that of one competitor where it is not asked."""

    @classmethod
    def of(cls, examples: int, tokens: int, units: int) -> PredictionPrice:
        """For so many examples with so many generated tokens in reach, all together, and units of the basis."""
        for competitors, most in ((COMPETITORS, AFFORDABLE), (1, STILL_ASKED)):
            forwards = examples + 2 * competitors * tokens
            share = forwards / (units * examples) if units * examples else math.inf
            if share <= most:
                return cls(competitors=competitors, example_forwards=forwards, share=share)
        return cls(competitors=0, example_forwards=0, share=share)
