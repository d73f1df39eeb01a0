"""Finished runs of experiments made by hand, without a model and without a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from findings_fixture import FINDINGS, POSITIVE, anchored

from mecharule_ops.config import make_config
from mecharule_ops.experiments.requested_runs import MAIN, ExperimentRequest, PlannedRunDone, planned
from mecharule_ops.types import AnchoredRule, Basis, Regime, Share

UP = Regime.BASELINE_POSITIVE
UNITS = {Basis.MLP_OUT: 256, Basis.MLP_HIDDEN: 1024, Basis.ATTN_HEAD: 8}


def request(seeds: int = 5, **settings: object) -> ExperimentRequest:
    """A request on the bundled model; brute force is within reach."""
    base = make_config(**{"model": "arith-tiny", "exhaustive_up_to": 300, **settings})
    return ExperimentRequest(base=base, seeds=tuple(range(seeds)), units=UNITS)


def rules(good: int) -> tuple[AnchoredRule, ...]:
    """So many units whose rule reaches MCC .78, held out and all-fit, and one whose rule does not."""
    names = [f"a1.h{number}" for number in range(good)]
    return (*(anchored(name, "a > 1", 0.78, 84, 40) for name in names), anchored("a2.h0", "b", 0.3, 84, 40))


def finished(
    seed: int, label: str = MAIN, *, good: int = 1, flips: Sequence[Sequence[int]] = ()
) -> PlannedRunDone:
    """A run with one search, `good` high-quality rules, and the given flips of its units."""
    search = replace(POSITIVE, anchored=rules(good), union=Share(count=30 + seed, n=100))
    return PlannedRunDone(
        planned=planned(request().base, seed, label),
        path=Path("none"),
        findings=replace(FINDINGS, searches=(search,), seed=seed),
        scores={UP: np.zeros((30, 9))},
        flips={UP: np.array(flips, bool) if flips else np.zeros((0, 4), bool)},
    )
