"""A model's reply: facts by name are put in, one sentence that states nothing is kept, every lie is left out."""

from __future__ import annotations

import random
from itertools import product

import pytest
from fact_talk import LIES, RESTATED, TRUTHS, case

from agent.answering.prose import read
from mecharule_ops.saying.fact import Fact

SEEDS = 20
FACT = Fact(sentence="Ablating m1.3 alone flips 28/40 of D+", unit="m1.3", sources=("c:7f3a7f3a7f3a",))


def test_a_sentence_that_states_nothing_stands_before_the_facts_it_names() -> None:
    """10 wordings about 20 units: 200 replies, none left out; the facts follow in the order they were named."""
    for seed, truth in product(range(SEEDS), TRUTHS):
        told = case(seed)
        prose = read(truth(told), told.facts)
        assert prose.left_out == (), truth(told)
        assert prose.sentence
        assert prose.text.endswith("".join(fact.cited for fact in prose.facts[-1:]))


@pytest.mark.parametrize("kind", LIES)
def test_every_kind_of_lie_is_left_out(kind: str) -> None:
    """Ten lies of each of 62 kinds: what is shown is whole facts and nothing else, and the line below says so."""
    for draw in range(10):
        told = case(draw)
        draft = LIES[kind](told, random.Random(draw))
        prose = read(draft, told.facts)
        assert prose.left_out, draft
        shown = prose.text
        for fact in told.facts:
            shown = shown.replace(fact.cited, "")
        assert not shown.strip(), (draft, prose.text)
        assert "left out" in prose.outcome()


def test_there_are_more_than_six_hundred_lies() -> None:
    assert len(LIES) * 10 >= 600


def test_a_number_said_again_is_left_out_and_its_fact_stands_in_its_place() -> None:
    """Nine true restatements: the fact says it, with its source."""
    for seed, restated in product(range(SEEDS), RESTATED):
        told = case(seed)
        prose = read(restated(told), told.facts)
        assert prose.sentence == ""
        assert len(prose.left_out) == len(prose.facts) == 1


def test_without_its_word_rule_a_lie_would_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail."""
    lie = "It flips 28/40 of the model's arithmetic ⟦f1⟧."
    assert read(lie, [FACT]).sentence == ""
    monkeypatch.setattr("agent.answering.prose._states", lambda words: False)
    assert read(lie, [FACT]).sentence == "It flips 28/40 of the model's arithmetic."


def test_one_sentence_is_kept_and_each_fact_is_put_in_once() -> None:
    """The exact form."""
    assert read("⟦f1⟧", [FACT]).text == "Ablating m1.3 alone flips 28/40 of D+ [c:7f3a7f3a7f3a]."
    prose = read("It matters ⟦f1⟧. Again it matters ⟦f1⟧.", [FACT])
    assert prose.text == "It matters. Ablating m1.3 alone flips 28/40 of D+ [c:7f3a7f3a7f3a]."
    assert prose.left_out == ()


def test_machine_text_is_never_shown() -> None:
    """JSON, code and tags are no words; a reply of nothing else says nothing."""
    draft = 'It matters ⟦f1⟧.\n```json\n{"tool": "why"}\n```\n<tool_call>{"name": "x"}</tool_call>'
    assert read(draft, [FACT]).text == "It matters. Ablating m1.3 alone flips 28/40 of D+ [c:7f3a7f3a7f3a]."
    assert read('{"answer": "It flips ⟦f1⟧"}', [FACT]).text == ""
    assert read("It matters.", [FACT]).facts == ()


def test_the_closing_line_says_what_was_left_out_and_what_was_not_checked() -> None:
    """Facts and sources are counted; the words between them are named as unchecked."""
    prose = read("It matters ⟦f1⟧. Always.", [FACT])
    assert prose.outcome() == (
        "1 fact put in from 1 source; 1 sentence of the model left out; the words between them are the model's, "
        "unchecked"
    )
    assert prose.cited == ("c:7f3a7f3a7f3a",)


def test_a_sentence_that_stands_above_is_not_said_again() -> None:
    """A new one stands with the sources of the facts that it names."""
    answer = "Ablating m1.3 flips 7/9 of D+ [c:aa11]. What lies above carries it [run:0c1f]."
    facts = (Fact(sentence="Ablating m1.3 flips 7/9 of D+", unit="m1.3", sources=("c:aa11",)),)
    assert read("What lies above carries it ⟦f1⟧.", facts, answer).sentence == ""
    assert read("So ablating m1.3 flips 7/9 of D+ ⟦f1⟧.", facts, answer).sentence == ""
    fresh = "A second task would say whether that holds elsewhere ⟦f1⟧."
    said = read(f"{fresh}\n{fresh}", facts, answer).beside
    assert said == "A second task would say whether that holds elsewhere [c:aa11]."
