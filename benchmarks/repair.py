"""What gates do to answers of the bundled model over seeds, and what does without their units: docs/repair.md.

For each seed: a run's records and vocabulary, fresh records in three splits, units by first order and by measured
fixes, gates of each family with and without columns that tell the right answer, and controls, each scored once on the
test records. With `--write` the page's table is written between its marks, and every row beside it as CSV.
About 3 minutes of a core a seed and family without trees, 10 with them (`--trees`).

    python benchmarks/repair.py [--model arith-tiny] [--seeds 0 1 2] [--families input …] [--json FILE] [--write]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

from pages import made_at, put_between, put_table
from paper.intervals import t_interval

from mecharule_ops.codec import decode, encode
from mecharule_ops.config import make_config
from mecharule_ops.findings.repair_outcome import ControlKind, Repair
from mecharule_ops.mcnemar import Paired
from mecharule_ops.repair.material import RepairRequest, material
from mecharule_ops.repair.repairing import repair
from mecharule_ops.rules.families import Family
from mecharule_ops.run.journal import Journal
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.preparation import prepare
from mecharule_ops.run.summing_up import versions
from mecharule_ops.saying.repair_facts import ONE_DRAW, WITHOUT_UNITS, changed_words, points_words
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.thresholds import HARM
from mecharule_ops.types import Basis

PAGE = Path(__file__).parent.parent / "docs" / "repair.md"


def measured(
    model: str,
    basis: Basis,
    seed: int,
    records: int,
    tried: int,
    families: Sequence[Family],
    trees: bool,
    random: bool = True,
    task: Mapping[str, object] | None = None,
) -> Iterator[Repair]:
    """Every repair of one seed, each on the same records, units and outcomes; with trees beside where asked."""
    settings = {"model": model, "records": 1000, "regimes": (0,), "bases": (basis,), "seed": seed}
    config = make_config(**settings, task_settings=dict(task or {})).model_dump(mode="json")
    with (
        tempfile.TemporaryDirectory() as folder,
        RunStore.create(Path(folder) / "run.mecharule", {"run": "bench", "settings": config}) as store,
    ):
        run = Run(store)
        prepare(run, Journal(store, lambda event: None, time.perf_counter))
        asked = RepairRequest(basis=basis, records=records, tried=tried, random=random)
        found = material(run, asked, print)
        for family in families:
            for solution in (False, True):
                yield repair(found.under(replace(asked, family=family, solution=solution, model=trees)))


BESIDE = {**WITHOUT_UNITS, ControlKind.RANDOM_REPAIR: ONE_DRAW, ControlKind.MODEL: "free-form trees"}


def table(found: Sequence[Repair]) -> str:
    """The page's table: a row for each family, with and without the right answer's columns."""
    there = {control.kind for one in found for control in one.controls}
    beside = [kind for kind in BESIDE if kind in there]
    header = (
        "gates",
        "right answer",
        "seeds",
        "change [95 % interval]",
        "fixed : broken",
        *(BESIDE[kind] for kind in beside),
    )
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for kind in dict.fromkeys((one.family, one.solution) for one in found):
        of = [one for one in found if (one.family, one.solution) == kind]
        tests = [one.test for one in of if one.test is not None]
        cells = [
            f"**{kind[0].value}**",
            "read" if kind[1] else "hidden",
            str(len(of)),
            _mean([one.test for one in of]),
            f"{_pooled(tests).fixed:,} : {_pooled(tests).broken:,}",
            *(_control(of, each) for each in beside),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean(results: Sequence[Paired | None]) -> str:
    """Mean of the seeds with its t-interval, a seed without a gate at 0; of one seed its own interval."""
    there = [one for one in results if one is not None]
    if not there:
        return "no gate helps"
    if len(results) < 2:
        return points_words(there[0]).replace(" points", "")
    of = t_interval([0.0 if one is None else one.points for one in results])
    return f"{of.mean:+.2f} [{of.low:+.2f}, {of.high:+.2f}]"


def _control(of: Sequence[Repair], kind: ControlKind) -> str:
    """Mean change under it over the seeds; a dagger where the t-interval of what the gates are ahead by reaches 0.

    In a seed without a gate the gates are ahead by 0, and what acts where they act changes nothing; any other control
    was not scored there and says in how many seeds it was.
    """
    there = [control for one in of for control in one.controls if control.kind is kind]
    if not there:
        return "–"
    without = [0.0] * sum(one.test is None for one in of)
    ahead = [one.ahead.points for one in there if one.ahead is not None] + without
    dagger = " †" if len(ahead) > 1 and not t_interval(ahead).low > 0 else ""
    points = [one.result.points for one in there] + (without if kind in WHERE_THEY_ACT else [])
    fewer = f" ({len(points)} of {len(of)} seeds)" if len(points) < len(of) else ""
    return f"{mean(points):+.2f}{fewer}{dagger}"


WHERE_THEY_ACT = (ControlKind.RUNNER_UP, ControlKind.SOLVER)


def _pooled(results: Sequence[Paired]) -> Paired:
    """Records of several seeds as one table."""
    return Paired(**{name: sum(getattr(one, name) for one in results) for name in COUNTS})


COUNTS = ("n", "before", "fixed", "broken", "acted")
COLUMNS = (
    *("gates", "right answer", "seed", "what", "name", *COUNTS, "points", "low", "high", "p"),
    *("gates ahead by", "ahead low", "ahead high"),
)


def rows(found: Sequence[Repair]) -> list[tuple[str, ...]]:
    """The gates on the test records of every seed, and every control beside them."""
    made = []
    for one in found:
        lines: list[tuple[str, str, Paired | None, Paired | None]] = [
            ("the gates", one.policy.value, one.test, None),
            ("the best unit of each record, known afterwards", "", one.hindsight, None),
        ]
        lines += [(each.kind.value, each.name, each.result, each.ahead) for each in one.controls]
        for place, (what, name, result, ahead) in enumerate(lines):
            start = (one.family.value, "read" if one.solution else "hidden", str(one.seed), what)
            if result is None:
                made += [] if place else [(*start, one.status.value, *[""] * (len(COLUMNS) - len(start) - 1))]
                continue
            counts = (str(getattr(result, each)) for each in COUNTS)
            p = f"{result.p_value:.2g}"
            made.append((*start, name, *counts, *_numbers(result), p, *_numbers(ahead)))
    return made


def _numbers(result: Paired | None) -> tuple[str, ...]:
    """Points and both ends of their interval; empty where there is no result."""
    return ("",) * 3 if result is None else tuple(f"{one:.2f}" for one in (result.points, *result.interval))


def pair_rows(found: Sequence[Repair]) -> list[tuple[str, ...]]:
    """Pairs of units whose gates fire together, on the choose records: each alone, both, what the second adds."""
    return [
        (
            *(one.family.value, "read" if one.solution else "hidden", str(one.seed)),
            *(str(pair.first), str(pair.second), str(pair.alone.n)),
            *(changed_words(pair.alone), changed_words(pair.both), points_words(pair.added)),
        )
        for one in found
        for pair in one.pairs
    ]


def write(record: Mapping[str, Any]) -> None:
    """Puts the table between the page's marks with what it was made on, and all rows beside it."""
    found = [decode(Repair, one) for one in record["repairs"]]
    links = [
        put_table("repair", COLUMNS, rows(found)),
        put_table(
            "repair-pairs",
            (
                "gates",
                "right answer",
                "seed",
                "acts",
                "and",
                "records",
                "alone",
                "both",
                "what the second adds",
            ),
            pair_rows(found),
        ),
    ]
    beside = f"Every seed and control: {links[0]}; pairs of units whose gates fire together: {links[1]}."
    put_between(PAGE, f"{table(found)}\n\n{record['made']} {record['note']} {beside}")


def main() -> None:
    """Measures every seed, or joins what was measured; the file and the page are written after each seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="arith-tiny")
    parser.add_argument("--basis", type=Basis, default=Basis.MLP_OUT)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(3)))
    parser.add_argument("--families", type=Family, nargs="+", default=list(Family))
    parser.add_argument("--records", type=int, default=27_000)
    parser.add_argument("--tried", type=int, default=20)
    parser.add_argument("--trees", action="store_true", help="put free-form trees beside")
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
    made, repairs = made_at(), list[dict[str, Any]]()
    for seed in given.seeds:
        asked = (given.model, given.basis, seed, given.records, given.tried, given.families, given.trees)
        for one in measured(*asked):
            repairs.append(encode(one))
            print(
                seed,
                one.family.value,
                one.solution,
                "–" if one.test is None else points_words(one.test),
                flush=True,
            )
        note = (
            f"Model {given.model}, basis {given.basis.value}, {given.records:,} records a seed in thirds, "
            f"{given.tried} units tried, at most 12 units with 3 clauses of 3 literals each, a broken answer "
            f"weighing {HARM:g} fixed ones."
        )
        record = {"made": made, "note": note, "versions": versions(), "repairs": repairs}
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
        write(record)


if __name__ == "__main__":
    main()
