"""Models that are right, or wrong, on everything or nearly: what is missing is said, with a cure for the direction."""

from pathlib import Path

import pytest
from bundled_run import QUICK, finish, new_run

from agent.verbs.runner import report_of
from mecharule_ops.events import Notice, Price
from mecharule_ops.types import Regime


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
        told = [event.text for event in finish(run)[1] if isinstance(event, Notice)]
    (said,) = [text for text in told if "are few" in text]
    assert ("right answers", "wrong answers")[1 - regime] in said
    assert cure in said
    assert ("larger model" in said) == (regime == 1)


@pytest.mark.parametrize("search", ["guided", "cha", "exhaustive"])
def test_halves_that_rule_nothing_out_are_said_before_any_price(tmp_path: Path, search: str) -> None:
    """A search in groups then asks nothing and names none; the cure that the sentence names does ask."""
    settings = {
        **{**QUICK, "model": "known/parity", "task": "program", "task_settings": {"program": "parity"}},
        **{"bases": ("mlp_hidden",), "records": 50, "tau": 0.05, "search": search},
    }
    with new_run(tmp_path / "small.mecharule", settings) as run:
        found, events = finish(run)
    priced = [place for place, event in enumerate(events) if isinstance(event, Price)]
    (warned,) = (
        place for place, event in enumerate(events) if isinstance(event, Notice) and event.level == "warning"
    )
    alone = search == "exhaustive"
    assert ("larger model; no group is asked" in events[warned].text) != alone
    assert (len(priced), found.searches[0].nothing_searched) == (int(alone), not alone)
    assert all(warned < place for place in priced)
    told = report_of(found)
    assert (told.exit_code == 0) == alone
    assert ("Nothing was searched, so nothing is claimed." in told.text) != alone
    assert alone or f"`mecharule run --from {found.run} --search exhaustive`" in " ".join(told.text.split())


HIST = {
    **{"model": "known/hist", "task": "program", "bases": ("attn_head",)},
    **{"controls": 1, "chains_for": 0, "accounts_for": 0},
}


def test_a_model_that_is_right_on_everything_is_searched_without_a_splitter(tmp_path: Path) -> None:
    """1→0 finds the one head, its rule tells which inputs flip, and it is said what split in the rule's place. Beside
    it the direction that no record starts from is said to be unsearched, which is no failure."""
    with new_run(tmp_path / "a.mecharule", {**HIST, "regimes": (1, 0)}) as run:
        found = finish(run)[0]
    search, other = found.searches
    assert found.task_score.count == found.task_score.n == 729
    assert [str(agonist.neuron) for agonist in search.tau_agonists] == ["a0.h0"]
    assert [rule.held_out.mcc for rule in search.anchored if rule.held_out] == [1.0]
    assert search.splitter is None
    assert search.split_note == (
        "every answer is right, so no rule tells right from wrong; the spectral split stands in"
    )
    assert (search.nothing_searched, other.nothing_searched) == (False, True)
    assert other.regime is Regime.BASELINE_NEGATIVE
    report = report_of(found)
    nothing = "(0→1): nothing was searched: no train record has this baseline outcome."
    assert nothing in " ".join(report.text.split())
    assert report.exit_code == 0
