"""What is built and handed out works outside the checkout, and holds every file that it reads."""

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = (
    "app.py",
    "mecharule_ops/py.typed",
    "mecharule_ops/loading/arith_tiny/config.json",
    "mecharule_ops/loading/arith_tiny/model.safetensors",
    "mecharule_ops/loading/arith_tiny/tokenizer.json",
    *(
        f"mecharule_ops/tasks/example_sets/{name}.jsonl"
        for name in ("ioi", "agreement", "greater-than", "hans")
    ),
    "mecharule_ops/tasks/presets.toml",
)
"""Beside these, every prompt."""


def run(*words: str | Path, folder: Path, **more: str) -> str:
    """What a command prints, in a folder and with the checkout out of sight; its errors are shown when it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | more
    told = [str(word) for word in words]
    done = subprocess.run(told, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist, built from a copy of the checkout's tracked and new files."""
    folder = tmp_path_factory.mktemp("built")
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", folder=ROOT).splitlines()
    for name in filter(lambda name: (ROOT / name).is_file(), listed):
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / "source" / name)
    make = (
        "from setuptools import build_meta as backend\n"
        "backend.build_sdist('../dist')\nbackend.build_wheel('../dist')"
    )
    (folder / "dist").mkdir()
    run(sys.executable, "-c", make, folder=folder / "source")
    return folder / "dist"


@pytest.mark.slow
def test_wheel_and_sdist_hold_every_file_that_is_read(built: Path) -> None:
    """Prompts, the bundled model, pages of the app, `py.typed`; no test and nothing of the agent's memory."""
    (wheel,) = built.glob("*.whl")
    (source,) = built.glob("*.tar.gz")
    inside = set(zipfile.ZipFile(wheel).namelist())
    prompts = {f"prompts/{file.name}" for file in (ROOT / "prompts").glob("*.md")}
    assert prompts
    assert (prompts | set(NEEDED)) - inside == set()
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in inside)
    with tarfile.open(source) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert (prompts | set(NEEDED) | {"pyproject.toml", "LICENSE"}) - held == set()


@pytest.mark.slow
def test_the_wheel_works_outside_the_checkout(built: Path, tmp_path: Path) -> None:
    """Installed into an empty environment, beside the dependencies of this one: the library and the command answer,
    and a notebook's cells run."""
    (wheel,) = built.glob("*.whl")
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    site = "import site; print(site.getsitepackages()[0])"
    installed = Path(run(python, "-c", site, folder=tmp_path).strip())
    install = ("-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)
    run(sys.executable, *install, folder=tmp_path)
    # Packages of this environment, without its editable finder, which would lead back to the checkout.
    dependencies = [entry for entry in sys.path if entry.endswith("site-packages")]
    (installed / "dependencies.pth").write_text("\n".join(dependencies), encoding="utf-8")
    code = (
        "import mecharule_ops as mr, app, agent, tools, tui, prompts\n"
        "from mecharule_ops.loading.model_names import directory_of\n"
        "assert directory_of('arith-tiny').is_dir() and callable(mr.analyse)\n"
        "print(*(module.__file__ for module in (mr, app, agent, tools, tui, prompts)), sep='\\n')"
    )
    places = run(python, "-c", code, folder=tmp_path).splitlines()
    assert all(place.startswith(str(installed)) for place in places), places
    # As a notebook of a fresh machine: its kernel is the environment's own, and no file of the checkout is in sight.
    shutil.copy(ROOT / "examples" / "account.ipynb", tmp_path)
    code = (
        "import nbformat\nfrom nbclient import execute\nbook = nbformat.read('account.ipynb', as_version=4)\n"
        "book.cells.append(nbformat.v4.new_code_cell('print(mr.__file__)'))\n"
        "print(execute(book, timeout=900, kernel_name='python3').cells[-1].outputs[0].text)"
    )
    assert run(python, "-c", code, folder=tmp_path, HOME=str(tmp_path)).strip().startswith(str(installed))
    assert run(home / "bin" / "mecharule", "--version", folder=tmp_path).strip().endswith("0.1.0")
