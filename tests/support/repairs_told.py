"""Repairs told by hand, with every kind of control and a text that means harm, for tests that show them."""

from __future__ import annotations

from dataclasses import replace

from mecharule_ops.findings.repair_outcome import (
    ControlKind,
    Elsewhere,
    Gate,
    PairEffect,
    Repair,
    RepairControl,
    RepairSplit,
    RepairStatus,
    ShownExample,
    SplitResult,
    TextEffect,
)
from mecharule_ops.mcnemar import Paired
from mecharule_ops.rules.families import Family
from mecharule_ops.types import Basis, Neuron, Regime

UNITS = tuple(map(Neuron.parse, ("m1.17", "m0.3", "m1.44")))
RULES = ("op == '-' and b >= 100", "a < b and digit(b, 0) in {3, 5, 7} and len_a == 3", "carries >= 2")
TEST = Paired(n=600, before=500, fixed=23, broken=6, acted=80)


def result(fixed: int, broken: int, acted: int = 80) -> Paired:
    """The same 600 records under something else."""
    return Paired(n=600, before=500, fixed=fixed, broken=broken, acted=max(acted, fixed + broken))


def shown(prompt: str, before: str, after: str, fixed: bool = True) -> ShownExample:
    return ShownExample(prompt=prompt, unit=UNITS[0], before=before, after=after, fixed=fixed)


def helping(run: str = "0c1f") -> Repair:
    """Three gates that help, with a control of every kind."""
    return Repair(
        run=run,
        regime=Regime.BASELINE_NEGATIVE,
        basis=Basis.MLP_OUT,
        family=Family.INPUT,
        status=RepairStatus.HELPS,
        seed=0,
        solution=True,
        tried=8,
        fresh=True,
        most=4,
        records=1800,
        gates=tuple(
            Gate(
                unit=unit, family=Family.INPUT, rule=rule, gain=gain, fixed=fixed, broken=broken, fired=fired
            )
            for unit, rule, gain, fixed, broken, fired in (
                (UNITS[0], RULES[0], 0.41, 9, 1, 22),
                (UNITS[1], RULES[1], 0.2, 8, 2, 30),
                (UNITS[2], RULES[2], 0.125, 4, 1, 24),
            )
        ),
        splits=(
            SplitResult(split=RepairSplit.FIND, result=result(40, 3)),
            SplitResult(split=RepairSplit.CHOOSE, result=result(31, 4)),
            SplitResult(split=RepairSplit.TEST, result=TEST),
        ),
        hindsight=result(44, 0, 600),
        controls=tuple(
            RepairControl(
                kind=kind,
                name=f"name {place}",
                result=result(3 + place, max(0, 9 - place), 600),
                ahead=Paired(n=600, before=494 + place, fixed=20, broken=6 * place, acted=600),
            )
            for place, kind in enumerate(ControlKind)
        ),
        pairs=(
            PairEffect(
                first=UNITS[0],
                second=UNITS[1],
                alone=Paired(n=12, before=4, fixed=5, broken=1, acted=12),
                both=Paired(n=12, before=4, fixed=6, broken=2, acted=12),
                added=Paired(n=12, before=8, fixed=1, broken=1, acted=12),
            ),
        ),
        elsewhere=(
            Elsewhere(
                name="prose",
                prompts=30,
                acted=2,
                gated=TextEffect(tokens=900, kl=0.00003, before=41.2, after=41.25),
                worst=UNITS[2],
                always=TextEffect(tokens=900, kl=0.012, before=41.2, after=44.0),
            ),
        ),
        innocent=Paired(n=40, before=38, fixed=0, broken=3, acted=5),
        examples=(
            shown("12-7=4\n120-7=", "114", "113"),
            shown("12-7=4\n64-305=", "-214", "-241"),
            shown("12-7=4\n91+88=", "179", "1798", fixed=False),
        ),
        certificates=("7f3a0000aaaa", "81b00000bbbb"),
        hypothesis="3b1d0009",
    )


def unopened(run: str = "0c1f", status: RepairStatus = RepairStatus.NO_RULE) -> Repair:
    """No gate was found, so that the test records stayed closed."""
    bare = replace(helping(run), status=status, gates=(), controls=(), examples=(), certificates=())
    bare = replace(bare, pairs=(), elsewhere=(), innocent=None, splits=(), hindsight=None)
    return replace(bare, opened=0, hypothesis="", solution=False)


def hostile(text: str) -> Repair:
    """A repair whose rule, prompt and completions are all this text."""
    made = helping()
    gate = replace(made.gates[0], rule=text)
    return replace(
        made, gates=(gate,), examples=(shown(text, text, text), shown(text, text, text, fixed=False))
    )
