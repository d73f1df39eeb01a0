"""From a question's text to the tools that answer it, with no language model: the nearest row of `questions`.

The whole question is read first, then its parts where each lies nearer to a row than the whole does. What lies near no
row is routed nowhere. Where a row is near but not at once plain, or two are as near, the route says how it was taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agent.answering.following import followed
from agent.answering.matching import Match, Ranking, ranked, wordings
from agent.answering.understanding import Reading, read

Arguments = dict[str, object]
FLOOR = 0.58
"""A row further than this is not what was asked."""
STRANGE_FLOOR = 0.68
"""… where a word stands in the question that no wording of any row holds."""
PLAIN = 0.78
"""From here on it is not said how the question was taken."""
EXACT = 0.97
"""A row as near as this is asked in its own words."""
CLOSE = 0.03
"""Rows that lie closer to each other than this are both meant."""
FAR = 0.08
"""… or closer than this, where the nearest is not plain."""
_PARTS = 0.12
"""How much nearer the parts of a question have to lie than the whole."""
_SEAM = re.compile(r"(?<=[?;!])\s+|\s*;\s*|,?\s+(?:and|but|then)\s+|\.\s+|,\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The kind of a question and what it names. A tool with the kind's name need not exist."""

    kind: str
    """One of the kinds of `questions.QUESTIONS`."""
    units: tuple[str, ...] = ()
    """Units named in the question."""
    place: int | None = None
    """Which unit by strength is meant, where one is asked for by its place."""
    noun: str = ""
    """Of which kind: head, channel or neuron; empty for any."""
    refers: bool = False
    """A unit of the last answer is meant: `it`, `this unit`."""
    bare: bool = False
    """It is about a unit and names none."""
    regime: str | None = None
    """`1` or `0` where the question says so."""
    given: Arguments = field(default_factory=dict)
    """Other arguments: the prompt of a flip, the run to compare with, a layer."""
    taken: bool = False
    """Whether it has to be said how the question was taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """What became of a question."""

    routes: tuple[Route, ...] = ()
    """One a part, or one a reading, in order; empty when some part was not understood."""
    unknown: tuple[str, ...] = ()
    """Words that nobody understood."""
    corrected: tuple[tuple[str, str], ...] = ()
    """(as written, as read)."""
    nearest: tuple[str, ...] = ()
    """Kinds that lie nearest, best first."""
    units: tuple[str, ...] = ()
    """Units that it names."""


def route(question: str) -> Route | None:
    """The route of a question of one part and one reading; None when there is none, or more."""
    routes = understand(question).routes
    return routes[0] if len(routes) == 1 else None


def understand(question: str, *, spoken_of: int = 0, earlier: str = "") -> Understood:
    """The routes of a question, whole or part by part, or what stood in the way.

    `spoken_of`: how many units the last answer was about; `earlier`: the question that it answered.
    """
    whole_again = followed(question, earlier) if earlier else question
    if whole_again != question and (found := understand(whole_again, spoken_of=spoken_of)).routes:
        return found
    whole = _read(question)
    ranking = ranked(whole, spoken_of=spoken_of)
    best, parts = ranking.best, [(whole, ranking)]
    for texts in _partings(question):
        each = _ranked(texts, spoken_of)
        least = min(rank.best for _, rank in each)
        if (least >= PLAIN and best < PLAIN and least > best + _PARTS) or least >= EXACT > best:
            best, parts = least, each
    routes: list[Route] = []
    if best >= (STRANGE_FLOOR if len(parts) == 1 and ranking.strange else FLOOR):
        for reading, rank in parts:
            routes += _routes(reading, rank, alone=len(parts) == 1, spoken_of=spoken_of)
    return Understood(
        routes=tuple(routes),
        unknown=ranking.strange,
        corrected=tuple(pair for reading, _ in parts for pair in reading.corrected),
        nearest=tuple(match.row.kind for match in ranking.matches),
        units=whole.units,
    )


def _ranked(texts: Sequence[str], spoken_of: int) -> list[tuple[Reading, Ranking]]:
    """Each part with its rows; a unit that an earlier part names is spoken of in a later one."""
    each = [_read(text) for text in texts]
    known = [spoken_of or int(_names_a_unit(each[:place])) for place in range(len(each))]
    return [(part, ranked(part, spoken_of=units)) for part, units in zip(each, known, strict=True)]


def _names_a_unit(readings: Sequence[Reading]) -> bool:
    return any(reading.units or reading.place is not None for reading in readings)


def _read(text: str) -> Reading:
    return read(text, wordings().spellings)


def _partings(question: str) -> Iterator[list[str]]:
    """The question cut in two, then in three, at every place where a part can end."""
    text = question.strip()
    seams = [match.span() for match in _SEAM.finditer(text)]
    for begin, end in seams:
        yield [text[:begin], text[end:]]
    for place, (begin, end) in enumerate(seams):
        for later, after in seams[place + 1 :]:
            yield [text[:begin], text[end:later], text[after:]]


def _routes(reading: Reading, ranking: Ranking, *, alone: bool, spoken_of: int) -> list[Route]:
    """The nearest row; beside it a second one that lies as near, where the question has but one part."""
    first, *others = ranking.matches
    near = [
        other
        for other in others[:1]
        if alone
        and first.score < EXACT
        and other.score > max(first.score - (CLOSE if first.score >= PLAIN else FAR), FLOOR)
        and _stands_beside(first, reading, spoken_of=spoken_of)
        and _stands_beside(other, reading, spoken_of=spoken_of)
    ]
    return [_route(match, reading, taken=first.score < PLAIN or bool(near)) for match in (first, *near)]


def _stands_beside(match: Match, reading: Reading, *, spoken_of: int) -> bool:
    """Whether an answer to a row can stand beside another: it has a tool, and its unit is known."""
    row = match.row
    known = bool(reading.units) or reading.place is not None or spoken_of >= row.units[0]
    return bool(row.tool) and (known or not row.units[0])


def _route(match: Match, reading: Reading, *, taken: bool) -> Route:
    row, given = match.row, Arguments()
    if row.prompt:
        given["prompt"] = reading.prompts[0]
    if row.run:
        given["second"] = reading.runs[0]
    if row.layer:
        given["layer"] = reading.layers[0]
    if row.term:
        given["term"] = reading.term
    if row.about:
        given["predicate"] = reading.about
    if row.topic:
        given["topic"] = row.topic
    place = None if row.superlative or not row.units[1] else reading.place
    if row.kind == "strongest":
        place = reading.place
    spoken = len(reading.units) + int(place is not None)
    lacking = bool(row.units[1]) and spoken < max(1, row.units[0])
    return Route(
        kind=row.kind,
        units=reading.units,
        place=place,
        noun=reading.noun if place is not None else "",
        refers=lacking and not row.layer and (reading.refers or row.last),
        bare=lacking and not row.layer and not row.last and not row.lacks and not reading.refers,
        regime=reading.regimes[0] if reading.regimes and row.units[1] else None,
        given=given,
        taken=taken,
    )
