"""Claims of when a unit flips, from a question to their verdicts, without a language model.

    propose → screen on train → register → decide on held-out records → verdict

Proposed are the condition that the question names, else the run's own predicates over the prompt. Screening reads flips
of train records alone and keeps those whose difference of rates is told apart from 0 most clearly, none that nearly
fires alike. A claim is registered before any held-out flip is read for it and decided once, on all held-out records of
its direction; those of one unit share one error (Holm). With a model the conversation's own tools do the same.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Any

import numpy as np
from jaxtyping import Bool

from agent import canonical, chat, chat_models, consent
from mecharule_ops import confidence, numbers, thresholds
from mecharule_ops.errors import BudgetSpent, ClaimNotSupported, UsageError
from mecharule_ops.facts.fact import Fact, fact, said
from mecharule_ops.findings.records import Findings
from mecharule_ops.rules.algebra import Clause, Condition, Rule
from mecharule_ops.rules.in_words import rule_in_words
from mecharule_ops.rules.matthews import mcc
from mecharule_ops.run import live_run, opening
from mecharule_ops.run.tabulating import Part, drawn, fires, forwards_missing
from mecharule_ops.store.ledger import HypothesisState
from mecharule_ops.types import FlipsWhere, Neuron
from tools._asked import condition_of
from tools.registry import call
from tools.result import Tell, ToolResult, of_facts, price_words

MOST = 4
"""Claims of a unit that are registered: each costs the others power."""
THRESHOLD = 0.1
"""Least difference of two flip rates that a claim is of."""
ALIKE = 0.8
"""MCC of two conditions' firing from which they are one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Screened:
    """A condition with its counts on train records."""

    condition: str
    words: str
    where: FlipsWhere
    low: float
    """Lower end of the difference of the two rates."""
    holds: Bool[np.ndarray, " record"]


def investigated(
    run: str,
    question: str,
    tell: Tell = lambda line: None,
    *,
    llm: str | None = None,
    seconds: float = consent.PURSE,
    should_stop: Callable[[], bool] = lambda: False,
) -> ToolResult:
    """The same with a language model where one is chosen: the conversation's loop, with a purse and no person.

    The model may register and decide; its words are checked as in every answer. Raises its fault where it fails.
    """
    if chat_models.choose(llm).spec == chat_models.NONE:
        return investigate(run, question, tell, seconds=seconds)
    asked = f"{question}\n{said('investigate.task')}"
    listener = consent.Listener(tell=tell, should_stop=should_stop, earlier=())
    return chat.ask(run, asked, listener, llm=llm, seconds=seconds, decides=True, must=True)


def investigate(
    run: str, question: str, tell: Tell = lambda line: None, *, seconds: float | None = None
) -> ToolResult:
    """What holds of a question on held-out records, as facts; exit code 4 where nothing is shown.

    `seconds` bounds the ablations, which are those of the unit on train and held-out records that have no stored
    outcome. Raises `UsageError` where no unit is meant or known, `BudgetSpent` where the purse does not pay for it.
    """
    with opening.opened(run) as held:
        findings = opening.findings_of(held)
        unit, named = _about(held, findings, question)
        regime = opening.strongest_regime(held, unit)
        missing = sum(forwards_missing(held, (unit,), drawn(held, regime, part)) for part in Part)
        price = price_words(held, missing)
        path = str(held.store.path)
    if missing and seconds is not None and not consent.pays(seconds, [price.seconds]):
        raise BudgetSpent(f"expected {price.words} within {seconds:g} s; `--seconds` allows more")
    tell(f"price: {price.words}")
    with opening.opened(path, write=bool(missing), tell=tell) as held:
        screened = _screened(held, unit, named)
    if not screened:
        none, key = said("claims.no_condition", unit=unit), f"unit.{unit}.claims"
        return of_facts([fact(none, f"run:{findings.run}", unit=unit, key=key, value=[])], exit_code=4)
    for one in screened:
        tell(said("claims.train", one=one))
    given = {"run": path, "neuron": str(unit), "threshold": THRESHOLD}
    entered = [call("register", {**given, "where": one.condition}, tell).facts for one in screened]
    claims: list[Any] = [facts[0].value for facts in entered]
    # That held-out flips were read for a claim before: then its verdict is no prediction.
    seen = [one for facts in entered for one in facts if one.key.endswith(".looked_at_before_by")]
    ids = ",".join(claim["claim"] for claim in claims)
    decided = call("decide", {"run": path, "claims": ids, "yes": True}, tell)
    return _told(findings, unit, screened, decided, seen)


def _about(run: live_run.Run, findings: Findings, question: str) -> tuple[Neuron, str]:
    """The unit that is meant, else the first by evidence, and the condition that is named. Raises `UsageError`."""
    names = chat.names_of(run)
    question = canonical.STRONGEST.sub(lambda found: canonical.the_strongest(found, names), question)
    if strange := canonical.STRONGEST.search(question):
        raise UsageError(f"expected a unit that is shown, got {strange[0]!r}; name one")
    read = canonical.understand(question, names)
    told = read.named if isinstance(read, canonical.Understood) else {}
    named = list(filter(None, [told.get("unit"), *canonical.UNIT.findall(question)]))
    chosen = next(chain(named, (str(each.neuron) for each in findings.by_evidence())), None)
    if chosen is None:
        raise ClaimNotSupported(f"run {findings.run} found no unit, so there is nothing to investigate")
    condition = told.get("condition", "")
    if not condition and (asked := re.search(r" (?:where|when) (.+)", question)):
        condition = names.condition(asked[1]) or ""
        if not condition:
            raise UsageError(
                f"expected a condition over the run's columns, got {asked[1].strip(' ?')!r}; nothing was tested; "
                f"columns: {', '.join(names.columns)}"
            )
    if not (named or condition):
        raise UsageError(f"expected a question that names a unit, got {question!r}; nothing was tested")
    return Neuron.parse(chosen), condition


def _screened(run: live_run.Run, unit: Neuron, named: str) -> list[Screened]:
    """The condition that is named, else the clearest of the run's vocabulary and their contraries, on train records."""
    regime = opening.strongest_regime(run, unit)
    places = drawn(run, regime, Part.TRAIN)
    flips = run.flips([(unit,)], places, regime)[0]
    counted, kept = list[Screened](), list[Screened]()
    for rule in [condition_of(run, named)] if named else _proposed(run):
        holds = fires(run, rule)[places]
        where = FlipsWhere.of(holds, flips)
        here, other = where.holds, where.elsewhere
        low, _ = confidence.difference_interval(here.flips, here.n, other.flips, other.n, thresholds.ALPHA)
        words = rule_in_words(rule, run.task)
        counted.append(Screened(condition=str(rule), words=words, where=where, low=low, holds=holds))
    if named:
        return counted
    for one in sorted(counted, key=lambda each: -each.low):
        if one.low > 0 and len(kept) < MOST and all(mcc(one.holds, other.holds) < ALIKE for other in kept):
            kept.append(one)
    return kept


def _proposed(run: live_run.Run) -> Iterator[Rule]:
    """Predicates over the prompt alone, each with its contrary."""
    for predicate in run.table.predicates:
        text = str(predicate)
        if run.prompt_only(text):
            yield from (Rule((Clause((Condition(text, holds),)),)) for holds in (True, False))


def _told(
    findings: Findings, unit: Neuron, screened: Sequence[Screened], decided: ToolResult, seen: Sequence[Fact]
) -> ToolResult:
    """The verdict first, then each claim's counts, then how many looks these records have had."""
    claims: list[Any] = [one.value for one in decided.facts if one.key.endswith(".verdict")]
    shown = list(compress(screened, [claim["state"] == HypothesisState.SUPPORTED for claim in claims]))
    parts = {"unit": unit, "where": " and where ".join(one.words for one in shown)}
    parts |= {"claims": numbers.plural(len(screened), "claim"), "least": numbers.percent(THRESHOLD)}
    head = said("claims.supported" if shown else "claims.none", **parts)
    value = [one.condition for one in shown]
    first = fact(head, f"run:{findings.run}", unit=unit, key=f"unit.{unit}.claims.shown", value=value)
    facts: list[Fact] = [first, *seen, *decided.facts]
    return of_facts(facts, exit_code=0 if shown else 4)
