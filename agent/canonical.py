"""Questions that are answered without a language model: a grammar of names, and the nearest of a few wordings.

Units, conditions, columns, prompts and words of the program are read out of a question first and stand as U, V, C, K, P
and W; what is left is held against the wordings of each canonical question. A question is taken for one of them only if
it names the same things, lies near, and has no word of weight that the wording lacks: **anything else gets three
suggestions, never the answer to another question.** `it` is the unit of the last question.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
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
    parts: Sequence[str] = ()
    """The parts, or names in keys, of the tool's facts that answer it, the first before all; empty for all facts."""
    measure: str = ""
    """The command that measures the first part where a unit lacks it."""
    arguments: Mapping[str, object] = field(default_factory=dict)


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
    like: str = ""
    """A condition of the task's, for a suggestion."""


@dataclass(slots=True, kw_only=True)
class Understood:
    """A question that was read: what is asked and of what."""

    row: Row
    left: str = ""
    """The question with letters in the place of names."""
    units: tuple[str, ...] = ()
    condition: str = ""
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
    about = readings[-1].units or (last,) * bool(last)
    offered = [asked for _, row, _ in scored if (asked := filled(row, names, about))]
    return Suggested(questions=tuple(dict.fromkeys(offered))[:SUGGESTED])


def filled(row: Row, names: Names, about: Sequence[str] = ()) -> str:
    """The question of a row with a run's own names, about some units; empty where the run lacks what it needs."""
    first = next(iter([*about, *names.units]), "")
    known: Mapping[str, str] = {
        "unit": first,
        "second": next((unit for unit in [*about, *names.units] if unit != first), ""),
        "other": names.other,
        "condition": names.like,
        "column": next(iter(names.columns), ""),
        "prompt": names.prompt,
        "term": "τ",
    }
    needed = re.findall(r"\{(\w+)", row.ask)
    return row.ask.format(**known) if all(known[name] for name in needed) else ""


def _read(question: str, names: Names, last: str) -> Understood:
    text, found = f" {question.strip()} ", Understood(row=rows()[0])
    units: list[str] = []
    if (by := _BY.search(text)) and by["column"] in names.columns:
        found.column = by["column"]
        text = f"{text[: by.start()]} by K "
    elif (condition := _CONDITION.search(text)) and (read := names.condition(condition["said"])) is not None:
        found.condition = read
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
    name = {"tabulate": "units", "ablate": "units", "records": "unit"}.get(understood.row.tool, "neuron")
    given = {
        name: ",".join(understood.units),
        "where": understood.condition,
        "by": understood.column,
        "prompt": understood.prompt,
        "term": understood.term,
    }
    return {**understood.row.arguments, **{key: value for key, value in given.items() if value}}
