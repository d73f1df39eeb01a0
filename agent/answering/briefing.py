"""What a model is told of a run before the question: task, model, the units that were found with their direction."""

from __future__ import annotations

from pathlib import Path

from mecharule_ops.findings.records import Findings
from mecharule_ops.numbers import k_of_n, plural

MOST_UNITS = 10
"""Named a direction, strongest first."""
_LONGEST = 80
"""Characters of the task's example."""


def briefing(findings: Findings, example: str) -> str:
    """A few lines; units whose names the run does not tell are counted alone."""
    shown = example if len(example) <= _LONGEST else f"{example[: _LONGEST - 1]}…"
    lines = [
        f"Task: {findings.task}, for example {shown!r}. Model: {Path(findings.model).name}; unablated it succeeds on "
        f"{k_of_n(findings.task_score)} of the records. τ is {findings.tau:g}."
    ]
    for search in findings.searches:
        units = findings.units_of(search)
        named = [str(unit.neuron) for unit in units[:MOST_UNITS]]
        what = f"{search.intervention.basis} {search.regime.arrow}"
        if search.suppressed or not named:
            lines.append(f"Found in {what}: {plural(len(units), 'unit')}.")
            continue
        more = f" and {len(units) - len(named)} more" if len(units) > len(named) else ""
        lines.append(f"Found in {what}, strongest first: {', '.join(named)}{more}.")
    return "\n".join(lines)
