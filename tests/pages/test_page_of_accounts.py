"""The page of accounts: a learned rule counts, whether or not it is shown."""

from collections.abc import Callable
from types import ModuleType

import pytest
from findings_fixture import of_family

from mecharule_ops.findings.accounts import Account
from mecharule_ops.types import Neuron, Regime


@pytest.fixture
def accounts(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("accounts")


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
