"""Who proposes predicates: one protocol for the offline grammar and a language model.

A proposer sees the train split only and returns texts; what becomes of a text (parse, score, filter) is
decided in `predicates`, so that a proposal can be wrong but never unsafe (paper, §4.1).

The grammar of the offline one, over typed columns: numbers give thresholds (quantiles and the cut where success and
failure differ most), common values, parity, divisors and digits; pairs of numbers give comparisons, sums, carries and
borrows; texts give values, lengths, case and the words whose frequency differs most between success and failure.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np
from jaxtyping import Bool

from mecharule_ops.predicates.language import schema_of
from mecharule_ops.predicates.table import PredicateScore, Refusal, build_table, is_one_sided
from mecharule_ops.types import Columns

_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_COMMON = 5
"""Most common values of a column, each there more than once, that are tried for equality."""
_CATEGORIES = 12
"""A text column with at most this many values is a category, otherwise free text."""
_WORDS = 12
"""Words of a text column tried for containment."""
_LONGEST_WORD = 40
_DIVISORS = (2, 3, 4, 5, 7, 9, 10)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProposalContext:
    """What a proposer may look at."""

    columns: Columns
    """Typed columns of the train records."""
    labels: Bool[np.ndarray, " record"]
    """B(x) of the same records."""
    prompt_columns: frozenset[str]
    """Columns known before generation."""
    known: Mapping[str, PredicateScore]
    """Predicates already in the table, by canonical text."""
    refusals: tuple[Refusal, ...] = ()
    """Earlier proposals that were refused, and why."""


class Proposer(Protocol):
    """Anything that proposes predicate texts."""

    def propose(self, context: ProposalContext) -> tuple[str, ...]:
        """Texts to try next, best first; empty when there is nothing more to propose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineProposer:
    """The best candidates of a fixed grammar by train score; deterministic, no model, no network."""

    limit: int = 60
    """Most proposals a call."""

    def propose(self, context: ProposalContext) -> tuple[str, ...]:
        """Up to `limit` new predicates by falling |AUC − 0.5|; ties in the order of the grammar.

        Candidates that a filter of `build_table` drops, or that fire like a known predicate, are left out; where the
        labels have one value only there are none.
        """
        if is_one_sided(context.labels):
            return ()
        table, _ = build_table(
            (*context.known, *enumerate_candidates(context.columns, context.labels, context.prompt_columns)),
            context.columns,
            context.labels,
            np.ones(len(context.labels), dtype=bool),
            prompt_columns=context.prompt_columns,
        )
        scored = [
            (abs(score.auc - 0.5), predicate.text)
            for predicate, score in zip(table.predicates, table.scores, strict=True)
            if predicate.text not in context.known
        ]
        scored.sort(key=lambda pair: -pair[0])
        return tuple(text for _, text in scored[: self.limit])


def enumerate_candidates(
    columns: Columns, labels: Bool[np.ndarray, " record"], prompt_columns: frozenset[str]
) -> tuple[str, ...]:
    """Distinct candidate texts in a fixed order; about 40 a number column and 25 a pair of integers.

    Pairs are of prompt columns: an output compared with the true result would restate the label.
    """
    texts, schema = list[str](), schema_of(columns)
    for name, kind in schema.items():
        if kind is bool:
            texts.append(name)
        elif kind is str:
            texts.extend(_text_candidates(name, columns[name], labels))
        else:
            texts.extend(_thresholds(name, columns[name], labels))
            texts.extend(_integer_candidates(name, columns[name]) if kind is int else ())
    numbers = [
        name
        for name, kind in schema.items()
        if kind is int and name in prompt_columns and len(columns[name]) and np.ptp(columns[name])
    ]
    for left, right in combinations(numbers, 2):
        texts.extend(_pair_candidates(left, right, columns, labels))
    return tuple(dict.fromkeys(texts))


def _thresholds(expression: str, values: np.ndarray, labels: Bool[np.ndarray, " record"]) -> Iterator[str]:
    """`expression >= t` at quantiles and at the cut of largest |TPR − FPR|."""
    if not len(values) or not np.isfinite(values).all():
        return
    cuts = [*np.quantile(values, _QUANTILES, method="nearest"), _best_cut(values, labels)]
    for cut in dict.fromkeys(float(cut) for cut in cuts):
        yield f"{expression} >= {int(cut) if cut.is_integer() else format(cut, '.6g')}"


def _best_cut(values: np.ndarray, labels: Bool[np.ndarray, " record"]) -> float:
    """The t of the Kolmogorov–Smirnov distance between success and failure under `value >= t`."""
    distinct, place = np.unique(values, return_inverse=True)
    hits = np.bincount(place[labels], minlength=len(distinct)) / max(labels.sum(), 1)
    misses = np.bincount(place[~labels], minlength=len(distinct)) / max((~labels).sum(), 1)
    return float(distinct[np.argmax(np.abs(np.concatenate([[0.0], np.cumsum(hits - misses)[:-1]])))])


def _integer_candidates(name: str, values: np.ndarray) -> Iterator[str]:
    distinct, counts = np.unique(values, return_counts=True)
    most = np.argsort(-counts, kind="stable")[:_COMMON]
    yield from (f"{name} == {distinct[place].item()}" for place in most if counts[place] > 1)
    yield from (f"divisible({name}, {divisor})" for divisor in _DIVISORS)
    places = len(str(int(np.abs(values).max(initial=0))))
    for place in range(min(places, 3)):
        yield from (f"digit({name}, {place}) >= {cut}" for cut in (3, 5, 7, 9))
        yield from (f"digit({name}, {place}) == {value}" for value in range(10))
    yield from (f"n_digits({name}) >= {count}" for count in range(2, places + 1))
    yield f"digit_sum({name}) >= {9 * places // 2}"
    yield f"{name} < 0"


def _pair_candidates(
    left: str, right: str, columns: Columns, labels: Bool[np.ndarray, " record"]
) -> Iterator[str]:
    yield from (f"{left} {sign} {right}" for sign in ("<", "==", ">"))
    yield f"{left} % 2 == {right} % 2"
    yield f"digit({left}, 0) == digit({right}, 0)"
    yield f"digit({left}, 0) > digit({right}, 0)"
    yield f"n_digits({left}) == n_digits({right})"
    yield f"gcd({left}, {right}) > 1"
    yield f"divisible({left}, {right})"
    for function in ("carry", "borrow"):
        yield f"{function}({left}, {right})"
        yield from (f"{function}_at({left}, {right}, {place})" for place in range(3))
    # Python integers cannot wrap, whatever the columns hold.
    x, y = columns[left].astype(object), columns[right].astype(object)
    for form, values in (("{} + {}", x + y), ("abs({} - {})", abs(x - y)), ("min({}, {})", np.minimum(x, y))):
        yield from _thresholds(form.format(left, right), values.astype(np.float64), labels)


def _text_candidates(name: str, values: np.ndarray, labels: Bool[np.ndarray, " record"]) -> Iterator[str]:
    distinct = np.unique(values)
    if len(distinct) <= _CATEGORIES and np.strings.str_len(distinct).max(initial=0) <= _LONGEST_WORD:
        yield from (f"{name} == {str(value)!r}" for value in distinct)
        return
    words = [text.split() for text in values.tolist()]
    yield from _thresholds(f"length({name})", np.strings.str_len(values), labels)
    yield from _thresholds(f"words({name})", np.array([len(found) for found in words]), labels)
    yield from (f"upper_ratio({name}) >= {cut}" for cut in (0.1, 0.25, 0.5, 0.75))
    yield from (f"contains({name}, {mark!r})" for mark in ("?", "!", "\n", ",", ".", '"'))
    yield from (f"matches({name}, {pattern!r})" for pattern in ("[0-9]", "[A-Z]{3}", "(?i)\\bnot?\\b"))
    yield from (f"contains({name}, {word!r})" for word in _telling(words, labels))
    first = [found[:1] for found in words]
    yield from (f"startswith({name}, {word!r})" for word in _telling(first, labels)[:3])


def _telling(words: list[list[str]], labels: Bool[np.ndarray, " record"]) -> list[str]:
    """Words whose share of records differs most between success and failure; ties in word order."""
    seen: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for found, label in zip(words, labels.tolist(), strict=True):
        seen[label].update(word for word in set(found) if len(word) <= _LONGEST_WORD)
    hits, misses = max(int(labels.sum()), 1), max(int((~labels).sum()), 1)
    gap = {
        word: abs(seen[True][word] / hits - seen[False][word] / misses)
        for word in {**seen[True], **seen[False]}
    }
    return sorted(gap, key=lambda word: (-gap[word], word))[:_WORDS]
