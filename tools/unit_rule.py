"""A unit's rule: what else it covers, and whether it is the splitter in disguise."""

from __future__ import annotations

import numpy as np

from mecharule_ops.certificates.certificate import hidden
from mecharule_ops.codec import encode
from mecharule_ops.errors import ClaimNotSupported
from mecharule_ops.findings.records import Unit
from mecharule_ops.numbers import of_n, percent
from mecharule_ops.plain_text import last_line
from mecharule_ops.questions.firing import rule_fires
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.matthews import mcc
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import opened
from mecharule_ops.saying.unit_rules import told_rule
from mecharule_ops.subsets import some_places
from mecharule_ops.types import Share
from tools._accounts import Asked, finite
from tools.arguments import CoversArguments, DisguiseArguments
from tools.registry import Tell, ToolResult, stated

SHOWN = 8


def covers(given: CoversArguments, tell: Tell) -> ToolResult:
    """Counts of firing records in train and held-out, a few prompts, and units with an equal rule.

    Raises `ClaimNotSupported` when the unit has no rule that predicts.
    """
    with opened(given.run) as run:
        asked = Asked.of(run, given)
        neuron, identifier, told = asked.neuron, asked.findings.run, asked.told
        if told is None or told.learned is None or not told.shown:
            raise ClaimNotSupported(f"{neuron} in run {identifier}: {asked.told_words}, so it covers nothing")
        rule = told.learned
        eligible = run.eligible(asked.regime)
        fires = rule_fires(Rule.parse(rule), run.task, [run.records[place] for place in eligible])
        held_out = ~run.train[eligible]
        places = some_places(run.records, eligible[fires], SHOWN, of="shown", seed=run.config.seed)
        prompts = [_shown(run, int(place), given.show_text) for place in places]
    others = asked.findings.units_of(asked.search)
    same = [str(other.neuron) for other in others if other.neuron != neuron and _told_text(other) == rule]
    count = {
        "fires": int(fires.sum()),
        "eligible": len(eligible),
        "held_out_fires": int((fires & held_out).sum()),
        "held_out": int(np.count_nonzero(held_out)),
    }
    data = {**asked.data, "rule": rule, **count, "prompts": prompts, "same_rule": same}
    said = (
        f"The rule of {neuron} holds on {count['fires']} of {count['eligible']} records that start from the same "
        f"outcome, {count['held_out_fires']} of the {count['held_out']} held out: {rule}",
        f"Among them: {'; '.join(prompts) or 'none'}",
        f"The same rule is told of {', '.join(same)}" if same else "No other unit has the same rule",
    )
    return stated(data, asked.facts(said))


def _told_text(unit: Unit) -> str | None:
    told = told_rule(unit.account, unit.rule)
    return None if told is None else told.learned


def _shown(run: Run, place: int, show_text: bool) -> str:
    prompt = run.records[place].example.prompt
    return hidden(prompt) if run.task.concealed and not show_text else last_line(prompt)


def disguise(given: DisguiseArguments, tell: Tell) -> ToolResult:
    """Agreement, its share by chance and the MCC of rule and splitter on the held-out records of D_b.

    No model is run. Raises `ClaimNotSupported` when the unit has no rule or the run no splitter.
    """
    with opened(given.run) as run:
        asked, split = Asked.of(run, given), run.splitter.rule
        unit, identifier, told = asked.neuron, asked.findings.run, asked.told
        if told is None or told.learned is None:
            raise ClaimNotSupported(
                f"{unit} has no rule in run {identifier}, so none to compare with the splitter"
            )
        if split is None:
            raise ClaimNotSupported(
                f"run {identifier} has no splitter rule: its slices were split without one"
            )
        places = run.eligible(asked.regime)
        held_out = places[~run.train[places]]
        records = [run.records[place] for place in held_out]
        by_rule = rule_fires(Rule.parse(told.learned), run.task, records)
        by_split = split.fires(run.fires)[held_out]
    agree = Share(count=int((by_rule == by_split).sum()), n=len(held_out))
    rates = (float(by_rule.mean()), float(by_split.mean())) if agree.n else (0.0, 0.0)
    chance = rates[0] * rates[1] + (1 - rates[0]) * (1 - rates[1])
    score = finite(float(mcc(by_rule, by_split))) if agree.n else None
    untold = (
        ", of which too few are held out to score it"
        if told.unscored
        else ", which does not predict its flips"
    )
    word = _word(agree, score, asked.findings.mcc_floor)
    said = (
        f"{word}: on held-out records the rule of {unit} and the splitter rule agree on {of_n(agree)}; two unrelated "
        f"rules that hold as often would agree on {percent(chance)}",
        "Measured as a score of one against the other, that is an MCC of "
        + ("–" if score is None else f"{score:.2f}"),
        f"The rule of {unit} is {told.learned}{'' if told.shown else untold}; the splitter rule is {split}",
    )
    data = {
        **asked.data,
        "rule": told.learned,
        "splitter": str(split),
        "agree": encode(agree),
        "by_chance": chance,
        "mcc": score,
        "word": word,
    }
    return stated(data, asked.facts(said))


def _word(agree: Share, score: float | None, floor: float) -> str:
    """The answer in a word; the floor is the one that a rule must reach to predict flips."""
    if not agree.n:
        return "It cannot be said"
    if agree.count == agree.n:
        return "Yes"
    return "Largely" if score is not None and score >= floor else "No"
