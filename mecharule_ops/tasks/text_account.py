"""What may tell one unit's flips apart in a task over texts: words, negation, overlap and positions.

Made from the items alone, before any model has seen them. A word is a run without white space, in small letters and
without punctuation around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

import numpy as np

from mecharule_ops.predicates.cuts import column_predicates, round_cuts
from mecharule_ops.predicates.functions import words_of
from mecharule_ops.predicates.type_check import writable
from mecharule_ops.types import Value

_LEAST, _MOST = 0.03, 0.97
"""A word or value gives a predicate when this share of the items has it, and not more than that."""
_WORDS = 24
"""Most words of a column that are tried, the most frequent first."""
NEGATION = r"(?i)\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot)\b|n['’]t\b"
"""Words of negation, as RE2 reads them."""


def text_predicates(columns: Mapping[str, Sequence[Value]], categories: int) -> tuple[str, ...]:
    """Distinct predicate texts over an item's columns; a text of few values, as `is_free` tells, is a category."""
    free = [name for name, values in columns.items() if is_free(values, categories)]
    arrays = {name: np.array(values) for name, values in columns.items() if name not in free}
    every = np.arange(len(next(iter(columns.values()), ())))
    families = (
        column_predicates(arrays, every),
        *(_of_text(name, [str(value) for value in columns[name]]) for name in free),
        *(_of_pair(left, right) for left, right in permutations(free, 2)),
    )
    return tuple(dict.fromkeys(text for family in families for text in family))


def is_free(values: Sequence[Value], categories: int) -> bool:
    """Whether a column holds free text: more values than `categories` and than a tenth of the items, or a long one."""
    distinct = set(values)
    if not all(isinstance(value, str) for value in distinct):
        return False
    return len(distinct) > max(categories, len(values) // 10) or not all(map(writable, distinct))


def _of_text(name: str, texts: Sequence[str]) -> Iterator[str]:
    """Negation, frequent words anywhere, first and last words, and the length."""
    found = [words_of(text) for text in texts]
    yield f"matches({name}, {NEGATION!r})"
    yield from (f"has_word({name}, {word!r})" for word in _frequent([set(words) for words in found], _WORDS))
    for function, place in (("first_word", 0), ("last_word", -1)):
        ends = [{words[place]} for words in found if words]
        yield from (f"{function}({name}) == {word!r}" for word in _frequent(ends, _WORDS))
    lengths = np.array([len(words) for words in found], np.float64)
    yield from (f"words({name}) >= {int(np.ceil(cut))}" for cut in round_cuts(lengths))


def _of_pair(left: str, right: str) -> Iterator[str]:
    """How much of one text the other repeats, in which order, and whether they begin or end alike."""
    yield from (f"overlap({left}, {right}) == 1", f"overlap({left}, {right}) >= 0.5")
    yield f"has_phrase({left}, {right})"
    yield f"words({left}) > words({right})"
    if left < right:
        yield from (f"{end}_word({left}) == {end}_word({right})" for end in ("first", "last"))


def _frequent(found: Sequence[set[str]], most: int) -> Iterator[str]:
    """Words by the number of texts that have them, the most frequent first, ties by spelling."""
    counts = Counter(word for words in found for word in words)
    shares = {word: count / len(found) for word, count in counts.items() if word and writable(word)}
    ranked = sorted(shares, key=lambda word: (-shares[word], word))
    return (word for word in ranked[:most] if _LEAST <= shares[word] <= _MOST)
