"""The second run that a certificate asks for: the same ablations on the reference path, from the certificate alone.

Prompts are read back from the certificate's rows, the task from its own description, the replacement values from
a run file or an exported table whose hash must be the certificate's. Cost: two completions an example and group,
three where units are held at their clean values.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from mecharule_ops import errors, types
from mecharule_ops.certificates.certificate import Certificate, Completion, ExampleRow, ablated
from mecharule_ops.engine import outcomes, reference
from mecharule_ops.loading.model import Subject
from mecharule_ops.mechanism.holds import parse_hold
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.run import certify, live_run
from mecharule_ops.store import keys
from mecharule_ops.tasks import base, task_names


class CannotRepeat(errors.ModelUnavailable):
    """What a second run needs is not here, or is not what the certificate names."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bench:
    """What certificates are run again on."""

    subject: Subject
    table: Callable[[types.Intervention, str], ReplacementTable]
    """The replacement values of an intervention, given the hash that is wanted."""
    task: base.Task | None = None
    """The run's own task, for one that no description can make again, such as a user's."""
    should_stop: Callable[[], bool] = lambda: False

    @property
    def numbers(self) -> str:
        """As a certificate's."""
        return f"{self.subject.dtype_name} on {self.subject.device.type}"

    def task_of(self, certificate: Certificate) -> base.Task:
        """The task that describes itself as the certificate says. Raises `ClaimNotSupported` when none does."""
        if self.task is not None and dict(self.task.describe()) == dict(certificate.task):
            return self.task
        return task_names.task_from(certificate.task)


def bench_of_run(run: live_run.Run, subject: Subject | None = None) -> Bench:
    """The run's own model, or one that is loaded already, and the run's replacement values where they are confirmed.

    They are measured anew: where that gives the run's own to a rounding, as another processor does, the run's own are
    used, else the new ones, which no certificate names. On another kind of device, or in another type, they are not
    measured.
    """
    subject = run.subject if subject is None else subject
    made, here = run.placed, (subject.dtype_name, subject.device.type)
    alike = made is None or (made["dtype"], made["device"].split(":")[0]) == here

    @cache
    def confirmed(intervention: types.Intervention) -> ReplacementTable:
        held = run.replacement(intervention)
        if not alike:
            return held
        measured = run.measured_replacement(intervention, subject)
        return held if measured.agrees_with(held) else measured

    def table(intervention: types.Intervention, wanted: str) -> ReplacementTable:
        if not run.store.has(keys.replacement(intervention)):
            raise CannotRepeat(f"expected an intervention of run {run.id}, got {intervention}; name its run")
        return confirmed(intervention)

    return Bench(subject=subject, table=table, task=run.task, should_stop=run.should_stop)


def rerun(bench: Bench, certificate: Certificate) -> tuple[ExampleRow, ...]:
    """The certificate's rows computed again.

    Raises `CannotRepeat` when model, tokenizer or replacement values are not the certificate's, and
    `ClaimNotSupported` when its task or a prompt is none that exists.
    """
    table = _table(bench, certificate)
    given = {types.Neuron.parse(unit): _table(bench, certificate, unit) for unit in certificate.given}
    task = bench.task_of(certificate)
    prompts = list(dict.fromkeys(row.prompt for row in certificate.rows))
    records = [
        types.BehaviourRecord(example=task.read(prompt), tokens=(), completion="", parsed={}, label=False)
        for prompt in prompts
    ]
    asked = bench.subject, task, records, table.intervention, table
    engine = reference.ReferenceEngine(*asked, given=given, should_stop=bench.should_stop)
    column = {prompt: position for position, prompt in enumerate(prompts)}
    completed = _completed(bench.subject, engine, certificate, column)

    def repeated(row: ExampleRow) -> ExampleRow:
        place = column[row.prompt]
        example = records[place].example
        return replace(
            row,
            example=example.id,
            prompt=example.prompt,
            before=completed[None, place],
            after=completed[(row.unit, row.held), place],
        )

    return tuple(map(repeated, certificate.rows))


def _completed(
    subject: Subject, engine: reference.ReferenceEngine, certificate: Certificate, column: Mapping[str, int]
) -> dict[tuple[tuple[str | None, str | None] | None, int], Completion]:
    """Completions by the units and held units that rows name, None for none ablated, and by place of the prompt.

    Groups that are ablated on the same prompts are decoded beside one another and beside none, above one prefill.
    """
    asked: dict[tuple[str | None, str | None], dict[int, None]] = {}
    for row in certificate.rows:
        asked.setdefault((row.unit, row.held), {})[column[row.prompt]] = None
    together: dict[tuple[int, ...], list[tuple[str | None, str | None]]] = {}
    for names, positions in asked.items():
        together.setdefault(tuple(positions), []).append(names)
    completed: dict[tuple[tuple[str | None, str | None] | None, int], Completion] = {}
    for places, some in together.items():
        groups, held = list[outcomes.Group]([()]), list[outcomes.Group]([()])
        for unit, hold in some:
            units = tuple(map(types.Neuron.parse, ablated(certificate.units, unit)))
            basis, suffices = types.Basis(certificate.intervention.basis), certificate.kind == "suffices"
            groups.append(certify.all_but(subject, basis, units) if suffices else units)
            held.append(certify.held_units(subject, groups[-1], None if hold is None else parse_hold(hold)))
        found = engine.completions(groups, places, held)
        for index, named in enumerate((None, *some)):
            for at, place in enumerate(places):
                completed[named, place] = certify.completion_of(found, index, at, subject.decode)
    return completed


def _table(bench: Bench, certificate: Certificate, given: str | None = None) -> ReplacementTable:
    """The replacement values that a certificate states, or those of a unit given; its model must be the bench's."""
    stated = certificate.given[given] if given else certificate.intervention
    table = bench.table(stated.intervention, stated.baseline_hash)
    model, subject = certificate.model, bench.subject
    same = "name the same model with --model"
    if certificate.dtype != subject.dtype_name:
        same = f"it was made in {certificate.dtype}, this is {subject.dtype_name}: leave --dtype out"
    others = "its records give others here; export the run where it was made"
    for what, wanted, here, cure in (
        ("weights", model.model_hash, subject.model_hash, same),
        ("a tokenizer", model.tokenizer_hash, subject.tokenizer_hash, "name the same model with --model"),
        ("replacement values", stated.baseline_hash, table.hash, others),
    ):
        if wanted != here:
            raise CannotRepeat(f"expected {what} {wanted} of {model.name}, got {here}; {cure}")
    return table
