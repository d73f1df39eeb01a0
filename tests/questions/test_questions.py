"""Typed questions, their small edits, similar records, and a task from its own description."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mecharule_ops.errors import ClaimNotSupported, UsageError
from mecharule_ops.tasks.arithmetic import Arithmetic
from mecharule_ops.tasks.task_names import PRESETS, make_task, settings_for, task_from


def test_every_prompt_of_a_task_reads_back_as_its_example() -> None:
    """Whole prompts with few-shot lines, symbols and spaces give the example they came from."""
    symbols = {"+": "plus", "-": "−", "*": "×", "/": "/"}
    for task in (
        make_task("arithmetic", **settings_for("arithmetic", "mixed")),
        Arithmetic(operators=("+", "-", "*"), high=12, symbols=symbols),
    ):
        for example in task.examples(200, np.random.default_rng(0)):
            assert task.read(example.prompt) == example


@pytest.mark.parametrize("text", ["120-7=", "120 - 7 =", " 120-7", "120- 7  = "])
def test_spaces_and_the_last_sign_may_be_left_out(text: str) -> None:
    """A person types less than the model reads."""
    task = make_task("arithmetic", **settings_for("arithmetic", "arith-tiny"))
    assert task.read(text) == task.example("-", 120, 7)


@pytest.mark.parametrize(
    ("text", "said"),
    [("hello", "a question such as"), ("300-7=", "0..299"), ("7*8=", "a question such as"), ("", "a q")],
)
def test_what_is_no_question_of_the_task_is_refused_with_what_one_looks_like(text: str, said: str) -> None:
    """Other text, an operand out of range, an operator that the task lacks."""
    with pytest.raises(UsageError, match=said) as caught:
        make_task("arithmetic", **settings_for("arithmetic", "arith-tiny")).read(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [model for task, model in PRESETS if task == "arithmetic"])
def test_a_task_comes_back_from_its_description(name: str) -> None:
    """What a certificate holds is enough to make the task again."""
    task = make_task("arithmetic", **settings_for("arithmetic", name))
    again = task_from(task.describe())
    assert again.describe() == task.describe()
    drawn = [one.examples(50, np.random.default_rng(3)) for one in (task, again)]
    assert drawn[0] == drawn[1]


def test_a_description_that_was_changed_gives_no_task() -> None:
    """An unknown task, a missing field, a value out of range."""
    whole = dict(Arithmetic().describe())
    for wrong in (
        {**whole, "task": "poetry"},
        {**whole, "low": -1},
        {k: v for k, v in whole.items() if k != "high"},
    ):
        with pytest.raises(ClaimNotSupported):
            task_from(wrong)


def test_edits_are_every_number_that_differs_in_one_digit_nearest_first() -> None:
    """Against brute force over all numbers with as many digits."""
    for number in (0, 7, 10, 99, 305):
        shown = str(number)
        naive = [
            other
            for other in range(1000)
            if len(str(other)) == len(shown)
            and sum(x != y for x, y in zip(str(other), shown, strict=True)) == 1
        ]
        task = Arithmetic(high=999)
        edited = [example.fields for example in task.edits(task.example("+", number, 0))]
        found = [int(fields["a"]) for fields in edited if fields["b"] == 0]
        assert sorted(found) == naive
        distances = [abs(value - number) for value in found]
        assert distances == sorted(distances)


def test_another_operator_comes_last_and_keeps_the_operands() -> None:
    """By hand: 1 and 2 have nine neighbours of one digit each, then the other operator."""
    task = Arithmetic(operators=("+", "-"))
    edits = task.edits(task.example("+", 1, 2))
    assert len(edits) == 19
    assert edits[-1].fields == {"op": "-", "a": 1, "b": 2}


def test_edited_questions_stay_within_the_task() -> None:
    """Operands above the range and operators that the task lacks never come up."""
    task = Arithmetic(operators=("+", "-"), high=120)
    found = task.edits(task.example("+", 119, 5))
    assert all(0 <= int(example.fields[side]) <= 120 for example in found for side in ("a", "b"))
    assert {str(example.fields["op"]) for example in found} == {"+", "-"}
    assert len(found) == len({example.id for example in found})


def test_prompts_of_another_task_are_not_read() -> None:
    """The prefix belongs to the task: with another one the whole text is no question."""
    task = make_task("arithmetic", **settings_for("arithmetic", "mixed"))
    other = replace(task, prefix="")
    prompt = task.example("+", 1, 2).prompt
    with pytest.raises(UsageError):
        other.read(prompt)
