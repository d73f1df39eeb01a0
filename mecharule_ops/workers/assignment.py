"""What a worker must know to answer questions about one intervention, and what it gives back; no model, no Ray."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np

from mecharule_ops.engine.group_questions import EngineOutcomes, Group
from mecharule_ops.types import BehaviourRecord, Intervention


@dataclass(frozen=True, kw_only=True, eq=False)
class Assignment:
    """One intervention on one model and its records."""

    settings: str
    """The run's settings as JSON: model, task and how it is computed."""
    device: str
    """Kind of device: `cpu`, `cuda` or `mps`, that of the run's own model."""
    cards: int = 0
    """CUDA cards that the run's own model lies on, and that each worker needs."""
    dtype: str
    model_hash: str
    """Of the run's own model; a worker that reads another one refuses."""
    tokenizer_hash: str
    records: tuple[BehaviourRecord, ...]
    """What the unablated model did; questions name examples by their places here."""
    intervention: Intervention
    replacement: Mapping[str, np.ndarray]
    """The replacement table taken apart into arrays."""
    slope: float | None
    """Below which lead outcomes are decided again; None where all products are float32."""

    @cached_property
    def key(self) -> str:
        """Names the assignment by what can differ inside one run."""
        text = f"{self.settings} {self.intervention!r} {len(self.records)} {self.slope}"
        return sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerShare:
    """What one worker is asked at once: some groups of one question on some of its examples."""

    question: int
    """Place in the wave."""
    rows: tuple[int, ...]
    """Places of the groups in the question."""
    columns: tuple[int, ...]
    """Places of the examples in the question."""
    groups: tuple[Group, ...]
    examples: tuple[int, ...]
    losses: int = 0
    """How many workers were lost while they held it, or a larger part with it."""

    @property
    def pairs(self) -> int:
        """Example-forwards that it takes at least."""
        return len(self.rows) * len(self.columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Done:
    """A part as a worker answered it."""

    outcomes: EngineOutcomes
    seconds: float
    """What it took the worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A part that a worker could not answer and survived."""

    out_of_memory: bool
    """Then a smaller part may be answered."""
    sentence: str
    exit_code: int
