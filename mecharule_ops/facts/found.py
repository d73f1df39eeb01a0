"""What a run found, in three sentences that its screen, its page and its end share; what to try where it found nothing.

A search without a τ-agonist says no more than the units tested alone allow. Advice follows from the counts, and each
sentence names its reason; none promises a result, since whether sparse agonists exist is a property of the model,
basis, baseline, phase and regime together.
"""

from collections.abc import Collection, Iterator

from mecharule_ops import bases, confidence, numbers
from mecharule_ops.facts import fact, glossary, rules, searches
from mecharule_ops.facts.flips import stronger_slice
from mecharule_ops.facts.shown_units import NOT_SHOWN, evidence_words, rank_words, reached_words, unshowable
from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.loading.model_names import BUNDLED
from mecharule_ops.types import Basis, Phase


def opening(findings: Findings) -> tuple[str, ...]:
    """What was asked of which model, and what every report of the bundled one and of the task must say."""
    success = f"{findings.words.success} on {numbers.of_n(findings.task_score)}"
    trained = [f"{glossary.TERMS[BUNDLED].means}."] if findings.model == BUNDLED else []
    asked = f"Run {findings.run}: {findings.task} on {findings.model}, which is {success}."
    cut = [fact.said("found.partial", f=findings)] if findings.cut_short else []
    return (asked, *trained, *cut, *findings.notes)


def in_short(findings: Findings, example: str = "") -> dict[str, str]:
    """What was found, with an answer before and after, when, and how sure; what has nothing to say is left out."""
    parts = {"Found": found_line(findings), "For example": example, "When": when_line(findings)}
    parts |= {"How sure": sure_line(findings), "As published": rules.published_line(findings)}
    return {part: text for part, text in parts.items() if text}


def top_line(findings: Findings) -> str:
    """What the strongest shown unit does to answers kept aside; what was found in all where none is shown."""
    unit = findings.strongest()
    return found_line(findings) if unit is None else unit_line(findings, unit)


def unit_line(findings: Findings, unit: Unit) -> str:
    """What a shown unit does to answers kept aside; of another why it is not shown."""
    of = findings.words.of
    if unit.evidence is None or not unit.is_shown:
        return f"{evidence_words(findings, unit)}."
    parts = {"counts": unit.evidence.flips, "before": of(bool(unit.search.regime.value))}
    return fact.said("found.headline", unit=unit.neuron, after=of(not unit.search.regime.value), **parts)


def found_line(findings: Findings) -> str:
    """What the shown units do, by kind of unit and direction, and how many reached τ beside them."""
    if all(outcome.nothing_searched for outcome in findings.searches):
        return fact.said("found.nothing_searched")
    told = [_does(findings, outcome) for outcome in findings.searches if outcome.tau_agonists]
    return " ".join(told) or fact.said("found.none", tau=numbers.percent(findings.tau))


def _does(findings: Findings, outcome: SearchOutcome) -> str:
    """`3 of 270 heads are shown: each, switched off alone, turns right answers wrong more often than 95 % of heads do`.

    Of the others that reached τ how many there are; where none is shown, a negative result.
    """
    noun, words, label = outcome.intervention.basis.row.noun, findings.words, bool(outcome.regime.value)
    many = len(findings.shown_of(outcome))
    others = len(outcome.tau_agonists) - many
    turns = f"turns {words.of(label)} answers {words.of(not label)}"
    reached = reached_words(findings, outcome, others, "more " if many else "")
    if not many:
        why = unshowable(findings, outcome) or NOT_SHOWN
        return fact.said("found.none_shown", noun=noun, turns=turns, reached=reached, why=why)
    parts = {
        "which": f"{many:,} of {numbers.plural(outcome.cost.candidates, noun)} {'is' if many == 1 else 'are'}",
        "does": f"switched off alone, it {turns}" if many == 1 else f"each, switched off alone, {turns}",
        "risk": " (a risk)" if searches.is_risk(findings, outcome) else "",
        "more": f"; {reached}, {NOT_SHOWN}" if others else "",
    }
    return fact.said("found.shown", noun=noun, **parts)


def when_line(findings: Findings) -> str:
    """When the strongest shown unit flips, and of how many others that is told; empty where none is shown."""
    if not (units := findings.shown()):
        return ""
    first, *others = units
    when = rules.when_told(first.account, first.rule, first.neuron, findings.run)
    known = [unit for unit in others if unit.account or unit.rule]
    told = sum(rules.when_in_short(one.account, one.rule) != rules.OPEN for one in known)
    asked = f" ({len(known):,} asked)" if len(known) < len(others) else ""
    parts = {"told": told or "none", "others": len(others), "is": "is" if told else "is not", "asked": asked}
    more = fact.said(f"when.others.{min(len(others), 2)}", **parts) if known else ""
    strongest = f"{first.neuron}, the strongest: {when[:1].lower()}{when[1:]}"
    return ". ".join(filter(None, [strongest, more, rules.shown_of_all(findings)])) + "."


def sure_line(findings: Findings) -> str:
    """The strongest on answers kept aside, its rank, what each search missed; where none is shown what more runs do."""
    if not (shown := findings.shown()):
        return numbers.sentence(_again_words(findings, shown)) if findings.again else ""
    named = zip(searches.search_titles(findings), findings.searches, strict=True)
    searched = [(name, outcome) for name, outcome in named if outcome.tau_agonists]
    missed = [
        f"{f'{name}: ' if len(searched) > 1 else ''}{searches.missed_words(findings, outcome)}"
        for name, outcome in searched
    ]
    first = evidence_words(findings, shown[0]), f"it stands {rank_words(shown[0])} units"
    again = [_again_words(findings, shown)] if findings.again else []
    return " ".join([f"{first[0]}.", *map(numbers.sentence, (first[1], *again, *missed))])


def _again_words(findings: Findings, shown: Collection[Unit]) -> str:
    """How many of the shown units more runs show too, each time or never, and how many units only these show."""
    ours = {(unit.search.regime.arrow, unit.neuron) for unit in shown}
    told = ((way, unit) for one in findings.again for way, units in one.shown.items() for unit in units)
    theirs = {each[1] for each in told if each not in ours}
    times = [unit.again.count for unit in shown if unit.again is not None]
    other = dict.fromkeys(f"other {name}" for one in findings.again for name in one.differs)
    each, many = times.count(len(findings.again)), "s" * (len(findings.again) > 1)
    counts = {"shown": len(shown), "each": each or "none", "never": times.count(0) or "none"}
    parts = {"are": "is" if each < 2 else "are", "runs": numbers.plural(len(findings.again), "more run")}
    parts["how"] = "; ".join([f"seed{many} {', '.join(str(one.seed) for one in findings.again)}", *other])
    parts["new"] = f"{numbers.plural(len(theirs), 'unit')} {'is' if len(theirs) == 1 else 'are'} shown"
    return fact.said(f"found.again{'' if shown else '.none'}", **counts, **parts)


def negative(findings: Findings, outcome: SearchOutcome) -> str:
    """What a search without a τ-agonist found, in one sentence that starts in lower case."""
    if outcome.nothing_searched:
        return f"nothing was searched: {outcome.slice_status}."
    parts = [f"{_scope(findings, outcome)} τ = {findings.tau:g} on the point estimate"]
    if count := len(outcome.agonists):
        parts[0] += f" ({numbers.plural(count, 'unit')} {'is' if count == 1 else 'are'} not ruled out)"
    if (unit := outcome.strongest) is not None:
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
    reach = sum(whole.estimate.reaches(findings.tau) for whole in every)
    whole = outcome.basis_units in (None, outcome.cost.candidates)
    parts = {
        "reach": f"{reach or 'none'} of {numbers.plural(len(every), 'layer')} {'reaches' if reach <= 1 else 'reach'}",
        "together": "as a whole" if whole else "with all their searched units",
        "flips": stronger_slice(strongest.estimate),
    }
    return fact.said("found.layers", layer=strongest.layer, **parts)


def _scope(findings: Findings, outcome: SearchOutcome) -> str:
    """The widest claim of absence that the units tested alone allow."""
    if missed := len(outcome.missed(findings.tau)):
        return f"the search found no unit that reaches τ, yet testing every unit alone finds {missed} of at least"
    total = outcome.cost.candidates
    if not outcome.exhaustive and outcome.untested:
        return "the search found no unit that reaches"
    if outcome.basis_units == total:
        return "no unit of this basis reaches"
    return f"none of the {numbers.plural(total, 'searched unit')} reaches"


def suggestions(
    findings: Findings, outcome: SearchOutcome, searched: Collection[Basis] = ()
) -> Iterator[str]:
    """What to change next, most telling first: where no τ-agonist was found, and where the audit met one.

    `searched` are the bases of the whole run: none of them is advised.
    """
    if outcome.audit is not None and outcome.audit.found:
        yield fact.said("advice.audit", met=numbers.plural(len(outcome.audit.found), "τ-agonist"))
    if outcome.tau_agonists:
        return
    needed = confidence.flipless_size(findings.slice_alpha, findings.tau)
    exist = min(outcome.associated_n, outcome.unrelated_n)
    if not max(outcome.associated_n, outcome.unrelated_n):
        yield fact.said("advice.direction", answer=findings.words.of(not outcome.regime.value), s=outcome)
    elif exist < needed:
        alone = ".alone" * outcome.nothing_searched
        yield fact.said(f"advice.records{alone}", needed=needed, exist=exist, f=findings)
    if not outcome.nothing_searched and not outcome.missed(findings.tau):
        yield from _about_place(findings, outcome, searched)


def _about_place(findings: Findings, outcome: SearchOutcome, searched: Collection[Basis]) -> Iterator[str]:
    """Whether the effect is somewhere in this basis at all, judged by whole layers."""
    whole = outcome.basis_units in (None, outcome.cost.candidates)
    layers = outcome.whole_layers if whole else ()
    reach = [whole.layer for whole in layers if whole.estimate.reaches(findings.tau)]
    if reach:
        seen = outcome.exhaustive or not outcome.untested or (outcome.audit and outcome.audit.counted)
        where = f"{len(reach)} of {len(layers)}"
        yield fact.said(f"advice.layer{'' if seen else '.pruned'}", where=where, s=outcome)
    elif layers:
        yield fact.said("advice.no_layer", s=outcome)
        if outcome.intervention.phase is Phase.DECODE:
            yield fact.said("advice.phase", f=findings)
    if left := [other.value for other in bases.ROWS if other not in {outcome.intervention.basis, *searched}]:
        yield fact.said("advice.basis", f=findings, bases=",".join(left))
