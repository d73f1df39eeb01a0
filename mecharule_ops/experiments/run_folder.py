"""The runs of an experiment on disk: which are finished, and finishing the others; the one module here that runs.

Finished runs are reused, one that was stopped or killed goes on where it was, and a price is asked once, before the
first search. All runs lie in one folder under ids that hash their settings, so experiments share them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from mecharule_ops.errors import UsageError
from mecharule_ops.events import Event, Notice, Price
from mecharule_ops.experiments.requested_runs import ExperimentRequest, PlannedRun, PlannedRunDone, distinct
from mecharule_ops.findings.as_json import from_json
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.mechanism.write_norm import write_norms
from mecharule_ops.numbers import percent
from mecharule_ops.report.document import Document, Section, Table
from mecharule_ops.report.run_blocks import listing
from mecharule_ops.run.analyse import analyse
from mecharule_ops.run.journal import Journal
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.localise import slice_estimates
from mecharule_ops.run.preparation import prepare
from mecharule_ops.run.summing_up import versions
from mecharule_ops.slices import CompactSlices
from mecharule_ops.store import keys
from mecharule_ops.store.keys import FINDINGS
from mecharule_ops.store.run_directory import run_path
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.types import Baseline, Basis, FlipEstimate, Intervention, Neuron, SearchStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What the shell lends: where runs lie, who watches, the time, who accepts a price."""

    folder: Path
    show: Callable[[Event], None]
    clock: Callable[[], float]
    approve: Callable[[Price], bool]
    again: bool = False
    """Whether finished runs are analysed once more, from their stored ablations, after the search has changed."""


def unfinished(runs: Sequence[PlannedRun], folder: Path) -> tuple[PlannedRun, ...]:
    """The runs without findings that this version reads, each once."""
    return tuple(run for run in distinct(runs) if stored_findings(run_path(run.id, folder)) is None)


def stored_findings(path: Path) -> Findings | None:
    """What a finished run found; None when it was never begun, stopped, or written by another version."""
    if not path.exists():
        return None
    with RunStore.open(path, read_only=True) as store:
        if not store.has(FINDINGS):
            return None
        try:
            findings = from_json(store.get(FINDINGS))
        except UsageError:
            return None
    stopped = any(SearchStatus.STOPPED.value in search.status for search in findings.searches)
    return None if stopped else findings


def finish(request: ExperimentRequest, runs: Sequence[PlannedRun], host: Host) -> None:
    """Every run to its end, in order. Raises `PriceDeclined`, or what a stage raises; finished runs stay."""
    waiting = distinct(runs) if host.again else unfinished(runs, host.folder)
    asked = _asked_once(host.approve, price_of(waiting, request.units))
    began = host.clock()
    for place, run in enumerate(waiting):
        host.show(Notice(text=f"run {place + 1} of {len(waiting)}: {run.name} ({run.id})"))
        with opened_run(run, host.folder) as store:
            opened = Run(store)
            _keep_norms(opened)
            analyse(opened, host.show, clock=host.clock, approve=asked)
        left = (host.clock() - began) / (place + 1) * (len(waiting) - place - 1)
        host.show(Notice(text=f"{place + 1} of {len(waiting)} runs finished, about {left / 60:.0f} min left"))


def _keep_norms(run: Run) -> None:
    """Read off the weights once, since finished runs are read without the model."""
    basis = run.config.bases[0]
    if not run.store.has(keys.write_norms(basis)):
        # Where a normalisation stands between projection and stream there is no such ranking.
        with suppress(UsageError):
            run.store.put(keys.write_norms(basis), write_norms(run.subject, basis))


def price_of(runs: Sequence[PlannedRun], units: Mapping[Basis, int]) -> Price:
    """The most ablations that the searches of these runs can ask; its seconds are not known yet.

    A search asks at most every node of the full tree, 2N − 1, and N units singly where brute force was asked.
    """
    evaluations = forwards = 0
    for run in runs:
        for basis in run.config.bases:
            total = min(units[basis], run.config.cap)
            groups = 2 * total - 1 + (total if total <= run.config.exhaustive_up_to else 0)
            evaluations += groups * len(run.config.regimes)
            forwards += groups * len(run.config.regimes) * 2 * run.config.slice_size
    return Price(evaluations=evaluations, example_forwards=forwards, seconds=0.0)


def load(runs: Sequence[PlannedRun], folder: Path) -> tuple[PlannedRunDone, ...]:
    """What finished runs hold, read without the model. Every run must be finished."""
    return tuple(_load(run, run_path(run.id, folder)) for run in runs)


def _load(planned: PlannedRun, path: Path) -> PlannedRunDone:
    findings = stored_findings(path)
    assert findings is not None, planned.name
    with RunStore.open(path, read_only=True) as store:
        run = Run(store)
        scores = {
            search.regime: found
            for search in findings.searches
            if (found := run.attribution(search.intervention.basis, search.regime)) is not None
        }
        flips = {search.regime: _flips(run, search) for search in findings.searches}
        kept = keys.write_norms(planned.config.bases[0])
        norms = store.get(kept) if store.has(kept) else None
    return PlannedRunDone(
        planned=planned, path=path, findings=findings, scores=scores, flips=flips, norms=norms
    )


def _flips(run: Run, search: SearchOutcome) -> Bool[np.ndarray, "neuron eligible"]:
    """Which records of D_b each anchored unit flips, strongest first; no rows where units are anonymous."""
    eligible = run.eligible(search.regime)
    named = () if search.suppressed else search.agonists[: run.config.anchor_for]
    if not named or search.union is None:
        return np.zeros((0, len(eligible)), bool)
    return run.flips([(unit.neuron,) for unit in named], eligible, search.regime)


def opened_run(run: PlannedRun, folder: Path) -> RunStore:
    """The run's file, held for writing; made when it does not exist. Raises `StoreError` when another holds it."""
    path = run_path(run.id, folder)
    if path.exists():
        return RunStore.open(path)
    return RunStore.create(path, {"run": run.id, "settings": run.config.model_dump(mode="json")})


def _asked_once(approve: Callable[[Price], bool], whole: Price) -> Callable[[Price], bool]:
    """Asks for the price of all runs when the first search knows its pace, and keeps the answer."""
    answers: list[bool] = []

    def asked(first: Price) -> bool:
        if not answers:
            pace = first.seconds / first.example_forwards if first.example_forwards else 0.0
            answers.append(approve(replace(whole, seconds=whole.example_forwards * pace)))
        return answers[0]

    return asked


def probe(planned: PlannedRun, units: Sequence[Neuron], host: Host) -> Document:
    """A row a unit, a column a baseline: flips on both slices, and replaced values out of range.

    Cost: units × baselines ablations on the two compact slices of the run's first regime, less what is stored.
    Raises `UsageError` for a unit of another basis or outside the model.
    """
    with opened_run(planned, host.folder) as store:
        run = Run(store)
        _check(run, units)
        journal = Journal(store, host.show, host.clock)
        prepare(run, journal)
        slices = run.slices(run.regimes[0])
        with journal.stage("baselines", len(Baseline), "baselines") as stage:
            cells = []
            for done, baseline in enumerate(Baseline):
                cells.append(_column(run, slices, units, baseline))
                journal.progress(stage.name)(done + 1, len(Baseline))
            stage.summary = f"{len(units)} units under {len(Baseline)} baselines"
        journal.flush()
        return _document(run, slices, units, cells)


def _check(run: Run, units: Sequence[Neuron]) -> None:
    basis, subject = run.config.bases[0], run.subject
    for unit in units:
        if unit.basis is not basis:
            raise UsageError(f"expected units of the basis {basis}, got {unit}; add --basis {unit.basis}")
        if unit.layer >= subject.n_layers or unit.channel >= subject.width(basis):
            raise UsageError(
                f"expected a unit of {subject.n_layers} layers of {subject.width(basis)}, got {unit}"
            )


def _column(run: Run, slices: CompactSlices, units: Sequence[Neuron], baseline: Baseline) -> list[str]:
    main = run.intervention(units[0].basis)
    intervention = Intervention(basis=main.basis, baseline=baseline, phase=main.phase)
    estimates = slice_estimates(run, slices, intervention, [(unit,) for unit in units])
    table = run.replacement(intervention)
    return [
        _cell(estimate, *table.out_of_range(unit)) for unit, estimate in zip(units, estimates, strict=True)
    ]


def _cell(estimate: FlipEstimate, outside: int, replaced: int) -> str:
    """`29/64 · 100 %`: flips on both slices, values out of range."""
    flips = estimate.associated + estimate.unrelated
    return f"{flips.flips}/{flips.n} · {percent(outside / replaced)}"


def _document(
    run: Run, slices: CompactSlices, units: Sequence[Neuron], cells: Sequence[Sequence[str]]
) -> Document:
    header = ("unit", *(baseline.value for baseline in Baseline))
    rows = tuple((str(unit), *row) for unit, row in zip(units, zip(*cells, strict=True), strict=True))
    key = (
        f"{run.config.model} at {run.config.task}, {slices.regime.arrow}. In each cell: records of both compact slices "
        "that the unit, ablated alone, flips · share of the replaced values outside the range that the unit takes at "
        "that position in the data."
    )
    fixed = (
        f"Run {run.id}, seed {run.config.seed}, model hash {run.subject.model_hash}, task "
        f"{listing(run.task.describe())}; {listing(versions())}."
    )
    table = Table(header=header, rows=rows, align="l" + "r" * len(Baseline))
    return Document(
        title="The same units under every baseline",
        sections=(Section(title="Flips", blocks=(key, table, fixed)),),
    )
