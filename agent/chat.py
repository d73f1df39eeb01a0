"""Questions about a run: the offline answer at once where there is one, then the language model's, if one is chosen.

Without a model a canonical question is answered by its tool, anything else gets three suggestions. With one every
question goes to the loop (`talk`) with all tools; where it fails, the offline answer stands and says why. What was
asked and answered is kept in the run file, so that the next question follows on it, in another process too.
What answers beside the tools is imported where a model is chosen: without one an answer does not wait for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.canonical import UNIT, Names, Suggested, Understood, understand
from agent.choice import NONE, Choice, choose
from agent.consent import NO_QUESTION, PURSE, Exchanges, Listener, Priced, in_words, not_run, pays
from mecharule_ops.errors import BudgetSpent, MechaRuleError, StoreError, UsageError
from mecharule_ops.events import OFFLINE, Event, LlmMessage, QuestionAnswered
from mecharule_ops.facts.answer_text import answer_text
from mecharule_ops.facts.fact import Fact, FactValue, certificate_ids, fact
from mecharule_ops.facts.glossary import SPELLINGS
from mecharule_ops.facts.run_behaviour import PROPERTIES
from mecharule_ops.plain_text import last_line
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import findings_of, kept_open, opened
from mecharule_ops.run.tabulating import columns_of, few_valued
from mecharule_ops.store.keys import LAST_ANSWER, LastAnswer
from mecharule_ops.store.run_file import is_held
from mecharule_ops.types import Neuron
from tools._asked import condition_of
from tools.registry import TOOLS, begin, call
from tools.result import ToolResult

if TYPE_CHECKING:
    from agent.talk import Answer, Talk

NO_LISTENER = Listener()
FOLLOWED = 6
"""Earlier exchanges that a question can follow on."""
FEW = 6
"""Units that a snapshot names."""


def ask(
    run: str,
    question: str,
    listener: Listener = NO_LISTENER,
    *,
    llm: str | None = None,
    seconds: float = PURSE,
    decides: bool = False,
    must: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> ToolResult:
    """The answer as text and data, by the model that flag, environment or config file choose, else offline.

    `seconds` is the purse, above which a price is put to the listener; `decides` lets the model decide claims itself.
    Raises what choosing a model or opening the run raises; a model that fails is told about, and raised only where it
    `must` answer. Of a run that has not finished its snapshot is the answer.
    """
    choice = choose(llm, environment)
    kept: list[Event] = []

    def show(event: Event) -> None:
        kept.append(event)
        listener.show(event)

    with kept_open():
        with opened(run) as held:
            if not held.finished:
                return _under_way(held, question)
            told = replace(listener, show=show, earlier=_exchanges(held, listener.earlier))
            path = held.store.path
        question = _meant(question, told.earlier or ())
        alone = partial(offline, str(path), question, told, seconds=seconds)
        if choice.spec == NONE:
            result = alone()
        else:
            stored = ToolResult() if must else _or_why_not(question, partial(alone, stored=True))
            told.first(stored)
            try:
                talk = _talk(choice, environment, path=path, listener=told, purse=seconds, decides=decides)
                result = _told(question, talk.ask(question), choice)
            except MechaRuleError as fault:
                if must:
                    raise
                told.tell(f"{fault}; answered without it")
                result = stored if stored.text else _or_why_not(question, alone)
                asked = [one for one in kept if isinstance(one, LlmMessage)]
                took: dict[str, object] = {"requests": len(asked), "llm": f"none ({choice.short}: {fault})"}
                for tokens in ("input_tokens", "output_tokens"):
                    took[tokens] = sum(getattr(one, tokens) for one in asked)
                result = replace(result, data={**result.data, **took})
        _keep(path, result, kept, told)
    return result


def _talk(choice: Choice, environment: Mapping[str, str], **more: Any) -> Talk:
    """The conversation with the model that is chosen. Raises what loading it raises."""
    from agent.chat_models import chat_model
    from agent.talk import Talk

    # A model of a file, a script or a server of one's own is not asked for a second look.
    look = choice.provider == "anthropic" or (choice.provider == "openai" and choice.base_url is None)
    return Talk(model=chat_model(choice, environment), choice=choice, look=look, **more)


def _or_why_not(question: str, answer: Callable[[], ToolResult]) -> ToolResult:
    """The offline answer, for a question that a model answers too: why there is none is one."""
    try:
        return answer()
    except MechaRuleError as error:
        return ToolResult(text=str(error), data={"question": question, "answer": str(error)})


def _under_way(run: Run, question: str) -> ToolResult:
    """How far a run is that has not finished: what it found so far, and how many of its tests are made."""
    told = run.told
    units = [unit for (_, unit), found in told.agonists.items() if found.is_tau_agonist]
    done = told.cost.group_evaluations if told.cost else 0
    most = told.price.evaluations if told.price else None
    named = f" ({', '.join(units[:FEW])}{', …' if len(units) > FEW else ''})" if units else ""
    of = "" if most is None else f" of at most {most:,}"
    goes_on = (
        "is at work" if is_held(run.store.path) else f"has not finished; `mecharule resume {run.id}` goes on"
    )
    said = f"Run {run.id} {goes_on}: {len(units):,} found so far{named}, {done:,}{of} tests"
    value: FactValue = {"units": units, "tests": done, "tests_at_most": most}
    facts = (fact(said, f"run:{run.id}", key="run.under_way", value=value),)
    return ToolResult(text=answer_text(facts), facts=facts, data={"question": question, "answer": said})


def offline(
    run: str, question: str, listener: Listener, *, seconds: float = PURSE, stored: bool = False
) -> ToolResult:
    """What the tool of a canonical question says, else three suggestions. Raises what the tool raises.

    A tool that ablates runs within the purse of `seconds`, else with consent; nothing where only what is `stored` is
    wanted, and where the person has given the answer up.
    """
    with opened(run) as held:
        names = names_of(held)
    read = understand(question, names, _last_unit(listener.earlier or ()))
    if isinstance(read, Suggested):
        said = "\n".join(
            [f"{NO_QUESTION}. You may ask (its number takes it, none the first):"]
            + [f"  {place}. {asked}" for place, asked in enumerate(read.questions, 1)]
        )
        return _offline(question, said, None, suggested=list(read.questions))
    tool, given = read.row.tool, read.arguments
    about = {"run": run, **given}
    begun = begin(tool, about, listener.tell)
    price = begun.price
    if price is not None and price.example_forwards:
        if stored:
            return ToolResult()
        asked = Priced(calls=(in_words(tool, given),), words=price.words)
        agreed = "the question was stopped" if listener.should_stop() else pays(seconds, [price.seconds])
        if why := not_run(agreed or listener.consent(asked), price.words):
            return _offline(question, why, read.row.name, exit_code=BudgetSpent.exit_code)
        about |= {"yes": True} if "yes" in TOOLS[tool].arguments.model_fields else {}
    result = call(tool, about, listener.tell, begun)
    facts = _answering(read, result.facts, Path(run).stem)
    said = answer_text(facts) if read.row.parts and facts else result.text
    tools = [{"tool": tool, "arguments": given, "ok": True}]
    cited = list(certificate_ids(source for one in facts for source in one.sources))
    return _offline(
        question, said, read.row.name, facts, exit_code=result.exit_code, tools=tools, certificates=cited
    )


def _answering(read: Understood, facts: Sequence[Fact], run: str) -> tuple[Fact, ...]:
    """Those of the parts that are asked about; where the first is not stored of the unit, what measures it."""
    row = read.row
    told = {
        part: [one for one in facts if (part == one.part or f".{part}." in f"{one.key}.") and not one.offers]
        for part in row.parts
    }
    found = [*{id(one): one for part in row.parts for one in told[part]}.values()]
    if row.measure and not told[row.parts[0]]:
        unit = read.named["unit"]
        said = f"More was not measured of {unit}: `mecharule {row.measure.format(run=run, unit=unit)}` measures it"
        found.append(fact(said, f"run:{run}", unit=unit))
    return tuple(found if row.parts else facts)


def _offline(
    question: str,
    said: str,
    understood: str | None,
    facts: tuple[Fact, ...] = (),
    *,
    exit_code: int = 0,
    **more: object,
) -> ToolResult:
    data = {"question": question, "answer": said, "understood": understood, "llm": OFFLINE, **more}
    return ToolResult(text=said, data=data, facts=facts, exit_code=exit_code)


def names_of(run: Run) -> Names:
    """What a finished run has names for."""
    found, columns = findings_of(run).by_evidence(), columns_of(run)

    def condition(said: str) -> str | None:
        with suppress(UsageError):
            return str(condition_of(run, said.strip(" ?.")))
        return None

    units = tuple(str(each.neuron) for each in found)
    firsts = (str(Neuron(run.config.bases[0], 0, channel)) for channel in range(len(units) + 1))
    numbers = [name for name in run.task.prompt_columns if columns[name].dtype.kind in "if"]
    words = {word: word for one in PROPERTIES.values() if condition(one.predicate) for word in one.said}
    for name, values in few_valued(run).items():
        words |= {str(value).casefold(): f"{name} is {value}" for value in values}
    words |= {said: said for said in (f"{other} > {one}" for one, other in pairwise(sorted(numbers)))}
    return Names(
        units=units,
        shown=sum(each.is_shown for each in found),
        columns=tuple(columns),
        terms={spelling.casefold(): name for spelling, name in SPELLINGS.items()},
        condition=condition,
        prompt="" if run.task.concealed or not run.records else last_line(run.records[0].example.prompt),
        other=next((unit for unit in firsts if unit not in units), ""),
        words=words,
    )


def _last_unit(earlier: Exchanges) -> str:
    """The first unit that the last exchange names."""
    for question, answer in reversed(earlier):
        if found := UNIT.search(question) or UNIT.search(answer):
            return found[0]
    return ""


def _meant(question: str, earlier: Exchanges) -> str:
    """The question; a number, or nothing, takes one of the suggestions that stood last."""
    answered = earlier[-1][1] if earlier else ""
    suggested = (
        re.findall(r"^  \d\. (.+)$", answered, re.MULTILINE) if answered.startswith(NO_QUESTION) else []
    )
    number = question.strip().rstrip(".") or "1"
    is_one = number.isdecimal() and 1 <= int(number) <= len(suggested)
    return suggested[int(number) - 1] if is_one else question


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
        "tools": [{"tool": name, "arguments": given, "ok": ok} for name, given, ok in answer.calls],
        "cited": {one.id: one.sentence for one in answer.facts},
        "certificates": list(certificate_ids(source for one in answer.facts for source in one.sources)),
        "llm": choice.short,
        **asdict(bill),
    }
    cited = [f"  [{one.id}] {one.sentence}" for one in answer.facts]
    text = "\n".join(
        [answer.text, "", *(["Facts:", *cited] if cited else []), f"{checked}. {choice.short}: {bill.words}."]
    )
    exit_code = BudgetSpent.exit_code if answer.declined else 0
    return ToolResult(text=text, data=data, facts=tuple(facts), exit_code=exit_code)


def _exchanges(run: Run, given: Exchanges | None) -> Exchanges:
    """Those given, else what was asked about the run before, the latest few."""
    if given is not None:
        return given
    told = [event for _, _, event in run.store.events() if isinstance(event, QuestionAnswered)]
    return tuple((one.question, one.answer) for one in told[-FOLLOWED:])


def _keep(path: Path, result: ToolResult, kept: list[Event], listener: Listener) -> None:
    """The answer and everything told on the way, in the run file; one that another process works on is left alone."""
    certificates: Any = result.data.get("certificates", [])
    answered = QuestionAnswered(
        question=str(result.data["question"]),
        answer=str(result.data["answer"]),
        llm=str(result.data.get("llm", OFFLINE)),
        checked=str(result.data.get("checked", "")),
        certificates=tuple(certificates),
    )
    listener.show(answered)
    try:
        with opened(str(path), write=True) as run:
            run.store.append(kept)
            if certificates:
                cited = LastAnswer(question=answered.question, certificates=list(certificates))
                run.store.put(LAST_ANSWER, cited)
    except StoreError as error:
        listener.tell(f"the question is not remembered in the run: {error}")
