"""The waves of a recorded search, asked once more of what is stored, and what its parts cost on the model here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool

from mecharule_ops.engine.asking import Question
from mecharule_ops.pipeline.localise import drive_of
from mecharule_ops.pipeline.planning import SearchKind, SearchPlan
from mecharule_ops.pipeline.run import Run
from mecharule_ops.store.stored_engine import Cost, StoredEngine
from mecharule_ops.types import Basis, Neuron, Regime
from mecharule_ops.workers.schedule import HANDOVER, Costs, Wave

SIZES = ((1, 1), (1, 16), (8, 16), (16, 32))
"""(groups, examples) that are timed, each in the first, the middle and the last layer."""


@dataclass(slots=True)
class _Recorder:
    """A stored engine that notes the waves it is asked, and when."""

    inner: StoredEngine
    clock: Callable[[], float]
    asked: list[tuple[float, tuple[Question, ...]]] = field(default_factory=list)

    @property
    def cost(self) -> Cost:
        return self.inner.cost

    def answered(self, wave: Sequence[Question]) -> Iterator[tuple[int, Bool[np.ndarray, "group record"]]]:
        self.asked.append((self.clock(), tuple(wave)))
        yield from self.inner.answered(wave)


def recorded_plan(run: Run, basis: Basis, regime: Regime) -> SearchPlan:
    """How a search of the run was made, from what is stored: guided where first order was asked."""
    settings, predictions = run.search_settings(regime), run.predictions(basis, regime)
    kind = SearchKind(run.config.search)
    if run.config.parity or (kind is SearchKind.GUIDED and not predictions):
        kind = SearchKind.CHA
    if kind is not SearchKind.GUIDED:
        return SearchPlan(kind=kind, settings=settings)
    return SearchPlan(kind=kind, settings=settings, predictions=predictions)


def recorded_waves(run: Run, basis: Basis, regime: Regime, clock: Callable[[], float]) -> list[Wave]:
    """The waves that workers would have been asked, with the seconds between them. No model call.

    Raises `StoreError` where the search did not come to its end.
    """
    candidates, slices = run.candidates(basis, regime), run.slices(regime)
    recorder = _Recorder(run.stored_only(run.intervention(basis)), clock)
    drive = replace(drive_of(run, basis, slices), engine=recorder, width=2, budget=None, ahead=False)
    for _ in drive.run(recorded_plan(run, basis, regime).searches(candidates, regime)):
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
    depth = run.attribution(basis, regime).shape[0]
    width = run.attribution(basis, regime).shape[1]

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
