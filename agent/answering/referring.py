"""What a question asks a tool: about units that are named, that stand at a place in strength, or were spoken of last.

What was spoken of last is kept in the run file with each answer, so that `it` means the same in the next process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agent.answering.questions import QUESTIONS
from agent.answering.router import Route
from mecharule_ops.errors import ClaimNotSupported, StoreError, UsageError
from mecharule_ops.findings.records import Findings
from mecharule_ops.plain_text import plain
from mecharule_ops.questions.support import by_evidence, strongest
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import find_certificate, opened
from mecharule_ops.store.keys import LAST_ANSWER, TOPIC, LastAnswer, LastTopic
from mecharule_ops.types import Neuron, Regime
from tools.registry import TOOLS, Tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What the last answer was about."""

    question: str = ""
    kind: str = "why"
    units: tuple[str, ...] = ()
    certificates: tuple[str, ...] = ()
    """What that answer cites."""
    offered: tuple[str, ...] = ()
    """What the refusal since then offered to ask."""

    def record(self) -> LastTopic:
        """As kept in the run file."""
        offered = list(self.offered)
        return LastTopic(question=self.question, kind=self.kind, units=list(self.units), offered=offered)


def topic_of(run: Run) -> Topic:
    """The last answer's topic; an empty one before any answer."""
    if not run.store.has(TOPIC):
        return Topic()
    kept = run.store.get(TOPIC)
    cited: list[str] = []
    if run.store.has(LAST_ANSWER):
        answer = run.store.get(LAST_ANSWER)
        cited = answer["certificates"] if answer["question"] == kept["question"] else []
    return Topic(
        question=kept["question"],
        kind=kept["kind"],
        units=tuple(kept["units"]),
        certificates=tuple(cited),
        offered=tuple(kept.get("offered", ())),
    )


def remember(path: str, topic: Topic, tell: Tell) -> None:
    """Keep the topic and what the answer cites; a run that another process works on is left alone."""
    try:
        with opened(path, write=True) as run:
            run.store.put(TOPIC, topic.record())
            if topic.certificates:
                cited = LastAnswer(question=topic.question, certificates=list(topic.certificates))
                run.store.put(LAST_ANSWER, cited)
    except StoreError as error:
        tell(f"the answer is not remembered for `it` and `verify last`: {error}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTool:
    """What one part of a question asks."""

    kind: str
    tool: str
    """Empty where the report itself answers."""
    units: tuple[str, ...] = ()
    given: Mapping[str, object] = field(default_factory=dict)
    """What the tool is told."""

    @property
    def told_as(self) -> str:
        """The kind whose facts answer it."""
        return QUESTIONS[self.kind].told_as or self.kind


def kind_meant(route: Route, topic: Topic) -> str:
    """The kind of a route; `and m4.12 instead?` asks what was asked last."""
    if route.kind != "instead":
        return route.kind
    row = QUESTIONS[topic.kind]
    names_more = row.about or row.prompt or row.layer or row.term or row.run
    return topic.kind if row.units[0] == 1 and topic.units and not names_more else "why"


def asked_for(findings: Findings, path: str, route: Route, topic: Topic) -> AskedTool:
    """The tool that answers a route, and its arguments.

    `Is X the strongest?` compares X with the unit that is; of that one itself it is asked which one is. Raises
    `UsageError` when something is missing, or `ClaimNotSupported`.
    """
    kind = route.kind
    place = route.place or (1 if kind == "strongest" else None)
    first = strongest(findings, noun=route.noun)
    if lacks := QUESTIONS[kind].lacks:
        raise ClaimNotSupported(
            f"the run does not hold {lacks}; it holds {findings.model} on {findings.task}, and no other was tested"
        )
    if kind == "summary" or (place is not None and first is None):
        return AskedTool(kind=kind, tool="")
    units = _units(findings, replace(route, kind=kind, place=place), topic)
    if kind == "rank":
        kind = "strongest" if first is None or str(first.neuron) == units[0] else kind
        units = units if first is None or kind == "strongest" else (units[0], str(first.neuron))
    return AskedTool(
        kind=kind,
        tool=QUESTIONS[kind].tool,
        units=units,
        given=_given(findings, path, kind, route, units, topic),
    )


def _given(
    findings: Findings, path: str, kind: str, route: Route, units: tuple[str, ...], topic: Topic
) -> Mapping[str, object]:
    """What the tool is told."""
    tool = QUESTIONS[kind].tool
    fields = TOOLS[tool].arguments.model_fields
    given: dict[str, object] = {"run" if "run" in fields else "first": path, **route.given}
    if tool == "verify":
        given["what"] = _claim(findings, path, units, topic)
    elif tool == "versus":
        if len(units) != 2:
            raise UsageError("expected two units to compare, got one")
        given |= {"first": units[0], "second": units[1]}
    elif "units" in fields:
        if len(units) < QUESTIONS[kind].units[0]:
            raise UsageError("expected two units to ablate together, got one")
        given["units"] = ",".join(units)
    elif "neuron" in fields and units:
        given["neuron"] = units[0]
    if "regime" in fields and route.regime is not None:
        given["regime"] = route.regime
    return given


def _claim(findings: Findings, path: str, units: tuple[str, ...], topic: Topic) -> str:
    """The certificate that proves what is asked for: of a named unit, else what the last answer cites."""
    if not units:
        if not topic.question:
            raise UsageError(
                "expected something that was claimed, nothing was asked about this run before; "
                f"`mecharule verify --run {findings.run} --all` runs every certificate again"
            )
        if topic.certificates:
            return "last"
        units = topic.units[:1] if QUESTIONS[topic.kind].units[1] else ()
    if not units:
        raise ClaimNotSupported(
            f"the last answer ({plain(topic.question)}) rests on the run's report and cites no ablation to run again"
        )
    with opened(path) as run:
        neuron = Neuron.parse(units[0])
        made = [find_certificate(run, (neuron,), search.regime) for search in findings.searches]
    found = next((one for one in made if one is not None), None)
    if found is None:
        raise ClaimNotSupported(
            f"{units[0]} has no certificate in run {findings.run}; `mecharule ablate {findings.run} {units[0]}` "
            "makes one"
        )
    return found.id


def _units(findings: Findings, route: Route, topic: Topic) -> tuple[str, ...]:
    """The units of a question in order; where it names none those spoken of last, then the strongest.

    Raises `UsageError` when a place or a pronoun stands for none.
    """
    least, most = QUESTIONS[route.kind].units
    units = list(route.units)
    if route.every:
        regime = None if route.regime is None else Regime(int(route.regime))
        found = by_evidence(findings, regime, route.noun)
        meant = [each for each in found if each.is_tau_agonist] if route.every > most else found
        if len(meant) < least or len(meant) < route.every <= most:
            names = ", ".join(str(each.neuron) for each in meant[:most]) or "none"
            raise UsageError(
                f"expected {least if route.every > most else route.every} units, found {names}; name them"
            )
        return tuple(dict.fromkeys([*units, *(str(each.neuron) for each in meant[: route.every])]))[:most]
    if route.place is not None:
        units.append(_nth(findings, route.place, route.regime, route.noun))
    if route.refers and route.kind != "verify":
        if not topic.units:
            raise UsageError(
                "expected the name of a unit, nothing was asked before that `it` could stand for"
            )
        units[:0] = topic.units[: max(1, least - len(units))]
    elif route.bare:
        units += topic.units[:least]
        place = 1
        while len(set(units)) < least:
            units.append(_nth(findings, place, route.regime))
            place += 1
    return tuple(dict.fromkeys(units))


def _nth(findings: Findings, place: int, asked: str | None, noun: str = "") -> str:
    """The unit of a place, in the direction and among the kind of units asked about where one is."""
    regime = None if asked is None else Regime(int(asked))
    agonist = strongest(findings, place, regime, noun)
    if agonist is None:
        searches = [search for search in findings.searches if regime in (None, search.regime)]
        found = len({one.neuron for search in searches for one in search.agonists})
        raise UsageError(f"expected at least {place} localized units in run {findings.run}, it has {found}")
    return str(agonist.neuron)
