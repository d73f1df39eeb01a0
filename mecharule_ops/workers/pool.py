"""Workers that answer waves: what is asked of whom, what a lost worker means, how they are stopped.

How a wave is cut and dealt is told in `dealing`; how workers are reached in `on_ray`. Nothing here knows Ray: a `Crew`
hires workers and hands over calls, and a ticket stands for each call until it has ended.

A worker is asked only once it holds the assignment, so one that joins late joins the next deal. A worker that is lost
is told once, replaced once, and what it held is asked again; when none is left, this process answers the rest alone.
Ray's own restarts and retries would ask the very call again that ended a worker, tell nobody, and never halve it; its
pool of actors gives up with the first that is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from mecharule_ops.engine.group_questions import Answer, Answering, GroupQuestion
from mecharule_ops.errors import AblationStopped, MechaRuleError
from mecharule_ops.workers.assignment import Assignment, Done, Failed, WorkerShare
from mecharule_ops.workers.dealing import MOST_LOSSES, Dealer, cut

POLL = 0.1
"""Seconds after which a stop is noticed."""
PATIENCE = 600
"""Polls without anybody at work after which it is said."""

Worker = Hashable
Ticket = Hashable


class WorkerFailed(MechaRuleError):
    """What a worker met that this process would have met too, or that no other worker can make good."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(f"a worker failed: {failed.sentence}")
        self.exit_code = failed.exit_code


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A call whose worker is gone."""

    reason: str


class Crew(Protocol):
    """Processes that hold a `Replica` each."""

    count: int
    """How many there shall be."""

    def hire(self, cards: int) -> Worker:
        """A new worker with so many CUDA cards of its own, which may take a while to be there."""

    def take(self, worker: Worker, assignment: Assignment) -> Ticket:
        """Have a worker take an assignment; ends in `Failed` or None."""

    def answer(self, worker: Worker, key: str, part: WorkerShare) -> Ticket:
        """Ask a worker; ends in `Done` or `Failed`."""

    def ended(self, tickets: Sequence[Ticket], seconds: float) -> list[tuple[Ticket, object]]:
        """Calls that have ended, with what they gave or `Lost`; waits so long for the first one."""

    def dismiss(self, worker: Worker) -> None:
        """End a worker, whatever it does."""

    def close(self) -> None:
        """End every worker and all that was started for them."""


@dataclass(kw_only=True, eq=False)
class Workers:
    """The workers of a run; the first assignment hires them."""

    crew: Crew
    tell: Callable[[str], None] = lambda text: None
    """Hears what a person should know."""
    _taken: dict[Worker, set[str]] = field(default_factory=dict)
    """Of each worker that is there, the assignments that it holds."""
    _taking: dict[Ticket, tuple[Worker, str]] = field(default_factory=dict)
    _replaced: int = 0
    _seconds: float = 0.0
    _forwards: int = 0
    _closed: bool = False

    @property
    def count(self) -> int:
        """How many answer at once, once all have joined."""
        return self.crew.count

    @property
    def pace(self) -> float | None:
        """Seconds an example-forward with all workers at work, their start left out; None before the first answer."""
        return self._seconds / self._forwards / self.count if self._forwards else None

    def assigned(
        self,
        assignment: Assignment,
        *,
        alone: Callable[[], Answering],
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Answering:
        """The workers under one assignment; `alone` makes what answers when all of them are lost."""
        if self._closed:
            return alone()
        if not self._taken:
            for _ in range(self.crew.count):
                self._taken[self.crew.hire(assignment.cards)] = set()
        for worker in self._taken:
            self._take(worker, assignment)
        return _Assigned(workers=self, assignment=assignment, make_alone=alone, should_stop=should_stop)

    def close(self) -> None:
        """End all workers; doing it twice is harmless."""
        if not self._closed:
            self._closed = True
            self._taken.clear()
            self._taking.clear()
            self.crew.close()

    def _take(self, worker: Worker, assignment: Assignment) -> None:
        self._taking[self.crew.take(worker, assignment)] = worker, assignment.key

    def _took(self, ticket: Ticket, result: object) -> None:
        """Enter that a worker holds an assignment. One without room for it is let go, others fail the run."""
        worker, key = self._taking.pop(ticket)
        if isinstance(result, Failed) and not result.out_of_memory:
            raise WorkerFailed(result)
        if isinstance(result, Failed):
            self.tell(f"a worker has no room for the model and is let go: {result.sentence}")
            self.crew.dismiss(worker)
            self._forget(worker)
        elif worker in self._taken:
            self._taken[worker].add(key)

    def _forget(self, worker: Worker) -> None:
        self._taken.pop(worker, None)
        self._taking = {ticket: taker for ticket, taker in self._taking.items() if taker[0] != worker}

    def _lost(self, worker: Worker, reason: str, assignment: Assignment) -> None:
        """Forget a worker, and hire one in its place as long as not all have been replaced."""
        if worker not in self._taken:
            return
        self._forget(worker)
        after = "what it held is asked again"
        if self._replaced < self.crew.count:
            self._replaced += 1
            new = self.crew.hire(assignment.cards)
            self._taken[new] = set()
            self._take(new, assignment)
            after += ", and another one is started"
        self.tell(f"a worker was lost ({reason}); {after}; results stay the same")


@dataclass(kw_only=True, eq=False)
class _Assigned:
    """The workers, asked under one assignment."""

    workers: Workers
    assignment: Assignment
    make_alone: Callable[[], Answering]
    should_stop: Callable[[], bool]
    _alone: Answering | None = None

    def answers(self, wave: Sequence[GroupQuestion]) -> Iterator[Answer]:
        """Parts of answers as they come. Raises `AblationStopped`, and `WorkerFailed` as the type says."""
        dealer, waited = Dealer(cut(wave, self.workers.count)), 0
        while not dealer.done and not self._stopped() and self.workers._taken:
            self._deal(dealer)
            waited += not dealer.tickets
            if waited == PATIENCE:
                self.workers.tell(
                    "no worker has joined so far: its machine may lack processors, cards or memory"
                )
            tickets = [*dealer.tickets, *self.workers._taking]
            for ticket, result in self.workers.crew.ended(tickets, POLL):
                answer = self._entered(dealer, ticket, result)
                if answer is not None:
                    yield answer
        if dealer.hopeless and self.workers._taken:
            raise WorkerFailed(
                Failed(
                    out_of_memory=False,
                    sentence=f"{MOST_LOSSES} of them were lost over the same question; give each more memory, start "
                    "fewer, or none",
                    exit_code=1,
                )
            )
        yield from self._answered_alone(dealer.remaining())

    def _stopped(self) -> bool:
        """False; where a stop is asked for the workers end, and `AblationStopped` is raised."""
        if self.should_stop():
            self.workers.close()
            raise AblationStopped("the workers were stopped; what they had answered is kept")
        return False

    def _deal(self, dealer: Dealer) -> None:
        """Give every worker a part, and a second one to come to while more wait than there are workers."""
        key = self.assignment.key
        ready = [worker for worker, keys in self.workers._taken.items() if key in keys]
        for deep in (1, 2):
            for worker in ready:
                if deep == 2 and dealer.waiting <= len(ready):
                    return
                if dealer.held_by(worker) < deep and (part := dealer.next()):
                    dealer.dealt(self.workers.crew.answer(worker, key, part), worker, part)

    def _entered(self, dealer: Dealer, ticket: Ticket, result: object) -> Answer | None:
        """What an ended call means; the part of an answer if it brought one."""
        taking = ticket in self.workers._taking
        if not taking and ticket not in dealer.tickets:
            return None  # Of a worker that was lost in the same moment.
        if isinstance(result, Lost):
            worker = self.workers._taking[ticket][0] if taking else dealer.holder(ticket)
            dealer.lost(worker)
            self.workers._lost(worker, result.reason, self.assignment)
        elif taking:
            self.workers._took(ticket, result)
        elif isinstance(result, Failed):
            if not (result.out_of_memory and dealer.too_large(ticket)):
                raise WorkerFailed(result)
        else:
            assert isinstance(result, Done)
            self.workers._seconds += result.seconds
            self.workers._forwards += result.outcomes.example_forwards
            part = dealer.answered(ticket)
            return Answer.of(part.question, part.rows, part.columns, result.outcomes)
        return None

    def _answered_alone(self, left: Sequence[WorkerShare]) -> Iterator[Answer]:
        """What is left when no worker is, answered by this process."""
        if not left:
            return
        if self._alone is None:
            self.workers.tell("no worker is left; this process goes on alone")
            self._alone = self.make_alone()
        questions = [GroupQuestion(groups=part.groups, examples=part.examples) for part in left]
        for answer in self._alone.answers(questions):
            part = left[answer.question]
            yield replace(
                answer,
                question=part.question,
                rows=tuple(part.rows[row] for row in answer.rows),
                columns=tuple(part.columns[column] for column in answer.columns),
            )
