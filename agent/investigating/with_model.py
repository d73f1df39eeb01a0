"""What a language model may do in an investigation: propose predicates, and pick a priced test by its number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from pydantic import BaseModel, ConfigDict, Field

from agent.investigating.investigation import AskedUnits, BoardFact, ChoosingPolicy, Rival, Step
from agent.llm.protocol import Request
from agent.llm.retrying import Asker
from agent.proposing import showing
from mecharule_ops.errors import MechaRuleError, StoreError
from mecharule_ops.predicates.language import schema_of, vocabulary
from mecharule_ops.run.live_run import Run
from mecharule_ops.tasks.meanings import meanings_of

PROPOSE, PICK = "investigate_rivals", "investigate_test"
MOST = 4
"""Rivals that a model adds, at most."""


class Rivals(BaseModel):
    """The schema of a proposal."""

    model_config = ConfigDict(extra="forbid")
    predicates: list[str] = Field(max_length=MOST)


class Pick(BaseModel):
    """The schema of a pick."""

    model_config = ConfigDict(extra="forbid")
    test: int = Field(ge=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProposer:
    """Predicates of a language model, which sees the question, the columns and what the templates found on train."""

    asker: Asker
    question: str

    @property
    def name(self) -> str:
        return self.asker.model.name

    def propose(self, run: Run, asked: AskedUnits, rivals: list[Rival]) -> list[str]:
        """Costs one request, retries aside."""
        filled = {
            "question": self.question,
            "unit": asked["units"][0],
            "columns": showing.columns(
                schema_of(run.columns), run.task.prompt_columns, meanings_of(run.task)
            ),
            "language": vocabulary(),
            "rivals": showing.listed(rival["condition"] for rival in rivals),
        }
        request = Request.of(PROPOSE, filled, schema=Rivals, purpose=f"rivals of {asked['units'][0]}")
        return cast(Rivals, self.asker.ask(request).parsed).predicates


@dataclass(slots=True, kw_only=True)
class ModelPolicy:
    """A language model picks by number; where it cannot, or names none, the `fallback` does."""

    asker: Asker
    question: str
    fallback: ChoosingPolicy
    failed: list[str] = field(default_factory=list)
    """Why a pick was not the model's."""

    def pick(self, offered: list[Step], rivals: list[Rival], board: list[BoardFact]) -> Step | None:
        """Costs one request where there is a choice."""
        if len(offered) == 1:
            return offered[0]
        filled = {
            "question": self.question,
            "rivals": showing.listed(f"{one['id']} {one['state']}: {one['condition']}" for one in rivals),
            "board": showing.listed(f"{fact['id']} {fact['sentence']}" for fact in board),
            "tests": showing.listed(_told(place, step) for place, step in enumerate(offered)),
        }
        try:
            reply = self.asker.ask(Request.of(PICK, filled, schema=Pick, purpose="choice of a test"))
        except MechaRuleError as fault:
            self.failed.append(str(fault))
            return self.fallback.pick(offered, rivals, board)
        place = cast(Pick, reply.parsed).test
        if place < len(offered):
            return offered[place]
        self.failed.append(f"expected a test of 0 to {len(offered) - 1}, got {place}")
        return self.fallback.pick(offered, rivals, board)


def _told(place: int, step: Step) -> str:
    between = f" of {', '.join(step['rivals'])}" if step["rivals"] else ""
    return f"{place}: {step['kind']}{between}, {step['forwards']} forwards, tells {step['bits']:.2f} bits"


@dataclass(slots=True, kw_only=True)
class StoredProposer:
    """What was proposed in an earlier investigation, again word for word; no model is asked."""

    name: str
    said: Sequence[Sequence[str]]
    turn: int = 0

    def propose(self, run: Run, asked: AskedUnits, rivals: list[Rival]) -> list[str]:
        """The stored words of the turn. Raises `StoreError` where there are none."""
        self.turn += 1
        if self.turn > len(self.said):
            raise StoreError("nothing more was proposed")
        return list(self.said[self.turn - 1])
