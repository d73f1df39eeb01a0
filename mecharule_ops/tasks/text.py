"""A task over texts: rows in, prompts out, a label for each completion; all else a task must offer is ready here.

A subclass is a frozen dataclass of its settings with `rows`, `question` and `success`. Columns are typed from the
values of the rows, then `prompt` (the question without the few-shot prefix, which is the same for all) and what
is read off the completion, so that the predicate language and its offline proposer work on any row. A column's
name is made one that a predicate can spell: `review text` becomes `review_text`.

What may tell one unit's flips apart is words, negation, overlap and positions, made from the items alone before any
model has seen them. A word is a run without white space, in small letters and without punctuation around it.
"""

import hashlib
import json
import keyword
import re
import unicodedata
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import ClassVar

import numpy as np

from mecharule_ops.errors import UsageError
from mecharule_ops.predicates.cuts import column_predicates, round_cuts
from mecharule_ops.predicates.functions import words_of
from mecharule_ops.predicates.type_check import writable
from mecharule_ops.tasks.base import Task, drawn
from mecharule_ops.tasks.column_words import COLUMNS, OF_EVERY_TASK, ColumnWords, table_words
from mecharule_ops.tasks.text_pieces import ANSWER, FEW_SHOT, TEMPLATE, SourceSpan, end_to_end, field_pieces
from mecharule_ops.types import BehaviourRecord, Example, Value

_LEAST, _MOST = 0.03, 0.97
"""A word or value gives a predicate when this share of the items has it, and not more than that."""
_WORDS = 24
"""Most words of a column that are tried, the most frequent first."""
NEGATION = r"(?i)\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot)\b|n['’]t\b"
"""Words of negation, as RE2 reads them."""


def text_predicates(columns: Mapping[str, Sequence[Value]]) -> tuple[str, ...]:
    """Distinct predicate texts over an item's columns; a text of few values, as `is_free` tells, is a category."""
    free = [name for name, values in columns.items() if is_free(values)]
    arrays = {name: np.array(values) for name, values in columns.items() if name not in free}
    families = (
        column_predicates(arrays, np.arange(len(next(iter(columns.values()), ())))),
        *(_of_text(name, [str(value) for value in columns[name]]) for name in free),
        *(_of_pair(left, right) for left, right in permutations(free, 2)),
    )
    return tuple(dict.fromkeys(text for family in families for text in family))


def is_free(values: Sequence[Value]) -> bool:
    """Whether a column holds free text: more values than `CATEGORIES` and than a tenth of the items, or a long one."""
    distinct = set(values)
    if not all(isinstance(value, str) for value in distinct):
        return False
    return len(distinct) > max(CATEGORIES, len(values) // 10) or not all(map(writable, distinct))


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


Row = Mapping[str, Value]
"""One item of a task: text or numbers by column name."""


class _Item(dict[str, Value]):
    """A row of which a column that it lacks is a usage error."""

    def __missing__(self, column: str) -> Value:
        raise UsageError(f"expected a column {column!r}, the items have {', '.join(self)}")


CATEGORIES = 12
"""A text column with at most this many values gives a predicate for each."""
_READ = ("first_word", "reply_words", "completion")
"""Columns read off the output; no item may have one of these names."""
_LONGEST_NAME = 100
"""Characters of a column's name: a predicate has two of them, and a value."""
USER_MODULE = "mecharule_task_"
"""Begins the name of a module that a user wrote; the hash of its source follows."""


@dataclass(frozen=True, kw_only=True)
class TextTask(Task):
    """A task over rows; a subclass says how they are read, asked and judged."""

    unread: ClassVar[frozenset[str]] = frozenset()
    """Columns of the rows that no rule reads."""

    @abstractmethod
    def rows(self) -> Sequence[Row]:
        """Every item, all with the same columns and types. Raises `UsageError` when they cannot be read."""

    @abstractmethod
    def question(self, row: Row) -> str:
        """The prompt of one item without the few-shot prefix; no two items share one."""

    @abstractmethod
    def success(self, row: Row, completion: str) -> bool:
        """B(x): whether the completion counts as a success on this item."""

    def seed_predicates(self) -> tuple[str, ...]:
        """Quartiles of the questions' lengths, and every value of a text column that holds a few values only."""
        lengths = [len(self.question(row).split()) for row in self._items]
        cuts = sorted({int(cut) for cut in np.quantile(lengths, (0.25, 0.5, 0.75), method="nearest")})
        texts = [f"words(prompt) >= {cut}" for cut in cuts]
        for name, values in self._columns_of_rows.items():
            distinct = sorted(set(values), key=str)
            if isinstance(distinct[0], bool):
                texts.append(name)
            elif isinstance(distinct[0], str) and 1 < len(distinct) <= CATEGORIES and not is_free(values):
                texts += [f"{name} == {value!r}" for value in distinct]
        return tuple(texts)

    def account_predicates(self) -> tuple[str, ...]:
        """The seed predicates, then words, negation, overlap and positions of every column."""
        return tuple(dict.fromkeys((*self.seed_predicates(), *text_predicates(self._columns_of_rows))))

    @property
    def wording(self) -> Mapping[str, ColumnWords]:
        """The columns by their names where the task has no better words for any."""
        return {**OF_EVERY_TASK, **(COLUMNS.get(type(self).name) or table_words(self._columns_of_rows))}

    @property
    def prompt_columns(self) -> frozenset[str]:
        """The rows' columns and the question."""
        return frozenset(self._columns_of_rows) | {"prompt"}

    def examples(self, count: int, generator: np.random.Generator) -> tuple[Example, ...]:
        """`count` distinct items drawn uniformly, or all in order when there are no more; ids count the items."""
        return tuple(self._example(place) for place in drawn(len(self._items), count, generator))

    def parse(self, example: Example, completion: str) -> Mapping[str, Value]:
        """`first_word` of the completion in small letters, without punctuation, and `reply_words`, their number."""
        return {"first_word": first_word(completion), "reply_words": len(completion.split())}

    def label(self, example: Example, completion: str) -> bool:
        """B(x) of a finished completion."""
        said = self.success(example.fields, completion)
        if not isinstance(said, bool | np.bool_):
            raise UsageError(f"expected True or False of the success of {self.name}, got {said!r}")
        return bool(said)

    def read(self, text: str) -> Example:
        """The item whose prompt this is, with or without the few-shot prefix. Raises `UsageError`."""
        place = self._places.get(self.within(text).strip())
        if place is None:
            raise UsageError(f"expected one of the {len(self._items)} prompts of {self.name}, got another")
        return self._example(place)

    def holding(self, words: str) -> Example:
        """The one item whose prompt alone holds these words; else they are a prompt of one's own."""
        said = re.compile(rf"(?<!\w){re.escape(words.strip())}(?!\w)", re.IGNORECASE)
        held = [place for prompt, place in self._places.items() if said.search(prompt)]
        return self._example(held[0]) if len(held) == 1 else super().holding(words)

    def sources(self, example: Example, completion: str) -> tuple[SourceSpan, ...]:
        """Few-shot lines, the row's columns by name where their values stand, the template, the answer."""
        pieces = field_pieces(self.within(example.prompt), example.fields)
        before = [(TEMPLATE, self.chat_before), (FEW_SHOT, self.prefix)]
        return end_to_end([*before, *pieces, (TEMPLATE, self.chat_behind), (ANSWER, completion)])

    def cells(self, record: BehaviourRecord) -> Mapping[str, Value]:
        """The row's columns, `prompt`, what `parse` reads, `completion`."""
        row, told = record.example.fields, self.parse(record.example, record.completion)
        fields = {spelt(name): value for name, value in row.items() if name not in self.unread}
        asked = self.within(record.example.prompt)
        return {**fields, "prompt": asked, **told, "completion": record.completion}

    def describe(self) -> Mapping[str, Value]:
        """Every setting, a hash of the items, and one of the source where a user wrote the task."""
        _, own, code = type(self).__module__.partition(USER_MODULE)
        told = {**super().describe(), "items": len(self._items), "content": content_of(self._items)}
        return told | ({"code": code} if own else {})

    def _example(self, place: int) -> Example:
        row = self._items[place]
        return Example(id=place, prompt=self.around(self.question(row)), fields=row)

    @cached_property
    def _items(self) -> tuple[Row, ...]:
        """The rows, of several with one question the first."""
        rows = [
            _Item((name, cell.item() if isinstance(cell, np.generic) else cell) for name, cell in row.items())
            for row in self.rows()
        ]
        if not rows:
            raise UsageError(f"expected items of {self.name}, got none; name a file that has some")
        names, first = check_names(rows[0]), dict[str, Row]()
        for row in rows:
            if not isinstance(question := self.question(row), str):
                raise UsageError(f"expected a text as the question of {self.name}, got {question!r}")
            if "prompt" in names and str(row[names["prompt"]]).strip() not in question:
                raise UsageError(
                    f"expected what the model reads in {names['prompt']!r}, since rules call that prompt, got a "
                    "column that the prompt does not show; rename it"
                )
            first.setdefault(question.strip(), row)
        return tuple(first.values())

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {self.question(row).strip(): place for place, row in enumerate(self._items)}

    @cached_property
    def _columns_of_rows(self) -> Mapping[str, Sequence[Value]]:
        names = [name for name in self._items[0] if name not in self.unread]
        columns = {spelt(name): [row[name] for row in self._items] for name in names}
        if "prompt" in columns:
            columns["prompt"] = [self.question(row) for row in self._items]
        return columns


def content_of(items: Sequence[Row]) -> str:
    """A hash of the items, whatever the order of their columns."""
    return hashlib.sha256(json.dumps([dict(row) for row in items], sort_keys=True).encode()).hexdigest()[:16]


def first_word(completion: str) -> str:
    """The first word in small letters without punctuation around it; empty when there is none."""
    words = completion.split(maxsplit=1)
    return words[0].lower().strip(".,;:!?\"'") if words else ""


def spelt(column: str) -> str:
    """The column's name as a predicate can write it, in the form in which Python reads names."""
    letters = unicodedata.normalize("NFKC", column)
    name = "".join(letter if f"_{letter}".isidentifier() else "_" for letter in letters)
    return f"{name}_" if keyword.iskeyword(name) else name if name.isidentifier() else f"_{name}"


def check_names(columns: Iterable[str]) -> dict[str, str]:
    """The columns by the names that rules call them.

    Raises `UsageError` for two with one such name, one of what is read off the output, and one too long to write.
    """
    names: dict[str, str] = {}
    for column in columns:
        name = spelt(column)
        if name in _READ:
            raise UsageError(f"expected other columns than {', '.join(_READ)}, got {column}; rename it")
        if len(name) > _LONGEST_NAME:
            raise UsageError(
                f"expected column names of at most {_LONGEST_NAME} characters, got {column!r}; rename it"
            )
        if (other := names.setdefault(name, column)) != column:
            raise UsageError(
                f"expected columns that rules can tell apart, got {other!r} and {column!r}, which both are {name} "
                "there; rename one"
            )
    return names
