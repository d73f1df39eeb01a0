"""How long an ablation takes on this model, task and basis, from a few of them: what a price in seconds rests on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from mecharule_ops.codec import encode
from mecharule_ops.config import RunConfig
from mecharule_ops.engine.behaviour import behaviour_on
from mecharule_ops.run.live_run import Run
from mecharule_ops.store import keys
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.types import Basis, Neuron

RECORDS = 32
"""Examples that are observed, then ablated."""
LAYERS, UNITS = 6, 4
"""Layers, evenly over the model, and units of each that are ablated; the first ablation warms up and is not timed."""


def measured_pace(config: RunConfig, clock: Callable[[], float]) -> Mapping[Basis, float]:
    """Seconds an example-forward of each basis of a run, measured now; nothing is kept.

    Cost: loads the model, completes `RECORDS` prompts, 25 ablations of each basis. Raises what a run raises.
    """
    with (
        TemporaryDirectory() as folder,
        RunStore.create(
            Path(folder) / "pace.mecharule", {"run": "pace", "settings": config.model_dump(mode="json")}
        ) as store,
    ):
        run = Run(store)
        examples = run.task.examples(RECORDS, np.random.default_rng(config.seed))
        behaviour = behaviour_on(run.task, run.subject, examples)
        store.put(keys.RECORDS, [encode(record) for record in behaviour.records])
        store.put(keys.TRAIN, np.ones(len(behaviour.records), bool))
        return {basis: _pace(run, basis, clock) for basis in config.bases}


def _pace(run: Run, basis: Basis, clock: Callable[[], float]) -> float:
    layers = np.unique(np.linspace(0, run.subject.n_layers - 1, LAYERS).astype(int)).tolist()
    units = [
        (Neuron(basis, layer, unit),)
        for unit in range(min(UNITS, run.subject.width(basis)))
        for layer in layers
    ]
    engine, everything = run.completer(run.intervention(basis)), range(len(run.records))
    engine.evaluate(units[:1], everything)
    began = clock()
    forwards = engine.evaluate(units, everything).example_forwards
    return (clock() - began) / max(1, forwards)
