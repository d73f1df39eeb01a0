"""Stage 4 of a run and the controls: anchored rules, and what else would have flipped.

One basis and one regime at a time. Everything here is chosen by strength on the compact slices, which lie in
the train split; the held-out records only score rules.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.events import RuleAnchored
from mecharule_ops.findings.records import AgonistControls, Share
from mecharule_ops.pipeline.coverage import Coverage
from mecharule_ops.pipeline.driver import count
from mecharule_ops.pipeline.journal import Journal
from mecharule_ops.pipeline.localise import Localised, slice_estimates
from mecharule_ops.pipeline.refinement import refined_texts
from mecharule_ops.pipeline.run import Run
from mecharule_ops.rules.anchoring import AnchorSettings, anchor
from mecharule_ops.rules.interval import interval_of
from mecharule_ops.rules.ruleshap import learn_rule, permuted
from mecharule_ops.types import (
    AnchoredRule,
    Baseline,
    FlipEstimate,
    Intervention,
    Neuron,
    Regime,
)


def anchored_rule(
    run: Run,
    neuron: Neuron,
    regime: Regime,
    eligible: Int[np.ndarray, " eligible"],
    flips: Bool[np.ndarray, " eligible"],
) -> AnchoredRule:
    """A unit's rule from its flips on D_b (`eligible`): learned on the train part and scored once on the rest."""
    predicates = refined_texts(run, eligible, flips)
    matrix = np.column_stack([run.fires(text)[eligible] for text in predicates])
    in_train = run.train[eligible]
    return anchor(
        neuron,
        regime,
        flips,
        matrix,
        predicates,
        np.flatnonzero(in_train),
        np.flatnonzero(~in_train),
        run.prompt_only,
        AnchorSettings(seed=run.config.seed),
    )


def anchor_rules(run: Run, journal: Journal, found: Localised, flips: Coverage) -> tuple[AnchoredRule, ...]:
    """A rule for each unit, learned on the train part of D_b and scored once on the rest."""
    anchored = []
    for done, (neuron, target) in enumerate(zip(flips.neurons, flips.flips, strict=True)):
        journal.progress("anchored rules")(done, len(flips.neurons))
        rule = anchored_rule(run, neuron, found.regime, flips.eligible, target)
        anchored.append(rule)
        if rule.rule is not None:
            interval = None if rule.held_out is None else interval_of(rule.held_out)
            journal.emit(
                RuleAnchored(
                    regime=found.regime.value,
                    neuron=str(neuron),
                    rule=rule.rule,
                    held_out_mcc=None if rule.held_out is None else rule.held_out.mcc,
                    full_mcc=None if rule.full is None else rule.full.mcc,
                    prompt_only=rule.prompt_only,
                    held_out_low=None if interval is None else interval.low,
                    held_out_high=None if interval is None else interval.high,
                )
            )
    return tuple(anchored)


def random_units(run: Run, found: Localised, layers: Sequence[int], salt: int = 0) -> list[Neuron]:
    """One random candidate for each layer named, none of them localized and none twice; fewer if a layer ends."""
    generator = np.random.default_rng([run.config.seed, found.regime.value, salt])
    taken = {agonist.neuron for agonist in found.agonists}
    channels = {layer.layer: layer.channels for layer in found.candidates.layers}
    drawn: list[Neuron] = []
    for layer in layers:
        free = [
            neuron
            for channel in channels[layer].tolist()
            if (neuron := Neuron(found.basis, layer, channel)) not in taken
        ]
        if free:
            drawn.append(free[generator.integers(len(free))])
            taken.add(drawn[-1])
    return drawn


def fake_split(run: Run, found: Localised) -> Bool[np.ndarray, " record"] | None:
    """Where a rule fires that was learned on permuted targets; None when none was learned."""
    train = run.train
    target = permuted(run.labels[train], np.random.default_rng([run.config.seed, found.regime.value]))
    learned = learn_rule(run.table.matrix[train], run.vocabulary["kept"], target, seed=run.config.seed)
    return None if learned.rule is None else learned.rule.fires(run.fires)


def controls(run: Run, journal: Journal, found: Localised, flips: Coverage) -> tuple[AgonistControls, ...]:
    """The controls beside the strongest τ-agonists: random units of the layer, a fake split, a second baseline.

    A unit that is only not ruled out claims nothing that a control could support.
    """
    chosen = [agonist for agonist in found.agonists if agonist.is_tau_agonist][: run.config.controls_for]
    fake = fake_split(run, found) if chosen else None
    main = run.intervention(found.basis)
    second = second_baseline(main.baseline)
    other = Intervention(basis=main.basis, baseline=second, phase=main.phase)
    ran = []
    for done, agonist in enumerate(chosen):
        neuron = agonist.neuron
        others = random_units(run, found, [neuron.layer] * run.config.controls, 1 + neuron.channel)
        estimates = slice_estimates(run, found.slices, main, [(unit,) for unit in others])
        outside, replaced = run.replacement(main).out_of_range(neuron)
        ran.append(
            AgonistControls.of(
                neuron,
                agonist.estimate,
                searched=found.candidates.total,
                epsilon=run.config.epsilon,
                alpha=run.config.alpha,
                random_units=len(others),
                random=_pooled(estimates) if estimates else None,
                fake_split=None if fake is None else _split_by(flips, neuron, fake, run.train),
                second_baseline=second,
                second=slice_estimates(run, found.slices, other, [(neuron,)])[0],
                out_of_range=Share(count=outside, n=replaced),
            )
        )
        journal.progress("controls")(done + 1, len(chosen))
    return tuple(ran)


def second_baseline(main: Baseline) -> Baseline:
    """The baseline that stands beside the main one: the plain mean, or the positional one beside it."""
    return (
        Baseline.MEAN_POSITIONAL if main in (Baseline.MEAN, Baseline.ZERO, Baseline.SLOT0) else Baseline.MEAN
    )


def _split_by(
    flips: Coverage, neuron: Neuron, fires: Bool[np.ndarray, " record"], train: Bool[np.ndarray, " record"]
) -> FlipEstimate | None:
    """The unit's flips on the train part of D_b, split by a rule; None when they were not measured."""
    if neuron not in flips.neurons:
        return None
    flipped = flips.flips[flips.neurons.index(neuron)]
    side, used = fires[flips.eligible], train[flips.eligible]
    return FlipEstimate(associated=count(flipped[used & side]), unrelated=count(flipped[used & ~side]))


def _pooled(estimates: Sequence[FlipEstimate]) -> FlipEstimate:
    return sum(estimates[1:], estimates[0])
