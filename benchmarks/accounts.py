"""How well accounts of single units predict which records really flip: the table of docs/accounts.md.

For each model: its behaviour, a train and a held-out part, replacements from train, units that flip at least τ of a
slice of train (or named ones), and on the held-out records every prediction beside the real flips, with a bootstrap
interval over records. Nothing is fitted on held-out records. In 1→0 a prediction is scored against lost answers; in
0→1 "changes" is scored against changed completions and "outcome" against answers that become right.

    python benchmarks/accounts.py MODEL [--records 4000] [--units a20.h8,…] [--json FILE] [--markdown FILE]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from statistics import median

import numpy as np
from bench import machine
from jaxtyping import Bool

from mecharule_ops.engine.ablation import AblationEngine, Completions
from mecharule_ops.engine.behaviour import observe
from mecharule_ops.experiments.statistics import rank_correlation
from mecharule_ops.held_out import stratified_split
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.registry import load
from mecharule_ops.mechanism.effects import Effect
from mecharule_ops.mechanism.integrated import Integrated, integrated_drop
from mecharule_ops.mechanism.law import Effects, effects, prediction
from mecharule_ops.mechanism.outcomes import best_threshold, bootstrap_mcc, predicted_labels, score
from mecharule_ops.pipeline.summing_up import versions
from mecharule_ops.replacement.baselines import ReplacementTable, replacement_table
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.registry import preset
from mecharule_ops.types import Basis, BehaviourRecord, Intervention, Neuron, Regime

SMOLLM2_HEADS = "a20.h8,a21.h2,a23.h3,a20.h7,a14.h2,a23.h0,a20.h6,a6.h1"
"""The τ-agonists of 1→0 that the default run on SmolLM2 finds among attention heads."""
TAU = 0.2
SLICE = 128
"""Train records of a regime on which units are called τ-agonists."""
POINTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One prediction of one unit on held-out records."""

    model: str
    regime: str
    unit: str
    prediction: str
    mcc: float
    low: float
    high: float
    n: int
    flips: int
    predicted: int
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One prediction over the units of a regime."""

    model: str
    regime: str
    prediction: str
    units: int
    """Units whose flips vary, so that an MCC is defined."""
    median: float
    at_least_70: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """One regime of a model: its records by part, and how to ablate."""

    model: str
    subject: Subject
    task: Task
    records: tuple[BehaviourRecord, ...]
    table: ReplacementTable
    regime: Regime
    train: tuple[int, ...]
    held_out: tuple[int, ...]
    seed: int

    @cached_property
    def engine(self) -> AblationEngine:
        return AblationEngine(self.subject, self.task, self.records, self.table.intervention, self.table)

    def part(self, held_out: bool) -> list[BehaviourRecord]:
        return [self.records[index] for index in (self.held_out if held_out else self.train)]

    def effects(
        self, units: Sequence[Neuron], *, held_out: bool = True, effect: Effect = Effect.STEADY
    ) -> Effects:
        return effects(self.subject, self.part(held_out), self.table, units, effect=effect)


@dataclass(frozen=True, kw_only=True, eq=False)
class Truth:
    """What really happens to the held-out records under each unit's ablation."""

    changed: Bool[np.ndarray, "unit record"]
    flipped: Bool[np.ndarray, "unit record"]

    @classmethod
    def of(cls, setting: Setting, units: Sequence[Neuron]) -> Truth:
        found: Completions = setting.engine.completions([(unit,) for unit in units], setting.held_out)
        records = setting.part(True)
        changed = [
            [after != one.tokens for after, one in zip(row, records, strict=True)] for row in found.tokens
        ]
        labels = np.array([one.label for one in records])
        return cls(changed=np.array(changed, bool), flipped=found.labels != labels)


def settings(
    model: str, basis: Basis, regimes: Sequence[Regime], count: int, seed: int
) -> Iterator[tuple[Setting, float]]:
    """Each regime of a model, and the seconds of processor time that its behaviour took."""
    subject, task = load(model), preset("arithmetic", model)
    examples = task.examples(count, np.random.default_rng(seed))
    began = time.process_time()
    records = observe(task, subject, examples).records
    taken = time.process_time() - began
    labels = np.array([record.label for record in records])
    split = stratified_split(
        np.zeros((len(records), 1), bool), labels, [record.example.id for record in records], seed=seed
    )
    train = [records[index] for index in split.train]
    table = replacement_table(subject, train, Intervention(basis=basis))
    for regime in regimes:
        of = labels == bool(regime.value)
        yield (
            Setting(
                model=model,
                subject=subject,
                task=task,
                records=records,
                table=table,
                regime=regime,
                train=tuple(split.train[of[split.train]].tolist()),
                held_out=tuple(split.test[of[split.test]].tolist()),
                seed=seed,
            ),
            taken / len(records),
        )


def agonists(setting: Setting) -> tuple[list[Neuron], float]:
    """(units with a flip rate of at least τ on a slice of train, strongest first; rank agreement with the law)."""
    slice_ = setting.train[:SLICE]
    basis = setting.table.intervention.basis
    width = setting.subject.width(basis)
    units = [Neuron(basis, layer, one) for layer in range(setting.subject.n_layers) for one in range(width)]
    labels = setting.engine.evaluate([(unit,) for unit in units], slice_).labels
    rates = (labels != bool(setting.regime.value)).mean(1)
    law = prediction(setting.subject, [setting.records[one] for one in slice_], setting.table)
    chosen = [units[one] for one in np.argsort(-rates, kind="stable") if rates[one] >= TAU]
    return chosen, rank_correlation(rates.tolist(), law.counts.tolist())


Said = Callable[[Neuron], Bool[np.ndarray, " record"]]


def predictions(setting: Setting, units: Sequence[Neuron]) -> Iterator[tuple[str, Said]]:
    """Every prediction of a changed answer: its name, and what it says of a unit's held-out records."""
    place = {unit: index for index, unit in enumerate(units)}
    steady = setting.effects(units)
    for competitors in (1, 2, 3):
        flips = steady.within(competitors).flips
        yield (
            f"law, first order, {competitors} competitor{'s' * (competitors > 1)}",
            partial(_column, flips, place),
        )
    moving = setting.effects(units, effect=Effect.FIRST_ORDER).flips
    yield "the same 3, final scale not held", lambda unit: moving[:, place[unit]]
    direct = setting.effects(units, effect=Effect.DIRECT).flips
    yield "law, direct push only", lambda unit: direct[:, place[unit]]
    thresholds = _thresholds(setting, units)
    yield (
        "law, one threshold fitted on train",
        lambda unit: steady.excess[:, place[unit]] > thresholds[place[unit]],
    )
    for points in (2, POINTS):
        yield (
            f"law, integrated over {points} points",
            partial(_integrated_flips, setting, points),
        )


def _column(flips: Bool[np.ndarray, "record unit"], place: Mapping[Neuron, int], unit: Neuron) -> np.ndarray:
    return flips[:, place[unit]]


def _integrated_flips(setting: Setting, points: int, unit: Neuron) -> np.ndarray:
    return _integrated(setting, unit, points).flips


def _thresholds(setting: Setting, units: Sequence[Neuron]) -> list[float]:
    slice_ = replace(setting, train=setting.train[:SLICE])
    labels = setting.engine.evaluate([(unit,) for unit in units], slice_.train).labels
    excess = slice_.effects(units, held_out=False).excess
    return [
        best_threshold(excess[:, index], labels[index] != bool(setting.regime.value))
        for index in range(len(units))
    ]


def _integrated(setting: Setting, unit: Neuron, points: int) -> Integrated:
    return integrated_drop(setting.subject, setting.part(True), setting.table, [unit], points=points)


def rows(setting: Setting, units: Sequence[Neuron]) -> Iterator[Row]:
    """Every prediction of every unit against the truth."""
    truth = Truth.of(setting, units)
    positive = setting.regime is Regime.BASELINE_POSITIVE
    target = truth.flipped if positive else truth.changed
    for name, said in predictions(setting, units):
        for index, unit in enumerate(units):
            yield _row(setting, unit, name if positive else f"{name}: changes", said(unit), target[index])
    if positive:
        return
    law = prediction(setting.subject, setting.part(True), setting.table, units=units)
    for index, unit in enumerate(units):
        labels = predicted_labels(setting.subject, setting.task, setting.part(True), *law.changes(unit))
        yield _row(setting, unit, "law, first order: outcome", labels, truth.flipped[index])


def _row(setting: Setting, unit: Neuron, name: str, said: np.ndarray, target: np.ndarray) -> Row:
    found = score(said, target)
    low, high = bootstrap_mcc(said, target, np.random.default_rng(setting.seed))
    return Row(
        model=setting.model,
        regime=setting.regime.arrow,
        unit=str(unit),
        prediction=name,
        mcc=found.mcc,
        low=low,
        high=high,
        n=found.n,
        flips=found.flips,
        predicted=found.predicted,
        status=found.status.value,
    )


def summaries(rows: Sequence[Row]) -> list[Summary]:
    """The median of each prediction, in the order of the rows."""
    kinds = dict.fromkeys((row.model, row.regime, row.prediction) for row in rows)
    found = []
    for model, regime, name in kinds:
        of = [row.mcc for row in rows if (row.model, row.regime, row.prediction) == (model, regime, name)]
        defined = [value for value in of if not np.isnan(value)]
        found.append(
            Summary(
                model=model,
                regime=regime,
                prediction=name,
                units=len(defined),
                median=median(defined) if defined else float("nan"),
                at_least_70=sum(value >= 0.7 for value in defined),
            )
        )
    return found


def cost(setting: Setting, behaviour: float) -> dict[str, float]:
    """Processor seconds a record: behaviour, and leads and drops of all units with one competitor and three."""
    records = setting.records[:256]
    found = {"behaviour": behaviour}
    for competitors in (1, 3):
        began = time.process_time()
        prediction(setting.subject, records, setting.table, competitors=competitors)
        found[f"{competitors} competitors"] = (time.process_time() - began) / len(records)
    return found


def markdown(rows: Sequence[Row]) -> str:
    """The summary table, and below it one line a unit with a column a prediction."""
    lines = [
        "| model | regime | prediction | units | median MCC | MCC ≥ .70 |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.model} | {one.regime} | {one.prediction} | {one.units} | {_two(one.median)} | {one.at_least_70} |"
        for one in summaries(rows)
    ]
    for model, regime in dict.fromkeys((row.model, row.regime) for row in rows):
        of = [row for row in rows if (row.model, row.regime) == (model, regime)]
        names = list(dict.fromkeys(row.prediction for row in of))
        lines += ["", f"{model}, {regime}, held-out records, MCC [95 % bootstrap interval]", ""]
        lines += ["| unit | records | " + " | ".join(names) + " |", "|---" * (2 + len(names)) + "|"]
        for unit in dict.fromkeys(row.unit for row in of):
            cells = {row.prediction: row for row in of if row.unit == unit}
            values = [_cell(cells[name]) for name in names]
            lines.append(f"| {unit} | {next(iter(cells.values())).n} | " + " | ".join(values) + " |")
    return "\n".join(lines) + "\n"


def _cell(row: Row) -> str:
    return f"{_two(row.mcc)} [{_two(row.low)}, {_two(row.high)}]" if not np.isnan(row.mcc) else row.status


def _two(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--basis", type=Basis)
    parser.add_argument("--regimes", type=int, nargs="+", choices=(0, 1))
    parser.add_argument("--records", type=int, default=4000)
    parser.add_argument("--units", help="comma-separated; otherwise every unit is tested on train")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    heads = given.model == "smollm2-135m"
    basis = given.basis or (Basis.ATTN_HEAD if heads else Basis.MLP_OUT)
    regimes = [Regime(value) for value in given.regimes or ((1,) if heads else (1, 0))]
    named = given.units or (SMOLLM2_HEADS if heads and basis is Basis.ATTN_HEAD else None)
    found: list[Row] = []
    costs: dict[str, float] = {}
    ranks: dict[str, float] = {}
    for setting, behaviour in settings(given.model, basis, regimes, given.records, given.seed):
        if named:
            units = [Neuron.parse(name) for name in named.split(",")]
        else:
            units, ranks[setting.regime.arrow] = agonists(setting)
        for row in rows(setting, units) if units else ():
            found.append(row)
            print(f"{row.regime} {row.unit:8} {row.prediction:44} {_cell(row)}", flush=True)
        costs = costs or cost(setting, behaviour)
    table = markdown(found)
    print(table)
    record = {
        "machine": machine(),
        "versions": versions(),
        "seed": given.seed,
        "records": given.records,
        "seconds a record": costs,
        "rank agreement of law and truth over all units (Spearman)": ranks,
        "summaries": [asdict(one) for one in summaries(found)],
        "rows": [asdict(one) for one in found],
    }
    print(json.dumps({key: value for key, value in record.items() if key != "rows"}, ensure_ascii=False))
    if given.json:
        given.json.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    if given.markdown:
        given.markdown.write_text(table)


if __name__ == "__main__":
    main()
