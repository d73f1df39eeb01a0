"""`mecharule experiment` as a shell sees it: wrong input, the price, pages, reuse of finished runs, a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bundled_run import opened
from command_process import ROOT, Commands, Done, settings

from mecharule_ops.events import RunFinished, StageFinished

QUICK = (
    *("--basis", "attn_head", "--records", "120", "--regime", "1", "--display", "none"),
    *settings(slice_size=20, proposals=0, anchor_for=1, accounts_for=0, chains_for=0, controls_for=1),
)
"""Runs of a second or two."""


def _refused(done: Done, *words: str) -> None:
    """Exit 2, one line that says each of the words, no run made."""
    assert done.code == 2, done.err
    last = done.err.strip().splitlines()[-1]
    assert last.startswith("mecharule: ")
    assert all(word in last for word in words), last


def _events(folder: Path) -> Mapping[str, list[object]]:
    """Every event of every run, by run."""
    told: dict[str, list[object]] = {}
    for path in (folder / "experiments").glob("*.mecharule"):
        with opened(path, read_only=True) as run:
            told[path.stem] = [event for _, _, event in run.store.events()]
    return told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("e9",), ("e9", "sensitivity", "overlap")),
        (("e0", "--seeds", "0"), ("--seeds",)),
        (("e0", "--task", "poetry"), ("poetry", "arithmetic")),
        (("e0", "--basis", "mlp_out,attn_head"), ("one basis",)),
        (("e2", "--basis", "mlp_hidden"), ("--exhaustive-up-to 1024",)),
        (("e0", "--units", "m0.1"), ("--units", "baselines")),
        (("baselines", "--units", "m0"), ("a unit such as",)),
        (("e0", "--set", "colour=1"), ("colour",)),
        (("e0", *QUICK), ("price", "--yes")),
    ],
)
def test_wrong_input_is_one_line_and_exit_2(
    commands: Commands, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    """An unknown name or setting, what an experiment cannot do, and a price that nobody accepts."""
    _refused(commands.main("experiment", *arguments), *words)


def test_an_unknown_model_is_exit_2(commands: Commands) -> None:
    """As for `run`."""
    assert commands.main("experiment", "e0", "-m", "gpt9", "--yes").code == 2


@pytest.mark.parametrize(("unit", "words"), [("m0.1", "--basis mlp_out"), ("a7.h0", "2 layers")])
def test_units_outside_the_basis_or_the_model_are_refused(commands: Commands, unit: str, words: str) -> None:
    """Exit 2 with what would fit."""
    _refused(commands.main("experiment", "baselines", "--units", unit, *QUICK), words)


def test_the_page_is_written_in_every_form_and_finished_runs_are_reused(
    commands: Commands, runs: Path, tmp_path: Path
) -> None:
    """A dry run counts what is left; a second call and another experiment repeat no run; `--again` analyses anew."""
    first = commands.main(
        "experiment", "e0", "--seeds", "2", *QUICK, "--yes", "--out", str(tmp_path / "docs")
    )
    assert first.code == 0, first.err
    assert "E0: the whole pipeline" in first.out
    before = _events(runs)
    finished = {name for name, events in before.items() if any(isinstance(e, RunFinished) for e in events)}
    assert len(finished) == 2
    again = commands.main("experiment", "e0", "--seeds", "2", *QUICK, "--md")
    assert again.code == 0, "without --yes: there is nothing to pay"
    assert again.out.startswith("# MechaRule experiments")
    assert _events(runs) == before
    plan = commands.main("experiment", "e2", "--seeds", "2", *QUICK, "--dry-run", "--json").data
    assert [row["finished"] for row in plan["runs"]] == [True, True, False, False, False, False]
    _is_whole(tmp_path / "docs", "experiment-e0")
    anew = commands.main("experiment", "e0", "--seeds", "2", *QUICK, "--again", "--yes", "--json")
    assert len(anew.data["runs"]) == 2
    for name in finished:
        events = _events(runs)[name]
        assert sum(isinstance(event, RunFinished) for event in events) == 2
        reused = [event.stage for event in events if isinstance(event, StageFinished) and event.reused]
        assert {"behaviour", "predicates", "splitter rule"} <= set(reused)


def _is_whole(folder: Path, stem: str) -> None:
    """The Markdown names its figure, which is an SVG file of its own; the page needs nothing else."""
    markdown, page = (folder / f"{stem}.md").read_text(), (folder / f"{stem}.html").read_text()
    figures = sorted((folder / "figures").glob("*.svg"))
    assert figures
    for figure in figures:
        assert f"(figures/{figure.name})" in markdown
        assert ElementTree.fromstring(figure.read_text()).tag == "{http://www.w3.org/2000/svg}svg"
    assert "mecharule experiment e0" in markdown
    assert "://" not in page
    assert "<svg" in page


def test_units_are_asked_about_under_every_baseline(commands: Commands) -> None:
    """A row a unit, a column a baseline, flips and values out of range in each cell."""
    done = commands.main("experiment", "baselines", "--units", "a0.h0,a1.h1", *QUICK, "--yes", "--json")
    assert done.code == 0, done.err
    table = done.data["sections"][0]["blocks"][1]
    assert table["header"][1:] == [
        "zero",
        "mean",
        "mean-positional",
        "mean-donor",
        "mean-donor-positional",
        "slot0",
    ]
    assert [row[0] for row in table["rows"]] == ["a0.h0", "a1.h1"]
    cells = [cell.split(" · ") for row in table["rows"] for cell in row[1:]]
    assert all("/" in flips and outside.endswith(" %") for flips, outside in cells)
    donors = [float(row[5].split("· ")[1].rstrip(" %")) for row in table["rows"]]
    assert max(donors) < 25, (
        f"few donors lie outside what other records show at their position: {table['rows']}"
    )


@pytest.mark.slow
def test_a_killed_experiment_goes_on_and_repeats_no_finished_run(
    commands: Commands, runs: Path, tmp_path: Path
) -> None:
    """Killed in its second run: the first is left as it is, the second is continued, the third is made."""
    environment = {**os.environ, "MECHARULE_RUNS": str(tmp_path), "PYTHONPATH": str(ROOT)}
    arguments = ["experiment", "e0", "--seeds", "3", "--yes", "--output", "jsonl", *QUICK]
    with subprocess.Popen(
        [sys.executable, "-m", "app", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=ROOT,
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            event = json.loads(line)
            if event["kind"] == "node_tested" and sum(_finished(_events(tmp_path))) == 1:
                child.send_signal(signal.SIGKILL)
                break
    killed = _events(tmp_path)
    assert sorted(_finished(killed)) == [False, True]
    done = commands.main("experiment", "e0", "--seeds", "3", *QUICK, "--yes", MECHARULE_RUNS=str(tmp_path))
    assert done.code == 0, done.err
    after = _events(tmp_path)
    assert len(after) == 3
    assert all(_finished(after))
    for name, events in killed.items():
        if any(isinstance(event, RunFinished) for event in events):
            assert after[name] == events
        else:
            assert after[name][: len(events)] == events
            assert any(isinstance(e, StageFinished) and e.reused for e in after[name][len(events) :])


def _finished(told: Mapping[str, list[object]]) -> list[bool]:
    return [any(isinstance(event, RunFinished) for event in events) for events in told.values()]
