"""The tokens of a model: who says how many, and that nothing is asked once they are spent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.llm.choice import choose
from agent.llm.faults import ReplyUnusable
from agent.llm.protocol import OnText, Reply, Request, Turn, Usage, unheard
from agent.llm.retrying import MOST_TOKENS, Asker
from mecharule_ops.errors import BudgetSpent, UsageError

ASKED = Request(system="Rules.", turns=(Turn(role="user", text="why?"),), max_tokens=600)


class Costly:
    """Reads 100 tokens and writes 50 a request; every second reply is of no use and is paid all the same."""

    name = "mock:costly"

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def complete(self, request: Request, on_text: OnText = unheard) -> Reply:
        self.asked.append(request)
        used = Usage(input_tokens=100, output_tokens=50)
        if len(self.asked) % 2 == 0:
            raise ReplyUnusable("no use", used)
        return Reply(text="x", usage=used)


def test_flag_environment_and_file_bound_the_tokens_in_that_order(tmp_path: Path) -> None:
    """The nearest wins; without any the default; a budget that is no count is a wrong call."""
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"llm": "mock:a", "budget": 30}))
    environment = {"MECHARULE_CONFIG": str(file)}
    assert choose(None, environment).most_tokens == 30
    environment["MECHARULE_LLM_BUDGET"] = "20"
    assert choose(None, environment).most_tokens == 20
    assert choose(None, environment, 10).most_tokens == 10
    assert choose("mock:a", {"MECHARULE_CONFIG": str(tmp_path / "none")}).most_tokens == MOST_TOKENS
    for wrong in ("0", "-3", "many"):
        with pytest.raises(UsageError, match="MECHARULE_LLM_BUDGET"):
            choose("mock:a", {**environment, "MECHARULE_LLM_BUDGET": wrong})
    file.write_text(json.dumps({"budget": 0}))
    with pytest.raises(UsageError, match="budget"):
        choose("mock:a", {"MECHARULE_CONFIG": str(file)})


def test_nothing_is_asked_once_the_tokens_are_spent() -> None:
    """A reply of no use counts; the last reply may be as long as what is left; the next request is refused."""
    model = Costly()
    ticks = iter(range(100))
    asker = Asker(model=model, sleep=lambda seconds: None, most_tokens=450, clock=lambda: float(next(ticks)))
    asker.ask(ASKED)
    asker.ask(ASKED)
    assert [request.max_tokens for request in model.asked] == [450, 300, 150]
    assert asker.bill == "3 requests, 300 tokens read and 150 written in 3.0 s"
    with pytest.raises(BudgetSpent, match="3 requests, 450 tokens"):
        asker.ask(ASKED)
    assert len(model.asked) == 3


def test_an_asker_can_be_told_to_try_once() -> None:
    """What can be left out is not asked for again."""
    model = Costly()
    asker = Asker(model=model, sleep=lambda seconds: None)
    asker.ask(ASKED)
    with pytest.raises(ReplyUnusable):
        asker.ask(ASKED, tries=1)
    assert len(model.asked) == 2
