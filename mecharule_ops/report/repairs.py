"""One repair as a document: the test result, the gates, controls in the same table, examples, limits."""

from __future__ import annotations

from mecharule_ops.findings.repair import Repair, TextEffect
from mecharule_ops.mcnemar import Paired
from mecharule_ops.numbers import percent
from mecharule_ops.report.document import Block, Bullets, Document, Section, Table
from mecharule_ops.saying.repair import (
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
        sections.append(Section(title=ON_TEST, blocks=(_comparison(found),)))
        sections.append(Section(title="On other text", blocks=_on_other_text(found)))
    if found.pairs:
        sections.append(Section(title="Units whose gates fire together", blocks=(_pairs(found),)))
    if found.examples:
        shown = concealed_sentence(found) if concealed else _examples(found)
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
    return Table(
        header=("unit", "fires where", "gain", "fixed", "broken", "fired", *(["by"] if proposed else [])),
        rows=tuple(
            (
                str(gate.unit),
                gate.rule,
                f"{gate.gain:+.3f}",
                str(gate.fixed),
                str(gate.broken),
                str(gate.fired),
                *(["proposed" if place in proposed else "learned"] if proposed else []),
            )
            for place, gate in enumerate(found.gates)
        ),
        align="llrrrrl" if proposed else "llrrrr",
    )


def compared(found: Repair) -> tuple[tuple[str, Paired], ...]:
    """The gates, hindsight and every control by name, on the test records; empty where those were not opened."""
    if found.test is None:
        return ()
    rows = [("the gates", found.test)]
    if found.hindsight is not None:
        rows.append(("the best of their units, known afterwards", found.hindsight))
    rows += [(f"{one.kind.value}{f': {one.name}' if one.name else ''}", one.result) for one in found.controls]
    return tuple(rows)


def _comparison(found: Repair) -> Table:
    """What was compared, one line each."""
    header = ("what", "after", "change [95 %]", "changed answers", "p", "acts on")
    rows = tuple(_line(name, result) for name, result in compared(found))
    return Table(header=header, rows=rows, align="lrrlrr")


def _on_other_text(found: Repair) -> tuple[Block, ...]:
    """The sentence, and a line a text: what the gates do, and what their strongest unit would, always ablated."""
    said = elsewhere_sentence(found)
    if not found.elsewhere:
        return (said,)
    return (
        said,
        Table(
            header=(
                "text",
                "a gate acts on",
                "KL",
                "perplexity",
                "worst unit, always ablated",
                "KL",
                "perplexity",
            ),
            rows=tuple(
                (
                    one.name,
                    f"{one.acted} of {one.prompts}",
                    nats_words(one.gated.kl),
                    _perplexity(one.gated),
                    str(one.worst),
                    nats_words(one.always.kl),
                    _perplexity(one.always),
                )
                for one in found.elsewhere
            ),
            align="lrrrlrr",
        ),
    )


def _perplexity(effect: TextEffect) -> str:
    return f"{effect.before:.2f} → {effect.after:.2f}"


def _pairs(found: Repair) -> Table:
    """On the choose records where both fire: the one that acts alone, both, and what the second adds."""
    return Table(
        header=("acts", "and", "records", "alone", "both", "what the second adds"),
        rows=tuple(
            (
                str(one.first),
                str(one.second),
                str(one.alone.n),
                changed_words(one.alone),
                changed_words(one.both),
                points_words(one.added),
            )
            for one in found.pairs
        ),
        align="llrllr",
    )


def _line(name: str, result: Paired) -> tuple[str, ...]:
    return (
        name,
        percent(result.after / result.n),
        points_words(result),
        changed_words(result),
        p_words(result.p_value),
        percent(result.acted_share),
    )


def _examples(found: Repair) -> Table:
    return Table(
        header=("", "prompt", "unit", "before", "after"),
        rows=tuple(
            (
                "fixed" if one.fixed else "broken",
                one.prompt[-60:],
                "+".join(map(str, (one.unit, *one.others))),
                one.before,
                one.after,
            )
            for one in found.examples
        ),
        align="lllll",
    )
