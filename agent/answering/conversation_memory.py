"""What a run remembers of the questions put to it: events, the log of language models, what the last answer cites.

Questions are answered with the run open for reading; what is to be kept waits until the answer is there. A run that
another process works on is left alone, and that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from mecharule_ops.errors import StoreError
from mecharule_ops.events import Event, QuestionAnswered
from mecharule_ops.run.opening import opened
from mecharule_ops.store.keys import LAST_ANSWER, QUESTIONS, LastAnswer
from tools.registry import Tell, ToolResult

PROMPT = "converse"
FOLLOWED = 6
"""Earlier exchanges that a question can follow on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A question and its checked answer, for the next question to follow on."""

    question: str
    answer: str


class Memory:
    """One question's way into the run file."""

    def __init__(self, run: str, show: Callable[[Event], None], tell: Tell) -> None:
        self._run = run
        self._show = show
        self._tell = tell
        self._waiting: list[Event] = []

    def emit(self, event: Event) -> None:
        """Shown now, kept with the answer."""
        self._waiting.append(event)
        self._show(event)

    def exchanges(self) -> tuple[Exchange, ...]:
        """What was asked about the run before, the latest few."""
        with opened(self._run) as run:
            told = [event for _, _, event in run.store.events() if isinstance(event, QuestionAnswered)]
        return tuple(Exchange(question=one.question, answer=one.answer) for one in told[-FOLLOWED:])

    def keep(self, result: ToolResult, entry: Mapping[str, object] | None = None) -> None:
        """Puts the answer and everything told on the way into the run file, with a model's `entry` in its log."""
        answered = _answered(result)
        self.emit(answered)
        try:
            with opened(self._run, write=True) as run:
                run.store.append(self._waiting)
                if entry is not None:
                    log = run.store.get(QUESTIONS) if run.store.has(QUESTIONS) else []
                    run.store.put(QUESTIONS, [*log, dict(entry)])
                if answered.certificates:
                    cited = LastAnswer(question=answered.question, certificates=list(answered.certificates))
                    run.store.put(LAST_ANSWER, cited)
        except StoreError as error:
            self._tell(f"the question is not remembered in the run: {error}")
        self._waiting.clear()


def _answered(result: ToolResult) -> QuestionAnswered:
    return QuestionAnswered(
        question=str(result.data["question"]),
        answer=str(result.data["answer"]),
        llm=str(result.data["llm"]),
        checked=str(result.data["checked"]),
        certificates=tuple(map(str, cast(Sequence[str], result.data["certificates"]))),
    )
