"""When and why a unit flips: when, what breaks, what it reads and writes, through what, and how sure that is.

Each is a fact with the certificate or run that it comes from. A link with nothing to say says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mecharule_ops.facts.chain_lines import NAMED_FROM, hold_words, of_group, quoted
from mecharule_ops.facts.fact import Fact, fact
from mecharule_ops.facts.rules import UNSCORED, briefly, short
from mecharule_ops.facts.unit_rules import when_told
from mecharule_ops.findings.accounts import PREDICTION_HOLDS, Account, PredictionKind, PredictionScore
from mecharule_ops.findings.chain import Chain
from mecharule_ops.mechanism.holds import Above, OneUnit
from mecharule_ops.mechanism.links import FLIPPED, TokenPush, Written
from mecharule_ops.numbers import k_of_n, of_n, percent, signed
from mecharule_ops.rules.families import Family, FamilyStatus
from mecharule_ops.types import Basis, FlipCount, Neuron, Regime

_SOURCES = 3
_THROUGH = 3
_OFTEN = 0.1
"""Share of the flips from which a change of one token into another is worth a clause."""
_OTHER_PLACES = 3
"""Places that are named beside the most frequent one."""
_HELD = {Above.MLPS: "later MLPs", Above.HEADS: "later heads"}
BREAKS, WHEN, PREDICTION, REGISTERED, READS, WRITES, THROUGH, CARRIERS = (
    "breaks",
    "when",
    "prediction",
    "registered",
    "reads",
    "writes",
    "through",
    "carriers",
)
"""The parts of an explanation."""
SAID_WHEN, SAID_BREAKS, SAID_HOW, SAID_SURE = "When", "What breaks", "How", "How sure"
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
        said = dict.fromkeys((WHEN, PREDICTION), fact(made, source, unit=unit, part=SAID_WHEN))
    else:
        said = {
            WHEN: when_sentence(account, run),
            PREDICTION: prediction_sentence(account, run),
        }
        if (registered := registered_sentence(account, run)) is not None:
            said[REGISTERED] = registered
    if chain is None:
        traced = f"`mecharule explain {run} {unit} --parts chain` measures how its flips come about"
        return said | dict.fromkeys((READS, WRITES, THROUGH), fact(traced, source, unit=unit, part=SAID_HOW))
    parts = {
        BREAKS: breaks_sentence(chain, run),
        **said,
        READS: reads_sentence(chain, run),
        WRITES: writes_sentence(chain, run),
        THROUGH: through_sentence(chain, run),
    }
    carriers = carriers_sentence(chain)
    return parts if carriers is None else {**parts, CARRIERS: carriers}


def account_verdict(account: Account, run: str) -> tuple[Fact, ...]:
    """What the numbers of an account come to: how often, when, and whether first order told it beforehand."""
    count = FlipCount(flips=account.flips, n=account.records)
    start = "right to wrong" if account.regime is Regime.BASELINE_POSITIVE else "wrong to right"
    often = f"Switching {account.neuron} off turns {of_n(count)} of the answers asked about from {start}"
    said = [fact(often, f"run:{run}", unit=account.neuron), when_sentence(account, run)]
    registered = registered_sentence(account, run)
    return tuple(said if registered is None else [*said, registered])


def chain_verdict(chain: Chain, run: str) -> tuple[Fact, ...]:
    """What the links of a chain come to: how many flips, what breaks, how they come about."""
    often = f"Switching {chain.unit} off flips {of_n(chain.mediation.flips)} of these answers"
    parts = explained(chain.unit, None, chain, run)
    told = (BREAKS, READS, WRITES, THROUGH, CARRIERS)
    flips = fact(often, f"c:{chain.mediation_certificate}", unit=chain.unit)
    return (flips, *(parts[name] for name in told if name in parts))


def breaks_sentence(chain: Chain, run: str) -> Fact:
    """Which piece of the answer changes first, and how."""
    cited, flips = f"c:{chain.mediation_certificate}", chain.mediation.flips
    if not chain.breaks.places:
        said = f"Nothing: it flips {of_n(flips)} of these answers"
        return fact(said, cited, unit=chain.unit, part=SAID_BREAKS)
    place, *others = chain.breaks.places
    rest = "".join(f", {other.place} in {other.count.flips:,}" for other in others[:_OTHER_PLACES])
    often = ""
    if chain.breaks.changes and chain.breaks.changes[0].count >= _OFTEN * flips.flips:
        change = chain.breaks.changes[0]
        there = "" if change.place == place.place else f" in {change.place}"
        often = f"; most often {quoted(change.before)} → {quoted(change.after)}{there} ({change.count}×)"
    where = place.place[:1].upper() + place.place[1:]
    said = f"{where} first, in {place.count.flips:,} of the {place.count.n:,} flips{rest}{often}"
    return fact(said, cited, f"run:{run}", unit=chain.unit, part=SAID_BREAKS)


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
    if asked.rule is None or asked.held_out is None:
        return f"{predicted}{UNSCORED if asked.status is FamilyStatus.TOO_FEW_HELD_OUT else 'no input rule predicts'}"
    said = "input rule" if asked.prompt_only else "rule over the output"
    return f"{predicted}{said} MCC {short(asked.held_out.mcc)}: {briefly(asked.rule, asked.words)}"


def prediction_sentence(account: Account, run: str) -> Fact:
    """How well first order says which records flip, with nothing fitted, and what it is set beside."""
    scored = account.first_order
    what = "its answers change" if account.becomes_right is not None else "it flips"
    notes = "".join(f"; {note}" for note in caveats(account))
    if scored is None or scored.held_out is None:
        few = "Its first-order prediction could not be scored: too few held-out records of one side"
        if scored is not None and scored.happened is not None:
            few += (
                f" (of {scored.records:,} it names {scored.predicted:,}, and {what} on {scored.happened:,}; "
                "`show --table rules` has the counts of each rule)"
            )
        return fact(f"{few}{notes}", f"run:{run}", unit=account.neuron)
    said = (
        f"First order, with nothing fitted, says that {what} where its drop exceeds the lead (the logit difference): "
        f"{beside_words(scored, account.predictions)}"
    )
    if not account.nothing_above:
        said += f"; registered beforehand to reach {PREDICTION_HOLDS:.2f}, that is {scored.verdict}"
    right = account.becomes_right
    if right is not None and right.held_out is not None:
        said += f"; that the new answer is right, {beside_words(right, account.beside_right)}"
    return fact(f"{said}{notes}", f"run:{run}", unit=account.neuron)


def beside_words(score: PredictionScore, others: Sequence[PredictionScore]) -> str:
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


def caveats(account: Account) -> tuple[str, ...]:
    """Where a score of first order says nothing about first order."""
    error, notes = account.drop_error, []
    if account.nothing_above:
        notes.append("nothing in the model lies above the unit, so this is arithmetic and no prediction")
    if error is not None and error.blind:
        notes.append(
            f"its first-order drop is {round(error.first_order, 2) + 0.0:.2f} where the ablation moves the lead by "
            f"{error.measured:.2f}: the gradient does not see this unit"
        )
    return tuple(notes)


def reads_sentence(chain: Chain, run: str) -> Fact:
    """What it reads on flipped records: the pieces that a head attends to, the value of a channel or neuron."""
    reads = of_group(chain.reads.heads, FLIPPED)
    active = of_group(chain.reads.activations, FLIPPED)
    if reads is not None:
        pieces = ", ".join(
            f"{source.name} ({percent(source.attention)})" for source in reads.sources[:_SOURCES]
        )
        said = f"Where it flips it attends most to {pieces}"
    elif active is not None:
        said = f"Where it flips its value is {active.mean:.3g} against {active.replacement:.3g} of its replacement"
    else:
        said = "What it reads and writes where it flips has no value: no answer flips"
    return fact(said, f"run:{run}", unit=chain.unit, part=SAID_HOW)


def writes_sentence(chain: Chain, run: str) -> Fact:
    """Which answer tokens it raises and lowers where it flips; those that it hardly moves are left out."""
    said = _written(chain) or f"It moves no answer token by {NAMED_FROM:g} logits or more"
    return fact(said, f"run:{run}", unit=chain.unit, part=SAID_HOW)


def _written(chain: Chain) -> str:
    named = of_group(chain.writes.groups, FLIPPED)
    group: Written | None = chain.writes.groups[0] if chain.writes.fixed and chain.writes.groups else named
    if group is None:
        return ""
    moved = {"raises": group.answer.raised, "lowers": group.answer.lowered}
    parts = [f"{verb} {', '.join(tokens)}" for verb, pushes in moved.items() if (tokens := _named(pushes))]
    where = "Above its replacement it" if chain.writes.fixed else "It"
    own = named is not None and abs(named.own_push) >= NAMED_FROM
    said = [f"{where} {' and '.join(parts)} ({NAMED_FROM:g} logits or more)"] if parts else []
    said += (
        [f"the token that the model writes moves by {signed(named.own_push)} logits"] if named and own else []
    )
    return "; ".join(said)


def _named(pushes: Sequence[TokenPush]) -> list[str]:
    return [quoted(push.token) for push in pushes[:_SOURCES] if abs(push.push) >= NAMED_FROM]


def through_sentence(chain: Chain, run: str) -> Fact:
    """Which kinds of later parts carry the flips, and what is left without any."""
    cited, whole = f"c:{chain.mediation_certificate}", chain.mediation.of(Above.EVERYTHING)
    if not chain.mediation.flips.flips:
        return fact("There is no flip whose way could be traced", cited, unit=chain.unit, part=SAID_HOW)
    if whole is None:
        said = "Nothing lies above it, so its whole effect is direct"
        return fact(said, f"run:{run}", unit=chain.unit, part=SAID_HOW)
    kinds = [(words, held.gone) for hold, words in _HELD.items() if (held := chain.mediation.of(hold))]
    kinds = [*sorted(kinds, key=lambda kind: -kind[1].count), ("everything above it", whole.gone)]
    (first, gone), *others = kinds
    through = f"It acts through {first}: with" if 2 * gone.count > gone.n and others else "With"
    rest = "".join(f"; with {words}, {other.count} of {other.n}" for words, other in others)
    said = f"{through} {first} held at unablated values {gone.count} of {gone.n} flips do not happen{rest}"
    return fact(said, cited, unit=chain.unit, part=SAID_HOW)


def carriers_sentence(chain: Chain) -> Fact | None:
    """Which single heads found above it carry flips; None where none lies above it."""
    held = [(one.hold, one.gone.count) for one in chain.mediation.through if isinstance(one.hold, OneUnit)]
    if not held or not chain.mediation.flips.flips:
        return None
    heads = [(hold, gone) for hold, gone in held if hold.unit.basis is Basis.ATTN_HEAD and gone]
    heads.sort(key=lambda one: -one[1])
    named = ", ".join(f"{hold_words(hold)} {gone}" for hold, gone in heads[:_THROUGH])
    said = (
        f"Of the units found above it, held one at a time, these prevent most flips: {named}"
        if named
        else "No unit found above it prevents a flip when held alone"
    )
    return fact(said, f"c:{chain.mediation_certificate}", unit=chain.unit, part=SAID_HOW)
