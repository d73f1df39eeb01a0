"""The report of one run: which sections, in which order, with which facts, tables and figures."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mecharule_ops import plain_text, types
from mecharule_ops.facts import answer_text, flips, glossary, run_setting, searches, shown_units
from mecharule_ops.facts.control_facts import control_parts
from mecharule_ops.facts.examples import NONE_TOLD, Examples, of_strongest
from mecharule_ops.facts.fact import Fact, Stated, fact, said
from mecharule_ops.facts.found import in_short, negative, opening, suggestions, top_line, whole_layer_words
from mecharule_ops.facts.run_evidence import cost_of, limits, missed_of, rule_counts, took, union_of
from mecharule_ops.facts.unit_facts import SAID_SURE, explanation, unit_parts
from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.chain import Chain
from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.numbers import of_n, plural, sentence
from mecharule_ops.pages import as_text, drawing, html
from mecharule_ops.pages.document import Block, Card, Section, Table, Verbatim
from mecharule_ops.pages.plots import MAP, NARROW, SLIDE, figures, finding_plots
from mecharule_ops.pages.rows import UnitRow, kept_aside, unit_row, unit_rows
from mecharule_ops.rules.families import UnitRule

WIDEST = 100
"""Text is never wider, so that it pastes into an e-mail or a README."""


def report_text(findings: Findings, width: int = WIDEST) -> str:
    """The report as plain text with aligned tables, never wider than `width`."""
    return as_text.text_of(_title(findings), report_sections(findings), width)


def report_page(findings: Findings, examples: Examples = NONE_TOLD) -> str:
    """The report as one self-contained HTML page, its plots inlined as SVG; no script and no external address."""
    drawn = figures(findings, of_strongest(findings, examples))
    sections = [*report_sections(findings, examples), *to_copy(findings)]
    return html.html_of(_title(findings), sections, drawn, top_line(findings))


def write_page(findings: Findings, examples: Examples, file: str | Path) -> None:
    """The page, and what was found as a slide beside it, SVG and PDF, where it has one. Raises `StoreError`."""
    file = plain_text.write_file(file, report_page(findings, examples))
    if slide := finding_plots(findings, of_strongest(findings, examples)).get(SLIDE):
        plain_text.write_file(file.with_suffix(".svg"), drawing.standalone(drawing.draw(SLIDE, *slide)))
        plain_text.write_file(file.with_suffix(".pdf"), drawing.saved(SLIDE, *slide, "pdf"))


def _title(findings: Findings) -> str:
    return f"MechaRule report: run {findings.run}"


def report_sections(findings: Findings, examples: Examples = NONE_TOLD) -> list[Section]:
    """The whole report: summary, a card a unit, then what stands behind it, which a page folds."""
    how = [one.intervention for one in findings.searches[:1]]
    replaced = [f"Replacement of ablated units: baseline {one.baseline}, phase {one.phase}." for one in how]
    setting_of = *_each(run_setting.setting(findings)), *replaced, *_each([took(findings)])
    chosen = _each(run_setting.choices(findings))
    sections = [
        *opening_sections(findings, examples, (NARROW, MAP)),
        *_statistics(findings),
        *(search_section(findings, index) for index in range(len(findings.searches))),
        Section(title="Task and run", blocks=(setting_of,), folded=True),
        Section(title="Limits", blocks=(_each(limits(findings)),), folded=True),
        *([Section(title="Named choices", blocks=(chosen,), folded=True)] if chosen else []),
    ]
    words = glossary.explained(as_text.text_of(_title(findings), sections, WIDEST))
    return [*sections, *([Section(title="Words", blocks=(words,), folded=True)] if words else [])]


def to_copy(findings: Findings) -> list[Section]:
    """A paragraph of methods and the shown units as a LaTeX table, for a paper; nothing where none is shown."""
    if not (shown := findings.shown()):
        return []
    noun = " and ".join(dict.fromkeys(f"{unit.search.intervention.basis.row.noun}s" for unit in shown))
    methods = said("report.methods", f=findings, right=of_n(findings.task_score), noun=noun)
    rows = [replace(unit_row(unit), unit=str(unit.neuron)) for unit in shown]
    table = Table.of_rows(UnitRow, rows, ("unit", "kept aside", "above random units", "flips D+", "flips D-"))
    return [Section(title="To copy", blocks=(methods, Verbatim(as_text.latex_of(table))), folded=True)]


def _each(stated: Iterable[Stated]) -> tuple[str, ...]:
    return tuple(sentence(text) for _, _, text in stated)


def _told(stated: Iterable[Stated]) -> str:
    """The sentences of facts as one paragraph."""
    return " ".join(_each(stated))


def opening_sections(
    findings: Findings, examples: Examples = NONE_TOLD, drawn: tuple[str, ...] = (MAP,)
) -> list[Section]:
    """What is read first: the summary, then the τ-agonists of all searches, a card each."""
    told = in_short(findings, of_strongest(findings, examples))
    found = tuple(f"{part}. {text}" for part, text in told.items())
    summary = Section(title="Summary", blocks=(*opening(findings), *found), opening=drawn)
    named = zip(searches.search_titles(findings), findings.searches, strict=True)
    if blocks := [block for name, outcome in named for block in _cards_of(findings, outcome, name, examples)]:
        return [summary, Section(title="Units", blocks=(said("report.cards.key"), *blocks))]
    return [summary]


def _cards_of(
    findings: Findings, outcome: SearchOutcome, name: str, examples: Examples
) -> Iterator[str | Card]:
    """The shown units of a search by rank, then its other τ-agonists, the suggestive ones first."""
    told = [unit for unit in findings.units_of(outcome) if unit.is_tau_agonist or unit.account]
    shown = [unit for unit in told if unit.is_shown]
    others = told[len(shown) :]
    risk = ", a risk" if searches.is_risk(findings, outcome) else ""
    if shown:
        yield f"{name}: {plural(len(shown), 'unit')} shown{risk}, by the lower bound of what it flips."
    yield from (_card(findings, unit, examples) for unit in shown)
    if others:
        yield f"{name}{risk}: {plural(len(others), 'unit')} {shown_units.NOT_SHOWN}, the suggestive first."
    yield from (_card(findings, unit, examples) for unit in others)


def _card(findings: Findings, unit: Unit, examples: Examples) -> Card:
    """What it flips of answers kept aside beside random units, an example; then what happens, how sure, when, how."""
    neuron, regime, evidence, ran = unit.neuron, unit.search.regime, unit.evidence, unit.controls
    example, source = examples.get((neuron, regime)), f"run:{findings.run}"
    sure = (
        shown_units.evidence_words(findings, unit),
        *([f"it {drawn}"] if (drawn := shown_units.resampled_words(unit)) else ()),
        *([said("unit.again", found=shown_units.again_words(unit))] if unit.again else ()),
        *(control_parts(ran, unit.estimate, findings.tau) if ran else ()),
    )
    told = [fact(text[:1].upper() + text[1:], source, part=SAID_SURE) for text in sure[1:]]
    first = [*([example] if example else []), fact(sure[0], source, part=SAID_SURE), *told]
    opened = account_section(findings.run, neuron, regime, unit.account, unit.chain, unit.rule, first)
    held_out, rank = unit.search.held_out, shown_units.rank_words(unit)
    beside = kept_aside(unit_row(unit)), rank, str(example.value if example else "")
    return Card(
        row=(shown_units.marked(unit), *beside),
        rate=evidence.flips.flips / evidence.flips.n if evidence else None,
        beside=held_out.rate_of_random(findings.alpha) if held_out else None,
        shown=unit.is_shown,
        opened=opened,
    )


def _statistics(findings: Findings) -> list[Section]:
    """Every τ-agonist with its counts and bounds in one folded table; how many learned rules are shown."""
    columns = "search", "unit", "kept aside", "flips D+", "flips D-", "strength"
    rows = [row for row in unit_rows(findings) if row.is_tau_agonist]
    blocks: list[Block] = [Table.of_rows(UnitRow, rows, columns), said("report.units.key", f=findings)]
    if any(outcome.rules for outcome in findings.searches):
        blocks.append(_told(rule_counts(findings)))
    return [Section(title="Statistics", blocks=tuple(blocks), folded=True)] if rows else []


def search_section(findings: Findings, index: int) -> Section:
    """One search: its split, status, layers, units that are not ruled out, what it missed and took."""
    outcome, name = findings.searches[index], searches.search_names(findings)[index]
    status = " ".join(map(sentence, (outcome.slice_status, *outcome.status)))
    blocks: list[Block] = [_told(run_setting.splitter_of(findings, outcome)), status]
    if not outcome.tau_agonists:
        blocks.append(f"Negative result: {negative(findings, outcome)}")
    elif outcome.whole_layers:
        blocks.append(sentence(whole_layer_words(findings, outcome)))
    bases = {each.intervention.basis for each in findings.searches}
    if advice := tuple(suggestions(findings, outcome, bases)):
        blocks += ["What to try next:", advice]
    blocks += [_weak(findings, outcome)]
    blocks += [_told(of(findings, outcome)) for of in (union_of, missed_of, cost_of)]
    shown = tuple(block for block in blocks if block)
    return Section(title=f"Search {index + 1}: {name}", blocks=shown, folded=True)


def _weak(findings: Findings, outcome: SearchOutcome) -> str:
    """The units that are not ruled out: how many, and how little that takes; empty where none is."""
    weak = [unit for unit in findings.units_of(outcome) if not unit.is_tau_agonist]
    if not weak:
        return ""
    least = min(weak, key=lambda unit: unit.estimate.strength)
    are = f"{plural(len(weak), 'unit')} {'is' if len(weak) == 1 else 'are'}"
    return said("report.not_ruled_out", f=findings, are=are, unit=least.neuron, flips=flips.unit_flips(least))


def account_section(
    run: str,
    unit: types.Neuron,
    regime: types.Regime,
    account: Account | None,
    chain: Chain | None,
    rule: UnitRule | None = None,
    first: Sequence[Fact] = (),
) -> Section:
    """The section of one unit, after what is said of it `first`; `chain` is None where it was not traced.

    `rule` is the one that is told where it has no account.
    """
    parts = unit_parts(unit, account, chain, run, rule)
    leads, ways = (drawing.figure_stem(kind, regime, unit) for kind in ("account", "chain"))
    facts = (*first, *explanation(parts))
    asked = f"{unit} --parts {'drive,chain' if chain else 'drive'} --regime {regime.value}"
    numbers = [f"All its numbers: `mecharule explain {run} {asked}`."] if account else []
    return Section(
        title=f"When and why {unit} flips ({regime.arrow})",
        blocks=(*answer_text.lines(facts), answer_text.proof(facts), *numbers),
        figures=(f"{leads}-leads", f"{ways}-writes", f"{ways}-reads"),
    )
