"""Questions about a run: the offline answer at once where there is one, then the language model's, if one is chosen.

Without a model a canonical question is answered by its tool, anything else gets three suggestions. With one every
question goes to the loop (`talk`) with all tools; where it fails, the offline answer stands and says why. What was
asked and answered is kept in the run file, so that the next question follows on it, in another process too.
What answers beside the tools is imported where a model is chosen: without one an answer does not wait for it.
"""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from agent import canonical, chat_models
from agent.consent import NO_QUESTION, NOT_RUN, PURSE, Exchanges, Listener, not_run, pays, put
from mecharule_ops import errors, types
from mecharule_ops.events import OFFLINE, AgonistFound, Event, LlmMessage, QuestionAnswered, ToolCalled
from mecharule_ops.facts.answer_text import answer_text
from mecharule_ops.facts.fact import Fact, fact, ids_among
from mecharule_ops.facts.glossary import SPELLINGS
from mecharule_ops.plain_text import last_line
from mecharule_ops.run import live_run, opening, tabulating
from mecharule_ops.store import keys, run_file
from mecharule_ops.tasks.arithmetic_vocabulary import CONDITIONS
from tools import _asked, registry, runs
from tools.result import ToolResult

NO_LISTENER = Listener()
FOLLOWED = 6
"""Earlier exchanges that a question can follow on."""


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
    choice = chat_models.choose(llm, environment)
    kept: list[Event] = []

    def show(event: Event) -> None:
        kept.append(event)
        listener.show(event)

    with opening.kept_open(listener.should_stop):
        with opening.opened(run) as held:
            if not held.finished:
                return _under_way(held, question)
            earlier = _exchanges(held) if listener.earlier is None else listener.earlier
            told, path = replace(listener, show=show, earlier=earlier), held.store.path
        question = _meant(question, earlier)
        stored = ToolResult()
        if choice.spec == chat_models.NONE:
            result = offline(str(path), question, told, seconds=seconds)
        else:
            with suppress(errors.MechaRuleError):
                stored = ToolResult() if must else offline(str(path), question, told, stored=True)
            told.first(stored)
            try:
                from agent.chat_models import chat_model
                from agent.talk import Talk

                # A model of a file, a script or a server of one's own is not asked for a second look.
                own_server = choice.provider == "openai" and choice.base_url is not None
                look = choice.provider in ("anthropic", "openai") and not own_server
                model = chat_model(choice, environment)
                talk = Talk(model, choice, path, told, purse=seconds, look=look, decides=decides)
                result = talk.ask(question)
            except errors.MechaRuleError as fault:
                if must:
                    raise
                told.tell(f"{fault}; answered without it")
                result = stored if stored.text else offline(str(path), question, told, seconds=seconds)
                asked = [one for one in kept if isinstance(one, LlmMessage)]
                took = {name: sum(getattr(one, name) for one in asked) for name in chat_models.TOKENS}
                declined = any(isinstance(one, ToolCalled) and one.result.startswith(NOT_RUN) for one in kept)
                failed = {"requests": len(asked), "llm": f"none ({choice.short}: {fault})"}
                code = result.exit_code or (errors.BudgetSpent.exit_code if declined else 0)
                result = replace(result, data={**result.data, **failed, **took}, exit_code=code)
        _keep(path, result, kept, told)
    return result


def _under_way(run: live_run.Run, question: str) -> ToolResult:
    """How far a run is that has not finished."""
    stopped = f"has not finished; `mecharule resume {run.id}` goes on"
    goes_on = f"is {runs.how_far(run.store.path)}" if run_file.is_held(run.store.path) else stopped
    found = [one for _, _, one in run.store.events() if isinstance(one, AgonistFound) and one.is_tau_agonist]
    at = {of: dict.fromkeys(one.neuron for one in found if one.regime == of.value) for of in types.Regime}
    names = "; ".join(f"{of.arrow}: {', '.join(units)}" for of, units in at.items() if units) or "none"
    facts = (fact(f"Run {run.id} {goes_on}; at τ so far: {names}", f"run:{run.id}"),)
    said = answer_text(facts)
    return ToolResult(text=said, facts=facts, data={"question": question, "answer": said})


def offline(
    run: str, question: str, listener: Listener, *, seconds: float = PURSE, stored: bool = False
) -> ToolResult:
    """What the tool of a canonical question says, else three suggestions. Raises what the tool raises.

    A tool that ablates runs within the purse of `seconds`, else with consent; nothing where only what is `stored` is
    wanted, and where the person has given the answer up.
    """
    with opening.opened(run) as held:
        names = names_of(held)
        read = canonical.understand(question, names, _last_unit(listener.earlier or ()))

    def answer(said: str, facts: tuple[Fact, ...] = (), exit_code: int = 0, **more: object) -> ToolResult:
        name = read.row.name if isinstance(read, canonical.Understood) else None
        data = {"question": question, "answer": said, "understood": name, "llm": OFFLINE, **more}
        return ToolResult(text=said, data=data, facts=facts, exit_code=exit_code)

    if not isinstance(read, canonical.Understood):
        lines = [f"  {place}. {asked}" for place, asked in enumerate(read, 1)]
        best = canonical.STRONGEST.search(question)
        none = best and canonical.the_strongest(best, names) == best[0] and best["noun"].lower()
        why = f": no {none} is shown, so none is the strongest" if none else ""
        begins = f"{NO_QUESTION}{why}. You may ask (type 1, 2 or 3):"
        return answer("\n".join([begins, *lines]), suggested=list(read))
    tool, given = read.row.tool, read.arguments
    begun = registry.begin(tool, {"run": run, **given}, listener.tell)
    price = begun.price
    if price is not None and price.example_forwards:
        if stored:
            return ToolResult()
        agreed = "the question was stopped" if listener.should_stop() else pays(seconds, [price.seconds])
        if why := not_run(agreed or listener.consent(put([(tool, given)], price.words)), price.words):
            return answer(why, exit_code=errors.BudgetSpent.exit_code)
    result = registry.finish(begun, listener.tell, agreed=True)
    facts = _answering(read, result.facts, Path(run).stem)
    said = answer_text(facts) if read.row.parts and facts else result.text
    tools = [{"tool": tool, "arguments": given, "ok": True}]
    cited = list(ids_among(source for one in facts for source in one.sources))
    return answer(said, facts, result.exit_code, tools=tools, certificates=cited)


def _answering(read: canonical.Understood, facts: Sequence[Fact], run: str) -> tuple[Fact, ...]:
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


def names_of(run: live_run.Run) -> canonical.Names:
    """What a finished run has names for."""
    found, columns = opening.findings_of(run).by_evidence(), tabulating.columns_of(run)

    def condition(said: str) -> str | None:
        with suppress(errors.UsageError):
            return str(_asked.condition_of(run, said.strip(" ?.")))
        return None

    units = tuple(str(each.neuron) for each in found)
    firsts = (str(types.Neuron(run.config.bases[0], 0, channel)) for channel in range(len(units) + 1))
    numbers = [name for name in run.task.prompt_columns if columns[name].dtype.kind in "if"]
    words = {word: word for word, known in CONDITIONS.items() if condition(known)}
    for name, values in tabulating.few_valued(run).items():
        words |= {str(value).casefold(): f"{name} is {value}" for value in values if str(value).strip()}
    words |= {said: said for said in (f"{other} > {one}" for one, other in pairwise(sorted(numbers)))}
    return canonical.Names(
        units=units,
        shown=sum(each.is_shown for each in found),
        columns=tuple(columns),
        terms={spelling.casefold(): name for spelling, name in SPELLINGS.items()},
        condition=condition,
        prompt="" if run.task.concealed or not run.records else last_line(run.records[0].example.prompt),
        other=next((unit for unit in firsts if unit not in units), ""),
        edited=bool(run.records and run.task.edits(run.records[0].example)),
        words=words,
    )


def _last_unit(earlier: Exchanges) -> str:
    """The first unit that the last exchange names."""
    for question, answer in reversed(earlier):
        if found := canonical.UNIT.search(question) or canonical.UNIT.search(answer):
            return found[0]
    return ""


def _meant(question: str, earlier: Exchanges) -> str:
    """The question; a number, or nothing, takes one of the suggestions that stood last."""
    answered = earlier[-1][1] if earlier else ""
    offered = re.findall(r"^  (\d)\. (.+)$", answered, re.M) if answered.startswith(NO_QUESTION) else []
    return dict(offered).get(question.strip().rstrip(".") or "1", question)


def _exchanges(run: live_run.Run) -> Exchanges:
    """What was asked about the run before, the latest few."""
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
        with opening.opened(str(path), write=True) as run:
            run.store.append(kept)
            if certificates:
                run.store.put(keys.LAST_ANSWER, list(certificates))
    except errors.StoreError as error:
        listener.tell(f"the question is not remembered in the run: {error}")
