"""Questions about a run: the router first, then a language model, whose facts are put in by name.

What the router wholly understands is answered by its tool at once, and the model may add to it. What it does not goes
to the model with the tools; the facts of those that it called are shown even where it fails to word an answer, and
without any the router's answer stands, and says so.
What was asked and answered is kept in the run file; a question under way is checkpointed beside it.
What answers beside the router is imported where a model is chosen: without one an answer does not wait for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from agent.answering import conversation
from agent.answering.conversation_memory import Exchange, Memory
from agent.llm.choice import Choice, choose, make_model
from agent.llm.protocol import OnText, unheard
from mecharule_ops.events import Event
from tools.registry import Tell, ToolResult

if TYPE_CHECKING:
    from agent.llm.retrying import Asker

Show = Callable[[Event], None]


def ask(
    run: str,
    question: str,
    tell: Tell = lambda line: None,
    *,
    llm: str | None = None,
    earlier: Sequence[Exchange] | None = (),
    on_text: OnText = unheard,
    show: Show = lambda event: None,
    should_stop: Callable[[], bool] | None = None,
    budget: int | None = None,
    environment: Mapping[str, str] = os.environ,
) -> ToolResult:
    """The answer as text and data, by the model that flag, environment or config file choose.

    `earlier` None follows on what was asked about the run before; `on_text` hears the model's unchecked words as they
    come, `show` the events. `should_stop` gives up what the model is asked, inside a request too; `budget` bounds its
    tokens. Raises what choosing a model or opening the run raises; a model that fails is told about, not raised.
    """
    choice = choose(llm, environment, budget)
    model = make_model(choice, environment)
    memory = Memory(run, show, tell)
    asker = None
    if model is not None:
        from agent.llm.retrying import Asker

        asker = Asker(
            model=model,
            price=choice.price,
            most_tokens=choice.most_tokens,
            emit=memory.emit,
            should_stop=should_stop,
        )
    before = memory.exchanges() if model and earlier is None else earlier or ()
    return answer(run, question, asker, choice, tell, before, on_text, memory)


def answer(
    run: str,
    question: str,
    asker: Asker | None,
    choice: Choice,
    tell: Tell,
    earlier: Sequence[Exchange] = (),
    on_text: OnText = unheard,
    memory: Memory | None = None,
) -> ToolResult:
    """The router's answer, to which a model may add; the model's where the router has none.

    A question that was killed continues at its node when it is asked again: no reply and no tool call is paid twice.
    """
    memory = memory or Memory(run, lambda event: None, tell)
    offline = conversation.ask(run, question, tell, who=str(choice))
    if asker is None:
        memory.keep(offline)
        return offline
    from agent.answering.asked_of_model import AskedOfModel

    asked = AskedOfModel(
        run=run,
        offline=offline,
        asker=asker,
        choice=choice,
        tell=tell,
        on_text=on_text,
        memory=memory,
    )
    return asked.added() if offline.data["understood"] else asked.by_model(earlier)
