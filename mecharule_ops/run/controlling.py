"""What stands beside the τ-agonists of a run: random units on held-out records, the split, a second baseline.

What decides is read on held-out records of D_b, which chose no unit. The random units of the basis are one draw that
all units of a search share: drawn from all others, whatever a search made of them. A control that leaves out what was
found is chosen by the outcome: where all units are alike it still flips less than the strongest of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, islice

import numpy as np
from jaxtyping import Int

from mecharule_ops.findings.controls import AgonistControls, Standing, as_many, decided
from mecharule_ops.findings.evidence import HeldOut, HeldOutFlips, to_draw
from mecharule_ops.findings.records import SearchOutcome
from mecharule_ops.run.driver import count
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.localise import Localised, flips_on, slice_estimates
from mecharule_ops.subsets import random_units, some_of
from mecharule_ops.types import Baseline, FlipCount, FlipEstimate, Neuron, Regime, Share

RECORDS = 64
"""Held-out records, at most, on which random units are ablated."""
OF_LAYER = 8
"""Random units of its layer that a unit is ranked among, at most."""


def held_out_flips(run: Run, found: Localised, progress: Callable[[int, int], None]) -> HeldOut:
    """The flips of every τ-agonist of a search on the control records, beside those of random units of the basis.

    Cost: each of these units on at most `RECORDS` records; where these are fewer, more random units are drawn. Raises
    `AblationStopped`.
    """
    regime, basis = found.slices.regime, found.candidates.basis
    records = control_records(run, regime)
    units = [agonist.neuron for agonist in found.outcome.tau_agonists]
    layers, width = range(run.subject.n_layers), run.subject.width(basis)
    size, alpha = len(layers) * width, run.config.alpha
    most = to_draw(run.config.controls, RECORDS, len(records), size, len(units), alpha) if units else 0
    drawn = random_units(basis, layers, width, most, seed=run.config.seed)
    asked = list(dict.fromkeys([*units, *drawn]))
    flips = _held_out_counts(run, regime, asked, records, progress)
    return HeldOut(
        records=len(records),
        found=tuple(HeldOutFlips(neuron=unit, flips=flips[unit]) for unit in units),
        random=tuple(flips[unit] for unit in drawn),
        units=size,
        again=tuple(unit for unit in drawn if unit in set(units)),
    )


def controls(run: Run, found: Localised, progress: Callable[[int, int], None]) -> tuple[AgonistControls, ...]:
    """The controls beside the first τ-agonists of a search; whether each is selective is decided over the whole run.

    The random units of the basis are those of `held_out_flips`, less the unit itself. A unit that is only not ruled out
    claims nothing that a control could support. Cost: random units of its layer on at most `RECORDS` records, and each
    unit on the slices under the other baseline.
    """
    outcome, measured, searched = found.outcome, found.measured, found.candidates.total
    chosen = [agonist.neuron for agonist in outcome.tau_agonists][: run.config.controls_for]
    drawn = None if outcome.held_out is None else len(outcome.held_out.random)
    return tuple(
        replace(controls, standing=Standing.of(controls.neuron, measured, searched, outcome.audit))
        for controls in beside(run, chosen, outcome.regime, progress, drawn)
    )


def beside(
    run: Run,
    units: Sequence[Neuron],
    regime: Regime,
    progress: Callable[[int, int], None] = lambda done, total: None,
    most: int | None = None,
) -> list[AgonistControls]:
    """The controls beside units of one basis, without their standing; `most` random units of the basis each."""
    if not units:
        return []
    records = control_records(run, regime)
    others = {unit: units_beside(run, unit, run.config.controls if most is None else most) for unit in units}
    asked = dict.fromkeys(chain(units, *(each for drawn in others.values() for each in drawn)))
    main = run.intervention(units[0].basis)
    other = replace(main, baseline=second_baseline(main.baseline))
    flips = _held_out_counts(run, regime, list(asked), records, progress)

    def made(unit: Neuron) -> AgonistControls:
        every, layer = others[unit]
        outside, replaced = run.replacement(main).out_of_range(unit)
        return AgonistControls(
            neuron=unit,
            flips=FlipCount(flips=flips[unit], n=len(records)),
            basis=as_many(flips, unit, every) if len(records) and every else None,
            layer=as_many(flips, unit, layer) if len(records) and layer else None,
            split=_split(run, unit, regime),
            second_baseline=other.baseline,
            second=slice_estimates(run, run.slices(regime), other, [(unit,)])[0],
            out_of_range=Share(count=outside, n=replaced),
        )

    return list(map(made, units))


def _held_out_counts(
    run: Run,
    regime: Regime,
    units: Sequence[Neuron],
    records: Int[np.ndarray, " record"],
    progress: Callable[[int, int], None],
) -> dict[Neuron, int]:
    """Of each of some units of one basis how many of the records it flips alone."""
    if not units:
        return {}
    main, groups = run.intervention(units[0].basis), [(unit,) for unit in units]
    counted = flips_on(run, regime, main, groups, (records.tolist(), ()), progress)
    return {unit: estimate.associated.flips for unit, estimate in zip(units, counted, strict=True)}


def control_records(run: Run, regime: Regime) -> Int[np.ndarray, " record"]:
    """The held-out records of D_b on which random units are ablated."""
    held_out = _held_out(run, regime)
    ids = [run.records[position].example.id for position in held_out]
    return held_out[some_of(ids, RECORDS, of="control records", seed=run.config.seed)]


def units_beside(run: Run, unit: Neuron, most: int) -> tuple[tuple[Neuron, ...], tuple[Neuron, ...]]:
    """The run's `most` random units of the basis, and random ones of its layer, less the unit itself; none of 0."""
    width, seed = run.subject.width(unit.basis), run.config.seed
    drawn = random_units(unit.basis, range(run.subject.n_layers), width, most, seed=seed)
    every = tuple(each for each in drawn if each != unit)
    of_layer = OF_LAYER if most else 0
    layer = random_units(
        unit.basis, [unit.layer], width, of_layer, but=[unit], of="control of the layer", seed=seed
    )
    return every, layer


def same_layers(run: Run, units: Sequence[Neuron], of: str = "same layers") -> list[Neuron]:
    """As many units of each layer as there are of it, drawn from all of the layer; `of` names the draw."""
    drawn: list[Neuron] = []
    for layer, many in sorted(Counter(unit.layer for unit in units).items()):
        basis, seed = units[0].basis, run.config.seed
        drawn += random_units(basis, [layer], run.subject.width(basis), many, of=of, seed=seed)
    return drawn


def second_baseline(main: Baseline) -> Baseline:
    """The baseline that stands beside the main one: the plain mean, or the positional one beside it."""
    return (
        Baseline.MEAN_POSITIONAL if main in (Baseline.MEAN, Baseline.ZERO, Baseline.SLOT0) else Baseline.MEAN
    )


def decided_over(searches: Sequence[SearchOutcome], alpha: float, epsilon: float) -> list[SearchOutcome]:
    """The searches of a run with the claims of all their controls decided at once."""
    ran = [controls for search in searches for controls in search.controls]
    done = iter(decided(ran, alpha=alpha, epsilon=epsilon))
    return [replace(search, controls=tuple(islice(done, len(search.controls)))) for search in searches]


def _held_out(run: Run, regime: Regime) -> Int[np.ndarray, " record"]:
    eligible = run.eligible(regime)
    return eligible[~run.train[eligible]]


def _split(run: Run, unit: Neuron, regime: Regime) -> FlipEstimate | None:
    """The unit's flips on the held-out records of D_b by the splitter rule; None without a rule."""
    rule, held_out = run.splitter.rule, _held_out(run, regime)
    if rule is None:
        return None
    flips, fires = run.flips([(unit,)], held_out, regime)[0], rule.fires(run.fires)[held_out]
    return FlipEstimate(associated=count(flips[fires]), unrelated=count(flips[~fires]))
