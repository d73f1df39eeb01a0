"""From a question's text to the tools that answer it, with no language model: the likeliest row of `questions`.

The whole question is read first, then its parts where each is plainer than the whole. What is likely no row is routed
nowhere. Where a row is likely but not at once plain the route says how it was taken; where two are, both answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from agent.answering.following import followed, with_its_name
from agent.answering.matching import Match, ranked
from agent.answering.questions import QUESTIONS
from agent.answering.understanding import LETTERS, NOTHING, PROPERTY_WORDS, WORD, Reading, read
from mecharule_ops.bases import UNIT_NAME
from mecharule_ops.saying.glossary import SPELLINGS

Arguments = dict[str, object]
FLOOR = 0.65
"""A row less likely than this is not answered alone."""
BOTH = 0.8
"""Two rows that are together as likely as this are both meant."""
LACKING = 0.85
"""A row of what no run holds that is less likely than this is not said: the run may hold what was meant."""
PLAIN = 0.8
"""From here on it is not said how the question was taken."""
OFFERED = 0.1
"""A row as likely as this is one of the readings where none is answered alone."""
EXACT = 0.95
"""A row as likely as this is asked in its own words."""
_SEAM = re.compile(
    rf"(?<=[?;!])\s+|\s*;\s*|,?\s+(?:and|but|then)\s+(?!{UNIT_NAME})|\.\s+|,\s+", re.IGNORECASE
)


_SENTENCES = re.compile(r"(?<=[.!?:])\s+")
_POINTS_BACK = re.compile(
    r"\b(?:it|its|they|them|their|this|that|these|those|there|so|the same)\b", re.IGNORECASE
)
_FEWEST_WORDS = 3
"""Of a part of a question that a comma or a full stop ends."""


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
    every: int = 0
    """So many of the units found are meant, where more than two can be asked about: `all three`."""
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
    corrected: tuple[tuple[str, str], ...] = ()
    """(as written, as read)."""
    nearest: tuple[str, ...] = ()
    """Kinds that lie nearest, best first."""
    likely: tuple[Route, ...] = ()
    """What may well be meant, best first."""
    units: tuple[str, ...] = ()
    """Units that it names."""
    whole: str = ""
    """The question that was answered in its place, where it only swaps a name of the one before it."""


def route(question: str) -> Route | None:
    """The route of a question of one part and one reading; None when there is none, or more."""
    routes = understand(question).routes
    return routes[0] if len(routes) == 1 else None


def understand(
    question: str,
    *,
    spoken_of: int = 0,
    earlier: str = "",
    last: str = "",
    own: Mapping[str, str] = NOTHING,
) -> Understood:
    """The routes of a question, whole or part by part, or what stood in the way.

    `spoken_of`: how many units the last answer was about; `earlier`: the question that it answered; `last`: its kind;
    `own`: words that name something of the run's own table.
    """
    whole_again = followed(_respelt(question, own), earlier) if earlier else question
    if whole_again != question and (found := understand(whole_again, spoken_of=spoken_of, own=own)).routes:
        return replace(found, whole=whole_again)
    whole = _ranked([question], spoken_of, own, last)
    if (core := _asked_alone(question, own)) and _least(
        plain := _ranked([core], spoken_of, own, last)
    ) > _least(whole):
        whole = plain
    if earlier and _asks_the_same(whole[0]):
        if (swapped := with_its_name(question, earlier)) != question:
            return replace(understand(swapped, spoken_of=spoken_of, own=own), whole=swapped)
        units = " and ".join(whole[0].reading.units)
        of_unit = f"{earlier.rstrip(' ?.!')} of {units}"
        if units and (found := understand(of_unit, own=own)).routes and found.routes[0].kind == last:
            return replace(found, whole=of_unit)
    parts = whole
    for texts in _partings(question):
        each = _ranked(texts, spoken_of, own)
        if _points_ahead([part.reading for part in each], spoken_of):
            continue
        if _least(each) >= PLAIN > _least(parts) or _least(each) >= EXACT > _least(parts):
            parts = each
    return Understood(
        routes=tuple(
            route
            for part in parts
            for route in _routes(part, alone=len(parts) == 1, spoken_of=spoken_of)
            if all(meant(each.matches) for each in parts)
        ),
        corrected=tuple(pair for part in parts for pair in part.reading.corrected),
        nearest=tuple(match.row.kind for match in whole[0].matches),
        likely=tuple(
            _route(match, whole[0].reading, taken=True)
            for match in whole[0].matches
            if match.score >= OFFERED and (match.row.tool or match.row.kind == "summary")
        ),
        units=whole[0].reading.units,
    )


def _respelt(question: str, own: Mapping[str, str]) -> str:
    """The question with its misspelt words put right."""
    for written, meant_word in _read(question, own).corrected:
        question = re.sub(rf"(?<!\w){re.escape(written)}(?!\w)", meant_word, question, flags=re.IGNORECASE)
    return question


def _asks_the_same(part: _Part) -> bool:
    """Whether only another name is put into the question before."""
    return any(match.row.kind == "instead" for match in meant(part.matches)[:1])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A question or a part of one, with its rows, likeliest first."""

    reading: Reading
    matches: tuple[Match, ...]


def _ranked(texts: Sequence[str], spoken_of: int, own: Mapping[str, str], last: str = "") -> list[_Part]:
    """Each part with its rows; a unit that an earlier part names is spoken of in a later one."""
    each = [_read(text, own) for text in texts]
    known = [spoken_of or int(_names_a_unit(each[:place])) for place in range(len(each))]
    return [
        _Part(reading=part, matches=ranked(part, spoken_of=units, last=last))
        for part, units in zip(each, known, strict=True)
    ]


def _names_a_unit(readings: Sequence[Reading]) -> bool:
    return any(reading.units or reading.place is not None for reading in readings)


def _points_ahead(readings: Sequence[Reading], spoken_of: int) -> bool:
    """Whether an `it` stands for what only a later part names, so that the question is no two."""
    first = next((place for place, one in enumerate(readings) if _names_a_unit([one])), 0)
    return not spoken_of and any(one.refers for one in readings[:first])


def _least(parts: Sequence[_Part]) -> float:
    return min(part.matches[0].score if part.matches else 0.0 for part in parts)


def unknown_words(question: str) -> tuple[str, ...]:
    """Its words that no wording holds, in order."""
    words = WORD.findall(_read(question).text)
    return tuple(dict.fromkeys(word for word in words if word not in known_words() and word not in LETTERS))


@cache
def known_words() -> frozenset[str]:
    """Every word of a wording of some row, of the glossary and of a property."""
    said = (*(line for row in QUESTIONS.values() for line in row.asked), *SPELLINGS, *PROPERTY_WORDS)
    return frozenset(WORD.findall("\n".join(said).lower()))


def _read(text: str, own: Mapping[str, str] = NOTHING) -> Reading:
    return read(text, known_words(), own)


def _asked_alone(question: str, own: Mapping[str, str]) -> str:
    """The question without the sentences before it, where they name nothing; empty where none can be left out so."""
    sentences = _SENTENCES.split(question.strip())
    first = next((place for place, each in enumerate(sentences) if each.endswith("?")), 0)
    before = " ".join(sentences[:first])
    asked = " ".join(sentences[first:])
    return asked if before and not _read(before, own).names and not _POINTS_BACK.search(asked) else ""


def _partings(question: str) -> Iterator[list[str]]:
    """The question cut in two, then in three, at every place where a part can end."""
    text = question.strip()
    seams = [
        match.span()
        for match in _SEAM.finditer(text)
        if match[0].strip() not in (",", ".") or len(text[: match.start()].split()) >= _FEWEST_WORDS
    ]
    for begin, end in seams:
        yield [text[:begin], text[end:]]
    for place, (begin, end) in enumerate(seams):
        for later, after in seams[place + 1 :]:
            yield [text[:begin], text[end:later], text[after:]]


def meant(matches: Sequence[Match]) -> Sequence[Match]:
    """The likeliest row, or the two that only together are likely enough; none where no row is."""
    likely = sum(match.score for match in matches[:2])
    if not matches or (matches[0].score < FLOOR and likely < BOTH):
        return ()
    rows = matches[: 1 if matches[0].score >= PLAIN or likely < BOTH else 2]
    return [match for match in rows if not match.row.lacks or match.score >= LACKING]


def _routes(part: _Part, *, alone: bool, spoken_of: int) -> list[Route]:
    """The rows that are meant; one alone where the question has other parts, or the second cannot stand beside it."""
    rows = meant(part.matches)
    both = alone and all(_stands_beside(match, part.reading, spoken_of=spoken_of) for match in rows)
    return [_route(match, part.reading, taken=match.score < PLAIN) for match in (rows if both else rows[:1])]


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
    every = reading.every if row.units[1] > 2 and spoken < row.units[0] else 0
    lacking = bool(row.units[1]) and spoken < max(1, row.units[0]) and not every
    return Route(
        kind=row.kind,
        units=reading.units,
        place=place,
        noun=reading.noun if place is not None or every or row.kind == "strongest" else "",
        refers=lacking and not row.layer and (reading.refers or row.last),
        every=every,
        bare=lacking and not row.layer and not row.last and not row.lacks and not reading.refers,
        regime=reading.regimes[0] if reading.regimes and row.units[1] else None,
        given=given,
        taken=taken,
    )
