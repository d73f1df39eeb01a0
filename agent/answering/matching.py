"""How likely each row of `questions` is meant by a reading: a linear model over its words, word pairs and letters.

Its weights, learned from `wordings.txt` and some thousand other wordings, are kept in `matching.npz`. Letters in groups
of three to five let a misspelt or inflected word count for the one that it is like. Nothing decides which words may
stand in a question: one that no wording holds lowers the score of every row.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Float

from agent.answering.questions import QUESTIONS, Question
from agent.answering.understanding import LETTERS, WORD, Reading, lowered
from agent.answering.wordings import NONE, WORDINGS

WEIGHTS = Path(__file__).with_suffix(".npz")
BUCKETS = 16384
"""Features are told apart by a checksum of so many values."""
_TEMPERATURE = 0.2
"""Of the scores as probabilities; fitted to wordings that were left out."""
SHORT = 8
"""Words of a question that may lean on the one before it."""
_GOING_ON = 0.2
"""What the row of the last question gains where such a question names nothing."""
_OWN = 0.3
"""What the row that counts by a property gains where a question names a column or value of the run's own table."""
_MANY_UNITS = re.compile(r"\b(?:units|heads|neurons|channels|agonists)\b")
_SPOKEN = 0.3
"""What a row about a unit gains where the question names none and one was spoken of last, and loses a third of else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A row and how likely it is meant."""

    row: Question
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What was learned: of each kind a weight a feature, and how much each feature counts."""

    kinds: tuple[str, ...]
    of: Float[np.ndarray, "buckets kinds"]
    bias: Float[np.ndarray, " kinds"]
    rarity: Float[np.ndarray, " buckets"]

    def scores(self, features: Sequence[int]) -> Float[np.ndarray, " kinds"]:
        """Of every kind."""
        weighed = self.rarity[list(features)]
        return self.of[list(features)].T @ (weighed / np.linalg.norm(weighed)) + self.bias


@cache
def weights() -> Weights:
    """Read once a process."""
    with np.load(WEIGHTS) as kept:
        return Weights(
            kinds=tuple(map(str, kept["kinds"])),
            of=kept["weights"] * kept["scale"],
            bias=kept["bias"],
            rarity=kept["rarity"],
        )


def features(reading: Reading, last: str = "") -> list[int]:
    """What the model looks at, by number: words, neighbours, letters in groups, and what is named.

    Of a short question, after one of the kind `last`, also each word together with that kind.
    """
    found: set[str] = set()
    for text in set(reading.texts):
        words = ["^", *WORD.findall(text), "$"]
        found |= {*words, *map(" ".join, pairwise(words))}
    for word in WORD.findall(reading.text):
        if word not in LETTERS:
            spelt = f"<{word}>"
            found |= {
                f"~{spelt[begin : begin + size]}"
                for size in (3, 4, 5)
                for begin in range(len(spelt) - size + 1)
            }
    found |= {f"#{len(reading.units[:2])}"}
    named = {"T": reading.term, "C": reading.about, "place": reading.place, "it": reading.refers or None}
    found |= {f"#{name}" for name, value in named.items() if value is not None}
    if last and _is_short(reading):
        found |= {f"@{last}", *(f"@{last} {word}" for word in WORD.findall(reading.text))}
    return sorted({zlib.crc32(one.encode()) % BUCKETS for one in found})


def _has_names(reading: Reading) -> bool:
    return bool(reading.units or reading.prompts or reading.layers or reading.runs)


def _is_short(reading: Reading) -> bool:
    return len(WORD.findall(reading.text)) <= SHORT


def ranked(
    reading: Reading, *, spoken_of: int = 0, last: str = "", known: Weights | None = None
) -> tuple[Match, ...]:
    """The rows that have a place for what is named and are told what they need, likeliest first.

    A wording in its own words is its row, where no other weights than the kept ones are to say, but for a word of the
    glossary after an answer, which may ask for that answer's. What is asked of a unit
    and of the run alike is asked of the unit where one is named, of the run where none is and none was spoken of.

    `spoken_of`: how many units the last answer was about, which a question that names none may go on about; `last`: its
    kind.
    """
    if not WORD.search(reading.text):
        return ()
    alone = bool((spoken_of or last) and reading.term and not reading.units and reading.place is None)
    if known is None and not alone and (row := _asked_in_its_own_words(reading)):
        return (Match(row=row, score=1.0),)
    known = known or weights()
    scores = dict(zip(known.kinds, map(float, known.scores(features(reading, last))), strict=True))
    is_named = bool(reading.units or (reading.refers and spoken_of)) or reading.place is not None
    for kind in known.kinds:
        general = "" if kind == NONE else QUESTIONS[kind].general
        if general and (is_named or not spoken_of):
            kept, given = (kind, general) if is_named else (general, kind)
            scores[kept], scores[given] = max(scores[kept], scores[given]), -np.inf
    for kind in known.kinds:
        if kind != NONE:
            row = QUESTIONS[kind]
            scores[kind] += _leaning(row, reading, spoken_of) if _fits(row, reading) else -np.inf
    if reading.is_own and not _MANY_UNITS.search(reading.text):
        scores["property"] += _OWN
    if last in scores and _is_short(reading) and not _has_names(reading):
        scores[last] += _GOING_ON
    best = max(scores.values())
    likely = {kind: np.exp((score - best) / _TEMPERATURE) for kind, score in scores.items()}
    total = sum(likely.values())
    matches = (
        Match(row=QUESTIONS[kind], score=float(each / total))
        for kind, each in likely.items()
        if kind != NONE and each > 0
    )
    return tuple(sorted(matches, key=lambda match: -match.score))


def _asked_in_its_own_words(reading: Reading) -> Question | None:
    """The row that has just this wording; none where it has no place for what is named."""
    for text in filter(None, (" ".join(WORD.findall(text)) for text in reading.texts)):
        row = QUESTIONS.get(_kinds_by_words().get(text, NONE))
        if row is not None and _fits(row, reading):
            return row
    return None


@cache
def _kinds_by_words() -> Mapping[str, str]:
    """The kind of each wording, by its words."""
    return {
        " ".join(WORD.findall(lowered(text.replace("layer L", "L").replace("run R", "R")))): kind
        for kind, texts in WORDINGS.items()
        for text in texts
    }


def _leaning(row: Question, reading: Reading, spoken_of: int) -> float:
    """What a unit that goes without saying speaks for a row or against it."""
    if not row.units[0] or row.lacks or row.superlative or reading.units or reading.place is not None:
        return 0.0
    return _SPOKEN if spoken_of >= row.units[0] else 0.0 if reading.refers else -_SPOKEN / 3


def _fits(row: Question, reading: Reading) -> bool:
    """Whether a row has a place for all that is named, and is told what it cannot do without."""
    place = reading.place is not None and not row.superlative
    named = len(reading.units) + (place and not reading.units)
    return bool(row.lacks) or (
        (row.passing or len(reading.units) <= row.units[1])
        and (row.units[0] < 2 or named >= row.units[0] or (not reading.units or reading.refers))
        and len(reading.prompts) == int(row.prompt)
        and len(reading.layers) == int(row.layer)
        and len(reading.runs) == int(row.run)
        and (not row.term or reading.term is not None)
        and (not row.about or reading.about is not None)
    )
