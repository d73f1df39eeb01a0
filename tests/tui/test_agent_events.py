"""What a language model, its tools and the hypothesis ledger do, as events: state, one line, one chat turn."""

from __future__ import annotations

from functools import reduce

import pytest

from mecharule_ops.events import (
    Event,
    HypothesisDecided,
    HypothesisRegistered,
    LlmMessage,
    QuestionAnswered,
    ToolCalled,
)
from mecharule_ops.state.run_state import RunState
from tui.display import narrate
from tui.session import narrated

HOSTILE = "\x1b[31m[red]\u202e\nsecond line"
REPLY = LlmMessage(
    model="mock:s", purpose="question", text="It flips.", ok=True, input_tokens=1200, output_tokens=3
)
CALL = ToolCalled(tool="why", arguments='{"neuron":"m1.14"}', ok=False, result="no such unit")
ANSWERED = QuestionAnswered(
    question="why?", answer="It flips.", llm="mock:s", checked="every number checked", certificates=("7f3a",)
)
REGISTERED = HypothesisRegistered(
    hypothesis="0a1b2c3d",
    subject="m1.14",
    statement="It carries.",
    condition="carry(a, b)",
    test="held-out MCC",
    threshold=0.7,
)
DECIDED = HypothesisDecided(
    hypothesis="0a1b2c3d", subject="m1.14", state="refuted", value=0.3, n=148, positives=20
)
LINES = {
    REPLY: "mock:s (question; 1,200 + 3 tokens): It flips.",
    CALL: 'tool why {"neuron":"m1.14"}: failed: no such unit',
    ANSWERED: "answered 'why?' (mock:s): every number checked",
    REGISTERED: "hypothesis 0a1b2c3d registered: It carries. Decided by: held-out MCC, at least 0.70",
    DECIDED: "hypothesis 0a1b2c3d on m1.14: refuted (0.30 on 148 records, 20 of them flips)",
}


@pytest.mark.parametrize("event", LINES)
def test_each_is_one_line_in_every_display_and_one_turn_of_the_chat(event: Event) -> None:
    """The same sentence for the plain display and the screens; an answered question stands there as one already."""
    assert narrate(event) == LINES[event]
    turn = narrated(event)
    if event is ANSWERED:
        assert turn is None
        return
    assert turn is not None
    assert turn.text == LINES[event]


def test_no_reply_can_paint_the_terminal() -> None:
    """Control sequences and line breaks of a model's words are disarmed; a fault is said to be one."""
    said = LlmMessage(model="m", purpose="p", text=HOSTILE, ok=False, input_tokens=0, output_tokens=0)
    line = str(narrate(said))
    assert line.startswith("m (p; 0 + 0 tokens): failed: ")
    assert not set(line) & {"\x1b", "\u202e", "\n"}


def test_the_state_holds_the_ledger() -> None:
    """A hypothesis is open until it is decided; told again by a resumed run, it keeps its verdict."""
    opened = RunState().apply(REGISTERED)
    assert opened.hypotheses["0a1b2c3d"].state == "open"
    closed = reduce(RunState.apply, [DECIDED, REGISTERED], opened)
    assert closed.hypotheses["0a1b2c3d"].state == "refuted"
    assert opened.hypotheses["0a1b2c3d"].decided is None


def test_a_verdict_on_nothing_registered_is_a_broken_invariant() -> None:
    """It raises instead of inventing a prediction."""
    with pytest.raises(AssertionError, match="never registered"):
        RunState().apply(DECIDED)
