"""The report of one run as a document: which sections, in which order, with which facts, tables and figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mecharule_ops.facts.account_facts import explained, explanation
from mecharule_ops.facts.answer_text import lines, proof
from mecharule_ops.facts.fact import Stated
from mecharule_ops.facts.found import in_short, negative, suggestions, whole_layer_words
from mecharule_ops.facts.glossary import explained as words_of
from mecharule_ops.facts.run_evidence import (
    clock,
    cost_of,
    limits,
    missed_of,
    ranks_of,
    rule_count,
    rule_test,
)
from mecharule_ops.facts.run_setting import splitter_of
from mecharule_ops.facts.searches import recall_words, search_names, shared_replacement, tested_all
from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.chain import Chain
from mecharule_ops.findings.counts import RecallRow
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.numbers import k_of_n, of_n, sentence
from mecharule_ops.pages import tables
from mecharule_ops.pages.as_text import text_of
from mecharule_ops.pages.document import Block, Bullets, Document, Section, Table
from mecharule_ops.pages.drawing import figure_stem
from mecharule_ops.pages.model_map import NAME as MAP
from mecharule_ops.pages.tables import AGONIST_KEY, strong_blocks, weak_blocks
from mecharule_ops.types import Value

ROWS = 20
"""Units that are localized only are listed up to here."""
WIDEST = 100
"""Text is never wider, so that it pastes into an e-mail or a README."""


def document(findings: Findings, rows: int = ROWS) -> Document:
    """The whole report: summary, τ-agonists, each search, then cost, run, limits, named choices and words.

    `rows` is the most units that are localized only and listed a search.
    """
    cost = (*(cost_of(findings, search) for search in findings.searches), [clock(findings)])
    sections = [
        *opening_sections(findings),
        *account_sections(findings),
        Section(title="Overview", blocks=(tables.overview(findings), _unions(findings))),
        *(search_section(findings, index, rows) for index in range(len(findings.searches))),
        *_rule_sections(findings),
        Section(title="Cost", blocks=tuple(_told(each) for each in cost)),
        Section(title="Task and run", blocks=(_setting(findings),)),
        Section(title="Limits", blocks=(Bullets(tuple(sentence(said) for _, _, said in limits(findings))),)),
    ]
    if findings.choices:
        chosen = tuple(f"{choice.setting}: {choice.sentence}" for choice in findings.choices)
        sections.append(Section(title="Named choices", blocks=(Bullets(chosen),)))
    title = f"MechaRule report: run {findings.run}"
    if words := words_of(text_of(Document(title=title, sections=tuple(sections)), WIDEST)):
        sections.append(Section(title="Words", blocks=(words,)))
    return Document(title=title, sections=tuple(sections))


def _told(stated: Iterable[Stated]) -> str:
    """The sentences of facts as one paragraph."""
    return " ".join(sentence(said) for _, _, said in stated)


def beginning(findings: Findings) -> tuple[str, ...]:
    """What was asked of which model, and what the task must say in every report."""
    score = "an unknown share" if findings.task_score is None else of_n(findings.task_score)
    success = findings.words.success
    said = f"Run {findings.run}: {findings.task} on {findings.model}, which is {success} on {score}."
    return (said, *findings.notes)


def opening_sections(findings: Findings) -> tuple[Section, ...]:
    """What is read first: the summary, then the τ-agonists of all searches with their controls and rules."""
    found = [f"{part}. {text}" for part, text in in_short(findings).items()]
    summary = Section(title="Summary", blocks=(*beginning(findings), *found), opening=(MAP,))
    blocks: list[Block] = []
    for name, outcome in zip(search_names(findings), findings.searches, strict=True):
        if outcome.tau_agonists:
            blocks += strong_blocks(findings, outcome, name)
    return (summary, Section(title="τ-agonists", blocks=(*blocks, AGONIST_KEY))) if blocks else (summary,)


def _rule_sections(findings: Findings) -> tuple[Section, ...]:
    """Every learned rule, shown or not; nothing where none was learned."""
    tested = [tables.learned(findings, outcome) for outcome in findings.searches]
    blocks: list[Block] = []
    for name, table in zip(search_names(findings), tested, strict=True):
        blocks += [f"{name}:", table] if table.rows else []
    if not blocks:
        return ()
    return (
        Section(
            title="Every learned rule",
            blocks=(_told((rule_count(findings), rule_test(findings))), *blocks),
            folded=True,
        ),
    )


def search_section(findings: Findings, index: int, rows: int = ROWS) -> Section:
    """One search: its split, status, layers, units that are localized only, recall, and its plots."""
    outcome, name = findings.searches[index], search_names(findings)[index]
    status = " ".join(map(sentence, (outcome.slice_status, *outcome.status)))
    blocks: list[Block] = [_told(splitter_of(findings, outcome)), status]
    if not outcome.tau_agonists:
        blocks.append(f"Negative result: {negative(findings, outcome)}")
    elif outcome.whole_layers:
        blocks.append(sentence(whole_layer_words(findings, outcome)))
    bases = {each.intervention.basis for each in findings.searches}
    if advice := suggestions(findings, outcome, bases):
        blocks += ["What to try next:", Bullets(advice)]
    if (layers := tables.layers(findings, outcome)).rows:
        blocks.append(layers)
    if rest := len({whole.layer for whole in outcome.whole_layers} - tables.told_layers(findings, outcome)):
        blocks.append(f"Layers without a localized unit that stay below τ as a whole: {rest}.")
    blocks += [*weak_blocks(findings, outcome, rows), _told(missed_of(findings, outcome))]
    if outcome.exhaustive is not None:
        blocks.append(_recall(outcome))
    blocks.append(_told(ranks_of(findings, outcome)))
    figures = tuple(f"{kind}-{index}" for kind in ("layers", "predicted", "tree"))
    shown = tuple(block for block in blocks if block)
    return Section(title=f"Search {index + 1}: {name}", blocks=shown, figures=figures)


def _unions(findings: Findings) -> str:
    """What both unions are, and on which records they are counted."""
    return (
        "Union flips: records that any localized unit flips; drawn union: that any of as many units drawn from the "
        "same layers flips. Both are counted outside the slices, whose records chose the localized units."
    )


def _recall(outcome: SearchOutcome) -> Table:
    """A row a strength bin: found of the τ-agonists, and of all units that exhaustive search localizes."""
    found = {(row.criterion, _bin(row)): row.found for row in outcome.recall}
    bins = dict.fromkeys(_bin(row) for row in sorted(outcome.recall, key=lambda row: (row.whole, row.low)))
    every = tested_all([outcome])
    rows = tuple(
        (name, *(recall_words(found.get((kind, name)), every=every) for kind in ("point", "ucb")))
        for name in bins
    )
    return Table(
        header=("strength Ê", "found, Ê ≥ τ (τ-agonists)", "found, Û ≥ τ (localized)"), rows=rows, align="lrr"
    )


def _bin(row: RecallRow) -> str:
    return "all" if row.whole else f"[{row.low:.2g}, {row.high:.2g}{']' if row.high == 1.0 else ')'}"


def _setting(findings: Findings) -> Table:
    """A row a setting."""
    counts = findings.predicates
    rows = (
        ("model", f"{findings.model} (hash {findings.model_hash})"),
        ("tokenizer hash", findings.tokenizer_hash),
        ("task", findings.task),
        ("task settings", _listing(findings.task_settings)),
        ("task score", f"{k_of_n(findings.task_score)} of the records, unablated"),
        ("replacement", shared_replacement(findings) or "differs by search; see their titles"),
        (
            "thresholds",
            f"τ {findings.tau:g}, ε {findings.epsilon:g}, α {findings.alpha:g} {findings.alpha_policy}",
        ),
        ("predicates", f"{counts.proposed} proposed, {counts.refused} refused, {counts.kept} kept"),
        ("proposer", findings.proposer),
        ("seed", str(findings.seed)),
        ("versions", _listing(findings.versions)),
    )
    return Table(header=("setting", "value"), rows=rows, align="ll")


def _listing(entries: Mapping[str, Value]) -> str:
    """The entries in one line, by name: `numpy 2.3.5, torch 2.13.0`; `none recorded` when there are none."""
    return ", ".join(f"{key} {_shown(value)}" for key, value in sorted(entries.items())) or "none recorded"


def _shown(value: Value) -> str:
    """A value as printed; text with blanks or none is quoted, so that its ends can be seen."""
    text = str(value)
    return repr(value) if isinstance(value, str) and text.split() != [text] else text


def account_sections(findings: Findings) -> tuple[Section, ...]:
    """One a unit and regime, in the order of the searches; on a page all but the first are folded."""
    sections: list[Section] = []
    for outcome in findings.searches:
        for account in outcome.accounts:
            unit = findings.unit(account.neuron, account.regime)
            chain = None if unit is None else unit.chain
            sections.append(account_section(findings.run, account, chain, folded=bool(sections)))
    return tuple(sections)


def account_section(run: str, account: Account, chain: Chain | None, *, folded: bool = False) -> Section:
    """The section of one unit; `chain` is None where it was not traced."""
    unit, regime = account.neuron, account.regime
    facts = explanation(explained(unit, account, chain, run))
    account_stem, chain_stem = (figure_stem(kind, regime, unit) for kind in ("account", "chain"))
    parts = "drive,chain" if chain else "drive"
    return Section(
        title=f"When and why {unit} flips ({regime.arrow})",
        blocks=(
            *lines(facts),
            proof(facts),
            f"All its numbers: `mecharule explain {run} {unit} --parts {parts} --regime {regime.value}`.",
        ),
        figures=(
            f"{account_stem}-leads",
            *(f"{chain_stem}-{kind}" for kind in ("writes", "reads", "through")),
        ),
        folded=folded,
    )
