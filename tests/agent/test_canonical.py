"""Questions without a model: what is understood, and that nothing else is taken for it."""

from dataclasses import replace

import pytest

from agent import canonical, toolbox
from tools.registry import TOOLS

NAMES = canonical.Names(
    units=("m1.14", "a2.h3"),
    shown=2,
    columns=("a", "b", "op"),
    terms={"mcc": "MCC", "τ": "τ"},
    condition=lambda said: said if "==" in said or " > " in said or "carry" in said else None,
    prompt="12 + 5 =",
    other="m0.0",
    words={"carry": "carry(a, b)", "minus": "op == '-'"},
)
LETTERS = {"U": "m1.14", "V": "a2.h3", "C": "carry(a, b)", "K": "op", "P": "'12 + 5 ='", "W": "MCC"}


def spoken(wording: str) -> str:
    """A wording with names in the place of its letters."""
    return " ".join(LETTERS.get(word, word) for word in wording.split()) + "?"


FILLED = {"unit": "m1.14", "second": "a2.h3", "other": "m0.0", "column": "op", "prompt": "12 + 5 ="}
FILLED |= {"condition": "carry(a, b)", "term": "MCC"}


@pytest.mark.parametrize("row", canonical.rows(), ids=lambda row: row.name)
def test_each_wording_and_what_is_offered_is_its_own_question(row: canonical.Row) -> None:
    """By a tool that a model may call too, which takes what it is told."""
    arguments = TOOLS[row.tool].arguments
    assert row.tool not in toolbox.NOT_OFFERED
    assert len(row.wordings) == 6
    for asked in (*map(spoken, row.wordings), row.ask.format(**FILLED)):
        read = canonical.understand(asked, NAMES)
        assert isinstance(read, canonical.Understood), asked
        assert read.row.name == row.name, asked
        arguments(**arguments.about("last", read.arguments))


@pytest.mark.parametrize(
    ("question", "offered"),
    [
        ("could a2.h3 just be noise?", "how sure is a2.h3?"),
        ("is it worse with a carry?", "does m1.14 flip more where carry(a, b)?"),
        ("is a2.h3 worse on minus sums?", "does a2.h3 flip more where op == '-'?"),
        ("break the failures of a2.h3 down per op", "how often does a2.h3 flip by op?"),
        ("why did m0.31 not make it?", "why was m0.31 not found?"),
        ("are a2.h3 and m1.14 doing one job?", "is a2.h3 stronger than m1.14?"),
        ("would 17 + 25 = come out right without a2.h3?", "what does a2.h3 do to “17 + 25 =”?"),
        ("what is 17 + 25 =?", "what does m1.14 do to “17 + 25 =”?"),
        ("what did attribution think of the units?", "how does attribution rank the units?"),
    ],
)
def test_what_a_question_names_stands_in_its_suggestions(question: str, offered: str) -> None:
    """Its units alone, its condition and its column; none of them of another unit."""
    read = canonical.understand(question, NAMES, "m1.14")
    assert isinstance(read, tuple)
    assert offered in read
    named = set(canonical.UNIT.findall(question)) or {"m1.14"}
    assert all(not (units := set(canonical.UNIT.findall(one))) or units & named for one in read)


def test_no_edit_is_offered_where_the_task_makes_none() -> None:
    for edited in (True, False):
        read = canonical.understand("pairs of prompts one edit apart", replace(NAMES, edited=edited), "m1.14")
        assert ("does one edit" in " ".join(map(str, read))) == edited


@pytest.mark.parametrize(
    ("question", "name", "given"),
    [
        ("Why does the strongest head flip?", "why", {"neuron": "a2.h3"}),
        ("how sure is it?", "sure", {"neuron": "m1.14", "full": True}),
        ("does it flip more where op == '-'?", "where", {"units": "m1.14", "where": "op == '-'"}),
        ("does m1.14 flip more when b > a?", "where", {"units": "m1.14", "where": "b > a"}),
        ("does it flip where b > a", "where", {"units": "m1.14", "where": "b > a"}),
        ("how often is the modle right?", "accuracy", {"section": "accuracy"}),
        ("does m1.14 flip 120-7=?", "flip", {"neuron": "m1.14", "prompt": "120-7="}),
        ("prove it", "proof", {"what": "last"}),
    ],
)
def test_names_and_pronouns_are_read(question: str, name: str, given: dict[str, object]) -> None:
    read = canonical.understand(question, NAMES, "m1.14")
    assert isinstance(read, canonical.Understood)
    assert (read.row.name, read.arguments) == (name, given)


OTHERS = (
    "what does m1.14 flip with the median as baseline?",
    "which units were not found to be heads in layer three?",
    "why doesn't m1.14 flip?",
    "does m1.14 cause addition?",
    "does m1.14 flip more where the moon is full?",
    "which units flip only subtractions?",
    "why does the second strongest head flip?",
    "how accurate is the model on Tuesdays?",
    "why do m1.14 and a2.h3 and m1.15 flip?",
    "what does W mean",
    "",
    "¿por qué?",
)


@pytest.mark.parametrize("question", OTHERS)
def test_anything_else_gets_three_suggestions_and_no_answer(question: str) -> None:
    read = canonical.understand(question, NAMES, "m1.14")
    assert isinstance(read, tuple), read
    assert len(read) == 3
    assert all(isinstance(canonical.understand(one, NAMES), canonical.Understood) for one in read)


def test_what_is_not_shown_has_no_rank() -> None:
    none = replace(NAMES, shown=0)
    assert isinstance(canonical.understand("why does the strongest head flip?", none), tuple)
    assert isinstance(canonical.understand("why does m1.14 flip?", none), canonical.Understood)
    assert "what did the search miss?" in str(canonical.understand("why is nothing found?", none))
