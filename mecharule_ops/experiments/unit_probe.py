"""Chosen units under every replacement baseline: what each baseline says of them, without any search.

Where a basis is too large to search under six baselines, a handful of units still shows how far the baselines agree.
"""

from __future__ import annotations

from collections.abc import Sequence

from mecharule_ops.errors import UsageError
from mecharule_ops.experiments.folder import Host, opened_run
from mecharule_ops.experiments.plan import PlannedRun
from mecharule_ops.numbers import percent
from mecharule_ops.pipeline.journal import Journal
from mecharule_ops.pipeline.localise import slice_estimates
from mecharule_ops.pipeline.preparation import prepare
from mecharule_ops.pipeline.run import Run
from mecharule_ops.pipeline.summing_up import versions
from mecharule_ops.report.document import Document, Section, Table
from mecharule_ops.report.run_blocks import listing
from mecharule_ops.slices import CompactSlices
from mecharule_ops.types import Baseline, FlipEstimate, Intervention, Neuron


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
