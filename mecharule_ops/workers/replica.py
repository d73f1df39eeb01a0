"""What one worker does: it holds one copy of the model and an engine for each assignment, and answers parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import torch

from mecharule_ops.config import RunConfig
from mecharule_ops.engine.ablation import AblationEngine
from mecharule_ops.engine.group_questions import Answer, Engine, GroupQuestion
from mecharule_ops.engine.reference import ReferenceEngine
from mecharule_ops.errors import ModelUnavailable
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.model_names import load
from mecharule_ops.replacement.table_files import table_from
from mecharule_ops.tasks.task_names import task_of
from mecharule_ops.types import BehaviourRecord, Intervention


@dataclass(frozen=True, kw_only=True, eq=False)
class Assignment:
    """One intervention on one model and its records: what a worker must know to answer as the run's own process."""

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


class Part(NamedTuple):
    """Some groups of one question of a wave on some of its examples, which one worker is asked at once."""

    place: int
    """The question's."""
    rows: tuple[int, ...]
    """Places of the groups in the question."""
    columns: tuple[int, ...]
    """Places of the examples in the question."""
    question: GroupQuestion
    """About these alone."""


@dataclass(eq=False)
class Replica:
    """One copy of a run's model, loaded with the first assignment and kept."""

    threads: int
    """Of the processor, whatever the machine has."""
    _subject: Subject | None = None
    _engines: dict[str, Engine] = field(default_factory=dict)

    def __post_init__(self) -> None:
        torch.set_num_threads(self.threads)

    def take(self, assignment: Assignment) -> None:
        """Get ready for questions under an assignment. Raises what loading raises. Cost: loads the model."""
        if assignment.key not in self._engines:
            self._engines[assignment.key] = self._engine(assignment)

    def answer(self, key: str, assignment: Sequence[Any], part: Part) -> Answer:
        """Every group of a part on every example of it, under an assignment, which one that was restarted reads again.

        Raises what the engine raises.
        """
        if key not in self._engines:
            import ray

            self.take(*ray.get(assignment))
        found = self._engines[key].evaluate(part.question.groups, part.question.examples)
        return Answer.of(part.place, part.rows, part.columns, found)

    def _engine(self, assignment: Assignment) -> Engine:
        config = RunConfig.model_validate_json(assignment.settings)
        if self._subject is None:
            self._subject = load(config.model, assignment.device, assignment.dtype)
        subject = self._subject
        here = subject.model_hash, subject.tokenizer_hash
        if here != (assignment.model_hash, assignment.tokenizer_hash):
            raise ModelUnavailable(
                f"expected {config.model} with the weights and tokenizer of the run, a worker found others under this "
                "name; put the same files on every machine"
            )
        table = table_from(assignment.replacement, assignment.intervention)
        asked = subject, task_of(config), assignment.records, assignment.intervention, table
        if config.engine == "plain":
            return ReferenceEngine(*asked, rows=config.rows)
        return AblationEngine(*asked, rows=config.rows, slope=assignment.slope)
