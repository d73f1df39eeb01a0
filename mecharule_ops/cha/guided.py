"""A search of all layers that asks first what predictions promise; no model and no I/O in it.

Theory of operation. Every layer is searched by itself (`GuidedSearch`), with the questions, verdicts and costs of
`group_search`; a `Guide` that all of them share decides when which layer opens what:

    step       what is opened                                      ends when
    ────────   ─────────────────────────────────────────────────   ─────────────────────────────────────────────
    confirm    units alone, most promising first over all          the next unit is predicted below τ and
               layers, in waves of a quarter of those tested       (hits + ½) / (n + 1) ≤ `worth` in the last
                                                                   wave of n units; or no unit is left
    sweep      per layer all that is left, in neighbours of the    every group is pruned, or opened down to its
               order, as many as are predicted to flip `quiet`     units; with `sweeps` off the search ends before
               of a slice together
    part       per layer, units pruned together that first order is silent        no such group is left, or testing
               about, once more in other groups (`Parting`), so that of any       their units singly could pass the
               two one is asked without the other                                 limit on cost
    fallback   a layer on which first order fails (`prediction`): what was    as in `cha`
               not tested alone, by the rules of `ChaSearch`, then parted as above

*When confirming ends.* If units come in order of promise, the chance that the next one is a τ-agonist is at most
that of the last wave. From a Beta(½, ½) prior its posterior mean is (hits + ½) / (n + 1). The first wave is the
shortest that can end it: n = ⌈1 / (2 · worth)⌉ − 1, nine units for `worth` = .05. Waves grow with what was tested, so
that chance does not end a long confirmation. A unit that alone is predicted to flip more than `quiet` is a group of
its own in the sweep, so ending too early costs an agonist nothing but the order.

*How a group opens.* By prediction: the first part are its most promising units with half of the weight, where a
unit weighs what it is predicted to flip plus the mean of its group, for surprises. So one promising unit
among many is asked alone, with the rest as a group again; a group without predictions is halved.

What this cannot promise: units of a group may hide one another, and the larger a group, the more. Where first order is
right about two units that cancel they were asked alone; where it says that they flip nothing, parting finds them,
unless a third unit hides them again. Whatever else is missed is bounded by the audit alone.

*Together* an example counts once, however many units of a group are predicted to flip it alone. A near tie, which half
of all units flip, would otherwise cut every layer into groups of a handful.

A step begins when the last question of the former one is answered, in whatever order answers come. So telling the
same answers again resumes all layers.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from mecharule_ops.cha import group_search, partition, under_test
from mecharule_ops.cha.prediction import LayerPrediction, PredictionRecord, order_over_layers
from mecharule_ops.cha.settings import ChaSettings
from mecharule_ops.nodes import Node, Verdict
from mecharule_ops.thresholds import reaches
from mecharule_ops.types import LayerCandidates, Regime, SearchStatus

SWEEP = 512
"""Units of the largest group of a sweep, in layers of up to 32 times as many."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidedSettings:
    """Settings of a guided search over all layers."""

    cha: ChaSettings = field(default_factory=ChaSettings)
    """How a group is tested, the limit on cost, and how a layer is searched on which first order fails."""
    worth: float = 0.05
    """Chance of a τ-agonist below which no further unit is confirmed: one in twenty tests."""
    sweep: int | None = None
    """Units of the largest group; None for `SWEEP`, or 1/32 of a layer where that is more, and 1/4 where groups part
    others."""
    sweeps: bool = True
    """Whether what was not confirmed is asked in groups; else a layer ends there, and an audit has the rest."""
    quiet: float = 0.1
    """Share of a slice that a group of the sweep is predicted to flip at most: less makes more groups, more opens
    more of them."""

    @property
    def first_wave(self) -> int:
        """The fewest misses after which confirming can end."""
        return max(math.ceil(0.5 / self.worth) - 1, 1)


class GuidedSearch(group_search.GroupSearch):
    """One layer of a guided search: `ask`, `tell`, `done` and `tree` are those of every search."""

    def __init__(
        self,
        candidates: LayerCandidates,
        prediction: LayerPrediction,
        *,
        settings: GuidedSettings,
        regime: Regime,
        guide: "Guide",
    ) -> None:
        super().__init__(candidates, settings=settings.cha, regime=regime)
        self._guided, self._guide, self._prediction = settings, guide, prediction
        self._places = order = prediction.order
        self._order: partition.Channels = tuple(candidates.channels[order].tolist())
        self._rates = np.stack([prediction.associated, prediction.unrelated])[:, order]
        self._rank = np.argsort(order)
        self._confirmed = self._judged = self._parted = 0
        self._parting: partition.Parting | None = None
        self._record = PredictionRecord(units=self._units)
        self._together = settings.sweep or max(SWEEP, self._units // 32)
        self.status = self._obstacle(min(self._together, self._units))

    @property
    def follows(self) -> bool:
        """Whether it goes on and still follows its predictions."""
        return not self.done and self.fallback is None

    @property
    def idle(self) -> bool:
        """Whether it has nothing to ask until the guide opens more."""
        return not self._waiting

    def confirm(self, units: int) -> None:
        """Open the most promising units alone."""
        self._step = "confirm"
        for _ in range(units):
            self._open_stretch(self._confirmed, self._confirmed + 1)
            self._confirmed += 1

    def sweep(self) -> None:
        """Open all that was not confirmed, in groups that are predicted to be quiet."""
        self._step = "sweep"
        for begin, end in self._stretches():
            self._open_stretch(begin, end)
        if self.idle:
            self._settle()

    def leave(self) -> None:
        """End where no further unit is worth confirming; what is left was never asked."""
        self.status = SearchStatus.COMPLETE if self._confirmed == self._units else SearchStatus.LEFT

    @property
    def promises(self) -> bool:
        """Whether a unit is left that is predicted to reach τ and was not asked alone."""
        left = self._rates[:, self._confirmed : self._confirmed + 1]
        return self.follows and any(reaches(rate, self._settings.tau) for rate in left.flat)

    def enter(self) -> int:
        """Enter what was decided since the last call into the record of predictions; the τ-agonists among it."""
        found, self._judged = self._nodes[self._judged :], len(self._nodes)
        return sum(self._enter(node) for node in found if len(node.channels) == 1)

    def go_on(self) -> None:
        """Fall back, part what was pruned together, or end: the first of them that there is a reason for."""
        if not ((self._parting is None and self.fall_back_if_failed()) or self._part()):
            self.status = SearchStatus.COMPLETE

    def fall_back_if_failed(self) -> bool:
        """Where first order fails, open what was not tested alone by the rules of `ChaSearch`; whether it did."""
        reason = self._record.failure()
        if reason is None:
            return False
        self._step, left = "fallback", self._to_search_again()
        units = len(left.channels)
        self.fallback = group_search.Fallback(
            node=self._opened,
            units=units,
            sentence=f"first order fails here: {reason}; the other {units:,} units are searched without predictions",
        )
        for root in partition.roots(left, self._settings.order, self._settings.largest):
            self._open(root.channels, cut=root.cut)
        self._settle()
        return True

    def stop(self, status: SearchStatus) -> None:
        """End the search now; what was decided stays. Other layers of the guide go on."""
        super().stop(status)
        self._guide.proceed()

    def _run_out(self) -> None:
        if self.follows:
            self._guide.proceed()
        elif not self._part():
            self.status = SearchStatus.COMPLETE

    def _parts(self, group: under_test.GroupUnderTest) -> tuple[partition.Channels, partition.Channels]:
        if not self.follows:
            return partition.bisect(group.query.channels, group.cut)
        weights = self._rates[:, self._ranks_of(group.query.channels)].max(axis=0)
        return partition.bisect(group.query.channels, half_of_the_weight(weights))

    def _open_stretch(self, begin: int, end: int) -> None:
        """Ask about neighbours of the order; first of the slice that they are predicted to flip more."""
        self._open(self._order[begin:end], first=self._louder(self._places[begin:end]))

    def _louder(self, places: Int[np.ndarray, " unit"]) -> int:
        associated, unrelated = self._prediction.together(places)[:, -1]
        return int(unrelated > associated)

    def _stretches(self) -> Iterator[tuple[int, int]]:
        """What is left, cut where a group would be too large or is predicted to flip more than `quiet`."""
        begin = self._confirmed
        while begin < self._units:
            together = self._prediction.together(self._places[begin : begin + self._together])
            end = begin + max(1, int((together <= self._guided.quiet + _ROUNDING).all(axis=0).sum()))
            yield begin, end
            begin = end

    def _enter(self, node: Node) -> bool:
        """Enter a unit's test into the record of predictions; whether it is a τ-agonist."""
        kept, rank = node.verdict is Verdict.KEPT, self._rank_of(node.channels[0])
        if reaches(self._rates[:, rank].max(), self._settings.tau):
            self._record.promised += 1
            self._record.delivered += kept
        if hit := self._is_hit(node):
            self._record.ranks.append(rank)
        return hit

    def _part(self) -> bool:
        """Open the next groups that part what was pruned together; whether there were any within the limit on cost."""
        if self._parting is None:
            since = self.fallback.node if self.fallback else 0
            largest = self._settings.largest if self.fallback else self._guided.sweep
            self._parting = partition.Parting(
                {
                    node.channels: node.estimate.strength
                    for node in self._nodes
                    if node.verdict is Verdict.PRUNED and node.id >= since
                },
                of=lambda unit: bool(self.fallback) or not self._rates[:, self._rank_of(unit)].any(),
                quiet=self._guided.quiet,
                largest=largest or max(SWEEP, self._units // 4),
            )
            self._parted = len(self._nodes)
        for node in self._nodes[self._parted :]:
            if self._is_hit(node):
                self._parting.refute(node.channels[0])
        self._parted = len(self._nodes)
        full = self._settings.full_test
        settled = {node.channels[0] for node in self._nodes if len(node.channels) == 1}
        room = self._budget.limit - self._budget.spent - self._budget.reserve
        groups = self._parting.following(settled, max(int(room // full), 0))
        again = full * sum(map(len, groups))
        if again + full * sum(len(group) > 1 for group in groups) > room:
            return False
        self._budget.reserve += again
        self._step = "part"
        for group in groups:
            self._open(group, first=self._louder(self._places[self._ranks_of(group)]))
        return bool(groups)

    def _is_hit(self, node: Node) -> bool:
        """Whether a node is a unit alone that is a τ-agonist."""
        return node.verdict is Verdict.KEPT and node.estimate.reaches(self._settings.tau)

    def _to_search_again(self) -> LayerCandidates:
        """The units not tested alone; those pruned in a group only as far as the limit on cost allows it."""
        alone = {node.channels[0] for node in self._nodes if len(node.channels) == 1}
        ruled_out = (node for node in self._nodes if node.verdict is Verdict.PRUNED)
        pruned = {channel for node in ruled_out for channel in node.channels}
        again = self._settings.full_test * len(pruned)
        if self._budget.spent + self._budget.reserve + again <= self._budget.limit:
            self._budget.reserve += again
        else:
            alone |= pruned
        return self._candidates.without(alone)

    def _rank_of(self, channel: int) -> int:
        return int(self._ranks_of((channel,))[0])

    def _ranks_of(self, channels: partition.Channels) -> Int[np.ndarray, " unit"]:
        return np.asarray(self._rank[np.searchsorted(self._candidates.channels, channels)])


class Guide:
    """What the layers of a guided search share: the order over all of them, and the steps."""

    def __init__(
        self,
        candidates: Sequence[LayerCandidates],
        predictions: Sequence[LayerPrediction],
        *,
        settings: GuidedSettings,
        regime: Regime,
    ) -> None:
        """Its `searches` are one a layer, in the order given; drive them together."""
        self._settings = settings
        self._turns = order_over_layers(predictions) if predictions else np.zeros(0, dtype=np.int64)
        self._taken = self._tested = self._wave = 0
        self._sweeping = self._at_work = False
        self.searches = tuple(
            GuidedSearch(layer, prediction, settings=settings, regime=regime, guide=self)
            for layer, prediction in zip(candidates, predictions, strict=True)
        )
        self.proceed()

    def proceed(self) -> None:
        """Take the next step, if no layer that follows the predictions has a question open."""
        if self._at_work:
            return
        self._at_work = True
        while (following := self._following) and all(search.idle for search in following):
            self._step(following)
        self._at_work = False

    @property
    def _following(self) -> list[GuidedSearch]:
        return [search for search in self.searches if search.follows]

    def _step(self, following: Sequence[GuidedSearch]) -> None:
        hits = sum(search.enter() for search in following)
        if self._sweeping:
            for search in following:
                search.go_on()
            return
        for search in following:
            search.fall_back_if_failed()
        promises = any(search.promises for search in following)
        # From the last wave's record the next unit may well be a τ-agonist.
        worth = not self._wave or (hits + 0.5) / (self._wave + 1) > self._settings.worth
        if (promises or worth) and self._confirm():
            return
        self._sweeping = True
        for search in self._following:
            if self._settings.sweeps:
                search.sweep()
            else:
                search.leave()

    def _confirm(self) -> int:
        """Open the next wave over the layers that follow the predictions; how many units there were."""
        size = max(self._settings.first_wave, self._tested // 4)
        follows = np.array([search.follows for search in self.searches], dtype=bool)
        open_ = np.flatnonzero(follows[self._turns[self._taken :]])[:size] + self._taken
        if not len(open_):
            return 0
        shares = np.bincount(self._turns[open_], minlength=len(self.searches))
        for search, units in zip(self.searches, shares.tolist(), strict=True):
            search.confirm(units)
        self._taken = int(open_[-1]) + 1
        self._wave = len(open_)
        self._tested += self._wave
        return self._wave


def half_of_the_weight(strengths: Float[np.ndarray, " unit"]) -> int:
    """How many of the first units carry half of the weight: what they are predicted to flip and the mean, each.

    At least one and not all; half of them when nothing is predicted.
    """
    sums = np.cumsum(strengths + (strengths.mean() or 1.0))
    return min(int(np.searchsorted(sums, sums[-1] / 2)) + 1, len(strengths) - 1)
