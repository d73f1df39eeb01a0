"""The notebooks of `examples/` run top to bottom in an empty folder, and carry outputs that fit a page."""

import json
import re
from pathlib import Path

import pytest

from benchmarks.notebooks import executed, notebooks

LARGEST = 200_000
"""Bytes of one notebook with its outputs."""


def outputs_of(cells: list[dict[str, object]]) -> str:
    """What the cells' outputs hold, as text."""
    return json.dumps([cell.get("outputs", []) for cell in cells], ensure_ascii=False)


@pytest.mark.parametrize("file", notebooks(), ids=lambda file: file.stem)
def test_committed_notebooks_were_run_in_order_without_an_error(file: Path) -> None:
    """Every code cell was run, once and in order; nothing names the machine; a reader can load it."""
    cells = [
        cell for cell in json.loads(file.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"
    ]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    told = outputs_of(cells)
    assert '"output_type": "error"' not in told
    assert not re.search(r"site-packages|/home/|/tmp/|/root/|/work/", told)
    assert file.stat().st_size < LARGEST


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("file", notebooks(), ids=lambda file: file.stem)
def test_a_notebook_runs_top_to_bottom(file: Path, tmp_path: Path) -> None:
    """In an empty folder, with runs of its own; a cell that fails fails the test. Every display is there again."""
    pytest.importorskip("nbclient")
    again = executed(file, tmp_path)
    before = json.loads(file.read_text(encoding="utf-8"))["cells"]
    kinds = [[one["output_type"] for one in cell.get("outputs", [])] for cell in before]
    assert [[one["output_type"] for one in cell.get("outputs", [])] for cell in again.cells] == kinds
