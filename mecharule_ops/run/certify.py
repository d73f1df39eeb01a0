"""Claims that can be run again: full completions before and after an ablation, as a certificate.

Cost: one completion an example under the ablation, without early decision, since a certificate holds every
token. `second_run` runs a certificate again. How a unit's flips come about is certified with others held at their
clean values, and together with others; what the counts of such rows say follows from them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING

from mecharule_ops.certificates import certificate
from mecharule_ops.certificates.verification import totals_of
from mecharule_ops.config import given_text
from mecharule_ops.engine.outcomes import Group
from mecharule_ops.findings.chain import mediation_in, pairs_in
from mecharule_ops.mechanism.holds import Hold, LayerSizes, held_by
from mecharule_ops.rules.families import UnitRule
from mecharule_ops.run.live_run import Run
from mecharule_ops.types import Baseline, Basis, BehaviourRecord, Intervention, Neuron, Regime

if TYPE_CHECKING:
    from mecharule_ops.engine.outcomes import Completions
    from mecharule_ops.loading.model import Subject
    from mecharule_ops.replacement.baselines import ReplacementTable


PACKAGES = ("torch", "transformers", "transformer-lens", "numpy", "scipy", "xgboost", "shap")
PORTION = 4
"""Groups whose completions are computed together for their certificates."""


def certify(
    run: Run,
    groups: Sequence[Group],
    regime: Regime,
    *,
    kind: str = "ablate",
    rules: Mapping[Group, UnitRule | None] = MappingProxyType({}),
    baseline: Baseline | None = None,
    slices: Mapping[str, Sequence[int]] | None = None,
) -> Iterator[certificate.Certificate]:
    """The certificate of ablating the units of each group together, all of one basis; it claims what its rows show.

    On the compact slices and with the run's own baseline, unless others are named. Cost: one completion an example; its
    outcomes are stored for later searches and questions. Clean passes are made once a portion, which a stop loses.
    """
    examples = "examples " if slices is None else ""
    for first in range(0, len(groups), PORTION):
        portion = groups[first : first + PORTION]
        intervention = run.intervention(portion[0][0].basis)
        intervention = replace(intervention, baseline=baseline or intervention.baseline)
        made = ablation_rows(run, intervention, portion, placed_in(slices or run.slices(regime).named))
        for units, rows in zip(portion, made, strict=True):
            flips = [f"{total.flips}/{total.n} {total.slice}" for total in totals_of(rows, run.config.alpha)]
            claim = (
                f"ablating {'+'.join(map(str, units))} flips {' and '.join(flips)} {examples}({regime.arrow})"
            )
            known, score = rules.get(units), None
            if known is not None and known.held_out is not None:
                score = certificate.CertifiedScore(
                    text=str(known.rule), scope="held-out", **asdict(known.held_out)
                )
            yield certified(run, intervention, units, rows, regime=regime, kind=kind, claim=claim, rule=score)


def placed_in(slices: Mapping[str, Sequence[int]]) -> list[tuple[str, int]]:
    """(slice, position) of every example of some slices."""
    return [(name, position) for name, positions in slices.items() for position in positions]


def certified(
    run: Run,
    intervention: Intervention,
    units: Group,
    rows: tuple[certificate.ExampleRow, ...],
    *,
    regime: Regime,
    kind: str,
    claim: str,
    rule: certificate.CertifiedScore | None = None,
) -> certificate.Certificate:
    """The certificate of rows that were computed with this run's model and replacement values."""
    return certificate.Certificate(
        kind=kind,
        claim=given_text(claim, run.config.given),
        model=identity(run.config.model, run.subject),
        task=run.task.describe(),
        regime=regime.value,
        intervention=_stated(run.replacement(intervention), units),
        given={str(unit): _stated(table, (unit,)) for unit, table in run.given.items()},
        units=tuple(map(str, units)),
        rows=rows,
        totals=totals_of(rows, run.config.alpha),
        alpha=run.config.alpha,
        seed=run.config.seed,
        dtype=run.subject.dtype_name,
        device=run.subject.device.type,
        versions=versions(),
        rule=rule,
    )


def _stated(table: ReplacementTable, units: Group) -> certificate.CertifiedIntervention:
    """How units are replaced by the values of a table."""
    how, layers = table.intervention, sorted({unit.layer for unit in units})
    return certificate.CertifiedIntervention(
        basis=how.basis.value,
        hook="+".join(f"blocks.{layer}.{how.basis.row.hook}" for layer in layers),
        baseline=how.baseline.value,
        baseline_hash=table.hash,
        phase=how.phase.value,
    )


def identity(name: str, subject: Subject) -> certificate.ModelIdentity:
    """The model, by the name that a run calls it and its hashes."""
    return certificate.ModelIdentity(
        name=name, model_hash=subject.model_hash, tokenizer_hash=subject.tokenizer_hash
    )


def ablation_rows(
    run: Run,
    intervention: Intervention,
    groups: Sequence[Group],
    placed: Sequence[tuple[str, int]],
    held: Sequence[Group] = (),
) -> list[tuple[certificate.ExampleRow, ...]]:
    """Of each group what the completion of each placed example was, from the run's records, and what it became.

    Without units that are `held`, a group each, its outcomes are stored like any other, so that nothing asks the model
    about them again.
    """
    positions = [position for _, position in placed]
    after = run.completer(intervention).completions(groups, positions, held)
    if run.store.writable and not held:
        for group, labels, margins in zip(groups, after.labels, after.margins, strict=True):
            run.engine(intervention).keep(group, positions, labels, margins)
    records = [run.observed.records[position] for position in positions]
    parts = [name for name, _ in placed]
    return [rows_from(after, place, run.subject.decode, records, parts) for place in range(len(groups))]


def rows_from(
    after: Completions,
    group: int,
    decode: Callable[[Sequence[int]], str],
    records: Sequence[BehaviourRecord],
    parts: Sequence[str],
    unit: str | None = None,
) -> tuple[certificate.ExampleRow, ...]:
    """The rows of one of the groups whose completions were computed for records, each of a slice.

    `unit` names the group where not all units of the certificate acted.
    """
    return tuple(
        certificate.ExampleRow(
            example=record.example.id,
            prompt=record.example.prompt,
            slice=part,
            unit=unit,
            before=certificate.Completion(
                tokens=record.tokens, text=record.completion, label=record.label, margin=record.margin
            ),
            after=completion_of(after, group, column, decode),
        )
        for column, (record, part) in enumerate(zip(records, parts, strict=True))
    )


def completion_of(
    found: Completions, group: int, column: int, decode: Callable[[Sequence[int]], str]
) -> certificate.Completion:
    """One of the completions that an engine made, as a certificate holds it."""
    tokens, label = found.tokens[group][column], bool(found.labels[group, column])
    return certificate.Completion(
        tokens=tokens, text=decode(tokens), label=label, margin=float(found.margins[group, column])
    )


def held_units(subject: Subject, ablated: Group, hold: Hold | None) -> Group:
    """None for no hold; what lies above several ablated units lies above the lowest. Raises `UsageError`."""
    if hold is None:
        return ()
    shape = LayerSizes(layers=subject.n_layers, heads=subject.n_heads, channels=subject.d_model)
    units = held_by(hold, min(ablated, key=lambda unit: unit.layer), shape)
    return tuple(unit for unit in units if unit not in ablated)


def certify_mediation(
    run: Run, unit: Neuron, regime: Regime, holds: Sequence[Hold], placed: Sequence[tuple[str, int]]
) -> certificate.Certificate:
    """The unit ablated alone, then with each of `holds` at its clean value.

    Cost: `len(holds)` + 1 completions an example, and the clean values of what is held.
    """
    intervention, names = run.intervention(unit.basis), (None, *map(str, holds))
    held = [(), *(held_units(run.subject, (unit,), hold) for hold in holds)]
    made = ablation_rows(run, intervention, [(unit,)] * len(held), placed, held)
    rows = tuple(replace(row, held=name) for name, some in zip(names, made, strict=True) for row in some)
    found = mediation_in(rows, run.config.alpha)
    parts = [f"{through.gone.count} with {through.held}" for through in found.through]
    claim = f"ablating {unit} flips {found.flips.flips}/{found.flips.n} examples ({regime.arrow})"
    if parts:
        claim += f"; held at clean values meanwhile, these prevent of the {found.flips.flips} flips: {', '.join(parts)}"
    return certified(run, intervention, (unit,), rows, regime=regime, kind="mediation", claim=claim)


def certify_pairs(
    run: Run, unit: Neuron, others: Sequence[Neuron], regime: Regime, placed: Sequence[tuple[str, int]]
) -> certificate.Certificate:
    """The unit alone, and each of the others, of its basis, alone and together with it.

    Cost: 2 × `len(others)` + 1 completions an example.
    """
    intervention = run.intervention(unit.basis)
    groups = [(unit,), *((other,) for other in others), *((unit, other) for other in others)]
    rows = tuple(
        replace(row, unit="+".join(map(str, group)))
        for group, some in zip(groups, ablation_rows(run, intervention, groups, placed), strict=True)
        for row in some
    )
    found = pairs_in(rows, str(unit), run.config.alpha)
    parts = [f"{pair.other} {pair.together} ({pair.either} by either alone)" for pair in found]
    claim = (
        f"ablated together with {unit}, of {len(placed)} examples flip ({regime.arrow}): {', '.join(parts)}"
    )
    return certified(run, intervention, (unit, *others), rows, regime=regime, kind="pairs", claim=claim)


def certify_kept(
    run: Run, kept: Sequence[tuple[str, Group]], regime: Regime, positions: Sequence[int]
) -> certificate.Certificate:
    """Of sets of units of one basis, each with a name: what flips with every other unit of the basis ablated at once.

    The rows' slice is the set's name. Cost: a completion an example and set.
    """
    units = tuple(dict.fromkeys(unit for _, group in kept for unit in group))
    basis, how = units[0].basis, run.intervention(units[0].basis)
    others = [all_but(run.subject, basis, group) for _, group in kept]
    after = run.completer(how).completions(others, positions)
    records = [run.observed.records[position] for position in positions]
    rows: list[certificate.ExampleRow] = []
    for place, (name, group) in enumerate(kept):
        unit, parts = "+".join(map(str, group)), [name] * len(records)
        rows += rows_from(after, place, run.subject.decode, records, parts, unit)
    survive = [
        f"{one.n - one.flips} of {one.n} with {one.unit or 'none'} kept"
        for one in totals_of(rows, run.config.alpha)
    ]
    claim = (
        f"with all other units of {basis} ablated, outcomes survive ({regime.arrow}): {'; '.join(survive)}"
    )
    made = certified(run, how, units, tuple(rows), regime=regime, kind="suffices", claim=claim)
    return replace(made, intervention=replace(made.intervention, hook=f"blocks.*.{basis.row.hook}"))


def all_but(subject: Subject, basis: Basis, kept: Group) -> Group:
    """Every unit of a basis but some."""
    places = product(range(subject.n_layers), range(subject.width(basis)))
    return tuple(unit for place in places if (unit := Neuron(basis, *place)) not in kept)


def versions() -> dict[str, str]:
    """Versions of the packages that decide a number."""
    return {package: version(package) for package in PACKAGES}
