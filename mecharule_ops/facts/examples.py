"""Answers before and after an ablation, as a certificate holds them."""

from mecharule_ops.certificates.certificate import Certificate, ExampleRow, shown_rows
from mecharule_ops.plain_text import beginning, plain, what_differs
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import find_certificate

_EXAMPLES = 2


def example_of(run: Run) -> str:
    """Answers before and after under the ablation of the strongest unit; empty without one or of a concealed task."""
    unit = run.findings.strongest()
    if unit is None or run.task.concealed:
        return ""
    made = find_certificate(run, (unit.neuron,), unit.search.regime)
    return "" if made is None else f"Without {unit.neuron}: {changed_examples(made, False)[0]}."


def asked_of(certificate: Certificate, show_text: bool) -> list[tuple[str, ExampleRow]]:
    """Each row after its question as it stands before its answer, what all have in common left out."""
    rows = shown_rows(certificate, show_text)
    return list(zip(what_differs([row.prompt for row in rows]), rows, strict=True))


def changed_examples(certificate: Certificate, show_text: bool) -> tuple[str, ExampleRow | None]:
    """Two flipped answers before and after, and one that the ablation leaves alone, which stands behind them."""
    rows = asked_of(certificate, show_text)
    flipped = [f"{asked} {change_words(row)}" for asked, row in rows if row.flipped][:_EXAMPLES]
    spared = next((one for one in rows if one[1].before.text == one[1].after.text), None)
    said = " · ".join(flipped) or "No answer flips"
    if spared is None:
        return said, None
    return f"{said} (unharmed: {spared[0]} {beginning(spared[1].before.text)})", spared[1]


def change_words(row: ExampleRow) -> str:
    """`214 → 241`, each to its first full stop where that tells them apart."""
    before, after = beginning(row.before.text), beginning(row.after.text)
    if before == after:
        before, after = plain(row.before.text), plain(row.after.text)
    return f"{before} → {after}"
