"""The end of a run on one screen: what was found, the shown units, what was missed at most, what to ask next.

At most 40 lines of 100 columns, more of fewer, nothing said twice; everything else stands in the full report.
"""

from collections.abc import Iterator

from mecharule_ops.facts import fact, rules, searches, shown_units
from mecharule_ops.facts.found import in_short, negative, opening
from mecharule_ops.facts.glossary import explained
from mecharule_ops.facts.run_evidence import next_steps
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.numbers import plural, sentence
from mecharule_ops.pages import as_text
from mecharule_ops.pages.rows import kept_aside, unit_row

WIDTH = min(100, as_text.WIDTH)
LINES = 4000 // WIDTH
SEARCHES = 6
"""Searches that have a block of their own."""
NAMED = 4
"""Units by name of those that are not shown."""
ADVICE = 2
"""Suggestions at most where nothing was found."""


def screen(findings: Findings, example: str = "", *, ends: bool = True) -> str:
    """The text; `example` is of the strongest unit, before and after; `ends` with what to ask next."""
    found = [f"{part}. {text}" for part, text in in_short(findings, example).items()]
    head = [line for text in (*opening(findings), *found) for line in _wrapped(text)]
    named = list(zip(searches.search_titles(findings), findings.searches, strict=True))[:SEARCHES]
    heads = [_search_head(findings, outcome, name) for name, outcome in named]
    words = _wrapped(explained("\n".join([*head, *(line for of_search in heads for line in of_search)])))
    ending = [*words, *_ask_next(findings), f"All:  mecharule show {findings.run} --full"] if ends else []
    left = LINES - len(head) - len(ending) - sum(map(len, heads)) - 2 * len(heads) - 2
    rows = max(1, left // max(1, sum(bool(findings.shown_of(outcome)) for _, outcome in named)))
    lines = [*head, ""]
    for of_search, (_, outcome) in zip(heads, named, strict=True):
        lines += [*of_search, *_unit_lines(findings, outcome, rows)]
    if rest := findings.searches[SEARCHES:]:
        lines.append(f"and {plural(len(rest), 'more search', 'more searches')}.")
    return "\n".join([*lines[: LINES - len(ending) - 1], "", *ending]) + "\n"


def _search_head(findings: Findings, outcome: SearchOutcome, name: str) -> list[str]:
    risk = ", a risk" if searches.is_risk(findings, outcome) else ""
    if not outcome.tau_agonists:
        missed = "" if outcome.nothing_searched else f" {sentence(searches.missed_words(findings, outcome))}"
        text = f"{name}: {negative(findings, outcome)}{missed}"
    elif not findings.shown_of(outcome):
        first = next(unit for unit in findings.units_of(outcome) if unit.is_tau_agonist)
        text = f"{name}{risk}: {shown_units.evidence_words(findings, first)}."
    else:
        text = fact.said("screen.columns", search=f"{name}{risk}")
    return _wrapped(text)


def _unit_lines(findings: Findings, outcome: SearchOutcome, rows: int) -> Iterator[str]:
    """A line a shown unit, by rank, then how many there are beside them; columns that have no room go."""
    units, told = findings.shown_of(outcome), findings.shown_of(outcome)[:rows]
    lines, columns = [""] * len(told), [[shown_units.marked(unit) for unit in told]]
    columns += [[kept_aside(unit_row(unit)) for unit in told], [*map(shown_units.rank_words, told)]]
    whens = [rules.when_in_short(unit.account, unit.rule) for unit in told]
    columns += [whens, [*map(shown_units.again_words, told)]]
    for column in columns:
        wide = max(map(len, column), default=0)
        wider = [f"{line}  {cell:<{wide}}" for line, cell in zip(lines, column, strict=True)]
        lines = wider if max(map(len, wider), default=0) <= WIDTH else lines
    yield from map(str.rstrip, lines)
    more = [f"{len(units) - rows:,} more shown"] if len(units) > rows else []
    apart = [one for one in findings.units_of(outcome) if one.is_tau_agonist and not one.is_shown]
    apart = apart[not units :]  # The first was told above where none is shown.
    if apart:
        rest = f" and {len(apart) - NAMED:,} more" if len(apart) > NAMED else ""
        more.append(f"{shown_units.NOT_SHOWN}: {', '.join(map(shown_units.marked, apart[:NAMED]))}{rest}")
    weaker = len(outcome.agonists) - len(outcome.tau_agonists)
    weak = f"{plural(weaker, 'unit')} below τ whose bounds do not rule {'it' if weaker == 1 else 'them'} out"
    more += [weak] if weaker and outcome.tau_agonists else []
    if more:
        yield from as_text.wrapped(f"and {'; '.join(more)}", WIDTH, "  ", "  ")


def _ask_next(findings: Findings) -> Iterator[str]:
    """Commands that lead on from what was found; where nothing is shown, what would settle it or to change first."""
    # How many random units it takes stands beside what is not shown for want of them.
    steps = [said for key, _, said in next_steps(None, findings) if key != "next.controls"]
    for said in steps[: 0 if findings.shown() else ADVICE]:
        yield from _wrapped(f"Next: {sentence(said)}")
    unit = next((unit for unit in findings.by_evidence() if unit.is_tau_agonist), None)
    about = [f"why does {unit.neuron} flip?", f"how sure is {unit.neuron}?"] if unit else []
    if unit and not unit.is_shown:
        del about[0]
    for place, question in enumerate((*about, "what did the search miss?")):
        yield f'{"      " if place else "Ask:  "}mecharule ask {findings.run} "{question}"'


def _wrapped(text: str) -> list[str]:
    return as_text.wrapped(text, WIDTH, rest="  ")
