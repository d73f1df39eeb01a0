"""The chain of a unit as lines for a person, one link each: all its numbers, below the sentences of `account_facts`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from mecharule_ops.findings.chain import Chain
from mecharule_ops.mechanism.holds import Above, HeldLayer, Hold, Together
from mecharule_ops.mechanism.links import (
    FLIPPED,
    Activation,
    DirectShare,
    HeadReading,
    SourceRead,
    TokenList,
    TokenPush,
    Written,
)
from mecharule_ops.mechanism.mediation import Bounded, Through
from mecharule_ops.mechanism.pairs import Interaction, PairFlips
from mecharule_ops.numbers import k_of_n, percent, plural, signed
from mecharule_ops.plain_text import plain
from mecharule_ops.types import Basis, FlipCount

Link = tuple[str, tuple[str, ...]]
"""A link's name and its lines."""
_TOKENS, _SOURCES, _CHANGES = 5, 6, 4
NAMED_FROM = 0.1
"""Logits from which a push on a token is named: less cannot be told from what any unit writes."""
_ABOVE = {Above.EVERYTHING: "everything above", Above.HEADS: "all later heads", Above.MLPS: "all later MLPs"}


def chain_links(chain: Chain) -> tuple[Link, ...]:
    """Every link in order; the ones without anything to say are sentences under `notes`."""
    links = (
        ("breaks", _breaks(chain)),
        ("writes", _writes(chain)),
        ("reads", _reads(chain)),
        ("direct", _direct(chain)),
        ("through", _through(chain)),
        ("pairs", _pairs(chain.pairs)),
        ("notes", chain.notes),
    )
    return tuple((name, lines) for name, lines in links if lines)


def hold_words(hold: Hold) -> str:
    """`a21.h2`, `MLP of layer 20`, `all later heads`, `these 2 together`."""
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


def bounded_words(part: Bounded) -> str:
    """`3/95 (3.2 %) [0.01, 0.09]`."""
    return f"{k_of_n(FlipCount(flips=part.count, n=part.n))} [{part.lower:.2f}, {part.upper:.2f}]"


def _breaks(chain: Chain) -> tuple[str, ...]:
    count = chain.mediation.flips
    places = " · ".join(f"{place.place} {k_of_n(place.count)}" for place in chain.breaks.places[:_CHANGES])
    first = f"{k_of_n(count)} of the examples flip"
    if not chain.breaks.places:
        return (first,)
    changes = " · ".join(
        f"{quoted(change.before)} → {quoted(change.after)} at {change.place} {change.count}×"
        for change in chain.breaks.changes[:_CHANGES]
    )
    return (f"{first}; the first token to change is {places}", f"most often {changes}")


def _writes(chain: Chain) -> tuple[str, ...]:
    groups = [chain.writes.groups[0]] if chain.writes.fixed else [*chain.writes.groups[1:]]
    lines = []
    for group in groups:
        where = "above its replacement it" if chain.writes.fixed else f"on {group.group} records it"
        lines.append(f"{where} {_list_words(group.answer)} (of {group.answer.size} answer tokens)")
        lines.append(f"of the whole vocabulary it {_list_words(group.vocabulary)}")
    shares = " · ".join(
        f"{k_of_n(group.own_first)} of positions of {group.group} records"
        for group in chain.writes.groups[1:]
    )
    own = of_group(chain.writes.groups, FLIPPED)
    push = "" if own is None else f", by {signed(own.own_push)} logits on flipped ones"
    return (*lines, f"it pushes the token that the model writes most of all answer tokens at {shares}{push}")


def _reads(chain: Chain) -> tuple[str, ...]:
    lines = [f"{_reading(head)}" for head in chain.reads.heads[1:]]
    for active in chain.reads.activations[1:]:
        lines.append(
            f"on {active.group} records its value is {active.mean:.3g} against {active.replacement:.3g} of the "
            f"replacement, above it at {k_of_n(active.above)} of positions, {active.deviation:.3g} away on average"
        )
    return tuple(lines)


def _reading(head: HeadReading) -> str:
    shown = head.sources[:_SOURCES]
    carried = sorted(head.sources, key=lambda source: -abs(source.toward))[:3]
    rest = sum(source.attention for source in head.sources[_SOURCES:])
    more = f" · others {percent(rest)}" if head.sources[_SOURCES:] else ""
    return (
        f"on {head.group} records it attends to {' · '.join(map(_source, shown))}{more}; of the lead, values from "
        f"{', '.join(f'{source.name} carry {signed(source.toward)}' for source in carried)} logits"
    )


def _source(source: SourceRead) -> str:
    return f"{source.name} {percent(source.attention)}"


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


def _through(chain: Chain) -> tuple[str, ...]:
    if not chain.mediation.flips.flips:
        return ()
    units, kinds, layers = _sorted_holds(chain.mediation.through)
    flips = plural(chain.mediation.flips.flips, "flip")
    lines = []
    if units:
        lines.append(f"of {flips}, held one at a time, so many do not happen: {_counts(units)}")
    if layers:
        lines.append(f"MLPs held one layer at a time: {_counts(layers)}")
    return (*(f"held {hold_words(one.hold)}: {_gone(one)}" for one in kinds), *lines)


def _counts(holds: Sequence[Through]) -> str:
    """Counts by hold, those of several units last and with bounds."""
    joint = [one for one in holds if isinstance(one.hold, Together)]
    single = " · ".join(f"{one.held} {one.gone.count}" for one in holds if one not in joint)
    return "; ".join([single, *(f"{hold_words(one.hold)} {bounded_words(one.gone)}" for one in joint)])


def _sorted_holds(through: Sequence[Through]) -> tuple[list[Through], list[Through], list[Through]]:
    """(found units, kinds of what lies above, single layers)."""
    kinds = [one for one in through if isinstance(one.hold, Above)]
    layers = [one for one in through if isinstance(one.hold, HeldLayer)]
    return [one for one in through if one not in kinds and one not in layers], kinds, layers


def _gone(one: Through) -> str:
    new = f", {k_of_n(one.new)} of the others flip instead" if one.new.flips else ""
    exact = "" if one.first_gone.count == one.gone.count else f", the first change in {one.first_gone.count}"
    return f"{bounded_words(one.gone)} of the flips do not happen{exact}{new}"


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


def _list_words(found: TokenList) -> str:
    raised, lowered = (_pushes(part[:_TOKENS]) for part in (found.raised, found.lowered))
    if not raised and not lowered:
        return f"moves no token by {NAMED_FROM:g} logits or more"
    return f"raises {raised or 'none'}; lowers {lowered or 'none'}"


def _pushes(pushes: Sequence[TokenPush]) -> str:
    """Those that are told from zero."""
    named = (push for push in pushes if abs(push.push) >= NAMED_FROM)
    return " · ".join(f"{quoted(push.token)} {signed(push.push)}" for push in named)


Part = TypeVar("Part", Written, HeadReading, Activation, DirectShare)


def of_group(parts: Sequence[Part], name: str) -> Part | None:
    """What was measured on a group of records; None where nothing was."""
    return next((part for part in parts if part.group == name), None)


def remaining(chain: Chain) -> FlipCount | None:
    """The flips that remain with everything above held, so come about directly; None where that was not asked."""
    whole = chain.mediation.of(Above.EVERYTHING)
    return None if whole is None else FlipCount(flips=whole.gone.n - whole.gone.count, n=whole.gone.n)
