"""What one worker does: it holds one copy of the model and an engine for each assignment, and answers parts."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from mecharule_ops.config import RunConfig
from mecharule_ops.engine.ablation import AblationEngine
from mecharule_ops.engine.group_questions import Engine, Group
from mecharule_ops.errors import MechaRuleError, ModelUnavailable
from mecharule_ops.loading.memory import is_out_of_memory
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.model_names import load
from mecharule_ops.replacement.table_files import table_from
from mecharule_ops.tasks.task_names import task_of
from mecharule_ops.workers.assignment import Assignment, Done, Failed


class Replica:
    """One copy of a run's model, loaded with the first assignment and kept."""

    def __init__(self, threads: int) -> None:
        """`threads` of the processor are used, whatever the machine has."""
        torch.set_num_threads(threads)
        self._subject: Subject | None = None
        self._engines: dict[str, Engine] = {}

    def take(self, assignment: Assignment) -> Failed | None:
        """Get ready for questions under an assignment; a failure is given back as a value. Cost: loads the model."""
        try:
            if assignment.key not in self._engines:
                self._engines[assignment.key] = self._engine(assignment)
        except Exception as error:  # Whatever it is must reach the run as a sentence.
            return _failed(error)
        return None

    def answer(self, key: str, groups: Sequence[Group], examples: Sequence[int]) -> Done | Failed:
        """Every group on every example under the assignment of this key, which was taken before."""
        began = time.perf_counter()
        try:
            outcomes = self._engines[key].evaluate(groups, examples)
        except Exception as error:  # Whatever it is must reach the run as a sentence.
            return _failed(error)
        return Done(outcomes=outcomes, seconds=time.perf_counter() - began)

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
            from mecharule_ops.engine.reference import ReferenceEngine

            return ReferenceEngine(*asked, rows=config.rows)
        return AblationEngine(*asked, rows=config.rows, slope=assignment.slope)


def _failed(error: Exception) -> Failed:
    if isinstance(error, MechaRuleError):
        return Failed(out_of_memory=False, sentence=str(error), exit_code=error.exit_code)
    memory = is_out_of_memory(error)
    first = (str(error).strip().splitlines() or [""])[0]
    return Failed(out_of_memory=memory, sentence=f"{type(error).__name__}: {first}", exit_code=1)
