"""Which part of a wave goes to whom, and what becomes of a part whose worker is lost; no model, no process, no clock.

Theory of operation. A wave is cut into parts, about `SHARES` for each worker, so that a slow worker is no long wait at
the end and a lost one loses little. A part is groups × examples of one question; it is cut by groups first, because a
worker keeps the clean pass of examples it has seen. Then, whoever is free is dealt the next part:

    what happens to a part        what becomes of it
    ───────────────────────────   ─────────────────────────────────────────────────────────────
    answered                      it is gone; answered pairs are never asked again
    its worker is lost            it is dealt first, and halved from the second loss on
    it ran out of memory          both halves are dealt first; a single pair cannot be halved
    lost `MOST_LOSSES` times      nobody is dealt it again: it is `hopeless`
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from mecharule_ops.engine.group_questions import GroupQuestion
from mecharule_ops.workers.assignment import WorkerShare

SHARES = 3
"""Parts a worker and wave, at least, where a wave is that large."""
LEAST = 64
"""Pairs of a part below which cutting it saves nothing: a forward over few rows takes as long as over one."""
MOST = 8192
"""Pairs of the largest part: what a lost worker loses."""
MOST_LOSSES = 4


def cut(wave: Sequence[GroupQuestion], workers: int) -> list[WorkerShare]:
    """The parts of a wave, in its order; together they hold every pair of every question once."""
    total = sum(question.pairs for question in wave)
    size = min(MOST, max(LEAST, -(-total // (workers * SHARES))))
    return [part for place, question in enumerate(wave) for part in _cut(place, question, size)]


def _cut(place: int, question: GroupQuestion, size: int) -> Iterator[WorkerShare]:
    examples = len(question.examples)
    wide = min(examples, size)
    high = max(1, size // wide) if wide else 1
    for top in range(0, len(question.groups), high):
        for left in range(0, examples, wide):
            rows, columns = range(len(question.groups))[top : top + high], range(examples)[left : left + wide]
            yield WorkerShare(
                question=place,
                rows=tuple(rows),
                columns=tuple(columns),
                groups=tuple(question.groups[row] for row in rows),
                examples=tuple(question.examples[column] for column in columns),
            )


def halves(part: WorkerShare) -> list[WorkerShare]:
    """The part in two, by groups, else by examples; the part itself when it is a single pair."""
    by_groups = len(part.rows) > 1
    middle = len(part.rows if by_groups else part.columns) // 2
    if not middle:
        return [part]
    cuts = slice(None, middle), slice(middle, None)
    if by_groups:
        return [replace(part, rows=part.rows[half], groups=part.groups[half]) for half in cuts]
    return [replace(part, columns=part.columns[half], examples=part.examples[half]) for half in cuts]


class Dealer:
    """The parts of one wave and who holds which."""

    def __init__(self, parts: Sequence[WorkerShare]) -> None:
        self._waiting = deque(parts)
        self._held: dict[Hashable, tuple[Hashable, WorkerShare]] = {}
        self.hopeless: list[WorkerShare] = []
        """Parts that took `MOST_LOSSES` workers with them."""

    @property
    def done(self) -> bool:
        """Whether nothing waits and nobody holds anything; `hopeless` parts are not counted."""
        return not self._waiting and not self._held

    @property
    def waiting(self) -> int:
        """Parts that nobody holds."""
        return len(self._waiting)

    @property
    def tickets(self) -> list[Hashable]:
        """Of all parts that somebody holds."""
        return list(self._held)

    def holder(self, ticket: Hashable) -> Hashable:
        """Who holds the part of a ticket."""
        return self._held[ticket][0]

    def held_by(self, worker: Hashable) -> int:
        """Parts that a worker holds."""
        return sum(holder == worker for holder, _ in self._held.values())

    def next(self) -> WorkerShare | None:
        """The part to be dealt next; None when none waits. It is `dealt` or lost to this dealer."""
        return self._waiting.popleft() if self._waiting else None

    def dealt(self, ticket: Hashable, worker: Hashable, part: WorkerShare) -> None:
        """A worker holds a part, under a ticket that names this once."""
        assert ticket not in self._held
        self._held[ticket] = worker, part

    def answered(self, ticket: Hashable) -> WorkerShare:
        """The part of a ticket, which nobody holds any more."""
        return self._held.pop(ticket)[1]

    def too_large(self, ticket: Hashable) -> bool:
        """The part of a ticket ran out of memory: deal its halves. False when it is a single pair."""
        part = self.answered(ticket)
        smaller = halves(part)
        self._waiting.extendleft(reversed(smaller))
        return len(smaller) > 1

    def lost(self, worker: Hashable) -> list[Hashable]:
        """A worker is gone: deal what it held again. The tickets that are void now."""
        void = [ticket for ticket, (holder, _) in self._held.items() if holder == worker]
        for ticket in reversed(void):
            part = self.answered(ticket)
            part = replace(part, losses=part.losses + 1)
            if part.losses >= MOST_LOSSES:
                self.hopeless.append(part)
                continue
            self._waiting.extendleft(reversed(halves(part) if part.losses > 1 else [part]))
        return void

    def remaining(self) -> list[WorkerShare]:
        """Everything that is not answered, taken from this dealer."""
        left = [*(part for _, part in self._held.values()), *self._waiting, *self.hopeless]
        self._held.clear()
        self._waiting.clear()
        self.hopeless.clear()
        return left
