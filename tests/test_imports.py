"""Imports point down: app → tui → agent → tools → mecharule_ops; and what must load fast loads nothing heavy."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

import pytest
from bundled_run import opened

ROOT = Path(__file__).parent.parent
PRODUCT = ("app", "tui", "agent", "tools", "mecharule_ops", "prompts")
FLOORS = (
    *("app", "tui", "agent", "tools", "mecharule_ops"),
    *("notebook known_answers", "pages", "facts", "gates", "run", "findings engine mechanism store"),
    *("certificates", "replacement", "passes", "rules slices tasks predicates cha config loading"),
    "types mcnemar bases errors events confidence thresholds subsets spectral state plain_text numbers codec prompts",
)
"""Packages and the rooms of `mecharule_ops`, top floor first."""
HEAVY = ("torch", "transformer_lens", "transformers", "langgraph", "textual")
Graph = Mapping[str, Set[str]]
"""Modules by name, each with those it imports."""


def named(file: Path) -> str:
    """The dotted name of a module's file."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def modules_imported(source: str, known: Set[str]) -> set[str]:
    """Of the modules known, those that a text imports: at its head, inside a function, or for types alone."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inside & known) or {node.module}
    return found & known


@pytest.fixture(scope="module")
def graph() -> Graph:
    """The imports of the product."""
    places = [ROOT / "app.py", *(file for package in PRODUCT for file in (ROOT / package).rglob("*.py"))]
    files = {named(file): file.read_text(encoding="utf-8") for file in places}
    return {name: modules_imported(text, files.keys()) - {name} for name, text in files.items()}


def circle_in(graph: Graph) -> list[str]:
    """Modules that import one another round; empty when there is no circle."""
    left = dict(graph)
    while free := [name for name, needs in left.items() if not needs & left.keys()]:
        for name in free:
            del left[name]
    if not left:
        return []
    path = [min(left)]
    while len(set(path)) == len(path):
        path.append(min(left[path[-1]] & left.keys()))
    return path[path.index(path[-1]) :]


def room_of(module: str) -> str:
    """`store` of `mecharule_ops.store.keys`, `tools` of `tools.why`."""
    package, _, inside = module.partition(".")
    return inside.partition(".")[0] or package if package == "mecharule_ops" else package


def upward_arrows(graph: Graph) -> list[str]:
    """Imports into a higher floor."""
    floor = {room: height for height, rooms in enumerate(reversed(FLOORS)) for room in rooms.split()}
    return [
        f"{name} → {needed}"
        for name, needs in graph.items()
        for needed in needs
        if floor[room_of(name)] < floor[room_of(needed)]
    ]


def test_nothing_imports_what_stands_above_it_and_nothing_goes_round(graph: Graph) -> None:
    """Every file imports its own floor or those below, for types and inside functions too; siblings one way only."""
    assert len(graph) > 200
    assert upward_arrows(graph) == []
    assert circle_in(graph) == []
    rooms: dict[str, set[str]] = {}
    for name, needs in graph.items():
        rooms.setdefault(room_of(name), set()).update(map(room_of, needs))
    assert circle_in({room: needs - {room} for room, needs in rooms.items()}) == []


def test_an_arrow_up_and_a_circle_would_be_seen() -> None:
    """The checks can fail: at the head, inside a function, as a submodule, for types alone."""
    known = {"mecharule_ops.pages", "mecharule_ops.pages.as_text", "mecharule_ops.cha.tree", "tools.why"}
    source = "if TYPE_CHECKING:\n    from mecharule_ops.pages import as_text\n"
    assert modules_imported(source, known) == {"mecharule_ops.pages.as_text"}
    assert modules_imported("def f():\n    from tools.why import why\n", known) == {"tools.why"}
    assert modules_imported("import tools.why", known) == {"tools.why"}
    for up in ("mecharule_ops.pages.as_text", "tools.why"):
        assert upward_arrows({"mecharule_ops.cha.tree": {up}, up: set()}) == [
            f"mecharule_ops.cha.tree → {up}"
        ]
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert circle_in({"a": {"b"}, "b": set()}) == []


def test_screens_import_no_torch() -> None:
    """The screens show a state and send intents; the work happens behind `agent`."""
    for file in sorted((ROOT / "tui").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(import|from) (torch|transformers|transformer_lens)\b", text, re.M), file


def _loaded(code: str, heavy: Sequence[str] = HEAVY) -> list[str]:
    """Heavy packages in memory after running code in a fresh interpreter."""
    probe = f"{code}\nimport sys\nprint([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    return ast.literal_eval(done.stderr.strip().splitlines()[-1])


@pytest.mark.parametrize(
    "code",
    [
        "import app\ntry:\n    app.main(['--help'])\nexcept SystemExit:\n    pass",
        "import app\ntry:\n    app.main(['run', '--help'])\nexcept SystemExit:\n    pass",
        "import mecharule_ops.cha",
        "import mecharule_ops.run.live_run, mecharule_ops.state.run_state, mecharule_ops.pages",
        "import mecharule_ops as mr\nmr.open_run, mr.analyse, mr.FinishedRun",
        "import tools.registry, tools.arguments",
        "import agent.chat, agent.canonical",
    ],
    ids=["help", "run help", "search", "reading a run", "library", "tools", "conversation"],
)
def test_nothing_heavy_is_loaded_before_a_model_is_needed(code: str) -> None:
    """Help, the search core, reading a run and the list of tools start without torch."""
    assert _loaded(code) == []


@pytest.mark.parametrize("verb", ["--help", "runs"])
def test_help_and_the_list_of_runs_load_no_numerical_package(
    verb: str, copied_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MECHARULE_RUNS", str(copied_run.parent))
    code = f"import app\ntry:\n    app.main([{verb!r}])\nexcept SystemExit:\n    pass"
    assert _loaded(code, ("numpy", "jaxtyping")) == []


@pytest.mark.parametrize(
    "words",
    [
        ["why", "last", "UNIT"],
        ["why-not", "last", "m0.0"],
        ["why", "last", "UNIT", "--full"],
        ["show", "--section", "missed"],
        ["show"],
        ["ask", "last", "why does the strongest neuron flip?", "--llm", "none"],
    ],
    ids=" ".join,
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
