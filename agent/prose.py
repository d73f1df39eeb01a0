"""Checking a language model's words: every figure and unit of a sentence must stand in the facts that it cites.

A statement cites facts as `[f3]` or `[f1, f4]`; a sentence without any is checked against those cited next to it in its
line. A figure stands where one of these facts, or what the program said without an id, holds it: as it is, rounded to
the digits that are written, or as the percentage of a count. Facts about other units than the sentence is about hold
nothing for it. A figure of the question or of a call's arguments, and a level (τ, α), stand only beside one that the
facts alone hold (`14 of 64, not the 50 of 64 that you ask about`); prompts and conditions may be repeated.

A sentence that fails is marked with the reason and never removed. Whether a right figure stands in a right sentence is
what the second look asks (`agent.talk`).
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise

from agent.figures import Figure, as_digits, figures_in, percentages, units_named

MARK = "⚠"
_IDS = r"\[\s*f\d+(?:\s*[,;]?\s*f\d+)*\s*\]"
_CITED = re.compile(_IDS)
_SENTENCE = re.compile(rf".+?(?:[.!?。！？]+[\"'”’)*_]*(?=\s|$)(?:\s*{_IDS}[.!?]?)*|$)", re.DOTALL)
_BULLET = re.compile(r"^\s*(?:#+|[-*•]|\d{1,2}[.)])\s+")
_REPEATED = re.compile(r"[\w.]+(?:\s*(?:[-+×*÷=→]|[<>=!]=?)\s*'?[\w.]*\w'?)+")
"""A prompt or a condition."""
_LAYER = re.compile(r"\b(?:layers?|Schicht|couche|capa)\s+(\d+)", re.IGNORECASE)
_LEVEL = re.compile(r"[τα] (?:= )?(0?\.\d+)")
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
    unit: str = ""
    """What it is about, where its tool says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One sentence of an answer and what was found about it."""

    text: str
    cites: tuple[str, ...]
    """Ids of the facts that it was checked against."""
    fault: str = ""
    """Why it is marked; empty where every figure stands in its facts."""


def check(
    text: str, facts: Mapping[str, Cited], question: str = "", uncited: Sequence[Cited] = (), sheet: str = ""
) -> tuple[Checked, ...]:
    """Every sentence of an answer, in order, each with the fault that the facts it cites leave it with.

    `uncited`: what the program said that has no id, which any sentence may repeat; `sheet`: what the model was told of
    the run, whose units and levels it may name.
    """
    told = [sheet, *(one.sentence for one in facts.values())]
    units = units_named(question, *told, *(one.unit + one.arguments for one in (*facts.values(), *uncited)))
    levels = frozenset(share * float(one) for one in _LEVEL.findall("\n".join(told)) for share in (1, 100))
    checked: list[Checked] = []
    before = ""
    for one in (each for line in text.splitlines() for each in _sentences(line)):
        if strange := [id for id in one.cites if id not in facts]:
            fault = f"there is no fact {', '.join(strange)}"
        else:
            missing = _missing(
                one.text, before, [*(facts[id] for id in one.cites), *uncited], question, units, levels
            )
            where = "the facts it cites" if one.cites else "the question, and it cites no fact"
            fault = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not in {where}" * bool(
                missing
            )
        checked.append(replace(one, fault=fault))
        before = one.text
    return tuple(checked)


def with_marks(text: str, checked: Sequence[Checked]) -> str:
    """The answer with each fault behind its sentence; the words stay as they were written."""
    place, parts = 0, []
    for one in checked:
        end = text.index(one.text, place) + len(one.text)
        parts += [text[place:end], f" {MARK} ({one.fault})" if one.fault else ""]
        place = end
    return "".join([*parts, text[place:]])


def _sentences(line: str) -> Iterator[Checked]:
    """The sentences of a line; one that cites nothing is given what is cited next, else before."""
    body = line[match.end() :] if (match := _BULLET.match(line)) else line
    said = [one[0].strip() for one in _SENTENCE.finditer(body) if one[0].strip()]
    own = [tuple(dict.fromkeys(re.findall(r"f\d+", " ".join(_CITED.findall(each))))) for each in said]
    for place, each in enumerate(said):
        yield Checked(text=each, cites=next(filter(None, [*own[place:], *own[:place][::-1]]), ()))


def _missing(
    said: str, before: str, told: Sequence[Cited], question: str, known_units: Set[str], levels: Set[float]
) -> list[str]:
    """The units and figures of a sentence that its facts do not hold, and that may not be repeated beside them."""
    named = units_named(said)
    meant = named and units_named(said, before, question)
    units = [units_named(one.sentence, one.unit) for one in told]
    about = [one.sentence for one, of in zip(told, units, strict=True) if not (meant and of) or of & meant]
    strange = named - known_units if about or not told else named
    facts = as_digits("\n".join(about))
    given = as_digits("\n".join([question, *(one.arguments for one in told)]))
    text = _REPEATED.sub(lambda match: " " if match[0] in given else match[0], as_digits(said))
    layers = {unit[1:].partition(".")[0] for of in units for unit in of}
    found = figures_in(
        _LAYER.sub(lambda match: " " if match[1] in layers else match[0], _CITED.sub(" ", text))
    )
    known = {value for one in figures_in(facts) for value in one.values}
    known |= {float(len(of)) for of in (named, frozenset().union(*units)) if len(of) > 1}
    held = [one for one in found if not one.percent and _stands(one, facts, known)]
    own = {100 * min(k.values) / max(n.values) for k, n in pairwise(held) if max(n.values)}
    held += [one for one in found if one.percent and _stands(one, facts, own.union(percentages(facts)))]
    repeated = {value for one in figures_in(given) for value in one.values}
    repeated |= levels if re.search(r"[τα]|\b(?:tau|alpha|level|threshold)\b", said, re.I) else set()
    if any(not one.values & repeated for one in held):
        held += [one for one in found if _stands(one, given, repeated)]
    return [*sorted(strange), *dict.fromkeys(one.text for one in found if one not in held)]


def _stands(one: Figure, text: str, known: Collection[float]) -> bool:
    """Whether a figure is known, as itself or rounded to the digits written; one that is a word stands in the text."""
    if one.strange:
        return bool(re.search(rf"(?<![\w.]){re.escape(one.text)}(?!\w)", text, re.IGNORECASE))
    # Words may say what a minus says: it falls by .5.
    near = [each for value in known for each in (value, abs(value))]
    rounded = [x for x in near if x % 1 and (one.percent or one.step < 1 or x >= _ROUNDED_FROM)]
    return any(
        said in near or any(abs(value - said) <= one.step * (0.5 + 1e-9) for value in rounded)
        for said in one.values
    )
