"""How fast a recorded search would have been with more workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise, product
from time import perf_counter

from mecharule_ops.errors import UsageError
from mecharule_ops.numbers import plural
from mecharule_ops.run.opening import opened
from mecharule_ops.run.waves import (
    Costs,
    Planned,
    Wave,
    measured_costs,
    merged,
    planned,
    recorded_waves,
)
from mecharule_ops.types import Basis, Regime
from tools.arguments import PlanArguments
from tools.registry import Tell, ToolResult

FLAT = 1.2
"""A curve is flat where twice the workers are less than this much faster."""


def plan(given: PlanArguments, tell: Tell) -> ToolResult:
    """The planned speed-up of each of the run's searches. Cost: loads the model, some thousand example-forwards.

    Raises `UsageError` for numbers of workers that are none, `StoreError` for a search that was cut short.
    """
    counts = _counts(given.workers)
    found = []
    with opened(given.run, tell=tell) as run:
        for basis, regime in product(run.config.bases, run.regimes):
            waves = recorded_waves(run, basis, regime, perf_counter)
            tell(f"{_name(basis, regime)}: measuring what a part costs on this machine")
            costs = measured_costs(run, basis, regime, perf_counter)
            curve, wider = planned(waves, costs, counts), planned(merged(waves), costs, counts)
            kind = run.recorded_plan(basis, regime).kind.value
            found.append((f"{_name(basis, regime)}, {kind} search", waves, costs, curve, wider))
        name = run.id
    return ToolResult(
        data={
            "run": name,
            "searches": [
                {
                    "search": search,
                    "waves": len(waves),
                    "pairs": sum(wave.pairs for wave in waves),
                    "costs": asdict(costs),
                    "curve": [asdict(each) for each in curve],
                    "two_waves_at_once": [asdict(each) for each in wider],
                }
                for search, waves, costs, curve, wider in found
            ],
        },
        text="\n\n".join("\n".join(_lines(*each)) for each in found),
    )


def _counts(text: str) -> list[int]:
    try:
        counts = [int(word) for word in text.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1 or max(counts) > 4096:
        raise UsageError(f"expected numbers of workers from 1 to 4096 with commas, got {text!r}")
    return sorted(set(counts))


def _name(basis: Basis, regime: Regime) -> str:
    return f"{basis.value} {regime.arrow}"


def _lines(
    search: str, waves: Sequence[Wave], costs: Costs, curve: Sequence[Planned], wider: Sequence[Planned]
) -> list[str]:
    pairs = [wave.pairs for wave in waves]
    lowest, highest = (1000 * (costs.pair + costs.layer * above) for above in (costs.layers, 1))
    return [
        f"{search}: {len(waves)} waves of {min(pairs, default=0):,} to {max(pairs, default=0):,} example-forwards, "
        f"{sum(pairs):,} in all",
        f"a part takes {1000 * costs.part:.1f} ms, a unit on an example {highest:.2f} ms in the last layer and "
        f"{lowest:.2f} in the first, a clean pass {1000 * costs.clean:.1f} ms an example",
        "workers    seconds   speed-up   waves with too few parts",
        *(f"{one.workers:7}  {one.seconds:9.1f}  {one.speedup:8.1f}×  {one.starved:25}" for one in curve),
        _flattens(curve),
        _widens(curve[-1], wider[-1], len(waves)),
        "replayed from the run file with costs measured here; starting workers and loading their models is left out",
    ]


def _flattens(curve: Sequence[Planned]) -> str:
    for one, other in pairwise(curve):
        # As if from one to twice as many, whatever the step.
        steps = (other.workers / one.workers - 1) or 1
        if (other.speedup / one.speedup - 1) / steps < FLAT - 1:
            faster = f"{other.workers} are {other.speedup / one.speedup:.2f} × as fast"
            return f"it flattens at {plural(one.workers, 'worker')}: {faster}"
    return f"it does not flatten up to {plural(curve[-1].workers, 'worker')}"


def _widens(last: Planned, wider: Planned, waves: int) -> str:
    faster = last.seconds / wider.seconds
    gain = f"with {plural(last.workers, 'worker')}, two waves asked at once would be {faster:.2f} × as fast"
    if last.telling * 2 > waves:
        return f"{gain}; {last.telling} of {waves} waves wait for the one process that asks, which no wider wave mends"
    if last.starved:
        return (
            f"{gain}; {last.starved} of {waves} waves are too narrow: larger slices (`--set slice_size=N`), more "
            "layers or bases in one search, or `--search exhaustive` widen them"
        )
    return f"{gain}; every wave has a part for each worker"
