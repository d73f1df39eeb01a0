"""The conditions that a question states, on records or on its units' flips, put into what its tools are told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from agent.answering.questions import QUESTIONS
from agent.answering.router import Route, Understood
from agent.answering.understanding import MAY_STATE, read
from agent.investigating.asking import conditions_in
from mecharule_ops.findings.records import Findings
from mecharule_ops.numbers import plural
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.questions.own_words import few_valued
from mecharule_ops.questions.support import by_evidence
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import regime_of
from mecharule_ops.run.tabulating import Part
from mecharule_ops.saying.properties import PROPERTIES
from tools.arguments import NARROWED

_HELD_OUT = re.compile(
    r"\bheld[- ]?out\b|\bunseen\b|\bdid(?:n't| not) (?:choose|pick|select)\b", re.IGNORECASE
)
_ALONE = r"unablated|untouched|intact|by itself|on its own|(?:with )?nothing (?:removed|switched off|ablated)"
_UNABLATED = re.compile(rf"\b(?:{_ALONE})\b", re.IGNORECASE)
_OF_MODEL = re.compile(rf"\b(?:model|network|{_ALONE})\b|^(?:and |so )?what if\b", re.IGNORECASE)
_UNITS = r"(?:of (?:the|these|them)\s+)?(?:\w+\s+)?(?:unit|head|neuron|channel|agonist)s?\b"
_WHICH_UNIT = re.compile(
    rf"\b(?:which|what)\s+(?:{_UNITS}|(?:of them\s+)?ones?\b)"
    rf"|\b(?:is|are) there\s+(?:(?:an?|any|some|one)\s+)?{_UNITS}|\bdo(?:es)? any\s+{_UNITS}",
    re.IGNORECASE,
)
"""Asks not of one unit but which of them."""
_NOT_OF_FOUND = re.compile(r"\b(?:rules?|random|not|missed)\b|n't\b", re.IGNORECASE)
"""Words of what is not a count of the units found."""
_MOST_UNITS = 4
_OF_UNITS = frozenset({"strongest", "units", "not-ruled-out"})
"""Rows about units in general, which one that names a condition is not."""
_COUNTED_ELSEWHERE = frozenset({"strength", "examples"})
"""Rows whose answer says the same of all records that a count says of some."""
ABOUT_FLIPS = frozenset({"why", "unit", "tabulate", "covers", "disguise"})
"""Tools whose answer about a unit leaves a condition out."""


def with_condition(
    run: Run, question: str, found: Understood, own: Mapping[str, str]
) -> tuple[Understood, list[str]]:
    """The question with the conditions that it states, which are counted; and what no answer speaks of."""
    if _is_of_the_model(question, found, own):
        found = replace(found, routes=())
    first = next(iter(found.routes), None) or _fallback(question, found, own)
    if first is None:
        return found, list(own)
    if not found.routes and "predicate" in first.given:
        return replace(found, routes=(first,)), []
    if not found.routes and first.kind in NARROWED:
        found = replace(found, routes=(first,))
    is_narrowed = first.kind in NARROWED
    if not is_narrowed and QUESTIONS[first.kind].tool not in ABOUT_FLIPS:
        return found, [] if "prompt" in first.given else list(own)
    columns = few_valued(run)
    stated, unread = conditions_in(question, run) if MAY_STATE.search(question) else ({}, [])
    stated = {**{said: named for said, named in own.items() if named and named not in columns}, **stated}
    unread += [said for said, named in own.items() if not named]
    within = " ".join(stated)
    by_value = {said: named for said, named in own.items() if named in columns and said not in within}
    if is_narrowed:
        return _narrowed(run, question, found, stated), unread + (
            [] if first.kind == "accuracy" else [*by_value]
        )
    if first.kind in _OF_UNITS and (stated or by_value) and _asks_which(question):
        first, found = Route(kind="property", bare=True), replace(found, routes=())
    said_of = bool(first.units or first.bare or first.refers or first.place is not None)
    if not said_of:
        return found, [*unread, *stated, *by_value]
    predicate = _all_of(stated.values()) if stated else next(iter(by_value.values()), "")
    unread += [said for said, named in by_value.items() if named != predicate]
    if not predicate:
        return found, unread
    part = {"records": Part.HELD_OUT.value} if _HELD_OUT.search(question) else {}
    return _counted(found, first, {"predicate": predicate, **part}, is_own=bool(own)), unread


def _is_of_the_model(question: str, found: Understood, own: Mapping[str, str]) -> bool:
    """Whether it asks how right the unablated model is, whatever row it lies near: of a property or of an amount."""
    if any(each.kind in NARROWED for each in found.routes) or found.units:
        return False
    if any(each.bare and each.kind == "property" for each in found.routes):
        return _UNABLATED.search(question) is not None
    is_plain = any(not each.taken or QUESTIONS[each.kind].tool in ABOUT_FLIPS for each in found.routes)
    return any(own.values()) and not is_plain and _OF_MODEL.search(question) is not None


def _fallback(question: str, found: Understood, own: Mapping[str, str]) -> Route | None:
    """What a question may be that is none of the rows: of a unit with a property of records, or of the model."""
    about = read(question).about
    if found.units and about and not own:
        return Route(kind="property", units=found.units[:1], given={"predicate": about}, taken=True)
    if found.units:
        return Route(kind="property", units=found.units)
    if any(own.values()) and _asks_which(question):
        return Route(kind="property", bare=True, taken=True)
    of_model = (about or any(own.values())) and _OF_MODEL.search(question)
    return Route(kind="accuracy", given={"topic": "accuracy"}, taken=True) if of_model else None


def _asks_which(question: str) -> bool:
    return _WHICH_UNIT.search(question) is not None and not _NOT_OF_FOUND.search(question)


def of_each_unit(findings: Findings, question: str, found: Understood) -> tuple[Understood, list[str]]:
    """The question with a route a unit found, the shown first, where it asks which of them flips what it names.

    Beside it how many more there are, which are not counted.
    """
    named = [each for each in found.routes if each.kind == "property"]
    if not named and (about := read(question).about):
        named = [Route(kind="property", bare=True, noun=found.routes[0].noun, given={"predicate": about})]
    if len(named) != 1 or not named[0].bare or not _asks_which(question):
        return found, []
    (asked,) = named
    strong = by_evidence(findings, regime_of(asked.regime), asked.noun)
    units = [str(each.neuron) for each in strong if each.is_tau_agonist]
    each = tuple(replace(asked, units=(unit,), bare=False, taken=False) for unit in units[:_MOST_UNITS])
    more = len(units) - len(each)
    return replace(found, routes=each or found.routes), [plural(more, "weaker unit")] if more else []


def _counted(found: Understood, first: Route, given: Mapping[str, str], *, is_own: bool) -> Understood:
    """The question with flips counted where a predicate holds, and where a property that it names holds too."""
    asked = [each for each in found.routes if "predicate" in each.given]
    if not asked:
        counted = replace(first, kind="property", given=dict(given), taken=False)
        kept = (each for each in found.routes if is_own and each.kind not in _COUNTED_ELSEWHERE)
        return replace(found, routes=(counted, *kept))
    known = PROPERTIES.get(str(asked[0].given["predicate"]))
    if known:
        given = {**given, "predicate": _all_of([known.predicate, given["predicate"]])}
    narrower = tuple(replace(each, given={**each.given, **given}, taken=False) for each in asked)
    kept = (each for each in found.routes if each not in asked and each.kind not in _COUNTED_ELSEWHERE)
    return replace(found, routes=(*narrower, *kept))


def _all_of(conditions: Iterable[str]) -> str:
    """One predicate that holds where each does."""
    first, *others = dict.fromkeys(conditions)
    return " and ".join(f"({text})" for text in (first, *others)) if others else first


def _narrowed(run: Run, question: str, found: Understood, stated: Mapping[str, str]) -> Understood:
    """The question which records the model is right on, of those where every condition that it names holds."""
    said = read(question).about
    conditions = list(stated.values())
    if said is not None and _tells(run, predicate := PROPERTIES[said].predicate):
        conditions.insert(0, predicate)
    if not conditions:
        return found
    where = {"where": _all_of(conditions)}
    routes = (
        replace(each, given={**each.given, **where}) if each.kind in NARROWED else each
        for each in found.routes
    )
    return replace(found, routes=tuple(routes))


def _tells(run: Run, predicate: str) -> bool:
    """Whether the task's records have a property and not all of them."""
    try:
        holds = run.fires(predicate)
    except PredicateRefused:
        return False
    return bool(holds.any() and not holds.all())
