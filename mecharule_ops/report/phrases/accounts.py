"""When and why a unit flips, in four sentences: what breaks, when, what it reads and writes, through which units.

Every number stands beside the certificate or run that it comes from. A link with nothing to say says so.
"""

from __future__ import annotations

from mecharule_ops.findings.accounts import Account, Law, LawScore
from mecharule_ops.findings.chain import Chain
from mecharule_ops.mechanism.links import FLIPPED, Written
from mecharule_ops.mechanism.mediation import ABOVE
from mecharule_ops.report.chain_lines import hold_words, quoted
from mecharule_ops.report.document import k_of_n, percent, signed
from mecharule_ops.report.phrases.rules import family_words
from mecharule_ops.rules.families import Family
from mecharule_ops.types import FlipCount, Neuron

_SOURCES = 3
_THROUGH = 3


def explanation(unit: Neuron, account: Account | None, chain: Chain | None, run: str) -> tuple[str, ...]:
    """The four sentences, without what was not measured; then one that says how to measure it."""
    sentences = []
    if chain is not None:
        sentences.append(breaks_sentence(chain, run))
    if account is not None:
        sentences += [when_sentence(account, run), law_sentence(account, run)]
    if chain is not None:
        sentences += [reads_sentence(chain, run), through_sentence(chain)]
    if account is None:
        sentences.append("When it flips was not asked in this run (its setting accounts_for).")
    if chain is None:
        sentences.append(f"How its flips come about is measured by `mecharule path {run} {unit}`.")
    return tuple(sentences)


def breaks_sentence(chain: Chain, run: str) -> str:
    """Which piece of the answer changes first, and how."""
    cited, flips = f"[c:{chain.mediation_certificate}]", chain.mediation.flips
    if not chain.breaks.places:
        return f"Ablating {chain.unit} flips {k_of_n(flips)} of the slices' examples {cited}: nothing breaks."
    place = chain.breaks.places[0]
    often = ""
    if chain.breaks.changes:
        change = chain.breaks.changes[0]
        often = f", most often {quoted(change.before)} → {quoted(change.after)} ({change.count}× at {change.place})"
    return (
        f"Ablating {chain.unit} flips {k_of_n(flips)} examples {cited}; the first token to change is "
        f"{place.place} in {k_of_n(place.count)} of the flips{often} [run:{run}]."
    )


def when_sentence(account: Account, run: str) -> str:
    """What the prompt alone tells, and the best family by what train validated; each with interval and ceiling."""
    best, asked, cited = account.best, account.family(Family.INPUT), f"[run:{run}]"
    said = f"When it flips: {family_words(asked)}"
    if best is not None and best.family is not Family.INPUT:
        said += f"; {family_words(best)}"
    return f"{said} {cited}."


def law_sentence(account: Account, run: str) -> str:
    """How well the law says which records flip, with nothing fitted."""
    cited = f"[run:{run}]"
    what = "its answers change" if account.becomes_right is not None else "it flips"
    scored = [_law_words(score) for score in map(account.law, Law) if score is not None and score.held_out]
    if not scored:
        return f"The law could not be scored: too few held-out records of one side {cited}."
    said = f"With nothing fitted, {what} where what it carries exceeds the lead: {'; '.join(scored)} {cited}"
    right = account.becomes_right
    if right is not None and right.held_out is not None:
        said += f"; that the new answer is right, MCC {right.held_out} {cited}"
    return f"{said}."


def _law_words(score: LawScore) -> str:
    return f"{score.law.value} MCC {score.held_out}"


def reads_sentence(chain: Chain, run: str) -> str:
    """What it reads and writes on flipped records."""
    cited = f"[run:{run}]"
    reads = next((head for head in chain.reads.heads if head.group == FLIPPED), None)
    active = next((one for one in chain.reads.activations if one.group == FLIPPED), None)
    if reads is not None:
        pieces = ", ".join(
            f"{source.name} ({percent(source.attention)})" for source in reads.sources[:_SOURCES]
        )
        read = f"On flipped records it attends most to {pieces}"
    elif active is not None:
        read = f"On flipped records its value is {active.mean:.3g} against {active.replacement:.3g} of its replacement"
    else:
        return f"What it reads and writes on flipped records has no value: no example flips {cited}."
    return f"{read} and {_written(chain)} {cited}."


def _written(chain: Chain) -> str:
    named = next((group for group in chain.writes.groups if group.group == FLIPPED), None)
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


def through_sentence(chain: Chain) -> str:
    """Which found units carry the flips, and what is left without any unit above."""
    cited, flips = f"[c:{chain.mediation_certificate}]", chain.mediation.flips.flips
    if not flips:
        return f"There is no flip whose way could be traced {cited}."
    whole = chain.mediation.of(ABOVE)
    single = [
        one
        for one in chain.mediation.through
        if "+" not in one.held and one.held[0] == "a" and "." in one.held and one.gone.count
    ]
    single.sort(key=lambda one: -one.gone.count)
    parts = []
    if whole is not None:
        left = FlipCount(flips=whole.gone.n - whole.gone.count, n=whole.gone.n)
        parts.append(f"held at clean values, everything above leaves {k_of_n(left)} of the flips {cited}")
    if single:
        named = ", ".join(f"{hold_words(one.held)} {one.gone.count}" for one in single[:_THROUGH])
        parts.append(f"held one at a time, found units prevent: {named} {cited}")
    elif chain.mediation.through:
        parts.append(f"no found unit above it prevents a flip when held alone {cited}")
    return f"Its way: {'; '.join(parts) or 'nothing lies above it, so its whole effect is direct'}."
