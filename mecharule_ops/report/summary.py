"""What was asked, what was found and how sure that is: all that some readers read."""

from __future__ import annotations

from collections.abc import Iterator

from mecharule_ops.findings.controls import AgonistControls
from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.numbers import k_of_n, percent, plural, sentence
from mecharule_ops.report.absence import negative
from mecharule_ops.report.document import Block, Bullets
from mecharule_ops.saying.control_facts import counted_claims, counted_ranks
from mecharule_ops.saying.flips import unit_flips
from mecharule_ops.saying.rules import predicts, short
from mecharule_ops.saying.searches import (
    is_risk,
    missed_words,
    recall_sentence,
    search_titles,
    shared_replacement,
)
from mecharule_ops.saying.unit_rules import UnitRule, shown_of_all, told_rule, when_told


def summary(findings: Findings) -> tuple[Block, ...]:
    """The question, the result in one sentence, then a bullet a search."""
    paragraphs = tuple(" ".join(said) for said in in_general(findings))
    items = tuple(" ".join(said) for said in of_searches(findings))
    return (*paragraphs, Bullets(items)) if items else paragraphs


def in_general(findings: Findings) -> tuple[tuple[str, ...], ...]:
    """What was asked, the notes and the headline, each as its sentences."""
    how = shared_replacement(findings)
    asked = (
        f"Asked: which single units of {findings.model}, replaced one at a time"
        f"{f' ({how})' if how else ''}, flip whether it succeeds at {findings.task}?",
        unablated(findings),
        "Flips 1→0 are counted on records that succeed, flips 0→1 on records that fail; of either, D+ are those "
        "where the splitter rule fires and D- the others.",
    )
    return (asked, *((note,) for note in findings.notes), (headline(findings),))


def unablated(findings: Findings) -> str:
    """How often the model is right as it is."""
    return f"Unablated it succeeds on {k_of_n(findings.task_score)} of the records."


def of_searches(findings: Findings) -> tuple[tuple[str, ...], ...]:
    """The sentences of each search, the first with the search's name before it."""
    said = []
    for name, outcome in zip(search_titles(findings), findings.searches, strict=True):
        first, *others = [*_risk(findings, outcome), *_sentences(findings, outcome)]
        said.append((f"{name}: {first}", *others))
    return tuple(said)


def _risk(findings: Findings, outcome: SearchOutcome) -> list[str]:
    """What stands before a search for units whose flips do harm; nothing for any other."""
    if not is_risk(findings, outcome):
        return []
    words = findings.words
    risk = f"Risk, not an improvement: these flips turn {words.failure} into {words.success}."
    hidden = "Their names are hidden; a number stands for each."
    return [risk, hidden] if outcome.suppressed else [risk]


def headline(findings: Findings) -> str:
    """How many τ-agonists there are in all, how many flip more than random units, how many rules are shown."""
    if not findings.searches:
        return "Found: no search was run, so nothing is claimed."
    if all(outcome.nothing_searched for outcome in findings.searches):
        return "Found: nothing was searched, so nothing is claimed."
    beside = [controls for outcome in findings.searches for controls in _controls(findings, outcome)]
    searches = plural(len(findings.searches), "search", "searches")
    rules = f"; {said}" if (said := shown_of_all(findings)) else ""
    if not beside:
        return f"Found: no τ-agonist in {searches}{rules}."
    claims = counted_claims(beside, findings.alpha)
    return f"Found: {plural(len(beside), 'τ-agonist')} in {searches}; {claims}{rules}."


def found_line(findings: Findings) -> str:
    """What the units found do, by kind of unit and direction, and how many do not."""
    if not findings.searches or all(outcome.nothing_searched for outcome in findings.searches):
        return "Nothing was searched, so nothing is claimed."
    said = [_does(findings, outcome) for outcome in findings.searches if outcome.tau_agonists]
    if not said:
        return f"No unit that, switched off alone, flips {percent(findings.tau)} of the answers asked about."
    return f"{'; '.join(said)}."


def _does(findings: Findings, outcome: SearchOutcome) -> str:
    """`3 of 270 heads, each switched off alone, turn at least 20 % of right answers wrong, in one half of those …`."""
    noun, words, label = outcome.intervention.basis.row.noun, findings.words, bool(outcome.regime.value)
    many = len(outcome.tau_agonists)
    risk = " (a risk)" if is_risk(findings, outcome) else ""
    return (
        f"{many:,} of {plural(outcome.cost.candidates, noun)}, {'' if many == 1 else 'each '}switched off alone, "
        f"{'turns' if many == 1 else 'turn'} at least {percent(findings.tau)} of {words.of(label)} answers "
        f"{words.of(not label)}{risk}, in one half of those tried"
    )


def when_line(findings: Findings) -> str:
    """The rule of the strongest unit, and how many others have one; empty where nothing was found."""
    units = _strongest_first(findings)
    if not units:
        return ""
    first, *others = units
    when = when_told(first.account, first.rule, findings.run)
    said = f"{first.neuron}, the strongest: {when[:1].lower()}{when[1:]}."
    sought = [rule for rule in map(_told, others) if rule is not None]
    shown, unscored = sum(rule.shown for rule in sought), sum(rule.unscored for rule in sought)
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


def _told(unit: Unit) -> UnitRule | None:
    return told_rule(unit.account, unit.rule)


def sure_line(findings: Findings) -> str:
    """The strongest on held-out records, units beside random ones, what each search missed; empty for no unit."""
    beside = [controls for outcome in findings.searches for controls in _controls(findings, outcome)]
    if not beside:
        return ""
    said = [*_held_out(findings), counted_ranks(beside, findings.alpha)]
    searched = [
        (name, outcome)
        for name, outcome in zip(search_titles(findings), findings.searches, strict=True)
        if outcome.tau_agonists
    ]
    for name, outcome in searched:
        which = f"{name}: " if len(searched) > 1 else ""
        said.append(f"{which}{missed_words(findings, outcome)}")
    return " ".join(map(sentence, said))


def not_found(findings: Findings) -> list[str]:
    """What stands before each search for units that do harm, and what came of each search that found nothing."""
    return [
        f"{name}: {' '.join(said)}"
        for name, outcome in zip(search_titles(findings), findings.searches, strict=True)
        if (
            said := [
                *_risk(findings, outcome),
                *([] if outcome.tau_agonists else _sentences(findings, outcome)),
            ]
        )
    ]


def _held_out(findings: Findings) -> Iterator[str]:
    """What the strongest unit flips of held-out records, where it was ablated on them: its slices chose it."""
    first = next(iter(_strongest_first(findings)), None)
    if first is not None and first.controls is not None and first.controls.flips is not None:
        yield f"of held-out answers, which did not choose it, the strongest flips {k_of_n(first.controls.flips)}"


def _strongest_first(findings: Findings) -> list[Unit]:
    """The τ-agonists that are shown, over all searches."""
    units = [unit for unit in findings.units() if unit.is_tau_agonist and not unit.neuron.is_hidden]
    return sorted(units, key=lambda unit: -unit.estimate.strength)


def _controls(findings: Findings, outcome: SearchOutcome) -> list[AgonistControls | None]:
    """The controls of each τ-agonist, None where none ran."""
    return [unit.controls for unit in findings.units_of(outcome) if unit.is_tau_agonist]


def _sentences(findings: Findings, outcome: SearchOutcome) -> list[str]:
    if not outcome.tau_agonists:
        said = negative(findings, outcome)
        return [said] if outcome.nothing_searched else [said, recall_sentence(findings, outcome)]
    weaker = len(outcome.agonists) - len(outcome.tau_agonists)
    more = (
        f"{plural(weaker, 'further unit')} {'is' if weaker == 1 else 'are'} not ruled out: only the upper bound "
        "reaches τ."
    )
    return [
        _found(findings, outcome),
        *(
            [sentence(counted_claims(_controls(findings, outcome), findings.alpha))]
            if len(findings.searches) > 1
            else []
        ),
        _rules(findings, outcome),
        *([more] if weaker else []),
        recall_sentence(findings, outcome),
    ]


def _found(findings: Findings, outcome: SearchOutcome) -> str:
    strong = [unit for unit in findings.units_of(outcome) if unit.is_tau_agonist]
    flips = f"flips {unit_flips(strong[0])}"
    if len(strong) == 1:
        return f"1 τ-agonist among {_searched(outcome)}: {strong[0].neuron}, replaced alone, {flips}."
    return (
        f"{len(strong)} τ-agonists among {_searched(outcome)}: each, replaced alone, flips at least "
        f"τ = {findings.tau:g} of one of the two slices. The strongest, {strong[0].neuron}, {flips}."
    )


def _searched(outcome: SearchOutcome) -> str:
    """How many units were searched, and of how many where that is known to be fewer than all."""
    every, searched = outcome.basis_units, plural(outcome.cost.candidates, "unit")
    if every is None or every == outcome.cost.candidates:
        return searched
    return f"{searched} searched, of {every:,} in the basis"


def _rules(findings: Findings, outcome: SearchOutcome) -> str:
    shown = [rule for rule in outcome.anchored if predicts(rule) is not None]
    said = "a rule that predicts which held-out records flip better than chance"
    if not shown:
        return f"No localized unit has {said}."
    good = sum(findings.is_hq_t(rule) for rule in shown)
    return (
        f"{plural(len(shown), 'localized unit')} {'has' if len(shown) == 1 else 'have'} {said}, "
        f"{good or 'none'} of them at MCC ≥ {short(findings.mcc_floor)}."
    )
