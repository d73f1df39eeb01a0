"""The judge of answers to users' questions: what it lets pass, what it does not, and that the unseen half stays so."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from benchmarks import question_table
from benchmarks.question_table import Question, Reply, judged, main, parted, questions, row

STRONGEST = Question(
    ask="wich nueron is strongest??",
    answerable=True,
    must=((r"m1\.14\b",), (r"\b8 ?(/|of|out of) ?(these )?32\b", r"\b25 ?%")),
    must_not=(r"strongest is m1\.99",),
    about="m1.14, 8 of 32",
)
BEYOND = Question(
    ask="would GPT-4 have it?",
    answerable=False,
    must=((r"\bnot\b",),),
    must_not=(r"flips \d",),
    about="not held",
)


def said(text: str) -> Reply:
    """A reply that claims something."""
    return Reply(text=text, refused=False)


REFUSAL = Reply(text="I did not understand that, so I claim nothing.", refused=True)


@pytest.mark.parametrize(
    "text",
    ["M1.14 flips 8 of these 32 of D+ (25 %).", "m1.14: 8/32", "It is m1.14,\nwith 25\u00a0% of\nD⁺."],
)
def test_a_right_answer_may_be_worded_as_it_likes(text: str) -> None:
    """Counts and shares in any form, over line ends, in any case."""
    assert judged(STRONGEST, said(text)) == "right"


@pytest.mark.parametrize(
    "text",
    [
        "m1.14 flips 7 of these 32 of D+ (22 %).",
        "m1.99 flips 8 of these 32 of D+ (25 %).",
        "m1.140 flips 8 of 32",
        "m1.14 flips 18 of 32",
        "m1.14 flips 8 of 32, but the strongest is m1.99.",
        "",
    ],
)
def test_a_wrong_answer_is_seen(text: str) -> None:
    """Another count, another unit, one too many, and nothing at all."""
    assert judged(STRONGEST, said(text)) == "wrong"


def test_a_refusal_is_right_only_where_nothing_holds_the_answer() -> None:
    """Saying so in other words is right too; claiming something is wrong."""
    assert judged(STRONGEST, REFUSAL) == "refused"
    assert judged(BEYOND, REFUSAL) == "right"
    assert judged(BEYOND, said("GPT-4 was not tested here.")) == "right"
    assert judged(BEYOND, said("Not told apart: m1.14 flips 8 of 32.")) == "wrong"
    assert judged(BEYOND, said("Yes.")) == "wrong"


def test_a_question_may_be_right_among_its_readings() -> None:
    """One of those that are shown, alone and in itself; without such a one it is refused or wrong."""
    shown = Reply(text="I did not understand that.", refused=True, readings=("m1.99: 7/32", "m1.14: 8/32"))
    assert judged(STRONGEST, shown) == "among"
    assert judged(STRONGEST, replace(shown, readings=("m1.14: 7/32", "m1.99: 8/32"))) == "refused"
    assert judged(STRONGEST, replace(shown, readings=("m1.14: 8/32; the strongest is m1.99",))) == "refused"
    beside = "If you mean “which?”: m1.14: 8/32."
    other = Reply(
        text=f"Two were found.\n{beside}\nSource: run b00d.", refused=False, readings=("m1.14: 8/32.",)
    )
    assert judged(STRONGEST, other) == "among"
    assert judged(STRONGEST, replace(other, readings=())) == "wrong"
    assert judged(STRONGEST, replace(other, text=f"m1.14: 8/32.\n{beside}", readings=("two",))) == "right"
    assert judged(BEYOND, shown) == "among"
    held = replace(BEYOND, answerable=True)
    assert judged(held, Reply(text="There is no answer to that: not held.", refused=True)) == "right"
    assert judged(held, Reply(text="I did understand nothing.", refused=True)) == "refused"


def test_the_committed_questions_are_parted_by_their_words() -> None:
    """150, none twice, each with something to be judged by, in halves by the rule that the page names."""
    seen, unseen = ({one.ask for one in questions(half)} for half in ("seen", "unseen"))
    assert (len(seen), len(unseen)) == (75, 75)
    assert (seen, unseen) == parted(seen | unseen)
    for one in (*questions("seen"), *questions("unseen")):
        assert one.about
        assert one.must
        assert all(one.must)
        assert all(re.compile(pattern) for pattern in (*sum(one.must, ()), *one.must_not))


def test_an_answer_that_says_nothing_passes_no_question() -> None:
    """Neither an empty answer nor an idle one nor the question said back meets what a right answer must have."""
    every = (*questions("seen"), *questions("unseen"))
    for idle in ("", "Yes.", "Thank you for asking."):
        assert {judged(one, said(idle)) for one in every} == {"wrong"}
    assert [one.ask for one in every if judged(one, said(f"{one.first or ''} {one.ask}")) == "right"] == []


def test_unseen_answers_are_not_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `--show seen` the misses of that half stand above the table, and of the other only counts."""
    monkeypatch.setenv("MECHARULE_RUNS", "")
    monkeypatch.setattr(question_table, "replied", lambda question, packed: said(f"<{question.ask}>"))
    assert main(["--show", "seen"]) == 0
    shown = capsys.readouterr().out
    assert [one.ask for one in questions("seen") if f"<{one.ask}>" not in shown] == []
    assert [one.ask for one in questions("unseen") if one.ask in shown] == []
    assert len(re.findall(r"^(?:seen|unseen) +75 asked", shown, re.MULTILINE)) == 2
    with pytest.raises(SystemExit):
        main(["--show", "unseen"])


def test_a_row_counts_what_came_back() -> None:
    """Right, refused and wrong, and of those that nothing answers."""
    replies = (
        (STRONGEST, said("m1.14: 8/32")),
        (STRONGEST, REFUSAL),
        (STRONGEST, said("no")),
        (BEYOND, REFUSAL),
    )
    of = [
        question_table.Judged(question=one, reply=reply, verdict=judged(one, reply)) for one, reply in replies
    ]
    shown = " ".join(row("seen", of).split())
    assert shown.startswith("seen 4 asked 2 right 0 among 1 refused 1 wrong ")
    assert shown.endswith(
        "(answerable: 1 of 3 right, 0 among readings, 1 wrong; not answerable: 1 of 1 right)"
    )
