"""What a question asks to be investigated: units, families of rivals that it names, predicates that it states."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.answering.understanding import read
from agent.investigating.investigation import AskedUnits
from mecharule_ops.errors import UsageError
from mecharule_ops.questions.support import strongest
from mecharule_ops.rules.from_words import rule_from_words
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import check_unit, outcome_for, regime_of
from mecharule_ops.run.tabulating import Part, fires, stored_prefix
from mecharule_ops.tasks.rival_families import RivalFamily, families_of
from mecharule_ops.types import Neuron, Regime

_STATED = re.compile(r"\b(?:where|when|if|whenever)\s+(?P<predicate>[^?]+?)\s*(?:\?|$)", re.IGNORECASE)
_QUOTED = re.compile(r"[`\"“](?P<predicate>[^`\"”]+)[`\"”]")
_TOGETHER = re.compile(
    r"\b(together|both|back\w*|redundan\w*|interact\w*|cancel\w*|undo\w*|jointly)\b", re.IGNORECASE
)
_OF_UNITS = re.compile(
    r"\b(?:flip\w*|why|when|strongest|second|third|fourth|fifth|units?|neurons?|heads?|channels?|rules?|breaks?)\b"
)
LEAD, LEAD_WORDS = "the lead alone", frozenset({"lead", "margin", "close", "confident", "uncertain"})


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRead:
    """What a question was read as."""

    asked: tuple[AskedUnits, ...]
    words: str
    """In words, so that a person sees what was understood."""


def reading_of(question: str, run: Run) -> QuestionRead:
    """What is to be found out.

    Raises `UsageError` where the question names no unit, no family and no flips, and for a direction that is hidden.
    """
    understood = read(question)
    known = families_of(run.task, run.columns)
    stated, unread = _stated(question, run, known)
    predicates = list(dict.fromkeys(stated.values()))
    rest = question.lower()
    for text in stated:
        rest = rest.replace(text.lower(), " ")
    spoken = set(re.findall(r"\w+", rest))
    families = [family.name for family in known if spoken & set(family.words)]
    families += [LEAD] if spoken & LEAD_WORDS else []
    if not (understood.units or predicates or families or _OF_UNITS.search(rest)):
        raise UsageError(
            'expected a question about when a unit flips, such as "does m1.37 flip where carry(a, b)?" or "why does '
            f'the strongest unit flip?"; got {question!r}'
        )
    units = [Neuron.parse(name) for name in understood.units]
    if not units:
        found = strongest(run.findings, understood.place or 1)
        if found is None:
            raise UsageError(
                f"expected a unit that run {run.id} found, it found none; name one, such as m0.3"
            )
        units = [found.neuron]
    for unit in units:
        check_unit(run, unit)
    given = regime_of(understood.regimes[0]) if understood.regimes else None
    if len(units) > 1 and _TOGETHER.search(question) and len({unit.basis for unit in units}) == 1:
        regime = outcome_for(run.findings, units[0], given).regime
        pair = units[:2]
        words = f"do {pair[0]} and {pair[1]} back each other up, undo each other, or neither"
        return QuestionRead(asked=(_asked(run, pair, regime, [], []),), words=words)
    asked = tuple(
        _asked(run, [unit], outcome_for(run.findings, unit, given).regime, families, predicates)
        for unit in units
    )
    named = [*(f"`{text}`" for text in predicates), *families]
    flips = f"the flips of {' and '.join(map(str, units))} go with"
    words = f"do {flips} {', '.join(named)}" if named else f"what do {flips}"
    words += f" (not read as a condition: {'; '.join(map(repr, unread))})" if unread else ""
    return QuestionRead(asked=asked, words=words)


def _asked(
    run: Run, units: list[Neuron], regime: Regime, families: list[str], claims: list[str]
) -> AskedUnits:
    return AskedUnits(
        units=[str(unit) for unit in units],
        regime=regime.value,
        families=families,
        claims=claims,
        train=stored_prefix(run, (units[0],), regime, Part.TRAIN),
    )


def _stated(question: str, run: Run, families: Sequence[RivalFamily]) -> tuple[dict[str, str], list[str]]:
    """(conditions by the words of the question that state them, words that read as none).

    Quoted, or after `where`, `when`, `if`: as the language writes one, or in the words in which rules are said.
    """
    known = [text for family in families for text in family.predicates]
    found, unread = dict[str, str](), []
    for match in (*_QUOTED.finditer(question), *_STATED.finditer(question)):
        said = match["predicate"].strip().strip('`"“”').strip()
        try:
            fires(run, said)
        except UsageError:
            read = rule_from_words(said, known, run.task)
            if read is not None:
                found[said] = read
            elif match.start() and not any(said in words for words in found):
                unread.append(said)
        else:
            found[said] = said
    return found, unread
