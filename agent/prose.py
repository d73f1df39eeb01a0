"""Checking a language model's words: every figure and unit of a sentence must stand in the facts that it cites.

A statement cites facts as `[f3]` or `[f1, f4]`. A sentence is checked against the facts cited in it, else against those
cited next in its line; calls that did not run need no citing. A figure (`agent.figures`) holds where one fact states

- it, as itself or rounded to the digits that are written: a pair as a pair, an interval as an interval, a percentage
  also as the share of a pair or of a rate, never of an MCC;
- of the unit that the sentence says it of;
- with the same direction (`at least`, `below`), or as the greater or the smaller of two figures that hold;
- of the same measure, of the same part of the records, and of random units where it is theirs.

Of the question and of a call's arguments a sentence may repeat names, prompts and conditions, and say what its figures
are above, below or not; they hold no figure. `shown` and `not shown` must be said by a fact. A sentence that fails is
marked with the reason and never removed. Whether the other words follow is what `second_look` asks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

from agent.figures import (
    BOUNDS,
    CONTROL,
    SCORES,
    UNIT,
    UNITS,
    Figure,
    Kind,
    Read,
    Sign,
    plain,
    read,
    stated,
    told,
)

MARK = "⚠"
_CITED = re.compile(r"\[\s*f\d+(?:\s*[,;]?\s*f\d+)*\s*\]")
_SENTENCE = re.compile(
    r".+?(?:[.!?。！？]+[\"'”’)*_]*(?=\s|$)(?:\s*\[\s*f\d+(?:\s*[,;]?\s*f\d+)*\s*\][.!?]?)*|$)", re.DOTALL
)
_BULLET = re.compile(r"^\s*(?:#+|[-*•]|\d{1,2}[.)])\s+")
_ROUNDED_FROM = 10
"""A number that is rounded to none of its decimals is at least as large: `1` is not `.63`."""
_SHOWN = re.compile(
    r"(?P<not>\b(?:not|never|isn't|aren't|nothing|no|nicht|kein\w*|pas|non|no)\b(?:\s+\w+){0,3}?\s+)?"
    r"(?<!as )\b(?:shown|nachgewiesen|gezeigt|montrée?s?|démontrée?s?|demostrad[oa]s?|mostrad[oa]s?)\b"
    r"(?!\s+(?:in|by|above|below|here|yes|no|–)\b)|(?P<less>\bsuggestive\b)",
    re.IGNORECASE,
)
_PRONOUN = re.compile(r"\b(?:it|its|es|sein\w*|ihr\w*|il|elle|son|sa|ses|su|sus)\b", re.IGNORECASE)
_BOTH = re.compile(r"\b(?:together|both)\b(?:\W+\w+){0,4}\W+$", re.IGNORECASE)
_INSTEAD = re.compile(r"\b(?:rather than|instead of|statt|au lieu de|en vez de) (?:\w+ )?$")
_SHOWN_BY = re.compile(r"\bkept aside, at least\b")
"""Facts state a least rate beside that of random units where a unit is shown, and only there."""
_SHOWN_IN_TABLE = re.compile(r"\bshown (?P<said>yes|no)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """A fact as a model may cite it."""

    id: str
    """`f3`."""
    sentence: str
    arguments: str = ""
    """Of the call that gave it, as text."""
    sources: tuple[str, ...] = ()
    unit: str = ""
    """What it is about, where its tool says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One sentence of an answer and what was found about it."""

    text: str
    cites: tuple[str, ...]
    """Ids of the facts that it was checked against."""
    figures: int
    """Figures and units in it."""
    fault: str = ""
    """Why it is marked; empty where every figure stands in its facts."""


def check(
    text: str, facts: Mapping[str, Cited], question: str = "", uncited: Sequence[Cited] = (), names: str = ""
) -> tuple[Checked, ...]:
    """Every sentence of an answer, in order, each with the fault that the facts it cites leave it with.

    `uncited`: what the program said that has no id, which any sentence may repeat; `names`: a text whose words may be
    named, such as `SmolLM2`.
    """
    names = plain(" ".join([names, question, *(fact.sentence for fact in facts.values())])).casefold()
    return tuple(
        _judged(one, facts, question, uncited, names, it)
        for line in text.splitlines()
        for one, it in _of_line(line)
    )


def marked(text: str, checked: Sequence[Checked]) -> str:
    """The answer with each fault behind its sentence; the words stay as they were written."""
    place, parts = 0, []
    for one in checked:
        begin = text.index(one.text, place)
        end = begin + len(one.text)
        parts += [text[place:end], f" {MARK} ({one.fault})" if one.fault else ""]
        place = end
    return "".join([*parts, text[place:]])


def cited_in(checked: Sequence[Checked]) -> tuple[str, ...]:
    """Ids of the facts that an answer cites, in order, each once."""
    return tuple(dict.fromkeys(id for one in checked for id in one.cites))


def _of_line(line: str) -> Iterator[tuple[Checked, frozenset[str]]]:
    """The sentences of a line, each with the units named last before it; one that cites nothing is given what is cited
    next."""
    body = line[match.end() :] if (match := _BULLET.match(line)) else line
    found = [one[0].strip() for one in _SENTENCE.finditer(body) if one[0].strip()]
    cites: tuple[str, ...] = ()
    sentences: list[Checked] = []
    for said in reversed(found):
        cites = _ids(said) or cites
        held = read(_CITED.sub(" ", said))
        sentences.append(Checked(text=said, cites=cites, figures=len(held.units) + len(held.figures)))
    it: frozenset[str] = frozenset()
    for one in reversed(sentences):
        yield one, it
        it = frozenset(unit.lower() for unit in UNIT.findall(one.text)) or it


def _ids(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id for one in _CITED.findall(text) for id in re.findall(r"f\d+", one)))


def _judged(
    one: Checked,
    facts: Mapping[str, Cited],
    question: str,
    uncited: Sequence[Cited],
    names: str,
    it: frozenset[str],
) -> Checked:
    if strange := [id for id in one.cites if id not in facts]:
        return replace(one, fault=f"there is no fact {', '.join(strange)}")
    known = [_fact(fact) for fact in (*(facts[id] for id in one.cites), *uncited)]
    sentence = _Sentence(read(_CITED.sub(" ", one.text)), known, question, names, it)
    where = "the facts it cites" if one.cites else "the question, and it cites no fact"
    if missing := sentence.missing():
        return replace(
            one, fault=f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not in {where}"
        )
    return replace(one, fault=sentence.unshown())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stated:
    """A figure of a fact and whom it is about: any of the units, all of them where it is `joint`; nobody where none."""

    figure: Figure
    units: frozenset[str]
    joint: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fact:
    text: str
    stated: tuple[_Stated, ...]
    units: frozenset[str]
    """Those that it names or is about."""
    arguments: Mapping[str, Any]
    shown: frozenset[bool]


@lru_cache(4096)
def _fact(fact: Cited) -> _Fact:
    found = read(fact.sentence)
    try:
        given = json.loads(fact.arguments or "{}")
    except ValueError:
        given = {}
    given = given if isinstance(given, dict) else {}
    named = frozenset(unit for _, unit in found.units)
    asked = frozenset(unit.lower() for value in given.values() for unit in UNIT.findall(str(value)))
    topic = (
        frozenset([fact.unit.lower()])
        if UNIT.fullmatch(fact.unit)
        else asked
        if len(asked) == 1
        else frozenset()
    )
    told_of = []
    for figure, units in zip(
        stated(found), _owners(replace(found, breaks=()), found.figures, forward=True), strict=True
    ):
        is_first = not any(place < figure.begin for place, _ in found.units)
        about = (topic or asked) | named if is_first else frozenset(units) | topic
        is_of_all = bool(_BOTH.search(found.text[: figure.begin])) or (len(units) > 1 and not is_first)
        told_of.append(_Stated(figure=figure, units=about, joint=is_of_all and not topic))
    shown = frozenset(
        [not (match["not"] or match["less"]) for match in _SHOWN.finditer(found.text)]
        + [match["said"] == "yes" for match in _SHOWN_IN_TABLE.finditer(found.text)]
        + [True for _ in _SHOWN_BY.finditer(found.text)]
    )
    return _Fact(
        text=found.text, stated=tuple(told_of), units=named | asked | topic, arguments=given, shown=shown
    )


def _owners(found: Read, figures: Sequence[Figure], *, forward: bool) -> list[tuple[str, ...]]:
    """The units that each figure is said of: those named last before it, or next after it; as many figures as units
    follow their order. None where its clause names none."""
    edges = (0, *found.breaks, len(found.text) + 1)
    owners: list[tuple[str, ...]] = [()] * len(figures)
    for begin, end in pairwise(edges):
        here = [place for place, one in enumerate(figures) if begin <= one.begin < end]
        groups: list[tuple[list[str], list[int]]] = []
        items = [(figures[place].begin, "", place) for place in here]
        items += [(place, unit, -1) for place, unit in found.units if begin <= place < end]
        # What begins with a unit goes on after it.
        turned = not forward and not min(items, default=(0, "", 0))[1]
        if turned:
            items = [(-place, unit, which) for place, unit, which in items]
        early: list[int] = []
        for _, unit, which in sorted(items):
            if unit and (not groups or groups[-1][1]):
                groups.append(([unit], []))
            elif unit:
                groups[-1][0].append(unit)
            else:
                (groups[-1][1] if groups else early).append(which)
        if not groups:
            continue
        groups[0][1][:0] = early
        for units, told_of in groups:
            distinct = tuple(dict.fromkeys(reversed(units) if turned else units))
            in_order = sorted(told_of)
            respective = len(distinct) > 1 and len(in_order) == len(distinct)
            for nth, place in enumerate(in_order):
                owners[place] = (distinct[nth],) if respective else distinct
    return owners


class _Sentence:
    """A sentence beside the facts that it cites."""

    def __init__(
        self, found: Read, facts: Sequence[_Fact], question: str, names: str, it: frozenset[str]
    ) -> None:
        self.found, self.facts, self.question = found, facts, plain(question)
        self.figures = told(found)
        self.units = frozenset(unit for _, unit in found.units)
        self.names = names
        self.it = it if not self.units and _PRONOUN.search(found.text) else frozenset()
        self.asked = read(question).figures
        self.quotes = [
            plain(value) for fact in facts for value in fact.arguments.values() if isinstance(value, str)
        ]

    def missing(self) -> tuple[str, ...]:
        """The units and figures that no fact holds, as they are written."""
        named = {unit for fact in self.facts for unit in fact.units}
        named |= {unit.lower() for unit in UNIT.findall(self.question)}
        units = [
            self.found.text[place : place + len(unit)]
            for place, unit in self.found.units
            if unit not in named
        ]
        readings = []
        for forward in (True, False):
            owners = _owners(self.found, self.figures, forward=forward)
            held = [self._stands(one, units) for one, units in zip(self.figures, owners, strict=True)]
            readings.append(
                [
                    one.text
                    for one, stands in zip(self.figures, held, strict=True)
                    if not (stands or self._is_repeated(one) or self._compares(one, held))
                ]
            )
        return tuple(dict.fromkeys([*units, *min(readings, key=len)]))

    def unshown(self) -> str:
        """Why what it says of certainty is not so; empty where it is."""
        for match in _SHOWN.finditer(self.found.text):
            said = not (match["not"] or match["less"])
            about = [
                fact for fact in self.facts if not (self.units and fact.units) or self.units & fact.units
            ]
            if not any(said in fact.shown for fact in about):
                return f"no fact it cites says {'' if said else 'not '}shown"
        return ""

    def _stands(self, one: Figure, units: Sequence[str]) -> bool:
        """Whether a fact states a figure of one of some units; a figure that is denied stands where none does."""
        if one.kind is Kind.STRANGE:
            written = rf"(?<![\w.]){re.escape(one.text.casefold())}(?!\w)"
            is_name = one.text[0].isalpha()
            return any(re.search(written, text) for text in ([self.names] if is_name else self._texts()))
        if one.kind is Kind.EXAMPLE:
            return self._is_example(one)
        if not self._is_share_beside(one):
            return False
        holds = any(self._is(one, entry, units) for fact in self.facts for entry in fact.stated)
        if one.kind is Kind.NUMBER and not holds and not one.sign.side:
            layers = (
                {float(re.findall(r"\d+", unit)[0]) for unit in self.units | self.it}
                if one.measure == "layer"
                else set()
            )
            holds = (
                bool(one.values[0] & layers)
                or self._is_of_example(one)
                or (one.text.isalpha() and one.values[0] == {float(len(self.units))})
            )
        return holds != one.denied

    def _is_share_beside(self, one: Figure) -> bool:
        """Whether a percentage in brackets behind a count is its share; true of all else."""
        place = self.figures.index(one)
        beside = self.figures[place - 1] if place else one
        is_beside = self.found.text[beside.end : one.begin].strip() == "(" and beside.kind is Kind.COUNT
        if not is_beside or one.kind is not Kind.PERCENT or one.sign.side or one.measure == "confidence":
            return True
        return _near(one, one.values[0], _shares(beside), least=0)

    def _is(self, one: Figure, entry: _Stated, units: Sequence[str]) -> bool:
        """Whether a figure is what a fact states."""
        held = entry.figure
        if units and not (entry.units <= self.units if entry.joint else entry.units & set(units)):
            return False
        if self.it and entry.units and not entry.units & self.it:
            return False
        if not one.text.isalpha():
            if "held-out" in one.parts and "held-out" not in held.parts:
                return False
            if "train" in one.parts and held.parts == {"held-out"}:
                return False
        if held.measure == "confidence":
            if one.measure != "confidence" and not one.is_aside:
                return False
        elif held.measure == "control":
            if not CONTROL.search(self.found.text):
                return False
        elif held.measure == "units":
            if not UNITS.search(self.found.text):
                return False
        elif one.measure and held.measure and one.measure not in (held.measure, "control", "units"):
            return False
        return any(
            _same_side(one, sign, held) or (not one.sign.side and self._speaks_of(sign))
            for sign in self._matching(one, held)
        )

    def _speaks_of(self, sign: Sign) -> bool:
        """Whether the sentence names the bound that a fact states."""
        return any(sign is which and rule.search(self.found.text) for which, rule in BOUNDS)

    def _matching(self, one: Figure, held: Figure) -> Iterator[Sign]:
        """The directions in which a fact states the number or numbers of a figure."""
        kinds = (one.kind, held.kind)
        if kinds in ((Kind.COUNT, Kind.COUNT), (Kind.INTERVAL, Kind.INTERVAL)):
            if all(_near(one, a, b) for a, b in zip(one.values, held.values, strict=True)):
                yield held.sign
        elif one.kind is Kind.PERCENT:
            scale: Iterable[float] = ()
            if held.kind is Kind.PERCENT:
                scale = held.values[0]
            elif held.kind is Kind.COUNT:
                scale = _shares(held)
            elif (
                held.kind is Kind.NUMBER
                and held.decimals
                and held.measure not in SCORES
                and one.measure not in SCORES
            ):
                is_rate = held.measure in ("strength", "τ", "α") or held.sign.is_bound
                scale = [100 * value for value in held.values[0]] if is_rate else ()
            if _near(one, one.values[0], scale, least=0):
                yield held.sign
                if held.measure == "τ":
                    yield Sign.IS
            if held.kind is Kind.INTERVAL:
                yield from self._ends(one, held)
        elif one.kind is Kind.NUMBER:
            if held.kind is Kind.NUMBER and _near(one, one.values[0], held.values[0]):
                yield held.sign
                if held.measure in ("τ", "α"):
                    yield Sign.IS
            elif held.kind is Kind.INTERVAL:
                yield from self._ends(one, held)
            elif held.kind is Kind.COUNT:
                if _near(one, one.values[0], held.values[0]):
                    yield held.sign
                if _near(one, one.values[0], held.values[1]) and (
                    one.is_total or self._has(held.values[0], one)
                ):
                    yield Sign.IS

    def _ends(self, one: Figure, held: Figure) -> Iterator[Sign]:
        for values, sign in zip(held.values, (Sign.AT_LEAST, Sign.AT_MOST), strict=True):
            if _near(one, one.values[0], values, least=0):
                yield sign

    def _has(self, values: Iterable[float], besides: Figure) -> bool:
        """Whether another figure of the sentence holds one of these numbers."""
        return any(
            set(values) & set(number) for one in self.figures if one is not besides for number in one.values
        )

    def _texts(self) -> list[str]:
        return [fact.text.casefold() for fact in self.facts] + [quote.casefold() for quote in self.quotes]

    def _examples(self) -> Iterator[Figure]:
        yield from (
            entry.figure for fact in self.facts for entry in fact.stated if entry.figure.kind is Kind.EXAMPLE
        )
        yield from (
            one
            for text in (self.question, *self.quotes)
            for one in read(text).figures
            if one.kind is Kind.EXAMPLE
        )

    def _is_example(self, one: Figure) -> bool:
        """Whether a prompt or a change of answers is a piece of one that was stated, asked or told."""
        steps = _steps(one.text)
        return any(
            all(step in _steps(example.text) for step in steps)
            and all(any(number & other for other in example.values) for number in one.values)
            for example in self._examples()
        )

    def _is_of_example(self, one: Figure) -> bool:
        """Whether a number is one of an example of which the sentence holds another."""
        others = [number for other in self.figures if other is not one for number in other.values]
        return any(
            any(one.values[0] & number for number in example.values)
            and any(other & number for other in others for number in example.values)
            for example in self._examples()
            if len(example.values) > 1
        )

    def _is_repeated(self, one: Figure) -> bool:
        """Whether a figure stands inside a condition or beside the name of an argument as a call was given it."""
        text = self.found.text
        for quote in self.quotes:
            if re.search(r"\d", quote) and re.search(r"[<>=()]", quote):
                place = text.find(quote)
                if 0 <= place <= one.begin and one.end <= place + len(quote):
                    return True
        left = text[max(0, one.begin - 24) : one.begin].casefold()
        if _INSTEAD.search(left) and self._is_asked(one):
            return True
        return one.kind is Kind.NUMBER and any(
            isinstance(value, int | float) and value in one.values[0] and key[:5].casefold() in left
            for fact in self.facts
            for key, value in fact.arguments.items()
        )

    def _is_asked(self, one: Figure) -> bool:
        return any(
            asked.kind is one.kind and all(a & b for a, b in zip(asked.values, one.values, strict=True))
            for asked in self.asked
        )

    def _compares(self, one: Figure, held: Sequence[bool]) -> bool:
        """Whether a figure of the facts or of the question is rightly told to be below or above the one beside it."""
        side = one.sign.side
        if not side or len(one.values) > 2:
            return False
        itself = replace(one, sign=Sign.IS, denied=False)
        known = self._is_asked(one) or any(
            self._is(itself, entry, ()) for fact in self.facts for entry in fact.stated
        )
        place = self.figures.index(one)
        others = [*reversed(range(place)), *range(place + 1, len(self.figures))]
        beside = next(
            (self.figures[i] for i in others if held[i] and _size(self.figures[i], one) is not None), None
        )
        if not known or beside is None:
            return False
        size, than = _size(beside, one), _size(one, one)
        assert size is not None
        assert than is not None
        return (size - than) * side > 0


def _same_side(one: Figure, sign: Sign, held: Figure) -> bool:
    """Whether a figure is told in the direction of the fact. That all of a number are exceeded may be told anyhow but
    turned round; what a count is compared with may be told as a count."""
    if one.sign.side == sign.side:
        return True
    is_all = held.kind is Kind.COUNT and held.values[0] == held.values[1] and sign.side == 1
    return held.kind is Kind.COUNT and one.sign.side == 0 and (is_all or not sign.is_bound)


def _near(one: Figure, said: Iterable[float], known: Iterable[float], least: float = _ROUNDED_FROM) -> bool:
    """Whether a number is one that is known, or it rounded to the decimals written; to none from `least` on."""
    exact = one.kind is Kind.COUNT
    step = 0.5 * 10.0**-one.decimals * (1 + 1e-9)
    return any(
        value == other
        or (not exact and abs(other - value) <= step and other % 1 and (one.decimals or abs(other) >= least))
        for value in said
        for other in known
    )


def _shares(held: Figure) -> list[float]:
    return [100 * first / second for first in held.values[0] for second in held.values[1] if second]


def _size(one: Figure, beside: Figure) -> float | None:
    """How large a figure is, as a rate or a number, to compare it with another; None where they do not compare."""
    rates = (Kind.COUNT, Kind.PERCENT)
    if one.kind is Kind.COUNT:
        size: float | None = next(iter(_shares(one)), None)
    elif one.kind in (Kind.PERCENT, Kind.NUMBER):
        size = min(one.values[0])
    else:
        return None
    if (one.kind in rates) == (beside.kind in rates):
        return size
    small = one.decimals or beside.decimals
    return size if one.kind in rates and small else 100 * size if size is not None and small else None


def _squeezed(text: str) -> str:
    return re.sub(r"\s|['‘’‚\"“”„«»`]", "", plain(text)).replace("->", "→").replace("⇒", "→")


def _steps(text: str) -> set[str]:
    """The pieces of an example that keep their order: `105+70`, `175→176`."""
    pieces = r"(?=(?<!\d)(\d+[-+×*÷]-?\d+)(?!\d))|(?=(?<![\d+×*÷])(?<!\d-)(-?\d+→-?\d+)(?!\d))"
    return {"".join(one) for one in re.findall(pieces, _squeezed(text))}
