"""When a unit flips, what first order says of it, and with its chain why: each is a fact with what it rests on.

A link with nothing to say says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mecharule_ops.codec import encode
from mecharule_ops.facts.chain_facts import BREAKS, CARRIERS, READS, SAID_HOW, THROUGH, WRITES, chain_parts
from mecharule_ops.facts.fact import Fact, FactValue, fact
from mecharule_ops.facts.rules import UNSCORED, briefly, rule_value, rule_words, short
from mecharule_ops.facts.unit_rules import when_told
from mecharule_ops.findings.accounts import PREDICTION_HOLDS, Account, PredictionKind, PredictionScore
from mecharule_ops.findings.chain import Chain
from mecharule_ops.numbers import k_of_n, of_n
from mecharule_ops.rules.families import Family, FamilyStatus
from mecharule_ops.types import FlipCount, Neuron, Regime

WHEN, PREDICTION, REGISTERED = "when", "prediction", "registered"
"""The parts of an account."""
SAID_WHEN, SAID_SURE = "When", "How sure"
"""What an answer calls them."""


def explanation(parts: Mapping[str, Fact]) -> tuple[Fact, ...]:
    """When, what breaks, how and how well first order predicts it, in that order; of `explained`."""
    told = (WHEN, BREAKS, READS, WRITES, THROUGH, CARRIERS, PREDICTION)
    return tuple(dict.fromkeys(parts[name] for name in told if name in parts))


def explained(unit: Neuron, account: Account | None, chain: Chain | None, run: str) -> dict[str, Fact]:
    """Each part of an explanation; what was not measured says how to. `breaks` needs a chain."""
    source = f"run:{run}"
    if account is None:
        made = f"This run made no account of {unit}: `mecharule explain {run} {unit} --parts drive` makes one now"
        parts = dict.fromkeys((WHEN, PREDICTION), fact(made, source, unit=unit, part=SAID_WHEN))
    else:
        parts = {WHEN: when_sentence(account, run), PREDICTION: prediction_sentence(account, run)}
        if (registered := registered_sentence(account, run)) is not None:
            parts[REGISTERED] = registered
    if chain is not None:
        return {**parts, **chain_parts(chain, run)}
    how = f"`mecharule explain {run} {unit} --parts chain` measures how its flips come about"
    offer = fact(how, source, unit=unit, part=SAID_HOW, offers=True)
    return parts | dict.fromkeys((READS, WRITES, THROUGH), offer)


def drive_facts(account: Account, run: str) -> Iterator[Fact]:
    """All of an account: how often it flips, when, what first order and each family of rules say, how far they go."""
    key, count = f"unit.{account.neuron}.drive", FlipCount(flips=account.flips, n=account.records)
    start = "right to wrong" if account.regime is Regime.BASELINE_POSITIVE else "wrong to right"

    def of(name: str, said: str, value: object, part: str = "") -> Fact:
        kept: FactValue = value  # type: ignore[assignment]
        return fact(said, f"run:{run}", unit=account.neuron, part=part, key=f"{key}.{name}", value=kept)

    yield of(
        "flips",
        f"Switching {account.neuron} off turns {of_n(count)} of the answers asked about from {start}; "
        f"{account.held_out:,} of them, held out, score what follows",
        {"flips": account.flips, "n": account.records, "held_out": account.held_out},
    )
    when, registered = when_sentence(account, run), registered_sentence(account, run)
    yield replace(when, key=f"{key}.{WHEN}", value=when.sentence)
    if registered is not None:
        yield replace(registered, key=f"{key}.{REGISTERED}", value=registered.sentence)
    becomes = None if account.becomes_right is None else encode(account.becomes_right)
    scores = {"predictions": list(map(encode, account.predictions)), "becomes_right": becomes}
    predicted = prediction_sentence(account, run).sentence
    yield of("predicted", predicted, scores, "Predicted")
    statuses = {rule.status for rule in account.families}
    if len(statuses) == 1 and not any(rule.shown or rule.free_form for rule in account.families):
        yield of("rules", f"None: {min(statuses).value}", list(map(rule_value, account.families)), "Rules")
    else:
        for rule in account.families:
            name, said = rule.family.value, rule_words(rule, run)
            yield of(
                name.replace(" ", "_"), f"{said[:1].upper()}{said[1:]}", rule_value(rule), name.capitalize()
            )
    if (error := account.drop_error) is not None:
        rank = "" if error.spearman is None else f", rank correlation {short(error.spearman)}"
        said = (
            f"The lead falls by {error.measured:.2f} logits (median of {error.records}), first order says "
            f"{round(error.first_order, 2) + 0.0:.2f}; the two differ by {error.error:.2f} (median){rank}"
        )
        yield of("drop", said, encode(error), "Drop")


def when_sentence(account: Account, run: str) -> Fact:
    """What the prompt alone tells: the one rule that is told of a unit, in words and counts."""
    said = when_told(account, None, run)
    return fact(said, f"run:{run}", unit=account.neuron, part=SAID_WHEN)


def registered_sentence(account: Account, run: str) -> Fact | None:
    """What became of the prediction registered beforehand; None where none was, or where it is mere arithmetic."""
    score = account.first_order
    if score is None or score.held_out is None or account.nothing_above:
        return None
    what = "flip" if account.becomes_right is None else "change"
    said = (
        f"The registered prediction that the gradient of the unablated run tells which answers {what} is "
        f"{score.verdict}: MCC {score.held_out} on the {score.records:,} held-out answers of its account, "
        f"{short(PREDICTION_HOLDS)} was registered"
    )
    return fact(said, f"run:{run}", unit=account.neuron, part=SAID_SURE)


def brief_account(account: Account) -> str:
    """The MCC of first order and the input rule with its own: where there is room for little."""
    asked, scored = account.family(Family.INPUT), account.first_order
    predicted = (
        "" if scored is None or scored.held_out is None else f"first order MCC {short(scored.held_out.mcc)}; "
    )
    if account.nothing_above:
        predicted = "first order is arithmetic here; "
    if not asked.shown or asked.held_out is None:
        return f"{predicted}{UNSCORED if asked.status is FamilyStatus.TOO_FEW_HELD_OUT else 'no input rule predicts'}"
    return f"{predicted}input rule MCC {short(asked.held_out.mcc)}: {briefly(asked)}"


def prediction_sentence(account: Account, run: str) -> Fact:
    """How well first order says which records flip, with nothing fitted, and what it is set beside.

    Where nothing lies above the unit that is arithmetic, which is said first, and no verdict is given.
    """
    scored, right = account.first_order, account.becomes_right
    what = "it flips" if right is None else "its answers change"
    if scored is None or scored.held_out is None:
        said = "Its first-order prediction could not be scored: too few held-out records of one side"
        if scored is not None:
            said += (
                f" (of {scored.records:,} it names {scored.predicted:,}, and {what} on {scored.happened:,}; "
                "`show --table rules` has the counts of each rule)"
            )
    else:
        says = (
            "Nothing in the model lies above the unit, so it is arithmetic and no prediction"
            if account.nothing_above
            else "First order, with nothing fitted, says"
        )
        said = (
            f"{says} that {what} where its drop exceeds the lead (the logit difference): "
            f"{_beside(scored, account.predictions)}"
        )
        if not account.nothing_above:
            said += f"; registered beforehand to reach {PREDICTION_HOLDS:.2f}, that is {scored.verdict}"
        if right is not None and right.held_out is not None:
            said += f"; that the new answer is right, {_beside(right, account.beside_right)}"
    error = account.drop_error
    if error is not None and error.blind:
        said += (
            f"; its first-order drop is {round(error.first_order, 2) + 0.0:.2f} where the ablation moves the lead by "
            f"{error.measured:.2f}: the gradient does not see this unit"
        )
    return fact(said, f"run:{run}", unit=account.neuron)


def _beside(score: PredictionScore, others: Sequence[PredictionScore]) -> str:
    """`MCC .47 [.41, .53]; lead only .30 [.22, .38], drop only .41 [.33, .48]; it happens in 626/737 (85 %) of …`."""
    baselines = ", ".join(
        f"{other.kind.value} {'–' if other.held_out is None else other.held_out}"
        for other in others
        if other.kind in (PredictionKind.LEAD_ONLY, PredictionKind.DROP_ONLY)
    )
    return "; ".join(filter(None, (f"MCC {score.held_out}", baselines, _base_rate(score))))


def _base_rate(score: PredictionScore) -> str:
    if score.happened is None:
        return ""
    return f"it happens in {k_of_n(FlipCount(flips=score.happened, n=score.records))} of the account's held-out records"
