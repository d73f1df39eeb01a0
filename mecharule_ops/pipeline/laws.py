"""How well the law says which held-out records flip, with nothing fitted, and what first order misses.

In 1→0 the law is scored against the flips. In 0→1 it says that the answer changes, and is scored against that; that
the changed answer is right is a second prediction, scored against the flips and never mixed with the first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.findings.accounts import DropError, Law, LawScore
from mecharule_ops.mechanism.effects import Effect
from mecharule_ops.mechanism.integrated import integrated_drop
from mecharule_ops.mechanism.law import Effects, effects_of_kinds
from mecharule_ops.mechanism.measured import Measured, measured_drop
from mecharule_ops.mechanism.outcomes import predicted_labels
from mecharule_ops.pipeline.run import Run
from mecharule_ops.rules.interval import mcc_interval
from mecharule_ops.subsets import some_places
from mecharule_ops.types import BehaviourRecord, Neuron, Regime

INTEGRATED_ON = 400
"""Held-out records at most on which a drop is integrated or measured, since each costs as much as an ablation."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CleanEffects:
    """Leads, first-order drops (the final scale held) and direct pushes of units of one basis on records of D_b."""

    drops: Effects
    pushes: Effects

    @classmethod
    def of(cls, run: Run, units: list[Neuron], records: list[BehaviourRecord]) -> CleanEffects:
        """Cost: a clean pass with a backward a generated token and competitor."""
        table, kinds = run.replacement(run.intervention(units[0].basis)), (Effect.STEADY, Effect.DIRECT)
        found = effects_of_kinds(run.subject, records, table, units, kinds, should_stop=run.should_stop)
        return cls(drops=found[Effect.STEADY], pushes=found[Effect.DIRECT])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LawScores:
    """What an account says of the laws."""

    laws: tuple[LawScore, ...]
    becomes_right: LawScore | None
    drop_error: DropError | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldOut:
    """Measured and integrated drops of units of one basis on held-out records, which chose nothing."""

    units: list[Neuron]
    regime: Regime
    records: list[BehaviourRecord]
    """D_b."""
    test: Int[np.ndarray, " test"]
    """Places of the held-out ones."""
    some: Int[np.ndarray, " some"]
    """Places of those on which drops are integrated: a draw, `INTEGRATED_ON` at most."""
    asked: Int[np.ndarray, " asked"]
    """Places of those on which they are measured: the same; in 0→1, where flips do not tell what changes, all."""
    measured: Measured
    integrated: Bool[np.ndarray, "unit some"]
    """Where the integrated drop exceeds the lead."""

    @classmethod
    def of(
        cls,
        run: Run,
        units: list[Neuron],
        regime: Regime,
        records: list[BehaviourRecord],
        test: Int[np.ndarray, " test"],
    ) -> HeldOut:
        """Both drops of every unit.

        Cost: two clean passes over the records asked; for each unit an ablation of them and, worth two each, two
        forwards with their derivatives, all from its layer up.
        """
        table, groups = run.replacement(run.intervention(units[0].basis)), [[unit] for unit in units]
        drawn = some_places(records, test, INTEGRATED_ON, of="integrated", seed=run.config.seed)
        asked = drawn if regime is Regime.BASELINE_POSITIVE else test
        measured = measured_drop(run.subject, [records[at] for at in asked], table, groups, competitors=1)
        along = integrated_drop(run.subject, [records[at] for at in drawn], table, groups, points=2)
        return cls(
            units=units,
            regime=regime,
            records=records,
            test=test,
            some=drawn,
            asked=asked,
            measured=measured,
            integrated=along.flips,
        )

    def happened(self, unit: int, flips: Bool[np.ndarray, " record"]) -> Bool[np.ndarray, " record"]:
        """Where the answer changed: in 1→0 where it flipped."""
        if self.regime is Regime.BASELINE_POSITIVE:
            return flips
        changed = flips.copy()
        changed[self.asked] = self.measured.changed[unit]
        return changed


def law_scores(
    run: Run, unit: Neuron, clean: CleanEffects, held_out: HeldOut, flips: Bool[np.ndarray, " record"]
) -> LawScores:
    """The scores of one unit on the held-out records. No forward of its own."""
    test, some = held_out.test, held_out.some
    if not len(test):
        return LawScores(laws=(), becomes_right=None, drop_error=None)
    place, which = clean.drops.units.index(unit), held_out.units.index(unit)
    integrated = np.zeros(len(flips), bool)
    integrated[some] = held_out.integrated[which]
    says = {
        Law.STEADY: (clean.drops.flips[:, place], test),
        Law.DIRECT: (clean.pushes.flips[:, place], test),
        Law.INTEGRATED: (integrated, some),
    }
    happened = held_out.happened(which, flips)
    return LawScores(
        laws=tuple(_score(law, said, happened, where) for law, (said, where) in says.items()),
        becomes_right=_becomes_right(run, unit, clean.drops, held_out, flips),
        drop_error=_drop_error(clean.drops, place, held_out.asked, held_out.measured, which),
    )


def _score(
    law: Law,
    said: Bool[np.ndarray, " record"],
    happened: Bool[np.ndarray, " record"],
    where: Int[np.ndarray, " test"],
) -> LawScore:
    return LawScore(
        law=law,
        predicted=int(said[where].sum()),
        held_out=mcc_interval(said[where], happened[where]),
        records=len(where),
    )


def _becomes_right(
    run: Run,
    unit: Neuron,
    drops: Effects,
    held_out: HeldOut,
    flips: Bool[np.ndarray, " record"],
) -> LawScore | None:
    """In 0→1 whether the answer that the law predicts is right; None in 1→0. No forward of its own."""
    regime, test = held_out.regime, held_out.test
    if regime is Regime.BASELINE_POSITIVE:
        return None
    chosen = [held_out.records[place] for place in test]
    position, token = drops.changes(unit)
    said = np.zeros(len(flips), bool)
    said[test] = regime.flipped(predicted_labels(run.subject, run.task, chosen, position[test], token[test]))
    return _score(Law.STEADY, said, flips, test)


def _drop_error(
    drops: Effects, place: int, asked: Int[np.ndarray, " asked"], measured: Measured, which: int
) -> DropError | None:
    """First-order against measured drop, at each record's token where least is left, over the token that is best then.

    The runner-up may not move at all where a third token wins. Where that token is none of the clean run's
    competitors, first order's drop is that over the competitor which it brings nearest.
    """
    left = np.nan_to_num(measured.left[which], nan=np.inf)
    there = np.isfinite(left).any(1)
    if not there.any():
        return None
    rows, tokens = np.flatnonzero(there), left[there].argmin(1)
    real = measured.fall[which][rows, tokens]
    drop, lead = drops.effect[asked[rows], tokens, :, place], drops.leads.lead[asked[rows], tokens]
    same = drops.leads.token[asked[rows], tokens] == measured.best[which][rows, tokens][:, None]
    beyond = np.where(same, np.inf, np.nan_to_num(drop - lead, nan=-np.inf))
    first = drop[np.arange(len(rows)), beyond.argmax(1)]
    return DropError(
        records=len(rows),
        measured=float(np.median(real)),
        first_order=float(np.median(first)),
        error=float(np.median(np.abs(real - first))),
    )
