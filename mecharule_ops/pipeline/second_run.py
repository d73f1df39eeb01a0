"""The second run that a certificate asks for: the same ablations on the reference path, from the certificate alone.

Prompts are read back from the certificate's rows, the task from its own description, the replacement values from
a run file or an exported table whose hash must be the certificate's. Cost: two completions an example and group,
three where units are held at their clean values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from mecharule_ops.certificates.certificate import Certificate, Completion, ExampleRow
from mecharule_ops.engine.reference import ReferenceEngine
from mecharule_ops.errors import ModelUnavailable
from mecharule_ops.loading.model import Subject
from mecharule_ops.pipeline.certify import held_units
from mecharule_ops.pipeline.run import Run
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.registry import task_from
from mecharule_ops.types import Baseline, Basis, BehaviourRecord, Intervention, Neuron, Phase


class CannotRepeat(ModelUnavailable):
    """What a second run needs is not here, or is not what the certificate names."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bench:
    """What certificates are run again on."""

    subject: Subject
    table: Callable[[Intervention, str], ReplacementTable]
    """The replacement values of an intervention, given the hash that is wanted."""
    task: Task | None = None
    """The run's own task, for one that no description can make again, such as a user's."""

    @property
    def numbers(self) -> str:
        """As a certificate's."""
        return f"{self.subject.dtype_name} on {self.subject.device.type}"

    def task_of(self, certificate: Certificate) -> Task:
        """The task that describes itself as the certificate says. Raises `ClaimNotSupported` when none does."""
        if self.task is not None and dict(self.task.describe()) == dict(certificate.task):
            return self.task
        return task_from(certificate.task)


def bench_of_run(run: Run, subject: Subject | None = None) -> Bench:
    """The run's own model, or one that is loaded already, and its replacement values measured anew.

    They are measured before anything else: TransformerLens changes how the model computes attention, and with it
    their last digits. On another kind of device, or in another type, the last digits differ, and the run's own
    values are used; so they are where the run's file does not say which records they were measured on.
    """
    subject = run.subject if subject is None else subject
    made = run.placed
    alike = made is None or (made["dtype"], made["device"].split(":")[0]) == (
        subject.dtype_name,
        subject.device.type,
    )
    tables = {
        how: run.measured_replacement(how, subject)
        if alike and run.replacement(how).records
        else run.replacement(how)
        for how in map(run.intervention, run.config.bases)
    }

    def table(intervention: Intervention, wanted: str) -> ReplacementTable:
        if intervention not in tables:
            raise CannotRepeat(
                f"expected an intervention of run {run.id}, got {intervention}; name its own run"
            )
        return tables[intervention]

    return Bench(subject=subject, table=table, task=run.task)


def rerun(bench: Bench, certificate: Certificate) -> tuple[ExampleRow, ...]:
    """The certificate's rows computed again.

    Raises `CannotRepeat` when model, tokenizer or replacement values are not the certificate's, and
    `ClaimNotSupported` when its task or a prompt is none that exists.
    """
    stated = certificate.intervention
    intervention = Intervention(
        basis=Basis(stated.basis), baseline=Baseline(stated.baseline), phase=Phase(stated.phase)
    )
    table = bench.table(intervention, stated.baseline_hash)
    _check(certificate, bench.subject, table)
    task = bench.task_of(certificate)
    prompts = list(dict.fromkeys(row.prompt for row in certificate.rows))
    records = [
        BehaviourRecord(example=task.read(prompt), tokens=(), completion="", parsed={}, label=False)
        for prompt in prompts
    ]
    engine = ReferenceEngine(bench.subject, task, records, intervention, table)
    groups = _groups(certificate)
    column = {prompt: position for position, prompt in enumerate(prompts)}
    after = _sides(bench.subject, engine, groups, _asked_at(certificate, column))
    clean = _sides(bench.subject, engine, {_CLEAN: ()}, {_CLEAN: tuple(range(len(records)))})
    return tuple(
        replace(
            row,
            example=records[column[row.prompt]].example.id,
            prompt=records[column[row.prompt]].example.prompt,
            before=clean[_CLEAN, column[row.prompt]],
            after=after[(row.unit, row.held), column[row.prompt]],
        )
        for row in certificate.rows
    )


_Asked = tuple[str | None, str | None]
"""The units that a row names, or none, and those held."""
_CLEAN: _Asked = (None, None)


def _asked_at(certificate: Certificate, column: Mapping[str, int]) -> dict[_Asked, tuple[int, ...]]:
    """On which prompts each group is ablated."""
    asked: dict[_Asked, dict[int, None]] = {}
    for row in certificate.rows:
        asked.setdefault((row.unit, row.held), {})[column[row.prompt]] = None
    return {one: tuple(positions) for one, positions in asked.items()}


def _sides(
    subject: Subject,
    engine: ReferenceEngine,
    groups: Mapping[_Asked, tuple[Neuron, ...]],
    positions: Mapping[_Asked, tuple[int, ...]],
) -> dict[tuple[_Asked, int], Completion]:
    """Completions of each group on its prompts; groups asked on the same prompts are decoded beside one another."""
    together: dict[tuple[int, ...], list[_Asked]] = {}
    for one in groups:
        together.setdefault(positions[one], []).append(one)
    sides = {}
    for places, asked in together.items():
        held = [held_units(subject, groups[one], one[1]) for one in asked]
        found = engine.completions([groups[one] for one in asked], places, held)
        for index, one in enumerate(asked):
            for at, place in enumerate(places):
                tokens = found.tokens[index][at]
                sides[one, place] = Completion(
                    tokens=tokens,
                    text=subject.decode(tokens),
                    label=bool(found.labels[index, at]),
                    margin=float(found.margins[index, at]),
                )
    return sides


def _groups(certificate: Certificate) -> dict[tuple[str | None, str | None], tuple[Neuron, ...]]:
    """What is ablated together in the rows that name these units, or none, and these held ones."""
    asked = dict.fromkeys((row.unit, row.held) for row in certificate.rows)
    return {
        (unit, held): tuple(map(Neuron.parse, certificate.units if unit is None else unit.split("+")))
        for unit, held in asked
    }


def _check(certificate: Certificate, subject: Subject, table: ReplacementTable) -> None:
    stated, model = certificate.intervention, certificate.model
    same = "name the same model with --model"
    if certificate.dtype != subject.dtype_name:
        same = f"it was made in {certificate.dtype}, this is {subject.dtype_name}: leave --dtype out"
    cures = (
        ("weights", model.model_hash, subject.model_hash, same),
        ("a tokenizer", model.tokenizer_hash, subject.tokenizer_hash, "name the same model with --model"),
        ("replacement values", stated.baseline_hash, table.hash, "export the run where it was made"),
    )
    for what, wanted, here, cure in cures:
        if wanted != here:
            raise CannotRepeat(f"expected {what} {wanted} of {model.name}, got {here}; {cure}")
