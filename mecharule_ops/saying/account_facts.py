"""When and why a unit flips, in four sentences: what breaks, when, what it reads and writes, through which units.

Each is a fact with the certificate or run that it comes from. A link with nothing to say says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mecharule_ops.findings.accounts import PREDICTION_HOLDS, Account, PredictionKind, PredictionScore
from mecharule_ops.findings.chain import Chain
from mecharule_ops.mechanism.holds import Above, OneUnit
from mecharule_ops.mechanism.links import FLIPPED, Written
from mecharule_ops.numbers import k_of_n, percent, signed
from mecharule_ops.rules.families import Family
from mecharule_ops.saying.chain_lines import hold_words, of_group, quoted
from mecharule_ops.saying.fact import Fact, fact
from mecharule_ops.saying.rules import briefly, family_words, short, worded
from mecharule_ops.types import Basis, FlipCount, Neuron

_SOURCES = 3
_THROUGH = 3
_OFTEN = 0.1
"""Share of the flips from which a change of one token into another is worth a clause."""


def explanation(parts: Mapping[str, Fact]) -> tuple[Fact, ...]:
    """What breaks, when, what it reads and writes, through which units, in that order; of `explained`."""
    told = (BREAKS, WHEN, PREDICTION, READS, THROUGH)
    return tuple(dict.fromkeys(parts[name] for name in told if name in parts))


BREAKS, WHEN, PREDICTION, RESPONDS, READS, THROUGH = (
    "breaks",
    "when",
    "prediction",
    "responds",
    "reads",
    "through",
)
"""The parts of an explanation; what it reads and what it writes are one sentence."""


def explained(unit: Neuron, account: Account | None, chain: Chain | None, run: str) -> dict[str, Fact]:
    """Each part of an explanation; what was not measured says how to. `breaks` needs a chain."""
    if account is None:
        made = f"When {unit} flips was not asked in this run: `mecharule account {run} {unit}` asks now"
        said = dict.fromkeys((WHEN, PREDICTION, RESPONDS), fact(made, f"run:{run}", unit=unit))
    else:
        said = {
            WHEN: when_sentence(account, run),
            PREDICTION: prediction_sentence(account, run),
            RESPONDS: responds_sentence(account, run),
        }
    if chain is None:
        traced = f"How the flips of {unit} come about is measured by `mecharule path {run} {unit}`"
        return said | dict.fromkeys((READS, THROUGH), fact(traced, f"run:{run}", unit=unit))
    return {
        BREAKS: breaks_sentence(chain, run),
        **said,
        READS: reads_sentence(chain, run),
        THROUGH: through_sentence(chain, run),
    }


def responds_sentence(account: Account, run: str) -> Fact:
    """Where its drive is high."""
    unit, drive = account.neuron, account.drive
    if drive is None or drive.rule is None:
        why = "it was not asked" if drive is None else drive.status.value
        return fact(f"What {unit} responds to is not known: {why}", f"run:{run}", unit=unit)
    said = (
        f"{unit} responds where {worded(drive.rule, drive.words)}: "
        f"there its first-order drop is {drive.threshold:.3g} logits or more, MCC {drive.held_out}"
    )
    return fact(said, f"run:{run}", unit=unit)


def breaks_sentence(chain: Chain, run: str) -> Fact:
    """Which piece of the answer changes first, and how."""
    cited, flips = f"c:{chain.mediation_certificate}", chain.mediation.flips
    if not chain.breaks.places:
        said = f"Ablating {chain.unit} flips {k_of_n(flips)} of the slices' examples: nothing breaks"
        return fact(said, cited, unit=chain.unit)
    place = chain.breaks.places[0]
    often = ""
    if chain.breaks.changes and chain.breaks.changes[0].count >= _OFTEN * flips.flips:
        change = chain.breaks.changes[0]
        often = f", most often {quoted(change.before)} → {quoted(change.after)} ({change.count}× at {change.place})"
    said = (
        f"Ablating {chain.unit} flips {k_of_n(flips)} examples; the first token to change is {place.place} in "
        f"{k_of_n(place.count)} of the flips{often}"
    )
    return fact(said, cited, f"run:{run}", unit=chain.unit)


def when_sentence(account: Account, run: str) -> Fact:
    """What the prompt alone tells, and the best family by what train validated; each with interval and trees."""
    best, asked = account.best, account.family(Family.INPUT)
    said = f"When it flips: {family_words(asked)}"
    if best is not None and best.family is not Family.INPUT:
        said += f"; {family_words(best)}"
    return fact(said, f"run:{run}", unit=account.neuron)


def brief_account(account: Account) -> str:
    """The MCC of first order and the input rule with its own: where there is room for little; the end may be cut."""
    asked, scored = account.family(Family.INPUT), account.first_order
    predicted = (
        "" if scored is None or scored.held_out is None else f"first order MCC {short(scored.held_out.mcc)}; "
    )
    if asked.rule is None or asked.held_out is None:
        return f"{predicted}no input rule predicts"
    said = "input rule" if asked.prompt_only else "rule over the output"
    return f"{predicted}{said} MCC {short(asked.held_out.mcc)}: {briefly(asked.rule, asked.words)}"


def prediction_sentence(account: Account, run: str) -> Fact:
    """How well first order says which records flip, with nothing fitted, and what it is set beside."""
    scored = account.first_order
    what = "its answers change" if account.becomes_right is not None else "it flips"
    notes = "".join(f"; {note}" for note in caveats(account))
    if scored is None or scored.held_out is None:
        few = "Its first-order prediction could not be scored: too few held-out records of one side"
        return fact(f"{few}{notes}", f"run:{run}", unit=account.neuron)
    said = (
        f"First order, with nothing fitted, says that {what} where its drop exceeds the lead (the logit difference): "
        f"{beside_words(scored, account.predictions)}"
    )
    if not account.nothing_above:
        held = "so it is supported" if scored.held_out.mcc >= PREDICTION_HOLDS else "so it is refuted"
        said += f"; registered beforehand to reach {PREDICTION_HOLDS:.2f}, {held}"
    right = account.becomes_right
    if right is not None and right.held_out is not None:
        said += f"; that the new answer is right, {beside_words(right, account.beside_right)}"
    return fact(f"{said}{notes}", f"run:{run}", unit=account.neuron)


def beside_words(score: PredictionScore, others: Sequence[PredictionScore]) -> str:
    """`MCC .47 [.41, .53]; lead only .30 [.22, .38], drop only .41 [.33, .48]; base rate 626/737 (85 %)`."""
    baselines = ", ".join(
        f"{other.kind.value} {'–' if other.held_out is None else other.held_out}"
        for other in others
        if other.kind in (PredictionKind.LEAD_ONLY, PredictionKind.DROP_ONLY)
    )
    return "; ".join(filter(None, (f"MCC {score.held_out}", baselines, _base_rate(score))))


def _base_rate(score: PredictionScore) -> str:
    if score.happened is None:
        return ""
    return f"base rate {k_of_n(FlipCount(flips=score.happened, n=score.records))}"


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
    """What it reads and writes on flipped records."""
    reads = of_group(chain.reads.heads, FLIPPED)
    active = of_group(chain.reads.activations, FLIPPED)
    if reads is not None:
        pieces = ", ".join(
            f"{source.name} ({percent(source.attention)})" for source in reads.sources[:_SOURCES]
        )
        read = f"On flipped records it attends most to {pieces}"
    elif active is not None:
        read = f"On flipped records its value is {active.mean:.3g} against {active.replacement:.3g} of its replacement"
    else:
        none = "What it reads and writes on flipped records has no value: no example flips"
        return fact(none, f"run:{run}", unit=chain.unit)
    return fact(f"{read} and {_written(chain)}", f"run:{run}", unit=chain.unit)


def _written(chain: Chain) -> str:
    named = of_group(chain.writes.groups, FLIPPED)
    group: Written | None = chain.writes.groups[0] if chain.writes.fixed and chain.writes.groups else named
    if group is None:
        return "writes nothing there"
    raised = ", ".join(quoted(token.token) for token in group.answer.raised[:_SOURCES])
    lowered = ", ".join(quoted(token.token) for token in group.answer.lowered[:_SOURCES])
    where = " above its replacement" if chain.writes.fixed else ""
    own = (
        "" if named is None else f"; the token that the model writes moves by {signed(named.own_push)} logits"
    )
    return f"raises {raised} and lowers {lowered}{where}{own}"


def through_sentence(chain: Chain, run: str) -> Fact:
    """Which found units carry the flips, and what is left without any unit above."""
    sources = [f"c:{chain.mediation_certificate}"]
    flips = chain.mediation.flips.flips
    if not flips:
        return fact("There is no flip whose way could be traced", *sources, unit=chain.unit)
    whole = chain.mediation.of(Above.EVERYTHING)
    single = [
        one
        for one in chain.mediation.through
        if isinstance(one.hold, OneUnit) and one.hold.unit.basis is Basis.ATTN_HEAD and one.gone.count
    ]
    single.sort(key=lambda one: -one.gone.count)
    parts = []
    if whole is not None:
        gone = FlipCount(flips=whole.gone.count, n=whole.gone.n)
        parts.append(f"everything above, held at its clean values, prevents {k_of_n(gone)} of the flips")
    if single:
        named = ", ".join(f"{hold_words(one.hold)} {one.gone.count}" for one in single[:_THROUGH])
        parts.append(f"found units held one at a time prevent: {named}")
        sources.append(f"run:{run}")
    elif chain.mediation.through:
        parts.append("no found unit above it prevents a flip when held alone")
    if not parts:
        parts, sources = ["nothing lies above it, so its whole effect is direct"], [f"run:{run}"]
    said = "; ".join(parts)
    return fact(f"Its way: {said}", *sources, unit=chain.unit)
