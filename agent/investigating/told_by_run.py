"""What a run holds about a question before anything is tested: the facts of the tools that the router finds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agent.answering.conversation import Answered, answered_by, worded
from agent.answering.offers import offers_of
from agent.answering.questions import QUESTIONS
from agent.answering.referring import Topic
from agent.answering.router import Route, understand
from agent.answering.understanding import read
from agent.investigating.investigation import BoardFact
from mecharule_ops.bases import ROWS
from mecharule_ops.findings.records import Findings
from mecharule_ops.questions.support import by_evidence
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import check_unit, find_certificate, findings_of, opened, outcome_for
from mecharule_ops.saying.chain_lines import chain_links
from mecharule_ops.saying.fact import Fact, fact
from mecharule_ops.types import Neuron
from tools.registry import TOOLS, Tell

OF_CONDITIONS = frozenset({"why", "when", "property", "rule", "unit-rules", "responds", "prediction"})
"""Kinds of question that tests of conditions answer; what the run says of them stands beside these."""
BACKUP = re.compile(r"\b(?:back\w* up|backs?|redundan\w*|compensat\w*|stands? in)\b", re.IGNORECASE)
STORED = frozenset({"why-not", "versus"})
"""Tools that may run the model and here do not: of `versus` only where both units have a certificate."""
INSTEAD = {"controls": "unit-chance"}
"""The kind that tells what is stored of one whose tool would measure."""
PARTS = {"breaks": "What breaks"}
"""The part of an explanation that answers a kind."""
MOST = 4
"""Facts of one kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the run holds."""

    facts: tuple[BoardFact, ...] = ()
    answers: int = 0
    """How many of these, the first ones, answer the question; the others stand beside tests of conditions."""
    read_as: str = ""
    """The questions that they answer, in words; empty where there are none, or tests of conditions answer better."""
    settles: bool = False
    """Whether they say that the run holds no answer, so that no test of it gives one."""


NOTHING = Told()


def told_by_run(name: str, question: str, tell: Tell) -> Told:
    """Facts with their sources. No model is run: kinds whose tools would are left out. Raises what opening raises."""
    with opened(name) as run:
        findings, path, offers = findings_of(run), str(run.store.path), offers_of(run, findings_of(run))
        lacking = _no_such_unit(question, findings)
        routes = (
            [] if lacking else [each for each in _routes(question, run) if _is_stored(run, findings, each)]
        )
        backups = _backups(run, question)
    routes = [route for route in routes if route.kind != "help"]
    answered = [answered_by(findings, path, route, Topic(), tell) for route in routes]
    parts = list(zip(routes, answered, strict=True))
    told = [(route, part) for route, part in parts if route.kind not in OF_CONDITIONS]
    taken = [worded(route, part, offers) or part.kind for route, part in told]
    taken += [f"does any unit back {each.unit} up?" for each in backups[:1]]
    # Of a unit that no search found the reason comes first, whatever else is asked.
    first = [part for route, part in parts if (route, part) in told or part.kind == "why-not"]
    answering = [*lacking, *backups, *(each for part in first for each in _first(part))]
    beside = [each for _, part in parts if part not in first for each in _first(part)]
    facts = tuple(_on_board([*answering, *beside]))
    read_as = " and ".join(f"“{wording}”" for wording in taken)
    return Told(
        facts=facts,
        answers=len({each.said for each in answering}),
        read_as=read_as or ("which units were ablated" if lacking else ""),
        settles=bool(lacking) or (bool(routes) and all(QUESTIONS[route.kind].lacks for route in routes)),
    )


def _routes(question: str, run: Run) -> Iterator[Route]:
    """As the router takes it; of a unit that no search found, and no row is meant, why it was not."""
    understood = understand(question)
    found = {str(unit.neuron) for unit in by_evidence(run.findings)}
    if not understood.routes and understood.units and not found & set(understood.units):
        yield Route(kind="why-not", units=understood.units[:1])
    for route in understood.routes:
        kind = INSTEAD.get(route.kind, route.kind)
        yield (
            route if kind == route.kind else replace(route, kind=kind, given={"topic": QUESTIONS[kind].topic})
        )


def _is_stored(run: Run, findings: Findings, route: Route) -> bool:
    """Whether its tool only reads."""
    tool = QUESTIONS[route.kind].tool
    if not tool or not TOOLS[tool].works:
        return True
    units = [Neuron.parse(unit) for unit in route.units]
    return tool in STORED and (
        tool != "versus"
        or all(find_certificate(run, (unit,), outcome_for(findings, unit, None).regime) for unit in units)
    )


def _first(part: Answered) -> Sequence[Fact]:
    """Those that answer this kind of question first, then those that belong to every answer of its tool."""
    own = PARTS.get(part.kind, "")
    return sorted(part.facts, key=lambda each: (each.part != own, not each.kinds))[:MOST]


def _no_such_unit(question: str, findings: Findings) -> list[Fact]:
    """That units of the kind which is asked about were not ablated, where none is named; `neuron` is said of any."""
    searched = {outcome.intervention.basis.row.noun for outcome in findings.searches}
    if read(question).units:
        return []
    for noun in sorted({row.noun for row in ROWS.values()} - searched - {"neuron"}):
        if re.search(rf"\b{noun}s?\b", question.lower()):
            only = " and ".join(f"{one}s" for one in sorted(searched))
            said = f"This cannot be told from the run: it ablated no {noun}, only {only}"
            return [fact(said, f"run:{findings.run}")]
    return []


def _backups(run: Run, question: str) -> list[Fact]:
    """What came of ablating a unit together with others, where that is asked and its chain holds it."""
    units = read(question).units
    if len(units) != 1 or not BACKUP.search(question):
        return []
    unit = Neuron.parse(units[0])
    check_unit(run, unit)
    chain = run.chain(unit, outcome_for(run.findings, unit, None).regime)
    if chain is None or chain.pairs_certificate is None:
        return []
    lines = dict(chain_links(chain)).get("pairs", ())
    return [fact(f"{unit} {line}", f"c:{chain.pairs_certificate}", unit=unit) for line in lines]


def _on_board(facts: Sequence[Fact]) -> Iterator[BoardFact]:
    said = {each.said.removesuffix("."): each for each in facts}
    for place, (sentence, each) in enumerate(said.items(), 1):
        yield BoardFact(
            id=f"f{place}", sentence=sentence, value=[], source=", ".join(each.sources), rivals=[]
        )
