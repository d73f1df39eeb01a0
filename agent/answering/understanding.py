"""A question read word by word: what it names, what it means, and which of its words nobody understood.

Names (units, layers, prompts, runs, directions) are taken out first, then idioms, then single words by the vocabulary
of `words`. Nothing is skipped: a word without a known meaning stands in `unknown`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent.answering.vocabulary import IDIOMS, corrected, meaning
from mecharule_ops.bases import UNIT_NAME

ORDINALS = {"second": 2, "third": 3, "fourth": 4, "fifth": 5}
_QUOTED = re.compile(r"(?<!\w)[\"'`“‘]([^\"'`”’]{2,})[\"'`”’](?!\w)")
_SUM = re.compile(r"(?<![\w.])\d+\s*[-+*/−×÷]\s*\d+\s*=?")
_ARROW = re.compile(r"(?<!\w)([01])\s*(?:→|->|to)\s*[01](?!\w)")
_UNIT = re.compile(rf"\b{UNIT_NAME}(?!\w)(?!\.\d)", re.IGNORECASE)
_LAYER = re.compile(r"\blayer\s*(?P<number>\d{1,4})\b|\b[mna](?P<short>\d{1,4})\b(?!\.)", re.IGNORECASE)
_RUN = re.compile(
    r"\brun\s+([0-9a-f]{4,16}|last)\b|(?<=with )(last|(?=\w*\d)[0-9a-f]{4,16})\b", re.IGNORECASE
)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*|\S", re.UNICODE)
_MARKS = frozenset(".,:;?!…\"'`“”‘’()[]-–—¿¡*")
"""Punctuation that says nothing between words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One question, or one part of it."""

    units: tuple[str, ...] = ()
    layers: tuple[int, ...] = ()
    prompts: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    regimes: tuple[str, ...] = ()
    meanings: frozenset[str] = frozenset()
    unknown: tuple[str, ...] = ()
    """Words that carry a meaning which nobody here knows."""
    corrected: tuple[tuple[str, str], ...] = ()
    """(as written, as read)."""

    @property
    def place(self) -> int | None:
        """Which unit by strength is meant; None where none is asked for by its place."""
        ordinal = next((place for word, place in ORDINALS.items() if word in self.meanings), None)
        return ordinal or (1 if "strongest" in self.meanings else None)


def read(question: str) -> Reading:
    """Everything that a question holds."""
    text = " ".join(question.replace("’", "'").split())
    found: dict[str, list[str]] = {}

    def take(name: str, pattern: re.Pattern[str]) -> None:
        nonlocal text
        for match in pattern.finditer(text):
            found.setdefault(name, []).append(next((group for group in match.groups() if group), match[0]))
        text = pattern.sub(" ", text)

    for name, pattern in (
        ("prompt", _QUOTED),
        ("unit", _UNIT),
        ("run", _RUN),
        ("arrow", _ARROW),
        ("prompt", _SUM),
    ):
        take(name, pattern)
    rest = _LAYER.sub(" ", text).lower()
    for pattern_text, meant in IDIOMS:
        rest = re.sub(rf"(?<!\w)(?:{pattern_text})(?!\w)", f" {meant} ", rest)
    meanings, unknown, typos = _words(rest)
    regimes = [*found.get("arrow", ()), *("1" for word in ["breaks"] if word in meanings)]
    regimes += ["0" for word in ["repairs"] if word in meanings]
    return Reading(
        units=tuple(dict.fromkeys(unit.lower() for unit in found.get("unit", ()))),
        layers=tuple(
            dict.fromkeys(int(match["number"] or match["short"]) for match in _LAYER.finditer(text))
        ),
        prompts=tuple(prompt.strip() for prompt in found.get("prompt", ())),
        runs=tuple(found.get("run", ())),
        regimes=tuple(dict.fromkeys(regimes)),
        meanings=frozenset(
            meanings - {"breaks", "repairs"} | ({"flip"} if meanings & {"breaks", "repairs"} else set())
        ),
        unknown=tuple(unknown),
        corrected=tuple(typos),
    )


def _words(text: str) -> tuple[set[str], list[str], list[tuple[str, str]]]:
    """(meanings, unknown words, corrections)."""
    meanings: set[str] = set()
    unknown: list[str] = []
    typos: list[tuple[str, str]] = []
    for word in _spoken(text):
        meant = meaning(word)
        if meant is None and (known := corrected(word)):
            typos.append((word, known))
            meant = meaning(known)
        if meant is None:
            unknown.append(word)
        elif meant:
            meanings.add(meant)
    return meanings, unknown, typos


def _spoken(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text):
        if match[0] not in _MARKS:
            yield match[0].strip("'")
