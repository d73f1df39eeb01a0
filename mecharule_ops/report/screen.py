"""The end of a run on one screen: what was found, the strongest units, what was missed at most, what to ask next.

At most 40 lines of 100 columns, nothing said twice; everything else stands in the full report.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.numbers import k_of_n, plural, sentence, tied
from mecharule_ops.plain_text import plain
from mecharule_ops.questions.support import strongest
from mecharule_ops.report.absence import negative, suggestions
from mecharule_ops.report.limits import limits
from mecharule_ops.report.summary import headline
from mecharule_ops.saying.account_facts import brief_account
from mecharule_ops.saying.control_facts import brief_claims
from mecharule_ops.saying.flips import DOUBT, unit_flips
from mecharule_ops.saying.rules import brief_rule
from mecharule_ops.saying.searches import is_risk, missed_words, search_names

LINES, WIDTH = 40, 100
SEARCHES = 6
"""Searches that have a block of their own."""
ADVICE = 2
"""Suggestions at most where nothing was found."""
_BAR = 10


def screen(findings: Findings, earlier: Findings | None = None) -> str:
    """The text. `earlier` is the run before, whose limits and named choices need no second reading."""
    ending = [*_ask_next(findings), *_elsewhere(findings, earlier)]
    head = [*_beginning(findings), *_wrapped(headline(findings))]
    named = list(zip(search_names(findings), findings.searches, strict=True))
    heads = [_search_head(findings, outcome, name) for name, outcome in named[:SEARCHES]]
    left = LINES - len(head) - len(ending) - sum(map(len, heads)) - 2 * len(heads) - 2
    rows = max(1, left // max(1, sum(bool(outcome.tau_agonists) for _, outcome in named[:SEARCHES])))
    lines = [*head, ""]
    for said, (_, outcome) in zip(heads, named, strict=False):
        lines += [*said, *_unit_lines(findings, outcome, rows)]
    if rest := named[SEARCHES:]:
        lines.append(f"… and {plural(len(rest), 'more search', 'more searches')}.")
    return "\n".join([*lines[: LINES - len(ending) - 1], "", *ending]) + "\n"


def _beginning(findings: Findings) -> Iterator[str]:
    """What was asked of which model, and what the task must say in every report."""
    yield from _wrapped(
        f"Run {findings.run}: {findings.task} on {findings.model}, which succeeds on "
        f"{k_of_n(findings.task_score)} of the records."
    )
    for note in findings.notes:
        yield from _wrapped(note)


def _search_head(findings: Findings, outcome: SearchOutcome, name: str) -> list[str]:
    risk = ", a risk" if is_risk(findings, outcome) else ""
    if outcome.nothing_searched:
        return _wrapped(f"{name}: {negative(findings, outcome)}")
    if not outcome.tau_agonists:
        return _wrapped(f"{name}: {negative(findings, outcome)} {sentence(missed_words(findings, outcome))}")
    among = f"{plural(len(outcome.tau_agonists), 'τ-agonist')}{risk} among {plural(outcome.cost.candidates, 'unit')}"
    said = [unit_flips(unit) for unit in findings.units_of(outcome) if unit.is_tau_agonist]
    over = "; the doubts below are over all of these units at once" if DOUBT in "".join(said) else ""
    return _wrapped(f"{name}: {among}; {missed_words(findings, outcome)}{over}.")


def _unit_lines(findings: Findings, outcome: SearchOutcome, rows: int) -> Iterator[str]:
    """A line a τ-agonist, strongest first, then how many units there are beside them."""
    units = [unit for unit in findings.units_of(outcome) if unit.is_tau_agonist]
    shown = units[:rows]
    names = [str(unit.neuron) for unit in shown]
    counts = [unit_flips(unit, brief=True) for unit in shown]
    for unit, name, count in zip(shown, names, counts, strict=True):
        cells = f"{name:<{max(map(len, names))}}  {_bar(unit)} {count:<{max(map(len, counts))}}"
        yield _cut(f"  {cells}  {plain(_account(unit))}")
    more = [f"{len(units) - rows:,} more τ-agonists"] if len(units) > rows else []
    weaker = len(outcome.agonists) - len(units)
    more += [f"{plural(weaker, 'unit')} not ruled out"] if weaker else []
    if more:
        yield f"  … and {' and '.join(more)}"


def _account(unit: Unit) -> str:
    """What its controls show, and what its account says of when it flips; without one, its anchored rule."""
    rule = brief_rule(unit.rule) if unit.account is None else brief_account(unit.account)
    return f"{brief_claims(unit.controls)}; {rule}"


def _bar(unit: Unit) -> str:
    """The strength in tenths."""
    filled = round(_BAR * unit.estimate.strength)
    return "█" * filled + "·" * (_BAR - filled)


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1].rstrip()}…"


def _ask_next(findings: Findings) -> Iterator[str]:
    """Commands that lead on from what was found; where nothing was, what to change first."""
    if not any(outcome.tau_agonists for outcome in findings.searches):
        for advice in _advice(findings)[:ADVICE]:
            yield from _wrapped(f"Next: {advice}")
    unit = strongest(findings)
    about = ("why does {} flip?", "what would change your mind about {}?") if unit else ()
    questions = [*(question.format(unit and unit.neuron) for question in about), "what did the search miss?"]
    for place, question in enumerate(questions):
        yield f'{"      " if place else "Ask:  "}mecharule ask {findings.run} "{question}"'


def _advice(findings: Findings) -> list[str]:
    """The most telling advice of each search, once."""
    bases = {outcome.intervention.basis for outcome in findings.searches}
    first = [advice for outcome in findings.searches for advice in suggestions(findings, outcome, bases)[:1]]
    return list(dict.fromkeys(first))


def _elsewhere(findings: Findings, earlier: Findings | None) -> Iterator[str]:
    """Where the rest stands, and which limits and choices the run before did not have."""
    yield f"All:  mecharule show {findings.run} --full"
    if earlier is None:
        return
    known = {choice.setting for choice in earlier.choices}
    new = [choice.setting for choice in findings.choices if choice.setting not in known]
    other = set(limits(findings)[:-1]) - set(limits(earlier)[:-1])
    if new:
        yield from _wrapped(f"New beside run {earlier.run}, among the named choices: {', '.join(new)}.")
    for limit in sorted(other):
        yield from _wrapped(f"Unlike run {earlier.run}: {limit}")


def _wrapped(text: str) -> list[str]:
    lines = textwrap.wrap(tied(plain(text)), WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]
