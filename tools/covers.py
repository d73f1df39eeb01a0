"""What else a unit's rule covers: the records on which it fires, and the units that share it."""

from __future__ import annotations

import numpy as np

from mecharule_ops.certificates.concealment import hidden
from mecharule_ops.errors import ClaimNotSupported
from mecharule_ops.pipeline.opening import check_unit, findings_of, opened, outcome_for, regime_of
from mecharule_ops.pipeline.run import Run
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.saying.fact import fact
from mecharule_ops.saying.rules import anchored_words, predicts
from mecharule_ops.subsets import some_places
from mecharule_ops.types import Neuron
from tools._accounts import last_line
from tools.arguments import Covers
from tools.registry import Tell
from tools.result import ToolResult, stated

SHOWN = 8


def covers(given: Covers, tell: Tell) -> ToolResult:
    """Counts of firing records in train and held-out, a few prompts, and units with an equal rule.

    Raises `ClaimNotSupported` when the unit has no rule that predicts.
    """
    neuron = Neuron.parse(given.neuron)
    with opened(given.run) as run:
        findings = findings_of(run)
        check_unit(run, neuron)
        outcome = outcome_for(findings, neuron, regime_of(given.regime))
        localized = findings.unit(neuron, outcome.regime)
        anchored = localized.rule if localized else None
        if anchored is None or anchored.rule is None or predicts(anchored) is None:
            raise ClaimNotSupported(
                f"{neuron} in run {findings.run}: {anchored_words(anchored, findings.run)}, so it covers nothing"
            )
        eligible = run.eligible(outcome.regime)
        fires = Rule.parse(anchored.rule).fires(run.fires)[eligible]
        held_out = ~run.train[eligible]
        prompts = _prompts(
            run,
            some_places(run.records, eligible[fires], SHOWN, of="shown", seed=run.config.seed),
            given.show_text,
        )
    same = [
        str(other.neuron)
        for other in outcome.anchored
        if other.rule == anchored.rule and other.neuron != neuron
    ]
    count = {
        "fires": int(fires.sum()),
        "eligible": len(eligible),
        "held_out_fires": int((fires & held_out).sum()),
        "held_out": int(np.count_nonzero(held_out)),
    }
    data = {
        "run": findings.run,
        "neuron": str(neuron),
        "regime": outcome.regime.value,
        "rule": anchored.rule,
        **count,
        "prompts": prompts,
        "same_rule": same,
    }
    source = f"run:{findings.run}"
    said = (
        f"The rule of {neuron}, {anchored.rule}, fires on {count['fires']}/{count['eligible']} records that start from "
        f"the same outcome, {count['held_out_fires']}/{count['held_out']} of those held out",
        f"Among them: {'; '.join(prompts) or 'none'}",
        f"The same rule is anchored to {', '.join(same)}" if same else "No other unit has the same rule",
    )
    return stated(data, [fact(sentence, source, unit=neuron) for sentence in said])


def _prompts(run: Run, places: np.ndarray, show_text: bool) -> list[str]:
    prompts = [run.records[int(place)].example.prompt for place in places]
    concealed = run.task.concealed and not show_text
    return [hidden(prompt) if concealed else last_line(prompt) for prompt in prompts]
