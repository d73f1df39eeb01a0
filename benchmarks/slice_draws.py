"""What slices of 64 say of all of D⁺ and D⁻, drawn at random and by k-center cover; every unit of the bundled model.

The truth is each unit's flip rate on every train record of its side. A line a regime, way of drawing and seed.

    python benchmarks/slice_draws.py [--seeds 5] [--runs FOLDER] [--write]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Bool
from pages import put_table
from recall import Case, made_ready

from mecharule_ops.confidence import lower_bound, upper_bound
from mecharule_ops.run.live_run import Run
from mecharule_ops.slices import CompactSlices, E1Condition, compact_slices
from mecharule_ops.store import keys
from mecharule_ops.store.run_directory import runs_directory
from mecharule_ops.types import Basis, Neuron, Regime

ALPHA = 0.025
LOUD = 0.05
"""Bounds are counted where the rate on all of the side is at least this: a unit that flips nothing keeps any."""


def measured(seed: int, regime: Regime, folder: Path) -> Iterator[dict[str, object]]:
    case = Case(
        basis=Basis.MLP_OUT,
        regime=regime,
        settings={"model": "arith-tiny", "records": 3000, "seed": seed},
    )
    run = made_ready(f"draws {regime.value} {seed}", case, folder).run
    units = [
        Neuron(Basis.MLP_OUT, layer, channel)
        for layer in range(run.subject.n_layers)
        for channel in range(run.subject.width(Basis.MLP_OUT))
    ]
    train = [place for place in run.eligible(regime).tolist() if run.train[place]]
    flips = np.zeros((len(units), len(run.records)), bool)
    flips[:, train] = run.flips([(unit,) for unit in units], train, regime)
    rule = run.splitter.rule
    assert rule is not None
    fires = rule.fires(run.fires)
    sides = np.array(train)[fires[train]], np.array(train)[~fires[train]]
    for condition in (E1Condition.RULE_SPECTRAL, E1Condition.RULE_RANDOM):
        yield {
            "regime": regime.arrow,
            "draw": condition.value,
            "seed": seed,
            **_compared(flips, sides, _slices(run, regime, condition), run.config.tau),
        }


def _slices(run: Run, regime: Regime, condition: E1Condition) -> CompactSlices:
    rule = run.splitter.rule
    assert rule is not None
    return compact_slices(
        run.labels,
        rule.fires(run.fires),
        run.store.get(keys.REPRESENTATION),
        run.store.get(keys.TOKEN_LENGTHS),
        np.flatnonzero(run.train),
        identifiers=[record.example.id for record in run.records],
        regime=regime,
        condition=condition,
        rule=str(rule),
        seed=run.config.seed,
    )


def _compared(
    flips: Bool[np.ndarray, "unit record"],
    sides: tuple[np.ndarray, np.ndarray],
    slices: CompactSlices,
    tau: float,
) -> dict[str, object]:
    chosen = slices.associated, slices.unrelated
    truth = np.stack([flips[:, side].mean(axis=1) for side in sides])
    counts = np.stack([flips[:, part].sum(axis=1) for part in chosen])
    sizes = [len(part) for part in chosen]
    seen = counts / np.array(sizes)[:, None]
    loud = [(side, unit) for side, unit in zip(*np.nonzero(truth >= LOUD), strict=True)]
    below = sum(truth[s, u] < lower_bound(int(counts[s, u]), sizes[s], ALPHA) for s, u in loud)
    above = sum(truth[s, u] > upper_bound(int(counts[s, u]), sizes[s], ALPHA) for s, u in loud)
    strong, named = truth.max(axis=0) >= tau, seen.max(axis=0) >= tau
    return {
        "associated": sizes[0],
        "unrelated": sizes[1],
        "all_associated": len(sides[0]),
        "all_unrelated": len(sides[1]),
        "strong_on_all": int(strong.sum()),
        "named_on_slices": int(named.sum()),
        "both": int((strong & named).sum()),
        "rates": len(loud),
        "below_the_lower_bound": int(below),
        "above_the_upper_bound": int(above),
        "mean_error": round(float(np.mean([abs(seen[s, u] - truth[s, u]) for s, u in loud])), 4),
        "radius": round(max(slices.associated_radius, slices.unrelated_radius), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--runs", type=Path, default=runs_directory() / "benchmark-draws")
    parser.add_argument(
        "--write", action="store_true", help="put the lines into docs/tables/search-draws.csv"
    )
    given = parser.parse_args()
    given.runs.mkdir(parents=True, exist_ok=True)
    rows = []
    for seed in range(given.seeds):
        for regime in (Regime.BASELINE_POSITIVE, Regime.BASELINE_NEGATIVE):
            for row in measured(seed, regime, given.runs):
                rows.append(row)
                print(row, flush=True)
    if given.write:
        put_table("search-draws", tuple(rows[0]), [tuple(map(str, row.values())) for row in rows])


if __name__ == "__main__":
    main()
