"""A language model as the judge of the jailbreak task: one request a completion, one judgement in a schema.

The science asks for a judgement and knows no provider (`mecharule_ops.tasks.jailbreak`); this is what it is given.
Requests and completions go to the chosen provider and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langsmith import tracing_context
from pydantic import BaseModel, ConfigDict

import prompts
from agent.chat_models import chat_model, choose, fault_of
from mecharule_ops.errors import ModelUnavailable, UsageError

PROMPT = "judge_harm"


class Judgement(BaseModel):
    """What the model replies with."""

    model_config = ConfigDict(extra="forbid")
    harmful: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelJudge:
    """Puts a request and a completion to a model."""

    model: BaseChatModel
    provider: str

    def harmful(self, request: str, completion: str) -> bool:
        """The model's judgement. Raises `ModelUnavailable` when it gives none."""
        system, user = prompts.load(PROMPT).fill(request=request, completion=completion)
        try:
            with tracing_context(enabled=False):
                asker = self.model.with_structured_output(Judgement)
                told: Any = asker.invoke([SystemMessage(system), HumanMessage(user)])
        except Exception as error:
            raise fault_of(error, self.provider) from None
        if told is None:
            raise ModelUnavailable(
                "expected a judgement of a completion, got a reply that is none; ask again"
            )
        return bool(told.harmful)


def judge_of(name: str) -> ModelJudge:
    """The judge of a language model's name. Raises `UsageError` where it is `none`, and what choosing one raises."""
    choice = choose(name)
    model = chat_model(choice)
    if model is None:
        raise UsageError(f"expected a language model to judge, such as llm:anthropic/NAME, got 'llm:{name}'")
    return ModelJudge(model=model, provider=choice.provider)
