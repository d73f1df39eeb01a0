"""What is told of one unit: when it flips, what first order says of that, and how its flips come about, a link a fact.

How: what breaks, what it reads and writes, through what its flips pass. A link with nothing to say says so.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from mecharule_ops import numbers, plain_text
from mecharule_ops.codec import encode
from mecharule_ops.facts.fact import About, Fact, fact, said
from mecharule_ops.facts.rules import (
    drive_facts_words,
    rule_value,
    rule_words,
    short,
    when_counts,
    when_forms,
    when_told,
)
from mecharule_ops.findings.accounts import PREDICTION_HOLDS, Account, PredictionKind, PredictionScore
from mecharule_ops.findings.chain import Chain
from mecharule_ops.mechanism.holds import Above
from mecharule_ops.mechanism.links import FLIPPED, UNFLIPPED, Activation, DirectShare, HeadReading, Written
from mecharule_ops.mechanism.pairs import Interaction, PairFlips
from mecharule_ops.rules.families import UnitRule
from mecharule_ops.types import FlipCount, Neuron, Regime

WHEN, PREDICTION, REGISTERED = "when", "prediction", "registered"
"""The parts of an account."""
SAID_WHEN, SAID_SURE = "When", "How sure"
"""What an answer calls them."""
BREAKS, READS, WRITES, THROUGH, CARRIERS = "breaks", "reads", "writes", "through", "carriers"
"""The parts of a chain."""
SAID_BREAKS, SAID_HOW = "What breaks", "How"
"""What an answer calls them."""
NAMED_FROM = 0.1
"""Logits from which a push on a token is named: less cannot be told from what any unit writes."""
_NAMED = 3
"""Pieces, tokens, further places and units that are named of each kind."""
_OFTEN = 0.1
"""Share of the flips from which a change of one token into another is worth a clause."""
_ABOVE = {Above.EVERYTHING: "everything above it", Above.HEADS: "later heads", Above.MLPS: "later MLPs"}


def explanation(parts: Mapping[str, Fact]) -> tuple[Fact, ...]:
    """When, what breaks, how, how well first order predicts it, each once, its key its part; of `unit_parts`."""
    each_once: dict[str, Fact] = {}
    for name in (WHEN, BREAKS, READS, WRITES, THROUGH, CARRIERS, PREDICTION):
        if name in parts:
            each_once.setdefault(parts[name].sentence, replace(parts[name], key=name))
    return tuple(each_once.values())


def unit_parts(
    unit: Neuron, account: Account | None, chain: Chain | None, run: str, rule: UnitRule | None = None
) -> dict[str, Fact]:
    """Each part of an explanation; what was not measured says how to. `breaks` needs a chain; `rule` is anchored."""
    source, asks = f"run:{run}", {"unit": unit, "run": run}
    offers, told = account is None and (rule is None or not rule.shown), when_told(account, rule, unit, run)
    when = fact(told, source, unit=unit, part=SAID_WHEN, offers=offers, value=when_counts(account, rule))
    parts = dict.fromkeys((WHEN, PREDICTION), when)
    if account is not None:
        parts = {WHEN: when, PREDICTION: fact(prediction_words(account), source, unit=unit)}
        if registered := registered_words(account):
            parts[REGISTERED] = fact(registered, source, unit=unit, part=SAID_SURE)
    if chain is not None:
        return {**parts, **chain_parts(chain, run)}
    offer = fact(said("chain.none", **asks), source, unit=unit, part=SAID_HOW, offers=True)
    return parts | dict.fromkeys((READS, WRITES, THROUGH), offer)


def drive_facts(account: Account, run: str) -> Iterator[Fact]:
    """How often it flips, when, in every form that holds, what tells its drive, each family of rules."""
    of = About(f"unit.{account.neuron}.drive", f"run:{run}", account.neuron)
    counts = {"flips": account.flips, "n": account.records, "held_out": account.held_out}
    start = "right to wrong" if account.regime is Regime.BASELINE_POSITIVE else "wrong to right"
    flips = numbers.of_n(FlipCount(flips=account.flips, n=account.records))
    yield of.told("flips", "account.flips", counts, a=account, start=start, flips=flips)
    forms = tuple(when_forms(account).values())
    for place, form in enumerate(forms[:-1] or forms):
        yield of(f"{WHEN}.{place + 1}" if place else WHEN, form, form, part=SAID_WHEN)
    if account.drive is not None:
        yield of("terms", drive_facts_words(account.drive), encode(account.drive), part="Drive")
    for rule in account.families:
        name, text = rule.family.value, rule_words(rule, run)
        text = f"{text[:1].upper()}{text[1:]}"
        yield of(name.replace(" ", "_"), text, rule_value(rule), part=name.capitalize())


def comparison_facts(account: Account, run: str) -> Iterator[Fact]:
    """How far drop against lead tells the flips, what was registered of that, and what the first-order drop misses."""
    parts = unit_parts(account.neuron, account, None, run)
    of = About(f"unit.{account.neuron}.comparison", f"run:{run}", account.neuron)
    if REGISTERED in parts:
        yield of(REGISTERED, parts[REGISTERED].sentence, parts[REGISTERED].sentence, part=SAID_SURE)
    right = account.becomes_right
    scores = {
        "predictions": list(map(encode, account.predictions)),
        "becomes_right": None if right is None else encode(right),
    }
    yield of("predicted", parts[PREDICTION].sentence, scores, part="Predicted")
    if (error := account.drop_error) is not None:
        rank = "" if error.spearman is None else f", rank correlation {short(error.spearman)}"
        first = round(error.first_order, 2) + 0.0
        yield of.told("drop", "account.drop", encode(error), part="Drop", e=error, first=first, rank=rank)


def registered_words(account: Account) -> str:
    """What became of the prediction registered beforehand; empty where none was, or where it is mere arithmetic."""
    score = account.first_order
    if score is None or score.held_out is None or account.nothing_above:
        return ""
    what = "flip" if account.becomes_right is None else "change"
    return said("account.registered", what=what, s=score, needed=short(PREDICTION_HOLDS))


def prediction_words(account: Account) -> str:
    """How well first order says which records flip, with nothing fitted, and what it is set beside.

    Where nothing lies above the unit that is arithmetic, which is said first, and no verdict is given.
    """
    scored, right, error = account.first_order, account.becomes_right, account.drop_error
    what = "it flips" if right is None else "its answers change"
    if scored is None or scored.held_out is None:
        parts = [
            said("account.unscored" if scored is None else "account.unscored.counts", s=scored, what=what)
        ]
    else:
        name = "account.arithmetic" if account.nothing_above else "account.first_order"
        verdict = {"needed": f"{PREDICTION_HOLDS:.2f}", "verdict": scored.verdict}
        parts = [said(name, what=what, beside=_beside(scored, account.predictions), **verdict)]
        if right is not None and right.held_out is not None:
            parts.append(f"that the new answer is right, {_beside(right, account.beside_right)}")
    if error is not None and error.blind:
        parts.append(said("account.blind", first=round(error.first_order, 2) + 0.0, e=error))
    return "; ".join(parts)


def _beside(score: PredictionScore, others: Sequence[PredictionScore]) -> str:
    """`MCC .47 [.41, .53]; lead only .30 [.22, .38], drop only .41 [.33, .48]; it happens in 626/737 (85 %) of …`."""
    baselines = ", ".join(
        f"{other.kind.value} {'–' if other.held_out is None else other.held_out}"
        for other in others
        if other.kind in (PredictionKind.LEAD_ONLY, PredictionKind.DROP_ONLY)
    )
    share = numbers.k_of_n(FlipCount(flips=score.happened, n=score.records))
    happened = f"it happens in {share} of the account's held-out records"
    return "; ".join(filter(None, (f"MCC {score.held_out}", baselines, happened)))


def chain_parts(chain: Chain, run: str) -> dict[str, Fact]:
    """Each part of the explanation that a chain gives; no carriers where no unit found lies above it."""
    cited, source = f"c:{chain.mediation_certificate}", f"run:{run}"
    direct = chain.mediation.flips.flips and chain.mediation.of(Above.EVERYTHING) is None
    return {
        name: fact(text, *sources, unit=chain.unit, part=part)
        for name, (text, part, *sources) in {
            BREAKS: (_breaks(chain), SAID_BREAKS, cited, *([source] if chain.breaks.places else [])),
            READS: (_reads(chain), SAID_HOW, source),
            WRITES: (writes_words(chain), SAID_HOW, source),
            THROUGH: (_through(chain), SAID_HOW, source if direct else cited),
            CARRIERS: (_carriers(chain), SAID_HOW, cited),
        }.items()
        if text
    }


def chain_facts(chain: Chain, run: str) -> Iterator[Fact]:
    """Every link with all its numbers: the parts above, the direct share, the pairs, what has nothing to say."""
    of, values = About(f"unit.{chain.unit}.chain", f"run:{run}", chain.unit), encode(chain)
    values |= {"through": values["mediation"]}
    for name, one in chain_parts(chain, run).items():
        yield replace(one, key=f"{of.key}.{name}", value=values.get(name, one.sentence))
    for name, lines, source in (
        ("direct", _direct(chain), f"run:{run}"),
        ("pairs", _pairs(chain.pairs), f"c:{chain.pairs_certificate}"),
        ("notes", chain.notes, f"run:{run}"),
    ):
        if told := "; ".join(lines):
            yield of(name, f"{told[:1].upper()}{told[1:]}", values[name], source, part=name.capitalize())


def quoted(token: str) -> str:
    """A token between quotes, with blanks, line ends and what is no whole letter made visible."""
    visible = token.replace("\n", "⏎").replace("\ufffd", "⟨part of a letter⟩")
    return f"'{plain_text.plain(visible) if visible.strip() else '␣' * len(visible)}'"


def _breaks(chain: Chain) -> str:
    """Which piece of the answer changes first, and how."""
    flips = chain.mediation.flips
    if not chain.breaks.places:
        return said("chain.breaks.none", flips=numbers.of_n(flips))
    place, *others = chain.breaks.places
    rest = "".join(f", {other.place} in {other.count.flips:,}" for other in others[:_NAMED])
    if chain.breaks.changes and chain.breaks.changes[0].count >= _OFTEN * flips.flips:
        change = chain.breaks.changes[0]
        there = "" if change.place == place.place else f" in {change.place}"
        rest += f"; most often {quoted(change.before)} → {quoted(change.after)}{there} ({change.count}×)"
    return said("chain.breaks", where=place.place[:1].upper() + place.place[1:], count=place.count, rest=rest)


def _reads(chain: Chain) -> str:
    """What it reads on flipped records: the pieces that a head attends to, the value of a channel or neuron."""
    reads, active = of_group(chain.reads.heads, FLIPPED), of_group(chain.reads.activations, FLIPPED)
    if reads is not None:
        other = of_group(chain.reads.heads, UNFLIPPED)
        beside = {
            one.name: f" (elsewhere {numbers.percent(one.attention)})"
            for one in (other.sources if other else ())
        }
        pieces = (
            f"{one.name} {numbers.percent(one.attention)}{beside.get(one.name, '')}"
            for one in reads.sources[:_NAMED]
        )
        return said("chain.reads.head", pieces=", ".join(pieces))
    return said("chain.reads.none") if active is None else said("chain.reads.value", v=active)


def writes_words(chain: Chain) -> str:
    """Which answer tokens it raises and lowers where it flips; those that it hardly moves are left out."""
    flipped, groups = of_group(chain.writes.groups, FLIPPED), chain.writes.groups
    group = groups[0] if chain.writes.fixed and groups else flipped
    moved, told = [], []
    for verb, pushes in (("raises", group.answer.raised), ("lowers", group.answer.lowered)) if group else ():
        tokens = [quoted(push.token) for push in pushes[:_NAMED] if abs(push.push) >= NAMED_FROM]
        moved += [f"{verb} {', '.join(tokens)}"] if tokens else []
    if moved:
        where = "Above its replacement it" if chain.writes.fixed else "It"
        told.append(f"{where} {' and '.join(moved)} ({NAMED_FROM:g} logits or more)")
    if flipped is not None and abs(flipped.own_push) >= NAMED_FROM:
        told.append(f"the token that the model writes moves by {numbers.signed(flipped.own_push)} logits")
    return "; ".join(told) or said("chain.writes.none", least=NAMED_FROM)


def _direct(chain: Chain) -> list[str]:
    lines, flipped, left = [], of_group(chain.direct, FLIPPED), remaining(chain)
    if flipped is not None:
        share = flipped.share
        word = "no share of a drop that is not positive"
        if share is not None:
            word = f"{numbers.percent(share)} of it" if 0 <= share <= 1 else f"{share:.2f} times it"
        lines.append(said("chain.direct", d=flipped, share=word, push=numbers.signed(flipped.push)))
    if left is not None and left.n:
        lines.append(said("chain.direct.remain", left=numbers.k_of_n(left)))
    return lines


def _through(chain: Chain) -> str:
    """Which kinds of later parts carry the flips, and what is left without any."""
    if not chain.mediation.flips.flips:
        return said("chain.through.none")
    kinds = [(words, held.gone) for hold, words in _ABOVE.items() if (held := chain.mediation.of(hold))]
    kinds.sort(key=lambda kind: (kind[0] == _ABOVE[Above.EVERYTHING], -kind[1].count))
    if chain.mediation.of(Above.EVERYTHING) is None:
        return said("chain.through.nothing_above")
    (first, gone), *others = kinds
    acts = f"It acts through {first}: with" if 2 * gone.count > gone.n and others else "With"
    rest = "".join(f"; with {words}, {other.count} of {other.n}" for words, other in others)
    return said("chain.through", acts=acts, first=first, gone=gone, rest=rest)


def _carriers(chain: Chain) -> str:
    """Which single units found above it carry flips; empty where none lies above it."""
    held = [(one.hold, one.gone.count) for one in chain.mediation.through if isinstance(one.hold, Neuron)]
    if not held or not chain.mediation.flips.flips:
        return ""
    held.sort(key=lambda one: -one[1])
    named = ", ".join(f"{hold} {gone}" for hold, gone in held[:_NAMED] if gone)
    asked = numbers.plural(len(held), "unit")
    return said(f"chain.carriers{'' if named else '.none'}", held=asked, named=named)


def _pairs(pairs: Sequence[PairFlips]) -> list[str]:
    """A line for each pair that interacts, one for all that do not."""
    quiet = [pair for pair in pairs if pair.interaction is Interaction.NONE]
    lines = list[str]()
    for pair in (pair for pair in pairs if pair not in quiet):
        add = ", or their effects add up" if pair.interaction is Interaction.BACKUP else ""
        lines.append(said("chain.pair", p=pair, new=numbers.plural(pair.extra.count, "new flip"), add=add))
    counts = [f"{pair.other} {pair.together} ({pair.either}; {pair.independent:.0f})" for pair in quiet]
    return [*lines, *([said("chain.pairs.quiet", q=quiet[0], counts=" · ".join(counts))] if quiet else [])]


Part = TypeVar("Part", Written, HeadReading, Activation, DirectShare)


def of_group(parts: Sequence[Part], name: str) -> Part | None:
    """What was measured on a group of records; None where nothing was."""
    return next((part for part in parts if part.group == name), None)


def remaining(chain: Chain) -> FlipCount | None:
    """The flips that remain with everything above held, so come about directly; None where that was not asked."""
    whole = chain.mediation.of(Above.EVERYTHING)
    return None if whole is None else FlipCount(flips=whole.gone.n - whole.gone.count, n=whole.gone.n)
