"""The page's section on a task of one's own, followed to the letter in a fresh folder."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from command_process import ROOT, Commands, settings
from text_models import save_text_model

SMALL = (
    *("--display", "plain", "--tau", "0.3"),
    *settings(slice_size=12, max_pairs=4, controls=1, refinements=0, proposals=1),
    *settings(anchor_for=2, accounts_for=1, further=60, chains_for=0),
)
"""The same run, made small enough for a test."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example and nothing else; its runs lie there too."""
    fresh = tmp_path_factory.mktemp("fresh")
    shutil.copytree(ROOT / "examples", fresh / "examples")
    return fresh


@pytest.mark.slow
def test_the_commands_run_as_printed(commands: Commands, runs: Path) -> None:
    """Those of the section as docs/tasks.md prints it, as a shell splits them; with a tiny model in the place of
    SmolLM2, which need not be here."""
    page = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
    section = page.partition("## Your own task\n")[2].partition("\n## ")[0]
    lines = map(shlex.split, re.findall(r"^mecharule (.*)$", section, re.MULTILINE))
    model = str(save_text_model(runs / "model", (" positive", " negative", "\n"), seed=0))
    plan, run, ask = ([model if word == "smollm2-135m" else word for word in line] for line in lines)
    planned = commands.main(*plan)
    assert planned.code == 0, planned.err
    done = commands.main(*run, *SMALL)
    assert done.code == 0, done.err
    assert "which is right on" in done.out
    answered = commands.main(*ask)
    assert answered.code == 0, answered.err
