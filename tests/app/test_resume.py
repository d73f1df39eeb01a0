"""A run that is killed with SIGKILL continues where it was: same findings, no ablation made twice.

One process imports everything once and forks each attempt, `mecharule run` first and then `mecharule resume`,
through the command's own `main`. Every group × example that reaches the engine is written down before it is
evaluated, so that what a killed attempt paid is known too.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from bundled_run import QUICK, opened
from outcome_audit import cells

from mecharule_ops.events import RunFinished, SearchFinished, StageFinished

_ATTEMPTS = """
import json, os, signal, sys
from pathlib import Path
from types import SimpleNamespace
import app
import mecharule_ops.run.analyse, mecharule_ops.engine.ablation, mecharule_ops.loading.model_names, xgboost, shap
from agent.verbs import runner
from mecharule_ops.store.stored_engine import StoredEngine

folder, moments = Path(os.environ["MECHARULE_RUNS"]), json.loads(sys.argv[1])
make = StoredEngine.__init__

def audited(self, engine, *rest):
    def made():
        inner = engine()
        evaluate = inner.evaluate

        def told(groups, examples):
            os.write(audit, (json.dumps([len(groups), len(examples)]) + "\\n").encode())
            return evaluate(groups, examples)

        return SimpleNamespace(evaluate=told)

    make(self, made, *rest)

def attempt(number, arguments, moment):
    '''Run the command in a child; kill it once it has told so many events of a kind.'''
    global audit
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        audit = os.open(folder / f"audit{number}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        StoredEngine.__init__ = audited
        os.dup2(writer, 1)
        os._exit(app.main(arguments))
    os.close(writer)
    kind, count = moment
    for line in os.fdopen(reader):
        count -= json.loads(line)["kind"] == kind
        if count == 0:
            os.kill(child, signal.SIGKILL)
            break
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

flags = ["--display", "none", "--output", "jsonl"]
codes = []
for number, moment in enumerate([*moments, ["none", 1]]):
    verb = ["resume", "last"] if number else ["run", "arithmetic", "-m", "arith-tiny", "--yes", "--config", sys.argv[2]]
    codes.append(attempt(number, verb + flags, moment))
    run = next(folder.glob("*.mecharule"))
    (folder / f"state{number}").mkdir()
    for part in folder.glob(run.name + "*"):
        (folder / f"state{number}" / part.name).write_bytes(part.read_bytes())
print(json.dumps(codes))
"""
MOMENTS = [["node_asked", 3], ["node_tested", 12], ["agonist_found", 2], ["stage_finished", 10]]


@pytest.fixture(scope="module")
def attempts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was killed four times and resumed to its end."""
    folder = tmp_path_factory.mktemp("killed")
    settings = folder / "settings.json"
    settings.write_text(json.dumps(QUICK))
    done = subprocess.run(
        [sys.executable, "-c", _ATTEMPTS, json.dumps(MOMENTS), str(settings)],
        capture_output=True,
        text=True,
        env={**os.environ, "MECHARULE_RUNS": str(folder), "PYTHONPATH": str(Path.cwd())},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [-9] * len(MOMENTS) + [0], done.stderr
    return folder


def run_file(folder: Path) -> Path:
    return next(folder.glob("*.mecharule"))


def paid(folder: Path, attempt: int) -> list[int]:
    """Cells of each engine call of an attempt."""
    lines = (folder / f"audit{attempt}").read_text().splitlines()
    return [groups * examples for groups, examples in map(json.loads, lines)]


def stored(folder: Path, attempt: int) -> Counter:
    """What the file held when the attempt was over."""
    return cells(run_file(folder / f"state{attempt}"))


def test_a_killed_run_ends_with_the_findings_of_an_uninterrupted_one(attempts: Path, quick_run: Path) -> None:
    """Apart from its name and times nothing tells the two apart, certificates and outcomes included."""
    with opened(quick_run, read_only=True) as whole, opened(run_file(attempts), read_only=True) as killed:
        assert replace(killed.findings, run="", stages={}) == replace(whole.findings, run="", stages={})
        assert {c.id for c in killed.store.certificates()} == {c.id for c in whole.store.certificates()}
    assert cells(run_file(attempts)) == cells(quick_run)


def test_no_stored_ablation_is_repeated(attempts: Path) -> None:
    """Each attempt pays for exactly what it adds; a kill, and these hit the search, loses at most the call it hit."""
    before, sizes = Counter(), list[int]()
    for attempt in range(len(MOMENTS) + 1):
        after = stored(attempts, attempt)
        calls, added = paid(attempts, attempt), len(after) - len(before)
        assert added == sum(calls) or (attempt < len(MOMENTS) and added == sum(calls[:-1]))
        assert before.keys() <= after.keys()
        before = after
        sizes.append(len(after))
    assert max(before.values()) == 1
    assert 0 < sizes[0] < sizes[-1]
    assert len(set(sizes)) >= 3


def test_a_resumed_run_tells_what_it_reused(attempts: Path) -> None:
    """Behaviour, vocabulary and splitter come from the file; the last telling ends every search and the run."""
    with opened(run_file(attempts), read_only=True) as run:
        events = [event for _, _, event in run.store.events()]
    last = events[-1]
    assert isinstance(last, RunFinished)
    assert last.status.startswith("finished")
    reused = [event.stage for event in events if isinstance(event, StageFinished) and event.reused]
    assert {"behaviour", "predicates", "splitter rule"} <= set(reused)
    assert sum(isinstance(event, RunFinished) for event in events) == 1
    assert any(isinstance(event, SearchFinished) for event in events)
