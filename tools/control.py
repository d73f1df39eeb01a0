"""Control experiments beside one unit: what the run's report says of them, or the same made now; certified."""

from __future__ import annotations

from dataclasses import replace

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.codec import encode
from mecharule_ops.findings.controls import AgonistControls, decided
from mecharule_ops.run.certify import ablation_rows, certified
from mecharule_ops.run.controlling import OF_LAYER, beside, control_records, units_beside
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.localise import slice_estimates
from mecharule_ops.run.opening import check_unit, keep, opened
from mecharule_ops.saying.fact import fact
from mecharule_ops.saying.flips import both_slices
from mecharule_ops.thresholds import RANDOM_UNITS
from mecharule_ops.types import FlipEstimate, Neuron, Regime
from tools._ablations import accepted, price_words
from tools._accounts import about, controls_data, controls_facts, direction
from tools.arguments import ControlArguments
from tools.registry import Tell, ToolResult, stated


def control(given: ControlArguments, tell: Tell) -> ToolResult:
    """The controls of the run's report, or the same for a unit that has none there; the first random units certified.

    Of a unit that the run did not control, p is corrected for no other one.
    """
    neuron = Neuron.parse(given.neuron)
    with opened(given.run) as run:
        check_unit(run, neuron)
        regime = direction(run, given.regime)
        records, units = len(control_records(run, regime)), given.units
        if _reported(run, neuron, regime) is None:
            units += _most(run, given.units) + OF_LAYER + 1
        price = price_words(run, units * records + 2 * len(run.slices(regime).positions))
        identifier = run.id
    if given.estimate:
        return price.stated(identifier)
    accepted(price, given.yes, tell)
    with opened(given.run, write=True, tell=tell) as run:
        estimate, controls, certificate = _ran(run, neuron, regime, given.units)
        tau = run.config.tau
    data = {
        **about(identifier, neuron, regime),
        **encode(estimate),
        "controls": controls_data(controls, estimate, tau),
        "certificate": certificate.id,
    }
    source = f"run:{identifier}"
    facts = (
        fact(f"Ablating {neuron} alone flips {both_slices(estimate)}", source, unit=neuron),
        *controls_facts(controls, estimate, tau, source),
        fact(f"Certified: the first {len(certificate.units)} random units", f"c:{certificate.id}"),
    )
    return stated(data, facts)


def _ran(
    run: Run, neuron: Neuron, regime: Regime, units: int
) -> tuple[FlipEstimate, AgonistControls, Certificate]:
    """The unit's estimate, its controls, and the certificate of the random units; the run is open for writing."""
    most, main = _most(run, units), run.intervention(neuron.basis)
    controls = _reported(run, neuron, regime)
    if controls is None:
        fresh = beside(run, [neuron], regime, most=most)
        (controls,) = decided(fresh, alpha=run.config.alpha, epsilon=run.config.epsilon)
    records = {"held-out": control_records(run, regime).tolist()}
    others = units_beside(run, neuron, most)[0][:units]
    rows = tuple(
        replace(row, unit=str(one))
        for one, ablated in zip(
            others, ablation_rows(run, main, [(one,) for one in others], records), strict=True
        )
        for row in ablated
    )
    claim = (
        f"{len(others)} random units beside {neuron}, the first of {most}, each ablated alone, flip "
        f"{sum(row.flipped for row in rows)}/{len(rows)} held-out examples ({regime.arrow})"
    )
    made = certified(run, main, others, rows, regime=regime, kind="control", claim=claim)
    estimate = slice_estimates(run, run.slices(regime), main, [(neuron,)])[0]
    return estimate, controls, keep(run, made)


def _most(run: Run, units: int) -> int:
    """Random units to draw: enough for a p, whatever fewer an earlier version's run asked for."""
    return max(run.config.controls, RANDOM_UNITS, units)


def _reported(run: Run, neuron: Neuron, regime: Regime) -> AgonistControls | None:
    """What the run's report says of random units beside the unit; None where it ranked it among none."""
    unit = run.findings.unit(neuron, regime) if run.finished else None
    if unit is None or unit.controls is None or unit.controls.basis is None:
        return None
    return unit.controls
