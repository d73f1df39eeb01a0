"""Stage 4 of a run: anchored rules.

One basis and one regime at a time. Everything here is chosen by strength on the compact slices, which lie in
the train split; the held-out records score rules, and decide at the end of the run which are shown.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.events import RuleAnchored
from mecharule_ops.pipeline.coverage import Coverage
from mecharule_ops.pipeline.journal import Journal
from mecharule_ops.pipeline.localise import Localised
from mecharule_ops.pipeline.refinement import refined_texts
from mecharule_ops.pipeline.run import Run
from mecharule_ops.rules.anchoring import AnchorSettings, anchor
from mecharule_ops.rules.interval import interval_of
from mecharule_ops.types import AnchoredRule, Neuron, Regime


def anchored_rule(
    run: Run,
    neuron: Neuron,
    regime: Regime,
    eligible: Int[np.ndarray, " eligible"],
    flips: Bool[np.ndarray, " eligible"],
) -> AnchoredRule:
    """A unit's rule from its flips on D_b (`eligible`): learned on the train part and scored once on the rest."""
    predicates = refined_texts(run, eligible, flips)
    fires = np.array([run.fires(text)[eligible] for text in predicates], bool)
    matrix = fires.reshape(len(predicates), len(eligible)).T
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
        tell_rule(journal, rule)
    return tuple(anchored)


def tell_rule(journal: Journal, rule: AnchoredRule) -> None:
    """Say what was learned of a unit: when it is, and again when the run has decided which rules are shown."""
    if rule.rule is None:
        return
    interval = None if rule.held_out is None else interval_of(rule.held_out)
    journal.emit(
        RuleAnchored(
            regime=rule.regime.value,
            neuron=str(rule.neuron),
            rule=rule.rule,
            held_out_mcc=None if rule.held_out is None else rule.held_out.mcc,
            full_mcc=None if rule.full is None else rule.full.mcc,
            prompt_only=rule.prompt_only,
            held_out_low=None if interval is None else interval.low,
            held_out_high=None if interval is None else interval.high,
            adjusted_p=None if rule.chance is None else rule.chance.adjusted,
            failed=rule.chance is not None and rule.chance.failed,
        )
    )
