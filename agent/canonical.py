"""Questions that are answered without a language model: a grammar of names, and the nearest of a few wordings.

Units, conditions, columns, prompts and words of the program are read out of a question first and stand as U, V, C, K, P
and W; what is left is held against the wordings of each canonical question. A question is taken for one of them only if
it names the same things, lies near, and has no word of weight that the wording lacks: **anything else gets three
suggestions, never the answer to another question.** `it` is the unit of the last question.

Suggestions are ranked by what a question names and by its words, the rarer over all questions the more, and hold its
own units, condition, column and prompt.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rapidfuzz import fuzz

from mecharule_ops.bases import UNIT_NAME

NEAR = 86.0
"""Likeness of 100 from which a question is taken for a wording."""
ALIKE = 80.0
"""Likeness from which two words are one, misspelt."""
SUGGESTED = 3
UNIT = re.compile(rf"(?<![\w.]){UNIT_NAME}(?!\w)")
_QUOTED = re.compile(r"[\"“”'‘’]([^\"“”]+?)[\"“”'‘’](?=\s|[?.,!]|$)")
_SUM = re.compile(r"(?<![\w.])\d+\s*[-+*/×÷]\s*\d+\s*=?")
_STRONGEST = re.compile(
    r"\b(?:the\s+)?(?P<nth>second\s+|third\s+)?strongest\s+(?P<noun>unit|head|neuron|channel)\b(?:\s+found)?",
    re.IGNORECASE,
)
_PRONOUN = re.compile(r"\b(?:it|this unit|that unit|this head|this neuron)\b", re.IGNORECASE)
_CONDITION = re.compile(
    r"\b(?:where|among|when there is|when|if|on)\s+(?P<said>.+?)\s*\??\s*$", re.IGNORECASE
)
_BY = re.compile(r"\bby\s+(?P<column>\w+)\s*\??\s*$", re.IGNORECASE)
_SMALL = frozenset(
    re.findall(
        r"\w+",
        "the a an of to do does did is are was were be been please can could would you me i my us and or in it that "
        "this there for so any all out exactly really just then now tell give show say",
    )
)
_MEANING = re.compile(
    r"\s*(?P<before>what does|what is meant by|what is|define|explain the word|meaning of)\s+"
    r"(?:the word\s+|an?\s+)?(?P<term>.+?)(?P<after>\s+mean)?\s*\??\s*",
    re.IGNORECASE,
)


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
    nouns: Mapping[str, str]
    """The noun of each unit."""
    columns: tuple[str, ...]
    terms: Mapping[str, str]
    """Words of the program, each spelling with its name."""
    condition: Callable[[str], str | None]
    prompt: str = ""
    """An example of the task's."""
    other: str = ""
    """A unit that was not found."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Words that mean a condition of the task's, each with how a question says that; the first stands for any."""


@dataclass(slots=True, kw_only=True)
class Understood:
    """A question that was read: what is asked and of what."""

    row: Row
    left: str = ""
    """The question with letters in the place of names."""
    units: tuple[str, ...] = ()
    condition: str = ""
    said: str = ""
    """The condition as it was said."""
    column: str = ""
    prompt: str = ""
    term: str = ""
    strange: bool = False
    """A condition that does not read, or a unit that is meant and not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggested:
    """Three questions that can be answered, for one that cannot."""

    questions: tuple[str, ...]


@lru_cache(1)
def rows() -> tuple[Row, ...]:
    """Every canonical question."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return tuple(
        Row(name=name, **{**row, "wordings": tuple(row["wordings"])})
        for name, row in tomllib.loads(text).items()
    )


def understand(question: str, names: Names, last: str = "") -> Understood | Suggested:
    """What is asked, or three suggestions; `last` is the unit that `it` stands for."""
    readings = [_read(question, names, it) for it in dict.fromkeys(("", last))]
    scored = sorted(
        (
            (max(_likeness(found.left, wording) for wording in row.wordings), row, found)
            for found in readings
            for row in rows()
        ),
        key=lambda each: -each[0],
    )
    best, row, found = scored[0]
    if best >= NEAR and not found.strange:
        return replace(found, row=row)
    return Suggested(questions=_suggested(question, readings[-1], names, last))


def _suggested(question: str, read: Understood, names: Names, last: str) -> tuple[str, ...]:
    """The questions of the topic that a question's words are of, with the names that it names."""
    text = question.casefold()
    units = read.units
    known = {
        "unit": [*units, *filter(None, [last]), *names.units],
        "second": [unit for unit in [*units[1:], *names.units] if unit not in units[:1]],
        "other": [unit for unit in (*units, names.other) if unit not in names.units],
        "condition": [
            *filter(None, [read.said]),
            *(
                asked
                for word, asked in names.words.items()
                if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)
            ),
            *names.words.values(),
        ],
        "column": [
            *filter(None, [read.column]),
            *(name for name in names.columns if name in _words(text) and (name[1:] or f"by {name}" in text)),
            *names.columns,
        ],
        "prompt": [one for one in (read.prompt, names.prompt) if one],
        "term": ["τ"],
    }
    named = {"unit"} if units else set()
    named |= {"second"} if len(units) > 1 else {"prompt"} if read.prompt else set()
    named |= {"condition"} if len(known["condition"]) > len(names.words) else set()
    named |= {"column"} if len(known["column"]) > len(names.columns) else set()
    is_found = not units or units[0] in names.units
    stems = {_stem(word) for word in _words(text) - _SMALL}

    def score(row: Row) -> float:
        takes = {"unit" if name == "other" else name for name in row.takes}
        told = sum(_weights()[stem] for stem in stems & _bag(row)) + 1.5 * (
            "other" in row.takes and bool(units)
        )
        lacks = len(named - takes) + (2 if "unit" in named - takes else 0)
        return told + 2 * len(takes & named) - lacks - 0.7 * len(takes - named)

    fits = [
        row
        for row in rows()
        if all(known[name] for name in row.takes)
        and (is_found or row.tool != "why")
        and ("other" not in row.takes or not (units and is_found))
    ]
    return tuple(
        row.ask.format(**{name: known[name][0] for name in row.takes})
        for row in sorted(fits, key=score, reverse=True)[:SUGGESTED]
    )


def _words(text: str) -> set[str]:
    return set(re.findall(r"[\w+'-]+", text))


def _stem(word: str) -> str:
    return re.sub(r"(?<=\w{3})(?:ations?|ings?|edly|ed|es|ly|s|e)$", "", word)


def _bag(row: Row) -> Set[str]:
    """The stems of the words of a question and of its tool."""
    text = " ".join((*row.wordings, row.ask, row.about, row.name.replace("_", " "), row.tool))
    return {_stem(word) for word in _words(text.casefold()) - _SMALL}


@lru_cache(1)
def _weights() -> Mapping[str, float]:
    """How rare each word is among the questions."""
    counts = Counter(stem for row in rows() for stem in _bag(row))
    return {stem: math.log(len(rows()) / count) for stem, count in counts.items()}


def _read(question: str, names: Names, last: str) -> Understood:
    text, found = f" {question.strip()} ", Understood(row=rows()[0])
    units: list[str] = []
    if (by := _BY.search(text)) and by["column"] in names.columns:
        found.column = by["column"]
        text = f"{text[: by.start()]} by K "
    elif (condition := _CONDITION.search(text)) and (read := names.condition(condition["said"])) is not None:
        found.condition, found.said = read, condition["said"].strip()
        text = f"{text[: condition.start()]} where C "

    if (quoted := _QUOTED.search(text)) or (quoted := _SUM.search(text)):
        found.prompt = quoted[1] if quoted.re is _QUOTED else quoted[0].strip()
        text = f"{text[: quoted.start()]} P {text[quoted.end() :]}"

    def unit(match: re.Match[str]) -> str:
        units.append(match[0])
        return " UV"[min(len(units), 2)]

    def placed(match: re.Match[str]) -> str:
        nth = {"second": 1, "third": 2}.get((match["nth"] or "").strip().lower(), 0)
        noun = match["noun"].lower()
        if noun == "neuron" and noun not in names.nouns.values():
            noun = "unit"  # as which it is used of units in general
        ranked = names.units[: names.shown]
        of_noun = [each for each in ranked if noun in ("unit", names.nouns.get(each, noun))]
        if nth >= len(of_noun):
            found.strange = True
            return match[0]
        return f" {of_noun[nth]} "

    text = _STRONGEST.sub(placed, text)
    if not UNIT.search(text) and last and _PRONOUN.search(text):
        text = _PRONOUN.sub(last, text, count=1)
    text = UNIT.sub(unit, text)
    found.units = tuple(units)
    if not (units or found.prompt or found.condition):
        text = _with_term(text, names, found)
    found.left = " ".join(re.findall(r"[\w+'-]+", text))
    return found


def _with_term(text: str, names: Names, found: Understood) -> str:
    """The text with a word of the program as W, where the question is of what it means."""
    asked = _MEANING.fullmatch(text)
    if asked is None or (name := names.terms.get(asked["term"].strip(" \"'").casefold())) is None:
        return text
    found.term = name
    return f"{asked['before']} W{asked['after'] or ''}"


def _likeness(left: str, wording: str) -> float:
    """Likeness of 100; below `NEAR` where the question has a word of weight that the wording lacks."""
    said, known = left.split(), wording.split()
    if sorted(filter(_is_name, said)) != sorted(filter(_is_name, known)):
        return 0.0
    lower = [word.casefold() for word in known]
    weighty = [word.casefold() for word in said if word.casefold() not in _SMALL and not _is_name(word)]
    like = float(fuzz.token_sort_ratio(left.casefold(), wording.casefold()))
    lacks = any(max((fuzz.ratio(word, other) for other in lower), default=0.0) < ALIKE for word in weighty)
    return min(NEAR - 1, like) if lacks else like


def _is_name(word: str) -> bool:
    return len(word) == 1 and word.isupper() and word in "UVCKPW"


def arguments_of(understood: Understood) -> dict[str, Any]:
    """What the tool of the question is told."""
    name = {"tabulate": "units", "ablate": "units", "records": "unit", "extract": "unit"}.get(
        understood.row.tool, "neuron"
    )
    given = {
        name: ",".join(understood.units),
        "where": understood.condition,
        "by": understood.column,
        "prompt": understood.prompt,
        "term": understood.term,
    }
    return {**understood.row.arguments, **{key: value for key, value in given.items() if value}}
