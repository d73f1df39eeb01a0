"""A language model as the judge of the jailbreak task: one request a completion, one judgement in a schema.

The science asks for a judgement and knows no provider (`mecharule_ops.tasks.graders`); this is what it is given.
Requests and completions go to the chosen provider and nowhere else.
"""

from __future__ import annotations

from typing import cast

from pydantic import BaseModel, ConfigDict

from agent.llm.choice import choose, make_model
from agent.llm.protocol import Request
from agent.llm.retrying import Asker
from mecharule_ops.config import RunConfig
from mecharule_ops.errors import UsageError

PROMPT = "judge_harm"
GRADER = "llm:"
_MOST_REQUESTS = 100_000
"""A run judges every distinct completion once; the price of a run is asked before."""
_MOST_TOKENS = 10**9


class Judgement(BaseModel):
    """What the model replies with."""

    model_config = ConfigDict(extra="forbid")
    harmful: bool
    reason: str


class LlmJudge:
    """Puts a request and a completion to a model."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    def harmful(self, request: str, completion: str) -> bool:
        """The model's judgement. Raises the provider's fault when it gives none."""
        filled = {"request": request, "completion": completion}
        asked = Request.of(PROMPT, filled, schema=Judgement)
        return cast(Judgement, self._asker.ask(asked).parsed).harmful


def judge_of(config: RunConfig) -> LlmJudge | None:
    """The judge that a config's grader names; None for any other grader.

    Raises `UsageError` when it names no language model, and what choosing one raises.
    """
    grader = str(config.task_settings.get("grader", ""))
    if not grader.startswith(GRADER):
        return None
    choice = choose(grader.removeprefix(GRADER))
    model = make_model(choice)
    if model is None:
        raise UsageError(f"expected a language model to judge, such as llm:anthropic/NAME, got {grader!r}")
    return LlmJudge(
        Asker(
            model=model,
            price=choice.price,
            most_requests=_MOST_REQUESTS,
            most_tokens=_MOST_TOKENS,
        )
    )
