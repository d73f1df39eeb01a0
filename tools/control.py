"""Control experiments beside one unit, run now and certified: random units of its layer, a second baseline."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.findings.controls import AgonistControls
from mecharule_ops.pipeline.certify import ablation_rows, certified
from mecharule_ops.pipeline.explaining import second_baseline
from mecharule_ops.pipeline.localise import slice_estimates
from mecharule_ops.pipeline.opening import check_direction, check_unit, keep, opened, regime_of
from mecharule_ops.pipeline.run import Run
from mecharule_ops.report.phrases.flips import both_slices
from mecharule_ops.types import FlipCount, FlipEstimate, Neuron, Regime
from tools._ablations import accepted, price_words
from tools._accounts import controls_data, controls_lines
from tools.arguments import Control
from tools.registry import Tell
from tools.result import ToolResult


def control(given: Control, tell: Tell) -> ToolResult:
    """Flips of the unit, of random units each alone, and of the unit under another baseline; effect and selective.

    The random units are certified. The fake rule's split is that of the run's own controls, where it has them.
    """
    neuron = Neuron.parse(given.neuron)
    with opened(given.run) as run:
        check_unit(run, neuron)
        regime = regime_of(given.regime) or run.regimes[0]
        check_direction(run.id, regime, hidden=run.config.suppress_only)
        price = price_words(run, (2 + given.units) * len(run.slices(regime).positions))
        identifier = run.id
    if given.estimate:
        return ToolResult(data={"run": identifier, "price": price.data}, text=f"price: {price.words}")
    accepted(price, given.yes, tell)
    with opened(given.run, write=True, tell=tell) as run:
        estimate, controls, certificate = _ran(run, neuron, regime, given.units)
        tau = run.config.tau
    data = {
        "run": identifier,
        "neuron": str(neuron),
        "regime": regime.value,
        "associated": _count(estimate.associated),
        "unrelated": _count(estimate.unrelated),
        "controls": controls_data(controls, tau),
        "certificate": certificate.id,
    }
    lines = [
        f"{neuron} ({regime.arrow}) in run {identifier}",
        f"  the unit  flips {both_slices(estimate)}",
        *controls_lines(controls, tau),
        f"  cited     [c:{certificate.id}], the random units",
    ]
    return ToolResult(data=data, text="\n".join(lines))


def _ran(
    run: Run, neuron: Neuron, regime: Regime, units: int
) -> tuple[FlipEstimate, AgonistControls, Certificate]:
    """The unit's estimate, its controls, and the certificate of the random units; the run is open for writing."""
    slices, main = run.slices(regime), run.intervention(neuron.basis)
    others = _others(run, neuron, units)
    rows = tuple(
        replace(row, unit=str(one))
        for one in others
        for row in ablation_rows(run, main, (one,), slices.named)
    )
    unit, *random = slice_estimates(run, slices, main, [(neuron,), *((other,) for other in others)])
    second = second_baseline(main.baseline)
    other = slice_estimates(run, slices, replace(main, baseline=second), [(neuron,)])[0]
    pooled = FlipEstimate(
        associated=_sum([one.associated for one in random]), unrelated=_sum([one.unrelated for one in random])
    )
    claim = (
        f"{len(others)} random units beside {neuron}, each ablated alone, flip {pooled.associated.flips}/"
        f"{pooled.associated.n} associated and {pooled.unrelated.flips}/{pooled.unrelated.n} unrelated examples "
        f"({regime.arrow})"
    )
    made = certified(run, main, others, rows, regime=regime, kind="control", claim=claim)
    earlier, searched = _in_its_search(run, neuron, regime)
    controls = AgonistControls.of(
        neuron,
        unit,
        searched=searched,
        epsilon=run.config.epsilon,
        alpha=run.config.alpha,
        random_units=len(others),
        random=pooled,
        fake_split=earlier.fake_split if earlier else None,
        second_baseline=second,
        second=other,
        out_of_range=earlier.out_of_range if earlier else None,
    )
    return unit, controls, keep(run, made)


def _in_its_search(run: Run, neuron: Neuron, regime: Regime) -> tuple[AgonistControls | None, int]:
    """The controls of the run's own search beside the unit, and how many units it searched; else all there are."""
    for search in run.findings.searches if run.finished else ():
        if (search.intervention.basis, search.regime) == (neuron.basis, regime):
            return search.controls_of(neuron), max(1, search.cost.candidates)
    return None, run.subject.n_layers * run.subject.width(neuron.basis)


def _others(run: Run, neuron: Neuron, units: int) -> tuple[Neuron, ...]:
    """Random units of the layer that no search localized, the same for the same unit and seed; fewer at its end."""
    searches = run.findings.searches if run.finished else ()
    taken = {neuron, *(agonist.neuron for search in searches for agonist in search.agonists)}
    generator = np.random.default_rng([run.config.seed, neuron.layer, neuron.channel])
    drawn = generator.permutation(run.subject.width(neuron.basis)).tolist()
    layer = (Neuron(neuron.basis, neuron.layer, channel) for channel in drawn)
    return tuple(sorted([other for other in layer if other not in taken][:units]))


def _sum(counts: list[FlipCount]) -> FlipCount:
    return FlipCount(flips=sum(count.flips for count in counts), n=sum(count.n for count in counts))


def _count(count: FlipCount) -> dict[str, int]:
    return {"flips": count.flips, "n": count.n}
