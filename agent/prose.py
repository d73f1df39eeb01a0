"""Checking a language model's words: every figure and unit of a sentence must stand in the facts that it cites.

A statement cites facts as `[f3]` or `[f1, f4]`. A sentence is checked against the facts cited in it, else against those
cited next in its line; beside them stand the arguments of the calls that gave these facts, and the question. What is
compared:

- units (`m4.12`, `a20.h8`) by name,
- pairs (`16 of 48`, `16/48`) as a pair, so that a count cannot be moved beside another total,
- percentages, also as the share of a cited pair, and other numbers, also rounded to the digits that are written.

A sentence that fails is marked with the reason and never removed. What is not compared: whether the words between the
figures follow from the facts, which is what `second_look` asks, and numbers in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

MARK = "⚠"
_CITED = re.compile(r"\[\s*f\d+(?:\s*[,;]?\s*f\d+)*\s*\]")
_SENTENCE = re.compile(
    r".+?(?:[.!?。！？]+[\"'”’)*_]*(?=\s|$)(?:\s*\[\s*f\d+(?:\s*[,;]?\s*f\d+)*\s*\][.!?]?)*|$)", re.DOTALL
)
_BULLET = re.compile(r"^\s*(?:#+|[-*•]|\d{1,2}[.)])\s+")
_UNIT = re.compile(r"(?<![\w.])[mna]\d+\.h?\d+(?![\w])")
_NUMBER = r"\d+(?:[,\u2009\u202f']\d{3})*(?:\.\d+)?|\.\d+"
_PAIR = re.compile(rf"({_NUMBER})\s*(?:of(?:\s+the)?|/|von|sur|de|di)\s*(?:[a-z]+\s+)?({_NUMBER})(?!\s*%)")
_PERCENT = re.compile(rf"({_NUMBER})\s*(?:%|percent\b|per cent\b)")
_FIGURE = re.compile(rf"(?<![\w.])(?:(?<![^\s(\[,;:=<>≥≤])[-−])?(?:{_NUMBER})(?:e-?\d+)?(?!\w)")
_DIGIT = re.compile(r"\d")
_ROUNDED_FROM = 10
"""A number that is rounded to none of its decimals is at least as large: `1` is not `.63`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """A fact as a model may cite it."""

    id: str
    """`f3`."""
    sentence: str
    arguments: str = ""
    """Of the call that gave it, as text."""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One sentence of an answer and what was found about it."""

    text: str
    cites: tuple[str, ...]
    """Ids of the facts that it was checked against."""
    fault: str = ""
    """Why it is marked; empty where every figure stands in its facts."""


def check(text: str, facts: Mapping[str, Cited], question: str = "") -> tuple[Checked, ...]:
    """Every sentence of an answer, in order, each with the fault that the facts it cites leave it with."""
    return tuple(_judged(one, facts, question) for line in text.splitlines() for one in _of_line(line))


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


def _of_line(line: str) -> Iterator[Checked]:
    """The sentences of a line; one that cites nothing is given what is cited next."""
    body = line[match.end() :] if (match := _BULLET.match(line)) else line
    found = [one[0].strip() for one in _SENTENCE.finditer(body) if one[0].strip()]
    cites: tuple[str, ...] = ()
    told: list[Checked] = []
    for said in reversed(found):
        cites = _ids(said) or cites
        told.append(Checked(text=said, cites=cites))
    yield from reversed(told)


def _ids(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id for one in _CITED.findall(text) for id in re.findall(r"f\d+", one)))


def _judged(one: Checked, facts: Mapping[str, Cited], question: str) -> Checked:
    said = _CITED.sub(" ", one.text)
    strange = [id for id in one.cites if id not in facts]
    if strange:
        return replace(one, fault=f"there is no fact {', '.join(strange)}")
    if not _DIGIT.search(said):
        return one
    sources = [facts[id] for id in one.cites]
    held = "\n".join([*(f"{fact.sentence}\n{fact.arguments}" for fact in sources), question])
    if missing := tuple(dict.fromkeys(_missing(said, held))):
        where = "the facts it cites" if one.cites else "the question, and it cites no fact"
        return replace(
            one, fault=f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not in {where}"
        )
    return one


def _missing(said: str, held: str) -> Iterator[str]:
    """The units and figures of a sentence that a text does not hold, as they are written."""
    known = {name.lower() for name in _UNIT.findall(held)}
    yield from (unit for unit in _UNIT.findall(said) if unit.lower() not in known)
    said, held = _UNIT.sub(" ", said), _UNIT.sub(" ", held)
    pairs = {(_value(first), _value(second)) for first, second in _PAIR.findall(held)}
    numbers = [_value(figure) for figure in _FIGURE.findall(held)]
    for match in _PAIR.finditer(said):
        if (_value(match[1]), _value(match[2])) not in pairs:
            yield match[0].strip()
    said = _PAIR.sub(" ", said)
    shares = [100 * first / second for first, second in pairs if second]
    percents = [_value(match[1]) for match in _PERCENT.finditer(held)]
    as_shares = [100 * one for one in numbers if abs(one) <= 1]
    for match in _PERCENT.finditer(said):
        if not _is_among(match[1], [*percents, *shares, *as_shares], least=0):
            yield match[0].strip()
    for figure in _FIGURE.findall(_PERCENT.sub(" ", said)):
        if not _is_among(figure, numbers, least=_ROUNDED_FROM):
            yield figure


def _value(figure: str) -> float:
    return float(re.sub(r"[,\u2009\u202f']", "", figure).replace("−", "-"))


def _is_among(figure: str, known: Sequence[float], least: float) -> bool:
    """Whether a figure is one of the numbers, or one of them rounded to its decimals; to none from `least` on."""
    value, decimals = _value(figure), len(figure.partition(".")[2])
    step = 0.5 * 10.0**-decimals * (1 + 1e-9)
    return any(
        value == one or (abs(one - value) <= step and one % 1 and (decimals or abs(one) >= least))
        for one in known
    )
