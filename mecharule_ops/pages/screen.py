"""The end of a run on one screen: what was found, the shown units, what was missed at most, what to ask next.

At most 40 lines of 100 columns, nothing said twice; everything else stands in the full report.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from mecharule_ops.facts.found import in_short, negative, suggestions
from mecharule_ops.facts.glossary import explained
from mecharule_ops.facts.rules import NO_RULE, UNSCORED, short
from mecharule_ops.facts.searches import is_risk, missed_words, search_titles
from mecharule_ops.facts.shown_units import (
    NOT_SHOWN,
    marked,
    rank_words,
    reached_words,
    unshowable,
)
from mecharule_ops.facts.unit_rules import told_rule
from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.numbers import plural, sentence
from mecharule_ops.pages.content import beginning
from mecharule_ops.pages.rows import kept_aside, unit_row
from mecharule_ops.plain_text import plain, tied
from mecharule_ops.rules.families import FamilyStatus

LINES, WIDTH = 40, 100
SEARCHES = 6
"""Searches that have a block of their own."""
NAMED = 4
"""Units by name of those that are not shown."""
ADVICE = 2
"""Suggestions at most where nothing was found."""
_BAR = 10


def screen(findings: Findings, example: str = "", *, ends: bool = True) -> str:
    """The text; `example` is of the strongest unit, before and after; `ends` with what to ask next."""
    found = [f"{part}. {text}" for part, text in in_short(findings, example).items()]
    head = [line for text in (*beginning(findings), *found) for line in _wrapped(text)]
    named = list(zip(search_titles(findings), findings.searches, strict=True))
    heads = [_search_head(findings, outcome, name) for name, outcome in named[:SEARCHES]]
    words = _wrapped(explained("\n".join([*head, *(line for of_search in heads for line in of_search)])))
    ending = [] if not ends else [*words, *_ask_next(findings), f"All:  mecharule show {findings.run} --full"]
    left = LINES - len(head) - len(ending) - sum(map(len, heads)) - 2 * len(heads) - 2
    rows = max(1, left // max(1, sum(bool(findings.shown_of(outcome)) for _, outcome in named[:SEARCHES])))
    lines = [*head, ""]
    for said, (_, outcome) in zip(heads, named, strict=False):
        lines += [*said, *_unit_lines(findings, outcome, rows)]
    if rest := named[SEARCHES:]:
        lines.append(f"and {plural(len(rest), 'more search', 'more searches')}.")
    return "\n".join([*lines[: LINES - len(ending) - 1], "", *ending]) + "\n"


def _search_head(findings: Findings, outcome: SearchOutcome, name: str) -> list[str]:
    if outcome.nothing_searched:
        return _wrapped(f"{name}: {negative(findings, outcome)}")
    if not outcome.tau_agonists:
        return _wrapped(f"{name}: {negative(findings, outcome)} {sentence(missed_words(findings, outcome))}")
    risk = ", a risk" if is_risk(findings, outcome) else ""
    if not findings.shown_of(outcome):
        why = unshowable(findings, outcome) or NOT_SHOWN
        return _wrapped(f"{name}{risk}: {reached_words(findings, outcome, len(outcome.tau_agonists))}, {why}")
    return _wrapped(
        f"{name}{risk}: flips on the half of the records where the unit flips more, then on answers kept aside, which "
        "chose no unit"
    )


def _unit_lines(findings: Findings, outcome: SearchOutcome, rows: int) -> Iterator[str]:
    """A line a shown unit, by rank, then how many there are beside them; columns that have no room go."""
    units = findings.shown_of(outcome)
    told = units[:rows]
    columns = [
        [marked(unit) for unit in told],
        [_strength(unit) for unit in told],
        [kept_aside(unit_row(unit)) for unit in told],
        [rank_words(unit) for unit in told],
        [_rule(unit) for unit in told],
    ]
    kept: list[list[str]] = []
    for column in columns:
        wide = [f"{cell:<{max(map(len, column))}}" for cell in column]
        if sum(len(of_row[0]) + 2 for of_row in [*kept, wide] if of_row) <= WIDTH - 2:
            kept.append(wide)
    for cells in zip(*kept, strict=True):
        yield f"  {'  '.join(cells)}".rstrip()
    more = [f"{len(units) - rows:,} more shown"] if len(units) > rows else []
    apart = [unit for unit in findings.units_of(outcome) if unit.is_tau_agonist and not unit.is_shown]
    if apart:
        names = ", ".join(map(str, [unit.neuron for unit in apart[:NAMED]]))
        rest = f" and {len(apart) - NAMED:,} more" if len(apart) > NAMED else ""
        more.append(f"{NOT_SHOWN}: {names}{rest}")
    weaker = len(outcome.agonists) - len(outcome.tau_agonists)
    more += [f"{plural(weaker, 'unit')} not ruled out"] if weaker and outcome.tau_agonists else []
    if more:
        yield f"  {'and ' if units else ''}{'; '.join(more)}"


def _strength(unit: Unit) -> str:
    """`███████··· 41 of 64`: the strength in tenths, and its counts."""
    count, filled = unit.estimate.stronger[1], round(_BAR * unit.estimate.strength)
    return f"{'█' * filled}{'·' * (_BAR - filled)} {count.flips:,} of {count.n:,}"


def _rule(unit: Unit) -> str:
    """`rule MCC .46` of the one rule that is told of it; where none was sought, that is no negative finding."""
    rule = told_rule(unit.account, unit.rule)
    if rule is None:
        return "rule not sought"
    if rule.held_out is None or not rule.shown:
        return UNSCORED if rule.status is FamilyStatus.TOO_FEW_HELD_OUT else NO_RULE
    return f"rule MCC {short(rule.held_out.mcc)}"


def _ask_next(findings: Findings) -> Iterator[str]:
    """Commands that lead on from what was found; where nothing was, what to change first."""
    if not any(outcome.tau_agonists for outcome in findings.searches):
        bases = {outcome.intervention.basis for outcome in findings.searches}
        first = [
            advice for outcome in findings.searches for advice in suggestions(findings, outcome, bases)[:1]
        ]
        for advice in list(dict.fromkeys(first))[:ADVICE]:
            yield from _wrapped(f"Next: {advice}")
    unit = findings.strongest()
    about = ("why does {} flip?", "how sure is {}?") if unit else ()
    questions = [*(question.format(unit and unit.neuron) for question in about), "what did the search miss?"]
    for place, question in enumerate(questions):
        yield f'{"      " if place else "Ask:  "}mecharule ask {findings.run} "{question}"'


def _wrapped(text: str) -> list[str]:
    lines = textwrap.wrap(tied(plain(text)), WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]
