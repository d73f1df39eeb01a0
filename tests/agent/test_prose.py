"""A model's reply: facts by name are put in, one sentence that states nothing is kept, every lie is left out."""

from __future__ import annotations

import random
from itertools import product

import pytest
from fact_talk import LIES, RESTATED, TRUTHS, case

from agent.answering.prose import composed, read, restated
from mecharule_ops.saying.fact import Fact

SEEDS = 20
FACT = Fact(sentence="Ablating m1.3 alone flips 28/40 of D+", unit="m1.3", sources=("c:7f3a7f3a7f3a",))
OTHER = Fact(sentence="The lower bound of its strength is 0.21", unit="m1.3", sources=("run:0c1f",))


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
    for seed, worded in product(range(SEEDS), RESTATED):
        told = case(seed)
        prose = read(worded(told), told.facts)
        assert prose.sentence == ""
        assert len(prose.left_out) == len(prose.facts) == 1


def test_without_its_word_rule_a_lie_would_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail."""
    lie = "It flips 28/40 of the model's arithmetic ⟦f1⟧."
    assert read(lie, [FACT]).sentence == ""
    monkeypatch.setattr("agent.answering.prose.is_empty_of_claims", lambda words: True)
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
    assert read('{"answer": "It flips ⟦f1⟧"}', [FACT]).text == FACT.cited
    assert read('{"tool": "why"}', [FACT]).text == ""
    assert read("It matters.", [FACT]).facts == ()


@pytest.mark.parametrize(
    "written", ["[f1]", "⟦f1⟧", "(f1)", "f1:", "{f1}", "- [f1]", "1. [f1]", "[ f1 ]", "f1"]
)
def test_a_fact_is_named_in_any_brackets_alone_on_its_line_or_not(written: str) -> None:
    """Each stands on a line with another fact after it: neither is taken for JSON, whatever the brackets."""
    draft = f"{written} It matters. [f2]"
    assert read(draft, [FACT, OTHER]).text.endswith(f"{FACT.cited}\n{OTHER.cited}")
    assert read(f"{written}\n[f2]", [FACT, OTHER]).text == f"{FACT.cited} {OTHER.cited}"


def test_several_facts_are_named_in_one_bracket() -> None:
    """In the order in which they are written."""
    for written in ("[f2, f1]", "(f2; f1)", "[f2 and f1]", "⟦f2, f1⟧", "[f2][f1]", "f2, f1"):
        assert read(written, [FACT, OTHER]).facts == (OTHER, FACT), written


def test_a_reply_by_schema_is_numbers_and_one_sentence() -> None:
    """The order is the model's; a sentence that states something, or a number that there is not, is left out."""
    prose = composed([2, 1, 2], "So it matters.", [FACT, OTHER])
    assert prose.text == f"So it matters.\n{OTHER.cited}\n{FACT.cited}"
    for sentence in ("It flips most of D+.", "So m1.3 matters.", "It flips 28 of them.", "It computes sums."):
        prose = composed([1], sentence, [FACT])
        assert (prose.text, prose.left_out) == (FACT.cited, (sentence,))
    assert composed([7], "", [FACT]).left_out == ("f7",)


def test_figures_without_a_name_are_answered_by_the_facts_that_hold_them() -> None:
    """All of them in facts: those facts; one that is in none: nothing."""
    assert restated("m1.3 breaks 28 of 40 associated ones.", [OTHER, FACT]) == (FACT,)
    assert restated("28 of 40, at least .21.", [OTHER, FACT]) == (OTHER, FACT)
    assert restated("m1.3 breaks 29 of 40.", [OTHER, FACT]) == ()
    assert restated("It matters.", [OTHER, FACT]) == ()


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
