"""Which units are shown, in words: what a unit flips of the answers kept aside, and how many of a search are shown."""

import math

from mecharule_ops.codec import encode
from mecharule_ops.facts import control_facts, fact
from mecharule_ops.findings.evidence import Certainty, units_for
from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.numbers import bounds_apart, percent, plural
from mecharule_ops.types import Share

NOT_SHOWN = "not shown"
NOT_MEASURED = "not measured"


def marked(unit: Unit) -> str:
    """`● a20.h8`: a τ-agonist with the mark of how sure it is."""
    return f"{(unit.evidence.certainty if unit.evidence else Certainty.OPEN).glyph} {unit.neuron}"


def unit_status(unit: Unit) -> str:
    """`shown`, `suggestive`, `open` of a τ-agonist, `not measured` where it was not; else `not ruled out`."""
    if not unit.is_tau_agonist:
        return "not ruled out"
    return NOT_MEASURED if unit.evidence is None else unit.evidence.certainty.value


def _random_rate(findings: Findings, search: SearchOutcome, unit: Unit, lower: float) -> str:
    """`95 % of all heads flip less than 18 % of such answers (95 %, by 99 drawn at random)`; their most if too few.

    Empty where none was drawn; a unit that was drawn itself is named. It reads otherwise than the unit's `lower` bound.
    """
    held_out = search.held_out
    if held_out is None or not held_out.random:
        return ""
    rate = held_out.rate_of_random(findings.alpha)
    parts = {"noun": _noun(search), "drawn": len(held_out.random)}
    if rate is None:
        return fact.said("random.most", most=max(held_out.random), records=held_out.records, **parts)
    sure, itself = _sure(findings), ", itself among them" if unit.neuron in held_out.again else ""
    return fact.said("random.rate", sure=sure, rate=bounds_apart(lower, rate)[1], itself=itself, **parts)


def _sure(findings: Findings) -> str:
    return f"{100 * (1 - findings.alpha):g} %"


def above(unit: Unit) -> Share | None:
    """Random units of the one draw that flip fewer of the same answers; None where it or none was measured."""
    held_out, evidence = unit.search.held_out, unit.evidence
    if evidence is None or held_out is None or not held_out.random:
        return None
    fewer = sum(flips < evidence.flips.flips for flips in held_out.random)
    return Share(count=fewer, n=len(held_out.random) - (unit.neuron in held_out.again))


def rank_words(unit: Unit) -> str:
    """`above 254 of 255 random`, `above all 99 random`."""
    rank = above(unit)
    return NOT_MEASURED if rank is None else f"above {control_facts.fewer_words(rank.count, rank.n)} random"


def evidence_words(findings: Findings, unit: Unit) -> str:
    """Whether a unit is shown, with its counts beside those of random units; what measures it where that is not known.

    `a23.h4 flips 8 of 8 answers kept aside, at least 41 % (95 %, as one of 68 heads at τ), and 95 % of random …`.
    """
    search, evidence = unit.search, unit.evidence
    if evidence is None or search.held_out is None:
        name = "unit.not_measured" if unit.is_tau_agonist else "unit.below_tau"
        return fact.said(name, unit=unit.neuron, noun=_noun(search), how=unshowable(findings, search))
    flips, why = evidence.flips, unshowable(findings, search)
    beside = _random_rate(findings, search, unit, evidence.lower)
    rate = search.held_out.rate_of_random(findings.alpha)
    parts = {
        "unit": unit.neuron,
        "counts": f"flips {flips.flips:,} of {plural(flips.n, 'answer')} kept aside",
        "found": plural(len(search.held_out.found), _noun(search)),
        "lower": bounds_apart(evidence.lower, rate or 0.0)[0],
    }
    # A bound of all at once may lie below what its own test, Holm's next step, excludes.
    p = evidence.p if rate is not None and evidence.lower <= rate else None
    parts["p"] = "" if p is None else f"; that it flips more: {control_facts.p_words(p)} (exact, Holm)"
    if why:
        return fact.said("unit.counts_alone", beside=f"{beside}; " if beside else "", why=why, **parts)
    return fact.said(f"unit.{evidence.certainty.value}", beside=beside, sure=_sure(findings), **parts)


def resampled_words(unit: Unit) -> str:
    """How often it reaches τ on the same records drawn anew, and its rank there; empty below τ."""
    if (drawn := unit.resampled) is None:
        return ""
    to = "" if drawn.first == drawn.last else f" to {drawn.last:,}"
    return fact.said("unit.resampled", rank=f"{drawn.first:,}{to}", drawn=drawn)


def again_words(unit: Unit) -> str:
    """`shown in 3 of 3 more runs`; without any `reaches τ in 94 of 100 resamples`; empty likewise."""
    if unit.again is not None:
        return f"shown in {unit.again.count} of {plural(unit.again.n, 'more run')}"
    drawn = unit.resampled and unit.resampled.found
    return f"reaches τ in {drawn.count} of {drawn.n} resamples" if drawn else ""


def evidence_data(findings: Findings, unit: Unit) -> dict[str, object] | None:
    """The numbers of `evidence_words`; None where it was not ablated on answers kept aside."""
    held_out = unit.search.held_out
    if unit.evidence is None or held_out is None:
        return None
    return {
        **encode(unit.evidence),
        "found": len(held_out.found),
        "random_units": len(held_out.random),
        "random_rate_at_most": held_out.rate_of_random(findings.alpha),
        "random_units_needed": units_for(held_out.units, findings.alpha),
    }


def unshowable(findings: Findings, search: SearchOutcome) -> str:
    """Why nothing of a search can be shown, with the cure; empty where something can."""
    held_out, noun = search.held_out, _noun(search)
    why, drawn = unshowable_by(findings, search), 0 if held_out is None else len(held_out.random)
    least = 0 if held_out is None else units_for(held_out.units, findings.alpha)
    parts: dict[str, object] = {"least": least, "needed": math.ceil(1 / findings.alpha)}
    parts["drawn"] = plural(drawn, f"random {noun}")
    parts["how"] = measures(findings) if held_out else f"`mecharule resume {findings.run}` asks them"
    parts["every"] = plural(search.basis_units or 0, noun)
    return fact.said(f"unshowable.{why}", **parts) if why else ""


def unshowable_by(findings: Findings, search: SearchOutcome) -> str:
    """The name of that reason."""
    held_out = search.held_out
    if held_out is not None and (held_out.tells(findings.alpha) or not held_out.found):
        return ""
    if held_out is not None and not held_out.records:
        return "no_records"
    if search.basis_units and int(search.basis_units * findings.alpha) == 0:
        return "few_units"
    return "not_asked" if held_out is None else "few_drawn"


def measures(findings: Findings) -> str:
    """The command that ablates what a run did not on answers kept aside; what it did ablate is reused."""
    held_out = [search.held_out for search in findings.searches if search.held_out]
    needed = max([199, *(units_for(each.units, findings.alpha) for each in held_out)])
    return f"`mecharule run --from {findings.run} --set controls={needed}` measures it"


def reached_words(findings: Findings, search: SearchOutcome, units: int, more: str = "") -> str:
    """`68 heads reached 20 % on one half (2 or 16 answers)`: what the point estimate alone says."""
    halves = " or ".join(str(n) for n in sorted({search.associated_n, search.unrelated_n}) if n)
    of = f"{more}{_noun(search)}"
    return f"{plural(units, of)} reached {percent(findings.tau)} on one half ({halves} answers)"


def _noun(search: SearchOutcome) -> str:
    return search.intervention.basis.row.noun
