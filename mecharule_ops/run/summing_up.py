"""From searches, rules and controls to findings: pure counting, no model and no choices."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from importlib.resources import files

import numpy as np

from mecharule_ops.cha.exhaustive import singleton_estimates
from mecharule_ops.cha.prediction import ranked
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.codec import decode
from mecharule_ops.engine.rounding import Rounding
from mecharule_ops.events import StageFinished
from mecharule_ops.findings.counts import (
    CloseCompletions,
    ExhaustiveRun,
    Numbers,
    PredictedUnit,
    SearchCost,
    TreeNode,
    UnitStrength,
)
from mecharule_ops.findings.measures import dominance, recall_rows
from mecharule_ops.findings.records import Findings, NamedChoice, PredicateCounts, SearchOutcome, StageCost
from mecharule_ops.findings.shown import shown_over
from mecharule_ops.numbers import plural
from mecharule_ops.run.controlling import decided_over
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.localise import Localised
from mecharule_ops.store import keys
from mecharule_ops.types import Neuron, SearchStatus, Share

PACKAGES = ("torch", "transformers", "transformer-lens", "numpy", "scipy", "xgboost", "shap")


def search_outcome(run: Run, found: Localised) -> SearchOutcome:
    """One basis and regime of the report, before stage 4 and the controls."""
    slices, ended = found.slices, {tree.status for tree in found.trees}
    truth = _singles(found.exhaustive, found)
    tested = _singles(found.trees, found)
    return SearchOutcome(
        intervention=run.intervention(found.basis),
        regime=found.regime,
        condition=slices.condition.value,
        splitter=slices.rule,
        splitter_train_mcc=run.splitter.train_mcc,
        associated_n=len(slices.associated),
        unrelated_n=len(slices.unrelated),
        basis_units=run.subject.n_layers * run.subject.width(found.basis),
        slice_status=slices.sentence,
        status=tuple(status.value for status in SearchStatus if status in ended),
        agonists=found.agonists,
        cost=replace(_cost(found.trees, found), prediction_forwards=found.plan.prediction_forwards),
        singletons_tested=len(tested),
        strongest=max(truth or tested, key=lambda unit: (unit.estimate.strength, unit.neuron), default=None),
        whole_layers=found.whole_layers,
        tree=tuple(TreeNode.of(node) for tree in found.trees for node in tree.nodes),
        dominance=dominance(found.trees),
        exhaustive=ExhaustiveRun(units=truth, cost=_cost(found.exhaustive, found)) if truth else None,
        recall=recall_rows(truth, [a.neuron for a in found.agonists], run.config.tau, run.config.slice_alpha)
        if truth
        else (),
        predicted=_predicted(found, tested),
        audit=found.audit,
        associated_of=slices.associated_size,
        unrelated_of=slices.unrelated_size,
        at_random=slices.at_random,
        split_note=run.splitter.note,
        held_out=found.held_out,
    )


def _predicted(found: Localised, tested: Sequence[UnitStrength]) -> tuple[PredictedUnit, ...]:
    """Prediction and strength of each unit tested alone, those of the audit among them; empty without predictions."""
    predictions = found.plan.predictions
    if not predictions:
        return ()
    units = [
        Neuron(found.basis, layer.layer, channel)
        for layer in found.candidates.layers
        for channel in layer.channels.tolist()
    ]
    strength = np.concatenate([layer.strength for layer in predictions])
    order = ranked(predictions).tolist()
    said = {units[place]: (rank, float(strength[place])) for rank, place in enumerate(order, 1)}
    measured = {unit.neuron: unit.estimate.strength for unit in tested}
    measured |= {agonist.neuron: agonist.estimate.strength for agonist in found.agonists}
    rows = (
        PredictedUnit(neuron=unit, rank=said[unit][0], predicted=said[unit][1], measured=strength)
        for unit, strength in measured.items()
    )
    return tuple(sorted(rows, key=lambda row: row.rank))


def _singles(trees: Sequence[ChaTree], found: Localised) -> tuple[UnitStrength, ...]:
    """Every unit that was tested alone."""
    return tuple(
        UnitStrength(neuron=neuron, estimate=estimate)
        for tree in trees
        for neuron, estimate in singleton_estimates(tree, found.basis).items()
    )


def _cost(trees: Sequence[ChaTree], found: Localised) -> SearchCost:
    return SearchCost(
        queries=sum(tree.queries for tree in trees),
        example_forwards=sum(tree.example_forwards for tree in trees),
        candidates=found.candidates.total,
        slice_examples=len(found.examples),
    )


def run_findings(run: Run, searches: tuple[SearchOutcome, ...], stages: Sequence[StageFinished]) -> Findings:
    """The whole report's data."""
    vocabulary, config = run.vocabulary, run.config
    return Findings(
        run=run.id,
        model=config.model,
        model_hash=run.subject.model_hash,
        tokenizer_hash=run.subject.tokenizer_hash,
        task=run.task.name,
        task_settings=run.task.describe(),
        task_score=Share(count=int(run.labels.sum()), n=len(run.records)),
        tau=config.tau,
        epsilon=config.epsilon,
        alpha=config.alpha,
        slice_alpha=config.slice_alpha,
        alpha_policy=config.spending.value,
        seed=config.seed,
        versions=versions(),
        proposer=config.proposer,
        predicates=PredicateCounts(
            proposed=vocabulary["proposed"], refused=len(vocabulary["refusals"]), kept=len(vocabulary["kept"])
        ),
        searches=tuple(shown_over(decided_over(searches, config.alpha, config.epsilon), config.alpha)),
        choices=choices_for(run.task.name),
        words=run.task.words,
        notes=run.task.notes,
        close_completions=_close_completions(run),
        numbers=_numbers(run),
        clusters=run.task.cluster_column,
        stages=tuple(StageCost(stage=stage.stage, seconds=stage.seconds) for stage in stages),
    )


def _close_completions(run: Run) -> CloseCompletions | None:
    """How many records have a lead that rounding may turn; None where rounding was not measured."""
    measured = run.store.find(keys.ROUNDING)
    if measured is None:
        return None
    rounding = decode(Rounding, measured)
    margins = np.array([record.margin for record in run.records])
    return CloseCompletions(
        lead=rounding.lead,
        disagreement=rounding.disagreement,
        compared=rounding.compared,
        close=Share(count=int((margins < rounding.lead).sum()), n=len(margins)),
    )


def _numbers(run: Run) -> Numbers | None:
    """What the run computed with, and how many outcomes were decided again; None for float32 on the processor."""
    placed = run.placed
    if placed is None or (placed["dtype"], placed["device"]) == ("float32", "cpu"):
        return None
    names = [keys.decided(run.intervention(basis)) for basis in run.config.bases]
    counts = [run.store.get(name) for name in names if run.store.has(name)]
    again = Share(count=sum(count["again"] for count in counts), n=sum(count["outcomes"] for count in counts))
    return Numbers(dtype=placed["dtype"], device=placed["device"], again=again if counts else None)


def choices_for(task: str) -> tuple[NamedChoice, ...]:
    """Where the paper's text leaves a choice, or its published code differs from it: what a run of this task does.

    The first ones weigh most on the numbers.
    """
    rows = tomllib.loads(files("mecharule_ops.findings").joinpath("choices.toml").read_text(encoding="utf-8"))
    return tuple(
        NamedChoice(setting=row["setting"], sentence=row["sentence"])
        for row in rows["choices"]
        if row.get("task", task) == task
    )


def versions() -> dict[str, str]:
    """Versions of the packages that decide a number."""
    return {package: version(package) for package in PACKAGES}


def run_status(findings: Findings) -> str:
    """How the run ended, in a few words for a list of runs."""
    shown = len(findings.shown())
    partial = {SearchStatus.BUDGET_SPENT.value, SearchStatus.STOPPED.value}
    ended = {status for search in findings.searches for status in search.status}
    found = f"{plural(shown, 'unit')} shown" if shown else "no unit is shown"
    if all(search.nothing_searched for search in findings.searches):
        return "finished: nothing was searched"
    return f"partial: {found}" if ended & partial else f"finished: {found}"
