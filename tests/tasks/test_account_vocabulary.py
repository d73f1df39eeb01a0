"""The account vocabularies: what the design names is there, it parses, reads the prompt alone, and splits the data."""

from itertools import combinations

import numpy as np
import pytest
from answered import all_answered

from mecharule_ops.predicates.cuts import evaluated
from mecharule_ops.predicates.language import parse_predicate, schema_of
from mecharule_ops.tasks import arithmetic, prompt_table
from mecharule_ops.tasks.arithmetic_vocabulary import account_predicates
from mecharule_ops.tasks.text import NEGATION, text_predicates


@pytest.mark.parametrize("operators", [("+",), ("+", "-"), ("*", "/")])
def test_arithmetic_reads_the_question_alone(operators: tuple[str, ...]) -> None:
    """Every text parses over the task's columns and none reads the answer; most split the items."""
    task = arithmetic.Arithmetic(operators=operators)
    columns = task.columns(all_answered(task, " 1", count=600))
    table = evaluated(task.account_predicates(), columns)
    schema = schema_of(columns)
    assert all(parse_predicate(text, schema).reads <= {"op", "a", "b", "expected"} for text in table.texts)
    shares = table.matrix.mean(axis=0)
    assert ((shares > 0.03) & (shares < 0.97)).mean() > 0.6
    assert len(table.texts) < 400


def test_arithmetic_names_what_the_design_lists() -> None:
    """Digits, their equalities at any places, carries, sums of nine, divisors, equal operands."""
    texts = set(account_predicates(("+",), 99))
    slots = [
        f"digit({name}, {at})" for name, count in (("a", 2), ("b", 2), ("expected", 3)) for at in range(count)
    ]
    assert {f"{left} == {right}" for left, right in combinations(slots, 2)} <= texts
    assert {f"{slot} == {digit}" for slot in slots for digit in range(10)} <= texts
    assert {f"divisible({name}, {by})" for name in ("a", "b", "expected") for by in range(2, 10)} <= texts
    assert {"carry_at(a, b, 1)", "digit(a, 0) + digit(b, 0) == 9", "a == b", "10 <= expected < 100"} <= texts
    assert not any("borrow" in text or "op ==" in text for text in texts)
    both = set(account_predicates(("+", "-"), 299))
    assert {"holds(op == '-' and borrow_at(a, b, 2))", "-100 < expected <= -10", "op == '-'"} <= both


def test_bands_of_the_result_meet_without_a_gap() -> None:
    """Each result up to the largest lies in exactly one band."""
    bands = [text for text in account_predicates(("+", "-"), 299) if text.count("expected") == 1]
    chained = [text for text in bands if " expected <" in text and text[0] in "-0123456789"]
    assert (evaluated(chained, {"expected": np.arange(-299, 599)}).matrix.sum(axis=1) == 1).all()


def test_negation_is_a_word_or_an_ending() -> None:
    """Straight and curly; not a part of another word."""
    columns = {"s": np.array(["I don't", "it isn’t so", "Not now", "a knot", "nowhere", "no"])}
    fires = evaluated([f"matches(s, {NEGATION!r})"], columns).matrix[:, 0]
    assert fires.tolist() == [True, True, True, False, False, True]


def test_hans_gets_words_overlap_and_positions() -> None:
    """Beside the seeds; every text parses over prompt columns, and a category is no free text."""
    task = prompt_table.PromptTable(file="hans")
    columns = {name: np.array(values) for name, values in task._columns_of_rows.items()}
    schema = {**schema_of(columns), "prompt": str}
    texts = task.account_predicates()
    assert set(task.seed_predicates()) <= set(texts)
    assert all(parse_predicate(text, schema).reads <= task.prompt_columns for text in texts)
    assert {"overlap(premise, hypothesis) == 1", "has_phrase(premise, hypothesis)"} <= set(texts)
    assert "first_word(hypothesis) == first_word(premise)" in texts


def test_columns_of_a_task_of_ones_own() -> None:
    """Numbers are cut, conditions named, free texts taken apart, categories compared."""
    rng = np.random.default_rng(0)
    items = {
        "stars": [int(star) for star in rng.integers(1, 6, 60)],
        "verified": [bool(flag) for flag in rng.random(60) < 0.5],
        "kind": [str(kind) for kind in rng.choice(np.array(["book", "film"]), 60)],
        "review": [
            f"it was {word} number {place}" for place, word in enumerate(rng.choice(["good", "bad"], 60))
        ],
    }
    texts = text_predicates(items)
    assert {"verified", "kind == 'book'", "has_word(review, 'good')"} <= set(texts)
    assert any(text.startswith("stars >= ") for text in texts)
    assert "has_word(review, 'it')" not in texts
