"""What gates do to answers of the bundled model, seeds 0 to 4: the table of docs/repair.md.

For each seed: a run's records and vocabulary, fresh records in three splits, units by the law and by measured fixes,
gates of each family with and without the columns that tell the right answer, and controls, each scored once on the
test records. With `--write` the page's tables are written between its markers.

    python benchmarks/repair.py [--model arith-tiny] [--seeds 0 1 2 3 4] [--records 27000] [--json FILE] [--write]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from pages import put_between

from mecharule_ops.codec import decode, encode
from mecharule_ops.config import make_config
from mecharule_ops.findings.repair import Control, ControlKind, Repair
from mecharule_ops.pipeline.journal import Journal
from mecharule_ops.pipeline.preparation import prepare
from mecharule_ops.pipeline.repair_material import RepairRequest, material
from mecharule_ops.pipeline.repairing import repair
from mecharule_ops.pipeline.run import Run
from mecharule_ops.pipeline.summing_up import versions
from mecharule_ops.repair.gates import Policy, units_of
from mecharule_ops.repair.statistics import Paired
from mecharule_ops.report.phrases.repair import p_words, points_words
from mecharule_ops.rules.families import Family
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.thresholds import HARM
from mecharule_ops.types import Basis

PAGE = Path(__file__).parent.parent / "docs" / "repair.md"


def measured(
    model: str, basis: Basis, seed: int, records: int, tried: int, families: Sequence[Family]
) -> Iterator[Repair]:
    """Every repair of one seed, each on the same records, units and outcomes; mechanism gates with trees beside."""
    settings = {"model": model, "records": 1000, "regimes": (0,), "bases": (basis,), "seed": seed}
    config = make_config(**settings).model_dump(mode="json")
    with (
        tempfile.TemporaryDirectory() as folder,
        RunStore.create(Path(folder) / "run.mecharule", {"run": "bench", "settings": config}) as store,
    ):
        run = Run(store)
        prepare(run, Journal(store, lambda event: None, time.perf_counter))
        asked = RepairRequest(basis=basis, records=records, tried=tried)
        found = material(run, asked, print)
        for family in families:
            for solution in (False, True):
                free = family is Family.MECHANISM
                yield repair(found, replace(asked, family=family, solution=solution, model=free))


WITHOUT_GATES = (ControlKind.RETRY, ControlKind.EXAMPLES)


def tables(found: Sequence[Repair]) -> str:
    """The page's tables: the families over seeds, the controls over seeds, and every seed by itself."""
    kinds = list(dict.fromkeys((one.family, one.solution) for one in found))
    lines = [
        "| gates | reads the right answer | points, each seed | mean | fixed : broken, all seeds | largest p | "
        "acts on | units, clauses |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind in kinds:
        of = [one for one in found if (one.family, one.solution) == kind]
        lines.append(_family_row(of))
        if any(free := [_named(one, ControlKind.MODEL) for one in of]):
            lines.append(_result_row("free-form, same columns", of, free))
    lines += [
        "",
        "| control, all seeds together | beside | points [95 %] | fixed : broken |",
        "|---|---|---|---|",
    ]
    for kind in kinds:
        of = [one for one in found if (one.family, one.solution) == kind]
        lines += [_pooled_row(name, of) for name in (ControlKind.RANDOM_UNITS, ControlKind.SHUFFLED)]
        lines += [_pooled_row(ControlKind.LEAD_ONLY, of), _best_always(of), _pairs_row(of)]
        lines += [_policy_row(policy, of) for policy in Policy]
        lines += [_pooled_row(name, of) for name in WITHOUT_GATES]
    lines += [
        "",
        "| seed | gates | reads the right answer | before | after | change [95 %] | fixed | broken | McNemar |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_seed_row(one) for one in found]
    return "\n".join(lines)


def _named(one: Repair, kind: ControlKind) -> Paired | None:
    return next((control.result for control in one.controls if control.kind is kind), None)


def _family_row(of: Sequence[Repair]) -> str:
    units = max(len(units_of(one.gates)) for one in of)
    clauses = max(len(one.gates) for one in of)
    return _result_row(f"**{of[0].family.value}**", of, [one.test for one in of], f"≤ {units}, ≤ {clauses}")


def _result_row(name: str, of: Sequence[Repair], results: Sequence[Paired | None], size: str = "–") -> str:
    there = [one for one in results if one is not None]
    reads = "yes" if of[0].solution else "no"
    if not there:
        return f"| {name} | {reads} | no gate helps | – | – | – | – | {size} |"
    points = [one.points for one in there]
    spread = f" ± {stdev(points):.2f}" if len(points) > 1 else ""
    fixed, broken = sum(one.fixed for one in there), sum(one.broken for one in there)
    each = " ".join(f"{one:+.2f}" for one in points)
    acted = mean(one.acted_share for one in there)
    return (
        f"| {name} | {reads} | {each} | {mean(points):+.2f}{spread} | {fixed:,} : {broken:,} "
        f"({fixed / max(1, broken):.1f} : 1) | {p_words(max(one.p_value for one in there))} | {100 * acted:.0f} % | "
        f"{size} |"
    )


def _pooled(results: Sequence[Paired]) -> Paired:
    """Records of several seeds as one table."""
    return Paired(
        n=sum(one.n for one in results),
        before=sum(one.before for one in results),
        fixed=sum(one.fixed for one in results),
        broken=sum(one.broken for one in results),
        acted=sum(one.acted for one in results),
    )


def _pooled_row(kind: ControlKind, of: Sequence[Repair]) -> str:
    results = [result for one in of if (result := _named(one, kind)) is not None]
    return _beside(kind.value, of[0], _pooled(results)) if results else _beside(kind.value, of[0], None)


def _policy_row(policy: Policy, of: Sequence[Repair]) -> str:
    """The gates under one policy, whichever the choose records of each seed chose."""
    other = ControlKind.LARGEST if policy is Policy.ONE else ControlKind.TOGETHER
    results = [one.test if one.policy is policy else _named(one, other) for one in of]
    chosen = sum(one.policy is policy for one in of)
    name = f"where several gates fire, {policy.value} (chosen in {chosen} of {len(of)} seeds)"
    return _beside(name, of[0], _pooled([one for one in results if one is not None]))


def _best_always(of: Sequence[Repair]) -> str:
    """Of each seed the unit that helps most when it is always ablated, chosen afterwards."""
    best = [
        max(always, key=lambda one: one.result.points).result
        for one in of
        if (always := [control for control in one.controls if _always(control)])
    ]
    return _beside("the best unit always ablated, known afterwards", of[0], _pooled(best) if best else None)


def _pairs_row(of: Sequence[Repair]) -> str:
    """Pairs of units whose gates fire together: what ablating the second one too adds."""
    added = [pair.added for one in of for pair in one.pairs]
    name = "of pairs that fire together the second unit too (choose records)"
    return _beside(name, of[0], _pooled(added) if added else None)


def _always(control: Control) -> bool:
    return control.kind is ControlKind.ALWAYS


def _beside(name: str, one: Repair, result: Paired | None) -> str:
    beside = f"{one.family.value}{', reads the right answer' if one.solution else ''}"
    if result is None:
        return f"| {name} | {beside} | – | – |"
    return f"| {name} | {beside} | {points_words(result)} | {result.fixed:,} : {result.broken:,} |"


def _seed_row(one: Repair) -> str:
    reads, result = "yes" if one.solution else "no", one.test
    if result is None:
        return f"| {one.seed} | {one.family.value} | {reads} | – | – | {one.status.value} | – | – | – |"
    return (
        f"| {one.seed} | {one.family.value} | {reads} | {100 * result.before / result.n:.2f} % | "
        f"{100 * result.after / result.n:.2f} % | {points_words(result)} | {result.fixed} | {result.broken} | "
        f"{p_words(result.p_value)} |"
    )


def write(found: Sequence[Repair], record: Mapping[str, Any]) -> None:
    """Puts the tables between the page's markers, with what they were made on."""
    put_between(PAGE, f"{record['note']}\n\n{tables(found)}")


def main() -> None:
    """Measures every seed, or joins what was measured; the file and the page are written after each seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="arith-tiny")
    parser.add_argument("--basis", type=Basis, default=Basis.MLP_OUT)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(5)))
    parser.add_argument("--families", type=Family, nargs="+", default=list(Family))
    parser.add_argument("--records", type=int, default=27_000)
    parser.add_argument("--tried", type=int, default=20)
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "repair.json")
    parser.add_argument("--write", action="store_true")
    parser.add_argument(
        "--known", type=Path, nargs="+", help="joins files that --json wrote, and measures nothing"
    )
    given = parser.parse_args()
    if given.known:
        record = joined([json.loads(file.read_text(encoding="utf-8")) for file in given.known])
        keep(record, given.json, given.write)
        return
    found: list[Repair] = []
    for seed in given.seeds:
        for one in measured(given.model, given.basis, seed, given.records, given.tried, given.families):
            found.append(one)
            print(_seed_row(one), flush=True)
        note = (
            f"Model {given.model}, basis {given.basis.value}, {given.records:,} records a seed in "
            f"thirds, {given.tried} units tried, at most 12 units with 3 clauses of 3 literals each, a "
            f"broken answer weighing {HARM:g} fixed ones, on a "
            f"{os.cpu_count()}-core {platform.machine()} processor."
        )
        record = {"note": note, "versions": versions(), "repairs": [encode(one) for one in found]}
        keep(record, given.json, given.write)


def joined(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several files as one, seed by seed."""
    repairs = [one for record in records for one in record["repairs"]]
    repairs.sort(key=lambda one: (one["seed"], list(Family).index(Family(one["family"])), one["solution"]))
    return {**records[0], "repairs": repairs}


def keep(record: Mapping[str, Any], file: Path, page: bool) -> None:
    """Writes the file, and the page where asked to."""
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in record["repairs"])
    head = json.dumps(
        {name: value for name, value in record.items() if name != "repairs"}, ensure_ascii=False
    )
    file.write_text(f'{head[:-1]}, "repairs": [\n{lines}\n]}}\n', encoding="utf-8")
    if page:
        write([decode(Repair, one) for one in record["repairs"]], record)


if __name__ == "__main__":
    main()
