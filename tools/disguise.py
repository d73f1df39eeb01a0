"""Is a unit's rule the splitter in disguise? How often the two agree on records that chose neither."""

from __future__ import annotations

import numpy as np

from mecharule_ops.errors import ClaimNotSupported
from mecharule_ops.numbers import k_of_n, percent
from mecharule_ops.pipeline.opening import check_unit, findings_of, opened, outcome_for, regime_of
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.matthews import mcc
from mecharule_ops.saying.fact import fact
from mecharule_ops.types import Neuron, Share
from tools.arguments import Disguise
from tools.registry import Tell
from tools.result import ToolResult, stated


def disguise(given: Disguise, tell: Tell) -> ToolResult:
    """Agreement, its share by chance and the MCC of rule and splitter on the held-out records of D_b.

    No model is run. Raises `ClaimNotSupported` when the unit has no rule or the run no splitter.
    """
    neuron = Neuron.parse(given.neuron)
    with opened(given.run) as run:
        findings = findings_of(run)
        check_unit(run, neuron)
        outcome = outcome_for(findings, neuron, regime_of(given.regime))
        localized = findings.unit(neuron, outcome.regime)
        anchored = localized.rule if localized else None
        split = run.splitter.rule
        if anchored is None or anchored.rule is None:
            raise ClaimNotSupported(
                f"{neuron} has no rule in run {findings.run}, so none to compare with the splitter"
            )
        if split is None:
            raise ClaimNotSupported(
                f"run {findings.run} has no splitter rule: its slices were split without one"
            )
        places = run.eligible(outcome.regime)
        held_out = places[~run.train[places]]
        by_rule = Rule.parse(anchored.rule).fires(run.fires)[held_out]
        by_split = split.fires(run.fires)[held_out]
    agree, n = int((by_rule == by_split).sum()), len(held_out)
    rates = (float(by_rule.mean()), float(by_split.mean())) if n else (0.0, 0.0)
    chance = rates[0] * rates[1] + (1 - rates[0]) * (1 - rates[1])
    score = float(mcc(by_rule, by_split)) if n else float("nan")
    word = _word(agree, n, score, findings.mcc_floor)
    source, unit = f"run:{findings.run}", str(neuron)
    said = (
        f"{word}: on held-out records the rule of {unit} and the splitter agree on "
        f"{k_of_n(Share(count=agree, n=n))}",
        f"Two unrelated rules that fire as often would agree on {percent(chance)} of them by chance",
        "Measured as a score of one against the other, that is an MCC of "
        + ("–" if np.isnan(score) else f"{score:.2f}"),
        f"The rule of {unit} is {anchored.rule}; the splitter is {split}",
    )
    data = {
        "run": findings.run,
        "neuron": unit,
        "regime": outcome.regime.value,
        "rule": anchored.rule,
        "splitter": str(split),
        "agree": {"count": agree, "n": n},
        "by_chance": chance,
        "mcc": None if np.isnan(score) else score,
        "word": word,
    }
    return stated(data, [fact(sentence, source, unit=unit) for sentence in said])


def _word(agree: int, n: int, score: float, floor: float) -> str:
    """The answer in a word; the floor is the one that a rule must reach to predict flips."""
    if not n:
        return "It cannot be said"
    if agree == n:
        return "Yes"
    return "Largely" if score >= floor else "No"
