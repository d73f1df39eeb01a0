"""The page of the penalty: its table follows the numbers; a restart measures nothing twice."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mecharule_ops.config import make_config
from mecharule_ops.tasks.task_names import task_of


@pytest.fixture
def penalty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script, all that it writes in a folder of its own."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import pages
    import penalty

    monkeypatch.setattr(pages, "TABLES", tmp_path)
    monkeypatch.setattr(penalty, "KEPT", tmp_path / "penalty.json")
    monkeypatch.setattr(penalty, "PAGE", tmp_path / "penalty.md")
    (tmp_path / "penalty.md").write_text(
        "# A\n\n<!-- figures: begin -->\n<!-- figures: end -->\n", encoding="utf-8"
    )
    return penalty


def rows(penalty: ModuleType, **of: tuple[Any, Any]) -> list[Any]:
    """Three models with the penalty and three without; a field's values are (with, without), seeds a little apart."""
    made = []
    for place, concentration in enumerate((0.06, 0.0)):
        for seed in range(3):
            fields = {"share": 0.1, "agonists": 9, "found": 9, "by_norm": 9, "strongest": 0.3}
            fields |= {"reached": 3, "found_units": 3, "by_norm_units": 2}
            fields |= {name: both[place] for name, both in of.items()}
            fields["share"] += seed / 1000
            given = {"concentration": concentration, "seed": seed, "steps": 9, "seen": 0.8, "unseen": 0.8}
            made.append(penalty.Row(**given, units=256, groups=30, **fields, made="Made at commit abc."))
    return made


@pytest.mark.parametrize(
    ("of", "said"),
    [
        ({"share": (0.1, 0.3)}, ["| 30.0 to 30.2 % |"]),
        ({"by_norm": (9, 4)}, ["| 12/27 (44 %; 6 of 9", "| 27/27 (6 of 9"]),
        ({"agonists": (9, 12)}, ["| 27/36 (75 %; 9 units; at least 71 %) |"]),
        ({"agonists": (9, 0), "found": (9, 0), "by_norm": (9, 0)}, ["| none of none |"]),
    ],
)
def test_the_table_holds_a_range_and_a_count_a_penalty(
    penalty: ModuleType, of: dict[str, Any], said: list[str]
) -> None:
    text = penalty.table(rows(penalty, **of))
    assert all(words in text for words in said), text


def test_draws_of_one_model_share_units(penalty: ModuleType) -> None:
    """27 of 27 are 3 units of each of three models, so 9; with 2 of 3 found by every draw 6 of 9."""
    some = rows(penalty)[:3]
    assert penalty._found(some, "found") == "27/27 (9 units; at least 71 %)"
    assert "6 of 9 units in every seed" in penalty._found(
        [penalty.replace(row, by_norm=8) for row in some], "by_norm"
    )


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
