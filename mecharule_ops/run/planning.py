"""How the layers of one basis and regime are searched, whatever the kind, and what that costs before any is spent.

One search a layer, all driven together. A price says the most and the least that they can cost.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from mecharule_ops import events, nodes, thresholds, types
from mecharule_ops.cha.audit import Audit, AuditSettings, unsettled
from mecharule_ops.cha.group_search import GroupSearch
from mecharule_ops.cha.guided import Guide, GuidedSettings
from mecharule_ops.cha.partition import Order
from mecharule_ops.cha.prediction import LayerPrediction
from mecharule_ops.cha.search import ChaSearch, exhaustive_search
from mecharule_ops.cha.settings import ALGORITHM_1, ChaSettings
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.config import RunConfig
from mecharule_ops.run.driver import estimate_of
from mecharule_ops.state import search_view

LARGEST = {types.Regime.BASELINE_POSITIVE: 8, types.Regime.BASELINE_NEGATIVE: 4}
"""Units of the largest group asked where the config names none: units that repair an answer hide one another more."""
ORDER = {types.Regime.BASELINE_POSITIVE: Order.ATTRIBUTION, types.Regime.BASELINE_NEGATIVE: Order.CHANNEL}
"""How units are grouped: attribution puts those that may repair an answer side by side, where they hide one another."""

IN_A_GROUP = "pruned with a group"
ALONE = "tested alone on a part of the examples"
OVERLOOKED = 0.005
"""Chance of overlooking a drawn τ-agonist after a guided search: 40 of 128 examples rule a quiet unit out. For the same
money less draws fewer units, and more widens the bound once agonists are met."""
COUNTED = 300
"""Units of a basis whose audit tests all that the search left, unless the config says how many it draws."""
AUDITED_AT_MOST = 128
"""Units that an audit draws of a larger basis."""
_EIGHTH = 8

OBSERVED_AT_MOST = 4
"""Times the records asked for that are observed at most, where an outcome is rare."""

AFFORDABLE = 0.02
"""Share of testing every unit alone that first order may cost before it is asked about the runner-up alone."""
STILL_ASKED = 0.05
"""… before it is not asked: a basis so small is searched faster than predicted."""


def search_settings(
    config: RunConfig, regime: types.Regime, n_associated: int, n_unrelated: int
) -> ChaSettings:
    """The settings of every layer's search; with `parity`, Algorithm 1 as printed."""
    own = ChaSettings(testing=config.testing, largest=config.largest or LARGEST[regime], order=ORDER[regime])
    return replace(
        ALGORITHM_1 if config.parity else own,
        tau=config.tau,
        epsilon=config.epsilon,
        alpha=config.slice_alpha,
        n_associated=n_associated,
        n_unrelated=n_unrelated,
    )


class SearchKind(StrEnum):
    """How units are searched; also the head of a search's id."""

    GUIDED = search_view.GUIDED
    """What predictions promise alone, the rest in large groups."""
    CHA = search_view.CHA
    """Groups by attribution, opened by bisection."""
    EXHAUSTIVE = search_view.EXHAUSTIVE
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

    def searches(self, candidates: types.Candidates, regime: types.Regime) -> dict[str, GroupSearch]:
        """New searches of all layers by their names; nothing is asked yet."""
        layers = candidates.layers
        new = exhaustive_search if self.kind is SearchKind.EXHAUSTIVE else ChaSearch
        made: Iterable[GroupSearch] = (new(layer, settings=self.settings, regime=regime) for layer in layers)
        if self.kind is SearchKind.GUIDED:
            guided = GuidedSettings(cha=self.settings, sweep=self.sweep, sweeps=self.sweeps)
            made = Guide(layers, self.predictions, settings=guided, regime=regime).searches
        ids = (search_view.SearchId(self.kind, regime.value, candidates.basis, one.layer) for one in layers)
        return dict(zip(map(str, ids), made, strict=True))


def asks_first_order(config: RunConfig) -> bool:
    """Whether a run's search is guided by first order, where that pays."""
    return config.search == SearchKind.GUIDED and not config.parity


def plan_of(config: RunConfig, settings: ChaSettings, predictions: Sequence[LayerPrediction]) -> SearchPlan:
    """How a run searches: guided where first order was asked, else each unit alone, unless its groups have a size."""
    if config.parity:
        return SearchPlan(settings=settings)
    if asks_first_order(config) and not predictions:
        return SearchPlan(settings=replace(settings, largest=config.largest or 1))
    return SearchPlan(
        kind=SearchKind(config.search),
        settings=settings,
        sweep=config.largest,
        sweeps=config.rest == "grouped",
        predictions=predictions,
    )


def audit_tests(config: RunConfig, units: int, pruned: int) -> int:
    """Exact tests that the audit of a search among so many units may cost when so many of them were pruned.

    Of fewer than eight that are left to it alone all are tested: an eighth of them would bound nothing.
    """
    if config.audit is not None:
        return min(pruned, config.audit)
    if units <= COUNTED:
        return pruned
    least = min(pruned, _EIGHTH) if config.rest == "audited" else 0
    return max(least, min(AUDITED_AT_MOST, pruned // _EIGHTH))


def audit_settings(
    config: RunConfig, plan: SearchPlan, units: int, pruned: int, spent: int = 0
) -> AuditSettings:
    """What the money of its exact tests buys an audit: exact tests of everyone, which are a count, or a bound.

    It is at most what a budget of group ablations leaves when so many are spent.
    """
    left = max(0, (config.budget or pruned + spent) - spent)
    tests = min(audit_tests(config, units, pruned), left)
    settings = AuditSettings(
        n_associated=plan.settings.n_associated,
        n_unrelated=plan.settings.n_unrelated,
        confidence=0.95 if tests < pruned else 1.0,
        tau=config.tau,
        slip=OVERLOOKED if plan.predictions and tests < pruned else 0.0,
    )
    return replace(settings, budget=min(pruned, settings.draws_for(tests), left))


def audit_strata(
    plan: SearchPlan, trees: Sequence[ChaTree], candidates: types.Candidates
) -> dict[str, list[types.Neuron]]:
    """The units whose strength on the full slices is not known, by what was predicted, else by how the search ended."""
    some = plan.settings.tau / 4
    predicted = f"predicted to flip {some:.0%} or more", "predicted to flip less", "predicted to flip nothing"
    strata: dict[str, list[types.Neuron]] = {name: [] for name in (*predicted, IN_A_GROUP, ALONE)}
    for nth, (tree, layer) in enumerate(zip(trees, candidates.layers, strict=True)):
        channels = layer.channels.tolist()
        if plan.predictions:
            rates = plan.predictions[nth].strength.tolist()
            names = (predicted[(rate < some) + (rate <= 0)] for rate in rates)
        else:
            dropped = {node.channels[0] for node in tree.nodes if node.verdict is nodes.Verdict.DROPPED}
            names = (ALONE if unit in dropped else IN_A_GROUP for unit in channels)
        name = dict(zip(channels, names, strict=True))
        for neuron in unsettled(tree, layer, candidates.basis, plan.settings.full_test):
            strata[name[neuron.channel]].append(neuron)
    return {name: units for name, units in strata.items() if units}


Flips = Callable[[types.GroupQuery], types.FlipEstimate]
"""What a group flips, without a model."""


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """What a search asks for, its audit, brute force and whole layers included."""

    groups: int = 0
    """Groups that are asked, each once."""
    example_forwards: int = 0

    def picked(self, pick: Callable[[int, int], int], other: "Rehearsed") -> "Rehearsed":
        """The smaller or larger of each number."""
        return Rehearsed(pick(self.groups, other.groups), pick(self.example_forwards, other.example_forwards))


def rehearsed(config: RunConfig, candidates: types.Candidates, plan: SearchPlan, flips: Flips) -> Rehearsed:
    """What searching all layers, then auditing or exhausting them and ablating each as a whole, asks for."""
    full, asked, forwards = plan.settings.full_test, set[tuple[int, tuple[int, ...]]](), 0

    def answered(question: types.GroupQuery) -> types.GroupAnswer:
        asked.add((question.layer, tuple(map(int, question.channels))))
        return types.GroupAnswer(node=question.node, estimate=flips(question))

    searches = [*plan.searches(candidates, types.Regime.BASELINE_POSITIVE).values()]
    while pending := [(search, question) for search in searches for question in search.ask()]:
        for search, question in pending:
            search.tell(answered(question))
    trees = [search.tree for search in searches]
    forwards += sum(tree.example_forwards for tree in trees)
    strata = audit_strata(plan, trees, candidates)
    population = sum(map(len, strata.values()))
    if candidates.total <= config.exhaustive_up_to:
        asked |= {(unit.layer, (unit.channel,)) for units in strata.values() for unit in units}
        forwards += population * full
    elif (settings := audit_settings(config, plan, candidates.total, population, len(asked))).budget:
        audit = Audit(strata, settings=settings, rng=np.random.default_rng(config.seed))
        while questions := audit.ask():
            for question in questions:
                forwards += question.examples
                audit.tell(answered(question))
    asked |= {(layer.layer, tuple(layer.channels.tolist())) for layer in candidates.layers}
    forwards += len(candidates.layers) * full
    return Rehearsed(len(asked), forwards)


def nothing(question: types.GroupQuery) -> types.FlipEstimate:
    """No group flips anything."""
    return estimate_of(np.zeros(question.examples, bool), len(question.associated))


def as_predicted(candidates: types.Candidates, plan: SearchPlan) -> Flips:
    """A group flips the examples that first order, which was asked, says one of its units flips alone."""
    known = {
        layer.layer: (layer.channels, prediction.flips)
        for layer, prediction in zip(candidates.layers, plan.predictions, strict=True)
    }

    def flips(question: types.GroupQuery) -> types.FlipEstimate:
        channels, sides = known[question.layer]
        assert sides is not None
        places = np.searchsorted(channels, question.channels)
        parts = zip(sides, (question.associated, question.unrelated), strict=True)
        flipped = [side[part.start : part.stop][:, places].any(axis=1) for side, part in parts]
        return estimate_of(np.concatenate(flipped), len(question.associated))

    return flips


NOTHING = Rehearsed()


def price(
    config: RunConfig, candidates: types.Candidates, plan: SearchPlan, seconds_a_forward: float
) -> events.Price:
    """What the searches of one basis and regime cost, with their audit, brute force and whole layers.

    Where first order was asked also as it predicts; what that took is not in it, and is spent before.
    """
    least, most = least_and_most(config, candidates, plan)
    likely = NOTHING
    if plan.predictions:
        likely = rehearsed(config, candidates, plan, as_predicted(candidates, plan))
        likely = likely.picked(max, least).picked(min, most)
    return price_of(least, most, seconds_a_forward, likely)


def price_of(
    least: Rehearsed, most: Rehearsed, seconds_a_forward: float, likely: Rehearsed = NOTHING
) -> events.Price:
    """The price between two bounds; seconds are NaN where no pace is known."""
    return events.Price(
        evaluations=most.groups,
        example_forwards=most.example_forwards,
        seconds=most.example_forwards * seconds_a_forward,
        least_evaluations=least.groups,
        least_seconds=least.example_forwards * seconds_a_forward,
        likely_evaluations=likely.groups,
        likely_seconds=likely.example_forwards * seconds_a_forward if likely.groups else 0.0,
    )


def least_and_most(
    config: RunConfig, candidates: types.Candidates, plan: SearchPlan
) -> tuple[Rehearsed, Rehearsed]:
    """The cost where nothing flips, by the searches themselves, and a bound of it whatever flips; at most the budget.

    Units that are tested alone are a group each. A tree over N units has 2N − 1 nodes; its forwards have a limit. Where
    all units are tested alone in the end, a group that flips may be spared: the least is these and the whole layers.
    """
    units, whole, settings = candidates.total, len(candidates.layers), plan.settings
    grouped = plan.kind is SearchKind.CHA and settings.largest != 1
    groups = tests = units
    if grouped or (plan.kind is SearchKind.GUIDED and plan.sweeps):
        groups = 2 * units - 1
        tests = groups if settings.overhead is None else math.ceil((1 + settings.overhead) * units)
        # When a search has ended, these are tested singly.
        tests += units if units <= config.exhaustive_up_to else audit_tests(config, units, units)
    least = rehearsed(config, candidates, plan, nothing)
    if units <= config.exhaustive_up_to:
        alone = units + sum(len(layer.channels) > 1 for layer in candidates.layers)
        least = replace(least, groups=min(alone, least.groups))
    most = Rehearsed(groups + whole, (tests + whole) * settings.full_test)
    if config.budget is None:
        return least, most
    cap = Rehearsed(config.budget, config.budget * settings.full_test)
    return least.picked(min, cap), most.picked(min, cap)


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
    def of(cls, examples: int, tokens: int, units: int) -> "PredictionPrice":
        """For so many examples with so many generated tokens in reach, all together, and units of the basis."""
        for competitors, most in ((thresholds.COMPETITORS, AFFORDABLE), (1, STILL_ASKED)):
            forwards = examples + 2 * competitors * tokens
            share = forwards / (units * examples) if units * examples else math.inf
            if share <= most:
                return cls(competitors=competitors, example_forwards=forwards, share=share)
        return cls(competitors=0, example_forwards=0, share=share)


def more_wanted(config: RunConfig, rarest: float, seen: int) -> int:
    """Examples to be observed beyond those seen, so many of which have the rarest outcome, to fill two slices."""
    short = math.ceil(1.2 * seen * (3 * config.slice_size / (1 - config.test_share) / max(1, rarest) - 1))
    return max(0, min(short, (OBSERVED_AT_MOST - 1) * config.records))
