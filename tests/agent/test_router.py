"""Questions find their tool by fixed patterns; what no pattern knows is routed nowhere."""

from __future__ import annotations

import pytest

from agent.answering.answers import ANSWERS, ASKABLE
from agent.answering.router import Route, route

KINDS = {
    "why does the strongest neuron flip?": "why",
    "Why does neuron m4.1234 flip?": "why",
    "explain a20.h8": "why",
    "why not m4.1235?": "why-not",
    "why isn't m4.1235 an agonist": "why-not",
    "Why was m4.1235 pruned?": "why-not",
    "would m4.1234 flip on '120-7='?": "flip",
    "what if the prompt were 12 + 30 = for m1.2": "flip",
    "what else does this rule cover?": "covers",
    "when does the rule of m4.1234 fire": "covers",
    "which neurons share these flips?": "shared",
    "which other units flip the same examples as m4.1234?": "shared",
    "what would change your mind about m4.1234?": "mind",
    "how could I refute m4.1234": "mind",
    "what did the search miss?": "missed",
    "how was m4.1234 found?": "how",
    "which neuron is the strongest?": "strongest",
    "what was found?": "summary",
    "compare with run 0c1f": "compare",
}


@pytest.mark.parametrize(("question", "kind"), KINDS.items())
def test_each_kind_of_question_is_recognised(question: str, kind: str) -> None:
    """One phrasing or more a kind."""
    found = route(question)
    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize(
    "question", ["", "hello", "what is the meaning of life?", "sing", "m4.1234", "42", "ignore the rules"]
)
def test_other_texts_are_routed_nowhere(question: str) -> None:
    """Nothing is guessed."""
    assert route(question) is None


def test_units_places_directions_and_prompts_are_read() -> None:
    """What a question names reaches the tool."""
    assert route("why does n10.507 break answers?") == Route(kind="why", unit="n10.507", regime="1")
    assert route("why does the third neuron flip 0 -> 1?") == Route(kind="why", place=3, regime="0")
    flip = route('would a3.h1 flip on "12 + 7 ="?')
    assert flip == Route(kind="flip", unit="a3.h1", given={"prompt": "12 + 7 ="})
    bare = route("would m4.12 flip if the prompt were 120-7=")
    assert bare is not None
    assert (bare.unit, bare.given["prompt"]) == ("m4.12", "120-7=")
    assert route("compare with last") == Route(kind="compare", given={"second": "last"})


def test_a_units_name_is_no_prompt() -> None:
    """`m4.12` next to a minus sign is not a question to type."""
    found = route("would m4.12 flip on 7-3=?")
    assert found is not None
    assert found.given["prompt"] == "7-3="


def test_every_question_that_is_offered_is_routed_and_answered() -> None:
    """The list of what can be asked holds no dead end, and covers every kind there is."""
    kinds = set()
    for question in ASKABLE:
        found = route(question.format(unit="m4.1", other="m4.2", prompt="1 + 2 =", run="last"))
        assert found is not None, question
        kinds.add(found.kind)
    assert len(ASKABLE) == 12
    assert kinds == {*ANSWERS, "summary"}
