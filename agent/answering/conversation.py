"""One question about a run, answered without a language model: route, tool, template, citations, follow-ups."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.answering.answers import ANSWERS, ASKABLE, OFFLINE, Answer
from agent.answering.checker import check
from agent.answering.router import Route, route
from agent.answering.sources import Evidence
from mecharule_ops.errors import ClaimNotSupported, StoreError, UsageError
from mecharule_ops.findings.records import Findings
from mecharule_ops.pipeline.run import Run
from mecharule_ops.questions.unit_account import strongest
from mecharule_ops.report.document import Bullets
from mecharule_ops.report.summary import summary
from mecharule_ops.store.keys import LAST_ANSWER, LastAnswer
from tools._opening import findings_of, opened
from tools.registry import Tell, call
from tools.result import ToolResult

ABOUT_RUNS = ("missed", "compare", "summary")
"""Kinds of question that name no unit."""


def ask(run: str, question: str, tell: Tell = lambda line: None) -> ToolResult:
    """The answer as text and data; what it cites is remembered for `verify last`.

    An unknown question gets a list of what can be asked and makes no claim. Raises what opening the run raises.
    """
    with opened(run) as open_run:
        findings, path = findings_of(open_run), str(open_run.store.path)
        prompt, other = _example(open_run), _other_unit(open_run)
    found = route(question)
    if found is None:
        return _unknown(findings, question, _follow_ups(findings, None, prompt, other))
    unit = found.unit or _nth(findings, found)
    answered = _answered(findings, path, found, unit, tell)
    checked = check(" ".join(answered.answer.sentences), _evidence(findings, path, answered))
    _remember(path, question, answered.answer, tell)
    follow_ups = tuple(one for one in _follow_ups(findings, unit, prompt, other) if route(one) != found)
    data = {
        "run": findings.run,
        "question": question,
        "llm": "none (offline)",
        "tool": answered.tool,
        "arguments": answered.given,
        "answer": checked.text,
        "checked": checked.sentence(),
        "certificates": list(answered.answer.certificates),
        "follow_ups": list(follow_ups),
    }
    lines = [
        OFFLINE,
        checked.text,
        f"({checked.sentence()})",
        "",
        "You may ask:",
        *(f"  {one}" for one in follow_ups),
    ]
    return ToolResult(data=data, text="\n".join(lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer and what it rests on."""

    answer: Answer
    tool: str | None = None
    """The tool that was asked; None when the report itself answers."""
    given: Mapping[str, object] = field(default_factory=dict)
    result: ToolResult | None = None


def _answered(findings: Findings, path: str, found: Route, unit: str | None, tell: Tell) -> Answered:
    """The answer of the route's tool; a unit that cannot be explained is asked about with `why-not`."""
    if found.kind == "summary" or (unit is None and found.kind not in ABOUT_RUNS):
        said = _report_sentences(findings)
        cited = tuple(f"{sentence.rstrip('.')} [run:{findings.run}]." for sentence in said)
        return Answered(answer=Answer(sentences=cited), result=ToolResult(text="\n".join(said)))
    tool, compose = ANSWERS[found.kind]
    given = _arguments(tool, path, found, unit)
    try:
        result = call(tool, given, tell)
    except ClaimNotSupported as refused:
        if tool == "why":
            asked = Route(kind="why-not", unit=unit, regime=found.regime)
            return _answered(findings, path, asked, unit, tell)
        sentence = f"{refused} [run:{findings.run}]."
        return Answered(answer=Answer(sentences=(sentence,)), tool=tool, given=given)
    return Answered(answer=compose(result.data), tool=tool, given=given, result=result)


def _report_sentences(findings: Findings) -> list[str]:
    """The report's own summary, sentence by sentence."""
    blocks = summary(findings)
    paragraphs = [
        text for block in blocks for text in (block.items if isinstance(block, Bullets) else (block,))
    ]
    return [sentence for text in paragraphs for sentence in re.split(r"(?<=[.?])\s+", str(text))]


def _evidence(findings: Findings, path: str, answered: Answered) -> Evidence:
    """What the answer may cite: the run's certificates and findings, and the tool's result."""
    evidence = Evidence()
    with opened(path) as run:
        evidence.add_certificates(run.store.certificates())
    evidence.add_findings(findings)
    if answered.result is not None:
        for run_id in {findings.run, *answered.result.data.get("runs", ())}:  # type: ignore[misc]
            evidence.add_result(run_id, answered.result.data, answered.result.text)
    return evidence


def _arguments(tool: str, path: str, found: Route, unit: str | None) -> dict[str, object]:
    if tool == "compare":
        return {"first": path, "second": found.given["second"]}
    given: dict[str, object] = {"run": path}
    if tool != "missed":
        given["neuron"] = unit
    if tool == "flip":
        given["prompt"] = found.given["prompt"]
    elif found.regime is not None and tool in ("why", "why-not", "covers", "shared"):
        given["regime"] = found.regime
    return given


def _nth(findings: Findings, found: Route) -> str | None:
    """The unit meant by its place, None when the run localized too few. Raises `UsageError` for a place beyond."""
    if found.kind in ABOUT_RUNS:
        return None
    agonist = strongest(findings, found.place)
    if agonist is None and found.place > 1:
        raise UsageError(f"expected one of the localized units of run {findings.run}, it has fewer than that")
    return None if agonist is None else str(agonist.neuron)


def _remember(path: str, question: str, answer: Answer, tell: Tell) -> None:
    """Keep what the answer cites; a run that another process works on is left alone."""
    if not answer.certificates:
        return
    try:
        with opened(path, write=True) as run:
            cited = LastAnswer(question=question, certificates=list(answer.certificates))
            run.store.put(LAST_ANSWER, cited)
    except StoreError as error:
        tell(f"the answer's certificates are not remembered for `verify last`: {error}")


def _unknown(findings: Findings, question: str, follow_ups: tuple[str, ...]) -> ToolResult:
    text = "I have no answer to that without a language model, and claim nothing. I can answer:"
    data: dict[str, object] = {
        "run": findings.run,
        "question": question,
        "llm": "none (offline)",
        "tool": None,
        "arguments": {},
        "answer": text,
        "checked": "there is nothing to check",
        "certificates": [],
        "follow_ups": list(follow_ups),
    }
    return ToolResult(data=data, text="\n".join([OFFLINE, text, *(f"  {one}" for one in follow_ups)]))


def _follow_ups(findings: Findings, unit: str | None, prompt: str, other: str) -> tuple[str, ...]:
    """Questions that this run has an answer to."""
    named = unit or next((str(agonist.neuron) for agonist in [strongest(findings)] if agonist), None)
    offered = [one for one in ASKABLE if named is not None or "{unit}" not in one]
    return tuple(
        one.format(unit=named, other=other, prompt=prompt, run="last")
        for one in offered
        if "{run}" not in one
    )


def _example(run: Run) -> str:
    """A question of the run's own task; one that is concealed only by its kind."""
    if run.task.concealed:
        return "a prompt of the task"
    return run.records[0].example.prompt.rstrip("\n").rsplit("\n", 1)[-1]


def _other_unit(run: Run) -> str:
    """A unit that exists, to ask why it was not found."""
    letter = run.config.bases[0].letter
    return f"{letter}0.h0" if letter == "a" else f"{letter}0.0"
