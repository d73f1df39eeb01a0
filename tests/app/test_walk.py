"""The walk of a neuron's name from the command line to its ablation, as docs/architecture.md lists it."""

import re
import sys
from pathlib import Path
from types import FrameType

import pytest
from bundled_run import opened
from command_process import ROOT

import app

OURS = f"{ROOT}/"
MOST = 12
"""Files that the walk may open."""


def listed() -> list[str]:
    """The files of the page's table, in order."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("## From a name on the command line")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. `([^`]+)`", section, re.MULTILINE)


def own_file(frame: FrameType) -> str | None:
    """The project's file of a frame, relative to the root; None for other code and for tests."""
    name = frame.f_code.co_filename
    if not name.startswith(OURS):
        return None
    name = name.removeprefix(OURS)
    return None if name.startswith(("tests", ".venv")) else name


def test_the_page_lists_the_files_between_a_name_and_its_ablation(
    copied_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever is on the call stack when the unit is set is listed; what else is listed had a part in it."""
    monkeypatch.setenv("MECHARULE_RUNS", str(copied_run.parent))
    with opened(copied_run, read_only=True) as run:
        found = {str(agonist.neuron) for search in run.findings.searches for agonist in search.agonists}
    unit = next(name for name in (f"m0.{channel}" for channel in range(128)) if name not in found)
    entered: set[str] = set()
    on_the_way: set[str] = set()

    def see(frame: FrameType, event: str, argument: object) -> None:
        name = own_file(frame) if event == "call" else None
        if name is None:
            return
        entered.add(name)
        if name.endswith("passes/intervention.py") and frame.f_code.co_name == "apply":
            caller: FrameType | None = frame
            while caller is not None:
                on_the_way.add(own_file(caller) or "")
                caller = caller.f_back
            sys.setprofile(None)

    sys.setprofile(see)
    try:
        code = app.main(["ablate", copied_run.stem, unit, "--yes"])
    finally:
        sys.setprofile(None)
    assert code == 0
    assert unit in capsys.readouterr().out
    walk = listed()
    assert on_the_way - {""}, "the unit was never set"
    assert on_the_way - {""} - set(walk) == set()
    assert set(walk) - entered == set()
    assert len(walk) <= MOST
