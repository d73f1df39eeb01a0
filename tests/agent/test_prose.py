"""Facts by reference: values are put in, and what stands outside them is struck, checked or marked."""

from __future__ import annotations

import random
from itertools import product

import pytest
from fact_talk import LIES, TRUTHS, case

from agent.answering.prose import Fault, render
from agent.answering.repeating import unsaid
from agent.answering.restating import restates
from mecharule_ops.saying.fact import Fact

SEEDS = 20
FACT = Fact(
    template="Ablating m1.3 alone flips {value} of D+",
    value="28/40",
    unit="m1.3",
    sources=("c:7f3a7f3a7f3a",),
)


def test_truths_in_many_wordings_are_never_marked() -> None:
    """22 wordings about 20 units: 440 answers, no mark."""
    checked = 0
    for seed, truth in product(range(SEEDS), TRUTHS):
        told = case(seed)
        draft = truth(told)
        rendered = render(draft, told.facts)
        assert rendered.marks == (), (draft, rendered.text)
        checked += 1
    assert checked == 440


@pytest.mark.parametrize("kind", LIES)
def test_every_kind_of_lie_is_marked(kind: str) -> None:
    """Ten lies of each of 62 kinds: every one carries a mark that a person sees."""
    for draw in range(10):
        told = case(draw)
        draft = LIES[kind](told, random.Random(draw))
        rendered = render(draft, told.facts)
        assert rendered.marks, (draft, rendered.text)
        assert all(str(mark) in rendered.text for mark in rendered.marks), (draft, rendered.text)
        assert any(fault in rendered.sentence() for fault in Fault)


def test_there_are_more_than_six_hundred_lies() -> None:
    assert len(LIES) * 10 >= 600


def test_a_checker_without_its_word_rule_would_let_a_right_number_into_a_wrong_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The number is the fact's; only the words around it give the lie away."""
    lie = "It flips 28/40 of the model's arithmetic ⟦f1⟧."
    assert render(lie, [FACT]).marks
    assert not restates("It flips 28/40 of the model's arithmetic", FACT)
    monkeypatch.setattr("agent.answering.prose.restates", lambda *_: True)
    assert not render(lie, [FACT]).marks


def test_the_sentence_of_a_fact_is_put_in_once_and_then_cited() -> None:
    """The exact form: beside words in brackets, alone as a sentence, the second time its source alone."""
    assert render("⟦f1⟧", [FACT]).text == "Ablating m1.3 alone flips 28/40 of D+ [c:7f3a7f3a7f3a]."
    text = render("It matters ⟦f1⟧. Again ⟦f1⟧.", [FACT]).text
    assert (
        text == "It matters (ablating m1.3 alone flips 28/40 of D+ [c:7f3a7f3a7f3a]). Again [c:7f3a7f3a7f3a]."
    )
    struck = render("It flips all of D+ ⟦f1⟧.", [FACT]).text
    assert struck.startswith("It flips ~~all~~ [not from a fact] of D+ (ablating")


def test_machine_text_and_repeated_sentences_are_never_shown() -> None:
    """JSON, code, tags and the same sentence twice are left out; an answer of nothing else is empty."""
    draft = 'It matters ⟦f1⟧. It matters ⟦f1⟧.\n```json\n{"tool": "why"}\n```\n<tool_call>{"name": "x"}</tool_call>'
    text = render(draft, [FACT]).text
    assert text.count("It matters") == 1
    assert not set("{}<>`") & set(text)
    assert render('{"answer": "It flips ⟦f1⟧"}', [FACT]).text == ""
    assert not render("It matters.", [FACT]).is_supported


def test_the_closing_line_says_what_was_not_checked() -> None:
    """Facts and sources are counted; the words between them are named as unchecked."""
    rendered = render("It matters ⟦f1⟧, always.", [FACT])
    assert rendered.sentence() == (
        "1 fact put in from 1 source; 1 not from a fact; the words between them are the model's, unchecked"
    )
    assert rendered.cited == ("c:7f3a7f3a7f3a",)


def test_a_sentence_that_stands_above_is_not_said_again() -> None:
    """In the same words, in most of them, or twice in the addition; a new one stays with the facts that it names."""
    answer = "Ablating m1.3 flips 7/9 of D+ [c:aa11]. Random units flip none [run:0c1f]."
    facts = (Fact(template="Ablating m1.3 flips 7/9 of D+", unit="m1.3", sources=("c:aa11",)),)

    def added(draft: str) -> str:
        return unsaid(render(draft, facts, facts), answer).text

    assert added("⟦f1⟧ Ablating m1.3 flips 7/9 of D+.") == ""
    assert added("So ablating m1.3 flips 7/9 of D+ ⟦f1⟧.") == ""
    fresh = "A second task would say whether that holds elsewhere ⟦f1⟧."
    assert added(f"{fresh}\n{fresh}") == "A second task would say whether that holds elsewhere [c:aa11]."
    assert unsaid(render("⟦f1⟧", facts, facts), answer).used == ()
