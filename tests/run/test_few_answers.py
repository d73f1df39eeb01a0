"""Too few answers are said with a cure for the direction that has them."""

from __future__ import annotations

from pathlib import Path

import pytest
from bundled_run import QUICK, finish, new_run

from mecharule_ops.events import Notice


@pytest.mark.parametrize(
    ("regime", "cure"),
    [
        (1, "more rows, other few-shot lines (--few-shot FILE), a larger model"),
        (0, "harder ones, a smaller model"),
    ],
)
def test_the_cure_for_few_answers_brings_more_of_them(tmp_path: Path, regime: int, cure: str) -> None:
    """A larger model is right more often, so it has fewer wrong answers to flip."""
    with new_run(tmp_path / "few.mecharule", {**QUICK, "regimes": (regime,)}) as run:
        said = [
            event.text for event in finish(run)[1] if isinstance(event, Notice) and "are few" in event.text
        ]
    assert len(said) == 1
    assert ("right answers", "wrong answers")[1 - regime] in said[0]
    assert cure in said[0]
    assert ("larger model" in said[0]) == (regime == 1)
