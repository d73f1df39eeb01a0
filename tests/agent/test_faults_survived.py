"""Every fault of a provider, over the wire: one line, bounded retries, the answer without a model, the run kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from llm_faults import FAULTS

from agent.answering import conversation
from benchmarks.agent_faults import QUESTIONS, survives
from mecharule_ops.run.opening import opened
from mecharule_ops.store.keys import FINDINGS


@pytest.mark.parametrize("fault", FAULTS)
def test_a_question_survives_every_fault(copied_run: Path, fault: str) -> None:
    """The question that goes to the model is refused as it is offline; what was found is untouched."""
    asked = QUESTIONS[1]
    alone = str(conversation.ask(str(copied_run), asked).data["answer"])
    with opened(str(copied_run)) as run:
        before = run.store.get(FINDINGS)
    _, most = FAULTS[fault]
    assert survives(copied_run, fault, most, asked, alone)
    assert not survives(copied_run, fault, most, asked, "another answer")
    with opened(str(copied_run)) as run:
        assert run.store.get(FINDINGS) == before


def test_an_understood_question_keeps_its_answer(copied_run: Path) -> None:
    """The model was only to add; it is asked once."""
    alone = str(conversation.ask(str(copied_run), QUESTIONS[0]).data["answer"])
    assert survives(copied_run, "500", 1, QUESTIONS[0], alone)
