"""The page of the penalty: its table follows the numbers; a restart measures nothing twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mecharule_ops.config import make_config
from mecharule_ops.tasks.task_names import task_of


@pytest.fixture
def penalty(
    script: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> ModuleType:
    """With its page and what it keeps there too."""
    penalty = script("penalty")
    monkeypatch.setattr(penalty, "KEPT", tmp_path / "penalty.json")
    monkeypatch.setattr(penalty, "PAGE", tmp_path / "penalty.md")
    penalty.PAGE.write_text("# A\n\n<!-- figures: begin -->\n<!-- figures: end -->\n", encoding="utf-8")
    return penalty


def rows(penalty: ModuleType) -> list[Any]:
    """Three models with the penalty and three without, seeds a little apart."""
    fields = {"agonists": 9, "found": 9, "by_norm": 9, "strongest": 0.3, "units": 256, "groups": 30}
    fields |= {"reached": 3, "found_units": 3, "by_norm_units": 2, "steps": 9, "seen": 0.8, "unseen": 0.8}
    return [
        penalty.Row(
            concentration=share, seed=seed, share=0.1 + seed / 1000, made="Made at commit abc.", **fields
        )
        for share in (0.06, 0.0)
        for seed in range(3)
    ]


def test_the_table_has_a_range_and_a_count_over_distinct_units(penalty: ModuleType) -> None:
    """27 of 27 are 3 units of each of three models, so 9."""
    text = penalty.table(rows(penalty))
    assert "| 10.0 to 10.2 % |" in text
    assert penalty._found(rows(penalty)[:3], "found") == "27/27 (9 units; at least 71 %)"


def test_every_model_is_measured_on_the_task_of_the_bundled_one(penalty: ModuleType) -> None:
    """A folder's name has no preset: it would be asked sums of 0–99."""
    case, known = penalty.case_of(Path("anywhere"), 1), penalty.cases()["arith-tiny mlp_out 1→0 seed 1"]
    tasks = [task_of(make_config(**each.settings)).describe() for each in (case, known)]
    assert tasks[0] == tasks[1]


def test_the_page_has_a_row_a_penalty_and_what_is_kept_is_not_measured_again(
    penalty: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One kept model and one that stands in the folder: only the second is measured; the third is not there."""
    penalty.keep_rows(penalty.KEPT, rows(penalty)[3:5])
    (tmp_path / "c0-s2").mkdir()
    for done in ("c0-s0", "c0-s2"):
        (tmp_path / done).mkdir(exist_ok=True)
        (tmp_path / done / "training.json").write_text(json.dumps({}), encoding="utf-8")
    asked = []

    def row_of(folder: Path, concentration: float, seed: int, runs: Path) -> Any:
        asked.append((concentration, seed))
        return rows(penalty)[5 if concentration == 0 else 0]

    monkeypatch.setattr(penalty, "row_of", row_of)
    monkeypatch.setattr(
        penalty.sys, "argv", ["x", "--models", str(tmp_path), "--runs", str(tmp_path / "runs"), "--write"]
    )
    penalty.main()
    assert asked == [(0.06, 0), (0.0, 2)]
    page = (tmp_path / "penalty.md").read_text(encoding="utf-8")
    assert [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| 0")] == [
        [" 0 ", " 3 "],
        [" 0.06 ", " 1 "],
    ]
    assert "Made at commit abc." in page
    assert len((tmp_path / "penalty.csv").read_text(encoding="utf-8").splitlines()) == 5
    penalty.main()
    assert len(asked) == 2
