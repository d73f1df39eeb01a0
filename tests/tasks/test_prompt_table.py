"""Tables of prompts and answers: every format, guessed types, how success is decided, and one line for each fault."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import example_sets
import numpy as np
import pandas
import pytest
from answered import all_answered
from text_models import save_text_model

from mecharule_ops.errors import ClaimNotSupported, UsageError
from mecharule_ops.tasks import layout, prompt_table, table_check
from mecharule_ops.tasks.from_file import kind_of, raw_rows, typed
from mecharule_ops.tasks.task_names import BUNDLED, findable, make_task, task_from
from mecharule_ops.types import Phase, Regime, Share, Value

ROWS: list[Mapping[str, Value]] = [
    {"prompt": "A cat is", "answer": "small", "legs": 4, "weight": 4.5, "pet": True, "kind": "animal"},
    {"prompt": 'A "car", is', "answer": "fast", "legs": 0, "weight": 900.25, "pet": False, "kind": "thing"},
]


FRAME = pandas.DataFrame(ROWS)
WRITE: Mapping[str, Callable[[Path], object]] = {
    ".csv": lambda path: FRAME.to_csv(path, index=False),
    ".tsv": lambda path: FRAME.to_csv(path, sep="\t", index=False),
    ".jsonl": lambda path: FRAME.to_json(path, orient="records", lines=True),
    ".json": lambda path: FRAME.to_json(path, orient="records"),
    ".parquet": FRAME.to_parquet,
}


def jsonl(folder: Path, rows: Sequence[Mapping[str, object]], name: str = "prompts.jsonl") -> str:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.parametrize("suffix", WRITE)
def test_every_format_gives_the_same_rows_and_types(suffix: str, tmp_path: Path) -> None:
    """As pandas writes them."""
    WRITE[suffix](path := tmp_path / f"t{suffix}")
    task = make_task(str(path))
    assert isinstance(task, prompt_table.PromptTable)
    assert list(task.rows()) == ROWS
    kinds, roles = ([role[of] for role in table_check.column_roles(task)] for of in ("kind", "role"))
    assert kinds == ["category", "category", "int", "float", "bool", "category"]
    assert roles[:3] == ["in the prompt, for rules", "what is right, for rules", "for rules"]
    assert task.columns(all_answered(task, " small", " slow"))["legs"].tolist() == [4, 0]
    assert task.prompt_columns == set(ROWS[0])
    assert task.solution_columns == {"answer"}
    assert task.phase is Phase.LAST_PROMPT


def test_types_are_guessed_from_whole_columns() -> None:
    """One value that does not fit makes a column text; what a prompt shows stays as it was written."""
    for written, exact, free in (
        (["1", "2"], [1, 2], [1, 2]),
        (["3.50", "-1e3"], ["3.50", "-1e3"], [3.5, -1000.0]),
        (["007", "100"], ["007", "100"], ["007", "100"]),
        (["True", "no"], ["True", "no"], [True, False]),
        (["1", "x"], ["1", "x"], ["1", "x"]),
        (["1.5", "nan"], ["1.5", "nan"], ["1.5", "nan"]),
    ):
        assert (typed(written), typed(written, freely=True)) == (exact, free)
    columns = [True], [1], [1.5], ["a", "b"] * 9, [str(n) for n in range(13)]
    assert [*map(kind_of, columns)] == ["bool", "int", "float", "category", "text"]


def test_each_way_of_grading(tmp_path: Path) -> None:
    """One answer, any of several, and a target beside a foil: the foil fails as any other text does."""
    one = make_task(jsonl(tmp_path, [{"prompt": "2+2=", "answer": 4}], "one.jsonl"))
    any_of = make_task(jsonl(tmp_path, [{"prompt": "a", "answers": ["yes", "y"]}], "any.jsonl"))
    pair = make_task(jsonl(tmp_path, [{"prompt": "The keys", "target": "are", "foil": "is"}], "pair.jsonl"))
    for task, right, wrong in (
        (one, ("4", " 4."), ("42", "5")),
        (any_of, ("y", "yes!"), ("yesterday", "no")),
        (pair, (" are old",), (" is", " of")),
    ):
        assert all(record.label for text in right for record in all_answered(task, text))
        assert not any(record.label for text in wrong for record in all_answered(task, text))
    assert "answers" not in any_of.columns(all_answered(any_of, "y"))
    assert any_of.prompt_columns == {"prompt"}
    assert "--score logits compares it with the foil" in pair.notes[0]
    (tmp_path / "any.csv").write_text("prompt,answers\na,yes|y\n")
    spelt_out = make_task(str(tmp_path / "any.csv"))
    assert [spelt_out.right(row) for row in spelt_out.rows()] == [("yes", "y")]


def test_by_logits_one_of_targets_and_foils_is_chosen(tmp_path: Path) -> None:
    """As each stands behind its prompt; that one begins the other, so that no token differs, is told of its row."""
    cases = (
        ("The keys", ["are", "were"], "is", ((" are", " were"), (" is",))),
        ("1732 to 17", 45, 12, (("45",), ("12",))),
        ("It is", 45, 12, ((" 45",), (" 12",))),
        ("One", "child", " children", ((" child",), (" children",))),
        ("In", "June 5", "Junes", ((" June 5",), (" Junes",))),
        ("To", "New York", "New", ()),
    )
    file = jsonl(tmp_path, [dict(zip(("prompt", "target", "foil"), case, strict=False)) for case in cases])
    with pytest.raises(
        UsageError, match=r"neither begins the other in row 6 of .*, got 'New' and 'New York'; 1 of"
    ):
        make_task(file, score="logits").rows()
    task, plain = (make_task(file, score=score, skip_bad=True) for score in ("logits", ""))
    keys, *_, one, month = examples = task.examples(9, np.random.default_rng(0))
    assert [each.offered for each in examples] == [case[3] for case in cases[:5]]
    right, wrong = ((keys, " we"), (month, " June "), (one, " child")), ((keys, " is"), (one, " children"))
    assert [task.label(*each) for each in (*right, *wrong)] == [True] * 3 + [False] * 2
    texts = ((keys, " "), (keys, " a"), (keys, " i"), (one, " child"), (one, " childr"))
    assert [task.decide(*each) for each in texts] == [None, True, False, None, False]
    assert task_from(task.describe()).describe() == task.describe() != plain.describe()
    for given, said in (({"score": "x"}, "got x of target"), ({"target": "target"}, "got logits of answer")):
        with pytest.raises(UsageError, match=said):
            make_task(file, **{"score": "logits", **given}).describe()


def test_few_shot_lines_and_a_template_make_the_prompt(tmp_path: Path) -> None:
    """A typed \\n ends a line; numbers in the prompt stand as they were written; a byte order mark is no text."""
    table = tmp_path / "q.csv"
    table.write_text("question,price,answer\nWhat?,3.50,this\n")
    shots = tmp_path / "shots.txt"
    shown = "Q: Who? 1.00\nA: me" + ", and so on\nand on" * 900
    shots.write_text(shown, encoding="utf-8-sig")
    said = dict(prompt_table.prompt_settings(str(shots), "Q: {question} {price}\\nA:"))
    task = make_task(str(table), **{key.removeprefix("task."): value for key, value in said.items()})
    (example,) = task.examples(9, np.random.default_rng(0))
    assert example.prompt == f"{shown}\nQ: What? 3.50\nA:"
    assert [piece.name for piece in task.sources(example, " this")] == [
        *("few-shot lines", "template", "question", "template", "price", "template", "the written answer")
    ]


def test_other_files_that_do_not_read_are_one_clear_line(tmp_path: Path) -> None:
    """No file, a template of no column."""
    good = jsonl(tmp_path, [{"q": "a", "answer": "b"}])
    for template, said in (("Q:", "columns in braces"), ("{q", "braces"), ("{z}", "'z'")):
        with pytest.raises(UsageError, match=said):
            make_task(good, template=template).describe()
    with pytest.raises(UsageError, match="few-shot"):
        dict(prompt_table.prompt_settings(str(tmp_path / "none.txt"), None))
    with pytest.raises(
        UsageError, match=r"rows\.xls', which is none; put it there, .* or save it as \.csv or \.tsv"
    ):
        raw_rows(tmp_path / "rows.xls")


def test_a_description_makes_the_task_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the file was moved into the folder at hand; not where its rows changed or it is gone."""
    path = Path(jsonl(tmp_path, ROWS))
    task = make_task(findable(str(path)), prefix="x\n", template="{kind}: {prompt}", max_new_tokens=3)
    told = dict(task.describe())
    assert task_from(told).describe() == told
    assert task_from(told).read(task.examples(1, np.random.default_rng(0))[0].prompt)
    here = tmp_path / "elsewhere"
    here.mkdir()
    path.rename(here / path.name)
    with pytest.raises(ClaimNotSupported, match="put it there, a run's own into this folder"):
        task_from(told)
    monkeypatch.chdir(here)
    assert task_from(told).describe() == told
    (here / path.name).write_text((here / path.name).read_text().replace("small", "tiny"))
    with pytest.raises(ClaimNotSupported, match="put the old ones back, or begin a new run"):
        task_from(told)
    with pytest.raises(UsageError, match="which is none"):
        make_task(f"nowhere/{path.name}").describe()


def test_what_could_go_wrong_is_said(tmp_path: Path) -> None:
    """A constant answer, white space, several words, too few, a constant column."""
    rows = [{"prompt": "a", "answer": "b"}, {"prompt": "a", "answer": "c"}]
    said = table_check.warnings_of(make_task(jsonl(tmp_path, rows)))
    assert any("1 record is too few" in line for line in said)
    assert any("no columns but prompt and answer" in line for line in said)
    same = [{"prompt": f"{n} ", "answer": "new york", "x": 1} for n in range(60)]
    said = table_check.warnings_of(make_task(jsonl(tmp_path, same, "same.jsonl")))
    parts = ("60 prompts end in white space", "'new york'", "60 records are few")
    assert [part for part in parts if part not in " ".join(said)] == []
    classes = [{"prompt": f"{n}:", "answer": str(n % 2), "x": n} for n in range(200)]
    (said,) = table_check.warnings_of(make_task(jsonl(tmp_path, classes, "classes.jsonl")))
    assert said.startswith("the answers are 0, 1: if these number classes")
    fine = [{**row, "answer": "yes" if row["x"] == 1 else "no"} for row in classes]
    assert table_check.warnings_of(make_task(jsonl(tmp_path, fine, "fine.jsonl"))) == ()


@pytest.mark.parametrize("name", example_sets.SETS)
def test_the_bundled_sets_are_what_their_script_writes(name: str) -> None:
    """Byte for byte."""
    file = Path(example_sets.FOLDER / f"{name}.jsonl")
    assert file.read_text(encoding="utf-8") == example_sets.text_of(name)


@pytest.mark.parametrize("name", layout.EXAMPLE_SETS)
def test_an_example_set_is_a_table_without_a_warning(name: str) -> None:
    """Every prompt once, and its description makes it again."""
    task = make_task(name)
    rows = example_sets.HANS_ROWS if name == "hans" else example_sets.ROWS
    assert (task.name, len(task.questions), name in BUNDLED) == (name, rows, True)
    assert table_check.warnings_of(task) == ()
    assert "not a published set" in task.notes[1]
    assert task_from(task.describe()).describe() == task.describe()


@pytest.mark.parametrize(("right", "half", "stuck"), [(26, 14, 1), (26, 0, 0), (2, 0, 0), (50, 14, 0)])
def test_too_few_right_answers_are_said_with_the_cure(right: int, half: int, stuck: int) -> None:
    """What is real is named where anything is searched, and more than next to nothing is right."""
    (told,) = table_check.expected_few(Share(count=right, n=60), 60, Regime.BASELINE_POSITIVE, "right", half)
    assert told.startswith(f"{'nothing will be searched: ' * stuck}about {right} right answers (")
    assert ("--search exhaustive" in told) == bool(stuck)
    assert ("what is real is still named" in told) == (right > 2 and not stuck)


def test_a_chat_template_stands_around_prompts(tmp_path: Path) -> None:
    """Taken literally, thinking off, few-shot lines inside; rules and pieces are of the row's own part."""
    model, shots = save_text_model(tmp_path / "m", ("a", "b")), tmp_path / "shots.txt"
    file = jsonl(tmp_path, [{"question": f"{x} w", "answer": "b", "x": x} for x in ("Rome", "Oslo")])
    reading = {"few_shot": str(shots), "system": "{answer} {1}", "model": str(model)}
    shots.write_text("Rome Oslo\n")
    with pytest.raises(UsageError, match="expected a chat template"):
        dict(prompt_table.prompt_settings(**reading))
    said = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<a>{{ enable_thinking }}"
    (model / "chat_template.jinja").write_text(said)
    given = {key.removeprefix("task."): value for key, value in prompt_table.prompt_settings(**reading)}
    task = make_task(file, where="startswith(prompt, 'Rome')", **given)
    (example,) = task.examples(9, np.random.default_rng(0))
    assert example.prompt == "<system>{answer} {1}<user>Rome Oslo\nRome w<a>False"
    assert [each.start for each in task.sources(example, "b") if each.name != "template"][:2] == [26, 36]
    assert (task.read(example.prompt), task.read("Rome w")) == (example, example)
    assert [len([*prompt_table.unused(each, str(model))]) for each in (task, make_task(file))] == [0, 1]


def test_where_uses_the_rows_that_satisfy_a_condition(tmp_path: Path) -> None:
    """Its description makes them again; columns have the types of these rows; one line where it cannot be."""
    rows = [{"prompt": n, "x": n if n % 3 else "NA", "target": "b", "foil": "b!"[n != 6 :]} for n in range(9)]
    some = make_task(file := jsonl(tmp_path, rows), where="x != 'NA'")
    assert [row["x"] for row in some.rows()] == [1, 2, 4, 5, 7, 8]
    assert task_from(some.describe()).describe() == some.describe()
    assert ("where" in some.describe(), "where" in make_task(file, skip_bad=True).describe()) == (True, False)
    assert some.notes[-1] == "6 of 9 records are used, those where x != 'NA'."
    for wrong, said in (
        ("y == 1", "expected a column of prompt"),
        ("x == 'q'", "got none of 9"),
        ("x == 'NA'", "in row 7"),
        ("x +", "predicate refused"),
    ):
        with pytest.raises(UsageError, match=said):
            make_task(file, where=wrong).describe()
    twice = [{"prompt": "5 + 5 =", "answer": n, "split": f"s{n}"} for n in (99, 10)]
    file = jsonl(tmp_path, [*twice, {"prompt": "5 + 5 = ", "answer": 11, "split": "s10"}], "twice.jsonl")
    (one,) = make_task(file, where="split == 's99'").rows()
    (every,) = make_task(file).rows()
    assert (one["answer"], every["answers"]) == (99, "99|10|11")
    assert [row["answers"] for row in make_task(file, where="split == 's10'").rows()] == ["10|11"]
    for every in ("startswith(split, 's')", "contains(prompt, '5') and answer > 0"):
        assert [row["answers"] for row in make_task(file, where=every).rows()] == ["99|10|11"]
    assert [row["answer"] for row in make_task(file, where="answer == 11").rows()] == [11]
