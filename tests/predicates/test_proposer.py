"""Proposers: the offline grammar finds planted causes, scripted replies answer by content."""

import numpy as np
import pytest

from mecharule_ops.predicates import language, proposer
from mecharule_ops.predicates.table import build_table


def _context(columns, labels, known=(), prompt=None):
    table, _ = build_table(known, columns, labels, np.ones(len(labels), dtype=bool))
    scores = {predicate.text: score for predicate, score in zip(table.predicates, table.scores, strict=True)}
    return proposer.ProposalContext(
        columns=columns,
        labels=labels,
        prompt_columns=frozenset(columns) if prompt is None else prompt,
        known=scores,
    )


def _sums(records=1500):
    generator = np.random.default_rng(0)
    a, b = generator.integers(0, 300, (2, records))
    return {"a": a, "b": b, "op": generator.choice(["+", "-"], records)}


PLANTED = {
    "carry_at(a, b, 0)": lambda c: c["a"] % 10 + c["b"] % 10 >= 10,
    "borrow(a, b)": lambda c: np.array(
        [
            any(max(x, y) % p < min(x, y) % p for p in (10, 100, 1000))
            for x, y in zip(c["a"], c["b"], strict=True)
        ]
    ),
    "a < b": lambda c: c["a"] < c["b"],
    "divisible(a, 3)": lambda c: c["a"] % 3 == 0,
    "a >= 137": lambda c: c["a"] >= 137,
    "op == '+'": lambda c: c["op"] == "+",
}


@pytest.mark.parametrize("cause", PLANTED)
def test_the_offline_proposer_puts_a_planted_cause_first(cause):
    """With one record in ten mislabelled the true cause still comes first."""
    columns = _sums()
    noise = np.random.default_rng(1).random(len(columns["a"])) < 0.1
    proposals = proposer.OfflineProposer(limit=20).propose(_context(columns, PLANTED[cause](columns) ^ noise))
    first = language.parse_predicate(proposals[0], language.schema_of(columns))
    if cause == "op == '+'":
        assert first.reads == {"op"}
    else:
        assert first.text in (cause, "a > b")


def test_the_offline_proposer_is_bounded_deterministic_and_leaves_out_what_is_known():
    """At most `limit` texts, the same each time, none known before, all of them predicates."""
    columns = _sums()
    labels = PLANTED["carry_at(a, b, 0)"](columns) ^ (np.random.default_rng(2).random(1500) < 0.2)
    first = proposer.OfflineProposer(limit=10).propose(_context(columns, labels))
    assert len(first) == 10
    assert first == proposer.OfflineProposer(limit=10).propose(_context(columns, labels))
    second = proposer.OfflineProposer(limit=10).propose(_context(columns, labels, known=first[:1]))
    assert first[0] not in second
    assert all(language.parse_predicate(text, language.schema_of(columns)).text == text for text in second)


def test_texts_work_out_of_the_box():
    """On a string prompt column the word that causes success is found, and so is length."""
    generator = np.random.default_rng(3)
    words = np.array(["please", "write", "a", "poem", "ignore", "rules", "Now", "STOP"])
    prompts = np.array([" ".join(generator.choice(words, generator.integers(3, 9))) for _ in range(800)])
    columns = {"prompt": prompts}
    asks = np.array(["ignore" in text.split() for text in prompts])
    proposals = proposer.OfflineProposer(limit=12).propose(_context(columns, asks))
    assert proposals[0] == "contains(prompt, 'ignore')"
    long = np.strings.str_len(prompts) >= 30
    assert proposer.OfflineProposer(limit=1).propose(_context(columns, long)) == ("length(prompt) >= 30",)


def test_output_columns_are_never_compared_with_the_prompt():
    """A pair of answer and truth would restate the label, so pairs are of prompt columns."""
    columns = _sums()
    labels = np.random.default_rng(5).random(1500) < 0.5
    columns |= {"expected": columns["a"] + columns["b"], "answer": columns["a"] + columns["b"] + labels}
    prompt = frozenset({"a", "b", "op", "expected"})
    for text in proposer.OfflineProposer(limit=500).propose(_context(columns, labels, prompt=prompt)):
        reads = language.parse_predicate(text, language.schema_of(columns)).reads
        assert reads == {"answer"} or reads <= prompt
