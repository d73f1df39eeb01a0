"""The command line as a shell sees it: exit codes, one line for every kind of wrong input, nothing lost."""

import json
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command_process import ROOT, Commands, Done

import app
from agent.verbs import command_line, options
from mecharule_ops.config import RunConfig
from mecharule_ops.events import Event
from mecharule_ops.store import keys, run_directory, run_store
from tools.registry import TOOLS
from tui import display

TINY = (
    *("--basis", "attn_head", "--records", "60", "--regime", "1"),
    *("--set", "slice_size=20", "--set", "accounts_for=0", "--set", "chains_for=0"),
)
"""A run that costs almost nothing before its price is asked, and little after."""


def _refused(done: Done, code: int, *words: str) -> None:
    """The exit code, and one line on stderr after the narration that says each of the words."""
    assert done.code == code, done.err
    last = done.err.strip().splitlines()[-1]
    assert last.startswith("mecharule: ")
    for word in words:
        assert word in last
    assert "Traceback" not in done.err


# --- wrong input ------------------------------------------------------------------------------------------

RUN = ("run", "arithmetic", "-m", "arith-tiny")
WRONG: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("run", "arithmetic", "-m", "gpt9", "--yes"), ("gpt9", "arith-tiny", "models list")),
    (("run", "poetry", "-m", "arith-tiny", "--yes"), ("poetry", "arithmetic")),
    (("run", "-m", "arith-tiny"), ("expected a task and --model NAME, or --from RUN",)),
    ((*RUN, "--yes", "--device", "cuda:77"), ("expected the device cuda:77", "this machine has cpu")),
    ((*RUN, "--yes", "--device", "tpu"), ("device", "tpu")),
    ((*RUN, "--basis", "neurons"), ("neurons", "mlp_out", "attn_head")),
    ((*RUN, "--set", "task.high=-1", "--yes"), ("low", "high", "-1")),
    (("run", "jailbreak", "-m", "arith-tiny"), ("expected a file of requests",)),
    (("run", "jailbreak", "-m", "arith-tiny", "--set", "task.grader=x"), ("expected a grader of",)),
    (("run", "none.txt", "-m", "arith-tiny"), ("none.txt', which is none",)),
    (("run", "./none.py:Task", "-m", "arith-tiny"), ("expected a Python file",)),
    ((*RUN, "--set", "tau"), ("KEY=VALUE",)),
    ((*RUN, "--set", "colour=1"), ("colour",)),
    ((*RUN, "--set", "task.colour=1"), ("colour",)),
    ((*RUN, "--set", "regimes=[2]"), ("regimes",)),
    ((*RUN, "--regime", "2"), ("both",)),
    ((*RUN, "--tau", "0"), ("tau",)),
    ((*RUN, "--records", "many"), ("records",)),
    (RUN, ("--yes", "--budget N", "--dry-run")),
    ((*RUN, "--llm", "oracle"), ("oracle",)),
    ((*RUN, "--yes", "--llm", "mock:absent"), ("a script of a mock model in absent",)),
    ((*RUN, "--config", "absent.json"), ("absent.json",)),
    (("run", "poetry", "-m", "arith-tiny", "--dry-run"), ("poetry", "arithmetic")),
    ((*RUN, "--set", 'task.operators=["^"]', "--dry-run"), ("^",)),
    ((*RUN, "--set", f"task.prefix={'1+1=2 ' * 20}", "--dry-run"), ("expected prompts of at most",)),
    ((*RUN, "--hlep"), ("got '--hlep'; did you mean '--help'?", "mecharule run --help")),
    (("rnu",), ("expected a verb, got 'rnu'; did you mean 'run'?",)),
    ((), ("terminal",)),
    (("tasks", "chek", "prompts.jsonl"), ("list or check, got 'chek'; did you mean 'check'?",)),
    (("tasks", "check", "table.xls"), ("got 'table.xls'", ".csv, .tsv", "`mecharule tasks`")),
    (("show", "last", "more"), ("expected nothing more, got 'more'",)),
    (("show", "--table", "units", "--section", "cost"), ("--table or --section, got both",)),
    (("show", "nothing"), ("got 'nothing'", "`mecharule runs`")),
    (("flip", "last", "m1.14"), ("expected --prompt (a question of the task", "got none")),
    (("tabulate", "last"), ("expected units", "got none")),
    (("why", "last", "m4"), ("a unit such as",)),
    (("demo", "--display", "neon"), ("neon",)),
)


@pytest.mark.parametrize(("arguments", "words"), WRONG, ids=lambda each: " ".join(each))
def test_what_is_wrong_is_answered_in_a_line_with_the_way_out_and_leaves_no_run(
    commands: Commands, runs: Path, finished_run: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    """Exit 2: what was expected, what came, what to do."""
    shutil.copy(finished_run, runs / finished_run.name)
    before = set(runs.glob("*.mecharule"))
    done = commands.main(*arguments)
    _refused(done, 2, *words)
    assert done.out == ""
    assert set(runs.glob("*.mecharule")) == before


def test_a_terminal_that_draws_nothing_is_none(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """As Emacs' shell is: TERM=dumb."""
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    assert app.main([]) == 2
    assert "this is no terminal for the screens" in capsys.readouterr().err


@pytest.mark.parametrize("last", ["--yes", "--dry-run"])
def test_a_directory_that_is_no_model_is_said_to_be_none(
    commands: Commands, runs: Path, tmp_path: Path, last: str
) -> None:
    """Exit 3, and no run."""
    before = set(runs.glob("*.mecharule"))
    _refused(commands.main("run", "arithmetic", "-m", str(tmp_path), last), 3, str(tmp_path), "config.json")
    assert set(runs.glob("*.mecharule")) == before


def test_a_behaviour_that_is_all_wrong_has_nothing_to_explain(commands: Commands, tmp_path: Path) -> None:
    """Exit 1: a random model never adds."""
    from tiny_models import save_tiny

    model = save_tiny(tmp_path / "random", "llama")
    done = commands.main("run", "arithmetic", "-m", str(model), *TINY, "--yes")
    _refused(done, 1, "all 60 wrong", "easier")


def test_predicates_that_are_wrong_are_refused_one_by_one_with_reasons(
    commands: Commands, runs: Path, tmp_path: Path
) -> None:
    """A syntax error, a wrong type, a constant, a reach outside: each is named, none is run, the run goes on."""
    wrong = {
        "a >": "parse",
        "a + 'x'": "number",
        "a == a": "constant",
        "__import__('os').system('touch owned')": "function",
        "open('x')": "function",
    }
    script = tmp_path / "rounds.json"
    script.write_text(json.dumps({"replies": [{"json": {"predicates": [*wrong, "a > 150"]}}]}))
    done = commands.main("run", "arithmetic", "-m", "arith-tiny", "--llm", f"mock:{script}", *TINY, "--yes")
    assert done.code == 0, done.err
    newest = max(runs.glob("*.mecharule"), key=lambda path: path.stat().st_mtime)
    with run_store.RunStore.open(newest, read_only=True) as store:
        refusals = {row["text"]: row["reason"] for row in store.get(keys.Artefact("vocabulary"))["refusals"]}
    assert wrong.keys() <= refusals.keys()
    assert all("\n" not in reason for reason in refusals.values())
    assert not (runs / "owned").exists()


def test_a_corrupt_run_file_is_said_to_be_damaged(commands: Commands, runs: Path) -> None:
    """Exit 1 from every verb that opens it; the list of runs still works and says so."""
    broken = runs / "dead.mecharule"
    broken.write_bytes(b"SQLite format 3\x00" + b"\xff" * 4096)
    for verb in (("show", "dead"), ("resume", "dead"), ("why", "dead", "m0.1")):
        _refused(commands.main(*verb), 1, "dead.mecharule")
    assert "unreadable" in commands.main("runs").out
    broken.unlink()


def test_a_full_disk_ends_a_run_in_one_line_and_what_was_stored_stays(commands: Commands, runs: Path) -> None:
    """Exit 1 with what to do; with room again `resume` goes on from the stored behaviour."""
    with commands.small_files(150_000):
        _refused(commands.main("run", "arithmetic", "-m", "arith-tiny", *TINY, "--yes"), 1, "disk", "resume")
    path = max(runs.glob("*.mecharule"), key=lambda path: path.stat().st_mtime)
    done = commands.main("resume", path.stem, "--display", "plain")
    assert done.code == 0, done.err
    assert "behaviour" in done.err
    with run_store.RunStore.open(path, read_only=True) as store:
        assert store.has("findings")
    path.unlink()


def test_a_finished_run_stays_as_it_is(commands: Commands, runs: Path, finished_run: Path) -> None:
    """`resume` says so in a line, exit 0, and not one byte is changed."""
    path = Path(shutil.copy(finished_run, runs / finished_run.name))
    before = path.read_bytes()
    done = commands.main("resume", path.stem)
    assert (done.code, "is finished, nothing is left to do" in done.out) == (0, True)
    assert path.read_bytes() == before
    path.unlink()


def test_help_of_run_shows_what_is_set_every_day_and_after_all_every_setting(commands: Commands) -> None:
    short, whole = commands.main("run", "--help").out, commands.main("run", "--help", "all").out
    assert all(said in short for said in ("--records", "`mecharule run --help all`"))
    assert all(option in whole and option not in short for option in ("--layer", "--dtype", "--parity"))
    assert all(f"\n  {name}" in whole for name in RunConfig.model_fields)
    assert ("Undefined" in whole, '\n  bases=["mlp_out"]: ' in whole) == (False, True)
    assert set(RunConfig.model_fields) >= options.SETTINGS_SHOWN


def test_help_lists_every_verb_once(commands: Commands) -> None:
    listed = [verb for group in command_line.GROUPS.values() for verb in group]
    assert sorted(listed) == sorted({*options.VERBS, *TOOLS})
    shown = commands.main("--help", "all").out
    assert all(f"\n  {verb}" in shown for verb in listed)
    short = commands.main("--help").out
    assert [verb for verb in listed if f"\n  {verb} " in short] == list(command_line.GROUPS["begin"])
    assert max(map(len, [*shown.splitlines(), *short.splitlines()])) <= 80


# --- the contract with a shell ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [("show", "nothing", "--json"), ("sing", "--json"), ("resume", "x", "--output", "jsonl")]
)
def test_failure_prints_json_where_json_was_asked(commands: Commands, arguments: tuple[str, ...]) -> None:
    """stdout holds one object with the message and the exit code; stderr the same line for a person."""
    done = commands.main(*arguments)
    assert done.data["ok"] is False
    assert done.data["exit_code"] == done.code == 2
    assert done.data["error"] in done.err


def test_interrupting_ends_with_130_and_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C is no crash."""
    for name, code in (("SIGTERM", 143), ("SIGHUP", 129), ("SIGUSR1", 138)):
        monkeypatch.setattr(app, "parser", partial(_interrupted, getattr(signal, name)))
        assert app.main(["run"]) == code
        assert f"mecharule: stopped by {name}; what was stored is kept" in capsys.readouterr().err
    monkeypatch.setattr(app, "parser", _interrupted)
    assert app.main(["run", "arithmetic", "--json"]) == 130
    shown = capsys.readouterr()
    assert json.loads(shown.out)["exit_code"] == 130
    assert "resume" in shown.err
    assert app.main(["ask", "0c1f", "why does m1.37 flip?"]) == 130
    assert capsys.readouterr().err == "mecharule: interrupted; what was stored is kept\n"


def test_a_run_that_is_interrupted_is_named_with_what_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Something is said at once; one cut before its first event is on file has its task and model in the list."""
    monkeypatch.setenv("MECHARULE_RUNS", str(tmp_path))
    shown = display.LineDisplay.show

    def show(self: display.LineDisplay, event: Event) -> None:
        shown(self, event)
        raise KeyboardInterrupt

    monkeypatch.setattr(display.LineDisplay, "show", show)
    assert app.main(["run", "arithmetic", "-m", "arith-tiny", "--yes", "--display", "plain"]) == 130
    (run,) = run_directory.list_runs(tmp_path)
    assert (run.status, run.task, run.model) == ("interrupted", "arithmetic", "arith-tiny")
    said = capsys.readouterr().err
    assert said.startswith("loading the engine")
    assert said.endswith(f"kept in run {run.id}, `mecharule resume {run.id}` continues\n")


def test_the_answer_without_a_model_stands_before_the_models(
    commands: Commands, copied_run: Path, tmp_path: Path
) -> None:
    """Marked, and once where the model fails; a program that asks for JSON reads one answer."""
    script = tmp_path / "script.json"
    asked = ("ask", str(copied_run), "why does the strongest channel flip?", "--new", "--llm")
    alone = commands.main(*asked, "none").out.strip()
    for reply, ends in (
        ({"text": "It does."}, "It does."),
        ({"fault": "server"}, "it failed; the answer above stands"),
    ):
        script.write_text(json.dumps({"replies": [reply]}))
        out = commands.main(*asked, f"mock:{script}").out
        assert out.startswith(f"Without a model:\n{alone}\n\nThe model:\n{ends}")
        assert isinstance(commands.main(*asked, f"mock:{script}", "--json").data, dict)


def _interrupted(number: Any, *given: object) -> None:
    raise KeyboardInterrupt(*[number] * isinstance(number, signal.Signals))


def test_a_closed_pipe_is_no_error() -> None:
    """`mecharule … | head` ends quietly."""
    command = [sys.executable, str(ROOT / "app.py"), "--help"]
    piped = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    piped.stdout.close()
    assert (piped.stderr.read(), piped.wait()) == (b"", 0)


@pytest.mark.slow
def test_the_demo_tells_the_whole_story(commands: Commands) -> None:
    """A search, a report, a question with a certificate, and its verification; exit 0."""
    done = commands.main("demo", "--display", "plain", "--json")
    assert done.code == 0, done.err
    assert done.data["report"]["findings"]["model"] == "arith-tiny"
    cited, verification = done.data["answer"]["certificates"], done.data["verification"]
    match = verification["certificates.match"]
    assert match["matched"] == match["of"] == len(cited) > 1
    assert "price" in done.err


def test_without_a_unit_the_strongest_is_taken_and_named(commands: Commands, copied_run: Path) -> None:
    """Of the last run, also where a unit stands in the run's place; a verb that needs more than a unit asks for it."""

    def told(*words: str) -> Done:
        return commands.main(*words, MECHARULE_RUNS=str(copied_run.parent))

    run = copied_run.stem
    named = told("why", run, "m1.14")
    assert (named.code, named.err) == (0, "")
    for words in (("why", run), ("why",)):
        done = told(*words)
        assert (done.code, done.out) == (0, named.out)
        assert done.err == f"no unit is named: m1.14, the strongest of run {run}\n"
    done = told("why", "m1.14")
    assert (done.code, done.out, done.err) == (0, named.out, "")
    _refused(told("tabulate", run), 2, "expected units")
    none = told("why", run, "--regime", "0")
    assert (none.code, none.out) == (0, told("show", run).out)
