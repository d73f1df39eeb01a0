"""The report of one run as a document: which sections, in which order, with which blocks."""

from __future__ import annotations

from mecharule_ops.facts.account_facts import explained, explanation
from mecharule_ops.facts.answer_text import lines, proof
from mecharule_ops.facts.glossary import TERMS
from mecharule_ops.facts.searches import predicted_words, search_names
from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.chain import Chain
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.numbers import plural, sentence, two_decimals
from mecharule_ops.pages import tables
from mecharule_ops.pages.absence import after_audit, negative, suggestions, whole_layer_words
from mecharule_ops.pages.document import Block, Bullets, Document, Section
from mecharule_ops.pages.drawing import figure_stem
from mecharule_ops.pages.limits import limits
from mecharule_ops.pages.model_map import NAME as MAP
from mecharule_ops.pages.run_blocks import cost_blocks, recall_blocks, run_blocks
from mecharule_ops.pages.summary import summary
from mecharule_ops.pages.tables import AGONIST_KEY, strong_blocks, weak_blocks
from mecharule_ops.types import Basis

ROWS = 20
"""Units that are localized only are listed up to here."""

RULES_KEY = (
    "Held-out records select nothing that is fitted; they decide which rules are shown, and that is corrected. Shown: "
    "the interval of the held-out MCC lies above 0, and p is at most α: Fisher's exact test, one-sided, of where the "
    "rule fires against what it predicts, after Holm over every learned rule of the run, all of them listed here."
)

OVERVIEW_KEY = (
    "; ".join(f"{name}: {TERMS[name].short}" for name in ("τ-agonist", "localized", "HQ-T", "HQ-F"))
    + ". Union "
    "flips: records flipped by at least one localized unit, of those tested on all records; drawn union: by as "
    "many units drawn from all of the same layers. "
)


def document(findings: Findings, rows: int = ROWS) -> Document:
    """The whole report: summary, τ-agonists, each search, then cost, run, limits and named choices.

    `rows` is the most units that are localized only and listed a search.
    """
    sections = [
        *opening_sections(findings),
        *account_sections(findings),
        Section(title="Overview", blocks=(tables.overview(findings), OVERVIEW_KEY + _of_unions(findings))),
    ]
    sections += [search_section(findings, index, rows) for index in range(len(findings.searches))]
    sections += [
        *_rule_sections(findings),
        Section(title="Cost", blocks=cost_blocks(findings)),
        Section(title="Task and run", blocks=run_blocks(findings)),
        *_question_sections(findings),
        Section(title="Limits", blocks=(Bullets(limits(findings)),)),
    ]
    if findings.choices:
        chosen = tuple(f"{choice.setting}: {choice.sentence}" for choice in findings.choices)
        sections.append(Section(title="Named choices", blocks=(Bullets(chosen),)))
    return Document(title=f"MechaRule report: run {findings.run}", sections=tuple(sections))


def opening_sections(findings: Findings) -> tuple[Section, ...]:
    """What is read first: the summary, then the τ-agonists."""
    opening = Section(title="Summary", blocks=summary(findings), opening=(MAP,))
    return (opening, *_agonist_sections(findings))


def _agonist_sections(findings: Findings) -> tuple[Section, ...]:
    """The τ-agonists of all searches with their controls and rules; nothing where there is none."""
    blocks: list[Block] = []
    for name, outcome in zip(search_names(findings), findings.searches, strict=True):
        if outcome.tau_agonists:
            blocks += strong_blocks(findings, outcome, name)
    return (Section(title="τ-agonists", blocks=(*blocks, AGONIST_KEY)),) if blocks else ()


def _rule_sections(findings: Findings) -> tuple[Section, ...]:
    """Every learned rule, shown or not; nothing where none was learned."""
    tested = [tables.learned(findings, outcome) for outcome in findings.searches]
    blocks: list[Block] = []
    for name, table in zip(search_names(findings), tested, strict=True):
        blocks += [f"{name}:", table] if table.rows else []
    if not blocks:
        return ()
    return (Section(title="Every learned rule", blocks=(RULES_KEY, *blocks), folded=True),)


def search_section(findings: Findings, index: int, rows: int = ROWS) -> Section:
    """One search: its split, status, layers, units that are localized only, recall, and its plots."""
    outcome, name = findings.searches[index], search_names(findings)[index]
    blocks: list[Block] = [_split_sentence(outcome), " ".join(map(sentence, outcome.status))]
    if not outcome.tau_agonists:
        blocks.append("Negative result: " + negative(findings, outcome))
    elif outcome.whole_layers:
        blocks.append(sentence(whole_layer_words(findings, outcome)))
    advice = (
        *after_audit(outcome),
        *suggestions(findings, outcome, _bases(findings)),
    )
    if advice:
        blocks += ["What to try next:", Bullets(advice)]
    layers = tables.layers(findings, outcome)
    blocks += [layers] if layers.rows else []
    blocks.append(_other_layers(findings, outcome))
    blocks += [*weak_blocks(findings, outcome, rows), *recall_blocks(outcome), predicted_words(outcome)]
    figures = tuple(f"{kind}-{index}" for kind in ("layers", "predicted", "recall", "tree"))
    shown = tuple(block for block in blocks if block)
    return Section(title=f"Search {index + 1}: {name}", blocks=shown, figures=figures)


def _of_unions(findings: Findings) -> str:
    """On which records both unions are counted."""
    if all(search.union_outside for search in findings.searches):
        return "Both are counted outside the slices, whose records chose the localized units."
    return "Both are counted on all records, those of the slices, which chose the localized units, with them."


def _bases(findings: Findings) -> frozenset[Basis]:
    return frozenset(outcome.intervention.basis for outcome in findings.searches)


def _other_layers(findings: Findings, outcome: SearchOutcome) -> str:
    """What holds for the layers that the table leaves out; empty when it has them all."""
    rest = len({whole.layer for whole in outcome.whole_layers} - tables.told_layers(findings, outcome))
    if not rest:
        return ""
    if rest == 1:
        return "One other layer holds no localized unit and stays below τ as a whole."
    return f"{rest} other layers hold no localized unit and stay below τ as a whole."


def _split_sentence(outcome: SearchOutcome) -> str:
    if outcome.splitter is None:
        split = "No rule splits the two slices"
    else:
        score = two_decimals(outcome.splitter_train_mcc)
        split = f"D+ is where the rule {outcome.splitter} fires (train MCC {score}, not held out), D- where it does not"
    note = f" ({outcome.split_note})" if outcome.split_note else ""
    plus, minus = (
        f"{n:,}{f' of {of:,} train records' if of else ' examples'} of {name}"
        for n, of, name in (
            (outcome.associated_n, outcome.associated_of, "D+"),
            (outcome.unrelated_n, outcome.unrelated_of, "D-"),
        )
    )
    return f"{split}{note}. The slices are {plus} and {minus}, {_drawn(outcome)}. {sentence(outcome.slice_status)}"


def _drawn(outcome: SearchOutcome) -> str:
    """How the slices were taken, and so of what their bounds speak."""
    if outcome.at_random:
        return (
            "drawn at random from D+ and D- of the train split: lower bounds on their rates hold over both slices of "
            f"all {plural(outcome.cost.candidates, 'unit')} searched at once, so of the strongest too"
        )
    return (
        f"taken under the condition {outcome.condition} as a cover that keeps what is rare: rates on them are of these "
        "examples alone, and the search's bounds are its pruning rule, no claim about D+ or D-"
    )


def _question_sections(findings: Findings) -> tuple[Section, ...]:
    if not findings.answers:
        return ()
    items = tuple(
        f"{answer.question} {answer.answer} [{', '.join(answer.certificates) or 'unverified'}] "
        f"{answer.verification}"
        for answer in findings.answers
    )
    return (Section(title="Questions answered", blocks=(Bullets(items),)),)


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
            *(f"{account_stem}-{kind}" for kind in ("leads", "pushes")),
            *(f"{chain_stem}-{kind}" for kind in ("writes", "reads", "graph")),
        ),
        folded=folded,
    )
