"""What predicts a unit's flips, and how well: makes docs/accounts.md and its tables from whole runs.

Each part is measured by itself and kept in benchmarks/accounts.json, so that the page can be made a part at a time; a
run that stands finished in the folder of `--runs` is read again and asks nothing twice. Held-out records chose
nothing; of the predictions only *lead only* and *drop only* have something fitted, on train.

    python benchmarks/accounts.py [--only PART ...] [--runs FOLDER]    measures parts and writes the page
    python benchmarks/accounts.py --page                               writes it again from what is kept
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from statistics import median
from textwrap import fill
from typing import Any

from pages import ROOT, made_at, markdown, printed, put_table
from planted_rules import planted

from mecharule_ops.facts.rules import short, shown_words, when_in_short
from mecharule_ops.findings.accounts import Account, PredictionKind
from mecharule_ops.findings.records import Findings
from mecharule_ops.numbers import percent, plural
from mecharule_ops.pages.rows import PredictionRow, prediction_rows
from mecharule_ops.predicates.cuts import PredicateColumns
from mecharule_ops.rules.families import Family
from mecharule_ops.rules.interval import MccInterval
from mecharule_ops.rules.ruleshap import learn_rule
from mecharule_ops.run.live_run import Run
from mecharule_ops.store.run_store import RunStore

PAGE = ROOT / "docs" / "accounts.md"
KEPT = ROOT / "benchmarks" / "accounts.json"
SEEDS = range(1000, 1020)
"""Of planted tables; the least gain of a clause was chosen on the tables of seeds 0 to 19."""
SHOWN = 4
"""Units of a model in the page's table, those counted into its median first; all stand in the CSV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run whose accounts are shown."""

    name: str
    about: str
    arguments: str


CASES = {
    "smollm2": Case(
        name="SmolLM2",
        about="SmolLM2-135M, `a + b` with a and b of 100–199, the whole grid, attention heads, 1→0",
        arguments="arithmetic -m smollm2-135m --basis attn_head --regime 1 --records 10000 --set task.low=100 "
        "--set task.high=199 --set controls_for=0 --set anchor_for=0 --set chains_for=0 --set audit=0",
    )
}

Part = Mapping[str, Any]
"""What is kept of a part: JSON."""


def measured_case(name: str, folder: Path) -> Part:
    """The rows of one case's tables, from its run, made now where the folder has no finished one."""
    began, place = time.monotonic(), folder / name
    if not list(place.glob("*.mecharule")):
        place.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, str(ROOT / "app.py"), "run", *CASES[name].arguments.split()]
        environment = {**os.environ, "MECHARULE_RUNS": str(place.resolve())}
        subprocess.run([*command, "--yes", "--display", "plain"], check=True, env=environment)
    with RunStore.open(next(place.glob("*.mecharule")), read_only=True) as store:
        run = Run(store)
        found, right, records = run.findings, int(run.labels.sum()), len(run.labels)
    accounts = [account for search in found.searches for account in search.accounts]
    return {
        "records": records,
        "right": right,
        "seed": found.seed,
        "minutes": round((time.monotonic() - began) / 60, 1),
        "units": [unit_of(account) for account in accounts],
        "predictions": predictions_of(found),
        "rules": [row for account in accounts for row in rules_of(account)],
    }


def unit_of(account: Account) -> dict[str, Any]:
    """One row of the page's table, with the numbers behind it."""
    rule, first = account.family(Family.INPUT), account.compared
    scores = {one.kind: interval(one.held_out) for one in account.beside_right or account.predictions}
    return {
        "unit": f"{account.neuron} {account.regime.arrow}",
        "flips": account.flips,
        "records": account.records,
        "first order": first and interval(first.held_out),
        "base rate": first and first.happened / first.records,
        "lead only": scores.get(PredictionKind.LEAD_ONLY),
        "drop only": scores.get(PredictionKind.DROP_ONLY),
        "input rule": interval(rule.interval),
        "shown": rule.shown,
        "agreement": rule.agreement,
        "free-form trees": interval(rule.free_form),
        "when": when_in_short(account),
        "drive": None if account.drive is None else {**asdict(account.drive), "kept": account.drive.kept},
        "nothing_above": account.nothing_above,
        "blind": account.drop_error is not None and account.drop_error.blind,
    }


def interval(found: MccInterval | None) -> dict[str, float] | None:
    return None if found is None else {"mcc": found.mcc, "low": found.low, "high": found.high}


def predictions_of(found: Findings) -> list[list[str]]:
    """Every score of every account."""
    return [[printed(value) for value in asdict(row).values()] for row in prediction_rows(found)]


RULES = (
    *("unit", "regime", "family", "shown", "rule", "MCC", "low", "high"),
    *("free-form trees", "trees low", "trees high", "Fisher p"),
)


def rules_of(account: Account) -> Iterator[list[str]]:
    """Every rule that was learned, shown or not."""
    for rule in account.families:
        scores = (rule.interval, rule.free_form)
        numbers = [getattr(found, of, None) for found in scores for of in ("mcc", "low", "high")]
        said = (rule.family.value, shown_words(rule), str(rule.rule or rule.status.value))
        chance = None if rule.chance is None else rule.chance.p
        yield [str(account.neuron), account.regime.arrow, *said, *map(printed, (*numbers, chance))]


def measured_planted() -> Part:
    """Planted rules with 10 % label noise, the library's defaults, exactly recovered or not."""
    return {
        "recovered": [
            [records, predicates, sum(recovered(seed, records, predicates) for seed in SEEDS)]
            for records, predicates in ((400, 6), (10_000, 100))
        ]
    }


def recovered(seed: int, records: int, predicates: int) -> bool:
    """Whether the default learner gives back the planted rule."""
    matrix, texts, rule, target = planted(seed, records, predicates)
    return learn_rule(PredicateColumns(texts=tuple(texts), matrix=matrix), target, seed=0).rule == rule


PARTS: Mapping[str, Callable[[Path], Part]] = {
    **{name: partial(measured_case, name) for name in CASES},
    "planted": lambda folder: measured_planted(),
}


def strongest(part: Part) -> list[dict[str, Any]]:
    """The units of a part that stand in the page's table: those counted into its median first."""
    counted = [unit["unit"] for unit in predicted(part["units"])]
    return sorted(
        part["units"], key=lambda unit: (unit["unit"] not in counted, -unit["flips"] / unit["records"])
    )[:SHOWN]


def predicted(units: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Units whose first-order score is a prediction: nothing of a last layer, where it is arithmetic."""
    return [unit for unit in units if not unit["nothing_above"] and unit["first order"]]


COLUMNS = {
    "first order": "first-order prediction (nothing fitted)",
    "lead only": "one threshold on the lead",
    "drop only": "one on the drop",
    "input rule": "short rule over the prompt",
    "free-form trees": "free-form trees over it",
}
"""Columns of the page's table and what they are."""


def middle(units: Sequence[Mapping[str, Any]], column: str) -> str:
    """The median held-out MCC of a column, of every learned rule, shown or not; 0 only where none was learned."""
    return short(median((unit[column] or {"mcc": 0.0})["mcc"] for unit in units))


def spread(units: Sequence[Mapping[str, Any]]) -> str:
    """How far a first-order prediction goes from unit to unit, and what it is for the one that flips most."""
    every = [unit["first order"]["mcc"] for unit in units]
    most = max(units, key=lambda unit: unit["flips"] / unit["records"])
    one = f"{short(most['first order']['mcc'])} for the strongest, {most['unit'].split()[0]}"
    return f"; the prediction goes from {short(min(every))} to {short(max(every))}, {one}"


def medians(name: str, part: Part) -> str:
    """A sentence of a model's medians, over all of its units with something above them; of fewer than three none."""
    counted = predicted(part["units"])
    last = len(part["units"]) - len(counted)
    rest = f"; in {plural(last, 'unit')} of the last layer the prediction is arithmetic" if last else ""
    units = f"{CASES[name].name}, {plural(len(counted), 'unit')} with something above"
    if len(counted) < 3:
        return f"{units}: too few for a median{rest}."
    found = ", ".join(f"{words} {middle(counted, column)}" for column, words in COLUMNS.items())
    return f"{units}, median held-out MCC – {found}{spread(counted)}{rest}."


def page(kept: Mapping[str, Part]) -> Iterator[str]:
    """The paragraphs of the page, and the tables beside it."""
    cases = {name: kept[name] for name in CASES if name in kept}
    units = [(name, unit) for name, part in cases.items() for unit in strongest(part)]
    yield "# What predicts a unit's flips"
    yield (
        "The learner of short rules was tuned on SmolLM2's sums of 0–99; those of 100–199, asked here, no tuning saw."
    )
    yield "\n".join(dict.fromkeys(part["made"] for part in kept.values()))
    yield f"{' '.join(map(medians, cases, cases.values()))}"
    yield (
        f"The units: the {SHOWN} that flip most of `guided`'s τ-agonists, without an audit, that held-out answers show."
    )
    header = ("unit", "when", "flips", "base rate", *COLUMNS, "halves of the rule")
    yield "\n".join(markdown(header, [row_of(unit) for _, unit in units], right=False))
    yield (
        "*Flips*: of all records with that outcome; *base rate*: of the held-out ones. *First order*: the unit's "
        "first-order drop of the lead (logit difference) exceeds it. "
        "*Lead only*, *drop only*: one threshold, fitted on train. *Halves*: how far rules, or terms, learned from "
        "either half agree; told from .5 on. Intervals are 95 %."
    )
    driven = [unit for part in cases.values() for unit in part["units"] if unit["drive"]]
    permuted = short(max((unit["drive"]["permuted"]["auc"] for unit in driven), default=0.0))
    yield (
        "The drive, what a unit lowers the lead by on any prompt, ranked by at most five terms: AUC for the upper "
        "third of held-out prompts. Of what trees know above .5 the terms keep "
        f"{short(median_kept(driven))} in the median; permuted once, AUC is {permuted} at most."
    )
    yield "\n".join(markdown(("unit", *DRIVE), [drive_row(unit) for unit in driven], right=False))
    yield "## How it was made"
    yield "`python benchmarks/accounts.py` runs:"
    yield "\n".join(
        f"- {CASES[name].about}: `mecharule run {CASES[name].arguments} --yes`, seed {part['seed']}; "
        f"{part['right']:,} of {part['records']:,} right; {part['minutes']:g} minutes."
        for name, part in cases.items()
    )
    names = tuple(field.name for field in fields(PredictionRow))
    tables = (
        ("accounts", names, "predictions", "every score"),
        ("accounts-rules", RULES, "rules", "every learned rule"),
    )
    told = []
    for name, header, key, what in tables:
        cells = [[CASES[case].name, *row] for case, part in cases.items() for row in part[key]]
        told.append(f"- {put_table(name, ('model', *header), cells)}: {what}.")
    yield "\n".join(told)
    yield from checks(kept)


DRIVE = "terms", "trees", "kept", "halves of the terms"
"""Columns of the table of drives."""


def median_kept(units: Sequence[Mapping[str, Any]]) -> float:
    """The median share of the trees' AUC above .5 that the terms keep."""
    return median(unit["drive"]["kept"] for unit in units)


def drive_row(unit: Mapping[str, Any]) -> tuple[str, ...]:
    """Cells of the table of drives."""
    drive = unit["drive"]
    areas = (cell({**drive[one], "mcc": drive[one]["auc"]}) for one in ("fit", "trees"))
    return (unit["unit"], *areas, short(drive["kept"]), short(drive["agreement"]))


def checks(kept: Mapping[str, Part]) -> Iterator[str]:
    """What was measured beside the runs."""
    if "planted" in kept:
        found = "; ".join(
            f"{right} of {len(SEEDS)} from {records:,} records × {predicates} predicates"
            for records, predicates, right in kept["planted"]["recovered"]
        )
        yield (
            "Planted rules of two clauses of two literals, 10 % of the labels turned, on tables that no tuning saw, "
            f"exactly recovered: {found}."
        )


def row_of(unit: Mapping[str, Any]) -> tuple[str, ...]:
    """Cells of the page's table."""
    mark = " (arithmetic)" if unit["nothing_above"] else " (blind)" if unit["blind"] else ""
    rate = unit["base rate"]
    return (
        unit["unit"],
        unit["when"],
        f"{unit['flips']:,} of {unit['records']:,}",
        "–" if rate is None else percent(rate),
        f"{cell(unit['first order'])}{mark}",
        *(cell(unit[column]).partition(" ")[0] for column in ("lead only", "drop only")),
        rule_cell(unit),
        cell(unit["free-form trees"]),
        "–" if unit["agreement"] is None else short(unit["agreement"]),
    )


def rule_cell(unit: Mapping[str, Any]) -> str:
    """The learned input rule's."""
    rule = unit["input rule"]
    return f"{cell(rule)}{'' if unit.get('shown', True) else ' (not shown)'}" if rule else "none learned"


def cell(found: Mapping[str, float] | None) -> str:
    """MCC with its interval."""
    return "–" if found is None else f"{short(found['mcc'])} [{short(found['low'])}, {short(found['high'])}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("account-runs"))
    parser.add_argument("--only", nargs="*", choices=tuple(PARTS), default=list(PARTS))
    parser.add_argument("--page", action="store_true", help="measure nothing")
    given = parser.parse_args()
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for name in () if given.page else given.only:
        given.runs.mkdir(parents=True, exist_ok=True)
        kept[name] = {"made": made_at(), **PARTS[name](given.runs)}
        KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    blocks = (block if block[:1] in ("|", "-", "#") else fill(block, 118) for block in page(kept))
    PAGE.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
