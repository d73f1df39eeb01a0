"""What first order predicts of every unit on the compact slices, before any is ablated: it orders a guided search.

    predicted rate of j on a slice = share of its examples on which first order says that do(j) flips the outcome

In 1→0 a changed answer counts as a flip. In 0→1 most changed answers stay wrong: there the competitor that wins is
put in the place of the first changed token and the task is asked (see `mechanism.first_order`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float32

from mecharule_ops.engine.settling import until_settled
from mecharule_ops.mechanism.first_order import predicted_labels, prediction
from mecharule_ops.run.journal import Journal, Stage
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.planning import PredictionPrice, SearchPlan, asks_first_order, plan_of
from mecharule_ops.slices import CompactSlices
from mecharule_ops.store import keys
from mecharule_ops.types import BehaviourRecord, Candidates, Regime


def search_plan(run: Run, journal: Journal, candidates: Candidates, slices: CompactSlices) -> SearchPlan:
    """How the run's config searches these candidates; a guided search asks first order first, where it pays.

    What it says of every unit is put into the run. Cost: that of `PredictionPrice`, told before it is spent.
    """
    config, basis, regime = run.config, candidates.basis, slices.regime
    price, name = first_order_price(run, slices, candidates.total), keys.predicted_rates(basis, regime)
    if price.competitors:
        where = f"first order {basis.value} {regime.arrow}"
        with journal.stage(where, len(slices.positions), "examples") as stage:
            stage.reused = run.store.has(name)
            if not stage.reused:
                journal.notice(
                    f"first order is asked first: {price.example_forwards:,} example-forwards, {price.share:.1%} of "
                    "testing every unit alone"
                )
                flips, rates = _predicted(run, candidates, slices, price.competitors, stage)
                run.store.put(keys.predicted_flips(basis, regime), np.packbits(flips, axis=1))
                run.store.put(name, rates)
            promising = sum(map(config.reaches, run.store.get(name)[:2].max(0).flat))
            stage.summary = f"{promising:,} of {candidates.total:,} units are predicted to reach τ"
    elif asks_first_order(config):
        groups = f"they are searched in groups of {config.largest} at most"
        journal.notice(
            f"first order is not asked: it would cost {price.share:.0%} of testing every one of "
            f"{candidates.total:,} units alone; {groups if config.largest else 'so each is tested alone'}"
        )
    plan = plan_of(config, run.search_settings(regime), run.predictions(basis, regime))
    return replace(plan, prediction_forwards=price.example_forwards)


def first_order_price(run: Run, slices: CompactSlices, units: int) -> PredictionPrice:
    """What asking first order about so many units takes; nothing where the run's search does not ask it."""
    records = [run.records[position] for position in slices.positions]
    price = PredictionPrice.of(len(records), tokens_in_reach(records), units)
    return price if asks_first_order(run.config) else replace(price, competitors=0, example_forwards=0)


def _predicted(
    run: Run, candidates: Candidates, slices: CompactSlices, competitors: int, stage: Stage
) -> tuple[Bool[np.ndarray, "example unit"], Float32[np.ndarray, "three layer channel"]]:
    """Where each unit of the basis is predicted to flip; its rates on D⁺ and D⁻ and the mean excess of the drop."""
    records = until_settled(run.subject, run.task, [run.records[position] for position in slices.positions])
    replacement = run.replacement(run.intervention(candidates.basis))
    found = prediction(
        run.subject,
        records,
        replacement,
        competitors=competitors,
        on_progress=stage.progress,
        should_stop=run.should_stop,
    )
    flips, changed = found.change >= 0, found.change
    if slices.regime is Regime.BASELINE_NEGATIVE:
        # A changed answer may be wrong again: each distinct change of a record is judged once.
        for row, record in enumerate(records):
            codes = np.unique(changed[row][flips[row]]).astype(int)
            positions, places = np.divmod(codes, competitors)
            tokens = found.leads.token[row, positions, places]
            labels = predicted_labels(run.subject, run.task, [record] * len(codes), positions, tokens)
            flips[row] = np.isin(changed[row], codes[slices.regime.flipped(labels)])
    excess = np.nan_to_num(found.excess.astype(np.float32), neginf=-1e4)
    sides = np.split(flips, [len(slices.associated)])
    parts = [part.mean(0) if len(part) else np.zeros(flips.shape[1]) for part in sides]
    rates = np.stack([*parts, excess.mean(0)])
    return flips, rates.reshape(3, run.subject.n_layers, -1).astype(np.float32)


def tokens_in_reach(records: Sequence[BehaviourRecord]) -> int:
    """Generated tokens that the decode phase can change: all but the first of each completion."""
    return sum(max(0, len(record.tokens) - 1) for record in records)
