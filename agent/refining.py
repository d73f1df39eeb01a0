"""Refinement of a finished run: units without a good rule, put to a language model; HQ-T before and after.

Nothing is ablated: the flips of each unit on D_b are in the run file since its rules were anchored. What the
model adds is stored apart from the findings, which stay as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import prompts
from agent.graph import checkpoints, refinement_graph, run_to_end
from agent.ledger import Ledger
from agent.llm.asking import Asker
from agent.llm.protocol import OnText, unheard
from agent.nodes_refining import PROMPT
from agent.state import RefinementInput, RefinementRuntime, UnitCase, UnitReport
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.pipeline.run import Run
from mecharule_ops.types import AnchoredRule

ARTEFACT = "llm-refinement"


def refine(
    run: Run, asker: Asker, *, rounds: int = 3, most_units: int = 12, on_text: OnText = unheard
) -> tuple[UnitReport, ...]:
    """A report a unit; stored in the run with the model, the prompt's hash and the cost.

    Costs at most `rounds` model requests a unit, retries aside. Raises `StoreError` when the run has not finished.
    """
    cases = {case.unit: case for case in cases_of(run, most_units)}
    ledger = Ledger(run.store)
    runtime = RefinementRuntime(
        asker=asker,
        cases=cases,
        ledger=ledger,
        seed=run.config.seed,
        threshold=run.findings.mcc_floor,
        on_text=on_text,
    )
    begin: RefinementInput = {"units": list(cases), "rounds": rounds}
    with checkpoints(run.store.path) as saver:
        ended = run_to_end(refinement_graph(saver), begin, runtime, "refinement")
    reports = tuple(cast(list[UnitReport], ended.get("reports", [])))
    run.store.put(
        ARTEFACT,
        {
            "model": asker.model.name,
            "prompts": {PROMPT: prompts.load(PROMPT).record()},
            "input_tokens": asker.spent.input_tokens,
            "output_tokens": asker.spent.output_tokens,
            "reports": [dict(report) for report in reports],
        },
    )
    return reports


def summary(reports: Sequence[UnitReport], threshold: float) -> str:
    """One line: how many of the refined units have a good rule before and after."""
    before = sum((report["before"] or -1.0) >= threshold for report in reports)
    after = sum((report["after"] or -1.0) >= threshold for report in reports)
    return f"HQ-T rules among {len(reports)} refined units: {before} before, {after} after"


def cases_of(run: Run, most: int) -> tuple[UnitCase, ...]:
    """The strongest localized units whose rule is missing or below the floors, one regime a unit."""
    findings = run.findings
    cases: dict[str, UnitCase] = {}
    for search in findings.searches:
        for rule in search.anchored:
            if len(cases) < most and str(rule.neuron) not in cases and not findings.is_hq_t(rule):
                cases[str(rule.neuron)] = _case(run, findings, search, rule)
    return tuple(cases.values())


def _case(run: Run, findings: Findings, search: SearchOutcome, rule: AnchoredRule) -> UnitCase:
    eligible = run.eligible(search.regime.value)
    labels = run.engine(search.intervention).labels([(rule.neuron,)], eligible.tolist())
    return UnitCase(
        unit=str(rule.neuron),
        arrow=search.regime.arrow,
        columns={name: column[eligible] for name, column in run.columns.items()},
        flips=labels[0] != bool(search.regime.value),
        train=run.train[eligible],
        vocabulary=tuple(predicate.text for predicate in run.table.predicates),
        prompt_columns=run.task.prompt_columns,
        rule=rule.rule,
        before=None if rule.held_out is None else rule.held_out.mcc,
    )
