"""Figures of searches, rules and whole runs; the engine's own are in `engine_figures`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from engine_figures import ZERO, searched
from setting import SLICE, SMOLLM2, Figure, seconds, setting

from mecharule_ops.cha.settings import ChaSettings
from mecharule_ops.predicates.table import build_table
from mecharule_ops.rules.ruleshap import learn_rule
from mecharule_ops.tasks.registry import preset
from mecharule_ops.types import Basis, Intervention, Neuron

MASSIVE = {"m10.507", "m0.308", "m13.247"}
"""The massive-activation channels of SmolLM2 that flip most when they are set to zero."""
SAME_RUN = (
    "run arithmetic -m smollm2-135m --basis attn_head --regime 1 --budget 60 --yes --display none "
    "--set controls_for=0 --set anchor_for=0 --set audit=0 --set records=700 --set ig_steps=5"
)


def exhaustive_tiny() -> Iterator[Figure]:
    """Every mlp_out channel of the bundled model, both slices, one regime."""
    given = setting("arith-tiny", True)
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


def search_smollm2() -> Iterator[Figure]:
    """CHA over every layer of mlp_out with zero replacement, correct answers."""
    given = setting(SMOLLM2, True)
    fast, loop = given.engines(ZERO)
    settings = ChaSettings(n_associated=SLICE, n_unrelated=SLICE)
    began = time.perf_counter()
    trees = searched(fast, given, range(given.subject.n_layers), settings)
    taken = time.perf_counter() - began
    found = [agonist for tree in trees for agonist in tree.agonists(Basis.MLP_OUT) if agonist.is_tau_agonist]
    names = {str(agonist.neuron) for agonist in found}
    forwards, units = sum(tree.example_forwards for tree in trees), sum(tree.units for tree in trees)
    unit = (Neuron(Basis.MLP_OUT, 14, 0),)
    slow = seconds(lambda: loop.evaluate([unit], given.examples)) / (2 * SLICE) * forwards
    note = (
        f"{forwards / (units * 2 * SLICE):.1%} of exhaustive forwards; found {', '.join(sorted(names & MASSIVE))} and "
        f"{len(names - MASSIVE)} more; {slow / taken:.1f}× the hooked loop at the same forwards"
    )
    yield Figure("CHA of smollm2-135m mlp_out zero, 30 layers", taken, "s", "≤ 240 s", note)


def rules() -> Iterator[Figure]:
    """Predicates and RuleSHAP on 10,000 synthetic records."""
    generator = np.random.default_rng(0)
    matrix = generator.random((10_000, 100)) < generator.uniform(0.1, 0.9, 100)
    target = (matrix[:, 0] & matrix[:, 1]) | (matrix[:, 2] & ~matrix[:, 3])
    target ^= generator.random(10_000) < 0.1
    names = [f"x >= {index}" for index in range(100)]
    taken = seconds(lambda: learn_rule(matrix, names, target, seed=0))
    yield Figure("RuleSHAP, 10,000 records × 100 predicates", taken, "s", "≤ 10 s")
    task = preset("arithmetic", "arith-tiny")
    columns = {name: generator.integers(0, 300, 10_000) for name in ("a", "b")}
    texts = [text for text in task.seed_predicates() if "op" not in text and "expected" not in text][:100]
    right = columns["a"] + columns["b"] < 300
    taken = seconds(lambda: build_table(texts, columns, right, np.ones(10_000, bool)))
    yield Figure(f"predicate table, 10,000 records × {len(texts)} texts", taken, "s", "≤ 10 s")


def whole_run() -> Iterator[Figure]:
    """A run of the command cut to 60 group ablations, by the engine and by the plain path: wall clock of each."""
    ours, theirs = (_wall_clock(engine) for engine in ("fast", "plain"))
    yield Figure(
        "a run over the same run by the plain path",
        ours / theirs,
        "",
        "≤ 0.40",
        f"{ours:.0f} s, {theirs:.0f} s",
    )


def _wall_clock(engine: str) -> float:
    """Seconds of the command in an empty runs directory; its budget ends it with exit code 5."""
    with TemporaryDirectory() as folder:
        command = [
            str(Path(sys.executable).parent / "mecharule"),
            *SAME_RUN.split(),
            "--set",
            f"engine={engine}",
        ]
        began = time.perf_counter()
        done = subprocess.run(
            command, env={**os.environ, "MECHARULE_RUNS": folder}, capture_output=True, text=True, check=False
        )
        if done.returncode not in (0, 5):
            raise SystemExit(f"expected exit code 0 or 5, got {done.returncode}: {done.stderr[-300:]}")
        return time.perf_counter() - began
