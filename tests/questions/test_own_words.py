"""Words of a question that name a column of the run's own table, a value of one, or a word of some prompts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from bundled_run import QUICK

import mecharule_ops as mr
from agent.answering.conversation import ask
from agent.answering.router import known_words
from agent.investigating.asking import reading_of
from mecharule_ops.errors import UsageError
from mecharule_ops.questions.own_words import few_valued, own_words, with_prompt_quoted, yes_or_no
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import opened
from tools.registry import call

SIZES = {"Tiny": 50, "Medium": 150, "Huge": 300}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A quick run over a table of sums with a column of three values."""
    folder = tmp_path_factory.mktemp("own")
    rows = [
        {
            "prompt": f"{a} + {b} =",
            "answer": f" {a + b}",
            "extent": next(s for s, most in SIZES.items() if max(a, b) < most),
            "doubled": a % 2 == 0,
        }
        for a in range(3, 300, 23)
        for b in range(5, 300, 23)
    ]
    kept = ("bases", "slice_size", "proposals", "controls", "controls_for", "anchor_for", "accounts_for")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MECHARULE_RUNS", str(folder))
        run = mr.analyse(
            rows,
            model="arith-tiny",
            regimes=(1,),
            records=160,
            chains_for=0,
            tau=0.05,
            **{name: QUICK[name] for name in kept},
        )
        yield str(Path(folder, f"{run.id}.mecharule"))


def test_a_column_a_value_and_a_word_of_prompts_are_read(path: str) -> None:
    """A name that the program's own words hold is none by itself; a task with words of its own has none."""
    with opened(path) as run:
        assert few_valued(run) == {"extent": sorted(SIZES)}
        said = own_words(run, "how accurate is it for each extent?")
        assert said == {"each extent": "extent"}
        assert own_words(run, "is it right on huge ones?") == {"huge": "extent == 'Huge'"}
        assert own_words(run, "which extents does it flip?") == {"which extents": "extent"}
        assert own_words(run, "how do Hugeans fare?") == {"Hugeans": "extent == 'Huge'"}
        assert own_words(run, "is it right where the extent is Tiny?") == {
            "the extent is Tiny": "extent == 'Tiny'",
        }
        assert own_words(run, "is extent known here?", known={"extent"}) == {}
        assert own_words(run, "is hugeness known, or extent2?") == {}
        assert own_words(run, "does it flip Nowhere?") == {"Nowhere": ""}
        assert own_words(run, "is it right on huge ones?", known={"huge"}) == {"huge": "extent == 'Huge'"}
        assert own_words(run, "is it a huge thing?", known={"huge"}) == {}
        assert yes_or_no(run) == ("doubled",)
        assert own_words(run, "accuracy by doubled") == {"doubled": "doubled"}
        assert own_words(run, "where doubled is false") == {"doubled is false": "not doubled"}
        assert own_words(run, "where doubled is not true") == {"doubled is not true": "not doubled"}
        assert own_words(run, "where the extent is not Huge") == {"extent": "extent", "Huge": ""}


def test_a_word_of_the_program_is_a_value_where_it_can_be_nothing_else(path: str) -> None:
    """Behind `how many` or `which`, in quotes, and beside another value of its column."""
    known = {"huge", "tiny"}
    with opened(path) as run:
        assert own_words(run, "how many huge ones does it flip?", known) == {"huge": "extent == 'Huge'"}
        assert own_words(run, "is it worse for huge ones, or is tiny worse?", known) == {
            "huge": "extent",
            "tiny": "extent",
        }
        first = run.records[0].example.prompt.split()[0]
        assert own_words(run, f"does it break '{first}'?") == {}, "a number is no word"


def test_a_prompt_in_a_question_is_put_in_quotes() -> None:
    """Whole, or by words that it alone has where what becomes of one prompt is asked."""
    prompts = (
        "The opposite of hot is",
        "The opposite of big is",
        "The plural of hot dog is",
        "The plural of tree is",
    )
    run = cast(
        "Run",
        SimpleNamespace(records=[SimpleNamespace(example=SimpleNamespace(prompt=each)) for each in prompts]),
    )
    for question, quoted in {
        "what does the opposite of hot is turn into?": 'what does "The opposite of hot is" turn into?',
        "what does plural of tree turn into?": 'what does "The plural of tree is" turn into?',
        "does it flip plural of hot dog?": "does it flip plural of hot dog?",
        "what would big become without it?": 'what would "The opposite of big is" become without it?',
        "what does hot turn into?": "what does hot turn into?",
        "does it flip tree?": "does it flip tree?",
        'what does "tree" turn into?': 'what does "tree" turn into?',
        "what is the opposite?": "what is the opposite?",
    }.items():
        assert with_prompt_quoted(run, question) == quoted


def test_accuracy_is_told_by_each_value(path: str) -> None:
    """The shares of the values sum to all records."""
    found = call("about", {"run": path, "topic": "accuracy"})
    by, every = found.data["by"]["extent"], found.data["succeeds"]["all"]  # type: ignore[index]
    assert sum(share["n"] for share in by.values()) == every["n"]
    assert sum(share["count"] for share in by.values()) == every["count"]
    assert "By extent: " in ask(path, "how accurate is the model in each extent?").text


def test_right_and_wrong_records_are_told_where_a_condition_holds(path: str) -> None:
    """Both narrowed to one value come to its records; a question narrows them too, one about time does not."""
    with opened(path) as run:
        huge = [record for record in run.records if record.example.fields["extent"] == "Huge"]
    right = sum(record.label for record in huge)
    where = {"run": path, "where": "extent == 'Huge'"}
    for topic, count in (("successes", right), ("failures", len(huge) - right)):
        (said, *_) = call("about", {**where, "topic": topic}).data["sentences"]  # type: ignore[misc]
        assert f"{count}/{len(huge)}" in said
    (said, *_) = call("about", {**where, "topic": "accuracy"}).data["sentences"]  # type: ignore[misc]
    assert f"{right}/{len(huge)}" in said
    asked = ask(path, "what does the model get wrong on huge ones?").text
    assert f"{len(huge) - right}/{len(huge)}" in asked
    assert "not taken into account" not in asked
    both = ask(path, "how accurate is the model on huge ones where length(prompt) > 9?").text
    assert "(extent == 'Huge')" not in both
    assert "elsewhere on" in both
    with pytest.raises(UsageError, match="leave the condition out"):
        call("about", {**where, "topic": "time"})
    with pytest.raises(UsageError):
        call("about", {"run": path, "topic": "failures", "where": "extent =="})


@pytest.mark.parametrize("records", ["slices", "train", "held-out"])
def test_flips_are_counted_by_each_value(path: str, records: str) -> None:
    """As the counts of each value's own predicate say."""
    with opened(path) as run:
        unit = str(run.findings.searches[0].agonists[0].neuron)
    given = {"run": path, "neuron": unit, "records": records, "yes": True}
    by = call("tabulate", {**given, "predicate": "extent"}).data["by"]
    for value in SIZES:
        alone = call("tabulate", {**given, "predicate": f"extent == '{value}'"}).data
        holds = (alone if records == "slices" else alone["where"])["holds"]  # type: ignore[index]
        assert by[value] == {**by[value], **holds}  # type: ignore[index]


def test_what_a_question_names_of_the_table_is_counted_and_not_dropped(path: str) -> None:
    with opened(path) as run:
        unit = str(run.findings.searches[0].agonists[0].neuron)
    asked = ask(path, f"why does {unit} flip huge ones?")
    assert "the column extent is 'Huge'" in str(asked.data["answer"])
    assert f"Flips of {unit} by extent: " in ask(path, f"for which extent does {unit} flip most?").text
    plain = ask(path, f"why does {unit} flip?")
    assert "extent" not in str(plain.data["answer"]).split("When.")[0]
    assert "huge" not in known_words()


def test_what_no_answer_speaks_of_is_said_to_be_left_out(path: str) -> None:
    """A name that no prompt has, a value in a question about something else; two values name their column."""
    left_out = "(not taken into account: “{}”)"
    asked = {"how accurate is it on Nowhere?": "Nowhere", "how many records are there in Huge?": "Huge"}
    for question, words in asked.items():
        assert left_out.format(words) in str(ask(path, question).data["answer"])
    assert left_out.format("Nowhere") in str(
        ask(path, "why does the strongest head flip Nowhere?").data["answer"]
    )
    assert "not taken" not in str(ask(path, "how accurate is it on huge ones?").data["answer"])
    with opened(path) as run:
        unit = str(run.findings.searches[0].agonists[0].neuron)
        assert set(own_words(run, "is it worse on Huge than Tiny?").values()) == {"extent"}
        stated = reading_of(f"does {unit} flip more on huge ones?", run).asked[0]["claims"]
        assert reading_of(f"why does {unit} flip Nowhere?", run).unread == ("Nowhere",)
        prompt = run.records[0].example.prompt.strip()
    assert stated == {"extent == 'Huge'": ""}
    typed = ask(path, f'would {unit} flip on "{prompt}"?').data
    assert (typed["tool"], typed["arguments"]["prompt"]) == ("flip", prompt)  # type: ignore[index]


def test_held_out_records_are_counted_where_they_are_asked_for(path: str) -> None:
    """The look is counted, as by `tabulate`."""
    with opened(path) as run:
        unit = str(run.findings.searches[0].agonists[0].neuron)
    asked = ask(path, f"does {unit} flip huge ones more on held-out records?")
    direct = call(
        "tabulate", {"run": path, "neuron": unit, "predicate": "extent == 'Huge'", "records": "held-out"}
    )
    assert direct.facts[0].said in asked.text
    assert "were read for" in asked.text
