"""The page of accounts from what its parts kept: one table, medians of predictions alone, what was tuned said first."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from findings_fixture import of_family

from mecharule_ops.findings.accounts import Account
from mecharule_ops.types import Neuron, Regime


@pytest.fixture
def accounts(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("accounts")


def unit(name: str, first: float, *, nothing_above: bool) -> dict[str, Any]:
    """A row whose first-order prediction has this MCC, everything else .10."""
    low = {"mcc": 0.1, "low": 0.0, "high": 0.2}
    return {
        "unit": name,
        **{"flips": 50, "records": 100, "base rate": 0.5, "blind": False},
        **{"first order": {"mcc": first, "low": first - 0.1, "high": 1.0}, "nothing_above": nothing_above},
        **{"lead only": low, "drop only": low, "input rule": None, "free-form trees": low},
    }


def part(*units: dict[str, Any]) -> dict[str, Any]:
    """What a part keeps: its units, and the scores of each in rows as they are in the CSV."""
    kinds = {"first order": "steady drop", "lead only": "lead only", "drop only": "drop only"}
    rows = [
        [
            "mlp_out",
            *one["unit"].split(),
            "flips",
            kind,
            *map(str, one[column].values()),
            "9",
            "15",
            "30",
            "",
            "",
        ]
        for one in units
        for column, kind in kinds.items()
    ]
    return {
        **{"made": "Made at commit abc.", "records": 100, "right": 50, "seed": 0, "minutes": 3.0},
        **{"units": list(units), "predictions": rows, "rules": []},
    }


def test_a_last_layer_unit_is_in_no_median(accounts: ModuleType) -> None:
    """Its score is arithmetic: three of 1.00 move no median, and the page says how many there are."""
    above = [unit(f"m0.{place} 1→0", mcc, nothing_above=False) for place, mcc in enumerate((0.3, 0.4, 0.5))]
    last = [unit(f"m1.{place} 1→0", 1.0, nothing_above=True) for place in range(3)]
    assert accounts.middle(accounts.predicted([*above, *last]), "first order") == ".40"
    text = "\n".join(accounts.page({"arith-tiny": part(*above, *last)}))
    assert "over 3 units with something above them – first-order prediction (nothing fitted) .40" in text
    assert "3 units of the last layer, where it is arithmetic, counted into no median" in text
    assert text.count("1.00 [.90, 1.00] = |") == accounts.SHOWN - len(above)


def test_a_learned_rule_counts_whether_or_not_it_is_shown(accounts: ModuleType) -> None:
    """Its MCC stands in table and median as those of the other columns do; 0 only where none was learned."""
    doubted = of_family("a > 1", 0.3, 30, 15)
    account = Account(
        neuron=Neuron.parse("m1.17"),
        regime=Regime.BASELINE_POSITIVE,
        flips=20,
        records=60,
        held_out=30,
        families=(doubted,),
    )
    row = accounts.unit_of(account)
    assert row["input rule"]["mcc"] == 0.3
    assert accounts.middle([row], "input rule") == ".30"
    assert accounts.rule_cell(row) == f"{doubted.interval} ○"
    assert accounts.middle([{**row, "input rule": None}], "input rule") == "0.00"
