"""The two values that change while a search runs: a group under test, and the ledger of costs."""

from __future__ import annotations

from dataclasses import dataclass

from mecharule_ops.cha.sequential import Decision, SequentialPlan
from mecharule_ops.types import FlipCount, FlipEstimate, GroupQuery, Verdict

_NOTHING_SEEN = FlipEstimate(associated=FlipCount(flips=0, n=0), unrelated=FlipCount(flips=0, n=0))


@dataclass(slots=True, kw_only=True, eq=False)
class GroupUnderTest:
    """A group, what was asked of it last, and what was counted so far."""

    query: GroupQuery
    """The question now open, or the last one answered; an empty range when none was asked."""
    parent: int | None
    depth: int
    cut: int
    """Units on the first side when it splits; 0 for the middle."""
    test: SequentialPlan
    estimate: FlipEstimate = _NOTHING_SEEN
    look: int = -1
    """The look at which `query` ends; −1 before the first."""
    verdict: Verdict | None = None

    @property
    def size(self) -> int:
        return len(self.query.channels)

    def decision(self) -> Decision:
        """What the counts at the present look allow."""
        return self.test.decide(self.look, self.estimate.associated.flips, self.estimate.unrelated.flips)

    def ucb(self) -> float:
        """Û_E at the present look."""
        return self.test.ucb(self.look, self.estimate.associated.flips, self.estimate.unrelated.flips)

    def judge(self) -> Verdict | None:
        """The verdict that the counts allow; None when there is more to ask."""
        decision = self.decision()
        if decision is Decision.PRUNE:
            return Verdict.DROPPED if self.size == 1 else Verdict.PRUNED
        if self.size == 1:
            return Verdict.KEPT if self.look == self.test.last else None
        return Verdict.SPLIT if decision is Decision.OPEN else None

    def next_look(self) -> int:
        """The look to ask for next: a unit that cannot be dropped is finished at once, for its estimate."""
        finish = self.size == 1 and self.look >= 0 and self.decision() is Decision.OPEN
        return self.test.last if finish else self.look + 1


@dataclass(slots=True, kw_only=True)
class Ledger:
    """Example-forwards of a search: never more than `limit` can be spent."""

    limit: float
    reserve: int
    """What testing every undecided unit singly would still cost."""
    spent: int = 0
    promised: int = 0
    """Set aside for questions about groups that are open."""

    def promise(self, cost: int) -> bool:
        """Set a group question's cost aside; False, and nothing changed, if it would pass the limit."""
        if self.spent + self.promised + self.reserve + cost > self.limit:
            return False
        self.promised += cost
        return True

    def pay(self, cost: int, *, singly: bool) -> None:
        """Spend what was set aside for a question: the reserve for a unit, the promise for a group."""
        self.spent += cost
        if singly:
            self.reserve -= cost
        else:
            self.promised -= cost
