"""Checking a language model's words: every figure and unit of a sentence must stand in the facts that it cites.

A statement cites facts as `[f3]` or `[f1, f4]`. A sentence is checked against the facts cited in it, else against those
cited next in its line; calls that did not run need no citing. A figure (`agent.figures`) holds where one fact states

- it, as itself or rounded to the digits that are written: a pair as a pair, an interval as an interval, a percentage
  also as the share of a pair or of a rate, never of an MCC;
- of the unit that the sentence says it of, on the same side (`at least`, `below`), of the same measure, of the same
  part of the records, and of random units where it is theirs.

Of the question and of a call's arguments a sentence may repeat names, prompts and conditions, and say what its figures
are above, below or not; they hold no figure. `shown` and `not shown` must be what a fact of the unit states. A sentence
that fails is marked with the reason and never removed. Whether the other words follow is what `second_look` asks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import repeat, zip_longest
from typing import Any

from agent.figures import BOUND, OF, UNIT, Figure, plain, read

MARK = "⚠"
_IDS = r"\[\s*f\d+(?:\s*[,;]?\s*f\d+)*\s*\]"
_CITED = re.compile(_IDS)
_SENTENCE = re.compile(rf".+?(?:[.!?。！？]+[\"'”’)*_]*(?=\s|$)(?:\s*{_IDS}[.!?]?)*|$)", re.DOTALL)
_BULLET = re.compile(r"^\s*(?:#+|[-*•]|\d{1,2}[.)])\s+")
_ROUNDED_FROM = 10
"""A number that is rounded to none of its decimals is at least as large: `1` is not `.63`."""
_SCORES = ("MCC", "AUC", "p", "rank", "selectivity")
"""Measures that are no share of anything, so never a percentage."""
_LEVELS = ("tau", "alpha")
"""What figures are held against: a sentence may say on which side of these something lies."""
_SHOWN = re.compile(
    r"(?P<not>\b(?:not|never|\w+n't|nothing|no|nicht|kein\w*|pas|non)\b(?:\s+\w+){0,3}?\s+)?"
    r"(?<!as )\b(?:shown|nachgewiesen|gezeigt|montrée?s?|démontrée?s?|demostrad[oa]s?|mostrad[oa]s?)\b"
    r"(?!\s+(?:in|by|above|below|here)\b)|(?P<less>\bsuggestive\b)",
    re.IGNORECASE,
)


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
    shown: bool | None = None
    """Whether it states that something is shown, or that it is not; None where it says neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One sentence of an answer and what was found about it."""

    text: str
    cites: tuple[str, ...]
    """Ids of the facts that it was checked against."""
    fault: str = ""
    """Why it is marked; empty where every figure stands in its facts."""


def check(
    text: str, facts: Mapping[str, Cited], question: str = "", uncited: Sequence[Cited] = (), names: str = ""
) -> tuple[Checked, ...]:
    """Every sentence of an answer, in order, each with the fault that the facts it cites leave it with.

    `uncited`: what the program said that has no id, which any sentence may repeat; `names`: a text whose words may be
    named, such as `SmolLM2`.
    """
    names = plain(" ".join([names, question, *(fact.sentence for fact in facts.values())]))
    checked: list[Checked] = []
    for line in text.splitlines():
        it: frozenset[str] = frozenset()
        for one in _sentences(line):
            units = read(one.text).units
            if strange := [id for id in one.cites if id not in facts]:
                fault = f"there is no fact {', '.join(strange)}"
            else:
                known = [_fact(fact) for fact in (*(facts[id] for id in one.cites), *uncited)]
                said = _CITED.sub(" ", one.text)
                fault = _Sentence(said, known, question, names, it).fault(bool(one.cites))
            checked.append(replace(one, fault=fault))
            it = units or it
    return tuple(checked)


def marked(text: str, checked: Sequence[Checked]) -> str:
    """The answer with each fault behind its sentence; the words stay as they were written."""
    place, parts = 0, []
    for one in checked:
        end = text.index(one.text, place) + len(one.text)
        parts += [text[place:end], f" {MARK} ({one.fault})" if one.fault else ""]
        place = end
    return "".join([*parts, text[place:]])


def cited_in(checked: Sequence[Checked]) -> tuple[str, ...]:
    """Ids of the facts that an answer cites, in order, each once."""
    return tuple(dict.fromkeys(id for one in checked for id in one.cites))


def _sentences(line: str) -> list[Checked]:
    """The sentences of a line; one that cites nothing is given what is cited next."""
    body = line[match.end() :] if (match := _BULLET.match(line)) else line
    cites: tuple[str, ...] = ()
    sentences: list[Checked] = []
    for said in reversed([one[0].strip() for one in _SENTENCE.finditer(body) if one[0].strip()]):
        cites = tuple(dict.fromkeys(re.findall(r"f\d+", " ".join(_CITED.findall(said))))) or cites
        sentences.append(Checked(text=said, cites=cites))
    return sentences[::-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fact:
    text: str
    figures: tuple[Figure, ...]
    units: frozenset[str]
    """Those that it names or is about."""
    given: Mapping[str, Any]
    """The arguments of its call."""
    shown: bool | None


@lru_cache(4096)
def _fact(fact: Cited) -> _Fact:
    found, given = read(fact.sentence), dict(json.loads(fact.arguments or "{}"))
    asked = read(" ".join(map(str, given.values()))).units
    topic = read(fact.unit).units or (asked if len(asked) == 1 else frozenset())
    first = UNIT.search(found.text)

    def about(one: Figure) -> frozenset[str]:
        is_of_all = one.joint or not first or one.begin < first.start()
        return topic | (found.units if is_of_all else one.units or found.units)

    figures, later = list[Figure](), ""
    for one, after in zip_longest(found.figures[::-1], found.figures[-2::-1]):
        # Words for a part that stand behind several figures speak of all of them.
        part = one.part or later
        between = found.text[after.end : one.begin] if after else ""
        later = "" if re.search(r"[();]", between) else part
        held = replace(one, units=about(one), joint=one.joint and not topic, part=part)
        figures += [held, *_forms(held)]
    return _Fact(
        text=found.text,
        figures=tuple(figures),
        units=found.units | asked | topic,
        given=given,
        shown=fact.shown,
    )


class _Sentence:
    """A sentence beside the facts that it cites; `it` are the units it names, else those of the sentence before."""

    def __init__(
        self, said: str, facts: Sequence[_Fact], question: str, names: str, it: frozenset[str]
    ) -> None:
        self.facts, self.question, self.names = facts, read(question), names
        given = [value for fact in facts for value in fact.given.values() if isinstance(value, str)]
        # A condition is repeated as it was given; its numbers are no figures.
        for condition in (plain(each) for each in given if re.search(r"[<>=(].*\d", each)):
            said = plain(said).replace(condition, " ")
        self.said, self.found = said, read(said)
        self.units, self.it = self.found.units or it, frozenset() if self.found.units else it
        self.stated = [one for fact in facts for one in fact.figures]
        told = [*self.stated, *self.question.figures, *(one for each in given for one in read(each).figures)]
        self.examples = [one for one in told if one.kind == "example"]

    def fault(self, cites: bool) -> str:
        """Why the sentence is marked; empty where it is not."""
        named = self.question.units.union(*(fact.units for fact in self.facts))
        strange = [match[0] for match in UNIT.finditer(self.found.text) if match[0].lower() not in named]
        missing = min((self._missing(read(self.said, way).figures) for way in (True, False)), key=len)
        if missing := list(dict.fromkeys([*strange, *missing])):
            where = "the facts it cites" if cites else "the question, and it cites no fact"
            return f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not in {where}"
        about = [fact for fact in self.facts if not (self.units and fact.units) or self.units & fact.units]
        for match in _SHOWN.finditer(self.found.text):
            said = not (match["not"] or match["less"])
            if not any(said is fact.shown for fact in about):
                return f"no fact it cites says {'' if said else 'not '}shown"
        return ""

    def _missing(self, figures: Sequence[Figure]) -> list[str]:
        held = [one for one in figures if self._stands(one, figures)]
        return [one.text for one in figures if one not in held and not self._compares(one, held)]

    def _stands(self, one: Figure, figures: Sequence[Figure]) -> bool:
        """Whether a fact states a figure; a figure that is denied stands where none does."""
        others = [number for other in figures if other is not one for number in other.values]
        if one.kind == "strange":
            texts = [self.names] if one.text[0].isalpha() else [fact.text for fact in self.facts]
            return any(re.search(rf"(?<![\w.]){re.escape(one.text)}(?!\w)", text, re.I) for text in texts)
        if one.kind == "example":
            return any(_goes(one, example) for example in self.examples)
        of_example = any(
            one.values[0] & number and any(other & each for other in others for each in example.values)
            for example in self.examples
            for number in example.values
        )
        of_units = one.kind == "number" and (
            (one.text.isalpha() and one.values[0] == {float(len(self.found.units))})
            or (one.measure == "layer" and any(unit[1:].startswith(f"{one.text}.") for unit in self.units))
        )
        place = figures.index(one)
        count = figures[place - 1]
        is_share = place and count.kind == "count" and self.found.text[count.end : one.begin].strip() == "("
        if is_share and one.kind == "percentage" and not (one.side or one.of):
            return _near(one, one.values[0], frozenset([100 * _share(count)]))
        held = any(self._is(one, each, others) for each in self.stated)
        return (held or of_units or (one.kind == "number" and of_example)) != one.denied

    def _is(self, one: Figure, held: Figure, others: Sequence[frozenset[float]]) -> bool:
        """Whether a figure is what a fact states."""
        units = self.units if one.measure == "p" else one.units or (self.it if held.units else held.units)
        if units and not (held.units <= self.units if held.joint else held.units & units):
            return False
        if one.part and one.part != held.part and (one.part == "held_out" or held.part):
            return False
        if held.of and one.of != held.of and not (held.of in OF and OF[held.of].search(self.found.text)):
            return False
        if one.measure and held.measure and one.measure != held.measure:
            return False
        if held.kind == "total" and (one.is_total or any(held.values[1] & number for number in others)):
            held = replace(held, kind="number")
        if held.kind != one.kind or not all(map(_near, repeat(one), one.values, held.values)):
            return False
        bound = BOUND.search(self.found.text)
        named = {"above": ">", "below": "<"}.get(str(bound.lastgroup) if bound else "")
        is_compared = held.of == "units" or held.measure in _LEVELS
        return one.side == held.side or is_compared or (not one.side and held.side == named)

    def _compares(self, one: Figure, held: Sequence[Figure]) -> bool:
        """Whether a figure of the facts or the question is rightly told to be below or above the one beside it."""
        known = [*self.stated, *self.question.figures]
        beside = [other for other in held if other.kind == one.kind]
        if not one.side or not beside or not any(one.values == each.values for each in known):
            return False
        sizes = [_share(each) if each.kind == "count" else max(each.values[0]) for each in (beside[-1], one)]
        return sizes[0] > sizes[1] if one.side == ">" else sizes[0] < sizes[1]


def _forms(one: Figure) -> Iterator[Figure]:
    """What a figure of a fact may be told as: the share or the first number of a count, an end of an interval."""
    if one.kind == "interval":
        for end, side in zip(one.values, "><", strict=True):
            for kind in ("number", "percentage"):
                yield replace(one, kind=kind, values=(end,), side=side)
    elif one.kind == "count":
        yield replace(one, kind="percentage", values=(frozenset([100 * _share(one)]),))
        yield replace(one, kind="number", values=one.values[:1])
        yield replace(one, kind="total", values=one.values[::-1], side="")
    elif one.kind == "number" and one.decimals and one.measure not in _SCORES:
        yield replace(one, kind="percentage", values=(frozenset(100 * value for value in one.values[0]),))


def _near(one: Figure, said: frozenset[float], known: frozenset[float]) -> bool:
    """Whether a number is one that is known, or it rounded to the decimals written; without decimals from 10 on."""
    step = 0.5 * 10.0**-one.decimals * (1 + 1e-9)
    is_rate = one.kind == "percentage" or one.decimals
    rounded = [n for n in known if one.kind != "count" and n % 1 and (is_rate or abs(n) >= _ROUNDED_FROM)]
    return any(value in known or any(abs(n - value) <= step for n in rounded) for value in said)


def _share(count: Figure) -> float:
    first, second = (max(number) for number in count.values)
    return first / second if second else 0.0


def _goes(one: Figure, example: Figure) -> bool:
    """Whether an example is a piece of another that keeps its order: `105 + 70`, `175 → 176`."""
    pieces = [re.split(r"[=→]", re.sub(r"[\s'\"`]", "", each.text)) for each in (one, example)]
    rest = iter(pieces[1])
    return all(piece in rest for piece in pieces[0] if piece)
