"""The conditions that a question states, on records or on its units' flips, put into what its tools are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agent.answering.questions import QUESTIONS
from agent.answering.router import Route, Understood
from agent.answering.understanding import read
from agent.investigating.asking import MAY_STATE, conditions_in
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.questions.own_words import few_valued
from mecharule_ops.run.live_run import Run
from mecharule_ops.saying.properties import PROPERTIES
from tools.about import NARROWED

ABOUT_FLIPS = frozenset({"why", "unit", "tabulate", "covers", "disguise"})
"""Tools whose answer about a unit leaves a condition out."""


def with_condition(
    run: Run, question: str, found: Understood, own: Mapping[str, str]
) -> tuple[Understood, list[str]]:
    """The question about a unit with the condition that it states, which is counted; and what no answer speaks of."""
    first = next(iter(found.routes), Route(kind="property", units=found.units) if found.units else None)
    if first is None:
        return found, []
    if first.kind in NARROWED:
        return _narrowed(run, question, found, own)
    if QUESTIONS[first.kind].tool not in ABOUT_FLIPS:
        return found, [] if "prompt" in first.given else list(own)
    if found.own:
        rest = [words for words, condition in own.items() if condition != found.own]
        if any("predicate" in each.given for each in found.routes):
            return found, rest
        counted = replace(first, kind="property", given={"predicate": found.own}, taken=False)
        return replace(found, routes=(counted, *found.routes)), rest
    if not MAY_STATE.search(question):
        return found, list(own)
    conditions, unread = conditions_in(question, run)
    unread += own
    if not conditions or "predicate" in first.given:
        return found, unread
    route = replace(first, kind="property", given={"predicate": next(iter(conditions.values()))}, taken=False)
    return replace(found, routes=(route,)), unread


def _narrowed(
    run: Run, question: str, found: Understood, own: Mapping[str, str]
) -> tuple[Understood, list[str]]:
    """The question which records the model is right on, of those where every condition that it names holds."""
    kind, columns = found.routes[0].kind, few_valued(run)
    stated, unread = conditions_in(question, run) if MAY_STATE.search(question) else ({}, [])
    named = {said: condition for said, condition in own.items() if condition and condition not in columns}
    stated = {**named, **stated}
    said = read(question).about if kind != "accuracy" or stated else None
    if said is not None and _tells(run, predicate := PROPERTIES[said].predicate):
        stated = {said: predicate, **stated}
    by_value = columns if kind == "accuracy" else {}
    unread += [words for words in own if words not in named and own[words] not in by_value]
    if not stated:
        return found, unread
    conditions = list(dict.fromkeys(stated.values()))
    where = " and ".join(f"({text})" for text in conditions) if len(conditions) > 1 else conditions[0]
    routes = tuple(replace(each, given={**each.given, "where": where}) for each in found.routes)
    return replace(found, routes=routes), unread


def _tells(run: Run, predicate: str) -> bool:
    """Whether the task's records have a property and not all of them."""
    try:
        holds = run.fires(predicate)
    except PredicateRefused:
        return False
    return bool(holds.any() and not holds.all())
