"""A question read: what it names, taken out of its words, and what the words that are left mean.

Units, layers, prompts, runs and directions leave a letter behind (`U`, `L`, `P`, `R`), as in the wordings of
`questions`; a word of the glossary (`T`), a property of a record (`C`) and a unit meant by its place (`U`) do where a
wording asks for them, since `the splitter` may be a word to define or part of what is asked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import product

from agent.answering.vocabulary import IDIOMS, LIGHT, SYNONYMS, corrected, meaning
from mecharule_ops.bases import UNIT_NAME
from mecharule_ops.saying.glossary import SPELLINGS
from mecharule_ops.saying.properties import PROPERTIES

ORDINALS = {"second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "fifth": 5, "5th": 5}
LETTERS = frozenset("ULPRTC")
_QUOTED = re.compile(r"(?<!\w)[\"'`“‘]([^\"'`”’]{2,})[\"'`”’](?!\w)")
_WORD_QUOTED = re.compile(r"(?<!\w)[\"'`“‘]([^\W\d]+(?:[ -][^\W\d]+)?|[Dd][+-])[\"'`”’](?!\w)")
"""A word or two in quotes is a word that is asked about, no prompt."""
_SUM = re.compile(r"(?<![\w.])\d+\s*[-+*/−×÷]\s*\d+\s*=?")
_ARROW = re.compile(r"(?<!\w)([01])\s*(?:→|->|to)\s*[01](?!\w)")
_UNIT = re.compile(rf"\b{UNIT_NAME}(?!\w)(?!\.\d)", re.IGNORECASE)
_LAYER = re.compile(r"\blayer\s*(?:number\s*)?(\d{1,4})\b|\b[mna](\d{1,4})\b(?!\.)", re.IGNORECASE)
_RUN = re.compile(
    r"\brun\s+([0-9a-f]{4,16}|last)\b|(?<=with )(last|(?=\w*\d)[0-9a-f]{4,16})\b", re.IGNORECASE
)
_NAMES = (("P", _QUOTED), ("U", _UNIT), ("R", _RUN), ("arrow", _ARROW), ("P", _SUM), ("L", _LAYER))
NAMED = ((_UNIT,), (_QUOTED, _SUM), (_LAYER,))
"""Patterns of units, prompts and layers."""
_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*", re.UNICODE)
_PLACE = re.compile(
    r"(?<!\ba )(?:\bthe )?\b(?<!\ba )(?:(?P<ordinal>second|2nd|third|3rd|fourth|4th|fifth|5th)"
    r"(?:[ -](?:strongest|best|largest))?"
    r"|strongest|best|top|biggest|largest|main|most important)"
    r" (?:τ-agonist|agonist|unit|(?P<noun>neuron|head|channel)|one)s?\b"
    r"|\bthe (?P<last>second|2nd|third|3rd|fourth|4th|fifth|5th)(?=\s*\?*$)"
)
_PRONOUN = re.compile(
    r"\b(?:it|its|it's|them|they|their|this (?:unit|neuron|head|one)|that (?:unit|neuron|head))\b"
)


def _bare(words: str) -> str:
    """Words as they compare: no blank, hyphen or underscore."""
    return re.sub(r"[\s_-]", "", words)


def _spelt_as(words: str) -> str:
    """A pattern for words that may have blanks, hyphens or underscores between them."""
    return r"[\s_-]".join(map(re.escape, re.split(r"[\s_-]", words)))


_TERM, PROPERTY_WORD = (
    re.compile(rf"(?<![\w.-])(?:{'|'.join(map(_spelt_as, sorted(words, key=len, reverse=True)))})(?![\w+])")
    for words in (SPELLINGS, [word for one in PROPERTIES.values() for word in one.said])
)
_DEFINED = re.compile(r"\b(?:an?|by|term|word|define|definition of|meaning of)\s*$")
_TERMS = {_bare(spelling): name for spelling, name in SPELLINGS.items()}
_SAID = {word: one.name for one in PROPERTIES.values() for word in one.said}
_IDIOMS = tuple(
    (re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.MULTILINE), meant) for pattern, meant in IDIOMS
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One question, or one part of it."""

    units: tuple[str, ...] = ()
    layers: tuple[int, ...] = ()
    prompts: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    regimes: tuple[str, ...] = ()
    place: int | None = None
    """Which unit by strength is meant; None where none is asked for by its place."""
    noun: str = ""
    """The kind of unit that is counted for it: head, channel or neuron; empty for any."""
    refers: bool = False
    """Whether it has a pronoun."""
    term: str | None = None
    """A word of the glossary."""
    defines: bool = False
    """Whether that word stands as one to be defined: `a slice`, `meant by lead`."""
    about: str | None = None
    """A property of a record."""
    text: str = ""
    """What is left, with a letter for each name."""
    meanings: Mapping[tuple[str, bool], frozenset[str]] = field(default_factory=dict)
    """The meanings of what is left by (letters for a term or a property, whether for a place too)."""
    corrected: tuple[tuple[str, str], ...] = ()
    """(as written, as read)."""

    def words(self, letters: str = "", *, place: bool = False) -> frozenset[str]:
        """The meanings of what is left, with letters for a term or a property, and for a unit meant by its place."""
        return self.meanings[letters, place]


def _meanings(text: str, letters: str, place: bool) -> frozenset[str]:
    for letter, pattern in (("T", _TERM), ("C", PROPERTY_WORD)):
        if letter in letters:
            text = pattern.sub(f" {letter} ", text)
    text = _ARROW.sub(" ", text)
    return words_of(phrased(_PLACE.sub(" U ", text) if place else text))


def phrased(text: str) -> str:
    """The text with a word in place of each phrase that means one thing; of several lines each by itself."""
    for pattern, meant in _IDIOMS:
        text = pattern.sub(f" {meant} ", text)
    return text


def words_of(text: str) -> frozenset[str]:
    """The meanings in a phrased text whose names are letters already; a letter that stands twice is another."""
    found: Counter[str] = Counter()
    for match in _WORD.finditer(text):
        word = match[0]
        if word in LETTERS:
            found[word] += 1
        elif word in SYNONYMS:
            found[SYNONYMS[word]] = 1
        else:
            for part in [word] if word in _KNOWN_IDIOMS else word.split("-"):
                if part:
                    found[part if part in LIGHT else meaning(part)] = 1
    return frozenset(word * min(2, count) if word in LETTERS else word for word, count in found.items())


_KNOWN_IDIOMS = frozenset(meant for _, meant in IDIOMS)


def lowered(text: str) -> str:
    """In lower case but for the letters that stand for names; `D+` as a word."""
    text = re.sub(r"\b[Dd][+⁺](?!\d)", "dplus", text)
    text = re.sub(r"\b[Dd][-−⁻](?![\w])", "dminus", text)
    return re.sub(r"\S+", lambda match: match[0] if match[0] in LETTERS else match[0].lower(), text)


def read(question: str, known: Collection[str] = ()) -> Reading:
    """Everything that a question holds; a word that is not `known` is read as the one it differs from by a letter."""
    text = _WORD_QUOTED.sub(r" \1 ", " ".join(question.replace("’", "'").split()))
    found: dict[str, list[str]] = {}
    for name, pattern in _NAMES:
        for match in pattern.finditer(text):
            found.setdefault(name, []).append(next((group for group in match.groups() if group), match[0]))
        text = text if name == "arrow" else pattern.sub(f" {name} ", text)
    text, typos = _spelt(lowered(text), known)
    term, about, place = _TERM.search(text), PROPERTY_WORD.search(text), _PLACE.search(text)
    regimes = list(found.get("arrow", ()))
    if re.search(r"\b(?:break|breaks|broke|breaking)\b", text):
        regimes.append("1")
    if re.search(r"\b(?:repair|repairs|fix|fixes|mend|mends)\b", text):
        regimes.append("0")
    return Reading(
        units=tuple(dict.fromkeys(unit.lower() for unit in found.get("U", ()))),
        layers=tuple(dict.fromkeys(map(int, found.get("L", ())))),
        prompts=tuple(dict.fromkeys(prompt.strip() for prompt in found.get("P", ()))),
        runs=tuple(found.get("R", ())),
        regimes=tuple(dict.fromkeys(regimes)),
        place=None if place is None else ORDINALS.get(place["ordinal"] or place["last"] or "", 1),
        noun=(place["noun"] or "") if place is not None else "",
        refers=_PRONOUN.search(text) is not None,
        term=None if term is None else _TERMS[_bare(term[0])],
        defines=term is not None and _DEFINED.search(text[: term.start()]) is not None,
        about=None if about is None else _SAID[about[0]],
        text=text,
        meanings={
            (letters, there): _meanings(text, letters, there)
            for letters, there in product(("", "T", "C", "TC"), (False, True))
        },
        corrected=typos,
    )


def _stem_is_known(word: str, known: Collection[str]) -> bool:
    return any(f"{meaning(word)}{ending}" in known for ending in ("", "e", "s", "ed", "ing"))


def _spelt(text: str, known: Collection[str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The text with misspelt words put right, and which they were."""
    typos: list[tuple[str, str]] = []

    def right(match: re.Match[str]) -> str:
        word = match[0]
        if not known or word in LETTERS or word in known or word in LIGHT or word in SYNONYMS:
            return word
        if "-" in word or _stem_is_known(word, known) or (read_as := corrected(word, known)) is None:
            return word
        typos.append((word, read_as))
        return read_as

    return _WORD.sub(right, text), tuple(typos)
