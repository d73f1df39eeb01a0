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
from mecharule_ops.mechanism.law import Effects, effects
from mecharule_ops.mechanism.measured import Measured, measured_drop
from mecharule_ops.mechanism.outcomes import predicted_labels
from mecharule_ops.pipeline.run import Run
from mecharule_ops.rules.interval import mcc_interval
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
        """Cost: two clean passes, one of them with a backward a generated token and competitor."""
        table = run.replacement(run.intervention(units[0].basis))
        drops, pushes = (
            effects(run.subject, records, table, units, effect=effect, should_stop=run.should_stop)
            for effect in (Effect.STEADY, Effect.DIRECT)
        )
        return cls(drops=drops, pushes=pushes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LawScores:
    """What an account says of the laws."""

    laws: tuple[LawScore, ...]
    becomes_right: LawScore | None
    drop_error: DropError | None


def law_scores(
    run: Run,
    unit: Neuron,
    regime: Regime,
    clean: CleanEffects,
    records: list[BehaviourRecord],
    flips: Bool[np.ndarray, " record"],
    test: Int[np.ndarray, " test"],
) -> LawScores:
    """The scores of one unit on the records `test`, which chose nothing.

    Cost: an ablation of the unit and an integrated drop on some of them; in 0→1 the ablation on all.
    """
    some = test[:INTEGRATED_ON]
    asked = some if regime is Regime.BASELINE_POSITIVE else test
    if not len(asked):
        return LawScores(laws=(), becomes_right=None, drop_error=None)
    table = run.replacement(run.intervention(unit.basis))
    chosen = [records[place] for place in asked]
    measured = measured_drop(run.subject, chosen, table, [(unit,)], competitors=1)
    happened = flips.copy()
    if regime is Regime.BASELINE_NEGATIVE:
        happened[asked] = measured.changed[0]
    place = clean.drops.units.index(unit)
    integrated = np.zeros(len(flips), bool)
    integrated[some] = integrated_drop(
        run.subject, [records[at] for at in some], table, [unit], points=2
    ).flips
    says = {
        Law.STEADY: (clean.drops.flips[:, place], test),
        Law.DIRECT: (clean.pushes.flips[:, place], test),
        Law.INTEGRATED: (integrated, some),
    }
    laws = tuple(_score(run, law, said, happened, where) for law, (said, where) in says.items())
    return LawScores(
        laws=laws,
        becomes_right=_becomes_right(run, unit, regime, clean.drops, records, flips, test),
        drop_error=_drop_error(clean.drops, place, some, measured),
    )


def _score(
    run: Run,
    law: Law,
    said: Bool[np.ndarray, " record"],
    happened: Bool[np.ndarray, " record"],
    where: Int[np.ndarray, " test"],
) -> LawScore:
    generator = np.random.default_rng([run.config.seed, list(Law).index(law)])
    return LawScore(
        law=law,
        predicted=int(said[where].sum()),
        held_out=mcc_interval(said[where], happened[where], generator),
        records=len(where),
    )


def _becomes_right(
    run: Run,
    unit: Neuron,
    regime: Regime,
    drops: Effects,
    records: list[BehaviourRecord],
    flips: Bool[np.ndarray, " record"],
    test: Int[np.ndarray, " test"],
) -> LawScore | None:
    """In 0→1 whether the answer that the law predicts is right; None in 1→0. No forward of its own."""
    if regime is Regime.BASELINE_POSITIVE:
        return None
    chosen = [records[place] for place in test]
    position, token = drops.changes(unit)
    said = np.zeros(len(flips), bool)
    said[test] = regime.flipped(predicted_labels(run.subject, run.task, chosen, position[test], token[test]))
    return _score(run, Law.STEADY, said, flips, test)


def _drop_error(
    drops: Effects, place: int, some: Int[np.ndarray, " test"], measured: Measured
) -> DropError | None:
    """First-order against measured drop over the runner-up, at each record's token where least is left."""
    left = np.nan_to_num(measured.left[0][: len(some)], nan=np.inf)
    there = np.isfinite(left).any(1)
    if not there.any():
        return None
    rows, tokens = np.flatnonzero(there), left[there].argmin(1)
    real = measured.drop[0][rows, tokens, 0]
    first = drops.effect[some[rows], tokens, 0, place]
    return DropError(
        records=len(rows),
        measured=float(np.median(real)),
        first_order=float(np.median(first)),
        error=float(np.median(np.abs(real - first))),
    )
