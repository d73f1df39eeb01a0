"""A rule for one unit, also for one that the run did not anchor: ablated on all of D_b, learned on its train part."""

from __future__ import annotations

from collections.abc import Iterator

from mecharule_ops.findings.records import Findings
from mecharule_ops.findings.shown import anchored_beside
from mecharule_ops.pipeline.explaining import anchored_rule
from mecharule_ops.pipeline.opening import (
    check_direction,
    check_unit,
    findings_of,
    opened,
    outcome_for,
    regime_of,
)
from mecharule_ops.pipeline.run import Run
from mecharule_ops.saying.fact import Fact, fact
from mecharule_ops.saying.rules import anchored_words, predicts
from mecharule_ops.types import AnchoredRule, Neuron, Regime
from tools._ablations import accepted, price_words
from tools._accounts import rule_data
from tools.arguments import Anchor
from tools.registry import Tell
from tools.result import ToolResult, stated


def anchor(given: Anchor, tell: Tell) -> ToolResult:
    """The run's own rule of the unit, or one made now, scored on held-out records; or the price.

    One made now is corrected with the rules of the run, not with others asked so: its ablations are kept, it is not.
    """
    neuron = Neuron.parse(given.neuron)
    with opened(given.run) as run:
        check_unit(run, neuron)
        findings = findings_of(run)
        outcome = outcome_for(findings, neuron, regime_of(given.regime))
        regime = outcome.regime
        unit = findings.unit(neuron, regime)
        rule = unit.rule if unit else None
        check_direction(run.id, regime, hidden=run.config.suppress_only)
        price = price_words(run, 0 if rule else len(run.eligible(regime)))
    if given.estimate:
        return price.stated(findings.run)
    if rule is None:
        accepted(price, given.yes, tell)
        with opened(given.run, write=True, tell=tell) as run:
            rule = _made(run, neuron, regime)
    data = {
        "run": findings.run,
        "neuron": str(neuron),
        "regime": regime.value,
        "rule": rule_data(rule),
        "hq_t": findings.is_hq_t(rule),
        "flips": rule.flips,
        "n": rule.eligible,
    }
    head = f"{neuron} ({regime.arrow}) in run {findings.run}"
    return stated(data, tuple(_facts(neuron, rule, findings)), head=head)


def _made(run: Run, neuron: Neuron, regime: Regime) -> AnchoredRule:
    """As the pipeline anchors, corrected together with the rules that the run has.

    Cost: one example-forward a record of D_b, less what is stored.
    """
    eligible = run.eligible(regime)
    made = anchored_rule(run, neuron, regime, eligible, run.flips([(neuron,)], eligible, regime)[0])
    return anchored_beside(made, run.rule_ps(), run.findings.alpha)


def _facts(neuron: Neuron, rule: AnchoredRule, findings: Findings) -> Iterator[Fact]:
    said = [
        f"Ablating {neuron} alone flips {rule.flips}/{rule.eligible} records of D_b",
        f"When it flips: {anchored_words(rule, findings.run)}",
    ]
    if predicts(rule) is not None:
        said.append("HQ-T" if findings.is_hq_t(rule) else "Below the floors of high quality")
    for sentence in said:
        yield fact(sentence, f"run:{findings.run}", unit=neuron)
