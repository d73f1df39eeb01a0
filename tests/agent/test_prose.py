"""The check of a model's words: what it marks, what it leaves, and that nothing is removed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.prose import MARK, Cited, check, cited_in, marked

FACTS = {
    "f1": Cited(
        id="f1",
        sentence="Without head a20.h8 SmolLM2 gets 109 of 128 sums of 100-199 wrong that it had right (p = .05)",
        arguments='{"neuron":"a20.h8","limit":40}',
    ),
    "f2": Cited(
        id="f2",
        sentence="Of 117 held-out answers it flips 58 of 64 (91 %), MCC .34 [-.03, .57], in 1,234 runs",
    ),
    "f3": Cited(id="f3", sentence="m4.12 flips 3 of 64"),
}
HOLD = (
    "Without a20.h8 109 of 128 sums break [f1].",
    "That is 85 % of them [f1].",
    "58/64 (90.6%) on held-out answers [f2].",
    "The MCC is 0.34, between −0.03 and .57 [f2].",
    "It took 1234 runs [f2].",
    "Limited to 40 rows [f1].",
    "Sicher ist: 58 von 64 [f2]!",
    "It breaks sums. That is 109 of 128. So it matters [f1].",
    "The strongest head breaks most sums.",
    "a20.h8 and m4.12 differ: 109 of 128 against 3 of 64 [f1, f3].",
    "You asked about 80 + 21.",
    "1. First, it breaks 109 of 128 [f1].",
)
FAIL = (
    ("Without a20.h8 110 of 128 sums break [f1].", "110 of 128"),
    ("It flips 64 of 109 [f1, f2].", "64 of 109"),
    ("Head a21.h2 flips 109 of 128 [f1].", "a21.h2"),
    ("The MCC is -.34 [f2].", "-.34"),
    ("The MCC is .35 [f2].", ".35"),
    ("It flips 84 % [f1].", "84 %"),
    ("It breaks 109 of 128 sums.", "cites no fact"),
    ("It breaks 109 of 128 sums [f9].", "no fact f9"),
    ("p is 1 [f2].", "1"),
    ("m4.12 flips 109 of 128 [f3].", "109 of 128"),
    ("It flips 58 of 64 [f1].", "58 of 64"),
)


@pytest.mark.parametrize("said", HOLD)
def test_what_its_facts_hold_is_left_as_it_is(said: str) -> None:
    checked = check(said, FACTS, "why does 80 + 21 break?")
    assert [one.fault for one in checked] == [""] * len(checked)
    assert marked(said, checked) == said


@pytest.mark.parametrize(("said", "named"), FAIL)
def test_what_its_facts_do_not_hold_is_marked_and_stays(said: str, named: str) -> None:
    checked = check(said, FACTS, "why?")
    (fault,) = [one.fault for one in checked if one.fault]
    assert named in fault
    assert marked(said, checked) == f"{said} {MARK} ({fault})"


def test_each_sentence_is_judged_by_its_own_facts_and_those_cited_next() -> None:
    text = "109 of 128 break [f1]. It flips 58 of 64 on others. So it is [f2]\n- 3 of 64 for m4.12 [f3]"
    checked = check(text, FACTS)
    assert [one.cites for one in checked] == [("f1",), ("f2",), ("f2",), ("f3",)]
    assert cited_in(checked) == ("f1", "f2", "f3")
    assert not any(one.fault for one in checked)


LIES = ("one more", "one less", "another total", "halved", "swapped", "another unit", "the sign", "doubled")


def _lie(kind: str, flips: int, n: int, unit: int) -> str:
    told = {
        "one more": (flips + 1, n),
        "one less": (flips - 1, n),
        "another total": (flips, n + 1),
        "halved": (flips, n // 2 - 1),
        "swapped": (n, flips),
        "doubled": (2 * flips + 1, n),
    }
    if kind in told:
        return f"m1.{unit} flips {told[kind][0]} of {told[kind][1]} [f1]."
    if kind == "another unit":
        return f"m1.{unit + 1} flips {flips} of {n} [f1]."
    return f"The MCC of m1.{unit} is {-flips / n:.2f} [f1]."


@given(
    kind=st.sampled_from(LIES),
    flips=st.integers(3, 60),
    n=st.integers(101, 400),
    unit=st.integers(0, 500),
)
def test_a_false_figure_is_always_marked(kind: str, flips: int, n: int, unit: int) -> None:
    """Scripted lies about drawn facts: none with a false figure or unit passes, and the true sentence does."""
    truth = f"m1.{unit} flips {flips} of {n} ({flips / n:.0%}), MCC {flips / n:.2f}"
    facts = {"f1": Cited(id="f1", sentence=truth)}
    assert not any(one.fault for one in check(f"{truth} [f1].", facts))
    lie = _lie(kind, flips, n, unit)
    assert any(one.fault for one in check(lie, facts)), (truth, lie)


@given(st.text(max_size=200), st.sampled_from(["[f1]", "[f2, f3]", ""]))
def test_no_text_breaks_the_check_or_loses_a_word(text: str, cited: str) -> None:
    said = f"{text} {cited}"
    shown = marked(said, check(said, FACTS))
    assert (
        re.sub(rf" {MARK} \(.*?not in .*?\)| {MARK} \(there is no fact .*?\)", "", shown) == said
        or MARK in shown
    )
    if MARK not in shown:
        assert shown == said
