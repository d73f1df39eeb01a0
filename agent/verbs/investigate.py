"""`mecharule investigate RUN "QUESTION"`: an investigation told as it goes, its report as a tool's result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from agent.answering.chat import answer
from agent.answering.conversation_memory import Memory
from agent.investigating.asking import NotRead
from agent.investigating.investigation import ChoosingPolicy, Purse
from agent.investigating.investigation_loop import (
    Watch,
    as_far_as_it_got,
    investigate,
    nothing_read,
    played_again,
)
from agent.investigating.policies import GreedyPolicy
from agent.investigating.report import reported
from agent.investigating.told_by_run import Told, told_by_run
from agent.investigating.with_model import ModelPolicy, ModelProposer
from agent.llm.choice import Choice, choose, make_model
from agent.llm.retrying import Asker
from agent.verbs.dry_run import told
from agent.verbs.options import InvestigateOptions
from agent.verbs.runner import Approve, config_from, start
from mecharule_ops.errors import AblationStopped, BudgetSpent, UsageError
from mecharule_ops.events import Event, Notice
from mecharule_ops.run.opening import opened
from mecharule_ops.run.outlook import outlook
from mecharule_ops.run.settled import settled
from tools._ablations import A_MINUTE
from tools.registry import ToolResult

Show = Callable[[Event], None]
INTERRUPTED = 130


def investigate_run(
    asked: InvestigateOptions,
    show: Show,
    *,
    watch: Watch = lambda found: None,
    should_stop: Callable[[], bool] = lambda: False,
    stopped: type[BaseException] = KeyboardInterrupt,
) -> ToolResult:
    """The report; when it is stopped, that of what is known, with exit code 130.

    `show` stops it by raising `stopped`, `should_stop` by its word between two batches. Exit code 5 when the purse left
    something open. A question that a language model cannot read as one about flips either, it answers as `ask` does, by
    the facts of tools that it calls. A model of a small context only proposes rivals: docs/agent.md says why. Raises
    what opening the run and choosing a model raise.
    """
    _check_question(asked)

    def tell(line: str) -> None:
        show(Notice(text=line))

    held = told_by_run(asked.run, asked.question, tell)
    choice = choose(asked.llm, budget=asked.tokens)
    model = make_model(choice)
    asker = None
    if model is not None:
        asker = Asker(model=model, price=choice.price, most_tokens=choice.most_tokens)
    try:
        return _investigated(asked, choice, asker, held, show, watch, should_stop, stopped)
    except NotRead as refused:
        if asker is None or choice.is_small:
            raise
        tell(f"{refused}; {choice.short} is asked with the tools")
        memory = Memory(asked.run, show, tell)
        asker.emit = memory.emit
        return answer(asked.run, asked.question, asker, choice, tell, memory=memory)


def _investigated(
    asked: InvestigateOptions,
    choice: Choice,
    asker: Asker | None,
    held: Told,
    show: Show,
    watch: Watch,
    should_stop: Callable[[], bool],
    stopped: type[BaseException],
) -> ToolResult:
    def tell(line: str) -> None:
        show(Notice(text=line))

    with opened(asked.run, write=True, tell=tell, should_stop=should_stop) as run:

        def emit(event: Event) -> None:
            run.store.append([event])
            show(event)

        purse = purse_of(asked)
        made: ModelProposer | None = None
        policy: ChoosingPolicy = GreedyPolicy()
        if asker is not None:
            asker.emit = emit
            made = ModelProposer(asker=asker, question=asked.question)
            if not choice.is_small:
                policy = ModelPolicy(asker=asker, question=asked.question, fallback=policy)
        try:
            found = investigate(
                run,
                asked.question,
                purse,
                policy=policy,
                proposer=made,
                read=made.read if made and not choice.is_small else nothing_read,
                told=held,
                again=asked.again,
                emit=emit,
                tell=tell,
                watch=watch,
            )
        except (stopped, AblationStopped):
            kept = as_far_as_it_got(run, asked.question, purse, made.name if made else "offline")
            if kept is None:
                raise
            watch(kept)
            result = reported(run, kept)
            return ToolResult(data=result.data, text=result.text, exit_code=INTERRUPTED)
        failed = policy.failed if isinstance(policy, ModelPolicy) else []
        notes = [f"A test was picked offline: {fault}" for fault in failed]
        notes += ["It was made before and is read back; --again makes it again."] if found.reused else []
        notes += [f"{choice.short}: {asker.bill}"] if asker is not None else []
        return reported(run, found, tuple(notes))


def investigate_task(asked: InvestigateOptions, show: Show, approve: Approve) -> ToolResult:
    """A run of the task on the model first, what it comes to said and its price agreed to as `run` does; then the same.

    A run that nothing was searched in is reported as it is. Raises as `runner.start` and `investigate_run` do.
    """
    _check_question(asked)
    config = config_from(task=asked.run, model=asked.model, settings=asked.settings)
    for name, said in told(outlook(settled(config))):
        show(Notice(text=f"{name}: {said}"))
    made = start(config, show, approve)
    if made.exit_code not in (0, BudgetSpent.exit_code):
        return made
    run = cast(Mapping[str, str], made.data["findings"])["run"]
    show(Notice(text=f"run {run} is made; it can be asked more without --model"))
    return investigate_run(asked.model_copy(update={"run": run, "model": None}), show)


def _check_question(asked: InvestigateOptions) -> None:
    if not asked.question.strip():
        raise UsageError('expected a question, such as "does m1.37 flip where carry(a, b)?", got none')


def purse_of(asked: InvestigateOptions) -> Purse:
    """What may be spent: a minute of ablations unless more was said or a price accepted."""
    unlimited = asked.yes or (asked.forwards is not None and asked.seconds is None)
    seconds = (
        None if unlimited and asked.seconds is None else A_MINUTE if asked.seconds is None else asked.seconds
    )
    return Purse(forwards=asked.forwards, seconds=seconds)


def replay_investigation(name: str) -> ToolResult:
    """The latest investigation from the words and flips in the store, and whether it came to the same.

    Raises `UsageError` when there is none.
    """
    with opened(name) as run:
        found, same = played_again(run)
        told = "it came to the same" if same else "it did not come to the same"
        return reported(run, found, (f"Played again from the stored words: {told}.",))
