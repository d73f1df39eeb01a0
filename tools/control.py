"""Control experiments beside one unit, run now and certified: random units of its layer, a second baseline."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.certificates.certify import ablation_rows, certified
from mecharule_ops.findings.controls import verdict
from mecharule_ops.findings.records import AgonistControls
from mecharule_ops.pipeline.evidence import second_baseline
from mecharule_ops.pipeline.localise import slice_estimates
from mecharule_ops.pipeline.preparation import slices_of
from mecharule_ops.pipeline.run import Run
from mecharule_ops.types import FlipCount, FlipEstimate, Neuron, Regime
from tools._ablations import accepted, price_words
from tools._accounts import controls_data
from tools._opening import check_direction, check_unit, keep, opened, regime_of
from tools.arguments import Control
from tools.registry import Tell
from tools.result import ToolResult


def control(given: Control, tell: Tell) -> ToolResult:
    """Flips of the unit, of random units each alone, and of the unit under another baseline, with the verdict.

    The random units are certified. The fake rule's split is in the run's own controls (`why`).
    """
    neuron = Neuron.parse(given.neuron)
    with opened(given.run) as run:
        check_unit(run, neuron)
        regime = regime_of(given.regime) or Regime(run.config.regimes[0])
        check_direction(run.id, regime, hidden=run.config.suppress_only)
        slices = slices_of(run, regime)
        examples = len(slices.associated) + len(slices.unrelated)
        price = price_words(run, (2 + 2 * given.units) * examples)
        identifier = run.id
    if given.estimate:
        return ToolResult(data={"run": identifier, "price": price.data}, text=f"price: {price.words}")
    accepted(price, given.yes, tell)
    with opened(given.run, write=True) as run:
        estimate, controls, certificate = _ran(run, neuron, regime, given.units)
        word = verdict(estimate, controls, run.config.tau, run.config.epsilon, run.config.alpha).value
    data = {
        "run": identifier,
        "neuron": str(neuron),
        "regime": regime.value,
        "associated": _count(estimate.associated),
        "unrelated": _count(estimate.unrelated),
        "controls": controls_data(controls),
        "verdict": word,
        "certificate": certificate.id,
    }
    assert controls.random is not None
    assert controls.second is not None
    lines = [
        f"{neuron} ({regime.arrow}) in run {identifier}",
        f"  the unit  {_words(estimate)}",
        f"  random    {_words(controls.random)}, {controls.random_units} units each alone [c:{certificate.id}]",
        f"  {controls.second_baseline}  {_words(controls.second)}, the unit under that baseline",
        f"  verdict   {word}",
    ]
    return ToolResult(data=data, text="\n".join(lines))


def _ran(
    run: Run, neuron: Neuron, regime: Regime, units: int
) -> tuple[FlipEstimate, AgonistControls, Certificate]:
    """The unit's estimate, its controls, and the certificate of the random units; the run is open for writing."""
    slices, main = slices_of(run, regime), run.intervention(neuron.basis)
    others = _others(run, neuron, units)
    unit, *random = slice_estimates(run, slices, main, [(neuron,), *((other,) for other in others)])
    second = second_baseline(main.baseline)
    other = slice_estimates(run, slices, replace(main, baseline=second), [(neuron,)])[0]
    pooled = FlipEstimate(
        associated=_sum([one.associated for one in random]), unrelated=_sum([one.unrelated for one in random])
    )
    placed = {"associated": slices.associated.tolist(), "unrelated": slices.unrelated.tolist()}
    rows = tuple(
        replace(row, unit=str(one)) for one in others for row in ablation_rows(run, main, (one,), placed)
    )
    claim = (
        f"{len(others)} random units beside {neuron}, each ablated alone, flip {pooled.associated.flips}/"
        f"{pooled.associated.n} associated and {pooled.unrelated.flips}/{pooled.unrelated.n} unrelated examples "
        f"({regime.arrow})"
    )
    made = certified(run, main, others, rows, regime=regime, kind="control", claim=claim)
    controls = AgonistControls(
        neuron=neuron,
        random_units=len(others),
        random=pooled,
        fake_split=None,
        second_baseline=second,
        second=other,
        out_of_range=None,
    )
    return unit, controls, keep(run, made)


def _others(run: Run, neuron: Neuron, units: int) -> tuple[Neuron, ...]:
    """Random units of the layer that no search localized, the same for the same unit and seed; fewer at its end."""
    searches = run.findings.searches if run.store.has("findings") else ()
    taken = {neuron, *(agonist.neuron for search in searches for agonist in search.agonists)}
    generator = np.random.default_rng([run.config.seed, neuron.layer, neuron.channel])
    drawn = generator.permutation(run.subject.width(neuron.basis)).tolist()
    layer = (Neuron(neuron.basis, neuron.layer, channel) for channel in drawn)
    return tuple(sorted([other for other in layer if other not in taken][:units]))


def _sum(counts: list[FlipCount]) -> FlipCount:
    return FlipCount(flips=sum(count.flips for count in counts), n=sum(count.n for count in counts))


def _count(count: FlipCount) -> dict[str, int]:
    return {"flips": count.flips, "n": count.n}


def _words(estimate: FlipEstimate) -> str:
    plus, minus = estimate.associated, estimate.unrelated
    return f"{plus.flips}/{plus.n} of D+ · {minus.flips}/{minus.n} of D-"
