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
from mecharule_ops.mechanism.first_order import FirstOrderPass, predicted_labels, prediction
from mecharule_ops.run.journal import Journal, Stage
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.planning import PredictionPrice, SearchPlan, asks_first_order, plan_of
from mecharule_ops.slices import CompactSlices
from mecharule_ops.store import keys
from mecharule_ops.types import BehaviourRecord, Candidates, Regime


def search_plan(run: Run, journal: Journal, candidates: Candidates, slices: CompactSlices) -> SearchPlan:
    """How the run's config searches these candidates; a guided search asks first order first, where it pays.

    Cost of the predictions: that of `PredictionPrice`, told before it is spent.
    """
    spent = 0
    if asks_first_order(run.config):
        price = first_order_price(run, slices, candidates.total)
        spent = price.example_forwards
        if price.competitors:
            _predict(run, journal, candidates, slices, price)
        else:
            largest = run.config.largest
            instead = (
                f"they are searched in groups of {largest} at most" if largest else "so each is tested alone"
            )
            journal.notice(
                f"first order is not asked: it would cost {price.share:.0%} of testing every one of "
                f"{candidates.total:,} units alone; {instead}"
            )
    predictions = run.predictions(candidates.basis, slices.regime)
    planned = plan_of(run.config, run.search_settings(slices.regime), predictions)
    return replace(planned, prediction_forwards=spent)


def first_order_price(run: Run, slices: CompactSlices, units: int) -> PredictionPrice:
    """What asking first order about so many units takes; no competitor where the run's search does not ask it."""
    records = [run.records[position] for position in slices.positions]
    price = PredictionPrice.of(len(records), tokens_in_reach(records), units)
    return price if asks_first_order(run.config) else replace(price, competitors=0)


def _predict(
    run: Run, journal: Journal, candidates: Candidates, slices: CompactSlices, price: PredictionPrice
) -> None:
    """Put into the run what first order says of every unit, where it does not hold it."""
    name = keys.prediction(candidates.basis, slices.regime)
    where = f"first order {candidates.basis.value} {slices.regime.arrow}"
    with journal.stage(where, len(slices.positions), "examples") as stage:
        stage.reused = run.store.has(name)
        if not stage.reused:
            journal.notice(
                f"first order is asked first: {price.example_forwards:,} example-forwards, {price.share:.1%} of "
                "testing every unit alone"
            )
            flips, rates = _predicted(run, candidates, slices, price.competitors, stage)
            run.store.put(keys.predicted_flips(candidates.basis, slices.regime), np.packbits(flips, axis=1))
            run.store.put(name, rates)
        rates = run.store.get(name)
        promising = sum(map(run.config.reaches, rates[:2].max(0).flat))
        stage.summary = f"{promising:,} of {candidates.total:,} units are predicted to reach τ"


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
    flips, split = predicted_flips(run, found, records, slices.regime), len(slices.associated)
    excess = np.nan_to_num(found.excess.astype(np.float32), neginf=-1e4)
    parts = [part.mean(0) if len(part) else np.zeros(flips.shape[1]) for part in np.split(flips, [split])]
    rates = np.stack([*parts, excess.mean(0)])
    return flips, rates.reshape(3, run.subject.n_layers, -1).astype(np.float32)


def tokens_in_reach(records: Sequence[BehaviourRecord]) -> int:
    """Generated tokens that the decode phase can change: all but the first of each completion."""
    return sum(max(0, len(record.tokens) - 1) for record in records)


def predicted_flips(
    run: Run, found: FirstOrderPass, records: list[BehaviourRecord], regime: Regime
) -> Bool[np.ndarray, "record unit"]:
    """Where a predicted change flips the outcome; each distinct change of a record is judged once."""
    changed = found.change >= 0
    if regime is Regime.BASELINE_POSITIVE:
        return changed
    flips = np.zeros_like(changed)
    competitors = found.leads.token.shape[2]
    for row, record in enumerate(records):
        codes = np.unique(found.change[row][changed[row]]).astype(int)
        positions, places = np.divmod(codes, competitors)
        tokens = found.leads.token[row, positions, places]
        labels = predicted_labels(run.subject, run.task, [record] * len(codes), positions, tokens)
        flips[row] = np.isin(found.change[row], codes[regime.flipped(labels)])
    return flips
