"""What a whole run takes of a machine: run as a script it is the fresh process that is measured.

Clean passes are forwards over a record's prompt with nothing ablated, whoever makes them; the behaviour is the first.
They are counted over the records of the run's slices, whose ablations need them.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from engine_figures import best_rate
from setting import DEFAULT, Case, Figure
from torch import Tensor

import app
from mecharule_ops.engine import rounding
from mecharule_ops.loading import generation, products
from mecharule_ops.loading.model_names import load
from mecharule_ops.passes import clean
from mecharule_ops.passes.spans import Span
from mecharule_ops.replacement import statistics
from mecharule_ops.run.live_run import Run
from mecharule_ops.store.run_directory import list_runs, runs_directory
from mecharule_ops.store.run_store import RunStore

TRIAL = (
    *("--basis", "attn_head,mlp_hidden", "--regime", "1", "--records", "300", "--set", "further=200"),
    *("--set", "rest=audited", "--set", "audit=64", "--set", "anchor_for=4", "--set", "accounts_for=2"),
    *("--set", "controls_for=4"),
)
"""`make run` on fewer records."""


def a_whole_run(case: Case = DEFAULT, options: Sequence[str] = TRIAL) -> Iterator[Figure]:
    """Peak memory and time of `make run` on fewer records, over that of its float32 products, and its clean passes."""
    command = [sys.executable, __file__, "run", "arithmetic", "-m", case.model, *options]
    command += ["--device", case.device, "--dtype", case.dtype, "--yes", "--display", "none"]
    began, before = time.perf_counter(), sum(os.times()[2:4])
    with TemporaryDirectory() as folder:
        environment = {**os.environ, "MECHARULE_RUNS": folder}
        run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    taken, used = time.perf_counter() - began, sum(os.times()[2:4]) - before
    passes, work, busy, held = json.loads(run.stdout.splitlines()[-1])
    peak = best_rate(load(case.model, case.device, case.dtype))
    times, size = peak / work, f"{work / 1e12:.1f} TFLOP, {peak / 1e9:.0f} GFLOP/s peak"
    yield Figure("peak memory of a run", held * 1024 / 1e9, "GB", case.goal("≤ 2.5 GB"))
    yield Figure("clean passes a record of the slices", passes, "", case.goal("≤ 2"))
    note = f"products by themselves {busy * times:.2f} ×; {size}"
    yield Figure("a run over its products at the matrix peak", taken * times, "×", case.goal("≤ 1.9 ×"), note)
    yield Figure("CPU seconds of a run", used, "s")


def main(arguments: Sequence[str]) -> int:
    """The program's exit code; prints how many clean passes each record of its run's slices had, on average, the
    operations and seconds of float32 products, and its own peak in KiB: `ru_maxrss` begins at its parent's."""
    passed, done = Counter[tuple[int, ...]](), dict.fromkeys(("operations", "seconds"), 0.0)
    of_spans, of_prompts, of_weights = clean.clean_pass, generation._decoded, products._product

    def over_spans(subject: Any, spans: Sequence[Span], *rest: Any) -> Any:
        passed.update(span.prompt for span in spans)
        return of_spans(subject, spans, *rest)

    def over_prompts(model: Any, norm: Any, shared: Any, prompts: list[tuple[int, ...]], *rest: Any) -> Any:
        passed.update(prompts)
        return of_prompts(model, norm, shared, prompts, *rest)

    def over_weights(hidden: Tensor, weight: Tensor, *rest: Any) -> Tensor:
        began, before = time.perf_counter(), done["seconds"]
        product = of_weights(hidden, weight, *rest)
        done["operations"] += 2 * hidden.numel() * len(weight)
        done["seconds"] = before + time.perf_counter() - began  # A product of duals has one within.
        return product

    patch.object(products, "_product", over_weights).start()
    for module in (clean, rounding, statistics):
        patch.object(module, "clean_pass", over_spans).start()
    patch.object(generation, "_decoded", over_prompts).start()
    code = app.main(arguments)
    (made,) = list_runs(runs_directory())
    with RunStore.open(made.path, read_only=True) as store:
        run = Run(store)
        places = [place for regime in run.regimes for place in run.slices(regime).positions]
        prompts = run.subject.encode([run.records[place].example.prompt for place in places])
    (held,) = re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    print([sum(passed[prompt] for prompt in prompts) / len(prompts), *done.values(), int(held)])
    return code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
