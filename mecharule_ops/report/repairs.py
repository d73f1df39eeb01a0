"""One repair as a document: the test result, the gates, controls in the same table, examples, limits."""

from __future__ import annotations

from mecharule_ops.findings.repair_outcome import (
    Elsewhere,
    Gate,
    PairEffect,
    Repair,
    ShownExample,
    TextEffect,
)
from mecharule_ops.mcnemar import Paired
from mecharule_ops.numbers import percent
from mecharule_ops.report.document import Block, Bullets, Column, Document, Section, Table
from mecharule_ops.saying.repair_facts import (
    changed_words,
    concealed_sentence,
    deciding_sentence,
    elsewhere_sentence,
    harmless_sentence,
    limits_sentences,
    nats_words,
    overfit_sentence,
    p_words,
    points_words,
    policy_sentence,
    proposed_sentence,
    test_sentence,
)
from mecharule_ops.types import OutcomeWords

RESULT, ON_TEST, EXAMPLES = "Result", "On the test records", "Examples"
"""Titles of the sections that a screen draws in its own way."""


def repair_document(found: Repair, words: OutcomeWords, *, concealed: bool = False) -> Document:
    """The whole report; where prompts and completions are concealed, examples are counted and not shown."""
    summary: list[Block] = [test_sentence(found, words)]
    if found.test is not None:
        summary.append(f"{found.status.value[:1].upper()}{found.status.value[1:]}.")
    summary += filter(None, (deciding_sentence(found), overfit_sentence(found), harmless_sentence(found)))
    if cited := " ".join(f"[c:{one}]" for one in found.certificates):
        summary.append(f"Certificates: {cited}")
    sections = [Section(title=RESULT, blocks=tuple(summary))]
    gates: list[Block] = [gates_table(found), policy_sentence(found)] if found.gates else []
    gates += [said] if (said := proposed_sentence(found)) else []
    if gates:
        sections.append(Section(title="Gates", blocks=tuple(gates)))
    if found.test is not None:
        sections.append(Section(title=ON_TEST, blocks=(Table.of(compared(found), _COMPARED),)))
        texts = (Table.of(found.elsewhere, _ON_OTHER_TEXT),) if found.elsewhere else ()
        sections.append(Section(title="On other text", blocks=(elsewhere_sentence(found), *texts)))
    if found.pairs:
        sections.append(
            Section(title="Units whose gates fire together", blocks=(Table.of(found.pairs, _PAIRS),))
        )
    if found.examples:
        shown = concealed_sentence(found) if concealed else Table.of(found.examples, _EXAMPLES)
        sections.append(Section(title=EXAMPLES, blocks=(shown,)))
    sections.append(
        Section(
            title="What it does not show",
            blocks=(Bullets(limits_sentences(found, harm=words.success_is_harm)),),
        )
    )
    title = (
        f"Repair of run {found.run}: {found.regime.arrow}, {found.basis.value}, {found.family.value} gates"
    )
    return Document(title=title, sections=tuple(sections))


def gates_table(found: Repair) -> Table:
    """The gates in the order in which they were chosen; where some were proposed, whose they are."""
    proposed = () if found.proposed is None else found.proposed.chosen
    columns: list[Column[tuple[int, Gate]]] = [
        ("unit", "l", lambda row: str(row[1].unit)),
        ("fires where", "l", lambda row: row[1].rule),
        ("gain", "r", lambda row: f"{row[1].gain:+.3f}"),
        ("fixed", "r", lambda row: str(row[1].fixed)),
        ("broken", "r", lambda row: str(row[1].broken)),
        ("fired", "r", lambda row: str(row[1].fired)),
    ]
    if proposed:
        columns.append(("by", "l", lambda row: "proposed" if row[0] in proposed else "learned"))
    return Table.of(enumerate(found.gates), columns)


def compared(found: Repair) -> tuple[tuple[str, Paired], ...]:
    """The gates, hindsight and every control by name, on the test records; empty where those were not opened."""
    if found.test is None:
        return ()
    rows = [("the gates", found.test)]
    if found.hindsight is not None:
        rows.append(("the best of their units, known afterwards", found.hindsight))
    rows += [(f"{one.kind.value}{f': {one.name}' if one.name else ''}", one.result) for one in found.controls]
    return tuple(rows)


_COMPARED: tuple[Column[tuple[str, Paired]], ...] = (
    ("what", "l", lambda row: row[0]),
    ("after", "r", lambda row: percent(row[1].after / row[1].n)),
    ("change [95 %]", "r", lambda row: points_words(row[1])),
    ("changed answers", "l", lambda row: changed_words(row[1])),
    ("p", "r", lambda row: p_words(row[1].p_value)),
    ("acts on", "r", lambda row: percent(row[1].acted_share)),
)


def _perplexity(effect: TextEffect) -> str:
    return f"{effect.before:.2f} → {effect.after:.2f}"


_ON_OTHER_TEXT: tuple[Column[Elsewhere], ...] = (
    ("text", "l", lambda one: one.name),
    ("a gate acts on", "r", lambda one: f"{one.acted} of {one.prompts}"),
    ("KL", "r", lambda one: nats_words(one.gated.kl)),
    ("perplexity", "r", lambda one: _perplexity(one.gated)),
    ("worst unit, always ablated", "l", lambda one: str(one.worst)),
    ("KL", "r", lambda one: nats_words(one.always.kl)),
    ("perplexity", "r", lambda one: _perplexity(one.always)),
)
"""What the gates do to a text, and what their strongest unit would, always ablated."""
_PAIRS: tuple[Column[PairEffect], ...] = (
    ("acts", "l", lambda one: str(one.first)),
    ("and", "l", lambda one: str(one.second)),
    ("records", "r", lambda one: str(one.alone.n)),
    ("alone", "l", lambda one: changed_words(one.alone)),
    ("both", "l", lambda one: changed_words(one.both)),
    ("what the second adds", "r", lambda one: points_words(one.added)),
)
"""On the choose records where both fire: the one that acts alone, both, and what the second adds."""
_EXAMPLES: tuple[Column[ShownExample], ...] = (
    ("", "l", lambda one: "fixed" if one.fixed else "broken"),
    ("prompt", "l", lambda one: one.prompt[-60:]),
    ("unit", "l", lambda one: "+".join(map(str, (one.unit, *one.others)))),
    ("before", "l", lambda one: one.before),
    ("after", "l", lambda one: one.after),
)
