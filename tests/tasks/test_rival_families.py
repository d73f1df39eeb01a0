"""Families of rivals: each predicate reads over the task's columns and none reads what the model wrote."""

from __future__ import annotations

import numpy as np
import pytest

from mecharule_ops.predicates.language import parse_predicate, schema_of
from mecharule_ops.tasks.arithmetic import Arithmetic
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.known_program import KnownProgram
from mecharule_ops.tasks.rival_families import families_of
from mecharule_ops.types import BehaviourRecord


def _columns(task: Task) -> dict[str, np.ndarray]:
    examples = task.examples(200, np.random.default_rng(0))
    records = [
        BehaviourRecord(
            example=example, completion="7", parsed=task.parse(example, "7"), tokens=(1,), label=True
        )
        for example in examples
    ]
    return dict(task.columns(records))


@pytest.mark.parametrize(
    "task",
    [Arithmetic(), Arithmetic(high=9), KnownProgram(program="either")],
    ids=["0 to 99", "0 to 9", "a program"],
)
def test_every_predicate_reads_and_only_the_prompt(task: Task) -> None:
    """Of arithmetic with its own families, and of a task whose columns make them."""
    columns = _columns(task)
    families = families_of(task, columns)
    assert len({family.name for family in families}) == len(families) > 3
    for family in families:
        assert family.predicates
        for text in family.predicates:
            assert parse_predicate(text, schema_of(columns)).reads <= task.prompt_columns


def test_arithmetic_names_what_a_person_would() -> None:
    """A carry where there is addition, a borrow where there is subtraction, a family a place."""
    names = [family.name for family in families_of(Arithmetic(operators=("+",)), {})]
    assert names[0] == "a carry"
    assert "a borrow" not in names
    assert "the operator" not in names
    assert [name for name in names if name.startswith("the digits at place")] == [
        "the digits at place 0",
        "the digits at place 1",
    ]
