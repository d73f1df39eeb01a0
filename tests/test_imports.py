"""Imports point down: app → tui → agent → tools → mecharule_ops; and what must load fast loads nothing heavy."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Mapping, Set
from pathlib import Path

import pytest
from bundled_run import opened

ROOT = Path(__file__).parent.parent
ORDER = ("app", "tui", "agent", "tools", "mecharule_ops")
FLOORS = (
    ("",),
    ("notebook", "known_answers"),
    ("pages",),
    ("facts",),
    ("gates",),
    ("run",),
    ("findings", "engine", "mechanism", "store"),
    ("certificates",),
    ("replacement",),
    ("passes",),
    ("rules", "slices", "tasks", "predicates", "cha", "config", "loading"),
    (
        "types",
        "mcnemar",
        "bases",
        "errors",
        "events",
        "confidence",
        "thresholds",
        "subsets",
        "spectral",
        "state",
        "plain_text",
        "numbers",
        "codec",
    ),
)
"""Rooms of `mecharule_ops`, top floor first."""
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


def graph_of(*packages: str) -> dict[str, set[str]]:
    """The imports inside some packages."""
    files = {named(file): file for package in packages for file in (ROOT / package).rglob("*.py")}
    return {
        name: modules_imported(file.read_text(encoding="utf-8"), files.keys()) - {name}
        for name, file in files.items()
    }


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
    """`store` of `mecharule_ops.store.keys`; empty for the package itself."""
    return module.partition(".")[2].partition(".")[0]


def upward_arrows(graph: Graph) -> list[str]:
    """Imports into a higher floor."""
    floor = {room: height for height, rooms in enumerate(reversed(FLOORS)) for room in rooms}
    return [
        f"{name} → {needed}"
        for name, needs in graph.items()
        for needed in needs
        if floor[room_of(name)] < floor[room_of(needed)]
    ]


def test_no_room_imports_a_room_above_it() -> None:
    """Every file of the library stands on one floor and imports its own floor or those below."""
    assert upward_arrows(graph_of("mecharule_ops")) == []


def test_no_files_import_one_another_round() -> None:
    """Imports for types and inside functions count."""
    assert circle_in(graph_of("mecharule_ops", "agent", "tools", "tui", "prompts")) == []


def test_rooms_of_one_floor_import_no_circle() -> None:
    """Siblings may lean on one another one way only."""
    rooms: dict[str, set[str]] = {}
    for name, needs in graph_of("mecharule_ops").items():
        rooms.setdefault(room_of(name), set()).update(map(room_of, needs))
    assert circle_in({room: needs - {room} for room, needs in rooms.items()}) == []


def test_an_arrow_up_and_a_circle_would_be_seen() -> None:
    """The checks can fail, for types alone too."""
    source = "if TYPE_CHECKING:\n    from mecharule_ops.pages import as_text\n"
    known = {"mecharule_ops.pages", "mecharule_ops.pages.as_text", "mecharule_ops.cha.tree"}
    assert modules_imported(source, known) == {"mecharule_ops.pages.as_text"}
    up = {
        "mecharule_ops.cha.tree": {"mecharule_ops.pages.as_text"},
        "mecharule_ops.pages.as_text": set[str](),
    }
    assert upward_arrows(up) == ["mecharule_ops.cha.tree → mecharule_ops.pages.as_text"]
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert circle_in({"a": {"b"}, "b": set()}) == []


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
    probe = (
        f"import sys, app\ntry:\n    app.main([{verb!r}])\nfinally:\n    "
        "print({'numpy', 'jaxtyping'} & sys.modules.keys(), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr.strip().splitlines()[-1] == "set()"


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
