"""Who picks among priced tests: what tells most a forward, a coin, the picks of an earlier investigation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from agent.investigating.investigation import BoardFact, Rival, Step


@dataclass(frozen=True, slots=True)
class GreedyPolicy:
    """The first offered: they come by what they tell a forward."""

    def pick(self, offered: list[Step], rivals: list[Rival], board: list[BoardFact]) -> Step | None:
        return offered[0]


@dataclass(slots=True)
class AtRandom:
    """Any that can be afforded, with equal chances: what a benchmark compares with."""

    generator: np.random.Generator = field(default_factory=np.random.default_rng)

    def pick(self, offered: list[Step], rivals: list[Rival], board: list[BoardFact]) -> Step | None:
        return offered[int(self.generator.integers(len(offered)))]


@dataclass(slots=True)
class AsBefore:
    """The stored steps again, in their order; what they cost then is nothing now."""

    steps: Sequence[Step]
    done: int = 0

    def pick(self, offered: list[Step], rivals: list[Rival], board: list[BoardFact]) -> Step | None:
        if self.done == len(self.steps):
            return None
        wanted = self.steps[self.done]
        self.done += 1
        return wanted if any(_same(step, wanted) for step in offered) else None


def _same(one: Step, other: Step) -> bool:
    """Whether two steps are one test, whatever they cost and tell, and however many records a purse then allowed."""
    return all(one[key] == other[key] for key in ("kind", "units", "regime", "rivals"))
