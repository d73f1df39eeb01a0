"""Which units are shown, in words: what a unit flips of the answers kept aside, and how many of a search are shown."""

from __future__ import annotations

from mecharule_ops.codec import encode
from mecharule_ops.facts.control_facts import fewer_words
from mecharule_ops.findings.evidence import Certainty, units_for
from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.numbers import percent, percent_at_least, percent_at_most, plural
from mecharule_ops.types import Neuron, Share

NOT_SHOWN = "not shown"
NOT_MEASURED = "not measured"


def marked(unit: Unit) -> str:
    """`● a20.h8`: a τ-agonist with the mark of how sure it is."""
    certainty = unit.evidence.certainty if unit.evidence else Certainty.OPEN
    return f"{certainty.glyph} {unit.neuron}"


def unit_status(unit: Unit) -> str:
    """`shown`, `suggestive`, `open` of a τ-agonist, `not measured` where it was not; else `not ruled out`."""
    if not unit.is_tau_agonist:
        return "not ruled out"
    return NOT_MEASURED if unit.evidence is None else unit.evidence.certainty.value


def random_rate_words(findings: Findings, search: SearchOutcome, unit: Neuron) -> str:
    """`95 % of all heads flip less than 18 % of such answers (95 %, by 99 drawn at random)`; their most if too few.

    Empty where none was drawn; a unit that was drawn itself is named.
    """
    held_out = search.held_out
    if held_out is None or not held_out.random:
        return ""
    rate, noun, drawn = held_out.rate_of_random(findings.alpha), _noun(search), len(held_out.random)
    if rate is None:
        flip = f"the random {noun} flips" if drawn == 1 else f"each of {drawn} random {noun}s flips"
        return f"{flip} {max(held_out.random):,} of {held_out.records:,} or fewer"
    sure, by = f"{100 * (1 - findings.alpha):g} %", f"by {drawn:,} drawn at random"
    by += ", itself among them" if unit in held_out.again else ""
    return f"{sure} of all {noun}s flip less than {percent_at_most(rate)} of such answers ({sure}, {by})"


def rank_words(unit: Unit) -> str:
    """`above 254 of 255 random`, `above all 99 random`: units of the one draw that flip fewer of the same answers."""
    held_out, evidence = unit.search.held_out, unit.evidence
    if held_out is None or evidence is None:
        return NOT_MEASURED
    as_many = sum(flips >= evidence.flips.flips for flips in held_out.random)
    itself = unit.neuron in held_out.again
    return f"above {fewer_words(Share(count=as_many - itself, n=len(held_out.random) - itself))} random"


def evidence_words(findings: Findings, unit: Unit) -> str:
    """Whether a unit is shown, with its counts beside those of random units; what measures it where that is not known.

    `a23.h4 flips 8 of 8 answers kept aside, at least 41 % (95 %, as one of 68 heads found), and 95 % of random …`.
    """
    search, evidence = unit.search, unit.evidence
    if evidence is None or search.held_out is None:
        if not unit.is_tau_agonist:
            return f"Below τ, {unit.neuron} was not compared with random units"
        return f"Whether {unit.neuron} flips more than random {_noun(search)}s was {NOT_MEASURED}: {measures(findings)}"
    flips = evidence.flips
    counts = f"flips {flips.flips:,} of {plural(flips.n, 'answer')} kept aside"
    beside, found = (
        random_rate_words(findings, search, unit.neuron),
        plural(len(search.held_out.found), _noun(search)),
    )
    if why := unshowable(findings, search):
        return f"{unit.neuron} {counts}; {f'{beside}; ' if beside else ''}{why}"
    if unit.is_shown:
        return (
            f"{unit.neuron} {counts}, at least {percent_at_least(evidence.lower)} "
            f"({100 * (1 - findings.alpha):g} %, as one of {found} found), and {beside}"
        )
    if evidence.certainty is Certainty.SUGGESTIVE:
        luck = f"as one of {found} found it may do so by chance"
        return f"{unit.neuron} is suggestive, not shown: it {counts}, and {beside}; {luck}"
    return f"{unit.neuron} is open, not shown: it {counts}, and {beside}"


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
    held_out = search.held_out
    if held_out is None:
        return f"nothing is shown, since answers kept aside were not asked: {measures(findings)}"
    if held_out.tells(findings.alpha) or not held_out.found:
        return ""
    if not held_out.records:
        return "nothing can be shown, since no answer was kept aside: bring more rows"
    noun = _noun(search)
    if search.basis_units is not None and search.basis_units <= 19:
        every = plural(search.basis_units, noun)
        return f"with {every} in all nothing can be shown, which takes 20: the counts stand alone"
    drawn, least = plural(len(held_out.random), f"random {noun}"), units_for(held_out.units, findings.alpha)
    return f"with {drawn} nothing can be shown, which takes {least} or more: {measures(findings)}"


def measures(findings: Findings) -> str:
    """The command that ablates what a run did not on answers kept aside; what it did ablate is reused."""
    return f"`mecharule run --from {findings.run} --set controls=199` measures it"


def reached_words(findings: Findings, search: SearchOutcome, units: int, more: str = "") -> str:
    """`68 heads reached 20 % on a half of 2 or 16 answers`: what the point estimate alone says."""
    halves = " or ".join(str(n) for n in sorted({search.associated_n, search.unrelated_n}) if n)
    of = f"{more}{_noun(search)}"
    return f"{plural(units, of)} reached {percent(findings.tau)} on a half of {halves} answers"


def _noun(search: SearchOutcome) -> str:
    return search.intervention.basis.row.noun
