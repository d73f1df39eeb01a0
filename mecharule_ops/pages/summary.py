"""What was asked, what was found and how sure that is: all that some readers read."""

from __future__ import annotations

from mecharule_ops.facts.control_facts import brief_rank, counted_selective
from mecharule_ops.facts.rules import predicts, short
from mecharule_ops.facts.searches import (
    is_risk,
    missed_words,
    recall_sentence,
    search_titles,
    shared_replacement,
)
from mecharule_ops.facts.shown_units import NOT_TOLD_APART, evidence_words, reached_words, unshowable
from mecharule_ops.facts.unit_rules import UnitRule, shown_of_all, told_rule, when_told
from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.numbers import k_of_n, percent, plural, sentence
from mecharule_ops.pages.absence import negative
from mecharule_ops.pages.document import Block, Bullets


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
        "where the splitter rule fires (without one, a cluster of them) and D- the others.",
    )
    return (asked, *((note,) for note in findings.notes), (headline(findings),))


def unablated(findings: Findings) -> str:
    """How often the model is right as it is."""
    return f"Unablated it succeeds on {k_of_n(findings.task_score)} of the records."


def of_searches(findings: Findings) -> tuple[tuple[str, ...], ...]:
    """The sentences of each search, the first with the search's name before it."""
    said = []
    for name, outcome in zip(search_titles(findings), findings.searches, strict=True):
        sentences = []
        if is_risk(findings, outcome):
            turned = f"{findings.words.failure} into {findings.words.success}"
            sentences.append(f"Risk, not an improvement: these flips turn {turned}.")
            if outcome.suppressed:
                sentences.append("Their names are hidden; a number stands for each.")
        if outcome.tau_agonists:
            sentences += [_found(findings, outcome), _rules(findings, outcome)]
            if weaker := len(outcome.agonists) - len(outcome.tau_agonists):
                are = f"{plural(weaker, 'further unit')} {'is' if weaker == 1 else 'are'}"
                sentences.append(f"{are} not ruled out: only the upper bound reaches τ.")
        else:
            sentences.append(negative(findings, outcome))
        if not outcome.nothing_searched:
            sentences.append(recall_sentence(findings, outcome))
        first, *others = sentences
        said.append((f"{name}: {first}", *others))
    return tuple(said)


def headline(findings: Findings) -> str:
    """How many units are shown in all, how many reach τ beside them, how many rules are shown."""
    if not findings.searches:
        return "Found: no search was run, so nothing is claimed."
    if all(outcome.nothing_searched for outcome in findings.searches):
        return "Found: nothing was searched, so nothing is claimed."
    shown = findings.shown()
    searches = plural(len(findings.searches), "search", "searches")
    rules = f"; {said}" if (said := shown_of_all(findings)) else ""
    selective = f"; {counted_selective([unit.controls for unit in shown])}" if shown else ""
    others = sum(len(outcome.tau_agonists) for outcome in findings.searches) - len(shown)
    more = (
        f"; of {plural(others, 'other unit')} that reached τ none is told apart from chance" if others else ""
    )
    found = f"{plural(len(shown), 'unit')} shown" if shown else "no unit is shown"
    return f"Found: {found} in {searches}{selective}{more}{rules}."


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
    many = len(findings.shown_of(outcome))
    others = len(outcome.tau_agonists) - many
    if not many:
        why = unshowable(findings, outcome) or "which chance does as well"
        return f"No unit is shown: {reached_words(findings, outcome, others)}, {why}"
    turns = f"turns {words.of(label)} answers {words.of(not label)}"
    does = f"switched off alone, it {turns}" if many == 1 else f"each, switched off alone, {turns}"
    risk = " (a risk)" if is_risk(findings, outcome) else ""
    more = f"; {reached_words(findings, outcome, others, 'more ')}, {NOT_TOLD_APART}" if others else ""
    return (
        f"{many:,} of {plural(outcome.cost.candidates, noun)} {'is' if many == 1 else 'are'} shown: {does}{risk} more "
        f"often than random {noun}s do{more}"
    )


def when_line(findings: Findings) -> str:
    """The rule of the strongest shown unit, and how many others have one; empty where none is shown."""
    units = _named(findings)
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
    """The strongest on answers kept aside, its rank, what each search missed; empty where no unit is shown."""
    shown = _named(findings)
    if not shown:
        return ""
    said = []
    if shown[0].controls is not None and shown[0].controls.basis is not None:
        said.append(f"it stands {brief_rank(shown[0].controls)}")
    searched = [
        (name, outcome)
        for name, outcome in zip(search_titles(findings), findings.searches, strict=True)
        if outcome.tau_agonists
    ]
    for name, outcome in searched:
        which = f"{name}: " if len(searched) > 1 else ""
        said.append(f"{which}{missed_words(findings, outcome)}")
    return " ".join([f"{evidence_words(findings, shown[0])}.", *map(sentence, said)])


def _named(findings: Findings) -> list[Unit]:
    """The shown units over all searches whose names the run tells."""
    return [unit for unit in findings.shown() if not unit.search.suppressed]


def _found(findings: Findings, outcome: SearchOutcome) -> str:
    """Of how many units how many are shown, and what the strongest flips."""
    shown = findings.shown_of(outcome)
    strongest = f" {evidence_words(findings, shown[0])}." if shown else ""
    return f"Among {_searched(outcome)}: {_does(findings, outcome)}.{strongest}"


def _searched(outcome: SearchOutcome) -> str:
    """How many units were searched, and of how many where that is known to be fewer than all."""
    every, searched = outcome.basis_units, plural(outcome.cost.candidates, "unit")
    if every is None or every == outcome.cost.candidates:
        return searched
    return f"{searched} searched, of {every:,} in the basis"


def _rules(findings: Findings, outcome: SearchOutcome) -> str:
    shown = [rule for rule in outcome.anchored if predicts(rule) is not None]
    said = "an anchored rule that predicts which held-out records flip better than chance"
    if not shown:
        return f"No localized unit has {said}."
    good = sum(findings.is_hq_t(rule) for rule in shown)
    return (
        f"{plural(len(shown), 'localized unit')} {'has' if len(shown) == 1 else 'have'} {said}, "
        f"{good or 'none'} of them at MCC ≥ {short(findings.mcc_floor)}."
    )
