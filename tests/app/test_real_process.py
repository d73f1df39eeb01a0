"""The command in a process of its own, where the surroundings are poor: no home, closed or full streams, no UTF-8."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from command_process import ROOT, settings
from llm_wire import chat_events, stream
from pytest_httpserver import HTTPServer
from tiny_models import save_tiny

RUN = (
    *("run", "arithmetic", "-m", "arith-tiny", "--basis", "attn_head"),
    *("--records", "60", "--regime", "1", "--yes"),
)
SMALL = settings(
    slice_size=20, proposals=0, controls=1, controls_for=1, anchor_for=1, accounts_for=0, chains_for=0
)
NO_HOME = "import pwd\ndef unknown(uid):\n    raise KeyError(uid)\npwd.getpwuid = unknown\n"
"""Nobody has an entry among the system's users: what a container's user finds, whoever runs the tests."""


def mecharule(
    *words: str, streams: str = "", unset: tuple[str, ...] = (), code: int = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A command that must end with that exit code and without a traceback; a shell sets its `streams` up."""
    around = {"PYTHONPATH": str(ROOT), **os.environ, **environment}
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {streams}', "sh", sys.executable, str(ROOT / "app.py"), *words],
        env={name: value for name, value in around.items() if name in environment or name not in unset},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.returncode == code, done.stderr
    return done


def one_line(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    """The error is one line on stderr that says each of these; what is being done may stand before it."""
    (said,) = (line for line in done.stderr.splitlines() if line.startswith("mecharule: "))
    assert said.startswith("mecharule: expected ")
    assert all(part in said for part in parts), said


@pytest.fixture
def home(tmp_path: Path) -> Mapping[str, str]:
    """Folders of one's own."""
    return {f"MECHARULE_{name}": str(tmp_path / name.lower()) for name in ("RUNS", "CACHE", "CONFIG")}


# --- no home ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "variable"), [(("runs",), "RUNS"), (("models",), "CACHE"), (("ask", "last", "why?"), "CONFIG")]
)
def test_a_user_without_a_home_is_told_what_to_set(
    tmp_path: Path, home: Mapping[str, str], verb: tuple[str, ...], variable: str, finished_run: Path
) -> None:
    """Exit 2 with the variable that stands for the folder; help and a dry run with the folder named need none."""
    (tmp_path / "sitecustomize.py").write_text(NO_HOME, encoding="utf-8")
    path = f"{tmp_path}{os.pathsep}{ROOT}"
    places = {**home, "MECHARULE_RUNS": str(finished_run.parent)}
    without = {name: value for name, value in places.items() if not name.endswith(variable)}
    nobody = ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", f"MECHARULE_{variable}")
    done = mecharule(*verb, unset=nobody, code=2, PYTHONPATH=path, **without)
    one_line(done, "home folder", "HOME", variable)
    assert "ask about a unit" in mecharule("--help", "all", unset=nobody, PYTHONPATH=path, **without).stdout
    mecharule(*verb, unset=nobody, PYTHONPATH=path, **places)
    missing = mecharule("tasks", "check", "~/t.csv", unset=nobody, code=2, PYTHONPATH=path, **places)
    one_line(missing, "~/t.csv")


# --- streams ---------------------------------------------------------------------------------------------


def test_what_an_encoding_lacks_is_written_as_in_json(finished_run: Path) -> None:
    """Text, and JSON that reads back the same."""
    encoding = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    places = {"MECHARULE_RUNS": str(finished_run.parent)}
    shown = mecharule("show", **places, **encoding).stdout
    assert shown.isascii()
    assert "1\\u21920" in shown
    whole, plain = (mecharule("show", "--json", **places, **more).stdout for more in (encoding, {}))
    assert whole.isascii()
    assert not plain.isascii()
    assert json.loads(whole) == json.loads(plain)


def test_a_run_ends_well_where_stdout_is_ascii_and_stderr_full(home: Mapping[str, str]) -> None:
    """Its report is there; what it told meanwhile is left out."""
    done = mecharule(*RUN, *SMALL, streams="2>/dev/full", PYTHONIOENCODING="ascii", **home)
    assert done.stdout.startswith("Run ")
    assert "\\u2192" in done.stdout


@pytest.mark.parametrize("words", [("show",), ("show", "--json"), ("--help",), ("--version",)], ids=str)
def test_a_full_disk_under_stdout_is_exit_1_in_one_line(finished_run: Path, words: tuple[str, ...]) -> None:
    done = mecharule(*words, streams=">/dev/full", code=1, MECHARULE_RUNS=str(finished_run.parent))
    one_line(done, "stdout", "No space left on device")


def test_closed_streams_are_empty_ones(home: Mapping[str, str], finished_run: Path) -> None:
    """Nobody is at a closed stdin to be asked; a closed stderr moves no narration to stdout."""
    one_line(mecharule(*RUN[:-1], streams="<&-", code=2, **home), "--yes")
    one_line(mecharule(streams="<&-", code=2, **home), "verb")
    assert mecharule("show", "nothing", streams="2>&-", code=2, **home).stdout == ""
    assert mecharule("show", streams="<&- >&- 2>&-", MECHARULE_RUNS=str(finished_run.parent)).stdout == ""
    assert mecharule(*RUN, *SMALL, streams="<&- 2>&-", **home).stdout.startswith("Run ")


# --- Python without docstrings and asserts ----------------------------------------------------------------


def test_work_and_help_are_whole_without_docstrings(home: Mapping[str, str], finished_run: Path) -> None:
    """transformers and XGBoost cannot be imported so: the command begins anew with docstrings, whoever took them."""
    bare = {"PYTHONOPTIMIZE": "2", "PYTHONDONTWRITEBYTECODE": "1", **home}
    for words in (("--help",), ("why", "--help"), ("why", str(finished_run))):
        assert mecharule(*words, **bare).stdout == mecharule(*words, **home).stdout


# --- what comes from outside -------------------------------------------------------------------------------


def test_counts_that_cannot_be_are_refused_without_asserts_too() -> None:
    """More flips than examples, as a damaged file may hold, under `python -O`."""
    code = "from mecharule_ops.codec import decode; from mecharule_ops.types import FlipCount; "
    code += "decode(FlipCount, {'flips': 3, 'n': 2})"
    command = [sys.executable, "-O", "-c", code]
    around = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **os.environ}
    done = subprocess.run(command, env=around, capture_output=True, text=True, check=False)
    assert "UsageError: expected 0 to 2 flips, got 3" in done.stderr


def test_quantised_weights_are_refused_before_they_load(home: Mapping[str, str], tmp_path: Path) -> None:
    """Exit 3 with the method and the cure, from a dry run too."""
    folder = save_tiny(tmp_path / "packed", "llama")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"] = {"quant_method": "gptq", "bits": 4}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for last in ("--yes", "--dry-run"):
        done = mecharule("run", "arithmetic", "-m", str(folder), last, code=3, **home)
        one_line(done, "quantised", "gptq", "the model that they were made from")


def test_tool_calls_without_an_index_are_made(
    home: Mapping[str, str], finished_run: Path, httpserver: HTTPServer
) -> None:
    """Some servers number no calls: a call in two pieces stays one, and two stay two."""
    calls = chat_events(
        "", ("c1", "candidates", '{"limit"'), ("", "", ": 1}"), ("c2", "candidates", '{"limit": 2}')
    )
    for _, event in calls:
        for call in (one for choice in event["choices"] for one in choice["delta"].get("tool_calls", ())):
            del call["index"]
            call["id"] = call["id"] or None
            call["function"]["name"] = call["function"]["name"] or None
    said = iter([calls, *[chat_events("Two calls.")] * 9])
    httpserver.expect_request("/v1/chat/completions").respond_with_handler(lambda request: stream(next(said)))
    places = {**home, "MECHARULE_RUNS": str(finished_run.parent), "OPENAI_API_KEY": "none"}
    asked = ("ask", "last", "Xyzzy, which quuxes?", "--llm", "openai/x", "--output", "jsonl")
    done = mecharule(*asked, OPENAI_BASE_URL=httpserver.url_for("/v1"), **places)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    made = [event["arguments"] for event in events if event["kind"] == "tool_called"]
    assert made[-2:] == ['{"limit":1}', '{"limit":2}'], made
