"""One question about a run, answered without a language model: parse, tools, their facts, three offers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent.answering.facts import facts_of, paragraph
from agent.answering.offers import MOST, fillings, fitting
from agent.answering.questions import QUESTIONS
from agent.answering.referring import Topic, topic_of, units_meant
from agent.answering.router import Route, Understood, understand
from agent.answering.understanding import read
from mecharule_ops.errors import ClaimNotSupported, StoreError, UsageError
from mecharule_ops.findings.records import Findings
from mecharule_ops.numbers import plural
from mecharule_ops.plain_text import plain
from mecharule_ops.questions.support import strongest
from mecharule_ops.report.document import Bullets
from mecharule_ops.report.summary import summary
from mecharule_ops.run.opening import find_certificate, findings_of, opened
from mecharule_ops.saying.fact import Fact, fact
from mecharule_ops.store.keys import LAST_ANSWER, TOPIC, LastAnswer
from mecharule_ops.types import Neuron
from tools.registry import TOOLS, Tell, call
from tools.result import ToolResult

OFFLINE = "LLM: none (offline)"
ALL = "?"
"""Asks for everything that can be asked."""
_LONGEST_WORD = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One part of a question and what its answer rests on."""

    route: Route
    facts: tuple[Fact, ...]
    units: tuple[str, ...] = ()
    tool: str | None = None
    """The tool that was asked; None when the report itself answers, or nothing does."""
    given: Mapping[str, object] = field(default_factory=dict)
    is_table: bool = False
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
    data: dict[str, object] = {
        "run": findings.run,
        "question": question,
        "llm": "none (offline)",
        "understood": True,
        "kinds": [],
        "tool": None,
        "arguments": {},
        "tools": [],
        "checked": "there is nothing to check",
        "certificates": [],
    }
    if question.strip() == ALL or kinds == ["help"]:
        offers = fill.fill(QUESTIONS)
        data |= {"answer": "Without a language model I answer:", "follow_ups": list(offers)}
        return ToolResult(data=data, text="\n".join([who, str(data["answer"]), *_indented(offers)]))
    if not found.routes:
        data |= {"understood": False, "answer": _not_understood(found)}
        data["follow_ups"] = list(fill.fill(found.nearest, MOST))
        return ToolResult(data=data, text=laid_out(who, data))
    answered: list[Answered] = []
    for route in found.routes:
        answered.append(_answered(findings, path, route, topic, tell))
        topic = _next_topic(topic, answered[-1])
    facts = tuple(each for one in answered for each in one.facts)
    certificates = _certificates(facts)
    _remember(path, replace(topic, question=question, certificates=certificates), tell)
    with opened(path) as open_run:
        fill = fillings(open_run, findings, next(iter(topic.units), None))
    sources = {source for each in facts for source in each.sources}
    data |= {
        "kinds": kinds,
        "tool": answered[0].tool,
        "arguments": answered[0].given,
        "tools": [{"tool": one.tool, "arguments": one.given, "ok": one.ok} for one in answered if one.tool],
        "answer": "\n".join([*_notes(found, answered), *map(_said, answered)]),
        "checked": f"{plural(len(facts), 'fact')} put in from {plural(len(sources), 'source')}",
        "certificates": list(certificates),
        "follow_ups": [one for one in fitting(topic.kind, fill) if one != question],
    }
    return ToolResult(data=data, text=laid_out(who, data), facts=facts)


def laid_out(who: str, data: Mapping[str, object], *more: str) -> str:
    """An answer's text: who answers, the answer, how it came about with `more` lines, and what may be asked next."""
    offers = data["follow_ups"]
    assert isinstance(offers, list)
    asked = ["", "You may ask (? lists all):", *_indented(offers)] if offers else []
    checked = [f"({data['checked']})"] if data.get("understood", True) else []
    return "\n".join([who, str(data["answer"]), *checked, *more, *asked])


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _known(findings: Findings, question: str) -> tuple[str, ...]:
    """The localized units that a question names."""
    found = {str(agonist.neuron) for search in findings.searches for agonist in search.agonists}
    return tuple(unit for unit in read(question).units if unit in found)


def _next_topic(topic: Topic, answered: Answered) -> Topic:
    """What `it` means from now on: the units asked about, else the first that the answer names."""
    named = tuple(dict.fromkeys(each.unit for each in answered.facts if each.unit))
    units = (answered.units or named[:1]) if answered.ok else ()
    return replace(topic, units=units or topic.units, kind=answered.route.kind)


def _answered(findings: Findings, path: str, route: Route, topic: Topic, tell: Tell) -> Answered:
    """The answer of the route's tool; a unit that cannot be explained is asked about with `why-not`."""
    if route.kind == "instead":
        route = replace(route, kind=topic.kind if QUESTIONS[topic.kind].wording and topic.units else "why")
    if route.kind == "strongest":
        route = replace(route, place=route.place or 1)
    if route.kind == "summary" or (route.place is not None and strongest(findings) is None):
        return Answered(route=route, facts=tuple(_summed(findings)))
    try:
        units = units_meant(findings, route, topic)
        route, units = _ranked(findings, route, units)
        question = QUESTIONS[route.kind]
        given = _arguments(findings, path, route, units, topic)
        result = call(question.tool, given, tell)
    except ClaimNotSupported as refused:
        if QUESTIONS[route.kind].tool == "why":
            asked = Route(kind="why-not", units=units, regime=route.regime)
            return _answered(findings, path, asked, topic, tell)
        return _refused(findings, route, str(refused))
    except UsageError as refused:
        return _refused(findings, route, str(refused))
    return Answered(
        route=route,
        facts=facts_of(result, findings.run, question.told_as or route.kind),
        units=units,
        tool=question.tool,
        given=given,
        is_table="rows" in result.data,
    )


def _summed(findings: Findings) -> list[Fact]:
    """The report's own summary, sentence by sentence."""
    paragraphs = [
        str(text)
        for block in summary(findings)
        for text in (block.items if isinstance(block, Bullets) else (block,))
    ]
    said = [sentence for text in paragraphs for sentence in re.split(r"(?<=[.?])\s+", text)]
    return [fact(sentence.rstrip("."), f"run:{findings.run}") for sentence in said]


def _refused(findings: Findings, route: Route, why: str) -> Answered:
    """A question that was understood and has no answer, with the tool's own words for why."""
    said = f"There is no answer to that: {why.removesuffix('.')}"
    return Answered(route=route, facts=(fact(said, f"run:{findings.run}"),), ok=False)


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
    tool = QUESTIONS[route.kind].tool
    fields = TOOLS[tool].arguments.model_fields
    given: dict[str, object] = {"run" if "run" in fields else "first": path, **route.given}
    if tool == "verify":
        given["what"] = _claim(findings, path, units, topic)
    elif tool == "versus":
        if len(units) != 2:
            raise UsageError("expected two units to compare, got one")
        given |= {"first": units[0], "second": units[1]}
    elif "units" in fields:
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
            raise UsageError("expected something that was claimed, nothing was asked about this run before")
        if not topic.certificates:
            raise ClaimNotSupported(
                f"the last answer ({plain(topic.question)}) rests on the run's report and cites no ablation to run "
                "again"
            )
        return "last"
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


def _said(answered: Answered) -> str:
    return paragraph([each.cited for each in answered.facts], is_table=answered.is_table)


def _certificates(facts: Sequence[Fact]) -> tuple[str, ...]:
    cited = (source for each in facts for source in each.sources)
    return tuple(dict.fromkeys(id.removeprefix("c:") for id in cited if id.startswith("c:")))


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


def _not_understood(found: Understood) -> str:
    """A refusal that names the words nobody understood."""
    stray = [f"“{plain(word)[:_LONGEST_WORD]}”" for word in found.unknown if not any(map(str.isdigit, word))]
    what = f"I did not understand {', '.join(stray[:MOST])} in that" if stray else "I did not understand that"
    return f"{what}; without a language model I answer only what I understand wholly, so I claim nothing."
