"""The page of the penalty: its sentences follow the numbers whichever way they go; a restart measures nothing twice."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mecharule_ops.config import make_config
from mecharule_ops.tasks.registry import task_of


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
            fields |= {name: both[place] for name, both in of.items()}
            fields["share"] += seed / 1000
            given = {"concentration": concentration, "seed": seed, "steps": 9, "seen": 0.8, "unseen": 0.8}
            repair = {"points": 1.0, "low": 0.5, "high": 1.5}
            made.append(
                penalty.Row(**given, units=256, groups=30, **fields, **repair, made="Made at commit abc.")
            )
    return made


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (
            {"share": (0.1, 0.3)},
            ["costs 3.0 times as much in the mean, more in every seed: that is its doing"],
        ),
        ({"share": (0.3, 0.1)}, ["makes the search dearer"]),
        ({"share": (0.1, 0.101)}, ["that the search is cheap is not shown to be the penalty's doing"]),
        ({"by_norm": (9, 4)}, ["only with the penalty the weights tell", "27/27 (at least 89 %) with"]),
        ({"by_norm": (4, 9)}, ["only without it the weights tell"]),
        ({"by_norm": (4, 4)}, ["the search finds more of them than the weights tell**."]),
        (
            {},
            [
                "**with the penalty and without it the weights tell as much",
                "single units matter is not shown",
            ],
        ),
        ({"agonists": (9, 12)}, ["fewer in every seed, so that single units matter is not", "27/36"]),
        (
            {"agonists": (9, 0), "found": (9, 0), "by_norm": (9, 0)},
            ["more in every seed", "none of none without", "(there are none without it)", "0.0 without it"],
        ),
        ({"agonists": (0, 0), "found": (0, 0), "by_norm": (0, 0)}, ["neither has any to be found"]),
    ],
)
def test_the_sentences_follow_the_numbers(penalty: ModuleType, of: dict[str, Any], said: list[str]) -> None:
    """Cheaper, dearer, overlapping; read off the weights with, without, both, neither."""
    text = penalty.verdict(rows(penalty, **of))
    assert all(words in text for words in said), text


def test_every_model_is_measured_on_the_task_of_the_bundled_one(penalty: ModuleType) -> None:
    """A folder's name has no preset: it would be asked sums of 0–99."""
    case, known = penalty.case_of(Path("anywhere"), 1), penalty.cases()["arith-tiny mlp_out 1→0 seed 1"]
    tasks = [task_of(make_config(**each.settings)).describe() for each in (case, known)]
    assert tasks[0] == tasks[1]


def test_two_models_allow_no_sentence(penalty: ModuleType) -> None:
    """However large the difference."""
    assert "Not finished" in penalty.verdict(rows(penalty, share=(0.1, 0.9))[1:])


def test_the_page_has_a_row_a_penalty_and_what_is_kept_is_not_measured_again(
    penalty: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One kept model and one that stands in the folder: only the second is measured; the third is not there."""
    penalty.keep(rows(penalty)[3:5])
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
