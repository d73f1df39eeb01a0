"""One question about a run, answered without a language model: parse, tools, templates, citations, three offers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent.answering.checker import check
from agent.answering.facts import TOOLS_OF, facts_of
from agent.answering.offers import ASKABLE, MOST, Fillings, fillings, fitting
from agent.answering.reading import read
from agent.answering.referring import Topic, topic_of, units_meant
from agent.answering.router import Route, Understood, understand
from agent.answering.sources import Evidence
from mecharule_ops.errors import ClaimNotSupported, StoreError, UsageError
from mecharule_ops.findings.records import Findings
from mecharule_ops.pipeline.opening import findings_of, opened
from mecharule_ops.plain_text import plain
from mecharule_ops.questions.unit_account import strongest
from mecharule_ops.report.document import Bullets
from mecharule_ops.report.summary import summary
from mecharule_ops.saying.fact import Fact
from mecharule_ops.store.keys import LAST_ANSWER, TOPIC, LastAnswer
from tools._ablations import find_certificate
from tools.registry import Tell, call
from tools.result import ToolResult

OFFLINE = "LLM: none (offline)"
ALL = "?"
"""Asks for everything that can be asked."""
_LONGEST_WORD = 24
_IN_ONE_LINE = 2
"""Sentences that may follow each other in a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One part of a question and what its answer rests on."""

    route: Route
    facts: tuple[Fact, ...]
    units: tuple[str, ...] = ()
    tool: str | None = None
    """The tool that was asked; None when the report itself answers, or nothing does."""
    given: Mapping[str, object] = field(default_factory=dict)
    result: ToolResult | None = None
    ok: bool = True
    """False when the answer is that there is none."""


def ask(run: str, question: str, tell: Tell = lambda line: None, *, who: str = OFFLINE) -> ToolResult:
    """The answer as text and data; what it cites is remembered for `verify last`, its topic for `it`.

    A question that is not wholly understood gets three that are near and makes no claim; `?` gets all. `who` is the
    line that says who answers. Raises what opening the run raises.
    """
    found = understand(question)
    kinds = [route.kind for route in found.routes]
    with opened(run) as open_run:
        findings, path = findings_of(open_run), str(open_run.store.path)
        topic = topic_of(open_run)
        fill = fillings(open_run, findings, next(iter(_known(findings, question) or topic.units), None))
    if question.strip() == ALL or kinds == ["help"]:
        return _listed(findings, question, fill, who)
    if not found.routes:
        return _not_understood(findings, question, found, fill, who)
    answered: list[Answered] = []
    for route in found.routes:
        answered.append(_answered(findings, path, route, topic, tell))
        topic = _next_topic(topic, answered[-1])
    checked = check("\n".join(map(_paragraph, answered)), _evidence(findings, path, answered))
    text = "\n".join([*_notes(found, answered), checked.text])
    certificates = _certificates(answered)
    _remember(path, replace(topic, question=question, certificates=certificates), tell)
    with opened(path) as open_run:
        fill = fillings(open_run, findings, next(iter(topic.units), None))
    follow_ups = tuple(one for one in fitting(topic.kind, fill) if one != question)
    data = {
        **_data(findings, question),
        "understood": True,
        "kinds": kinds,
        "tool": answered[0].tool,
        "arguments": answered[0].given,
        "tools": [{"tool": one.tool, "arguments": one.given, "ok": one.ok} for one in answered if one.tool],
        "answer": text,
        "checked": checked.sentence(),
        "certificates": list(certificates),
        "follow_ups": list(follow_ups),
    }
    lines = [who, text, f"({checked.sentence()})", "", *_asking(follow_ups)]
    return ToolResult(
        data=data, text="\n".join(lines), facts=tuple(fact for one in answered for fact in one.facts)
    )


def _known(findings: Findings, question: str) -> tuple[str, ...]:
    """The localized units that a question names."""
    found = {str(agonist.neuron) for search in findings.searches for agonist in search.agonists}
    return tuple(unit for unit in read(question).units if unit in found)


def _next_topic(topic: Topic, answered: Answered) -> Topic:
    """What `it` means from now on: the units asked about, else the first that the answer names."""
    named = tuple(dict.fromkeys(fact.unit for fact in answered.facts if fact.unit))
    units = (answered.units or named[:1]) if answered.ok else ()
    return replace(topic, units=units or topic.units, kind=answered.route.kind)


def _answered(findings: Findings, path: str, route: Route, topic: Topic, tell: Tell) -> Answered:
    """The answer of the route's tool; a unit that cannot be explained is asked about with `why-not`."""
    if route.kind == "instead":
        route = replace(route, kind=topic.kind if topic.kind in ASKABLE and topic.units else "why")
    if route.kind == "strongest":
        route = replace(route, place=route.place or 1)
    if route.kind == "summary" or (route.place is not None and strongest(findings) is None):
        return _summed(findings, route)
    try:
        units = units_meant(findings, route, topic)
        route, units = _ranked(findings, route, units)
        given = _arguments(findings, path, route, units, topic)
        tool = TOOLS_OF[route.kind]
        return _called(findings, route, units, tool, given, tell)
    except ClaimNotSupported as refused:
        if TOOLS_OF[route.kind] == "why":
            asked = Route(kind="why-not", units=units, regime=route.regime)
            return _answered(findings, path, asked, topic, tell)
        return _refused(findings, route, str(refused))
    except UsageError as refused:
        return _refused(findings, route, str(refused))


def _called(
    findings: Findings,
    route: Route,
    units: tuple[str, ...],
    tool: str,
    given: Mapping[str, object],
    tell: Tell,
) -> Answered:
    result = call(tool, given, tell)
    facts = facts_of(result, findings.run, kind=route.kind, tool=tool)
    return Answered(route=route, facts=facts, units=units, tool=tool, given=given, result=result)


def _summed(findings: Findings, route: Route) -> Answered:
    """The report's own summary, sentence by sentence."""
    paragraphs = [
        text
        for block in summary(findings)
        for text in (block.items if isinstance(block, Bullets) else (block,))
    ]
    said = [sentence for text in paragraphs for sentence in re.split(r"(?<=[.?])\s+", str(text))]
    source = (f"run:{findings.run}",)
    facts = tuple(Fact(template=sentence.rstrip("."), sources=source) for sentence in said)
    return Answered(route=route, facts=facts, result=ToolResult(text="\n".join(said)))


def _refused(findings: Findings, route: Route, why: str) -> Answered:
    """A question that was understood and has no answer, with the tool's own words for why."""
    fact = Fact(
        template=f"There is no answer to that: {why.removesuffix('.')}", sources=(f"run:{findings.run}",)
    )
    return Answered(route=route, facts=(fact,), result=ToolResult(text=why), ok=False)


def _ranked(findings: Findings, route: Route, units: tuple[str, ...]) -> tuple[Route, tuple[str, ...]]:
    """`Is X the strongest?` compares X with the unit that is; of that one itself it is asked which one is."""
    if route.kind != "rank":
        return route, units
    first = strongest(findings)
    if first is None or str(first.neuron) == units[0]:
        return replace(route, kind="strongest"), units
    return route, (units[0], str(first.neuron))


def _arguments(
    findings: Findings, path: str, route: Route, units: tuple[str, ...], topic: Topic
) -> dict[str, object]:
    """What the route's tool is told. Raises `UsageError` when something is missing, or `ClaimNotSupported`."""
    tool = TOOLS_OF[route.kind]
    if tool == "compare":
        return {"first": path, "second": route.given["second"]}
    given: dict[str, object] = {"run": path}
    if tool == "verify":
        return given | {"what": _claim(findings, path, units, topic)}
    if tool == "versus":
        if len(units) != 2:
            raise UsageError("expected two units to compare, got one")
        given |= {"first": units[0], "second": units[1]}
    elif tool == "ablate":
        given["units"] = ",".join(units)
    elif tool == "layer":
        given["layer"] = route.given["layer"]
        given |= {"neuron": units[0]} if units else {}
    elif units:
        given["neuron"] = units[0]
    if tool == "flip":
        given["prompt"] = route.given["prompt"]
    elif route.regime is not None and tool in _DIRECTED:
        given["regime"] = route.regime
    return given


_DIRECTED = frozenset({"why", "why-not", "covers", "shared", "versus", "layer", "disguise", "ablate"})
"""Tools that can be told a direction."""


def _claim(findings: Findings, path: str, units: tuple[str, ...], topic: Topic) -> str:
    """The certificate that proves what is asked for: of a named unit, else what the last answer cites."""
    if not units:
        if not topic.question:
            raise UsageError("expected something that was claimed, nothing was asked about this run before")
        if not topic.certificates:
            raise ClaimNotSupported(
                f"the last answer ({plain(topic.question)}) rests on the run's report and cites no ablation to run "
                "again"
            )
        return "last"
    from mecharule_ops.types import Neuron

    with opened(path) as run:
        neuron = Neuron.parse(units[0])
        made = [find_certificate(run, (neuron,), search.regime) for search in findings.searches]
    found = next((one for one in made if one is not None), None)
    if found is None:
        raise ClaimNotSupported(
            f"{units[0]} has no certificate in run {findings.run}; ask why it flips to make one"
        )
    return found.id


def _notes(found: Understood, answered: Sequence[Answered]) -> list[str]:
    """How the question was read, where that was not plain: words taken for others, and what `it` stands for."""
    notes = [f"“{plain(written)}” read as “{read_as}”" for written, read_as in found.corrected]
    notes += [f"it: {one.units[0]}" for one in answered if one.route.refers and one.units]
    return [f"({'; '.join(notes)})"] if notes else []


def _paragraph(answered: Answered) -> str:
    """The sentences of one part; where they are many, or rows of a table, each stands in a line of its own."""
    said = tuple(dict.fromkeys(fact.cited for fact in answered.facts))
    is_table = answered.result is not None and "rows" in answered.result.data
    return ("\n" if is_table or len(said) > _IN_ONE_LINE else " ").join(said)


def _certificates(answered: Sequence[Answered]) -> tuple[str, ...]:
    cited = (source for one in answered for fact in one.facts for source in fact.sources)
    return tuple(dict.fromkeys(id.removeprefix("c:") for id in cited if id.startswith("c:")))


def _evidence(findings: Findings, path: str, answered: Sequence[Answered]) -> Evidence:
    """What the answer may cite: the run's certificates and findings, and the tools' results."""
    evidence = Evidence()
    with opened(path) as run:
        evidence.add_certificates(run.store.certificates())
    evidence.add_findings(findings)
    for one in answered:
        if one.result is not None:
            for run_id in {findings.run, *one.result.data.get("runs", ())}:  # type: ignore[misc]
                evidence.add_result(run_id, one.result.data, one.result.text)
    for unit in {unit for one in answered for unit in one.units}:
        evidence.at(f"run:{findings.run}").units.add(unit)
    return evidence


def _remember(path: str, topic: Topic, tell: Tell) -> None:
    """Keep the topic and what the answer cites; a run that another process works on is left alone."""
    try:
        with opened(path, write=True) as run:
            run.store.put(TOPIC, topic.record())
            if topic.certificates:
                cited = LastAnswer(question=topic.question, certificates=list(topic.certificates))
                run.store.put(LAST_ANSWER, cited)
    except StoreError as error:
        tell(f"the answer is not remembered for `it` and `verify last`: {error}")


def _not_understood(
    findings: Findings, question: str, found: Understood, fill: Fillings, who: str
) -> ToolResult:
    """A refusal that names the words nobody understood, with the nearest questions that have an answer."""
    stray = [f"“{plain(word)[:_LONGEST_WORD]}”" for word in found.unknown if not any(map(str.isdigit, word))]
    what = f"I did not understand {', '.join(stray[:MOST])} in that" if stray else "I did not understand that"
    text = f"{what}; without a language model I answer only what I understand wholly, so I claim nothing."
    offers = fill.fill(found.nearest, MOST)
    data = {**_data(findings, question), "answer": text, "follow_ups": list(offers)}
    return ToolResult(data=data, text="\n".join([who, text, *_asking(offers)]))


def _listed(findings: Findings, question: str, fill: Fillings, who: str) -> ToolResult:
    text = "Without a language model I answer:"
    offers = fill.fill(ASKABLE)
    data = {**_data(findings, question), "understood": True, "answer": text, "follow_ups": list(offers)}
    return ToolResult(data=data, text="\n".join([who, text, *(f"  {one}" for one in offers)]))


def _data(findings: Findings, question: str) -> dict[str, object]:
    """An answer's data before there is an answer."""
    return {
        "run": findings.run,
        "question": question,
        "llm": "none (offline)",
        "understood": False,
        "kinds": [],
        "tool": None,
        "arguments": {},
        "tools": [],
        "checked": "there is nothing to check",
        "certificates": [],
    }


def _asking(offers: Sequence[str]) -> list[str]:
    return ["You may ask (? lists all):", *(f"  {one}" for one in offers)] if offers else []
