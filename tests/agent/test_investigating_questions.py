"""What an investigation makes of a question: what the run holds, whom it asks about, and how rivals are compared."""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from llm_scripted import Recorder, asker

from agent.investigating.asking import MOST_UNITS, reading_of
from agent.investigating.comparing import comparison_of, pairs_of
from agent.investigating.investigation import QUESTION, Purse, Rival
from agent.investigating.investigation_loop import Investigated, investigate
from agent.investigating.proposed_rivals import of_pair
from agent.investigating.report import answered, reported, verdict
from agent.investigating.told_by_run import told_by_run
from agent.investigating.with_model import PAIRS, ModelProposer
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import opened
from mecharule_ops.run.tabulating import Part, drawn, fires
from mecharule_ops.types import Neuron, Regime

GOLDEN = Path(__file__).parents[1] / "golden" / "b00d.mecharule.xz"
FREE = Purse(forwards=None, seconds=None)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stored run of a bundled model on sums and differences; tests of this file write to it."""
    path = tmp_path_factory.mktemp("investigated") / "b00d.mecharule"
    path.write_bytes(lzma.decompress(GOLDEN.read_bytes()))
    return path


@pytest.fixture(scope="module")
def run(stored: Path) -> Iterator[Run]:
    """The same, open for writing."""
    with opened(stored, write=True) as open_run:
        yield open_run


def _quiet(line: str) -> None:
    """What is being done is of no interest here."""


def _investigated(stored: Path, run: Run, question: str) -> Investigated:
    return investigate(run, question, FREE, told=told_by_run(str(stored), question, _quiet))


def _rival(run: Run, condition: str, by: str = "offline", mcc: float = 0.0) -> Rival:
    made = of_pair("m1.14", Regime.BASELINE_POSITIVE.value, condition, 0.1)
    return {**made, "id": condition, "by": by, "mcc": mcc}  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("one", "two", "inner", "outer"),
    [
        ("op == '-'", "holds(op == '-' and borrow(a, b))", "holds(op == '-' and borrow(a, b))", "op == '-'"),
        (
            "not (holds(op == '+' and carry(a, b)))",
            "op == '-'",
            "holds(op == '+' and carry(a, b))",
            "op == '+'",
        ),
        ("expected < 0", "op == '-'", "expected < 0", "op == '-'"),
    ],
)
def test_of_rivals_of_which_one_implies_the_other_the_smaller_is_looked_at_within_the_larger(
    run: Run, one: str, two: str, inner: str, outer: str
) -> None:
    """Where a plain comparison has an empty side. Whichever way the rivals lie, the smaller predicate is looked at."""
    plain = fires(run, one), fires(run, two)
    assert not (plain[0] & ~plain[1]).any() or not (plain[1] & ~plain[0]).any()
    for pair in ((one, two), (two, one)):
        found = comparison_of(run, *(_rival(run, condition) for condition in pair))
        assert found.inner
        assert (found.sides[0] == fires(run, inner)).all()
        assert (found.sides[1] == (fires(run, outer) & ~fires(run, inner))).all()
        assert (found.apart == fires(run, outer)).all()


def test_other_rivals_are_compared_where_exactly_one_holds(run: Run) -> None:
    """As before, in the order of their texts."""
    one, two = _rival(run, "op == '-'"), _rival(run, "digit(expected, 1) == 7")
    found = comparison_of(run, one, two)
    assert not found.inner
    assert found.conditions == ("digit(expected, 1) == 7", "op == '-'")
    assert (found.apart == (fires(run, "op == '-'") != fires(run, "digit(expected, 1) == 7"))).all()


def test_the_sides_of_any_comparison_are_disjoint_where_they_tell(run: Run) -> None:
    """Over many pairs of predicates and contraries: no record counts twice, none is lost where exactly one holds."""
    texts = ["op == '-'", "expected < 0", "expected >= 100", "holds(op == '+' and carry(a, b))", "a > b"]
    conditions = [form for text in texts for form in (text, f"not ({text})")]
    nested = 0
    for place, one in enumerate(conditions):
        for two in conditions[place + 1 :]:
            found = comparison_of(run, _rival(run, one), _rival(run, two))
            nested += bool(found.inner)
            if found.inner:
                assert not (found.sides[0] & found.sides[1]).any()
                assert found.sides[0].any()
            else:
                assert (found.apart == (fires(run, one) != fires(run, two))).all()
    assert nested >= 4


def test_what_the_question_names_is_compared_with_each_other_too(run: Run) -> None:
    """The best on train with every other, and the named ones among themselves: each pair once."""
    rivals = [
        _rival(run, "a > b", mcc=0.5),
        _rival(run, "op == '-'", QUESTION, 0.4),
        _rival(run, "expected < 0", QUESTION, 0.3),
        _rival(run, "a == b", mcc=0.2),
    ]
    pairs = [{one["condition"], two["condition"]} for one, two in pairs_of(rivals)]
    assert {"op == '-'", "expected < 0"} in pairs
    assert {"a == b", "op == '-'"} not in pairs
    assert len(pairs) == 4


def test_a_carry_is_looked_at_among_additions(stored: Path, run: Run) -> None:
    """The counts within the larger are those of the stored flips, and the verdict says them."""
    found = _investigated(
        stored, run, "Among additions, does a carry into the hundreds protect against losing m1.14?"
    )
    carry = next(
        rival for rival in found.state["rivals"] if rival["family"] == "a carry" and rival["held_out"]
    )
    within = next(
        each["said"]
        for each in carry["beside"]
        if each["kind"] == "within" and each["said"].startswith("of those where it is an addition")
    )
    places = drawn(run, Regime.BASELINE_POSITIVE, Part.HELD_OUT)
    flips = run.flips([(Neuron.parse("m1.14"),)], places, Regime.BASELINE_POSITIVE)[0]
    (condition,) = Rule.parse(carry["condition"]).clauses[0].conditions
    inner, outer = (fires(run, text)[places] for text in (condition.predicate, "op == '+'"))
    counts = [(flips & side).sum() for side in (inner, outer & ~inner)], [inner.sum(), (outer & ~inner).sum()]
    assert f"{counts[0][0]} of {counts[1][0]} flip" in within
    assert f"{counts[0][1]} of {counts[1][1]} where not" in within
    assert within[1:] in verdict(found)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("what did the search miss?", "2/2"),
        ("which direction of flips was searched?", "Not searched in this run: 0→1"),
        ("Which attention head matters most for the borrows?", "ablated no head"),
        ("was any of this in the training data?", "does not hold"),
    ],
)
def test_what_the_run_holds_is_answered_without_a_test(
    stored: Path, run: Run, question: str, said: str
) -> None:
    """Its facts with their sources are the verdict; nothing is registered, and what it cannot say it says."""
    before = len(
        reported(run, _investigated(stored, run, "which direction of flips was searched?")).data[
            "predictions"
        ]
    )  # type: ignore[arg-type]
    found = _investigated(stored, run, question)
    assert found.state["asked"] == []
    assert said in verdict(found)
    result = reported(run, found)
    assert result.exit_code == 0
    assert "[run:b00d]" in result.text
    assert len(result.data["predictions"]) == before  # type: ignore[arg-type]


def test_which_unit_asks_about_every_unit_and_says_of_whom_it_is_shown(stored: Path, run: Run) -> None:
    """In one sentence each, and one for all others."""
    question = "which unit is most specific to subtraction?"
    assert len(reading_of(question, run).asked) == min(MOST_UNITS, len(run.findings.units()))
    found = _investigated(stored, run, question)
    shown = [
        rival for rival in found.state["rivals"] if rival["state"] == "supported" and rival["by"] == QUESTION
    ]
    text = verdict(found)
    assert all(rival["unit"] in text for rival in shown)
    undecided = len({one["units"][0] for one in found.state["asked"]} - {rival["unit"] for rival in shown})
    assert f"Of the {'other ' if shown else ''}{undecided} units: " in text


def test_a_unit_s_own_rule_is_a_claim_in_its_name(run: Run) -> None:
    """Beside what the question states."""
    (asked,) = reading_of("is m1.14's rule any better than just saying 'it is a subtraction'?", run).asked
    assert "op == '-'" in asked["claims"]
    assert "the rule that was learned for m1.14 holds" in asked["claims"].values()


def test_further_records_of_an_account_are_drawn_too(run: Run) -> None:
    """Train and held-out apart; the columns are those of all observed records."""
    for part in Part:
        places = drawn(run, Regime.BASELINE_POSITIVE, part)
        assert (places >= len(run.records)).any()
        assert (run.observed.train[places] == (part is Part.TRAIN)).all()
    assert len(fires(run, "op == '-'")) == len(run.observed.records)


def test_a_model_is_shown_train_records_and_the_further_ones_of_accounts(run: Run, tmp_path: Path) -> None:
    """Pairs of flipped and unflipped ones, none of them held out, also where the draw goes beyond the run's own."""
    question = "what else do the flips of m1.14 go with?"
    model = Recorder(tmp_path, {"when": ["Known rivals"], "json": {"predicates": ["a % 5 == 0"]}})
    proposer = ModelProposer(asker=asker(model), question=question)
    found = investigate(run, question, FREE, proposer=proposer)
    assert found.state["said"] == ["a % 5 == 0"]
    shown = model.sent[0].partition("does not:\n")[2].splitlines()[1:]
    train = drawn(run, Regime.BASELINE_POSITIVE, Part.TRAIN)
    assert max(train) >= len(run.records)
    rows = {record.example.prompt for record in (run.observed.records[place] for place in train)}
    assert [row.split(":")[0] for row in shown] == ["flips", "does not"] * PAIRS
    assert all(any(f'"{prompt}"' in row for prompt in rows) for row in shown)


def test_the_rule_of_one_unit_is_asked_of_the_others(run: Run) -> None:
    """That a rule goes with the flips of its own unit answers nothing."""
    reading = reading_of(
        "could I reuse the rule learned for m1.14 to predict where m1.37 breaks things?", run
    )
    (asked,) = reading.asked
    assert asked["units"] == ["m1.37"]
    assert list(asked["claims"].values()) == ["the rule that was learned for m1.14 holds"]


def test_an_amount_that_was_not_read_is_said(run: Run) -> None:
    """Beside a family that was, so that nobody takes the whole as tested; names and sums are no amounts."""
    asked = "do even answers whose cross sum is 7 or more go with the flips of m1.14?"
    assert reading_of(asked, run).words.endswith("(not read as a condition: '7 or more')")
    assert "not read" not in reading_of("does a borrow go with the flips of m1.14?", run).words


def test_what_goes_the_other_way_is_said_so_where_train_records_are_flat(run: Run, stored: Path) -> None:
    """An even answer: held-out records flip less there, train records alike."""
    said = verdict(_investigated(stored, run, "do the flips of m1.14 go with even answers?"))
    assert said.startswith(
        "Held-out records say that it flips less there, the 344 train records looked at do not: where the right answer"
    )
    assert re.search(
        r" Of 344 train records \d+ of 170 flip where the right answer is odd, elsewhere 37 of 174\.", said
    )


def test_the_only_one_shown_is_no_best_one(run: Run, stored: Path) -> None:
    """What fits train records best and is not decided stands before what is shown."""
    said = verdict(_investigated(stored, run, "what do the flips of m1.14 go with?"))
    assert said.startswith(
        "What fits train records best is undecided: where the right answer's tens digit is 7"
    )
    assert " Shown is: " in said


def test_the_verdict_says_what_of_the_question_was_not_read(run: Run, stored: Path) -> None:
    """First, so that nobody takes the rest for the whole; a quoted word, or what a unit does, is no condition."""
    said = verdict(
        _investigated(stored, run, "do m1.37's flips on answers ending in 1 go with the operator?")
    )
    assert said.startswith(
        "Of a part of the question only (not read as a condition: 'answers ending in 1'). "
    )
    assert not reading_of("what 'responds' with a carry when m1.14 flips?", run).unread
    assert answered("why?", "because").ended


def test_the_example_is_one_of_what_the_verdict_is_about(run: Run, stored: Path) -> None:
    """Of a condition that the question states a flip where it holds, before and after."""
    for condition, sign in (("op == '-'", " - "), ("op == '+'", " + ")):
        found = _investigated(stored, run, f"does m1.14 flip where {condition}?")
        lines = reported(run, found).text.splitlines()
        (example,) = [line for line in lines if line.startswith("For example: ")]
        assert sign in example.partition("=")[0]


def test_an_amount_in_plain_words_is_what_is_tested(run: Run) -> None:
    """As it is stated, not the nearest predicate of a family."""
    (asked,) = reading_of("does m1.14 flip where the tens digit is 7 or more?", run).asked
    assert list(asked["claims"]) == ["digit(expected, 1) >= 7"]
    (asked,) = reading_of("do even answers ending in 7 or more go with the flips of m1.14?", run).asked
    assert "divisible(expected, 2) and digit(expected, 0) >= 7" in asked["claims"]


def test_an_idea_that_was_read_is_not_said_to_be_unread(run: Run) -> None:
    """In a condition that states nothing else; what states more is."""
    assert not reading_of("is there a unit that flips where there's a borrow?", run).unread
    assert not reading_of("does m1.14 flip more where the model was barely ahead?", run).unread
    assert reading_of("does m1.14 flip where the tens carry and a is odd?", run).unread
