"""Workers of a made-up crew: whatever happens to them, answers are those of one process, and each loss is told once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from table_engine import TableEngine

from mecharule_ops.engine.group_questions import GroupQuestion, InTurn
from mecharule_ops.errors import AblationStopped
from mecharule_ops.types import Baseline, Basis, Intervention, Neuron, Phase
from mecharule_ops.workers.assignment import Assignment, Done, Failed, WorkerShare
from mecharule_ops.workers.pool import Lost, WorkerFailed, Workers

UNITS, RECORDS = 24, 40
ENGINE = TableEngine(flips=np.random.default_rng(0).random((UNITS, RECORDS)) < 0.2)
ASSIGNMENT = Assignment(
    settings="{}",
    device="cpu",
    dtype="float32",
    model_hash="",
    tokenizer_hash="",
    records=(),
    intervention=Intervention(basis=Basis.MLP_OUT, baseline=Baseline.ZERO, phase=Phase.DECODE),
    replacement={},
    slope=None,
)
WAVE = [
    GroupQuestion(
        groups=tuple((Neuron(Basis.MLP_OUT, layer, unit),) for unit in range(UNITS)), examples=tuple(examples)
    )
    for layer, examples in enumerate((range(RECORDS), range(5, 25)))
]


class Table:
    """A crew whose workers read a table; `fault` may say something else of a call, by worker and number of its call."""

    def __init__(self, count: int, fault: Callable[[int, int], object] = lambda worker, call: None) -> None:
        self.count, self.fault = count, fault
        self.hired = self.tickets = 0
        self.calls: dict[int, int] = {}
        self.open: dict[int, tuple[int, object]] = {}
        self.dead: set[int] = set()
        self.late: set[int] = set()
        self.closed = False
        self.poison: tuple[Neuron, ...] | None = None
        self.answered_by: deque[int] = deque()
        self.order = np.random.default_rng(0)

    def hire(self, cards: int) -> int:
        self.hired += 1
        return self.hired

    def take(self, worker: Any, assignment: Assignment) -> int:
        return self._ticket(worker, self.fault(worker, 0))

    def answer(self, worker: Any, key: str, part: WorkerShare) -> int:
        self.calls[worker] = self.calls.get(worker, 0) + 1
        said = self.fault(worker, self.calls[worker])
        if self.poison in part.groups:
            said = Lost(reason="killed")
        if said is None:
            found = ENGINE.evaluate(part.groups, part.examples)
            said = Done(outcomes=found, seconds=0.0)
        return self._ticket(worker, said)

    def ended(self, tickets: Sequence[Any], seconds: float) -> list[tuple[Any, object]]:
        """One at a time, in any order; a lost worker loses all its calls."""
        for ticket in self.order.permutation(sorted(tickets)).tolist():
            worker, said = self.open[ticket]
            if worker in self.dead or isinstance(said, Lost):
                self.dead.add(worker)
                return [(ticket, Lost(reason="killed"))]
            if worker in self.late and len(self.answered_by) < 3:
                continue
            self.answered_by.append(worker)
            return [(ticket, said)]
        return []

    def dismiss(self, worker: Any) -> None:
        self.dead.add(worker)

    def close(self) -> None:
        self.closed = True

    def _ticket(self, worker: int, said: object) -> int:
        self.tickets += 1
        self.open[self.tickets] = worker, said
        return self.tickets


def answers(crew: Table, **settings: Any) -> tuple[list[np.ndarray], list[str]]:
    """The labels of the wave, every pair answered exactly once, and what was told."""
    told: list[str] = []
    workers = Workers(crew=crew, tell=told.append)
    labels = [np.zeros((len(one.groups), len(one.examples)), bool) for one in WAVE]
    times = [np.zeros(each.shape, int) for each in labels]
    asked = workers.assigned(ASSIGNMENT, alone=lambda: InTurn(ENGINE), **settings)
    for answer in asked.answers(WAVE):
        where = np.ix_(answer.rows, answer.columns)
        labels[answer.question][where] = answer.labels
        times[answer.question][where] += 1
    assert all((each == 1).all() for each in times)
    return labels, told


TRUTH = [ENGINE.evaluate(one.groups, one.examples).labels for one in WAVE]
MEMORY = Failed(out_of_memory=True, sentence="MemoryError", exit_code=1)


def right(labels: list[np.ndarray]) -> bool:
    return all((one == other).all() for one, other in zip(labels, TRUTH, strict=True))


@pytest.mark.parametrize("count", [1, 2, 7])
def test_workers_answer_what_one_process_answers(count: int) -> None:
    crew = Table(count)
    labels, told = answers(crew)
    assert right(labels)
    assert told == []
    assert len(set(crew.answered_by)) == count


def test_a_worker_that_is_lost_is_told_once_and_replaced_and_nothing_changes() -> None:
    crew = Table(2, lambda worker, call: Lost(reason="killed") if (worker, call) == (1, 2) else None)
    labels, told = answers(crew)
    assert right(labels)
    assert told == [
        "a worker was lost (killed); what it held is asked again, and another one is started; results stay the same"
    ]
    assert crew.hired == 3


def test_when_all_are_lost_this_process_goes_on_alone() -> None:
    """Each was replaced once; then nobody is left."""
    crew = Table(2, lambda worker, call: Lost(reason="killed") if call == 1 else None)
    labels, told = answers(crew)
    assert right(labels)
    assert crew.hired == 4
    assert told[-1] == "no worker is left; this process goes on alone"


def test_a_part_without_room_is_asked_again_in_halves() -> None:
    """A worker has room for the second half only after two failures."""
    crew = Table(1, lambda worker, call: MEMORY if call in (1, 2) else None)
    labels, told = answers(crew)
    assert right(labels)
    assert told == []


def test_one_that_joins_late_is_asked_from_then_on() -> None:
    crew = Table(2)
    crew.late = {2}
    labels, told = answers(crew)
    assert right(labels)
    assert told == []
    assert list(crew.answered_by)[:3] == [1, 1, 1]
    assert 2 in crew.answered_by


def test_one_without_room_for_the_model_is_let_go() -> None:
    crew = Table(2, lambda worker, call: MEMORY if (worker, call) == (2, 0) else None)
    labels, told = answers(crew)
    assert right(labels)
    assert set(crew.calls) == {1}
    assert told == ["a worker has no room for the model and is let go: MemoryError"]


def test_what_this_process_would_meet_too_ends_the_run_with_its_exit_code() -> None:
    missing = Failed(out_of_memory=False, sentence="expected m in /m, found nothing", exit_code=3)
    with pytest.raises(WorkerFailed, match="a worker failed: expected m") as caught:
        answers(Table(2, lambda worker, call: missing if call == 0 else None))
    assert caught.value.exit_code == 3


def test_a_question_that_takes_every_worker_with_it_is_given_up() -> None:
    crew = Table(9)
    crew.poison = WAVE[0].groups[3]
    with pytest.raises(WorkerFailed, match="4 of them were lost over the same question"):
        answers(crew)


def test_a_stop_ends_all_workers() -> None:
    crew = Table(2)
    with pytest.raises(AblationStopped):
        answers(crew, should_stop=lambda: crew.tickets > 3)
    assert crew.closed


def test_after_a_stop_nobody_is_hired_and_nothing_is_told() -> None:
    """Later stages of a stopped run may ask once more."""
    crew, told = Table(2), list[str]()
    workers = Workers(crew=crew, tell=told.append)
    asked = workers.assigned(ASSIGNMENT, alone=lambda: InTurn(ENGINE), should_stop=lambda: True)
    for _ in range(2):
        with pytest.raises(AblationStopped):
            list(asked.answers(WAVE))
    alone = InTurn(ENGINE)
    assert workers.assigned(ASSIGNMENT, alone=lambda: alone) is alone
    assert crew.hired == 2
    assert told == []


def test_that_nobody_joins_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mecharule_ops.workers.pool.PATIENCE", 3)
    crew = Table(1)
    crew.ended = lambda tickets, seconds: []  # type: ignore[method-assign]
    told: list[str] = []
    workers, polls = Workers(crew=crew, tell=told.append), iter(range(9))
    asked = workers.assigned(ASSIGNMENT, alone=lambda: InTurn(ENGINE), should_stop=lambda: next(polls) == 8)
    with pytest.raises(AblationStopped):
        list(asked.answers(WAVE))
    assert told == ["no worker has joined so far: its machine may lack processors, cards or memory"]
