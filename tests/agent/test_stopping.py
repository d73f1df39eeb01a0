"""A request given up while it is under way: the caller is free at once, and the model's stream is closed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from agent.answering.chat import answer
from agent.llm.choice import Choice
from agent.llm.faults import ReplyStopped, TransientFault
from agent.llm.protocol import OnText, Reply, Request, Turn, Usage, unheard
from agent.llm.retrying import Asker, until_stopped

ASKED = Request(system="Rules.", turns=(Turn(role="user", text="why?"),))


class Slow:
    """A model that says nothing until it is let go, then streams one word."""

    name = "mock:slow"

    def __init__(self) -> None:
        self.asked, self.go_on, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.faults: list[BaseException] = []

    def complete(self, request: Request, on_text: OnText = unheard) -> Reply:
        self.asked.set()
        try:
            assert self.go_on.wait(20)
            on_text("late")
        except BaseException as fault:
            self.faults.append(fault)
            raise
        finally:
            self.ended.set()
        return Reply(text="late", usage=Usage(input_tokens=3, output_tokens=1))


def test_a_silent_model_is_given_up_and_ends_with_its_next_word() -> None:
    """The flag is looked at although no word comes; the word that comes later closes the stream and is not heard."""
    model, heard = Slow(), list[str]()
    with pytest.raises(ReplyStopped, match="the model was stopped"):
        until_stopped(lambda hear: model.complete(ASKED, hear), heard.append, model.asked.is_set)
    model.go_on.set()
    assert model.ended.wait(20)
    assert [type(fault) for fault in model.faults] == [ReplyStopped]
    assert heard == []


def test_without_a_stop_the_reply_and_the_fault_are_the_models_own() -> None:
    """The thread in between changes nothing."""
    model, heard = Slow(), list[str]()
    model.go_on.set()
    assert until_stopped(lambda hear: model.complete(ASKED, hear), heard.append, lambda: False).text == "late"
    assert heard == ["late"]

    def broken(hear: OnText) -> Reply:
        raise TransientFault("HTTP 500")

    with pytest.raises(TransientFault, match="HTTP 500"):
        until_stopped(broken, unheard, lambda: False)


def test_a_wait_between_two_tries_can_be_given_up() -> None:
    """A provider that asks for 30 s is waited for second by second."""
    waited: list[float] = []

    class Limited:
        name = "mock:limited"

        def complete(self, request: Request, on_text: OnText = unheard) -> Reply:
            raise TransientFault("HTTP 429", 30.0)

    asker = Asker(model=Limited(), sleep=waited.append, should_stop=lambda: len(waited) >= 2)
    with pytest.raises(ReplyStopped):
        asker.ask(ASKED)
    assert waited == [1.0, 1.0]


@pytest.mark.parametrize("question", ["what did the search miss?", "xyzzy what did the search miss?"])
def test_a_question_whose_model_is_stopped_is_answered_without_it(copied_run: Path, question: str) -> None:
    """What the router understands keeps its answer, what it does not its refusal; the run is kept and says so."""
    model, told = Slow(), list[str]()
    asker = Asker(model=model, sleep=lambda seconds: None, should_stop=model.asked.is_set)
    result = answer(
        str(copied_run), question, asker, Choice(spec=model.name, why="chosen by --llm"), told.append
    )
    assert "the model was stopped; answered without it" in told
    assert result.data["llm"] == "none (mock:slow: the model was stopped)"
    assert "the model was stopped; 1 request, 0 tokens read and 0 written in" in result.text
    model.go_on.set()
