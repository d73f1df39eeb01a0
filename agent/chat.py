"""Questions about a run: the offline answer at once where there is one, then the language model's, if one is chosen.

Without a model a canonical question is answered by its tool, anything else gets three suggestions. With one every
question goes to the loop (`talk`) with all tools; where it fails, the offline answer stands and says why. What was
asked and answered is kept in the run file, so that the next question follows on it, in another process too.
What answers beside the tools is imported where a model is chosen: without one an answer does not wait for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agent.canonical import UNIT, Names, Suggested, Understood, arguments_of, understand
from agent.choice import NONE, Choice, choose
from agent.consent import PURSE, Consent, nobody
from mecharule_ops.errors import MechaRuleError, StoreError, UsageError
from mecharule_ops.events import Event, QuestionAnswered
from mecharule_ops.plain_text import last_line
from mecharule_ops.questions.own_words import few_valued
from mecharule_ops.questions.support import by_evidence
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import findings_of, opened
from mecharule_ops.run.tabulating import columns_of
from mecharule_ops.saying.answer_text import answer_text
from mecharule_ops.saying.fact import Fact, certificate_ids
from mecharule_ops.saying.glossary import SPELLINGS
from mecharule_ops.saying.properties import PROPERTIES
from mecharule_ops.store.keys import LAST_ANSWER, LastAnswer
from mecharule_ops.types import Neuron
from tools._conditions import condition_of as read_condition
from tools.registry import call
from tools.result import Tell, ToolResult

if TYPE_CHECKING:
    from agent.talk import Answer

Show = Callable[[Event], None]
FOLLOWED = 6
"""Earlier exchanges that a question can follow on."""
OFFLINE = "none (offline)"


def ask(
    run: str,
    question: str,
    tell: Tell = lambda line: None,
    *,
    llm: str | None = None,
    earlier: Sequence[tuple[str, str]] | None = None,
    heard: Callable[[str], None] = lambda text: None,
    show: Show = lambda event: None,
    consent: Consent = nobody,
    should_stop: Callable[[], bool] = lambda: False,
    seconds: float = PURSE,
    first: Callable[[ToolResult], None] = lambda result: None,
    decides: bool = False,
    must: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> ToolResult:
    """The answer as text and data, by the model that flag, environment or config file choose, else offline.

    `earlier` None follows on what was asked about the run before, `()` begins anew. `first` is given the offline answer
    before a model is asked, `heard` the model's unchecked words, `show` the events, `consent` the prices above the
    purse of `seconds`; `decides` lets the model decide claims itself. Raises what choosing a model or opening the run
    raises; a model that fails is told about, and raised only where it `must` answer.
    """
    choice = choose(llm, environment)
    with opened(run) as held:
        before = _exchanges(held) if earlier is None else tuple(earlier)
        path = held.store.path
    kept: list[Event] = []

    def emit(event: Event) -> None:
        kept.append(event)
        show(event)

    if choice.spec == NONE:
        result = offline(str(path), question, before, tell)
    else:
        alone = None if must else _beforehand(str(path), question, before, tell)
        first(alone or ToolResult())
        from agent.chat_models import chat_model
        from agent.talk import Talk

        try:
            talk = Talk(
                model=chat_model(choice, environment),
                choice=choice,
                path=path,
                tell=tell,
                heard=heard,
                emit=emit,
                consent=consent,
                should_stop=should_stop,
                purse=seconds,
                decides=decides,
                look=not (choice.is_small or choice.spec.startswith("mock:")),
            )
            result = _told(question, talk.ask(question, before), choice)
        except MechaRuleError as fault:
            if alone is None:
                raise
            tell(f"{fault}; answered without it")
            result = _alone(alone, choice, str(fault))
    _keep(path, result, kept, emit, tell)
    return result


def _beforehand(run: str, question: str, earlier: Sequence[tuple[str, str]], tell: Tell) -> ToolResult:
    """The offline answer, for a question that a model answers too: why there is none is one."""
    try:
        return offline(run, question, earlier, tell)
    except MechaRuleError as error:
        return ToolResult(text=str(error), data={"question": question, "answer": str(error)})


def offline(run: str, question: str, earlier: Sequence[tuple[str, str]], tell: Tell) -> ToolResult:
    """What the tool of a canonical question says, else three suggestions. Raises what the tool raises."""
    with opened(run) as held:
        names, last = names_of(held), _last_unit(earlier)
    read = understand(question, names, last)
    if isinstance(read, Suggested):
        said = "\n".join(
            ["That is none of the questions that are answered without a language model. You may ask:"]
            + [f"  {place}. {asked}" for place, asked in enumerate(read.questions, 1)]
        )
        data = {
            "question": question,
            "answer": said,
            "understood": None,
            "suggested": list(read.questions),
            "llm": OFFLINE,
        }
        return ToolResult(text=said, data=data)
    return _by_tool(run, question, read, tell)


def _by_tool(run: str, question: str, read: Understood, tell: Tell) -> ToolResult:
    given = arguments_of(read)
    about = {"what": "last", "run": run} if read.row.tool == "verify" else {"run": run}
    result = call(read.row.tool, {**about, **given}, tell)
    facts = tuple(fact for fact in result.facts if read.row.part in ("", fact.part))
    said = answer_text(facts) if read.row.part and facts else result.text
    data = {
        "question": question,
        "answer": said,
        "understood": read.row.name,
        "tools": [{"tool": read.row.tool, "arguments": given, "ok": True}],
        "certificates": list(certificate_ids(source for fact in facts for source in fact.sources)),
        "llm": OFFLINE,
    }
    return ToolResult(text=said, data=data, facts=facts, exit_code=result.exit_code)


def names_of(run: Run) -> Names:
    """What a finished run has names for."""
    findings = findings_of(run)
    found = by_evidence(findings)
    units = tuple(str(each.neuron) for each in found)
    firsts = (str(Neuron(run.config.bases[0], 0, channel)) for channel in range(len(units) + 1))
    conditions = ("carry", *(f"{name} is {values[0]}" for name, values in few_valued(run).items()))
    example = "" if run.task.concealed or not run.records else last_line(run.records[0].example.prompt)
    return Names(
        units=units,
        shown=sum(each.is_shown for each in found),
        nouns={unit: Neuron.parse(unit).basis.row.noun for unit in units},
        columns=tuple(columns_of(run)),
        terms={spelling.casefold(): name for spelling, name in SPELLINGS.items()},
        condition=lambda said: condition_of(run, said),
        prompt=example,
        other=next((unit for unit in firsts if unit not in units), ""),
        like=next((said for said in conditions if condition_of(run, said)), ""),
    )


def condition_of(run: Run, said: str) -> str | None:
    """Words as a predicate of the run: one as it is, the words of a rule, `COLUMN is VALUE`; else None."""
    text = said.strip(" ?.")
    name, _, value = (part.strip(" '\"") for part in text.partition(" is "))
    columns, tried = columns_of(run), [text]
    if name in columns:
        known = {str(each).casefold(): each for each in columns[name].tolist()}
        tried += [f"{name} == {known[value.casefold()]!r}"] if value.casefold() in known else []
    tried += [one.predicate for one in PROPERTIES.values() if text.casefold() in one.said]
    for condition in tried:
        with suppress(UsageError):
            return read_condition(run, condition)
    return None


def _last_unit(earlier: Sequence[tuple[str, str]]) -> str:
    """The first unit that the last exchange names."""
    for question, answer in reversed(earlier):
        if found := UNIT.search(question) or UNIT.search(answer):
            return found[0]
    return ""


def _told(question: str, answer: Answer, choice: Choice) -> ToolResult:
    """A model's answer: its words with marks, its facts folded below, what it cost."""
    from agent.talk import checked_words

    facts = [Fact(sentence=one.sentence.removesuffix("."), sources=one.sources) for one in answer.facts]
    checked, bill = checked_words(answer), answer.bill
    data: dict[str, Any] = {
        "question": question,
        "answer": answer.text,
        "checked": checked,
        "marks": list(answer.marks),
        "tools": [{"tool": name, "arguments": json.loads(given), "ok": True} for name, given in answer.calls],
        "cited": {one.id: one.sentence for one in answer.facts},
        "certificates": list(certificate_ids(source for one in answer.facts for source in one.sources)),
        "llm": choice.short,
        "requests": bill.requests,
        "input_tokens": bill.read,
        "cached_tokens": bill.cached,
        "output_tokens": bill.written,
        "seconds": bill.seconds,
        "ablation_seconds": bill.ablating,
        "dollars": bill.dollars,
    }
    cited = [f"  [{one.id}] {one.sentence}" for one in answer.facts]
    text = "\n".join(
        [answer.text, "", *(["Facts:", *cited] if cited else []), f"{checked}. {choice.short}: {bill.words}."]
    )
    return ToolResult(text=text, data=data, facts=tuple(facts))


def _alone(result: ToolResult, choice: Choice, why: str) -> ToolResult:
    """The offline answer, and why no model gave one."""
    data = {**result.data, "llm": f"none ({choice.short}: {why})"}
    return ToolResult(text=result.text, data=data, facts=result.facts, exit_code=result.exit_code)


def _exchanges(run: Run) -> tuple[tuple[str, str], ...]:
    """What was asked about the run before, the latest few."""
    told = [event for _, _, event in run.store.events() if isinstance(event, QuestionAnswered)]
    return tuple((one.question, one.answer) for one in told[-FOLLOWED:])


def _keep(path: Any, result: ToolResult, kept: list[Event], emit: Show, tell: Tell) -> None:
    """The answer and everything told on the way, in the run file; one that another process works on is left alone."""
    certificates: Any = result.data.get("certificates", [])
    answered = QuestionAnswered(
        question=str(result.data["question"]),
        answer=str(result.data["answer"]),
        llm=str(result.data.get("llm", OFFLINE)),
        checked=str(result.data.get("checked", "")),
        certificates=tuple(certificates),
    )
    emit(answered)
    try:
        with opened(str(path), write=True) as run:
            run.store.append(kept)
            if certificates:
                cited = LastAnswer(question=answered.question, certificates=list(certificates))
                run.store.put(LAST_ANSWER, cited)
    except StoreError as error:
        tell(f"the question is not remembered in the run: {error}")
