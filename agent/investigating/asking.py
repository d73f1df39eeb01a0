"""What a question asks to be investigated: units, families of rivals that it names, predicates that it states."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from agent.answering.router import known_words
from agent.answering.understanding import Reading, read
from agent.investigating.investigation import AskedUnits
from mecharule_ops.bases import UNIT_NAME
from mecharule_ops.errors import UsageError
from mecharule_ops.questions.amounts import amounts_in
from mecharule_ops.questions.own_words import few_valued, own_words
from mecharule_ops.questions.support import by_evidence
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.families import Family
from mecharule_ops.rules.from_words import rule_from_words
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import check_unit, outcome_for, regime_of
from mecharule_ops.run.tabulating import Part, columns_of, fires, stored_prefix
from mecharule_ops.tasks.rival_families import families_of
from mecharule_ops.types import Neuron, Regime

_STATED = re.compile(r"\b(?:where|when|if|whenever)\s+(?P<predicate>[^?]+?)\s*(?:\?|$)", re.IGNORECASE)
_QUOTED = re.compile(r"[`\"“](?P<predicate>[^`\"”]+)[`\"”]|(?<!\w)'(?P<quoted>[^']+)'(?!\w)")
_TOGETHER = re.compile(
    r"\b(together|both|back\w*|redundan\w*|interact\w*|cancel\w*|undo\w*|jointly)\b", re.IGNORECASE
)
_OF_FLIPS = re.compile(
    r"\b(?:flip\w*|why|when\w*|where|rules?|breaks?|broken|breaking|fails?|harms?|hurts?|wrong|conditions?|propert\w+|"
    r"depends?|predicts?|patterns?|goes? with|random)\b"
)
_OF_UNITS = re.compile(r"\b(?:flip\w*|break\w*|strongest|units?|neurons?|heads?|channels?|agonists?)\b")
_OWN_RULE = re.compile(r"\brules?\b", re.IGNORECASE)
_OWNED = re.compile(rf"\brules?\b[^?]{{0,30}}?\b(?:for|of)\s+(?P<unit>{UNIT_NAME})(?!\w)", re.IGNORECASE)
"""Whose rule is meant."""
_IS = re.compile(
    r"(?:the\s+)?(?:column\s+)?(?P<column>\w+)\s+(?:is|equals|=)\s+['\"]?(?P<value>[^'\"]+?)['\"]?",
    re.IGNORECASE,
)
"""A column with its value, in words."""
_AMOUNT = re.compile(
    r"(?<![\w.])\d+(?:\s+(?:or|and)\s+(?:more|less|above|below|over|under|fewer))?(?!\w|\.\d)"
)
"""A number of a condition."""
_EVERY_UNIT = re.compile(
    r"\b(?:which|what|any|another|each|every|all)\s+(?:other\s+|of\s+the\s+)?(?:units?|neurons?|channels?|heads?)\b",
    re.IGNORECASE,
)
_TWO_UNITS = re.compile(
    r"\b(?:the|of the|both)\s+two\b|\b(?:both|either)\b.*\b(?:units|agonists|neurons|heads|channels)\b",
    re.IGNORECASE,
)
_AMONG = (
    r"\b(?:on|only|among|inside|within|given|just|for)\s+"
    r"(?:(?:the|those|only|problems|records|whose|with|an?)\s+)*"
)
"""Before a condition: that it only narrows what is asked about."""
_SAYS_NOTHING = re.compile(
    r"(?:\b(?:the|an?|it|its|is|are|was|were|has|have|and|there|'?s|model|answer|ahead)\b|\W)*", re.IGNORECASE
)
_TRUE = re.compile(r"\b(?:correct|right|true)\s+(?=answer|result)")
MOST_UNITS = 8
"""Units that are asked about where a question asks which."""
LEAD = "the lead alone"
LEAD_WORDS = (
    "lead",
    "leads",
    "margin",
    "close",
    "confident",
    "uncertain",
    "near tie",
    "near ties",
    "knife's edge",
    "barely",
)


class NotRead(UsageError):
    """A question that names no unit, no family and no flips."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRead:
    """What a question was read as."""

    asked: tuple[AskedUnits, ...] = ()
    words: str = ""
    """In words, so that a person sees what was understood."""
    unread: tuple[str, ...] = ()
    """What looks like a condition and was not read as one."""
    by: str = ""
    """The language model that read it so; empty where the program did."""


def reading_of(question: str, run: Run, *, is_told: bool = False) -> QuestionRead:
    """What is to be found out by tests; nothing, where what the run holds answers it (`is_told`) and no condition is
    named.

    Raises `NotRead` where the question names no unit, no family and no flips, `UsageError` for a hidden direction.
    """
    understood = read(question)
    units = [Neuron.parse(name) for name in understood.units]
    for unit in units:
        check_unit(run, unit)
    known = families_of(run.task, run.columns)
    stated, unread = conditions_in(question, run)
    columns = few_valued(run)
    own = {} if stated else own_words(run, question, known_words())
    stated |= {said: condition for said, condition in own.items() if condition and condition not in columns}
    unread += [said for said, condition in own.items() if not condition]
    rest = _TRUE.sub("", question.lower())
    for text in stated:
        rest = rest.replace(text.lower(), " ")
    families = [family.name for family in known if _speaks_of(rest, family.words)]
    families += [LEAD] if _speaks_of(rest, LEAD_WORDS) else []
    read_as_idea = [LEAD_WORDS, *(family.words for family in known if family.name in families)]
    unread = [
        said for said in unread if not _all_read(said.lower(), sorted(sum(read_as_idea, ()), key=len)[::-1])
    ]
    inside = [said for said in stated if families and _is_inside(said, question)]
    unread += inside
    stated = {said: condition for said, condition in stated.items() if said not in inside}
    given = regime_of(understood.regimes[0]) if understood.regimes else None
    named = bool(stated or families)
    is_pair = len(units) > 1 and bool(_TOGETHER.search(question)) and len({unit.basis for unit in units}) == 1
    if is_told and not (named or is_pair or (units and _OWN_RULE.search(rest))):
        return QuestionRead()
    spoken_of = bool(units) or _OF_UNITS.search(rest)
    if not (named or is_pair or (spoken_of and _OF_FLIPS.search(rest))):
        raise NotRead(
            'expected a question about when a unit flips, such as "does m1.37 flip where carry(a, b)?" or "why does '
            f'the strongest unit flip?"; got {question!r}'
        )
    if is_pair:
        regime = outcome_for(run.findings, units[0], given).regime
        pair = units[:2]
        words = f"do {pair[0]} and {pair[1]} back each other up, undo each other, or neither?"
        return QuestionRead(asked=(_asked(run, pair, regime, [], {}),), words=words)
    units = units or _meant(run, rest, understood, named)
    if (owner := _OWNED.search(question)) and len(units) > 1:
        return _of_others(run, rest, Neuron.parse(owner["unit"].lower()), units, given, stated)
    claims = {**dict.fromkeys(stated.values(), ""), **dict(_own_rules(rest, run, units, given))}
    amounts = _AMOUNT.findall(understood.text if families and not (stated or inside) else "")
    return read_as(run, units, given, families, claims, unread=[*unread, *amounts])


def read_as(
    run: Run,
    units: Sequence[Neuron],
    given: Regime | None,
    families: list[str],
    claims: dict[str, str],
    *,
    unread: Sequence[str] = (),
) -> QuestionRead:
    """What is asked of each unit, and in words."""
    about = [*(words or f"`{text}`" for text, words in claims.items()), *families]
    asked = tuple(
        _asked(run, [unit], outcome_for(run.findings, unit, given).regime, families, claims) for unit in units
    )
    flips = f"the flips of {' and '.join(map(str, units))} go with"
    words = f"do {flips} {', '.join(about)}?" if about else f"what do {flips}?"
    words += f" ({not_read(unread)})" if unread else ""
    return QuestionRead(asked=asked, words=words, unread=tuple(unread))


def not_read(unread: Sequence[str]) -> str:
    """`not read as a condition: 'ending in 1'`."""
    return f"not read as a condition: {'; '.join(map(repr, unread))}"


def _of_others(
    run: Run, text: str, owner: Neuron, units: list[Neuron], given: Regime | None, stated: dict[str, str]
) -> QuestionRead:
    """Whether the rule that was learned for one unit says when the others flip."""
    claims = {**dict.fromkeys(stated.values(), ""), **dict(_own_rules(text, run, [owner], given))}
    others = [unit for unit in units if unit != owner]
    return read_as(run, others if claims else units, given, [], claims)


def _is_inside(said: str, question: str) -> bool:
    """Whether a condition only says among which records something else is asked about, which nothing here tests."""
    return re.search(_AMONG + re.escape(said), question, re.IGNORECASE) is not None


def _speaks_of(text: str, words: Iterable[str]) -> bool:
    return any(re.search(rf"\b{re.escape(word)}\b", text) for word in words)


def _meant(run: Run, text: str, understood: Reading, is_named: bool) -> list[Neuron]:
    """The units that a question means without a name: every shown one, the two strongest, or the one of its place."""
    place = understood.place
    found = [unit.neuron for unit in by_evidence(run.findings, noun=understood.noun) if unit.is_shown]
    if not found[(place or 1) - 1 :]:
        raise UsageError(
            f"expected a unit that is shown in run {run.id}, {len(found) or 'none'} is; name one, such as m0.3"
        )
    if place is None and is_named and _EVERY_UNIT.search(text):
        return found[:MOST_UNITS]
    if place is None and _TWO_UNITS.search(text):
        return found[:2]
    return [found[(place or 1) - 1]]


def _own_rules(
    text: str, run: Run, units: Sequence[Neuron], given: Regime | None
) -> Iterator[tuple[str, str]]:
    """(text, words) of the rule over the prompt that train learned of each named unit, where rules are asked for."""
    for unit in units if _OWN_RULE.search(text) else ():
        found = run.findings.unit(unit, outcome_for(run.findings, unit, given).regime)
        learned = found.account.family(Family.INPUT).learned if found and found.account else None
        learned = learned or (found.rule.rule if found and found.rule else None)
        if learned is not None:
            yield str(Rule.parse(learned)), f"the rule that was learned for {unit} holds"


def _asked(
    run: Run, units: list[Neuron], regime: Regime, families: list[str], claims: dict[str, str]
) -> AskedUnits:
    return AskedUnits(
        units=[str(unit) for unit in units],
        regime=regime.value,
        families=families,
        claims=claims,
        train=stored_prefix(run, (units[0],), regime, Part.TRAIN),
    )


def _of_column(said: str, run: Run) -> str | None:
    """`continent == 'Africa'` of `the continent is Africa`, where there is such a column with such a value."""
    match = _IS.fullmatch(said)
    columns = columns_of(run)
    name = match and next((name for name in columns if name.lower() == match["column"].lower()), None)
    if not match or not name or name not in run.task.prompt_columns:
        return None
    wanted = match["value"].lower()
    values = (value for value in np.unique(columns[name]).tolist() if str(value).lower() == wanted)
    return next((f"{name} == {value!r}" for value in values), None)


def _may_be_one(said: str) -> bool:
    """Whether words may state a condition: more than one, and not of what the unit does."""
    return " " in said and not re.search(
        rf"(?<!\w)(?:{UNIT_NAME}|it|flip\w*|break\w*|happen\w*)(?!\w)", said.lower()
    )


def conditions_in(question: str, run: Run) -> tuple[dict[str, str], list[str]]:
    """(conditions by the words of the question that state them, words that read as none).

    Quoted, or after `where`, `when`, `if`: as the language writes one, or in the words in which rules are said. Amounts
    of a sum wherever they stand.
    """
    known = [text for family in families_of(run.task, run.columns) for text in family.predicates]
    found, unread = dict[str, str](), []
    for match in (*_QUOTED.finditer(question), *_STATED.finditer(question)):
        said = (match["predicate"] or match.groupdict().get("quoted") or "").strip().strip('`"“”').strip()
        try:
            fires(run, said)
        except UsageError:
            rule = rule_from_words(said, known, run.task) or _of_column(said, run)
            if rule is not None:
                found[said] = rule
            elif match.start() and _may_be_one(said) and not any(said in words for words in found):
                unread.append(said)
        else:
            found[said] = said
    for said, predicate in amounts_in(question, run.task).items():
        if not any(said in words for words in found):
            found[said] = predicate
    return found, [said for said in unread if not _all_read(said, found)]


def _all_read(said: str, found: Iterable[str]) -> bool:
    """Whether nothing of the words is left but for what was found in them."""
    for words in found:
        said = said.replace(words, " ")
    return _SAYS_NOTHING.fullmatch(said) is not None
