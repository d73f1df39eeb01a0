"""HANS (McCoy et al. 2019): does a premise entail a hypothesis made of its own words? B(x) = 1 is a right answer.

Three shallow heuristics (lexical overlap, subsequence, constituent) say "yes" to every item; half of the items
are not entailed. The published evaluation set is read when its file is named; otherwise 900 sentences of our own in
the same columns (`benchmarks/example_sets.py` makes them), which every report says. Interventions act on the whole
sequence, as in the paper (appendix "Additional results").

A template makes a premise and a hypothesis whose words all occur in the premise: in any order (lexical overlap), side
by side (subsequence), or as one of its constituents (constituent). A reader who trusts that says "entailed" always,
which is right for half of the constructions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from mecharule_ops.errors import UsageError
from mecharule_ops.tasks.base import check_template
from mecharule_ops.tasks.from_file import read_table
from mecharule_ops.tasks.text import Row, TextTask, first_word, first_word_ended
from mecharule_ops.types import Example, Phase

_NEEDS = ("gold_label", "sentence1", "sentence2", "heuristic", "subcase")
"""Columns of `heuristics_evaluation_set.txt` (tab-separated) and `.jsonl` that are read."""
_GOLD = {"entailment": True, "non-entailment": False}
HEURISTICS = ("lexical_overlap", "subsequence", "constituent")
_CELLS = tuple(product(HEURISTICS, ("entailed", "not entailed")))
_OURS = Path(__file__).with_name("example_sets") / "hans.jsonl"


@dataclass(frozen=True, kw_only=True)
class Hans(TextTask):
    """Sentence pairs, answered in one word."""

    name = "hans"
    cluster_column = "construction"
    file: str = ""
    """The published evaluation set, TSV or JSONL; empty takes sentences of our own."""
    template: str = "Premise: {premise}\nHypothesis: {hypothesis}\nEntailed, yes or no?"
    answers: tuple[str, ...] = ("yes", "no")
    """The words for entailed and not entailed."""
    max_new_tokens: int = 4
    phase: Phase = Phase.WHOLE

    def __post_init__(self) -> None:
        TextTask.__post_init__(self)
        if len({answer.lower() for answer in self.answers}) != 2 or not all(self.answers):
            raise UsageError(f"expected two different answers, got {self.answers!r}")
        check_template(self.template, "{premise}", "{hypothesis}")

    @property
    def notes(self) -> tuple[str, ...]:
        """Whose items these are."""
        if not self.file:
            return (
                "The sentence pairs are generated, not the published items: templates of this tool for the "
                "constructions of McCoy et al. (2019).",
            )
        return (f"The items are those of {self.file}.",)

    def rows(self) -> Sequence[Row]:
        """Premise, hypothesis, heuristic, construction, entailed. Raises `UsageError` on another file."""
        file = self.file or str(_OURS)
        return tuple(_row(file, item) for item in read_table(file, _NEEDS))

    def question(self, row: Row) -> str:
        """Both sentences in the template."""
        return self.template.format(premise=row["premise"], hypothesis=row["hypothesis"])

    def success(self, row: Row, completion: str) -> bool:
        """Whether the first word is the right answer; any other word is wrong."""
        return first_word(completion) == self.answers[0 if row["entailed"] else 1].lower()

    def decide(self, example: Example, partial: str) -> bool | None:
        """The label once the first word has ended."""
        return self.label(example, partial) if first_word_ended(partial) else None

    @property
    def solution_columns(self) -> frozenset[str]:
        """The true label, and the construction that settles it."""
        return frozenset({"construction", "entailed"})

    def seed_predicates(self) -> tuple[str, ...]:
        """By heuristic, by construction, by both with the true answer, and lengths."""
        constructions = sorted({str(row["construction"]) for row in self._items})
        return (
            *(f"heuristic == {heuristic!r}" for heuristic in HEURISTICS),
            *(f"construction == {construction!r}" for construction in constructions),
            *(f"holds(heuristic == {heuristic!r} and {label})" for heuristic, label in _CELLS),
            "entailed",
            *(f"words(premise) >= {count}" for count in (6, 7, 8)),
            *(f"words(hypothesis) >= {count}" for count in (4, 5)),
            "words(premise) >= 2 * words(hypothesis)",
            *(f"contains(premise, {text!r})" for text in (",", " by ", " that ")),
        )


def _row(file: str, item: Row) -> Row:
    """One published item. Raises `UsageError` on a label that HANS does not have."""
    names = ("premise", "hypothesis", "heuristic", "construction")
    gold, *known = (item[name] for name in _NEEDS)
    if gold not in _GOLD:
        raise UsageError(f"expected gold labels {' and '.join(_GOLD)} in {file}, got {gold!r}")
    return {**dict(zip(names, known, strict=True)), "entailed": _GOLD[str(gold)]}
