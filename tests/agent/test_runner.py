"""Headless runs: where settings come from, who accepts a price, what a dry run does, how a run ends."""

import io
import json
import math
import re
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bundled_run import QUICK
from findings_fixture import FINDINGS

import app
from agent.verbs import runner
from mecharule_ops import errors, types


class Terminal(io.StringIO):
    """A stream that a person reads."""

    def isatty(self) -> bool:
        return True


def written(path: Path, content: object) -> str:
    path.write_text(json.dumps(content))
    return str(path)


def test_later_sources_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File, then KEY=VALUE, then flags; what none of them names keeps its default, a false switch is not given.

    A table that is named again keeps what another run knows of it.
    """
    settings = {"model": "filed", "tau": 0.3, "alpha": 0.01, "task_settings": {"low": 1, "high": 5}}
    config = runner.config_from(
        file=written(tmp_path / "c.json", settings),
        settings=[("tau", 0.4), ("alpha", 0.02), ("task.high", 9), ("seed", 7), ("parity", True)],
        bases="mlp_out,attn_head",
        **{"tau": 0.5, "records": None, "seed": 0, "parity": False, "proposer": "none"},
    )
    assert (config.model, config.tau, config.alpha, config.seed) == ("filed", 0.5, 0.02, 0)
    assert config.task_settings == {"low": 1, "high": 9}
    assert (config.records, config.parity, config.proposer) == (2000, True, "offline")
    assert config.bases == (types.Basis.MLP_OUT, types.Basis.ATTN_HEAD)
    (tmp_path / "t.csv").write_text("q,a\n1,2\n")
    base = config.model_copy(update={"task": str(tmp_path / "t.csv"), "task_settings": {"prompt": "q"}})
    monkeypatch.chdir(tmp_path)
    assert runner.config_from(base=base, task="t.csv").task_settings == {"prompt": "q"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[1]", "expected a JSON object of settings"),
        ("{", "expected a JSON file of settings"),
        ('{"model": "m", "task_settings": 3}', "task_settings"),
        ('{"model": "m", "colour": 3}', "^expected a setting, got 'colour'"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, content: str, said: str) -> None:
    """Not JSON, not an object, a key that nobody knows: exit code 2 and no traceback."""
    file = tmp_path / "c.json"
    file.write_text(content)
    with pytest.raises(errors.UsageError, match=said):
        runner.config_from(file=str(file))
    with pytest.raises(errors.UsageError, match="no-such-file"):
        runner.config_from(file=str(tmp_path / "no-such-file"))


@pytest.mark.parametrize(
    ("typed", "accepted"), [("y\n", True), ("Yes\n", True), ("\n", False), ("n\n", False), ("", False)]
)
def test_a_person_is_asked_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, accepted: bool
) -> None:
    """Once, for all directions, before there is a run. Yes must be typed; the end is a no; stdout stays data."""
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    with nullcontext() if accepted else pytest.raises(errors.UsageError, match="expected a yes to the price"):
        runner.ask_price(runner.config_from(model="arith-tiny", bases="attn_head"))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert re.match(
        r"(at most )?[\d to]+ (s|min) for both directions\n.*y start · n back", captured.err, re.S
    )


def test_a_plan_loads_no_engine(tmp_path: Path) -> None:
    """`run --dry-run --json` prints all settings as JSON, makes no file, and loads a weight but for a pace alone."""
    script = (
        "import sys, app\n"
        "from agent.verbs import runner\n"
        "runner.CALIBRATED = 0\n"
        "code = app.main(['run', 'arithmetic', '-m', 'arith-tiny', '--dry-run', '--json', '--tau', '.3'])\n"
        "heavy = {'mecharule_ops.loading.weights', 'transformer_lens', 'xgboost', 'shap'} & set(sys.modules)\n"
        "assert (code, heavy) == (0, set()), (code, heavy)\n"
    )
    environment = {"MECHARULE_RUNS": str(tmp_path / "runs"), "PATH": "", "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["dry_run"] is True
    assert plan["settings"]["tau"] == 0.3
    assert plan["settings"]["task_settings"]["high"] == 299
    assert plan["seconds_a_forward"] == {}
    assert not (tmp_path / "runs").exists()


def test_a_dry_run_says_a_time_without_an_earlier_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a few ablations made now; where none may be made it says so, and no number."""
    monkeypatch.setenv("MECHARULE_RUNS", str(tmp_path / "runs"))
    config = runner.config_from(model="arith-tiny", bases="attn_head,mlp_out")
    plan = runner.plan(config)
    assert set(plan.data["seconds_a_forward"]) == {"attn_head", "mlp_out"}
    assert all(pace > 0 for pace in plan.data["seconds_a_forward"].values())
    assert "The time is by a few ablations of this model, task and units, made just now." in plan.text
    assert "not measured" not in plan.text
    assert not (tmp_path / "runs").exists()
    monkeypatch.setattr(runner, "CALIBRATED", 0)
    plan = runner.plan(config)
    assert len(runner.FORECASTS.popitem()[1].parts) == 1 + 3 * 4, "one range over every search"
    assert all(said in plan.text for said in ("in a time that was not measured", "of weights to load)."))


def test_a_dry_run_prices_every_search_and_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand for 2 layers of 128 and 4 heads: heads alone, a tree over all writes, then each left one; 128 a group."""
    monkeypatch.setattr(runner, "CALIBRATED", 0)
    plan = runner.plan(runner.config_from(model="arith-tiny", bases="attn_head,mlp_out"))
    asked = {(one["basis"], one["regime"]): one["most"]["groups"] for one in plan.data["searches"]}
    heads, writes = 8 + 2, 2 * 256 - 1 + 2
    counts = {"attn_head": heads, "mlp_out": writes}
    assert asked == {(basis, way): n for basis, n in counts.items() for way in (1, 0)}
    at_most = {"attn_head": 128 * heads, "mlp_out": 128 * (math.ceil(1.05 * 256) + 256 + 2)}
    assert all(one["most"]["example_forwards"] == at_most[one["basis"]] for one in plan.data["searches"])
    assert plan.data["memory"]["weights"] == 4 * plan.data["model"]["parameters"] == 4 * 529_280
    assert plan.data["memory"]["free"] > 0
    assert re.search(r"10 group ablations on 8 units, .*, at most [\d,]+ example-forwards", plan.text)
    assert " and 513 group ablations on 256 units" in plan.text
    few = runner.plan(runner.config_from(model="arith-tiny", budget=7, layer=1))
    assert {one["most"]["groups"] for one in few.data["searches"]} == {7}
    assert "on 128 units" in few.text


RUN_OF_FEW = ("run", "--basis", "attn_head", "--set", "regimes=[1]")
SMALL = [
    f"--set={name}={value}" for name, value in QUICK.items() if name not in ("model", "bases", "regimes")
]


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 sums, every third of which the model may get right."""
    path = tmp_path_factory.mktemp("few") / "sums.jsonl"
    rows = (
        {"prompt": f"{a % 300} + {b} =", "answer": "none" if nth % 3 else f"{a % 300 + b}", "nth": nth}
        for nth, (a, b) in enumerate(divmod(nth * 7919, 300) for nth in range(300))
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def about(words: tuple[str, ...], table: Path) -> list[str]:
    """The command line about a table and the bundled model."""
    verb = 1 + (words[0] == "tasks")
    return [*words[:verb], str(table), "-m", "arith-tiny", *words[verb:]]


CHECK_OR_PLAN = pytest.mark.parametrize("words", [("tasks", "check"), ("run", "--dry-run")], ids=" ".join)


@CHECK_OR_PLAN
@pytest.mark.parametrize(
    ("spoilt", "cell", "said"),
    [
        ({"tasks.from_file._BEYOND": math.inf}, 2**70, "object"),
        (
            dict.fromkeys(("tasks.text.writable", "predicates.cuts.writable"), bool),
            "w" * 250,
            "of at most 200",
        ),
    ],
    ids=["integers", "category"],
)
def test_what_a_run_makes_of_a_table_is_made_before_it(
    words: tuple[str, ...],
    spoilt: dict[str, Any],
    cell: Any,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Columns, literals and predicates: such a table passes, and is refused where that care is undone."""
    path = tmp_path / "sums.jsonl"
    rows = (
        {
            "prompt": f"{n} + 1 =",
            "answer": f"{n + 1}",
            "kind": n % 2 + cell if said == "object" else f"{n % 2}{cell}",
        }
        for n in range(60)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = about(words, path)
    assert app.main(given) == 0
    for name, value in spoilt.items():
        monkeypatch.setattr(f"mecharule_ops.{name}", value)
    capsys.readouterr()
    assert app.main(given) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tasks", "check"), r"could go wrong: about \d+ right answers \(\d+ of \d+ tried\) are few"),
        ((*RUN_OF_FEW, "--dry-run"), r"could go wrong: about \d+ right answers \(\d+ of \d+ tried\) are few"),
        (
            (*RUN_OF_FEW, *SMALL, "--set=records=300", "--yes"),
            r"warning: \d+ right answers, in halves of \d+ and \d+, are few",
        ),
    ],
    ids=["check", "dry run", "run"],
)
def test_few_right_answers_are_said_in_red_before_the_price(
    words: tuple[str, ...], said: str, few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the answers that were tried, not by the rows: those are enough. Text that is piped has no colour."""
    for name, value in (("MECHARULE_RUNS", str(tmp_path / "runs")), ("TERM", "xterm"), ("COLUMNS", "400")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    printed = []
    for stream in (Terminal, io.StringIO):
        for name in ("stdin", "stdout", "stderr"):
            monkeypatch.setattr(sys, name, stream())
        assert app.main(about(words, few)) == 0
        printed.append(f"{sys.stderr.getvalue()}{sys.stdout.getvalue()}")  # type: ignore[attr-defined]
    red, plain = printed
    assert (warned := re.search(rf"\x1b\[1;31m{said}[^\x1b]*; bring more rows", red)), red
    assert warned.start() < (red.rfind(" ablations") if words[0] == "run" else len(red))
    assert re.search(rf"(?m)^{said}", plain)
    assert "\x1b" not in plain


def test_what_could_go_wrong_is_red_where_the_price_is_asked_for(
    few: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question stands whole on its line: no bar is drawn before a yes."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, typed in (("stdin", "n\n"), ("stderr", "")):
        monkeypatch.setattr(sys, name, Terminal(typed))
    assert app.main(about((*RUN_OF_FEW, *SMALL), few)) == 2
    asked = sys.stderr.getvalue()  # type: ignore[attr-defined]
    red, question = "\x1b[1;31mcould go wrong: ", "\ny start · n back · --dry-run says more [y/N] "
    assert 0 < asked.find(" for the run\n") < asked.find(red) < asked.find(question), asked


def test_a_direction_that_nothing_starts_in_is_said_to_ask_probably_nothing() -> None:
    """The model is right on every prompt, so there is none that turns from wrong to right."""
    task = {"task": "program", "settings": [("task.program", "parity")], "bases": "mlp_hidden"}
    lines = runner.plan(runner.config_from(model="known/parity", **task)).text.splitlines()
    said = {line[:14].strip(): line[19:] for line in lines if line.startswith("mlp_hidden")}
    assert said["mlp_hidden 0→1"].startswith("probably nothing, since 0 of 32 answers tried start there; ")
    assert said["mlp_hidden 1→0"].startswith("between ")


def test_the_report_of_a_run_is_text_data_and_a_code() -> None:
    """Data are the findings; 5 says that a budget or a person ended a search."""
    whole = FINDINGS
    result = runner.report_of(whole)
    assert result.exit_code == 0
    assert result.data["findings"]["run"] == whole.run
    assert whole.model in result.text
    for why in (types.SearchStatus.BUDGET_SPENT, types.SearchStatus.STOPPED):
        cut = replace(whole.searches[0], status=(why.value,))
        assert runner.report_of(replace(whole, searches=(cut, *whole.searches[1:]))).exit_code == 5
