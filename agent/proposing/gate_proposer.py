"""A language model that proposes gates: it is shown what a unit's ablation does on the find records, and no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from pydantic import BaseModel, ConfigDict, Field

from agent.llm.faults import ReplyUnusable
from agent.llm.protocol import Request
from agent.llm.retrying import Asker
from agent.proposing import showing
from agent.state import RefusalEntry
from mecharule_ops.errors import MechaRuleError
from mecharule_ops.predicates.language import schema_of, vocabulary
from mecharule_ops.repair.proposing import Judged, Sheet, judged

PROMPT = "propose_gates"
_LONGEST_TEXT = 600


class GateProposals(BaseModel):
    """What the model replies with."""

    model_config = ConfigDict(extra="forbid")
    rules: list[str] = Field(max_length=20)


@dataclass(slots=True, kw_only=True)
class LlmGateProposer:
    """Asks about a unit once, and again with the reasons where all was refused; a fault ends it, never the repair."""

    asker: Asker
    seed: int
    wanted: str
    """The task's word for what gates should make of an answer."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    tries: int = 2
    examples: int = 8
    """Fixed and broken records shown, each."""
    ended: str = ""

    @property
    def name(self) -> str:
        return self.asker.model.name

    def propose(self, sheet: Sheet) -> tuple[str, ...]:
        """Distinct texts, in the order in which they were said. Costs at most `tries` requests, retries aside."""
        said: list[str] = []
        for _ in range(self.tries):
            results = judged(sheet, said)
            if any(one.clauses for one in results):
                break
            fresh = [text for text in self._asked(sheet, results) if text not in said]
            if not fresh:
                break
            said += fresh
        return tuple(said)

    def _asked(self, sheet: Sheet, refused: Sequence[Judged]) -> list[str]:
        """The model's next texts; none where it has none, writes what cannot be read, or cannot be asked."""
        try:
            reply = self.asker.ask(self._request(sheet, refused))
        except ReplyUnusable:
            return []
        except MechaRuleError as fault:
            self.ended = str(fault)
            return []
        return list(dict.fromkeys(text[:_LONGEST_TEXT] for text in cast(GateProposals, reply.parsed).rules))

    def _request(self, sheet: Sheet, refused: Sequence[Judged]) -> Request:
        mended, undone = showing.contrast(sheet.value > 0, sheet.value != 0, self.examples, (self.seed,))
        known = [(clause, *sheet.changed(sheet.fires(clause))) for clause in sheet.learned]
        entries: list[RefusalEntry] = [{"text": one.text, "reason": one.reason} for one in refused]
        filled = {
            "unit": str(sheet.unit),
            "wanted": self.wanted,
            "harm": f"{sheet.settings.harm:g}",
            "literals": str(sheet.settings.max_literals),
            "columns": showing.columns(schema_of(sheet.columns), sheet.before_answer, self.meanings),
            "language": vocabulary(),
            "learned": showing.listed(
                f"{clause}  ({fixed} fixed, {broken} broken)" for clause, fixed, broken in known
            ),
            "fixed": showing.records(sheet.columns, mended),
            "broken": showing.records(sheet.columns, undone),
            "refusals": showing.refusals(entries),
        }
        return Request.of(PROMPT, filled, schema=GateProposals, purpose=f"gates of {sheet.unit}")
