"""What counts as right: the table of docs/tasks.md, an oracle that cuts texts into words, and labels that stay open."""

import itertools
import re
from pathlib import Path
from unicodedata import category, normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mecharule_ops.tasks.beginning import begins, begins_with_any, telling

PAGE = Path(__file__).parents[2] / "docs" / "tasks.md"
CELLS = re.compile(r"`([^`]+)`")
KINDS = dict(zip("ab東か15_'", "LLUUNN_'", strict=True))
"""L a letter, U one of a script without spaces, N a digit; S stands inside numbers, O anywhere else."""


def documented() -> list[tuple[str, str, bool]]:
    """(text, answer, whether it is right) of every example of the page."""
    lines = [line.split("|")[2:5] for line in PAGE.read_text(encoding="utf-8").splitlines()]
    rows = [cells for cells in lines if len(cells) == 3 and CELLS.fullmatch(cells[0].strip())]
    return [
        (text, CELLS.findall(answer)[0], so)
        for answer, right, wrong in rows
        for cell, so in ((right, True), (wrong, False))
        for text in CELLS.findall(cell)
    ]


@pytest.mark.parametrize(("text", "answer", "so"), documented())
def test_every_example_of_the_page_is_so(text: str, answer: str, so: bool) -> None:
    """Also with both in the other form, and in no case where only the beginning of the answer is there."""
    assert begins(text, answer) is so
    assert begins(normalize("NFD", text), normalize("NFD", answer)) is so
    assert begins_with_any(text + "\n\n", [answer]) is so
    assert not begins(answer[:-1], answer)


def test_the_page_has_every_case_of_the_issue() -> None:
    """So that no row of it is lost without a test that fails."""
    found = {(text, answer) for text, answer, _ in documented()}
    assert {("17.5", "17"), ("can't", "can"), ("size_max", "size"), ("東京です。", "東京")} <= found
    assert {("กรุงเทพฯ", "กรุงเทพ"), ("−5", "-5"), ("it’s", "it's")} <= found
    assert len(found) > 25


def glued(text: str, place: int) -> bool:
    """Whether the character at a place goes on with the word or number before it, told from the pair and its
    neighbours alone: the rules as a table over kinds, with a column for each neighbour that matters."""
    kinds = "OO" + "".join(KINDS.get(each, "S" if each in ".,:/-" else "O") for each in text) + "OO"
    around = kinds[place : place + 4]
    rows = (
        ("?", "LN_", "LN_", "?"),
        ("?", "U", "_", "?"),
        ("?", "_", "U", "?"),
        ("?", "N", "S", "N"),
        ("N", "S", "N", "?"),
        ("?", "LU", "'", "LU"),
        ("LU", "'", "LU", "?"),
    )
    return any(
        all(kind in allowed or allowed == "?" for allowed, kind in zip(row, around, strict=True))
        for row in rows
    )


@given(st.text("ab東か15_'.-/ $", max_size=6), st.text("ab東か15_'.-/$", min_size=1, max_size=3))
def test_a_text_begins_with_an_answer_only_at_a_boundary(rest: str, answer: str) -> None:
    """Against a table of which two characters belong together, by their kinds and those of their neighbours."""
    text = answer + rest
    assert begins(text, answer) is not (bool(rest) and glued(text, len(answer)))


TWINS = {"'": "‘’ʼ′", '"': "“”„", "-": "−–‑", " ": "\u00a0\u202f"}
SPELT = st.text("aé1'\"- .東", max_size=6)


@given(SPELT, SPELT.filter(str.strip), st.data())
def test_spelling_that_no_reader_sees_changes_nothing(rest: str, answer: str, data: st.DataObject) -> None:
    """Composed or decomposed, straight or curly, with white space before: the verdict stays."""

    def other(text: str) -> str:
        typed = "".join(data.draw(st.sampled_from(TWINS.get(each, "") + each)) for each in text)
        return normalize(data.draw(st.sampled_from(("NFC", "NFD"))), typed)

    text = answer + rest
    assert begins(other(text), other(answer)) is begins(text, answer) is begins(f" \n{text}", answer)


ALPHABET = "ae1.' _\u0301東\u3099か\u1100\u1161\u11a8"
"""A mark that composes with letters, one that composes with kana, and the three parts of a Hangul syllable."""


@given(
    st.text(ALPHABET, max_size=4), st.lists(st.text(ALPHABET, min_size=1, max_size=3), min_size=1, max_size=2)
)
def test_a_label_stays_open_while_a_continuation_could_change_it(partial: str, answers: list[str]) -> None:
    """Against all continuations of two characters: what is settled is so for each of them, and nothing stays open
    for ever. Two decide: what stands inside a number, and the digit behind it."""
    answers = [one for one in answers if one.strip() and category(one.strip()[0])[0] != "M"] or ["1"]
    ends = ["".join(end) for length in range(3) for end in itertools.product(ALPHABET, repeat=length)]
    decided = begins_with_any(partial, answers)
    if decided is not None:
        assert {any(begins(partial + end, answer) for answer in answers) for end in ends} == {decided}
    longest = max(len(normalize("NFD", answer)) for answer in answers)
    assert begins_with_any(partial.strip() + "q" * (longest + 2), answers) is not None


def test_what_a_number_or_word_may_still_become_is_generated() -> None:
    """Two characters behind a number and a word, none behind what nothing can go on with."""
    assert [telling(answer) for answer in ("17", "can", "size_", "東京", "$", "x ")] == [
        *(".5", "'s", "'s", "", "", "'s")
    ]
    for answer, open_ones, wrong in (("17", ("17", "17."), "17.5"), ("can", ("can", "can’"), "can’t")):
        assert {begins_with_any(text, [answer]) for text in open_ones} == {None}
        assert (begins_with_any(wrong, [answer]), begins_with_any(f"{answer}. ", [answer])) == (False, True)
    assert begins_with_any("caf\ufffd", ["café"]) is None
    assert begins_with_any("cafe", ["café"]) is None
