"""Tables whose names, quotation marks, line ends or values could be taken for others: read right, or refused."""

import csv
import io
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas
import pyarrow
import pyarrow.parquet
import pytest
from answered import all_answered
from hypothesis import given
from hypothesis import strategies as st

from mecharule_ops.errors import UsageError
from mecharule_ops.notebook.door import table_file
from mecharule_ops.tasks import from_file, table_check, task_names
from mecharule_ops.tasks.prompt_table import PromptTable
from mecharule_ops.tasks.text import spelt

ROW = {"prompt": "a", "answer": "b"}


def table_of(folder: Path, rows: Sequence[Mapping[str, object]], **settings: object) -> PromptTable:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = task_names.make_task(str(path), **settings)
    assert isinstance(task, PromptTable)
    return task


def two_of_arrow(path: Path) -> None:
    columns = [pyarrow.array([text]) for text in "abc"]
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(columns, ["prompt", "answer", "answer"]), path)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("t.csv", "prompt,answer,answer\na,b,c\n"),
        ("t.tsv", "prompt\tanswer\tanswer\na\tb\tc\n"),
        ("t.jsonl", '{"prompt": "a", "answer": "b"}\n{"prompt": "a", "answer": "b", "answer": "c"}\n'),
        ("t.json", '[{"prompt": "a", "answer": "b", "answer": "c"}]'),
        ("t.parquet", two_of_arrow),
    ],
)
def test_two_columns_of_one_name_are_refused(
    name: str, write: str | Callable[[Path], None], tmp_path: Path
) -> None:
    """In every format, with the name; in JSON with the line."""
    path = tmp_path / name
    path.write_text(write) if isinstance(write, str) else write(path)
    with pytest.raises(UsageError, match=r"different names in .* got two called 'answer'; rename one"):
        from_file.raw_rows(path)
    frame = pandas.DataFrame([["a", "b", "c"]], columns=["prompt", "answer", "answer"])
    for table in (frame, [{1: "a", "1": "b"}]):
        with pytest.raises(UsageError, match="different names in the table"):
            table_file(table, tmp_path)


def test_names_that_a_rule_would_write_alike_are_refused_with_both(tmp_path: Path) -> None:
    """And a name is spelt in the form in which Python reads it, so that a rule finds its column."""
    with pytest.raises(UsageError, match=r"got 'review text' and 'review_text', which both are review_text"):
        table_of(tmp_path, [{**ROW, "review text": 1, "review_text": 2}]).describe()
    with pytest.raises(UsageError, match="at most 100 characters"):
        table_of(tmp_path, [{**ROW, "x" * 101: 1}]).describe()
    names = ["x²", "ﬁne", "Ⅷ", "हिन्दी", "if", "2nd", "a b"]
    assert [spelt(name) for name in names] == ["x2", "fine", "VIII", "हिन्दी", "if_", "_2nd", "a_b"]
    rows = [{**ROW, "prompt": str(n), **dict.fromkeys(names, "even" if n % 2 else "odd")} for n in range(9)]
    table_check.rehearse(table_of(tmp_path, rows))


def test_a_data_frames_row_numbers_are_no_column(tmp_path: Path) -> None:
    """As `to_csv` and `to_parquet` write them, once and twice; no rule can be about them."""
    frame = pandas.DataFrame([{**ROW, "prompt": str(n), "x": n % 3} for n in range(9)], index=range(220, 229))
    frame.to_csv(tmp_path / "once.csv")
    pandas.read_csv(tmp_path / "once.csv").to_csv(tmp_path / "twice.csv")
    frame.sort_values("x").to_parquet(tmp_path / "rows.parquet")
    for name in ("once.csv", "twice.csv", "rows.parquet"):
        assert task_names.make_task(str(tmp_path / name)).prompt_columns == {"prompt", "answer", "x"}
        assert list(from_file.read_table(str(tmp_path / name))[0]) == ["prompt", "answer", "x"]


def test_a_column_prompt_beside_a_template_is_what_the_model_reads_or_left_out(tmp_path: Path) -> None:
    """Rules call the whole question `prompt`: one that the template shows is made of that, in every predicate."""
    rows = [{"prompt": f"w{n}", "q": f"v{n}", "answer": "b"} for n in range(40)]
    assert "prompt (another column is the prompt)" in table_of(tmp_path, rows, template="Q: {q}").notes[1]
    task = table_of(tmp_path, rows, template="Q: {prompt} {q}\nA:")
    texts = [text for text in task.account_predicates() if "words(prompt)" in text]
    assert texts
    assert task.columns(all_answered(task))["prompt"][0] == "Q: w0 v0\nA:"
    assert all(">= 4" in text for text in texts if ">=" in text)
    table_check.rehearse(table_of(tmp_path, [{"prompt": n, "answer": "b"} for n in range(40)]))


CELLS = st.text("ab,;\t\n\"' é", max_size=8)


@given(
    st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=4),
    st.sampled_from(((".csv", ","), (".csv", ";"), (".csv", "\t"), (".tsv", "\t"), (".txt", "\t"))),
    st.sampled_from((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)),
    st.sampled_from(("\n", "\r\n", "\r")),
)
def test_what_a_csv_writer_wrote_is_read_back(
    rows: list[tuple[str, str]], form: tuple[str, str], quoting: int, line_end: str
) -> None:
    """Against Python's own writer, with each delimiter, quoting and line end, those inside cells included."""
    written = io.StringIO(newline="")
    csv.writer(written, delimiter=form[1], quoting=quoting, lineterminator="\n").writerows(  # type: ignore[arg-type]
        [("prompt", "answer"), *rows]
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows").with_suffix(form[0])
        path.write_bytes(written.getvalue().replace("\n", line_end).encode())
        assert [tuple(row.values()) for row in from_file.raw_rows(path)] == rows


def test_what_64_bits_or_a_rule_do_not_hold_is_a_text_or_is_said(tmp_path: Path) -> None:
    """A long category is free text, a huge number a text, one beyond 10^12 is told, half a surrogate pair refused."""
    assert from_file.typed([2**53, 1]) == [str(2**53), "1"]
    assert from_file.typed([2**53 - 1, -(2**53) + 1]) == [2**53 - 1, -(2**53) + 1]
    assert from_file.typed([str(10**30), "5"], freely=True) == [str(10**30), "5"]
    assert from_file.typed(["1e30", "5"], freely=True) == [1e30, 5.0]
    one = {"answer": 2**70, "essay": "no", "ms": 1_700_000_000_000}
    other = {**one, "essay": "long " * 50, "ms": one["ms"] + 1}
    task = table_of(tmp_path, [{"prompt": str(n), **(other if n % 2 else one)} for n in range(60)])
    table_check.rehearse(task)
    assert {role["name"]: role["kind"] for role in table_check.column_roles(task)}["essay"] == "text"
    assert not any("essay ==" in text or "ms <" in text for text in task.account_predicates())
    for text, said in (
        ('{"prompt": "\\ud83d", "answer": "b"}', "half a surrogate pair, in row 1, column 'prompt'"),
        ('{"\\ud83d": 1}', "half a surrogate pair, in column names"),
        ('{"prompt": "a", "answer": "b", "x": 1e999}', "text or a number in row 1, column 'x'"),
    ):
        (tmp_path / "half.jsonl").write_text(text)
        with pytest.raises(UsageError, match=said):
            from_file.raw_rows(tmp_path / "half.jsonl")


VALUES = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.text(st.characters(codec="utf-8"), max_size=9),
    st.sampled_from(["x" * 201, "\x85" * 120, "'\"\\" * 60, "007", "1_000", "1e400", 10**400, -(2**63), "²"]),
)
NAMES = st.one_of(
    st.sampled_from(["words", "x²", "ﬁne", "in", "a b", "y" * 100]),
    st.text(st.characters(codec="utf-8"), max_size=4),
)


@given(
    st.dictionaries(
        NAMES.filter(lambda name: name not in ("answer", "prompt")), st.lists(VALUES, min_size=1), max_size=3
    ),
    st.integers(1, 30),
)
def test_a_table_that_passes_is_rehearsed_without_a_fault(
    columns: Mapping[str, Sequence[object]], count: int
) -> None:
    """Any names and values: either one line refuses the table, or arrays, predicates and records are made of it."""
    rows = [
        {"prompt": str(n), "answer": "b"}
        | {name: values[n % len(values)] for name, values in columns.items()}
        for n in range(count)
    ]
    with tempfile.TemporaryDirectory() as folder:
        task = table_of(Path(folder), rows)
        try:
            task.describe()
        except UsageError:
            return
        table_check.rehearse(task)


def test_a_column_of_numbers_that_is_read_as_text_is_said(tmp_path: Path) -> None:
    for one, two, said in (
        ("1,5", 2, "a comma"),
        ("1.5", "-inf", "'-inf' is no number (20"),
        ("1", "-", "'-' is no"),
        ("a", "NA", ""),
        (1, 2, ""),
    ):
        (tmp_path / "t.csv").write_text(
            "prompt;answer;x\n" + "".join(f"{n};b;{one}\n{n}n;b;{two}\n" for n in range(20))
        )
        told = " ".join(table_check.warnings_of(PromptTable(file=str(tmp_path / "t.csv"))))
        assert ("x is read as text, not as numbers" in told, said in told) == (bool(said), True)
