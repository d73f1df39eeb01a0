"""Questions that are answered without a language model: a grammar of names, and the nearest of a few wordings.

Units, conditions, columns, prompts and words of the program are read out of a question first and stand as U, V, C, K, P
and W; what is left is held against the wordings of each canonical question. A question is taken for one of them only if
it names the same things, lies near, and has no word of weight that the wording lacks: **anything else gets three
suggestions, never the answer to another question.** `it` is the unit of the last question.

Suggestions are ranked by what a question names and by its words, the rarer over all questions the more, and hold its
own units, condition, column and prompt.
"""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from rapidfuzz import fuzz
from rapidfuzz.distance import DamerauLevenshtein

from mecharule_ops import bases, types
from mecharule_ops.facts.fact import SENTENCES

NEAR = 86.0
"""Likeness of 100 from which a question is taken for a wording."""
ALIKE = 0.78
"""Likeness of 1 from which two words are one, misspelt: `modle` is `model`, `median` is not `mean`."""
SUGGESTED = 3
LETTERS = frozenset("UVCKPW")
UNIT = re.compile(rf"(?<![\w.]){bases.UNIT_NAME}(?!\w)")
_QUOTED = re.compile(r"[\"“”'‘’](?P<said>[^\"“”]+?)[\"“”'‘’](?=[\s?.,!]|$)")
_SUM = re.compile(r"(?<![\w.])(?P<said>\d+\s*[-+*/×÷]\s*\d+\s*=?)")
_BY = re.compile(r"\bby\s+(?P<said>\w+)$", re.I)
_CONDITION = re.compile(r"\b(?:where|among|when there is|when|if|on)\s+(?P<said>.+)$", re.I)
_MEANING = re.compile(
    r"(?:what does|what is meant by|what is|define|explain the word|meaning of)\s+(?:the word\s+|an?\s+)?"
    r"[\"']?(?P<said>.+?)[\"']?(?:\s+mean)?",
    re.I,
)
STRONGEST = re.compile(r"(?:the\s+)?\bstrongest\s+(?P<noun>unit|head|neuron|channel)\b(?: found)?", re.I)
_PRONOUN = re.compile(r"\b(?:it|this unit|that unit|this head|this neuron)\b", re.I)
_SMALL = frozenset(SENTENCES["canonical.small"].split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One canonical question."""

    name: str
    tool: str
    ask: str
    """How it is offered, filled with a run's own names."""
    wordings: tuple[str, ...]
    about: str = ""
    """Further words of its topic."""
    parts: Sequence[str] = ()
    """The parts, or names in keys, of the tool's facts that answer it, the first before all; empty for all facts."""
    measure: str = ""
    """The command that measures the first part where a unit lacks it."""
    arguments: Mapping[str, object] = field(default_factory=dict)
    """What the tool is told, filled with what the question names."""

    @property
    def takes(self) -> Set[str]:
        """What a question of it names: `unit`, `second`, `other`, `condition`, `column`, `prompt`, `term`."""
        return frozenset(re.findall(r"\{(\w+)", self.ask))


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What a run has names for; `condition` reads words as a predicate, None where they are none."""

    units: tuple[str, ...]
    """Those found, the shown first, in the order of their evidence."""
    shown: int
    """How many of them are shown: only these have a rank."""
    columns: tuple[str, ...]
    terms: Mapping[str, str]
    """Words of the program, each spelling with its name."""
    condition: Callable[[str], str | None]
    prompt: str = ""
    """An example of the task's."""
    other: str = ""
    """A unit that was not found."""
    edited: bool = True
    """Whether the task makes prompts one edit apart."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Words that mean a condition of the task's, each with how a question says that; the first stands for any."""


@dataclass(frozen=True, slots=True)
class Understood:
    """A question that was read: what is asked, and the names in it."""

    row: Row
    named: Mapping[str, str]

    @property
    def arguments(self) -> dict[str, Any]:
        """What the tool of the question is told."""
        given = self.row.arguments.items()
        return {key: one.format(**self.named) if isinstance(one, str) else one for key, one in given}


@lru_cache(1)
def rows() -> tuple[Row, ...]:
    """Every canonical question."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return tuple(Row(name=name, **row) for name, row in tomllib.loads(text).items())


def understand(question: str, names: Names, last: str = "") -> Understood | tuple[str, ...]:
    """What is asked, or three suggestions; `last` is the unit that `it` stands for."""
    readings = [_read(question, names, it) for it in dict.fromkeys((last, ""))]
    known = ((left, named, row, one) for left, named in readings for row in rows() for one in row.wordings)
    left, named, row, wording = max(known, key=lambda found: _likeness(found[0], _plain(found[3])))
    # A capital that was typed names nothing.
    if _likeness(left, _plain(wording)) >= NEAR and len(LETTERS.intersection(left.split())) <= len(named):
        return Understood(row, named)
    return _suggested(question.casefold(), readings[0][1], names, last)


def _read(question: str, names: Names, last: str) -> tuple[str, dict[str, str]]:
    """A question with letters in the place of names, and the names."""
    text, named = question.strip(" ?"), dict[str, str]()
    if (asked := _MEANING.fullmatch(text)) and (term := names.terms.get(asked["said"].casefold())):
        return "what does W mean", {"term": term}
    readers: list[tuple[str, re.Pattern[str], Callable[[str], str | None], str]] = [
        ("column", _BY, lambda said: said if said in names.columns else None, "by K"),
        ("condition", _CONDITION, names.condition, "where C"),
        ("prompt", _QUOTED, str.strip, "P"),
        ("prompt", _SUM, str.strip, "P"),
    ]
    for name, pattern, reader, put in readers:
        if (found := pattern.search(text)) and (value := reader(found["said"])):
            named[name] = value
            text = f"{text[: found.start()]} {put} {text[found.end() :]}"
    text = STRONGEST.sub(lambda found: the_strongest(found, names), text)
    if not UNIT.search(text) and last:
        text = _PRONOUN.sub(last, text, count=1)
    for name, letter, unit in zip(("unit", "second"), "UV", UNIT.findall(text), strict=False):
        named[name] = unit
        text = text.replace(unit, letter, 1)
    return _plain(text), named


def the_strongest(found: re.Match[str], names: Names) -> str:
    """The unit that `the strongest head` means; the words themselves where none is shown."""
    nouns = {unit: types.Neuron.parse(unit).basis.row.noun for unit in names.units}
    noun = found["noun"].lower()
    # A neuron is used of units in general where none is one.
    is_any = noun == "unit" or (noun == "neuron" and noun not in nouns.values())
    return next((unit for unit in names.units[: names.shown] if is_any or nouns[unit] == noun), found[0])


def _plain(text: str) -> str:
    """Its words in small letters, but for the letters that stand for names."""
    return " ".join(word if word in LETTERS else word.casefold() for word in re.findall(r"[\w+'-]+", text))


def _likeness(left: str, wording: str) -> float:
    """Likeness of 100; 0 where the question names other things, or has a word of weight that the wording lacks."""
    said, known = left.split(), wording.split()
    if sorted(LETTERS.intersection(said)) != sorted(LETTERS.intersection(known)):
        return 0.0
    strange = [
        word
        for word in said
        if word not in _SMALL
        and max(DamerauLevenshtein.normalized_similarity(word, one) for one in known) < ALIKE
    ]
    return 0.0 if strange else fuzz.token_sort_ratio(left, wording)


def _suggested(text: str, read: Mapping[str, str], names: Names, last: str) -> tuple[str, ...]:
    """The questions of the topic that a question's words are of, with the names that it names."""
    words, told = set(_plain(text).split()), dict(read)
    for word, asked in names.words.items():
        if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text):
            told.setdefault("condition", asked)
    for name in names.columns:
        if name in words and (len(name) > 1 or f"by {name}" in text):
            told.setdefault("column", name)
    unit = told.get("unit") or last or next(iter(names.units), "")
    if not (is_found := unit in names.units) and "unit" in told:
        told["other"] = told.pop("unit")
    usual = {
        "unit": unit,
        "second": next((one for one in names.units if one != unit), ""),
        "other": names.other if is_found else unit,
        "condition": next(iter(names.words.values()), ""),
        "column": next(iter(names.columns), ""),
        "prompt": names.prompt,
        "term": "τ",
    }
    filled, bags = usual | told, {row.name: _bag(row) for row in rows()}
    counts = Counter(stem for bag in bags.values() for stem in bag)

    def score(row: Row) -> float:
        shared = bags[row.name] & set(map(_stem, words - _SMALL))
        rare = sum(math.log(len(bags) / counts[stem]) for stem in shared)
        asked, takes = told.keys(), row.takes
        return rare + 2 * len(takes & asked) - len(asked - takes) - 0.7 * len(takes - asked)

    fits = [
        row
        for row in rows()
        if all(filled[name] for name in row.takes)
        and (is_found or row.tool != "why")
        and (names.edited or row.tool != "pairs")
        and not ("other" in row.takes and "unit" in told)
    ]
    return tuple(row.ask.format(**filled) for row in sorted(fits, key=score, reverse=True)[:SUGGESTED])


def _stem(word: str) -> str:
    return re.sub(r"(?<=\w{3})(?:ations?|ings?|edly|ed|es|ly|s|e)$", "", word)


def _bag(row: Row) -> Set[str]:
    """The stems of the words of a question and of its tool."""
    text = " ".join((*row.wordings, row.ask, row.about, row.name.replace("_", " "), row.tool))
    return {_stem(word) for word in set(_plain(text).split()) - _SMALL}
