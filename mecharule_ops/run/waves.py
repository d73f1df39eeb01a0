"""How long a recorded search would take with any number of workers: a simulation of `dealing`, with measured costs.

The waves of the search are asked once more of what is stored, and what their parts cost is measured on the model here.
Each wave is cut as workers would get it; whoever is free first takes the next part; a wave begins when the former one
has been answered and told. So what does not spread is seen: waves with fewer parts than workers, the longest part at
the end of each, clean passes that every worker makes for itself, and what the one process that asks does in between.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool

from mecharule_ops.engine.group_questions import GroupQuestion
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.localise import driver_of
from mecharule_ops.store.stored_engine import Cost, StoredEngine
from mecharule_ops.types import Basis, Neuron, Regime
from mecharule_ops.workers.assignment import WorkerShare
from mecharule_ops.workers.dealing import cut

HANDOVER = 0.0015
"""Seconds to hand a part over and its answer back: an empty call of a Ray actor on one machine, the mean of fifty."""
SIZES = ((1, 1), (1, 16), (8, 16), (16, 32))
"""(groups, examples) that are timed, each in the first, the middle and the last layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Seconds, measured on the model."""

    part: float
    """A part, whatever it holds, its handing over included."""
    pair: float
    """A pair, whatever the layer."""
    layer: float
    """A pair and layer from the ablated one up."""
    clean: float
    """The clean pass over an example, made by each worker that has not seen it."""
    layers: int
    """Of the model."""

    def of(self, part: WorkerShare, unseen: int) -> float:
        """What a part takes a worker that has not seen so many of its examples."""
        above = [self.layers - min(unit.layer for unit in group) for group in part.groups]
        ablated = len(part.columns) * sum(self.pair + self.layer * height for height in above)
        return self.part + self.clean * unseen + ablated


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Questions that were open together."""

    questions: tuple[GroupQuestion, ...]
    telling: float = 0.0
    """Seconds that the process that asks took to enter the answers and ask anew; workers answer meanwhile."""

    @property
    def pairs(self) -> int:
        """Example-forwards that it takes at least."""
        return sum(question.pairs for question in self.questions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What so many workers would take."""

    workers: int
    seconds: float
    speedup: float
    """Over one worker."""
    starved: int
    """Waves that had fewer parts than there are workers."""
    telling: int
    """Waves that the process that asks held up."""


def planned(waves: Sequence[Wave], costs: Costs, workers: Sequence[int]) -> list[Planned]:
    """The plan for each number of workers, in the order given."""
    alone, _, _ = _simulated(waves, costs, 1)
    found = []
    for count in workers:
        seconds, starved, telling = _simulated(waves, costs, count)
        speedup = alone / seconds if seconds else 1.0
        found.append(
            Planned(workers=count, seconds=seconds, speedup=speedup, starved=starved, telling=telling)
        )
    return found


def merged(waves: Sequence[Wave]) -> list[Wave]:
    """Two waves asked as one each: the most that asking ahead of one verdict could widen them."""
    return [
        Wave(
            questions=tuple(question for wave in waves[begin : begin + 2] for question in wave.questions),
            telling=sum(wave.telling for wave in waves[begin : begin + 2]),
        )
        for begin in range(0, len(waves), 2)
    ]


def _simulated(waves: Sequence[Wave], costs: Costs, workers: int) -> tuple[float, int, int]:
    """(seconds, waves with too few parts, waves held up by the telling)."""
    seen: list[set[int]] = [set() for _ in range(workers)]
    seconds, starved, telling = 0.0, 0, 0
    for wave in waves:
        parts = cut(wave.questions, workers)
        answered = _answered(parts, costs, seen)
        starved += len(parts) < workers
        telling += wave.telling > answered
        seconds += max(answered, wave.telling)
    return seconds, starved, telling


def _answered(parts: Sequence[WorkerShare], costs: Costs, seen: list[set[int]]) -> float:
    """When the last part of a wave is answered; `seen` are each worker's examples, and grow."""
    free = [(0.0, worker) for worker in range(len(seen))]
    ends = 0.0
    for part in parts:
        began, worker = heapq.heappop(free)
        unseen = set(part.examples) - seen[worker]
        seen[worker] |= unseen
        done = began + costs.of(part, len(unseen))
        ends = max(ends, done)
        heapq.heappush(free, (done, worker))
    return ends


@dataclass(slots=True)
class _Recorder:
    """A stored engine that notes the waves it is asked, and when."""

    inner: StoredEngine
    clock: Callable[[], float]
    asked: list[tuple[float, tuple[GroupQuestion, ...]]] = field(default_factory=list)

    @property
    def cost(self) -> Cost:
        return self.inner.cost

    def answered(
        self, wave: Sequence[GroupQuestion]
    ) -> Iterator[tuple[int, Bool[np.ndarray, "group record"]]]:
        self.asked.append((self.clock(), tuple(wave)))
        yield from self.inner.answered(wave)


def recorded_waves(run: Run, basis: Basis, regime: Regime, clock: Callable[[], float]) -> list[Wave]:
    """The waves that workers would have been asked, with the seconds between them. No model call.

    Raises `StoreError` where the search did not come to its end.
    """
    candidates, slices = run.candidates(basis, regime), run.slices(regime)
    recorder = _Recorder(run.stored_only(run.intervention(basis)), clock)
    driver = replace(driver_of(run, basis, slices), engine=recorder, width=2, budget=None, ahead=False)
    for _ in driver.run(run.recorded_plan(basis, regime).searches(candidates, regime)):
        pass
    ends = [*(began for began, _ in recorder.asked[1:]), clock()]
    return [
        Wave(questions=questions, telling=end - began)
        for (began, questions), end in zip(recorder.asked, ends, strict=True)
    ]


def measured_costs(run: Run, basis: Basis, regime: Regime, clock: Callable[[], float]) -> Costs:
    """What parts cost in this process, on this device. Cost: some thousand example-forwards at most.

    Fitted to the times of `SIZES` by non-negative least squares, each weighted by its own time; the clean pass is what
    the first look at some examples takes longer than the second.
    """
    from scipy.optimize import nnls

    engine, examples = run.completer(run.intervention(basis)), run.slices(regime).positions
    layers = [layer.layer for layer in run.candidates(basis, regime).layers]
    depth, width = run.sizes(basis, regime)

    def timed(layer: int, groups: int, some: Sequence[int]) -> float:
        units = [(Neuron(basis, layer, channel % width),) for channel in range(groups)]
        began = clock()
        engine.evaluate(units, some)
        return clock() - began

    cold = timed(layers[-1], 1, examples)
    clean = max(0.0, cold - timed(layers[-1], 1, examples)) / len(examples)
    rows, times = [], []
    for layer in sorted({layers[0], layers[len(layers) // 2], layers[-1]}):
        for groups, wanted in SIZES:
            some = examples[:wanted]
            timed(layer, groups, some)
            seconds, pairs = timed(layer, groups, some), groups * len(some)
            rows.append([1 / seconds, pairs / seconds, pairs * (depth - layer) / seconds])
            times.append(1.0)
    part, pair, above = nnls(np.array(rows), np.array(times))[0].tolist()
    return Costs(part=part + HANDOVER, pair=pair, layer=above, clean=clean, layers=depth)
