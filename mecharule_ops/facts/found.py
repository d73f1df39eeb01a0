"""What a run found, in three sentences that its screen, its page and its end share; what to try where it found nothing.

A search without a τ-agonist says no more than the units tested alone allow. Advice follows from the counts, and each
sentence names its reason; none promises a result, since whether sparse agonists exist is a property of the model,
basis, baseline, phase and regime together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from mecharule_ops.bases import ROWS
from mecharule_ops.confidence import flipless_size
from mecharule_ops.facts.fact import SENTENCES
from mecharule_ops.facts.flips import stronger_slice
from mecharule_ops.facts.searches import is_risk, missed_words, search_titles
from mecharule_ops.facts.shown_units import (
    NOT_SHOWN,
    evidence_words,
    rank_words,
    reached_words,
    unshowable,
)
from mecharule_ops.facts.unit_rules import told_rule, when_told
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.numbers import percent, plural, sentence
from mecharule_ops.rules.families import FamilyStatus
from mecharule_ops.types import Baseline, Basis, Phase, SearchStatus

_Advice = tuple[str, dict[str, object]]
"""The name of a sentence and its parts."""


def in_short(findings: Findings, example: str = "") -> dict[str, str]:
    """What was found, with an answer before and after, when, and how sure; what has nothing to say is left out."""
    said = {
        "Found": found_line(findings),
        "For example": example,
        "When": when_line(findings),
        "How sure": sure_line(findings),
    }
    return {part: text for part, text in said.items() if text}


def found_line(findings: Findings) -> str:
    """What the shown units do, by kind of unit and direction, and how many reached τ beside them."""
    if not findings.searches or all(outcome.nothing_searched for outcome in findings.searches):
        return "Nothing was searched, so nothing is claimed."
    searches = [outcome for outcome in findings.searches if outcome.tau_agonists]
    if not searches:
        return f"No unit that, switched off alone, flips {percent(findings.tau)} of the answers asked about."
    return " ".join(f"{_does(findings, outcome)}." for outcome in searches)


def _does(findings: Findings, outcome: SearchOutcome) -> str:
    """`3 of 270 heads are shown: each, switched off alone, turns right answers wrong more often than random heads do`.

    Of the others that reached τ how many there are; where none is shown, a negative result.
    """
    noun, words, label = outcome.intervention.basis.row.noun, findings.words, bool(outcome.regime.value)
    turns = f"turns {words.of(label)} answers {words.of(not label)}"
    many = len(findings.shown_of(outcome))
    others = len(outcome.tau_agonists) - many
    if not many:
        why = unshowable(findings, outcome) or "which chance does as well"
        return f"No {noun} is shown that {turns}: {reached_words(findings, outcome, others)}, {why}"
    does = f"switched off alone, it {turns}" if many == 1 else f"each, switched off alone, {turns}"
    risk = " (a risk)" if is_risk(findings, outcome) else ""
    more = f"; {reached_words(findings, outcome, others, 'more ')}, {NOT_SHOWN}" if others else ""
    return (
        f"{many:,} of {plural(outcome.cost.candidates, noun)} {'is' if many == 1 else 'are'} shown: {does}{risk} more "
        f"often than random {noun}s do{more}"
    )


def when_line(findings: Findings) -> str:
    """The rule of the strongest shown unit, and how many others have one; empty where none is shown."""
    units = findings.shown()
    if not units:
        return ""
    first, *others = units
    when = when_told(first.account, first.rule, findings.run)
    said = f"{first.neuron}, the strongest: {when[:1].lower()}{when[1:]}."
    sought = [rule for unit in others if (rule := told_rule(unit.account, unit.rule)) is not None]
    became = Counter(rule.status for rule in sought)
    shown, unscored = became[FamilyStatus.SHOWN], became[FamilyStatus.TOO_FEW_HELD_OUT]
    which = "the other" if len(others) == 1 else f"the other {len(others):,}"
    if sought and len(sought) < len(others):
        which = f"{plural(len(sought), 'other')} of which a rule was sought"
    if shown:
        some = (
            "The other has" if len(others) == 1 else f"{shown:,} of {which} {'has' if shown == 1 else 'have'}"
        )
        said += f" {some} a rule."
    elif sought and unscored == len(sought):
        said += f" Too few held-out answers to score a rule of {which}."
    elif unscored:
        said += f" No rule is shown of {which}; of {unscored:,} of them too few answers are held out to score one."
    elif sought:
        said += f" No rule predicts the flips of {which}."
    return said


def sure_line(findings: Findings) -> str:
    """The strongest on answers kept aside, its rank, what each search missed; empty where no unit is shown."""
    shown = findings.shown()
    if not shown:
        return ""
    said = [f"it stands {rank_words(shown[0])} units"]
    searched = [
        (name, outcome)
        for name, outcome in zip(search_titles(findings), findings.searches, strict=True)
        if outcome.tau_agonists
    ]
    for name, outcome in searched:
        which = f"{name}: " if len(searched) > 1 else ""
        said.append(f"{which}{missed_words(findings, outcome)}")
    return " ".join([f"{evidence_words(findings, shown[0])}.", *map(sentence, said)])


def negative(findings: Findings, outcome: SearchOutcome) -> str:
    """What a search without a τ-agonist found, in one sentence that starts in lower case."""
    if outcome.nothing_searched:
        return f"nothing was searched: {outcome.slice_status}."
    parts = [f"{_scope(findings, outcome)} τ = {findings.tau:g} on the point estimate"]
    if outcome.agonists:
        count = len(outcome.agonists)
        parts[0] += f" ({plural(count, 'unit')} {'is' if count == 1 else 'are'} not ruled out)"
    if (unit := outcome.strongest_seen) is not None:
        flips = stronger_slice(unit.estimate, findings.tau, outcome.bounded)
        parts.append(f"none seen alone flips more than {flips}")
    else:
        parts.append("no unit was tested alone")
    if outcome.whole_layers:
        parts.append(whole_layer_words(findings, outcome))
    return "; ".join(parts) + "."


def whole_layer_words(findings: Findings, outcome: SearchOutcome) -> str:
    """How many layers reach τ when all their searched units are ablated together, and the strongest one."""
    strongest, every = outcome.strongest_layer, outcome.whole_layers
    assert strongest is not None, "no whole layer was ablated"
    reach = sum(findings.reaches(whole.estimate) for whole in every)
    flips = f"flips {stronger_slice(strongest.estimate)}"
    together = _together(outcome)
    if len(every) == 1:
        return f"layer {strongest.layer} {together} {flips}"
    return (
        f"ablated {together}, {reach or 'none'} of {len(every)} layers "
        f"{'reaches' if reach <= 1 else 'reach'} τ, and the strongest, layer {strongest.layer}, {flips}"
    )


def _together(outcome: SearchOutcome) -> str:
    """`as a whole` where every unit of the basis was searched, otherwise the searched units alone."""
    if outcome.basis_units in (None, outcome.cost.candidates):
        return "as a whole"
    return (
        "with all its searched units" if len(outcome.whole_layers) == 1 else "with all their searched units"
    )


def _scope(findings: Findings, outcome: SearchOutcome) -> str:
    """The widest claim of absence that the units tested alone allow."""
    if missed := len(outcome.missed(findings.tau)):
        return f"the search found no unit that reaches τ, yet testing every unit alone finds {missed} of at least"
    total = outcome.cost.candidates
    if outcome.exhaustive is None and outcome.singletons_tested < total:
        return "the search found no unit that reaches"
    if outcome.basis_units == total:
        return "no unit of this basis reaches"
    return f"none of the {plural(total, 'searched unit')} reaches"


def suggestions(
    findings: Findings, outcome: SearchOutcome, searched: Collection[Basis] = ()
) -> tuple[str, ...]:
    """What to change next, most telling first: where no τ-agonist was found, and where the audit met one.

    `searched` are the bases of the whole run: none of them is advised.
    """
    return tuple(SENTENCES[name].format(**parts) for name, parts in _advice(findings, outcome, searched))


def _advice(findings: Findings, outcome: SearchOutcome, searched: Collection[Basis]) -> Iterator[_Advice]:
    if outcome.audit is not None and outcome.audit.found:
        how = "left" if SearchStatus.LEFT.value in outcome.status else "pruned"
        yield f"advice.audit.{how}", {"met": plural(len(outcome.audit.found), "τ-agonist")}
    if outcome.tau_agonists:
        return
    needed = flipless_size(findings.slice_alpha, findings.tau)
    exist = min(outcome.associated_n, outcome.unrelated_n)
    if not max(outcome.associated_n, outcome.unrelated_n):
        yield "advice.direction", {"answer": findings.words.of(not outcome.regime.value), "s": outcome}
    elif exist < needed:
        name = "advice.records.alone" if outcome.nothing_searched else "advice.records"
        yield name, {"needed": needed, "exist": exist, "f": findings}
    if missed := len(outcome.missed(findings.tau)):
        yield "advice.exhaustive", {"missed": plural(missed, "τ-agonist")}
    elif not outcome.nothing_searched:
        yield from _about_place(findings, outcome, searched)
        baseline = outcome.intervention.baseline
        known = baseline in (Baseline.ZERO, Baseline.SLOT0)
        yield f"advice.baseline.{baseline if known else 'other'}", {}


def _about_place(
    findings: Findings, outcome: SearchOutcome, searched: Collection[Basis]
) -> Iterator[_Advice]:
    """Whether the effect is somewhere in this basis at all, judged by whole layers."""
    basis, layers = outcome.intervention.basis, outcome.whole_layers
    reach = [whole.layer for whole in layers if findings.reaches(whole.estimate)]
    if reach:
        one = f"Layer {reach[0]} as a whole reaches"
        where = one if len(reach) == 1 else f"{len(reach)} of {len(layers)} layers as a whole reach"
        seen = outcome.exhaustive is not None or outcome.singletons_tested >= outcome.cost.candidates
        pruned = "" if seen else ", or one unit has it that was pruned with its group"
        yield "advice.layer", {"where": where, "basis": basis, "pruned": pruned}
    elif layers:
        yield "advice.no_layer", {}
    if left := [f"{other}{row.advice}" for other, row in ROWS.items() if other not in {basis, *searched}]:
        yield "advice.basis", {"bases": " or ".join(left)}
    if layers and not reach and outcome.intervention.phase is not Phase.WHOLE:
        yield "advice.phase", {"phase": outcome.intervention.phase}
