"""Rules in words: read back by an independent reader they agree with their syntax on every record."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from words_read_back import ARITHMETIC, ReadBack

from mecharule_ops.predicates.language import evaluate, parse_predicate, schema_of
from mecharule_ops.rules.algebra import Clause, Condition, Rule
from mecharule_ops.rules.in_words import rule_in_words, simplified
from mecharule_ops.tasks import phrases
from mecharule_ops.tasks.arithmetic import Arithmetic
from mecharule_ops.tasks.column_words import OF_EVERY_TASK, Domain, table_words
from mecharule_ops.types import Columns

SUMS = Arithmetic(operators=("+",), low=0, high=23)
BOTH = Arithmetic(operators=("+", "-"), low=0, high=15)
QUOTIENTS = Arithmetic(operators=("*", "/"), low=0, high=14)
TASKS = (SUMS, BOTH, QUOTIENTS)
EXAMPLES = settings(max_examples=60, deadline=None)
OF_SUMS = ReadBack(ARITHMETIC)


def vocabulary(task: Arithmetic) -> list[str]:
    """Everything that a rule of the task may read and that is known before the model answers."""
    texts = [*task.account_predicates(), *task.seed_predicates()]
    return [text for text in dict.fromkeys(texts) if "answer" not in text and text != "parsed"]


def whole(task: Arithmetic) -> Columns:
    """Every question of the task."""
    columns = task.domain.whole
    assert columns is not None
    return columns


def literals(task: Arithmetic) -> st.SearchStrategy[Condition]:
    """Conditions of the task's grammar: its vocabulary, value sets, bounds, either way round."""
    numbers = st.integers(-20, 60)
    named = ["digit(a, 0)", "digit(expected, 1)", "b", "expected", "n_digits(b)", "min(a, b)"]
    terms = st.sampled_from(named)
    signs = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    sets = st.builds(
        lambda term, values: f"{term} in {tuple(sorted(values))!r}",
        terms,
        st.sets(st.integers(0, 9), min_size=2, max_size=4),
    )
    bounds = st.builds(lambda term, sign, number: f"{term} {sign} {number}", terms, signs, numbers)
    bands = st.builds(lambda low, width: f"{low} <= expected < {low + width}", numbers, st.integers(1, 20))
    pairs = st.sampled_from(
        [
            *("a < expected", "a <= expected", "expected > b", "a + b > 20", "a >= 2 * b"),
            *("min(b, expected) < 8", "a % 2 == 1", "digit_sum(a) > digit_sum(b)"),
        ]
    )
    atoms = st.one_of(st.sampled_from(vocabulary(task)), sets, bounds, bands, pairs)
    return st.builds(Condition, atoms.map(lambda text: str(Rule.parse(text))), st.booleans())


def rules(task: Arithmetic) -> st.SearchStrategy[Rule]:
    """Up to three clauses of up to three conditions that do not contradict each other by name."""
    clause = st.lists(literals(task), min_size=1, max_size=3, unique_by=lambda one: one.predicate)
    return st.lists(clause.map(lambda some: Clause(tuple(some))), min_size=1, max_size=3).map(
        lambda some: Rule(tuple(some))
    )


def fires(rule: Rule | bool, columns: Columns) -> np.ndarray:
    """By the predicate language itself."""
    if isinstance(rule, bool):
        return np.full(len(next(iter(columns.values()))), rule)
    schema = schema_of(columns)
    return rule.fires(lambda text: evaluate(parse_predicate(text, schema), columns))


def read_back(words: str, columns: Columns, reader: ReadBack) -> np.ndarray:
    """By the independent reader, record by record."""
    holds = reader.rule(words)
    lists = {name: column.tolist() for name, column in columns.items()}
    return np.array([holds(dict(zip(lists, row, strict=True))) for row in zip(*lists.values(), strict=True)])


def check(rule: Rule, task: object, columns: Columns, reader: ReadBack = OF_SUMS) -> None:
    """Words and syntax agree on every record."""
    words = rule_in_words(rule, task)
    assert "`" not in words, words
    assert (read_back(words, columns, reader) == fires(rule, columns)).all(), f"{rule} is said as {words}"


@pytest.mark.parametrize("task", TASKS, ids=["sums", "both", "quotients"])
@EXAMPLES
@given(data=st.data())
def test_words_and_what_is_simplified_agree_with_the_syntax(task: Arithmetic, data: st.DataObject) -> None:
    """On every question: where a task enumerates them, where there are too many and only ranges are known, and where
    nothing is said of what is possible. Simplified, then worded, then read back."""
    rule = data.draw(rules(task))
    for domain in (task.domain, Domain(ranges=task.domain.ranges), Domain()):
        plain = simplified(rule, domain)
        assert (fires(plain, whole(task)) == fires(rule, whole(task))).all(), (str(rule), str(plain))
        check(rule, SimpleNamespace(wording=task.wording, domain=domain), whole(task))


@pytest.mark.parametrize("task", TASKS, ids=["sums", "both", "quotients"])
def test_every_predicate_of_the_vocabulary_has_words(task: Arithmetic) -> None:
    """Each and its opposite, in at most twelve words, and read back."""
    bare = SimpleNamespace(wording=task.wording, domain=Domain(ranges=task.domain.ranges))
    for text in vocabulary(task):
        for value in (True, False):
            rule = Rule((Clause((Condition(str(Rule.parse(text)), value),)),))
            check(rule, bare, whole(task))
            assert len(rule_in_words(rule, bare).split()) <= 18


@pytest.mark.parametrize("task", [SUMS, BOTH], ids=["sums", "both"])
@pytest.mark.parametrize(
    "text",
    ["carry_at(a, expected, 0)", "carry(b, expected)", "borrow_at(b, expected, 1)", "borrow(a, expected)"],
)
def test_carries_of_other_numbers_have_words(text: str, task: Arithmetic) -> None:
    """Of sizes where one may be negative, for a digit has no sign."""
    for rule in (text, f"not {text}"):
        check(Rule.parse(rule), task, whole(task))


def test_a_wrong_phrase_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail: a carry that is said to reach another place, a digit of another number."""
    wrong = ("adding {y} to {x} carries into the hundreds",) * 2
    monkeypatch.setitem(phrases.SAID, "carry_at(x, y, k)", wrong)
    with pytest.raises(AssertionError, match="is said as"):
        check(Rule.parse("carry_at(a, b, 0)"), SUMS, whole(SUMS))
    swapped = SimpleNamespace(wording={**SUMS.wording, "a": SUMS.wording["b"]}, domain=Domain())
    with pytest.raises(AssertionError, match="is said as"):
        check(Rule.parse("digit(a, 0) == 7"), swapped, whole(SUMS))


def test_a_wrong_simplification_is_seen() -> None:
    """The check can fail: where the domain leaves out half of the questions a literal seems certain."""
    half = {name: column[: len(column) // 2] for name, column in whole(SUMS).items()}
    plain = simplified(Rule.parse("a < 12 and b == 3"), Domain(whole=half))
    assert str(plain) == "b == 3"
    assert (fires(plain, whole(SUMS)) != fires(Rule.parse("a < 12 and b == 3"), whole(SUMS))).any()


TABLE = {
    "sentiment": ["negative", "positive", "negative", "neutral"] * 6,
    "text": ["It is not good, no.", "good it is", "never", "It is what it is!"] * 6,
    "stars": [1, 5, 2, 3, 4, 2] * 4,
    "short": [True, False, False, True, True, False] * 4,
    "score": [0.5, 1.25, -2.0, 0.0] * 6,
}
TEXTS = (
    *("sentiment == 'negative'", "sentiment in ('negative', 'neutral')", "short", "stars >= 3", "stars < 2"),
    *(
        "has_word(text, 'is')",
        "contains(text, 'it')",
        "startswith(text, 'It')",
        "words(text) >= 3",
        "score < 0.25",
    ),
    *(
        "words(text) == 1",
        "length(text) > 10",
        "first_word(text) == 'it'",
        "divisible(stars, 2)",
        "1 <= stars <= 4",
    ),
    "matches(text, '(?i)\\\\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot)\\\\b|n[\\'’]t\\\\b')",
)


@EXAMPLES
@given(data=st.data())
def test_a_table_of_ones_own_has_words(data: st.DataObject) -> None:
    """Columns go by their names; nothing is simplified by what these rows happen to hold."""
    columns: dict[str, Any] = {name: np.array(values) for name, values in TABLE.items()}
    task = SimpleNamespace(wording={**OF_EVERY_TASK, **table_words(TABLE)}, domain=Domain())
    one = st.builds(Condition, st.sampled_from([str(Rule.parse(text)) for text in TEXTS]), st.booleans())
    some = st.lists(one, min_size=1, max_size=3, unique_by=lambda each: each.predicate)
    clauses = st.lists(some.map(lambda each: Clause(tuple(each))), min_size=1, max_size=3)
    rule = data.draw(clauses.map(lambda each: Rule(tuple(each))))
    nouns = {f"the column {name}": lambda record, name=name: record[name] for name in TABLE}
    text = nouns["the column text"]
    nouns["first word of the column text"] = lambda record: text(record).split()[0].lower()
    check(rule, task, columns, ReadBack(nouns))


def test_a_literal_without_words_is_quoted() -> None:
    """Its syntax stands in its place, and the others are said."""
    assert (
        rule_in_words(Rule.parse("a * 3 > 7 // b and b >= 2"), BOTH) == "b is 2 or more and `a * 3 > 7 // b`"
    )
    assert rule_in_words(Rule.parse("not a * 3 > 7 // b"), BOTH) == "not `a * 3 > 7 // b`"
    assert rule_in_words(Rule.parse("x == 2"), SUMS) == "`x == 2`"
