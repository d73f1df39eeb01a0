"""The report of one run: which sections, in which order, with which facts, tables and figures."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mecharule_ops.facts.account_facts import explanation, unit_parts
from mecharule_ops.facts.answer_text import lines, proof
from mecharule_ops.facts.control_facts import control_parts
from mecharule_ops.facts.fact import Stated, said
from mecharule_ops.facts.flips import unit_flips
from mecharule_ops.facts.found import in_short, negative, opening, suggestions, whole_layer_words
from mecharule_ops.facts.glossary import explained
from mecharule_ops.facts.rules import clipped, when_told, worded
from mecharule_ops.facts.run_evidence import cost_of, limits, missed_of, rule_counts, took, union_of
from mecharule_ops.facts.run_setting import choices, setting, splitter_of
from mecharule_ops.facts.searches import is_risk, search_names, shared_replacement
from mecharule_ops.facts.shown_units import NOT_SHOWN, evidence_words, marked, reached_words, unshowable
from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.chain import Chain
from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.numbers import of_n, plural, sentence
from mecharule_ops.pages.as_text import latex_of, text_of
from mecharule_ops.pages.document import Block, Section, Table, Verbatim
from mecharule_ops.pages.drawing import figure_stem
from mecharule_ops.pages.html import html_of
from mecharule_ops.pages.plots import MAP, figures
from mecharule_ops.pages.rows import RuleRow, UnitRow, rule_rows, unit_row

ROWS = 20
"""Units that are not ruled out are listed up to here."""
WIDEST = 100
"""Text is never wider, so that it pastes into an e-mail or a README."""


def report_text(findings: Findings, width: int = WIDEST) -> str:
    """The report as plain text with aligned tables, never wider than `width`."""
    return text_of(_title(findings), report_sections(findings), width)


def report_page(findings: Findings, example: str = "") -> str:
    """The report as one self-contained HTML page, its plots inlined as SVG; no script and no external address.

    `example` is of the strongest unit, before and after.
    """
    sections = [*report_sections(findings, example), *to_copy(findings)]
    return html_of(_title(findings), sections, figures(findings, example))


def _title(findings: Findings) -> str:
    return f"MechaRule report: run {findings.run}"


def report_sections(findings: Findings, example: str = "") -> list[Section]:
    """The whole report: summary, units, why they flip, then what stands behind it, which a page folds."""
    how = shared_replacement(findings) or "the baseline and phase in the title of each search"
    replaced = "", None, f"Replacement of ablated units: {how}"
    setting_of = _each((*setting(findings), replaced, took(findings)))
    chosen = _each(choices(findings))
    sections = [
        *opening_sections(findings, example),
        *_account_sections(findings),
        *_rule_sections(findings),
        *(search_section(findings, index) for index in range(len(findings.searches))),
        Section(title="Task and run", blocks=(setting_of,), folded=True),
        Section(title="Limits", blocks=(_each(limits(findings)),)),
        *([Section(title="Named choices", blocks=(chosen,), folded=True)] if chosen else []),
    ]
    words = explained(text_of(_title(findings), sections, WIDEST))
    return [*sections, *([Section(title="Words", blocks=(words,))] if words else [])]


def to_copy(findings: Findings) -> list[Section]:
    """A paragraph of methods and the shown units as a LaTeX table, for a paper; nothing where none is shown."""
    if not (shown := findings.shown()):
        return []
    noun = " and ".join(dict.fromkeys(f"{unit.search.intervention.basis.row.noun}s" for unit in shown))
    methods = said("report.methods", f=findings, right=of_n(findings.task_score), noun=noun)
    rows = [replace(unit_row(unit), unit=str(unit.neuron)) for unit in shown]
    table = Table.of_rows(UnitRow, rows, ("unit", "kept aside", "above random units", "flips D+", "flips D-"))
    return [Section(title="To copy", blocks=(methods, Verbatim(latex_of(table))), folded=True)]


def _each(stated: Iterable[Stated]) -> tuple[str, ...]:
    return tuple(sentence(text) for _, _, text in stated)


def _told(stated: Iterable[Stated]) -> str:
    """The sentences of facts as one paragraph."""
    return " ".join(_each(stated))


def opening_sections(findings: Findings, example: str = "") -> list[Section]:
    """What is read first: the summary, then the τ-agonists of all searches with their controls and rules."""
    found = [f"{part}. {text}" for part, text in in_short(findings, example).items()]
    summary = Section(title="Summary", blocks=(*opening(findings), *found), opening=(MAP,))
    named = zip(search_names(findings), findings.searches, strict=True)
    if blocks := [block for name, outcome in named for block in _units_of(findings, outcome, name)]:
        return [summary, Section(title="τ-agonists", blocks=(*blocks, said("report.units.key")))]
    return [summary]


def _units_of(findings: Findings, outcome: SearchOutcome, name: str) -> list[Block]:
    """The shown units of a search by rank, each with its controls and its rule under it; then the other τ-agonists."""
    shown = findings.shown_of(outcome)
    others = [unit for unit in findings.units_of(outcome) if unit.is_tau_agonist and not unit.is_shown]
    risk = ", a risk" if is_risk(findings, outcome) else ""
    blocks: list[Block] = []
    if shown:
        notes, bars = zip(*((_notes(findings, unit), unit.estimate.strength) for unit in shown), strict=True)
        blocks.append(
            f"{name}: {plural(len(shown), 'unit')} shown{risk}, by the lower bound of what it flips."
        )
        blocks.append(replace(_table(shown), notes=notes, bars=bars))
    if others:
        why = unshowable(findings, outcome) or f"{NOT_SHOWN}, in the order of their names"
        reached = reached_words(findings, outcome, len(others), "more " if shown else "")
        blocks += [f"{name}{risk}: {reached}, {why}.", _table(others)]
    return blocks


def _table(units: Sequence[Unit]) -> Table:
    """Each with the mark of how sure it is."""
    columns = "unit", "kept aside", "flips D+", "flips D-", "strength", "above random units", "selective"
    return Table.of_rows(UnitRow, [replace(unit_row(unit), unit=marked(unit)) for unit in units], columns)


def _notes(findings: Findings, unit: Unit) -> tuple[str, ...]:
    """Its evidence; its controls; when it flips, unless a section of its own says so."""
    ran = unit.controls
    controls = "none was run" if ran is None else "; ".join(control_parts(ran, unit.estimate, findings.tau))
    when = () if unit.account else (f"When: {when_told(None, unit.rule, findings.run)}.",)
    return f"{evidence_words(findings, unit)}.", f"Controls: {sentence(controls)}", *when


def _rule_sections(findings: Findings) -> list[Section]:
    """Every learned rule, shown or not, its text underneath; nothing where none was learned."""
    rows = [row for row in rule_rows(findings) if row.learned]
    table = Table.of_rows(
        RuleRow, rows, ("search", "unit", "family", "shown", "held-out MCC", "high quality")
    )
    notes = tuple((worded(clipped(str(row.learned), findings.run), row.in_words),) for row in rows)
    told = _told(rule_counts(findings))
    every = Section(title="Every learned rule", blocks=(told, replace(table, notes=notes)), folded=True)
    return [every] if rows else []


def search_section(findings: Findings, index: int) -> Section:
    """One search: its split, status, layers, units that are not ruled out, what it missed and took, and its tree."""
    outcome, name = findings.searches[index], search_names(findings)[index]
    status = " ".join(map(sentence, (outcome.slice_status, *outcome.status)))
    blocks: list[Block] = [_told(splitter_of(findings, outcome)), status]
    if not outcome.tau_agonists:
        blocks.append(f"Negative result: {negative(findings, outcome)}")
    elif outcome.whole_layers:
        blocks.append(sentence(whole_layer_words(findings, outcome)))
    bases = {each.intervention.basis for each in findings.searches}
    if advice := suggestions(findings, outcome, bases):
        blocks += ["What to try next:", advice]
    blocks += _weak(findings, outcome)
    blocks += [_told(of(findings, outcome)) for of in (union_of, missed_of, cost_of)]
    shown = tuple(block for block in blocks if block)
    return Section(title=f"Search {index + 1}: {name}", blocks=shown, figures=(f"tree-{index}",), folded=True)


def _weak(findings: Findings, outcome: SearchOutcome) -> list[Block]:
    """The units that are not ruled out: how little that takes, the first of them, then how many more there are."""
    weak = [unit for unit in findings.units_of(outcome) if not unit.is_tau_agonist]
    if not weak:
        return []
    least = min(weak, key=lambda unit: unit.estimate.strength)
    parts = {"are": f"{plural(len(weak), 'unit')} {'is' if len(weak) == 1 else 'are'}", "unit": least.neuron}
    columns = "unit", "flips D+", "flips D-", "strength", "selectivity"
    table = Table.of_rows(UnitRow, list(map(unit_row, weak[:ROWS])), columns)
    more = f"… and {len(weak) - ROWS:,} more (`mecharule show {findings.run} --table units`)."
    text = said("report.not_ruled_out", f=findings, flips=unit_flips(least), **parts)
    return [text, table, *([more] if len(weak) > ROWS else [])]


def _account_sections(findings: Findings) -> list[Section]:
    """One a unit and regime, in the order of the searches; on a page all but the first are folded."""
    sections: list[Section] = []
    for account in (account for outcome in findings.searches for account in outcome.accounts):
        unit = findings.unit(account.neuron, account.regime)
        chain = None if unit is None else unit.chain
        sections.append(replace(account_section(findings.run, account, chain), folded=bool(sections)))
    return sections


def account_section(run: str, account: Account, chain: Chain | None) -> Section:
    """The section of one unit; `chain` is None where it was not traced."""
    unit, regime = account.neuron, account.regime
    facts = explanation(unit_parts(unit, account, chain, run))
    stem = figure_stem("chain", regime, unit)
    asked = f"{unit} --parts {'drive,chain' if chain else 'drive'} --regime {regime.value}"
    return Section(
        title=f"When and why {unit} flips ({regime.arrow})",
        blocks=(*lines(facts), proof(facts), f"All its numbers: `mecharule explain {run} {asked}`."),
        figures=(
            f"{figure_stem('account', regime, unit)}-leads",
            *(f"{stem}-{kind}" for kind in ("writes", "reads", "through")),
        ),
    )
