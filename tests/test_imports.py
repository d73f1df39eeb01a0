"""Imports point down: app → tui → agent → tools → mecharule_ops; and what must load fast loads nothing heavy."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from bundled_run import opened

ROOT = Path(__file__).parent.parent
ORDER = ("app", "tui", "agent", "tools", "mecharule_ops")
HEAVY = ("torch", "transformer_lens", "transformers", "langgraph", "textual")


def imported_by(source: str) -> set[str]:
    """Top-level packages that a module's text imports anywhere, at its head or inside a function."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def upward(package: str, source: str) -> set[str]:
    """Packages above `package` that its text imports."""
    return imported_by(source) & set(ORDER[: ORDER.index(package)])


@pytest.mark.parametrize("package", ORDER[1:])
def test_no_module_imports_a_package_above_it(package: str) -> None:
    """Every file of the package, imports inside functions included."""
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    wrong = {
        str(file): found for file in files if (found := upward(package, file.read_text(encoding="utf-8")))
    }
    assert wrong == {}


def test_an_upward_import_would_be_seen() -> None:
    """The check can fail: at the head, inside a function, as a submodule."""
    assert upward("tools", "import agent.verbs.runner") == {"agent"}
    assert upward("mecharule_ops", "def f():\n    from tools.why import why\n") == {"tools"}
    assert upward("agent", "from tools import registry\nimport mecharule_ops.types") == set()


def test_screens_import_no_torch() -> None:
    """The screens show a state and send intents; the work happens behind `agent`."""
    for file in sorted((ROOT / "tui").rglob("*.py")):
        assert not imported_by(file.read_text(encoding="utf-8")) & {
            "torch",
            "transformers",
            "transformer_lens",
        }, file


def _loaded(code: str) -> list[str]:
    """Heavy packages in memory after running code in a fresh interpreter."""
    probe = f"{code}\nimport sys\nprint([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    return ast.literal_eval(done.stderr.strip().splitlines()[-1])


@pytest.mark.parametrize(
    "code",
    [
        "import app\ntry:\n    app.main(['--help'])\nexcept SystemExit:\n    pass",
        "import app\ntry:\n    app.main(['run', '--help'])\nexcept SystemExit:\n    pass",
        "import mecharule_ops.cha",
        "import mecharule_ops.pipeline.run, mecharule_ops.state.run_state, mecharule_ops.report",
        "import tools.registry, tools.catalogue",
        "import agent.answering.conversation, agent.answering.router",
    ],
    ids=["help", "run help", "search", "reading a run", "tools", "conversation"],
)
def test_nothing_heavy_is_loaded_before_a_model_is_needed(code: str) -> None:
    """Help, the search core, reading a run and the list of tools start without torch."""
    assert _loaded(code) == []


@pytest.mark.parametrize(
    "words",
    [
        ["why", "last", "UNIT"],
        ["why-not", "last", "m0.0"],
        ["covers", "last", "UNIT"],
        ["shared", "last", "UNIT"],
        ["missed"],
        ["show"],
        ["ask", "last", "why does the strongest neuron flip?", "--llm", "none"],
    ],
    ids=lambda words: words[0],
)
def test_questions_about_what_is_stored_load_no_model(
    words: list[str], copied_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finished run is explained from its file: no torch, no model, no graph."""
    monkeypatch.setenv("MECHARULE_RUNS", str(copied_run.parent))
    with opened(copied_run, read_only=True) as run:
        rules = run.findings.searches[0].anchored
    unit = next(str(rule.neuron) for rule in rules if rule.rule)
    line = [unit if word == "UNIT" else word for word in words]
    assert _loaded(f"import app\nassert app.main({line!r}) == 0") == []


def test_the_probe_sees_a_heavy_package() -> None:
    """The check can fail."""
    assert _loaded("import torch") == ["torch"]
