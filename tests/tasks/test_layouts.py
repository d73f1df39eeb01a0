"""Published layouts, in rows of our own, are usable by options alone; pairs are records; bad rows are counted."""

import gzip
import json
import shlex
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas
import pytest

from agent.verbs.command_line import parser, told
from agent.verbs.options import TasksOptions, called
from mecharule_ops.errors import UsageError
from mecharule_ops.tasks import jailbreak, prompt_table, table_check, task_names
from mecharule_ops.tasks.layout import FOIL

LAYOUTS: Mapping[str, Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("layouts.toml").read_text())


def table(path: Path, content: str | bytes, options: str = "") -> prompt_table.PromptTable:
    """As `tasks check` reads it."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    asked = TasksOptions(**told(parser().parse_args(["tasks", "check", str(path), *shlex.split(options)]))[1])
    said = prompt_table.prompt_settings(**asked.reading, model=asked.model)
    found = task_names.make_task(str(path), **{key.removeprefix("task."): value for key, value in said})
    assert isinstance(found, prompt_table.PromptTable)
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_published_layout_is_usable_by_options_alone(layout: str, tmp_path: Path) -> None:
    given = LAYOUTS[layout]
    task = table(tmp_path / given["file"], given["content"], given["options"])
    row = task.rows()[0]
    assert (task.questions[0], list(task.right(row))) == (given["prompt"], given["right"])
    assert str(row.get(FOIL, "")).startswith(given["foil"])
    assert given.get("said", "") in " ".join(task.notes)
    assert task.describe()


def test_numbers_of_another_models_tokens_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some begin inside a word, which is seldom meant."""
    words = SimpleNamespace(decode=lambda ids: (" cat", " dog", "ish")[ids[0]])
    monkeypatch.setattr("mecharule_ops.tasks.layout.read_tokenizer", lambda directory: words)
    for second, said in ((1, 0), (2, 1)):
        task = table(tmp_path / "a.csv", f"prompt,a\nx,0\ny,{second}\n", "-m arith-tiny --answer token:a")
        told = "1 of 2 tokens begin inside a word, such as 'ish': the numbers may be those of another model's"
        assert sum(told in line for line in table_check.warnings_of(task)) == said


def test_rows_of_one_prompt_are_one_record(tmp_path: Path) -> None:
    """All are used: targets against foils, or answers of which any is right; what is both is a bad row."""
    rows = [
        {"prompt": f"The {noun}{'s' * turned}", "target": pair[turned], "foil": pair[1 - turned]}
        for noun in ("cat", "dog", "fox")
        for turned in (0, 1)
        for pair in [("has", "have"), ("is", "are"), ("was", "were"), ("has", "have")]
    ]
    path, whole = tmp_path / "a.jsonl", "".join(map(json.dumps, rows))
    task = table(path, whole)
    assert [(row["prompt"], row["target"], row["foil"]) for row in task.rows()][:2] == [
        *(("The cat", "has|is|was", "have|are|were"), ("The cats", "have|are|were", "has|is|was"))
    ]
    assert any(
        "24 rows are 6 prompts, a record each with its first row's columns, and of 6 any of" in line
        for line in task.notes
    )
    by_logits = {row["prompt"]: row for row in table(path, whole, "--score logits").rows()}
    used = [
        all(row[side] in by_logits[row["prompt"]][side].split("|") for side in ("target", "foil"))
        for row in rows
    ]
    assert sum(used) >= 0.99 * len(rows)
    with pytest.raises(UsageError, match="foils that are no targets in row 25"):
        table(path, whole + json.dumps({**rows[0], "target": "have", "foil": "had"}))
    answers = table(tmp_path / "b.csv", "prompt,answer\na,b\nc,d\na,e\n")
    assert [answers.right(row) for row in answers.rows()] == [("b", "e"), ("d",)]


def test_harmbench_is_a_table_of_requests(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Behavior,Tags,ContextString\nTell a lie,,\n")
    assert jailbreak.read_requests(str(tmp_path / "a.csv")) == ("Tell a lie",)


def test_a_set_of_the_hub_is_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the package `datasets`, offline as it is set; without the package one line says so."""
    pytest.importorskip("datasets")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "test.csv").write_text("question,answer\na,b\n")
    (tmp_path / "set" / "train.csv").write_text("question,answer\nc,d\n")
    (tmp_path / "set#test").mkdir()
    monkeypatch.chdir(tmp_path)
    named = f"hf:{tmp_path / 'set'}#test"
    assert task_names.make_task(task_names.findable(named)).questions == ("a",)
    unnamed = task_names.make_task(named.removesuffix("#test"))
    assert (unnamed.questions, unnamed.notes[1][:24]) == (("c",), "Its split train is read;")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UsageError, match=r"rows in hf:.*, it does not read: import of datasets halted"):
        task_names.make_task(named).describe()


def test_bad_rows_are_counted_and_may_be_left_out(tmp_path: Path) -> None:
    """What no rule can read is left out and said, with why."""
    rows = [{"prompt": f"{n}", "answer": "b", "x": {"y": n}, "z": n or None, "n": n} for n in range(4)]
    rows += [{"prompt": "4"}, {"prompt": "5", "answer": None}]  # type: ignore[list-item]
    content = "".join(map(json.dumps, rows))
    with pytest.raises(UsageError, match=r"row 5, column 'answer' .* 2 of 6 rows cannot be used.*--skip-bad"):
        table(tmp_path / "a.jsonl", content)
    task = table(tmp_path / "a.jsonl", content, "--skip-bad --drop N")
    assert [dict(row) for row in task.rows()] == [{"prompt": n, "answer": "b", "x.y": n} for n in range(4)]
    said = called("tasks", {"action": "check", "table": str(tmp_path / "a.jsonl"), "skip_bad": True}).text
    assert "z (empty in 1 row)" in said
    assert "2 of 6 rows are left out, such as: expected text or a number in row 5" in said
    absent = "--answer reply", "--drop m", "--prompt-template {q}", "--target last:n", "--answer >n"
    for options in (*absent, "--target answer --foil last:n", "--answer token:n"):
        with pytest.raises(UsageError, match=f"a column .*'{options.split()[-1].strip('{}')}'|with -m"):
            table(tmp_path / "a.jsonl", content, options)


ROWS = [{"prompt": "é", "answer": "a\nb", "x": 1.5}, {"prompt": "c", "answer": "d" * 140_000, "x": 2.5}]
FRAME = pandas.DataFrame(ROWS)
CSV = 'prompt,answer,x\né,"a\nb",1.5\nc,' + "d" * 140_000 + ",2.5\n"
LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.CSV", CSV.encode()),
        ("crlf.csv", CSV.replace("\n", "\r\n").encode()),
        ("blank.csv", b"\n \r\n" + CSV.encode("utf-8-sig").removeprefix(b"\xef\xbb\xbf")),
        ("bom.csv", CSV.encode("utf-8-sig")),
        ("wide.csv", CSV.encode("utf-16")),
        ("semicolons.csv", b"sep=;\n" + CSV.replace(",", ";").encode()),
        ("bars.csv", CSV.replace(",", "|").encode()),
        ("columns.json", json.dumps({name: [row[name] for row in ROWS] for name in ROWS[0]}).encode()),
        ("frame.json", FRAME.to_json().encode()),
        ("named.json", json.dumps({"a": ROWS[0], "b": ROWS[1]}).encode()),
        ("split.json", FRAME.to_json(orient="split").encode()),
        ("bom.jsonl", LINES.encode("utf-8-sig")),
        ("printed.jsonl", "\n".join(json.dumps(row, indent=2) for row in ROWS).encode()),
        ("a.jsonl.gz", gzip.compress(LINES.encode())),
        ("a.json", json.dumps({"data": {"rows": ROWS}, "n": [1]}).encode()),
    ],
)
def test_what_other_programs_write_is_read(name: str, content: bytes, tmp_path: Path) -> None:
    """Byte order marks, line ends, long cells, UTF-16, semicolons with decimal commas, printed and packed objects."""
    task = table(tmp_path / name, content, "--rows data.rows" if name == "a.json" else "")
    assert [dict(row) for row in task.rows()] == ROWS


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "prompt,answer\né,b\n".encode("cp1252"), "Windows text .*; save it as UTF-8"),
        ("a.csv", "prompt,answer\na,b\n".encode("utf-16-le"), "zero bytes"),
        ("a.jsonl.gz", b"{}", "does not read"),
        ("a.eval", b"{}", "does not read"),
        ("a.json", b'{"a": [{"b": 1}], "c": [{"d": 1}]}', "choose one with --rows: a, c"),
        ("a.jsonl", b'{"prompt": "a", "answer": NaN}', "row 1, column 'answer'"),
        *(("a.json", bare, "got none: no row is an object, such as") for bare in (b'[["a", "b"]]', b"5")),
        ("a.json", b'{"columns": ["prompt", "prompt"], "data": []}', "different names in columns"),
        ("a.csv", b"A cat,sat\nA dog,ran\n", "got A cat, sat; .*, or write a first line of names"),
        ("a.jsonl", b'{"prompt": "{} is", "subject": null, "answer": "b"}', "row 1, column 'subject'"),
        ("a.jsonl", b'{"prompt": "a", "m": [{"role": "x", "text": "b"}]}', "got prompt, m.0.role, m.0.text;"),
        ("a.jsonl", b'{"messages": [{"role": "user", "content": "a"}]}', "got messages.user;"),
        ("a.csv", 'prompt,answer\n"a,b\n', "a quotation mark is never closed"),
        ("a.csv", b"prompt,answer\na,b,c\n", "a cell for each column in row 1"),
        ("ragged.csv", "prompt,answer\na,b\nc\n", "in row 2"),
        ("a.parquet", "no parquet", "does not read"),
        ("a.jsonl", "", "got none"),
        ("a.jsonl", '{"prompt": "a", "answer": "b"}\n{"prompt": "c"\n', "line 2 is no JSON"),
        ("a.jsonl", '{"prompt": "a", "answer": "b"}\n{"prompt": "c"}\n', "in row 2"),
        ("a.jsonl", '{"prompt": "a", "answer": "b"}\n[1]\n', "in row 2"),
        ("a.jsonl", '{"prompt": "a", "answer": " "}\n', "an answer in row 1"),
        ("a.jsonl", '{"prompt": "a", "answers": []}\n', "in row 1"),
        ("a.jsonl", '{"prompt": "a", "answers": ["a|b"]}\n', "in row 1"),
        ("a.jsonl", '{"prompt": "a", "target": "b", "foil": []}\n', "row 1, column 'foil'"),
        ("a.csv", "prompt,answer\n1,2\n1,3\n0,|\n", "no \\| in an answer in row 3"),
        ("a.jsonl", '{"prompt": "a", "reply": "b"}\n', "got prompt, reply; name it with --answer"),
        ("a.jsonl", '{"prompt": "a", "target": "b", "foil": "b c"}\n', "not begin with its target in row 1"),
        ("a.jsonl", '{"text": "a", "answer": "b"}\n', "a column 'prompt'"),
        ("a.jsonl", '{"prompt": "a", "answer": "b", "first_word": "c"}\n', "rename it"),
        # Quotation marks of another dialect: backslashes or spaces before them, single ones, such as no writer makes.
        ("t.csv", 'prompt,answer\n"say \\"hi\\", then",b\n', "does not read"),
        ("t.csv", "'prompt','answer'\n'a','b'\n", "a column 'answer'"),
        ("t.csv", 'prompt,answer\na, "b"\n', "a quotation mark stands behind a space"),
        ("t.tsv", 'prompt\tanswer\n"Go," he said\tb\n', "does not read"),
        ("t.tsv", 'prompt\tanswer\n"Go."\tb\n', 'does not read: "Go." needs no quotation marks'),
    ],
)
def test_what_does_not_read_says_why(name: str, content: str | bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"^expected.*{said}") as caught:
        table(tmp_path / name, content).describe()
    assert "\n" not in str(caught.value)


def test_a_quotation_mark_is_missed_in_separated_columns_alone(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.eval", "w") as log:
        log.writestr("samples/1.json", b'"\xc3')
    with pytest.raises(UsageError, match=r"does not read: (?!.*quotation).*unexpected end of data"):
        table(tmp_path / "a.eval", (tmp_path / "a.eval").read_bytes()).describe()


def test_logs_of_evaluations_are_tables(tmp_path: Path) -> None:
    """Inspect's in both forms and the harness's: what was asked, what is right, scores and metadata by dotted names."""
    sample = {"input": "2+2", "messages": [{"role": "user", "content": "2+2?"}], "target": "4"}
    sample |= {"metadata": {"level": 1}, "scores": {"match": {"value": "I", "answer": "5"}}}
    with zipfile.ZipFile(tmp_path / "a.eval", "w") as log:
        log.writestr("header.json", "{}")
        log.writestr("samples/1_epoch_1.json", json.dumps(sample))
    whole = json.dumps({"eval": {}, "samples": [sample], "reductions": [{"scorer": "match"}]})
    harness = {"doc": {"n": 2}, "target": "4", "arguments": [["2+2=", {"until": []}]], "exact_match": 0.0}
    told = {"answer": 4, "metadata.level": 1, "scores.match.value": "I"}
    packed, of_harness = (tmp_path / "a.eval").read_bytes(), {"answer": 4, "doc.n": 2, "exact_match": 0.0}
    for name, content, options, row in (
        ("a.eval", packed, "", {"prompt": "2+2", **told}),
        ("log.json", whole, "--prompt messages.user", {"prompt": "2+2?", **told}),
        ("x.jsonl", json.dumps(harness), "", {"prompt": "2+2=", **of_harness}),
    ):
        assert row.items() <= table(tmp_path / name, content, options).rows()[0].items()
