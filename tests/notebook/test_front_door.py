"""The door: what is loaded when, tables and loaded models as arguments, progress, and what is refused."""

import ast
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas
import pytest
from bundled_run import QUICK

import mecharule_ops as mr
from mecharule_ops.config import RunConfig
from mecharule_ops.events import Event, RunFinished, RunStarted, StageFinished, StageProgress
from mecharule_ops.loading.model_names import load
from mecharule_ops.notebook import door
from mecharule_ops.tasks import from_file, task_names

ROOT = Path(__file__).parents[2]
NUMERICAL = ("torch", "transformers", "xgboost", "shap", "sklearn", "matplotlib", "pandas")
HEAVY = (*NUMERICAL, "IPython", "agent", "tools")
SUMS = """
from dataclasses import dataclass
from mecharule_ops.tasks.from_file import TableTask

@dataclass(frozen=True, kw_only=True)
class Sums(TableTask):
    name = "sums"
    needs = ("a", "b")

    def question(self, row):
        return f"{row['a']} + {row['b']} ="

    def success(self, row, completion):
        return completion.strip() == str(row["a"] + row["b"])
"""


def loaded_by(code: str) -> tuple[list[str], int]:
    """(heavy packages in memory, modules of the library) after code in a fresh interpreter."""
    probe = (
        f"{code}\nimport sys\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
        "print(sum(name.startswith('mecharule_ops.') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy, count = done.stdout.strip().splitlines()[-2:]
    return ast.literal_eval(heavy), int(count)


def test_importing_the_library_loads_none_of_its_rooms() -> None:
    """A name is loaded when it is first used; `dir` knows them before."""
    assert loaded_by("import mecharule_ops as mr\nassert 'open_run' in dir(mr)") == ([], 0)


def test_opening_a_run_and_its_rows_load_nothing_heavy(finished_run: Path) -> None:
    """No torch and no plotting for rows and rules (a pattern in a rule is Arrow's to check, which loads pandas);
    the page of a run draws its map, so it plots."""
    opened = f"import mecharule_ops as mr\nrun = mr.open_run({str(finished_run)!r})\n"
    assert set(loaded_by(f"{opened}assert run.units and run.rules and str(run.tree())")[0]) <= {"pandas"}
    assert set(loaded_by(f"{opened}assert run._repr_html_()")[0]) - {"pandas"} == {"matplotlib"}
    assert loaded_by("import torch")[0] == ["torch"]


@pytest.mark.parametrize("kind", ["list", "frame", "dataset"])
def test_a_table_reads_back_as_the_rows_that_were_given(kind: str, tmp_path: Path) -> None:
    """Types survive the file; numbers of numpy become Python's; the same table is kept once."""
    rows = [
        {"review": "Fine,\nreally", "stars": 4, "long": False, "score": 0.5},
        {"review": "ünï", "stars": 5, "long": True, "score": 2.0},
    ]
    table: object = pandas.DataFrame(rows) if kind == "frame" else rows
    if kind == "dataset":
        table = pytest.importorskip("datasets").Dataset.from_list(rows)
    file = door.table_file(table, tmp_path / "tables")
    assert list(from_file.read_table(str(file))) == rows
    assert [type(value) for value in from_file.read_table(str(file))[0].values()] == [str, int, bool, float]
    assert door.table_file(rows, tmp_path / "tables") == file
    dated = pandas.DataFrame({"asked": pandas.to_datetime(["2020-01-01", None])})
    assert '{"asked": null}' in door.table_file(dated, tmp_path).read_text()


@pytest.mark.parametrize(
    ("table", "said"), [([], "expected a table with rows"), ("reviews.csv", "got str"), (3, "got int")]
)
def test_what_is_no_table_is_one_line(table: object, said: str, tmp_path: Path) -> None:
    with pytest.raises(mr.UsageError, match="expected") as told:
        door.table_file(table, tmp_path)
    assert said in str(told.value)
    assert "\n" not in str(told.value)


def test_a_table_of_prompts_is_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given in the task's place, lists of answers too; what a run of it would begin with names the kept file."""
    rows = [
        {"prompt": f"{n} is", "answers": ["odd", "uneven"] if n % 2 else ["even"], "n": n} for n in range(9)
    ]
    begins: list[RunConfig] = []
    monkeypatch.setenv("MECHARULE_RUNS", str(tmp_path))
    monkeypatch.setattr("mecharule_ops.run.opening.begun", lambda config: begins.append(config))
    monkeypatch.setattr("mecharule_ops.notebook.door._finished", lambda *_: None)
    mr.analyse(pandas.DataFrame(rows), model="arith-tiny", regimes=(1,))
    (config,) = begins
    assert Path(config.task).parent == tmp_path / "tables"
    assert config.task_settings["max_new_tokens"] == len(" uneven's")
    task = task_names.task_of(config)
    labels = [task.label(example, " uneven") for example in task.examples(9, np.random.default_rng(0))]
    assert labels == [bool(n % 2) for n in range(9)]
    mr.analyse(rows, model="arith-tiny", regimes=(1,), name="parity")
    assert task_names.task_of(begins[1]).name == "parity"
    with pytest.raises(mr.UsageError, match="expected name= beside a table"):
        mr.analyse("arithmetic", model="arith-tiny", name="sums")
    with pytest.raises(mr.UsageError, match="a column 'answer'"):
        mr.analyse([{"prompt": "a"}], model="arith-tiny")


def test_a_call_analyses_a_table_on_a_loaded_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is stored, told as it goes, and opens again with the same findings.

    Its certificates verify on the object, which stays fit for use, and on the model loaded by name.
    """
    monkeypatch.setenv("MECHARULE_RUNS", str(tmp_path / "runs"))
    (tmp_path / "sums.py").write_text(SUMS, encoding="utf-8")
    subject, told = load("arith-tiny"), list[Event]()
    subject.hf.config._name_or_path = str(subject.directory)
    of_controls = ("controls", "controls_for", "anchor_for", "accounts_for", "chains_for")
    run = mr.analyse(
        f"{tmp_path / 'sums.py'}:Sums",
        model=subject.hf,
        tokenizer=subject.tokenizer,
        table=[{"a": a, "b": b} for a in range(3, 300, 23) for b in range(5, 300, 23)],
        regimes=(1,),
        records=160,
        progress=told.append,
        **{name: QUICK[name] for name in ("bases", "slice_size", "proposals", *of_controls)},  # type: ignore[arg-type]
    )
    assert run.findings.task == "sums"
    assert (type(told[0]), type(told[-1])) == (RunStarted, RunFinished)
    again = mr.open_run("last")
    assert again.findings == run.findings
    assert mr.resume(run.id, progress=False).findings.searches == run.findings.searches
    assert len(list((tmp_path / "runs" / "tables").iterdir())) == 1
    one = [str(run.to_dataframe("certificates").certificate[0])]
    assert [each.verify(one).match for each in (run, run, again)] == [1, 1, 1]


def test_a_run_goes_on_with_the_model_that_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of its name have other weights than the object: that is asked for again, and then the run goes on."""
    monkeypatch.setenv("MECHARULE_RUNS", str(tmp_path))
    subject = load("arith-tiny")
    subject.hf.config._name_or_path = str(subject.directory)
    next(subject.hf.parameters()).data *= 1.0001
    given = {"model": subject.hf, "tokenizer": subject.tokenizer}

    for at in StageProgress, StageFinished:

        def stop(event: Event, at: type = at) -> None:
            if isinstance(event, at):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            mr.analyse("arithmetic", **given, records=100, regimes=(1,), progress=stop)
        with pytest.raises(mr.MechaRuleError, match="go on with what it began with"):
            mr.resume(progress=False)
        with pytest.raises(mr.MechaRuleError, match="got one of them"):
            mr.resume(model=subject.hf)
        with pytest.raises(KeyboardInterrupt):
            mr.resume(**given, progress=stop)


def test_whole_numbers_that_pandas_keeps_as_floats_are_whole_again(tmp_path: Path) -> None:
    """Beside a missing cell, and where that row was dropped; halves stay."""
    gap = pandas.DataFrame({"answer": [None, 31, 2], "share": [0.5, 1.0, 2.0]})
    for frame in gap, gap.dropna(), gap.astype({"answer": "Float64"}):
        rows = door.table_file(frame, tmp_path).read_text(encoding="utf-8").splitlines()
        assert rows[-1] == '{"answer": 2, "share": 2%s}' % ("" if len(frame) == 2 else ".0")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model": object()}, "expected a model's name"),
        ({"model": "arith-tiny", "tau": 3}, "tau"),
        ({"model": "arith-tiny", "nonsense": 3}, "nonsense"),
        ({"model": "arith-tiny", "proposer": "openai/x"}, "offline proposer"),
        ({"model": "arith-tiny", "bases": ("mlp",)}, "bases"),
        ({"model": "arith-tiny", "table": [{"a": 1}]}, "file"),
        ({"model": "arith-tiny", "task": "none"}, "expected a task"),
        ({"model": "arith-tiny", "layer": 9, "bases": "mlp_out"}, "expected one of 2 layers"),
        ({"model": "arith-tiny", "bases": None}, "expected bases"),
        ({"model": "arith-tiny", "tokenizer": object()}, "got one of them"),
        ({"model": ""}, "expected a model of"),
        ({"model": "arith-tiny", "task": [{"prompt": "\ud800", "answer": "b"}]}, "that can be written"),
        ({"model": "arith-tiny", "given": pandas.Series(["m9.37"])}, "expected given units of 2 layers"),
    ],
)
def test_a_wrong_call_leaves_no_run_behind(
    settings: Mapping[str, object], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MECHARULE_RUNS", str(tmp_path))
    with pytest.raises(mr.UsageError) as told:
        mr.analyse(**settings)  # type: ignore[arg-type]
    assert said in str(told.value)
    assert list(tmp_path.glob("*.mecharule")) == []


STORY = (
    StageProgress(stage="behaviour", done=5, total=10),
    StageProgress(stage="behaviour", done=6, total=10),
    StageFinished(stage="behaviour", summary="5 of 10 answers right", seconds=1.0),
    RunFinished(run="b00d", status="finished: 1 τ-agonist"),
)


def test_each_finished_stage_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    listener = door.live_progress()
    for event in STORY:
        listener(event)
    assert capsys.readouterr().err == "behaviour: 5 of 10 answers right\nrun b00d: finished: 1 τ-agonist\n"
