"""How well first order says which held-out records flip, with nothing fitted, what it is set beside, what it misses.

In 1→0 it is scored against the flips. In 0→1 it says that the answer changes, and is scored against that; that the
changed answer is right is a second prediction, scored against the flips and never mixed with the first.

Beside it stand, on the same records, one threshold on the lead and one on the drop, both fitted on train; and how
far it can be relied on: the rank correlation of drop and measured drop, and what happens where the drop is below,
near and above the lead. A drop integrated along the way costs an ablation and is a check of linearity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.stats import spearmanr

from mecharule_ops.engine.settling import until_settled
from mecharule_ops.findings.accounts import Account, Band, DropError, PredictionKind, PredictionScore
from mecharule_ops.mechanism.columns import extreme
from mecharule_ops.mechanism.effects import Effect
from mecharule_ops.mechanism.first_order import Effects, effects_of_kinds, predicted_labels
from mecharule_ops.mechanism.integrated import integrated_drop
from mecharule_ops.mechanism.measured import Measured, measured_drop
from mecharule_ops.rules.interval import mcc_interval
from mecharule_ops.rules.matthews import best_cut
from mecharule_ops.run.live_run import Run
from mecharule_ops.subsets import some_places
from mecharule_ops.types import BehaviourRecord, Neuron, Regime

INTEGRATED_ON = 400
"""Held-out records at most on which a drop is integrated or measured, since each costs as much as an ablation."""
NEAR = 2.0
"""A drop is near the lead from the lead's half to its double."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FirstOrder:
    """What first order says of units of one basis on the records of D_b, and what is measured beside it.

    Drops are measured and integrated on held-out records, which chose nothing.
    """

    run: Run
    regime: Regime
    records: list[BehaviourRecord]
    """D_b, each success up to the token that settles it."""
    train: Int[np.ndarray, " train"]
    """Places of those that thresholds are fitted on; in 0→1 of those whose drop was measured."""
    test: Int[np.ndarray, " test"]
    """Places of the held-out ones."""
    drops: Effects
    """First-order drops of every unit, the final scale held, with the leads."""
    pushes: Effects
    """Direct pushes."""
    some: Int[np.ndarray, " some"]
    """Places of those on which drops are integrated: a draw, `INTEGRATED_ON` at most."""
    asked: Int[np.ndarray, " asked"]
    """Places of those on which they are measured: these; in 0→1, where flips do not tell what changes, all held out."""
    measured: Measured
    """On `asked`; in 0→1, where flips do not tell which answers change, then on `train`."""
    integrated: Bool[np.ndarray, "unit some"]
    """Where the integrated drop exceeds the lead."""

    @classmethod
    def of(
        cls,
        run: Run,
        units: list[Neuron],
        regime: Regime,
        records: list[BehaviourRecord],
        train: Int[np.ndarray, " train"],
        test: Int[np.ndarray, " test"],
    ) -> FirstOrder:
        """All of it for every unit.

        Cost: a clean pass with a backward a generated token and competitor; two clean passes over the records asked;
        for each unit an ablation of them and, worth two each, two forwards with their derivatives, all from its layer
        up.
        """
        records = until_settled(run.subject, run.task, records)
        table, kinds = run.replacement(run.intervention(units[0].basis)), (Effect.STEADY, Effect.DIRECT)
        found = effects_of_kinds(run.subject, records, table, units, kinds, should_stop=run.should_stop)
        drawn = some_places(records, test, INTEGRATED_ON, of="integrated", seed=run.config.seed)
        asked, also, groups = drawn, train[:0], [[unit] for unit in units]
        if regime is Regime.BASELINE_NEGATIVE:
            asked = test
            train = also = some_places(records, train, INTEGRATED_ON, of="fitted", seed=run.config.seed)
        every = [records[at] for at in np.concatenate([asked, also])]
        measured = measured_drop(run.subject, every, table, groups)
        along = integrated_drop(run.subject, [records[at] for at in drawn], table, groups, points=2)
        return cls(
            run=run,
            regime=regime,
            records=records,
            train=train,
            test=test,
            drops=found[Effect.STEADY],
            pushes=found[Effect.DIRECT],
            some=drawn,
            asked=asked,
            measured=measured,
            integrated=along.flips,
        )

    def happened(self, unit: Neuron, flips: Bool[np.ndarray, " record"]) -> Bool[np.ndarray, " record"]:
        """Where the answer changed: in 1→0 where it flipped."""
        if self.regime is Regime.BASELINE_POSITIVE:
            return flips
        changed = flips.copy()
        changed[np.concatenate([self.asked, self.train])] = self.measured.changed[self._place(unit)]
        return changed

    def scored(self, account: Account, flips: Bool[np.ndarray, " record"]) -> Account:
        """The account with the scores of its unit on the held-out records; of train only the thresholds know.

        Cost: no forward.
        """
        unit, test, some = account.neuron, self.test, self.some
        if not len(test):
            return account
        place = self._place(unit)
        integrated = np.zeros(len(flips), bool)
        integrated[some] = self.integrated[place]
        first, happened = self.drops.flips[:, place], self.happened(unit, flips)
        every = self.drops.effect[..., place].reshape(len(flips), -1)
        least, most = extreme(np.fmin, self.drops.leads.lead[:, :, 0]), extreme(np.fmax, every)
        becomes_right: PredictionScore | None = None
        beside_right: tuple[PredictionScore, ...] = ()
        if self.regime is Regime.BASELINE_NEGATIVE:
            # Whether the answer that first order predicts is right.
            position, token = self.drops.changes(unit)
            chosen, said = [self.records[at] for at in test], np.zeros(len(flips), bool)
            labels = predicted_labels(self.run.subject, self.run.task, chosen, position[test], token[test])
            said[test] = self.regime.flipped(labels)
            becomes_right = _score(PredictionKind.STEADY, said, flips, test)
            beside_right = cut_scores(least, most, flips, self.train, test)
        return replace(
            account,
            predictions=(
                _score(PredictionKind.STEADY, first, happened, test),
                _score(PredictionKind.DIRECT, self.pushes.flips[:, place], happened, test),
                _score(PredictionKind.INTEGRATED, integrated, happened, some),
                *cut_scores(least, most, happened, self.train, test),
            ),
            becomes_right=becomes_right,
            beside_right=beside_right,
            bands=bands(*self.drops.closest(unit), first, happened, test),
            drop_error=_drop_error(self.drops, self.asked, self.measured, place),
        )

    def _place(self, unit: Neuron) -> int:
        return self.drops.units.index(unit)


def _score(
    kind: PredictionKind,
    said: Bool[np.ndarray, " record"],
    happened: Bool[np.ndarray, " record"],
    where: Int[np.ndarray, " test"],
    threshold: float | None = None,
) -> PredictionScore:
    return PredictionScore(
        kind=kind,
        predicted=int(said[where].sum()),
        held_out=mcc_interval(said[where], happened[where]),
        records=len(where),
        happened=int(happened[where].sum()),
        threshold=threshold,
    )


def cut_scores(
    lead: Float[np.ndarray, " record"],
    drop: Float[np.ndarray, " record"],
    target: Bool[np.ndarray, " record"],
    train: Int[np.ndarray, " train"],
    test: Int[np.ndarray, " test"],
) -> tuple[PredictionScore, ...]:
    """Lead only and drop only: each one threshold, no other better on train, scored on the held-out records."""
    found = []
    for kind, values, sign in ((PredictionKind.LEAD_ONLY, -lead, -1), (PredictionKind.DROP_ONLY, drop, 1)):
        cut = best_cut(values[train], target[train])
        found.append(_score(kind, values > cut, target, test, sign * cut))
    return tuple(found)


def bands(
    lead: Float[np.ndarray, " record"],
    drop: Float[np.ndarray, " record"],
    said: Bool[np.ndarray, " record"],
    happened: Bool[np.ndarray, " record"],
    test: Int[np.ndarray, " test"],
) -> tuple[Band, ...]:
    """What happened on held-out records with a token in reach, by how far the drop lies from the lead."""
    there = test[np.isfinite(lead[test])]
    below, above = drop[there] < lead[there] / NEAR, drop[there] > lead[there] * NEAR
    parts = {
        f"drop < lead / {NEAR:g}": there[below],
        "between": there[~below & ~above],
        f"drop > {NEAR:g} × lead": there[above & ~below],
    }
    return tuple(
        Band(
            name=name,
            records=len(part),
            happened=int(happened[part].sum()),
            held_out=mcc_interval(said[part], happened[part]),
        )
        for name, part in parts.items()
    )


def _drop_error(
    drops: Effects, asked: Int[np.ndarray, " asked"], measured: Measured, place: int
) -> DropError | None:
    """First-order against measured drop, at each record's token where least is left, over the token that is best then.

    The runner-up may not move at all where a third token wins. Where that token is none of the clean run's
    competitors, first order's drop is that over the competitor which it brings nearest.
    """
    left = np.nan_to_num(measured.left[place][: len(asked)], nan=np.inf)
    there = np.isfinite(left).any(1)
    if not there.any():
        return None
    rows, tokens = np.flatnonzero(there), left[there].argmin(1)
    real = measured.fall[place][rows, tokens]
    drop, lead = drops.effect[asked[rows], tokens, :, place], drops.leads.lead[asked[rows], tokens]
    same = drops.leads.token[asked[rows], tokens] == measured.best[place][rows, tokens][:, None]
    beyond = np.where(same, np.inf, np.nan_to_num(drop - lead, nan=-np.inf))
    first = drop[np.arange(len(rows)), beyond.argmax(1)]
    varied = min(np.ptp(real), np.ptp(first)) > 0
    return DropError(
        records=len(rows),
        measured=float(np.median(real)),
        first_order=float(np.median(first)),
        error=float(np.median(np.abs(real - first))),
        spearman=float(spearmanr(real, first).statistic) if varied else None,
    )
