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

from agent.figures import BOUNDS, CONTROL, SCORES, UNIT, UNITS, Figure, Read, plain, read, stated, told

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
_SHOWN_BY = re.compile(r"\bkept aside, at least\b|\bshown yes\b")
"""Facts state a least rate beside that of random units where a unit is shown, and only there."""


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
    cites: tuple[str, ...] = ()
    sentences: list[Checked] = []
    for said in reversed([one[0].strip() for one in _SENTENCE.finditer(body) if one[0].strip()]):
        ids = (id for one in _CITED.findall(said) for id in re.findall(r"f\d+", one))
        cites = tuple(dict.fromkeys(ids)) or cites
        held = read(_CITED.sub(" ", said))
        sentences.append(Checked(text=said, cites=cites, figures=len(held.units) + len(held.figures)))
    it: frozenset[str] = frozenset()
    for one in reversed(sentences):
        yield one, it
        it = _units_in(one.text) or it


def _units_in(text: str) -> frozenset[str]:
    return frozenset(unit.lower() for unit in UNIT.findall(text))


def _judged(
    one: Checked,
    facts: Mapping[str, Cited],
    question: str,
    more: Sequence[Cited],
    names: str,
    it: frozenset[str],
) -> Checked:
    if strange := [id for id in one.cites if id not in facts]:
        return replace(one, fault=f"there is no fact {', '.join(strange)}")
    known = [_fact(fact) for fact in (*(facts[id] for id in one.cites), *more)]
    sentence = _Sentence(read(_CITED.sub(" ", one.text)), known, question, names, it)
    if missing := sentence.missing():
        are = "is" if len(missing) == 1 else "are"
        where = "the facts it cites" if one.cites else "the question, and it cites no fact"
        return replace(one, fault=f"{', '.join(missing)} {are} not in {where}")
    return replace(one, fault=sentence.unshown())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fact:
    text: str
    figures: tuple[Figure, ...]
    units: frozenset[str]
    """Those that it names or is about."""
    arguments: Mapping[str, Any]
    shown: frozenset[bool]


@lru_cache(4096)
def _fact(fact: Cited) -> _Fact:
    found = read(fact.sentence)
    try:
        given = dict(json.loads(fact.arguments or "{}"))
    except (ValueError, TypeError):
        given = {}
    named = frozenset(unit for _, unit in found.units)
    asked = _units_in(" ".join(map(str, given.values())))
    topic = _units_in(fact.unit) or (asked if len(asked) == 1 else frozenset())
    figures = []
    owners = _owners(replace(found, breaks=()), found.figures, forward=True)
    for figure, units in zip(stated(found), owners, strict=True):
        is_first = not any(place < figure.begin for place, _ in found.units)
        is_of_all = bool(_BOTH.search(found.text[: figure.begin])) or (len(units) > 1 and not is_first)
        about = (topic or asked) | named if is_first else topic | units
        figures.append(replace(figure, units=about, joint=is_of_all and not topic))
    shown = [*map(_says_shown, _SHOWN.finditer(found.text)), *(True for _ in _SHOWN_BY.finditer(found.text))]
    return _Fact(
        text=found.text,
        figures=tuple(figures),
        units=named | asked | topic,
        arguments=given,
        shown=frozenset(shown),
    )


def _says_shown(match: re.Match[str]) -> bool:
    return not (match["not"] or match["less"])


def _owners(found: Read, figures: Sequence[Figure], *, forward: bool) -> list[frozenset[str]]:
    """The units that each figure is said of: those named last before it, or next after it; as many figures as units
    follow their order. None where its clause names none."""
    owners: list[frozenset[str]] = [frozenset()] * len(figures)
    for begin, end in pairwise((0, *found.breaks, len(found.text) + 1)):
        items = [(one.begin, "", nth) for nth, one in enumerate(figures) if begin <= one.begin < end]
        items = sorted(items + [(place, unit, -1) for place, unit in found.units if begin <= place < end])
        # What begins with a unit goes on after it.
        turned = not forward and bool(items) and not items[0][1]
        groups: list[tuple[list[str], list[int]]] = [([], [])]
        for _, unit, nth in reversed(items) if turned else items:
            if unit and groups[-1][1] and groups[-1][0]:
                groups.append(([], []))
            if unit:
                groups[-1][0].append(unit)
            else:
                groups[-1][1].append(nth)
        for units, of in groups:
            distinct = list(dict.fromkeys(reversed(units) if turned else units))
            respective = len(distinct) > 1 and len(of) == len(distinct)
            for place, nth in enumerate(sorted(of)):
                owners[nth] = frozenset([distinct[place]] if respective else distinct)
    return owners


class _Sentence:
    """A sentence beside the facts that it cites."""

    def __init__(
        self, found: Read, facts: Sequence[_Fact], question: str, names: str, it: frozenset[str]
    ) -> None:
        self.found, self.facts, self.question, self.names = found, facts, plain(question), names
        self.figures = told(found)
        self.units = frozenset(unit for _, unit in found.units)
        self.it = it if not self.units and _PRONOUN.search(found.text) else frozenset()
        self.stated = [one for fact in facts for one in fact.figures]
        self.quotes = [
            plain(value) for fact in facts for value in fact.arguments.values() if isinstance(value, str)
        ]
        examples = [*self.stated, *(one for text in (question, *self.quotes) for one in read(text).figures)]
        self.examples = [one for one in examples if one.kind == "example"]

    def missing(self) -> tuple[str, ...]:
        """The units and figures that no fact holds, as they are written."""
        named = _units_in(self.question).union(*(fact.units for fact in self.facts))
        text = self.found.text
        units = [text[place : place + len(unit)] for place, unit in self.found.units if unit not in named]
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
        about = [fact for fact in self.facts if not (self.units and fact.units) or self.units & fact.units]
        for said in map(_says_shown, _SHOWN.finditer(self.found.text)):
            if not any(said in fact.shown for fact in about):
                return f"no fact it cites says {'' if said else 'not '}shown"
        return ""

    def _stands(self, one: Figure, units: frozenset[str]) -> bool:
        """Whether a fact states a figure of one of some units; a figure that is denied stands where none does."""
        if one.kind == "strange":
            written = rf"(?<![\w.]){re.escape(one.text.casefold())}(?!\w)"
            said = "\n".join([*(fact.text for fact in self.facts), *self.quotes])
            return bool(re.search(written, self.names if one.text[0].isalpha() else said.casefold()))
        if one.kind == "example":
            # A prompt or a change of answers: a piece of one that was stated, asked or told.
            return any(
                _steps(one.text) <= _steps(example.text)
                and all(any(number & other for other in example.values) for number in one.values)
                for example in self.examples
            )
        place = self.figures.index(one)
        beside = self.figures[place - 1] if place else one
        is_beside = self.found.text[beside.end : one.begin].strip() == "(" and beside.kind == "count"
        is_share = is_beside and one.kind == "percentage" and not one.sign and one.measure != "confidence"
        if is_share and not _near(one, one.values[0], _shares(beside), least=0):
            return False
        return (any(self._is(one, held, units) for held in self.stated) or self._is_named(one)) != one.denied

    def _is_named(self, one: Figure) -> bool:
        """Whether a number is a layer of its units, how many they are, or one of an example of which the sentence holds
        another."""
        if one.kind != "number" or one.sign:
            return False
        layers = {float(re.findall(r"\d+", unit)[0]) for unit in self.units | self.it}
        others = [number for other in self.figures if other is not one for number in other.values]
        return (
            (one.measure == "layer" and bool(one.values[0] & layers))
            or (one.text.isalpha() and one.values[0] == {float(len(self.units))})
            or any(
                any(one.values[0] & number for number in example.values)
                and any(other & number for other in others for number in example.values)
                for example in self.examples
                if len(example.values) > 1
            )
        )

    def _is(self, one: Figure, held: Figure, units: frozenset[str]) -> bool:
        """Whether a figure is what a fact states."""
        if one.measure == "p":
            units = self.units  # A test of two units is of both.
        if units and not (held.units <= self.units if held.joint else held.units & units):
            return False
        if self.it and held.units and not held.units & self.it:
            return False
        if not one.text.isalpha() and (
            ("held-out" in one.parts and "held-out" not in held.parts)
            or ("train" in one.parts and held.parts == {"held-out"})
        ):
            return False
        allowed = {
            "confidence": one.measure == "confidence" or one.is_aside,
            "control": CONTROL.search(self.found.text),
            "units": UNITS.search(self.found.text),
        }.get(held.measure, not held.measure or one.measure in ("", held.measure, "control", "units"))
        return bool(allowed) and any(self._is_told(one, sign, held) for sign in self._signs(one, held))

    def _is_told(self, one: Figure, sign: str, held: Figure) -> bool:
        """Whether a figure is told in the direction of the fact; what a count is compared with may be told as a count,
        and a bound without its sign where the sentence names it."""
        if one.sign or not sign:
            return one.sign[:1] == sign[:1]
        is_compared = held.kind == "count" and sign in ("<", ">")
        return is_compared or any(sign == which and rule.search(self.found.text) for which, rule in BOUNDS)

    def _signs(self, one: Figure, held: Figure) -> Iterator[str]:
        """The signs with which a fact states the number or numbers of a figure."""
        values = one.values[0]
        match one.kind, held.kind:
            case ("count", "count") | ("interval", "interval"):
                if all(_near(one, a, b) for a, b in zip(one.values, held.values, strict=True)):
                    yield held.sign
            case ("percentage" | "number", "interval"):
                for end, sign in zip(held.values, (">=", "<="), strict=True):
                    if _near(one, values, end, least=0):
                        yield sign
            case ("percentage", _) | ("number", "number"):
                is_share = one.kind == "percentage"
                known = _percents(one, held) if is_share else held.values[0]
                if _near(one, values, known, 0 if is_share else _ROUNDED_FROM):
                    yield from (held.sign, *([""] if held.measure in ("τ", "α") else []))
            case ("number", "count"):
                if _near(one, values, held.values[0]):
                    yield held.sign
                others = [number for other in self.figures if other is not one for number in other.values]
                has_first = any(number & held.values[0] for number in others)
                if _near(one, values, held.values[1]) and (one.is_total or has_first):
                    yield ""

    def _is_repeated(self, one: Figure) -> bool:
        """Whether a figure stands inside a condition or beside the name of an argument as a call was given it."""
        text = self.found.text
        for quote in self.quotes:
            place = text.find(quote)
            is_condition = re.search(r"\d", quote) and re.search(r"[<>=()]", quote)
            if is_condition and 0 <= place <= one.begin and one.end <= place + len(quote):
                return True
        left = text[max(0, one.begin - 24) : one.begin].casefold()
        return one.kind == "number" and any(
            isinstance(value, int | float) and value in one.values[0] and key[:5].casefold() in left
            for fact in self.facts
            for key, value in fact.arguments.items()
        )

    def _compares(self, one: Figure, held: Sequence[bool]) -> bool:
        """Whether a figure of the facts or of the question is rightly told to be below or above the one beside it."""
        if not one.sign or len(one.values) > 2:
            return False
        itself = replace(one, sign="", denied=False)
        is_asked = any(
            (asked.kind, len(asked.values)) == (one.kind, len(one.values))
            and all(a & b for a, b in zip(asked.values, one.values, strict=True))
            for asked in read(self.question).figures
        )
        is_known = is_asked or any(self._is(itself, each, frozenset()) for each in self.stated)
        place = self.figures.index(one)
        others = [*reversed(range(place)), *range(place + 1, len(self.figures))]
        sizes = [size for i in others if held[i] and (size := _size(self.figures[i], one)) is not None]
        than = _size(one, one)
        if not is_known or not sizes or than is None:
            return False
        return sizes[0] > than if one.sign[0] == ">" else sizes[0] < than


def _near(one: Figure, said: Iterable[float], known: Iterable[float], least: float = _ROUNDED_FROM) -> bool:
    """Whether a number is one that is known, or it rounded to the decimals written; to none from `least` on."""
    step = 0.5 * 10.0**-one.decimals * (1 + 1e-9)
    known = list(known)
    round_to = (
        [] if one.kind == "count" else [n for n in known if n % 1 and (one.decimals or abs(n) >= least)]
    )
    return any(value in known or any(abs(n - value) <= step for n in round_to) for value in said)


def _shares(held: Figure) -> list[float]:
    return [100 * first / second for first in held.values[0] for second in held.values[1] if second]


def _percents(one: Figure, held: Figure) -> Iterable[float]:
    """What a fact states as a percentage may be: itself, the share of a pair, or a rate; never an MCC."""
    if held.kind == "percentage":
        return held.values[0]
    if held.kind != "number":
        return _shares(held) if held.kind == "count" else ()
    is_rate = held.measure in ("strength", "τ", "α") or "=" in held.sign
    is_score = held.measure in SCORES or one.measure in SCORES
    return [100 * value for value in held.values[0]] if is_rate and not is_score and held.decimals else []


def _size(one: Figure, beside: Figure) -> float | None:
    """How large a figure is, as a rate or a number, to compare it with another; None where they do not compare."""
    rates = ("count", "percentage")
    if one.kind not in (*rates, "number"):
        return None
    size = next(iter(_shares(one)), None) if one.kind == "count" else min(one.values[0])
    if (one.kind in rates) == (beside.kind in rates):
        return size
    small = one.decimals or beside.decimals
    return size if one.kind in rates and small else 100 * size if size is not None and small else None


def _steps(text: str) -> set[str]:
    """The pieces of an example that keep their order: `105+70`, `175→176`."""
    squeezed = re.sub(r"\s|['‘’‚\"“”„«»`]", "", plain(text)).replace("->", "→").replace("⇒", "→")
    pieces = r"(?=(?<!\d)(\d+[-+×*÷]-?\d+)(?!\d))|(?=(?<![\d+×*÷])(?<!\d-)(-?\d+→-?\d+)(?!\d))"
    return {"".join(one) for one in re.findall(pieces, squeezed)}
