"""Repair: gates are learned on the find records, chosen on the choose records, and the test records score them once.

Every record is in one split. What is compared on the test records beside the gates (the same units always ablated,
random units, shuffled gates, gates over leads alone, a free-form gate) is fixed before they are opened too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.findings.repair import (
    Control,
    ControlKind,
    Repair,
    RepairStatus,
    ShownExample,
    Split,
    SplitResult,
)
from mecharule_ops.pipeline.repair_material import Material, RepairRequest, Tell
from mecharule_ops.predicates.cuts import evaluated
from mecharule_ops.repair.choosing import chosen_gates, expected_gain
from mecharule_ops.repair.gates import NOTHING, Gate, acting, after
from mecharule_ops.repair.learning import gate_rules
from mecharule_ops.repair.readings import Readings, firing, predicates_of, read, vocabulary
from mecharule_ops.repair.statistics import Paired
from mecharule_ops.rules.algebra import Rule, lookup_in
from mecharule_ops.rules.families import Family
from mecharule_ops.types import Neuron

CAUTIONS = (1.0, 2.0)
"""Every unit is offered rules learned with each; the choose records decide."""
SHOWN = 6
"""Examples kept of each kind."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chosen:
    """Gates before the test records are opened."""

    gates: tuple[Gate, ...]
    splits: tuple[SplitResult, ...]
    candidates: int
    """Rules that were offered."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tested:
    """What the gates did on the test records."""

    acts: Int[np.ndarray, " test"]
    before: Bool[np.ndarray, " test"]
    after: Bool[np.ndarray, " test"]
    completions: dict[int, tuple[int, ...]]
    """By position among the test records, what was written where a gate acted."""
    margins: dict[int, float]
    """Smallest lead of a token of each in reach."""

    @property
    def result(self) -> Paired:
        return Paired.of(self.before, self.after, self.acts != NOTHING)


def choose(found: Material, request: RepairRequest, readings: Readings | None = None) -> Chosen:
    """Gates from the find and choose records alone; none where none helps.

    Cost: what the family's columns cost on those records; no ablation. `readings` stand in for the family's.
    """
    readings = readings or _read(found, request, found.learn)
    candidates = _candidates(found, request, readings)
    split, good = len(found.find), found.good[found.learn]
    place = {unit: index for index, unit in enumerate(found.units)}
    fires = np.array([one.fires for one in candidates], bool).reshape(len(candidates), len(good))
    alone = np.array([found.alone[place[one.unit]] for one in candidates], bool).reshape(fires.shape)
    chosen = chosen_gates(
        [one.unit for one in candidates],
        fires[:, split:],
        alone[:, split:],
        good[split:],
        most=request.units,
        harm=request.learning.harm,
    )
    gates = tuple(
        _gate(candidates[one], readings.family, fires[one, split:], alone[one, split:], good[split:], request)
        for one in chosen
    )
    acts = acting([gate.gain for gate in gates], fires[chosen])
    labels = after(acts, alone[chosen], good) if chosen else good
    whole = {Split.FIND: slice(0, split), Split.CHOOSE: slice(split, None)}
    return Chosen(
        gates=gates,
        splits=tuple(
            SplitResult(split=name, result=Paired.of(good[part], labels[part], acts[part] != NOTHING))
            for name, part in whole.items()
        ),
        candidates=len(candidates),
    )


def opened_test(found: Material, request: RepairRequest, gates: Sequence[Gate]) -> Tested:
    """The gates on the test records, with whole completions. Cost: readings, and a completion where a gate acts."""
    readings = _read(found, request, found.test, [gate.unit for gate in gates])
    acts = acting([gate.gain for gate in gates], firing(gates, readings))
    return _applied(found, request, [gate.unit for gate in gates], acts)


def _applied(found: Material, request: RepairRequest, units: Sequence[Neuron], acts: np.ndarray) -> Tested:
    """Completions of the test records, each under the unit that acts on it."""
    before = found.good[found.test]
    labels, completions, margins = before.copy(), dict[int, tuple[int, ...]](), dict[int, float]()
    for index, unit in enumerate(units):
        places = np.flatnonzero(acts == index)
        if not len(places):
            continue
        done = found.engine.completions([(unit,)], found.test[places].tolist())
        labels[places] = done.labels[0] != bool(request.regime.value)
        completions.update(zip(places.tolist(), done.tokens[0], strict=True))
        margins.update(zip(places.tolist(), done.margins[0].tolist(), strict=True))
    return Tested(acts=acts, before=before, after=labels, completions=completions, margins=margins)


def repair(
    found: Material,
    request: RepairRequest,
    *,
    register: Callable[[Chosen], str] = lambda chosen: "",
    certify: Callable[[Material, Tested, Sequence[Gate]], tuple[str, ...]] = lambda *of: (),
    tell: Tell = lambda line: None,
) -> Repair:
    """The whole of it. `register` is told the gates before the test records are opened, and gives the entry's id.

    Cost beside the material's: the family's columns on all records, a completion for each test record that a gate
    acts on, and for the controls each chosen unit and as many random ones on the test records.
    """
    bare = Repair(
        run=found.run.id,
        regime=request.regime,
        basis=request.basis,
        family=request.family,
        status=RepairStatus.NO_UNIT,
        seed=found.run.config.seed,
        solution=request.solution,
        tried=len(found.units),
        fresh=found.fresh,
        most=request.units,
        records=request.records,
    )
    if not found.units:
        return bare
    chosen = choose(found, request)
    tell(f"{chosen.candidates} rules of {len(found.units)} units, {len(chosen.gates)} gates chosen")
    bare = replace(bare, splits=chosen.splits, gates=chosen.gates)
    if not chosen.gates:
        return replace(bare, status=RepairStatus.NO_GATE if chosen.candidates else RepairStatus.NO_RULE)
    lead_only = choose(found, request, _leads(found, request))
    entry = register(chosen)
    tested = opened_test(found, request, chosen.gates)
    tell(f"{len(found.test):,} test records opened")
    always = _always(found, request, [gate.unit for gate in chosen.gates])
    controls = (
        *_always_controls(tested, chosen.gates, always),
        _random_units(found, request, chosen.gates, tested),
        _shuffled(found, tested, always),
        *_lead_only(found, request, lead_only),
    )
    low, high = tested.result.interval
    status = RepairStatus.HELPS if low > 0 else RepairStatus.HARMS if high < 0 else RepairStatus.OPEN
    everything = np.ones(len(tested.before), bool)
    return replace(
        bare,
        status=status,
        splits=(*chosen.splits, SplitResult(split=Split.TEST, result=tested.result)),
        hindsight=Paired.of(tested.before, tested.before | always.any(0), everything),
        controls=controls,
        examples=tuple(_examples(found, tested, chosen.gates)),
        certificates=certify(found, tested, chosen.gates),
        hypothesis=entry,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Candidate:
    """A rule of one unit, and where it fires on the find and choose records."""

    unit: Neuron
    rule: Rule
    fires: Bool[np.ndarray, " learn"]


def _read(
    found: Material, request: RepairRequest, positions: np.ndarray, units: Sequence[Neuron] | None = None
) -> Readings:
    run = found.run
    return read(
        run.subject,
        run.task,
        found.at(positions),
        found.table,
        request.family,
        units or found.units,
        solution=request.solution,
        should_stop=run.should_stop,
    )


def _leads(found: Material, request: RepairRequest) -> Readings:
    asked = replace(request, family=Family.CLEAN_RUN)
    return _read(found, asked, found.learn).leads_alone


def _candidates(found: Material, request: RepairRequest, readings: Readings) -> list[_Candidate]:
    """Rules of every unit, learned on the find records."""
    learn, split = found.learn, len(found.find)
    texts = tuple[str, ...]()
    if readings.prompt:
        columns = found.run.task.columns(found.at(learn))
        offered = (*found.run.vocabulary["kept"], *found.run.task.account_predicates())
        texts = vocabulary(offered, found.run.task, columns, readings.prompt)
    prompt = evaluated(texts, readings.prompt)
    if not readings.prompt:
        prompt = replace(prompt, matrix=np.zeros((len(learn), 0), bool))
    good, made = found.good[learn], list[_Candidate]()
    for unit, alone in zip(found.units, found.alone, strict=True):
        table = predicates_of(readings, unit, prompt, np.arange(split))
        value = alone.astype(np.int64) - good
        rules = {
            rule: None
            for caution in CAUTIONS
            for rule in gate_rules(
                table.matrix[:split], table.texts, value[:split], replace(request.learning, caution=caution)
            )
        }
        lookup = lookup_in(table.matrix, table.texts)
        made += [_Candidate(unit=unit, rule=rule, fires=rule.fires(lookup)) for rule in rules]
    return made


def _gate(
    one: _Candidate,
    family: Family,
    fires: np.ndarray,
    alone: np.ndarray,
    good: np.ndarray,
    request: RepairRequest,
) -> Gate:
    return Gate(
        unit=one.unit,
        family=family,
        rule=str(one.rule),
        gain=expected_gain(fires, alone, good, request.learning.harm),
        fixed=int((fires & alone & ~good).sum()),
        broken=int((fires & good & ~alone).sum()),
        fired=int(fires.sum()),
    )


def _always(found: Material, request: RepairRequest, units: Sequence[Neuron]) -> np.ndarray:
    """The wanted outcome of every test record under each unit."""
    labels = found.engine.evaluate([(unit,) for unit in units], found.test.tolist()).labels
    return labels != bool(request.regime.value)


def _always_controls(tested: Tested, gates: Sequence[Gate], always: np.ndarray) -> list[Control]:
    everywhere = np.ones(len(tested.before), bool)
    return [
        Control(
            kind=ControlKind.ALWAYS, name=str(gate.unit), result=Paired.of(tested.before, labels, everywhere)
        )
        for gate, labels in zip(gates, always, strict=True)
    ]


def _random_units(found: Material, request: RepairRequest, gates: Sequence[Gate], tested: Tested) -> Control:
    """In the place of each gate's unit a random one of its layer that was not tried."""
    generator = np.random.default_rng([found.run.config.seed, 3])
    taken, drawn = set(found.units), list[Neuron]()
    width = found.run.subject.width(request.basis)
    for gate in gates:
        free = [
            unit
            for channel in range(width)
            if (unit := Neuron(request.basis, gate.unit.layer, channel)) not in taken
        ]
        drawn.append(free[generator.integers(len(free))] if free else gate.unit)
        taken.add(drawn[-1])
    result = _applied(found, request, drawn, tested.acts).result
    return Control(kind=ControlKind.RANDOM_UNITS, name=", ".join(map(str, drawn)), result=result)


def _shuffled(found: Material, tested: Tested, always: np.ndarray) -> Control:
    """Each gate acts as often as it does, on records drawn at random."""
    acts = np.random.default_rng([found.run.config.seed, 4]).permutation(tested.acts)
    labels = after(acts, always, tested.before)
    return Control(
        kind=ControlKind.SHUFFLED, name="", result=Paired.of(tested.before, labels, acts != NOTHING)
    )


def _lead_only(found: Material, request: RepairRequest, chosen: Chosen) -> list[Control]:
    """Gates that read the leads alone, learned and chosen like the others."""
    nothing = np.full(len(found.test), NOTHING)
    before = found.good[found.test]
    result = Paired.of(before, before, nothing != NOTHING)
    if chosen.gates:
        asked = replace(request, family=Family.CLEAN_RUN)
        readings = _read(found, asked, found.test).leads_alone
        acts = acting([gate.gain for gate in chosen.gates], firing(chosen.gates, readings))
        result = _applied(found, request, [gate.unit for gate in chosen.gates], acts).result
    return [Control(kind=ControlKind.LEAD_ONLY, name=f"{len(chosen.gates)} gates", result=result)]


def _examples(found: Material, tested: Tested, gates: Sequence[Gate]) -> list[ShownExample]:
    """The first records that were fixed, then the first that were broken."""
    shown = []
    for fixed in (True, False):
        changed = tested.after & ~tested.before if fixed else tested.before & ~tested.after
        for place in np.flatnonzero(changed)[:SHOWN].tolist():
            record = found.records[found.test[place]]
            shown.append(
                ShownExample(
                    prompt=record.example.prompt,
                    unit=gates[tested.acts[place]].unit,
                    before=record.completion,
                    after=found.run.subject.decode(tested.completions[place]),
                    fixed=fixed,
                )
            )
    return shown
