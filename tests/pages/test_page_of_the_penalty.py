"""The page of the penalty: its sentences follow the numbers whichever way they go; a restart measures nothing twice."""

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
            fields |= {name: both[place] for name, both in of.items()}
            fields["share"] += seed / 1000
            given = {"concentration": concentration, "seed": seed, "steps": 9, "seen": 0.8, "unseen": 0.8}
            made.append(penalty.Row(**given, units=256, groups=30, **fields, made="Made at commit abc."))
    return made


@pytest.mark.parametrize(
    ("of", "said"),
    [
        ({"share": (0.1, 0.3)}, ["`guided` is cheaper in every model", "| 30.0 to 30.2 % |"]),
        ({"share": (0.3, 0.1)}, ["`guided` is dearer in every model"]),
        ({"share": (0.1, 0.101)}, ["`guided` is not told apart: the ranges overlap"]),
        ({"by_norm": (9, 4)}, ["| 12/27 (44 %) |", "| 27/27 (100 %) |"]),
        (
            {"agonists": (9, 12)},
            ["τ-agonists are fewer in every model", "are not shown to go with the penalty", "| 27/36 (75 %)"],
        ),
        (
            {"agonists": (7, 6), "found": (7, 6), "by_norm": (6, 6)},
            [
                "more in every model, though models without it have some",
                "3 against 3: two-sided p = .10 at best",
            ],
        ),
        (
            {"agonists": (9, 0), "found": (9, 0), "by_norm": (9, 0), "strongest": (0.3, 0.08)},
            [
                "Without the penalty (3 models) the strongest unit flips 8.0 % of its slice and 0.0 of 256 units are",
                "With that of 0.06 (3 models) the strongest unit flips 30.0 % of its slice and 3.0 of 256 units are",
                "| none of none |",
                "the strongest unit is stronger in every model; the τ-agonists are more in every model",
                "few strong units go with the penalty: no model without it has any.",
            ],
        ),
        ({"agonists": (0, 0), "found": (0, 0), "by_norm": (0, 0)}, ["the τ-agonists are not told apart"]),
    ],
)
def test_the_sentences_follow_the_numbers(penalty: ModuleType, of: dict[str, Any], said: list[str]) -> None:
    """Sizes, and a direction where ranges do not overlap; three against three prove no cause, so none is printed."""
    text = penalty.verdict(made := rows(penalty, **of))
    assert all(words in f"{text}\n{penalty.table(made)}" for words in said), text
    assert "doing" not in text
    assert "**" not in text
    assert "tuned on the bundled model" in text


def test_draws_of_one_model_share_units(penalty: ModuleType) -> None:
    """27 of 27 are 3 units of each of three models, so 9; with 2 of 3 found by every draw 6 of 9."""
    some = [penalty.replace(row, reached=3, found_units=3, by_norm_units=2) for row in rows(penalty)[:3]]
    assert penalty._found(some, "found") == "27/27 (9 units; at least 71 %)"
    assert "6 of 9 units in every seed" in penalty._found(
        [penalty.replace(row, by_norm=8) for row in some], "by_norm"
    )


def test_every_model_is_measured_on_the_task_of_the_bundled_one(penalty: ModuleType) -> None:
    """A folder's name has no preset: it would be asked sums of 0–99."""
    case, known = penalty.case_of(Path("anywhere"), 1), penalty.cases()["arith-tiny mlp_out 1→0 seed 1"]
    tasks = [task_of(make_config(**each.settings)).describe() for each in (case, known)]
    assert tasks[0] == tasks[1]


def test_fewer_models_allow_numbers_but_no_test(penalty: ModuleType) -> None:
    """However large the difference; the page is made all the same, also of one side alone."""
    some = rows(penalty, share=(0.1, 0.9))
    text = penalty.verdict(some[2:])
    assert "With that of 0.06 (1 model) the strongest unit" in text
    assert "1 model with the penalty and 3 without it: no test is made of this." in text
    assert "p =" not in text
    penalty.write(some[2:])
    assert "| 0.06 | 1 |" in penalty.PAGE.read_text(encoding="utf-8")
    assert "The other side was not measured, so nothing is compared." in penalty.verdict(some[3:])


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
