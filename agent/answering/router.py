"""From a question's text to the tools that answer it, with no language model: the whole question is parsed.

A form says which meanings a kind of question needs, which others it can be worded with, and what it names. It fits
when its needs are there and nothing is left over; a question whose parts do not all fit is not answered in part. What
is not understood is routed nowhere, with the forms that lie nearest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from agent.answering.questions import FORMS, Form
from agent.answering.understanding import Reading, read

Arguments = dict[str, object]
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
    refers: bool = False
    """A unit of the last answer is meant: `it`, `this unit`."""
    regime: str | None = None
    """`1` or `0` where the question says so."""
    given: Arguments = field(default_factory=dict)
    """Other arguments: the prompt of a flip, the run to compare with, a layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """What became of a question."""

    routes: tuple[Route, ...] = ()
    """One a part, in order; empty when some part was not understood."""
    unknown: tuple[str, ...] = ()
    """Words that nobody understood."""
    corrected: tuple[tuple[str, str], ...] = ()
    """(as written, as read)."""
    nearest: tuple[str, ...] = ()
    """Kinds that lie nearest, best first."""
    units: tuple[str, ...] = ()
    """Units that it names."""


def route(question: str) -> Route | None:
    """The route of a question of one part; None when it is not wholly understood."""
    routes = understand(question).routes
    return routes[0] if len(routes) == 1 else None


def understand(question: str) -> Understood:
    """The routes of all parts of a question, or what stood in the way."""
    whole = read(question)
    nearest = tuple(
        dict.fromkeys(form.kind for form in sorted(FORMS, key=lambda form: -_likeness(form, whole)))
    )
    partings = ([read(part) for part in parts] for parts in _partings(question))
    for readings in chain([[whole]], partings):
        routes = [_routed(reading) for reading in readings]
        if routes and all(routes):
            return Understood(
                routes=tuple(each for each in routes if each),
                corrected=tuple(pair for reading in readings for pair in reading.corrected),
                nearest=nearest,
                units=whole.units,
            )
    return Understood(unknown=whole.unknown, corrected=whole.corrected, nearest=nearest, units=whole.units)


def _partings(question: str) -> Iterator[list[str]]:
    """The question cut in two, then in three, at every place where a part can end."""
    text = question.strip()
    seams = [match.span() for match in _SEAM.finditer(text)]
    for begin, end in seams:
        yield [text[:begin], text[end:]]
    for place, (begin, end) in enumerate(seams):
        for later, after in seams[place + 1 :]:
            yield [text[:begin], text[end:later], text[after:]]


def _routed(reading: Reading) -> Route | None:
    """The one form that takes everything in a reading; None when none does, or two kinds do."""
    if reading.unknown:
        return None
    fitting = [form for form in FORMS if form.fits(reading)]
    best = max((len(form.needs) for form in fitting), default=0)
    kinds = {form.kind: form for form in fitting if len(form.needs) == best}
    if len(kinds) != 1:
        return None
    ((kind, form),) = kinds.items()
    given: Arguments = {}
    if form.prompt:
        given["prompt"] = reading.prompts[0]
    if form.run:
        given["second"] = reading.runs[0]
    if form.layer:
        given["layer"] = reading.layers[0]
    return Route(
        kind=kind,
        units=reading.units,
        place=None if form.superlative or not form.most_units else reading.place,
        refers=form.refers(reading) and not form.layer,
        regime=reading.regimes[0] if reading.regimes else None,
        given=given,
    )


def _likeness(form: Form, reading: Reading) -> float:
    """How near a form lies: meanings in common, less those that it has no place for."""
    needed = sum(bool(reading.meanings & group) for group in form.needs)
    stray = len(reading.meanings - form.all)
    names = sum(
        (
            bool(reading.prompts) == form.prompt,
            bool(reading.layers) == form.layer,
            bool(reading.runs) == form.run,
        )
    )
    return 2 * needed / max(1, len(form.needs)) + 0.5 * needed - 0.6 * stray + 0.3 * names
