"""Too few answers are said with a cure for the direction that has them."""

from __future__ import annotations

from pathlib import Path

import pytest
from bundled_run import QUICK, finish, new_run

from agent.verbs.runner import report_of
from mecharule_ops.events import Notice, Price


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


@pytest.mark.parametrize("search", ["guided", "cha", "exhaustive"])
def test_halves_that_rule_nothing_out_are_said_before_any_price(tmp_path: Path, search: str) -> None:
    """A search in groups then asks nothing and names none; the cure that the sentence names does ask."""
    settings = {
        **QUICK,
        "model": "known/parity",
        "task": "program",
        "task_settings": {"program": "parity"},
        "bases": ("mlp_hidden",),
    }
    with new_run(
        tmp_path / "small.mecharule", {**settings, "records": 50, "tau": 0.05, "search": search}
    ) as run:
        found, events = finish(run)
    priced = [place for place, event in enumerate(events) if isinstance(event, Price)]
    (warned,) = (
        place for place, event in enumerate(events) if isinstance(event, Notice) and event.level == "warning"
    )
    alone = search == "exhaustive"
    assert ("test each unit alone (--search exhaustive); no group is asked" in events[warned].text) != alone
    assert (len(priced), found.searches[0].nothing_searched) == (int(alone), not alone)
    assert all(warned < place for place in priced)
    if not alone:
        assert f"`mecharule run --from {found.run} --search exhaustive`" in " ".join(
            report_of(found).text.split()
        )
