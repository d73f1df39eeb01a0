"""Figures of searches, rules and whole runs; the engine's own are in `engine_figures`."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from engine_figures import ZERO, searched
from setting import DEFAULT, SMOLLM2, Case, Figure, seconds, setting

from mecharule_ops.predicates.cuts import PredicateColumns
from mecharule_ops.predicates.table import build_table
from mecharule_ops.rules.ruleshap import learn_rule
from mecharule_ops.tasks.task_names import make_task, settings_for
from mecharule_ops.types import Basis, Intervention, Neuron

MASSIVE = {"m10.507", "m0.308", "m13.247"}
"""The massive-activation channels of SmolLM2 that flip most when they are set to zero."""


def exhaustive_tiny(case: Case = DEFAULT) -> Iterator[Figure]:
    """Every mlp_out channel of the bundled model, both slices, one regime."""
    given = setting(replace(case, model="arith-tiny"), True)
    fast, loop = given.engines(Intervention(basis=Basis.MLP_OUT))
    units = [
        (Neuron(Basis.MLP_OUT, layer, channel),)
        for layer in range(given.subject.n_layers)
        for channel in range(given.subject.width(Basis.MLP_OUT))
    ]
    quick = seconds(lambda: fast.evaluate(units, given.examples))
    slow = seconds(lambda: loop.evaluate(units[:8], given.examples)) / 8 * len(units)
    note = f"{slow / quick:.1f}× the hooked loop"
    yield Figure("exhaustive mlp_out of arith-tiny", quick, "s", "≤ 20 s", note)


def search(case: Case = DEFAULT) -> Iterator[Figure]:
    """CHA over every layer of mlp_out with zero replacement, correct answers."""
    given = setting(case, True)
    fast, loop = given.engines(ZERO)
    began = time.perf_counter()
    trees = searched(fast, given, range(given.subject.n_layers))
    taken = time.perf_counter() - began
    found = [agonist for tree in trees for agonist in tree.agonists(Basis.MLP_OUT) if agonist.is_tau_agonist]
    names = {str(agonist.neuron) for agonist in found}
    forwards, units = sum(tree.example_forwards for tree in trees), sum(tree.units for tree in trees)
    unit, pairs = (Neuron(Basis.MLP_OUT, given.depths[1], 0),), len(given.examples)
    slow = seconds(lambda: loop.evaluate([unit], given.examples)) / pairs * forwards
    known = sorted(names & MASSIVE) if case.model == SMOLLM2 else []
    found_here = (
        f"found {', '.join(known)} and {len(names) - len(known)} more" if known else f"found {len(names)}"
    )
    note = (
        f"{forwards / (units * pairs):.1%} of exhaustive forwards; {found_here}; {slow / taken:.1f}× the hooked loop "
        "at the same forwards"
    )
    label = f"CHA of {case.model} mlp_out zero, {given.subject.n_layers} layers"
    yield Figure(label, taken, "s", case.goal("≤ 240 s"), note)


def rules() -> Iterator[Figure]:
    """Predicates and RuleSHAP on 10,000 synthetic records."""
    generator = np.random.default_rng(0)
    matrix = generator.random((10_000, 100)) < generator.uniform(0.1, 0.9, 100)
    target = (matrix[:, 0] & matrix[:, 1]) | (matrix[:, 2] & ~matrix[:, 3])
    target ^= generator.random(10_000) < 0.1
    names = [f"x >= {index}" for index in range(100)]
    taken = seconds(lambda: learn_rule(PredicateColumns(texts=tuple(names), matrix=matrix), target, seed=0))
    yield Figure("RuleSHAP, 10,000 records × 100 predicates", taken, "s", "≤ 10 s")
    task = make_task("arithmetic", **settings_for("arithmetic", "arith-tiny"))
    columns = {name: generator.integers(0, 300, 10_000) for name in ("a", "b")}
    texts = [text for text in task.seed_predicates() if "op" not in text and "expected" not in text][:100]
    right = columns["a"] + columns["b"] < 300
    taken = seconds(lambda: build_table(texts, columns, right, np.ones(10_000, bool)))
    yield Figure(f"predicate table, 10,000 records × {len(texts)} texts", taken, "s", "≤ 10 s")


def wall_clock(case: Case, options: Sequence[str], runs: Path) -> float:
    """Seconds of `mecharule run arithmetic` on correct answers with these options, its run file in `runs`."""
    command = [str(Path(sys.executable).parent / "mecharule"), "run", "arithmetic", "-m", case.model]
    command += ["--device", case.device, "--dtype", case.dtype, "--regime", "1", "--yes", "--display", "none"]
    began = time.perf_counter()
    done = subprocess.run(
        [*command, *options],
        env={**os.environ, "MECHARULE_RUNS": str(runs)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"expected exit code 0, got {done.returncode}: {done.stderr[-300:]}")
    return time.perf_counter() - began
