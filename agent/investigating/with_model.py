"""What a language model may do in an investigation: read the question, propose predicates, pick a priced test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from jaxtyping import Bool, Int
from pydantic import BaseModel, ConfigDict, Field

from agent.answering import understanding
from agent.investigating.asking import MOST_UNITS, QuestionRead, read_as
from agent.investigating.investigation import AskedUnits, BoardFact, ChoosingPolicy, Rival, Step
from agent.llm.protocol import Request
from agent.llm.retrying import Asker
from agent.proposing import showing
from agent.proposing.typed_grammar import predicate_pattern
from mecharule_ops.errors import MechaRuleError, UsageError
from mecharule_ops.predicates.language import schema_of, vocabulary
from mecharule_ops.questions.support import by_evidence
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import regime_of
from mecharule_ops.run.tabulating import columns_of, fires
from mecharule_ops.tasks.meanings import meanings_of
from mecharule_ops.tasks.rival_families import families_of
from mecharule_ops.types import Neuron

READ, PROPOSE, PICK = "investigate_question", "investigate_rivals", "investigate_test"
MOST = 4
"""Rivals that a model adds, at most."""
PAIRS = 4
"""Flipped train records that it is shown, each beside the unflipped one that differs least."""
KNOWN = 8
"""Rivals of templates that it is shown."""


class QuestionAsRead(BaseModel):
    """The schema of a reading."""

    model_config = ConfigDict(extra="forbid")
    units: list[str] = Field(max_length=MOST_UNITS)
    ideas: list[str] = Field(max_length=MOST)
    conditions: list[str] = Field(max_length=MOST)


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
    """A language model that sees the question, the columns, and train records with what the templates found on them."""

    asker: Asker
    question: str

    @property
    def name(self) -> str:
        return self.asker.model.name

    def read(self, run: Run) -> QuestionRead:
        """The question as the model reads it: units, ideas and predicates by name; nothing where it names none.

        Units and direction that the question itself names stand. Costs one request, retries aside. Raises the model's
        faults; a name that there is not is left out.
        """
        understood = understanding.read(self.question)
        found = [str(unit.neuron) for unit in by_evidence(run.findings) if unit.is_shown][:MOST_UNITS]
        units = list(understood.units) or found
        ideas = [family.name for family in families_of(run.task, run.columns)]
        filled = {
            "question": self.question,
            "units": showing.listed(units),
            "ideas": showing.listed(ideas),
            **_language(run),
        }
        request = Request.of(READ, filled, schema=QuestionAsRead, purpose="what the question asks")
        said = cast(QuestionAsRead, self.asker.ask(request).parsed)
        conditions = [text for text in dict.fromkeys(said.conditions) if _reads(run, text)]
        families = [idea for idea in dict.fromkeys(said.ideas) if idea in ideas]
        named = list(understood.units) or [name for name in dict.fromkeys(said.units) if name in units]
        if not named or not (conditions or families):
            return QuestionRead()
        given = regime_of(understood.regimes[0]) if understood.regimes else None
        meant = [Neuron.parse(name) for name in named]
        return replace(read_as(run, meant, given, families, dict.fromkeys(conditions, "")), by=self.name)

    def propose(
        self,
        run: Run,
        asked: AskedUnits,
        known: Sequence[Rival],
        train: Int[np.ndarray, " record"],
        flips: Bool[np.ndarray, " record"],
    ) -> list[str]:
        """Costs one request, retries aside."""
        filled = {
            "question": self.question,
            "unit": asked["units"][0],
            **_language(run),
            "rivals": showing.listed(map(_on_train, known[:KNOWN])),
            "pairs": _pairs(run, train, flips),
        }
        request = Request.of(
            PROPOSE,
            filled,
            schema=Rivals,
            purpose=f"rivals of {asked['units'][0]}",
            patterns={
                "predicates": predicate_pattern(run.columns, schema_of(run.columns), run.task.prompt_columns)
            },
        )
        return cast(Rivals, self.asker.ask(request).parsed).predicates


def _language(run: Run) -> Mapping[str, str]:
    """What a predicate may be made of."""
    prompt, schema = run.task.prompt_columns, schema_of(run.columns)
    known = {name: kind for name, kind in schema.items() if name in prompt} or schema
    return {
        "columns": showing.columns(known, prompt, meanings_of(run.task), run.columns),
        "language": vocabulary(),
    }


def _reads(run: Run, text: str) -> bool:
    try:
        fires(run, text)
    except UsageError:
        return False
    return True


def _on_train(rival: Rival) -> str:
    inside, n, outside, other = rival["train"]
    return f"{rival['condition']}: flips {inside} of {n} where it holds, {outside} of {other} elsewhere"


def _pairs(run: Run, train: Int[np.ndarray, " record"], flips: Bool[np.ndarray, " record"]) -> str:
    """Train records that flip, each beside the one most like it that does not; no texts where a task conceals them."""
    observed = columns_of(run)
    names = [
        name
        for name in observed
        if name in run.task.prompt_columns and not (run.task.concealed and observed[name].dtype.kind == "U")
    ]
    if not names:
        return showing.listed([])
    columns = {name: observed[name][train] for name in names}
    pairs = showing.nearest(columns, np.flatnonzero(flips)[:PAIRS].tolist(), ~flips, names)
    return showing.pairs(columns, pairs, "flips", "does not")


@dataclass(slots=True, kw_only=True)
class ModelPolicy:
    """A language model picks by number where tests cost something; what is stored is read first, unasked.

    Where it cannot, or names none, the `fallback` picks.
    """

    asker: Asker
    question: str
    fallback: ChoosingPolicy
    failed: list[str] = field(default_factory=list)
    """Why a pick was not the model's."""

    def pick(self, offered: list[Step], rivals: list[Rival], board: list[BoardFact]) -> Step | None:
        """Costs one request where there is a choice that costs something."""
        if len(offered) == 1 or any(not step["forwards"] for step in offered):
            return self.fallback.pick(offered, rivals, board)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProposer:
    """What was proposed in an earlier investigation, again word for word; no model is asked."""

    name: str
    said: Sequence[str]

    def propose(self, *given: object) -> list[str]:
        """The stored words."""
        return list(self.said)
