"""The rule that the paper anchors to a unit: the run's own, or one made now and kept with it (§4.5)."""

from __future__ import annotations

from mecharule_ops.codec import encode
from mecharule_ops.facts.fact import fact
from mecharule_ops.facts.rules import anchored_words, predicts
from mecharule_ops.findings.shown import anchored_beside
from mecharule_ops.numbers import of_n
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import check_direction
from mecharule_ops.store import keys
from mecharule_ops.types import FlipCount
from tools._accounts import Asked, rule_data
from tools.arguments import AnchorArguments
from tools.result import Priced, Tell, of_facts


def anchor(run: Run, given: AnchorArguments, tell: Tell) -> Priced:
    """How often the unit flips, when by that rule, whether it is of high quality; and what is told of it in its place.

    A rule made now is corrected together with those that the run has, learned on train records, scored on the others.
    Cost: an ablation of every record of the unit's direction; nothing where the rule is kept.
    """
    asked = Asked.of(run, given)
    unit, regime, findings, rule = asked.neuron, asked.regime, asked.findings, asked.rule
    check_direction(run.id, regime, hidden=run.config.suppress_only)
    eligible = run.eligible(regime)
    yield 0 if rule else len(eligible)
    if rule is None:
        from mecharule_ops.run.unit_flips import anchored_rule

        made = anchored_rule(run, unit, regime, eligible, run.flips([(unit,)], eligible, regime)[0])
        rule = anchored_beside(made, run.rule_ps(), findings.alpha)
        run.keep_of_unit(keys.anchored(unit, regime), rule)
    count = FlipCount(flips=rule.flips, n=rule.eligible)
    key, source = f"unit.{unit}.anchored", f"run:{run.id}"
    start = findings.words.of(bool(regime.value))
    often = f"Switching {unit} off flips {of_n(count)} of the records that start {start}"
    when = f"When it flips, by the rule that the paper anchors: {anchored_words(rule, run.id)}"
    facts = [
        fact(often, source, unit=unit, key=f"{key}.flips", value=encode(count)),
        fact(when, source, unit=unit, key=f"{key}.rule", value=rule_data(rule)),
    ]
    if predicts(rule) is not None:
        floors = f"MCC {findings.mcc_floor:g} and coverage {findings.coverage_floor:g} held out"
        reaches = findings.is_hq_t(rule)
        verb = "reaches" if reaches else "does not reach"
        said = f"It {verb} the paper's floors of a rule of high quality ({floors})"
        value = {"reaches": reaches, "mcc": findings.mcc_floor, "coverage": findings.coverage_floor}
        facts.append(fact(said, source, unit=unit, key=f"{key}.high_quality", value=value))
    if asked.account is not None:
        said = f"Elsewhere the rule over the prompt alone is told of {unit}: {asked.told_words}"
        learned = str(asked.told.learned) if asked.told and asked.told.learned else None
        facts.append(fact(said, source, unit=unit, key=f"unit.{unit}.rule", value=learned))
    return of_facts(facts)
