"""Amounts that a question states of a sum in plain words, as predicates."""

from __future__ import annotations

import numpy as np
import pytest

from mecharule_ops.predicates.language import evaluate, parse_predicate, schema_of
from mecharule_ops.questions.amounts import amounts_in
from mecharule_ops.tasks.arithmetic import Arithmetic
from mecharule_ops.tasks.task_names import make_task

TASK = make_task("arithmetic", operators=("+", "-"), low=0, high=299)
COLUMNS = {"a": np.arange(300) % 271, "b": np.arange(300) % 113, "expected": np.arange(-150, 150)}
ANSWER, A, B = COLUMNS["expected"], COLUMNS["a"], COLUMNS["b"]
SIZE = np.abs(ANSWER)


@pytest.mark.parametrize(
    ("question", "words", "holds"),
    [
        ("does m1.3 flip answers ending in 1 or 3?", "answers ending in 1 or 3", np.isin(SIZE % 10, (1, 3))),
        ("where the tens digit is 7 or more", "tens digit is 7 or more", SIZE // 10 % 10 >= 7),
        ("is a's last digit below five?", "a's last digit below five", A % 10 < 5),
        ("the hundreds digit of b is 1?", "hundreds digit of b is 1", B // 100 % 10 == 1),
        ("small results (under 100)?", "results (under 100", ANSWER < 100),
        ("the answer is below zero?", "answer is below zero", ANSWER < 0),
        ("answers whose magnitude is under a hundred", None, SIZE < 100),
        ("the size of the answer is at most 20", "size of the answer is at most 20", SIZE <= 20),
        ("operands of 200 or above?", "operands of 200 or above", np.maximum(A, B) >= 200),
        ("do big operands (one of them 200 or above) hurt?", None, np.maximum(A, B) >= 200),
        ("short results (magnitude under a hundred)?", None, SIZE < 100),
        ("answers with a 7 in the tens place", "a 7 in the tens place", SIZE // 10 % 10 == 7),
        ("one of the numbers is below 30?", "one of the numbers is below 30", np.minimum(A, B) < 30),
        ("the smaller of the numbers is above 20", None, np.minimum(A, B) > 20),
        ("it ends in 10", "ends in 10", SIZE % 100 == 10),
        ("even answers ending in 7 or more", None, (ANSWER % 2 == 0) & (SIZE % 10 >= 7)),
        ("both operands over 100?", "both operands over 100", np.minimum(A, B) > 100),
        ("results whose tens digit is a zero?", "tens digit is a zero", SIZE // 10 % 10 == 0),
        (
            "if the two numbers are fewer than 20 apart",
            "the two numbers are fewer than 20 apart",
            abs(A - B) < 20,
        ),
        ("the difference between both numbers is below 20", None, abs(A - B) < 20),
        ("the two numbers are no more than 20 apart", None, abs(A - B) <= 20),
        ("both numbers are at least 20 apart?", None, abs(A - B) >= 20),
        ("when the first number is bigger than the second", None, A > B),
        ("is it worse where a is smaller than b?", "a is smaller than b", A < B),
        ("when the right answer is between 100 and 120", None, (ANSWER >= 100) & (ANSWER <= 120)),
    ],
)
def test_an_amount_is_a_predicate(question: str, words: str | None, holds: np.ndarray) -> None:
    """It holds where a reader of the words would say so."""
    ((said, predicate),) = amounts_in(question, TASK).items()
    assert said in question
    assert words in (None, said)
    schema = schema_of(COLUMNS)
    assert (evaluate(parse_predicate(predicate, schema), COLUMNS) == holds).all()
    assert holds.any()
    assert not holds.all()


@pytest.mark.parametrize(
    "question",
    [
        "m1.14 flips 14 of 64 records",
        "is the answer 175?",
        "are the wrong answers less than 5 apart from the right ones?",
        "are the layers less than 5 apart?",
        "is m1.14 a bigger than the second strongest?",
        "is the first number bigger than the second digit?",
        "is the first number bigger than the second by 50?",
        "does it flip more than 10 records?",
        "does it break answers more than 10 times?",
        "are right answers below 5 % there?",
        "which 2 units flip answers?",
        "how many answers of 300 are right?",
        "the last digit is odd",
        "the answer is over a hundred and fifty",
        "the answer has 3 or more digits",
        "a sum above 3 flips",
        "the wrong answer is above 100",
        "is the model's answer above 100?",
        "answers not ending in 1",
        "unless the answer is below 50",
        "ending in 1, 2 or 30",
    ],
)
def test_what_is_no_amount_of_a_sum_is_none(question: str) -> None:
    assert amounts_in(question, TASK) == {}


def test_two_amounts_are_two_and_a_task_without_sums_has_none() -> None:
    """The longest reading of overlapping ones is taken."""
    both = amounts_in("where the tens digit is 7 or more and the answer is above 100", TASK)
    assert list(both.values()) == ["digit(expected, 1) >= 7", "expected > 100"]
    assert isinstance(TASK, Arithmetic)
    assert amounts_in("answers ending in 1", make_task("hans")) == {}
