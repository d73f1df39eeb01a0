"""Which row of `questions` a reading is nearest to: words in common, the rarer the weightier (TF-IDF, cosine).

A word that no wording holds weighs against every row, so that what is far from all of them is near to none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from agent.answering.questions import QUESTIONS, Question
from agent.answering.understanding import LETTERS, Reading, lowered, phrased, words_of
from agent.answering.vocabulary import LIGHT, SYNONYMS
from mecharule_ops.saying.glossary import SPELLINGS
from mecharule_ops.saying.properties import PROPERTIES

_LETTER = 0.9
"""Weight of a letter that stands for a name: what a row needs is asked for apart."""
_SAYS_LITTLE = 0.2
"""Weight of a word that says little by itself."""
_STRANGE = 2.2
"""Weight of a word that no wording holds."""
_NOUNS = frozenset({"unit", "record", "rule", "layer", "model", "group", "search"})
"""What a question counts or asks for: common, and yet never to be taken for one another."""
_QUANTIFIERS = frozenset({"always", "all"})
"""What turns a question into a claim; the wordings that hold one are asked about it."""
_CLAIMED = 0.25
"""What a wording loses for such a word that it does not hold itself."""
_LEAST = 2.0
"""Weight of such a word at least."""
_ROW = 0.3
"""Share of a score that goes by all wordings of a row together."""
_BARE = 0.06
"""What a row about a unit loses where the question names none and none was spoken of last, and gains where one was."""
_NAMED = 0.15
"""What a row gains that is one of few with a place for a prompt, or for two units."""
_WORD = 0.05
"""What a definition loses: `the baseline` is rather this run's than the word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A row and how near it lies, from 0 to 1."""

    row: Question
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Wordings:
    """The wordings of all rows as sets of meanings, with what each meaning weighs."""

    of: Mapping[str, list[tuple[str, frozenset[str]]]]
    """By kind: (letters for a term or a property, meanings)."""
    weights: Mapping[str, float]
    spellings: frozenset[str]
    """Every word as it is spelt there."""

    def weight(self, word: str) -> float:
        """Of one meaning."""
        if word[0] in LETTERS:
            return _LETTER
        return _SAYS_LITTLE if word in LIGHT else self.weights.get(word, _STRANGE)

    def norm(self, words: frozenset[str]) -> float:
        """Length of a set of meanings."""
        return math.sqrt(sum(self.weight(word) ** 2 for word in words))


@cache
def wordings() -> Wordings:
    """Read once a process."""
    texts = [
        (row.kind, text.replace("layer L", "L").replace("run R", "R"))
        for row in QUESTIONS.values()
        for text in row.asked
    ]
    lines = phrased("\n".join(lowered(text) for _, text in texts)).split("\n")
    of: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for (kind, text), line in zip(texts, lines, strict=True):
        letters = "".join(letter for letter in "TC" if letter in text.split())
        of.setdefault(kind, []).append((letters, words_of(line)))
    rows = [frozenset[str]().union(*(words for _, words in asked)) for asked in of.values()]
    held = frozenset[str]().union(*rows)
    weights = {
        word: max(
            math.log(1 + len(rows) / sum(word in row for row in rows)),
            _LEAST * (word in _NOUNS | _QUANTIFIERS),
        )
        for word in held
    }
    spelt = " ".join(lowered(text) for row in QUESTIONS.values() for text in row.asked)
    named = (*SPELLINGS, *(word for one in PROPERTIES.values() for word in one.said))
    spellings = frozenset(re.findall(r"[^\W\d_]{4,}", f"{spelt} {' '.join(named)} {' '.join(SYNONYMS)}"))
    spellings |= {word for word in LIGHT if len(word) > 3}
    spellings = frozenset(word for word in spellings if len(word) > 4 or word in SYNONYMS)
    return Wordings(of=of, weights=weights, spellings=spellings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The rows that a reading can mean, nearest first, and its words that no wording holds."""

    matches: tuple[Match, ...]
    strange: tuple[str, ...]

    @property
    def best(self) -> float:
        """How near the nearest lies; 0 without any."""
        return self.matches[0].score if self.matches else 0.0


def ranked(reading: Reading, *, spoken_of: int = 0) -> Ranking:
    """Every row that has a place for what the reading names and is told what it needs.

    `spoken_of`: how many units the last answer was about, which a question that names none may go on about.
    """
    known = wordings()
    found = [
        Match(row=row, score=_score(row, reading, known) + _leaning(row, reading, spoken_of=spoken_of))
        for row in QUESTIONS.values()
        if _fits(row, reading)
    ]
    strange = (
        word
        for word in reading.words("TC")
        if word[0] not in LETTERS and word not in known.weights and word not in LIGHT
    )
    return Ranking(
        matches=tuple(sorted(found, key=lambda match: -match.score)), strange=tuple(sorted(strange))
    )


def _score(row: Question, reading: Reading, known: Wordings) -> float:
    """The likeness of the nearest wording, and how much of what is asked any wording of the row holds."""
    place = bool(row.units[1]) and not row.superlative and reading.place is not None
    asked = {
        letters: reading.words(letters, place=place)
        for letters in {letters for letters, _ in known.of[row.kind]}
    }
    best, all_of_them = 0.0, frozenset[str]().union(*(words for _, words in known.of[row.kind]))
    for letters, words in known.of[row.kind]:
        if ("T" in letters and reading.term is None) or ("C" in letters and reading.about is None):
            continue
        mine = asked[letters]
        common = sum(known.weight(word) ** 2 for word in mine & words)
        length = known.norm(mine) * known.norm(words)
        if length and common:
            near = common / length
            weighed = sum(known.weight(word) for word in mine)
            near = (1 - _ROW) * near + _ROW * sum(known.weight(word) for word in mine & all_of_them) / weighed
            best = max(best, near - _CLAIMED * sum(map(_claims, mine - words)))
    return best


def _claims(word: str) -> bool:
    """Whether a word turns a question into a claim: a quantifier, a long number such as a year."""
    return word in _QUANTIFIERS or (word.isdigit() and len(word) > 3)


def _leaning(row: Question, reading: Reading, *, spoken_of: int) -> float:
    """What else speaks for a row or against it: a unit that goes without saying, a word that has a row of its own."""
    if row.term:
        return _WORD / 2 if reading.defines else -_WORD
    named = len(reading.units) + reading.refers
    if row.prompt or row.run or (row.units[0] == 2 and named == 2):
        return _NAMED
    if not row.units[0] or reading.units or reading.place is not None or row.lacks:
        return 0.0
    return _BARE if spoken_of >= row.units[0] else -_BARE / 3


def _fits(row: Question, reading: Reading) -> bool:
    """Whether a row has a place for all that is named, and is told what it cannot do without."""
    place = reading.place is not None and not row.superlative
    named = len(reading.units) + (place and not reading.units)
    return (
        len(reading.units) <= row.units[1]
        and (row.units[0] < 2 or named >= row.units[0] or (not reading.units or reading.refers))
        and len(reading.prompts) == int(row.prompt)
        and len(reading.layers) == int(row.layer)
        and len(reading.runs) == int(row.run)
        and (not row.term or reading.term is not None)
        and (not row.about or reading.about is not None)
    )
