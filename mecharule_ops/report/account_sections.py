"""A section of the report for each unit that has an account: when it flips and why, with its figures."""

from __future__ import annotations

from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.chain import Chain
from mecharule_ops.findings.records import Findings
from mecharule_ops.report.document import Section
from mecharule_ops.report.drawing import figure_stem
from mecharule_ops.saying.accounts import explained, explanation


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
    said = " ".join(explanation(explained(unit, account, chain, run)))
    account_stem, chain_stem = (figure_stem(kind, regime, unit) for kind in ("account", "chain"))
    traced = f" and `mecharule path {run} {unit}`" if chain else ""
    return Section(
        title=f"When and why {unit} flips ({regime.arrow})",
        blocks=(said, f"All its numbers: `mecharule account {run} {unit} --regime {regime.value}`{traced}."),
        figures=(
            *(f"{account_stem}-{kind}" for kind in ("leads", "pushes")),
            *(f"{chain_stem}-{kind}" for kind in ("writes", "reads", "graph")),
        ),
        folded=folded,
    )
