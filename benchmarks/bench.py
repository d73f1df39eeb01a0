"""Times the parts of a run and prints one table: what was measured, the goal, and the ratio it stands on.

Speeds are ratios of two things measured in this process, one after the other; a bare time is the median of three
and stands beside its ratio. Goals are those of the project's issues; a figure that misses its goal is printed too.

    python benchmarks/bench.py [--json benchmarks/results.json] [--only SECTION …] [--list]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np
import torch

from mecharule_ops.ablation import AblationEngine
from mecharule_ops.behaviour import Behaviour, observe
from mecharule_ops.cha.search import ChaSearch
from mecharule_ops.cha.settings import ChaSettings
from mecharule_ops.pipeline.summing_up import versions
from mecharule_ops.predicates.table import build_table
from mecharule_ops.rules.ruleshap import RuleShapSettings, learn_rule
from mecharule_ops.subject.baselines import ReplacementTable, replacement_table
from mecharule_ops.subject.model import Subject
from mecharule_ops.subject.products import through_onednn
from mecharule_ops.subject.reference import ReferenceEngine
from mecharule_ops.subject.registry import load
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.registry import preset
from mecharule_ops.types import (
    Baseline,
    Basis,
    FlipCount,
    FlipEstimate,
    GroupAnswer,
    GroupQuery,
    Intervention,
    LayerCandidates,
    Neuron,
    Regime,
)

SLICE = 64
"""Examples a slice, two slices."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    figure: str
    value: float
    unit: str
    goal: str
    note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Bench:
    """A model, its observed behaviour and 64 + 64 examples of one label."""

    subject: Subject
    task: Task
    behaviour: Behaviour
    examples: list[int]

    def engines(self, intervention: Intervention) -> tuple[AblationEngine, ReferenceEngine, ReplacementTable]:
        records = self.behaviour.records
        table = replacement_table(self.subject, records, intervention)
        fast = AblationEngine(self.subject, self.task, records, intervention, table)
        return fast, ReferenceEngine(self.subject, self.task, records, intervention, table), table


@cache
def bench(model: str, label: bool) -> Bench:
    """Behaviour on enough records to fill both slices with answers of one label."""
    subject, task = load(model), preset("arithmetic", model)
    behaviour = observe(task, subject, task.examples(700, np.random.default_rng(0)))
    chosen = np.flatnonzero(behaviour.labels == label)[: 2 * SLICE].tolist()
    return Bench(subject, task, behaviour, chosen)


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """Median wall time of a call, after one that is not counted."""
    work()
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return median(taken)


def evaluation() -> Iterator[Figure]:
    """One exact group evaluation against the hooked decoding loop over a cached prompt, 64 + 64 correct answers."""
    setting = bench("smollm2-135m", True)
    fast, plain, _ = setting.engines(Intervention(basis=Basis.MLP_OUT, baseline=Baseline.ZERO))
    generator = np.random.default_rng(0)
    for layer, goal in ((2, "≥ 2.5×"), (14, "≥ 4.5×"), (28, "≥ 12×")):
        groups = [
            tuple(Neuron(Basis.MLP_OUT, layer, int(c)) for c in generator.choice(576, size, replace=False))
            for size in (1, 1, 2, 4, 8, 16, 32, 64)
        ]
        slow = seconds(lambda groups=groups: plain.evaluate(groups[:2], setting.examples)) / 2
        quick = seconds(lambda groups=groups: fast.evaluate(groups, setting.examples)) / len(groups)
        same = (
            fast.completions(groups[:2], setting.examples).tokens
            == plain.completions(groups[:2], setting.examples).tokens
        )
        note = f"{quick:.3f} s against {slow:.2f} s; completions {'equal' if same else 'DIFFER'}"
        yield Figure(f"evaluation of one group, layer {layer}", slow / quick, "×", goal, note)


def matrix_peak() -> Iterator[Figure]:
    """Work of the blocks above layer 2, unembedding left out, as a share of a large product's best rate."""
    setting = bench("smollm2-135m", True)
    fast, _, _ = setting.engines(Intervention(basis=Basis.MLP_OUT, baseline=Baseline.ZERO))
    groups = [(Neuron(Basis.MLP_OUT, 2, channel),) for channel in range(8)]
    taken = seconds(lambda: fast.evaluate(groups, setting.examples)) / len(groups)
    records = [setting.behaviour.records[example] for example in setting.examples]
    positions = sum(max(0, len(record.tokens) - 1) for record in records)
    blocks = list(setting.subject.wiring.blocks(setting.subject.hf))[3:]
    weights = sum(p.numel() for block in blocks for p in block.parameters() if p.ndim == 2)
    a, b = torch.randn(4096, 2048), torch.nn.Linear(2048, 2048, bias=False)
    with torch.inference_mode():
        plain_product = seconds(lambda: b(a))
        with through_onednn(b):
            product = min(plain_product, seconds(lambda: b(a)))
    peak = 2 * 4096 * 2048 * 2048 / product
    share = 2 * positions * weights / taken / peak
    yield Figure(
        "share of the float32 matrix peak, layer 2", share, "", "≥ 0.60", f"{peak / 1e9:.0f} GFLOP/s peak"
    )


def exhaustive_tiny() -> Iterator[Figure]:
    """Every mlp_out channel of the bundled model, both slices, one regime."""
    setting = bench("arith-tiny", True)
    fast, plain, _ = setting.engines(Intervention(basis=Basis.MLP_OUT))
    units = [
        (Neuron(Basis.MLP_OUT, layer, channel),)
        for layer in range(setting.subject.n_layers)
        for channel in range(setting.subject.width(Basis.MLP_OUT))
    ]
    quick = seconds(lambda: fast.evaluate(units, setting.examples))
    slow = seconds(lambda: plain.evaluate(units[:8], setting.examples)) / 8 * len(units)
    yield Figure(
        "exhaustive mlp_out of arith-tiny", quick, "s", "≤ 20 s", f"{slow / quick:.1f}× the plain path"
    )


def search_smollm2() -> Iterator[Figure]:
    """CHA over every layer of mlp_out with zero replacement, correct answers."""
    setting = bench("smollm2-135m", True)
    fast, _, _ = setting.engines(Intervention(basis=Basis.MLP_OUT, baseline=Baseline.ZERO))
    settings = ChaSettings(n_associated=SLICE, n_unrelated=SLICE)
    width = setting.subject.width(Basis.MLP_OUT)
    began, forwards, found = time.perf_counter(), 0, []
    for layer in range(setting.subject.n_layers):
        candidates = LayerCandidates(layer=layer, channels=np.arange(width), scores=np.zeros(width))
        search = ChaSearch(candidates, settings=settings, regime=Regime.BASELINE_POSITIVE)
        while queries := search.ask():
            for query in queries:
                search.tell(_answer(fast, setting.examples, query))
        forwards += search.tree.example_forwards
        found += [a for a in search.tree.agonists(Basis.MLP_OUT) if a.is_tau_agonist]
    taken = time.perf_counter() - began
    names = {str(agonist.neuron) for agonist in found}
    wanted = {"m10.507", "m0.308", "m13.247"}
    share = forwards / (setting.subject.n_layers * width * 2 * SLICE)
    seen = ", ".join(sorted(names & wanted))
    note = f"{share:.1%} of exhaustive forwards; found {seen} and {len(names - wanted)} more"
    yield Figure("CHA of smollm2-135m mlp_out zero, 30 layers", taken, "s", "≤ 240 s", note)


def _answer(engine: AblationEngine, examples: Sequence[int], query: GroupQuery) -> GroupAnswer:
    parts = [list(examples[begin : begin + SLICE])[query.begin : query.end] for begin in (0, SLICE)]
    group = tuple(Neuron(Basis.MLP_OUT, query.layer, channel) for channel in query.channels)
    flips = ~engine.evaluate([group], [*parts[0], *parts[1]]).labels[0]
    counts = np.split(flips, [len(parts[0])])
    associated, unrelated = (FlipCount(flips=int(part.sum()), n=len(part)) for part in counts)
    return GroupAnswer(node=query.node, estimate=FlipEstimate(associated=associated, unrelated=unrelated))


def rules() -> Iterator[Figure]:
    """Predicates and RuleSHAP on 10,000 synthetic records."""
    generator = np.random.default_rng(0)
    matrix = generator.random((10_000, 100)) < generator.uniform(0.1, 0.9, 100)
    target = (matrix[:, 0] & matrix[:, 1]) | (matrix[:, 2] & ~matrix[:, 3])
    target ^= generator.random(10_000) < 0.1
    names = [f"x >= {index}" for index in range(100)]
    taken = seconds(lambda: learn_rule(matrix, names, target, settings=RuleShapSettings(), seed=0))
    yield Figure("RuleSHAP, 10,000 records × 100 predicates", taken, "s", "≤ 10 s")
    task = preset("arithmetic", "arith-tiny")
    columns = {name: generator.integers(0, 300, 10_000) for name in ("a", "b")}
    texts = [text for text in task.seed_predicates() if "op" not in text and "expected" not in text][:100]
    right = columns["a"] + columns["b"] < 300
    taken = seconds(lambda: build_table(texts, columns, right, np.ones(10_000, bool)))
    yield Figure(f"predicate table, 10,000 records × {len(texts)} texts", taken, "s", "≤ 10 s")


SECTIONS: dict[str, Callable[[], Iterator[Figure]]] = {
    "rules": rules,
    "exhaustive-tiny": exhaustive_tiny,
    "evaluation": evaluation,
    "matrix-peak": matrix_peak,
    "search-smollm2": search_smollm2,
}


def machine() -> dict[str, object]:
    """The class of the machine, without its name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine()
    )
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "system": platform.system(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="*", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(f"{name:18} {section.__doc__}" for name, section in SECTIONS.items()))
        return
    figures = []
    print(f"{'figure':52} {'value':>10} {'goal':>9}  note", flush=True)
    for name in arguments.only:
        for figure in SECTIONS[name]():
            figures.append(figure)
            value = f"{figure.value:.2f} {figure.unit}"
            print(f"{figure.figure:52} {value:>10} {figure.goal:>9}  {figure.note}", flush=True)
    if arguments.json:
        record = {
            "machine": machine(),
            "versions": versions(),
            "figures": [asdict(figure) for figure in figures],
        }
        arguments.json.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
