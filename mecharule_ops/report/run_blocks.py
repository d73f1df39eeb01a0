"""What a run was: model, task, thresholds and versions, as one table."""

from __future__ import annotations

from collections.abc import Mapping

from mecharule_ops.findings.records import Findings
from mecharule_ops.numbers import k_of_n
from mecharule_ops.report.document import Block, Table
from mecharule_ops.saying.searches import shared_replacement
from mecharule_ops.types import Value


def run_blocks(findings: Findings) -> tuple[Block, ...]:
    """A row a setting."""
    counts = findings.predicates
    rows = (
        ("model", f"{findings.model} (hash {findings.model_hash})"),
        ("tokenizer hash", findings.tokenizer_hash),
        ("task", findings.task),
        ("task settings", listing(findings.task_settings)),
        ("task score", f"{k_of_n(findings.task_score)} of the records, unablated"),
        ("replacement", shared_replacement(findings) or "differs by search; see their titles"),
        (
            "thresholds",
            f"τ {findings.tau:g}, ε {findings.epsilon:g}, α {findings.alpha:g} {findings.alpha_policy}",
        ),
        ("predicates", f"{counts.proposed} proposed, {counts.refused} refused, {counts.kept} kept"),
        ("proposer", findings.proposer),
        ("seed", str(findings.seed)),
        ("versions", listing(findings.versions)),
    )
    return (Table(header=("setting", "value"), rows=rows, align="ll"),)


def listing(entries: Mapping[str, Value]) -> str:
    """The entries in one line, by name: `numpy 2.3.5, torch 2.13.0`; `none recorded` when there are none."""
    return ", ".join(f"{key} {_shown(value)}" for key, value in sorted(entries.items())) or "none recorded"


def _shown(value: Value) -> str:
    """A value as printed; text with blanks or none is quoted, so that its ends can be seen."""
    text = str(value)
    return repr(value) if isinstance(value, str) and text.split() != [text] else text
