"""How the flips of a unit come about, a link a fact: what breaks, what it reads and writes, through what they pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from mecharule_ops.codec import encode
from mecharule_ops.facts.fact import Fact, fact
from mecharule_ops.findings.chain import Chain
from mecharule_ops.mechanism.holds import Above, HeldLayer, Hold, OneUnit, Together
from mecharule_ops.mechanism.links import FLIPPED, Activation, DirectShare, HeadReading, TokenPush, Written
from mecharule_ops.mechanism.pairs import Interaction, PairFlips
from mecharule_ops.numbers import k_of_n, of_n, percent, plural, signed
from mecharule_ops.plain_text import plain
from mecharule_ops.types import Basis, FlipCount

BREAKS, READS, WRITES, THROUGH, CARRIERS = "breaks", "reads", "writes", "through", "carriers"
"""The parts of a chain."""
SAID_BREAKS, SAID_HOW = "What breaks", "How"
"""What an answer calls them."""
NAMED_FROM = 0.1
"""Logits from which a push on a token is named: less cannot be told from what any unit writes."""
_SOURCES, _THROUGH = 3, 3
_OFTEN = 0.1
"""Share of the flips from which a change of one token into another is worth a clause."""
_OTHER_PLACES = 3
"""Places that are named beside the most frequent one."""
_ABOVE = {Above.EVERYTHING: "everything above it", Above.HEADS: "later heads", Above.MLPS: "later MLPs"}


def chain_parts(chain: Chain, run: str) -> dict[str, Fact]:
    """Each part of the explanation that a chain gives."""
    parts = {
        BREAKS: _breaks(chain, run),
        READS: _reads(chain, run),
        WRITES: writes_sentence(chain, run),
        THROUGH: _through(chain, run),
    }
    carriers = _carriers(chain)
    return parts if carriers is None else {**parts, CARRIERS: carriers}


def chain_facts(chain: Chain, run: str) -> Iterator[Fact]:
    """Every link with all its numbers: the parts above, the direct share, the pairs, what has nothing to say."""
    key, values = f"unit.{chain.unit}.chain", encode(chain)
    values |= {"through": values["mediation"]}
    for name, one in chain_parts(chain, run).items():
        yield replace(one, key=f"{key}.{name}", value=values.get(name, one.sentence))
    links = (
        ("direct", _direct(chain), f"run:{run}"),
        ("pairs", _pairs(chain.pairs), f"c:{chain.pairs_certificate}"),
        ("notes", chain.notes, f"run:{run}"),
    )
    for name, said, source in links:
        if said:
            told = "; ".join(said)
            yield fact(
                f"{told[:1].upper()}{told[1:]}",
                source,
                unit=chain.unit,
                part=name.capitalize(),
                key=f"{key}.{name}",
                value=values[name],
            )


def hold_words(hold: Hold) -> str:
    """`a21.h2`, `MLP of layer 20`, `later heads`, `these 2 together`."""
    match hold:
        case Above():
            return _ABOVE[hold]
        case HeldLayer(kind, layer):
            return f"{'heads' if kind is Basis.ATTN_HEAD else 'MLP'} of layer {layer}"
        case Together(parts):
            return f"these {len(parts)} together"
    return str(hold)


def quoted(token: str) -> str:
    """A token between quotes, with blanks and line ends made visible."""
    visible = token.replace("\n", "⏎")
    return f"'{plain(visible) if visible.strip() else '␣' * len(visible)}'"


def _breaks(chain: Chain, run: str) -> Fact:
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


def _reads(chain: Chain, run: str) -> Fact:
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


def _direct(chain: Chain) -> tuple[str, ...]:
    lines = []
    flipped = of_group(chain.direct, FLIPPED)
    if flipped is not None:
        share = flipped.share
        word = "no share of a drop that is not positive" if share is None else f"{percent(share)} of it"
        if share is not None and not 0 <= share <= 1:
            word = f"{share:.2f} times it"
        lines.append(
            f"on flipped records the lead falls by {flipped.drop:.2f} logits to first order, {word} "
            f"({signed(flipped.push)}) directly, the final norm's scale held"
        )
    left = remaining(chain)
    if left is not None and left.n:
        lines.append(f"with everything above held at its clean value {k_of_n(left)} of the flips remain")
    return tuple(lines)


def _through(chain: Chain, run: str) -> Fact:
    """Which kinds of later parts carry the flips, and what is left without any."""
    cited, whole = f"c:{chain.mediation_certificate}", chain.mediation.of(Above.EVERYTHING)
    if not chain.mediation.flips.flips:
        return fact("There is no flip whose way could be traced", cited, unit=chain.unit, part=SAID_HOW)
    if whole is None:
        said = "Nothing lies above it, so its whole effect is direct"
        return fact(said, f"run:{run}", unit=chain.unit, part=SAID_HOW)
    kinds = [(words, held.gone) for hold, words in _ABOVE.items() if (held := chain.mediation.of(hold))]
    kinds.sort(key=lambda kind: (kind[0] == _ABOVE[Above.EVERYTHING], -kind[1].count))
    (first, gone), *others = kinds
    through = f"It acts through {first}: with" if 2 * gone.count > gone.n and others else "With"
    rest = "".join(f"; with {words}, {other.count} of {other.n}" for words, other in others)
    said = f"{through} {first} held at unablated values {gone.count} of {gone.n} flips do not happen{rest}"
    return fact(said, cited, unit=chain.unit, part=SAID_HOW)


def _carriers(chain: Chain) -> Fact | None:
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


def _pairs(pairs: Sequence[PairFlips]) -> tuple[str, ...]:
    """A line for each pair that interacts, one for all that do not."""
    shown = [pair for pair in pairs if pair.interaction is not Interaction.NONE]
    quiet = [pair for pair in pairs if pair.interaction is Interaction.NONE]
    lines = [
        f"with {pair.other}: {pair.together}/{pair.n} flip together, {pair.either} under either alone; "
        f"{plural(pair.extra.count, 'new flip')}, {pair.lost.count} lost, p {pair.p_value:.2g}: they "
        f"{pair.interaction}{', or their effects add up' if pair.interaction is Interaction.BACKUP else ''}"
        for pair in shown
    ]
    if quiet:
        counts = " · ".join(
            f"{pair.other} {pair.together} ({pair.either}; {pair.independent:.0f})" for pair in quiet
        )
        lines.append(
            f"no interaction shown, flips of {quiet[0].n} together (under either alone; expected under either if "
            f"independent): {counts}"
        )
    return tuple(lines)


Part = TypeVar("Part", Written, HeadReading, Activation, DirectShare)


def of_group(parts: Sequence[Part], name: str) -> Part | None:
    """What was measured on a group of records; None where nothing was."""
    return next((part for part in parts if part.group == name), None)


def remaining(chain: Chain) -> FlipCount | None:
    """The flips that remain with everything above held, so come about directly; None where that was not asked."""
    whole = chain.mediation.of(Above.EVERYTHING)
    return None if whole is None else FlipCount(flips=whole.gone.n - whole.gone.count, n=whole.gone.n)
