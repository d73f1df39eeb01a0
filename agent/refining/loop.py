"""Refinement of a finished run: units without a good rule, put to a suggester; HQ-T before and after.

Nothing is ablated: the flips of each unit on D_b are in the run file since its rules were anchored. Units are chosen
on train records alone, since the held-out ones decide afterwards. What is found is stored apart from the findings,
which stay as they were.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import prompts
from agent.graph import checkpoints, refinement_graph, run_to_end
from agent.refining.state import RefinementInput, RefinementRuntime, Suggester, UnitCase, UnitReport
from agent.refining.suggesting import PROMPT, validated_mcc
from mecharule_ops.codec import canonical_json
from mecharule_ops.events import Event, RefinementFinished
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.pipeline.refinement import refined_texts
from mecharule_ops.pipeline.run import Run
from mecharule_ops.store.keys import REFINEMENTS
from mecharule_ops.store.ledger import Ledger
from mecharule_ops.types import AnchoredRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Refined:
    """What a refinement came to."""

    proposer: str
    reports: tuple[UnitReport, ...]
    anchored: int
    """Units with an anchored rule in all, refined or not."""
    before: int
    """HQ-T anchors among them."""
    after: int
    reused: bool = False
    """It had been done before and nothing was asked."""

    def sentence(self) -> str:
        """One line."""
        return (
            f"HQ-T anchors among {self.anchored} units: {self.before} before refinement, {self.after} after "
            f"({len(self.reports)} refined by {self.proposer})"
        )


def refine(
    run: Run,
    suggester: Suggester,
    *,
    rounds: int = 3,
    most_units: int = 12,
    again: bool = False,
    emit: Callable[[Event], None] = lambda event: None,
) -> Refined:
    """The run's refinement by a suggester, stored with its name, the prompt's hash and the reports.

    A refinement that was killed continues at its node; one that ended, and was never unable to ask, is read back
    unless `again`. Costs at most `rounds` suggestions a unit. Raises `StoreError` when the run has not finished.
    """
    cases = cases_of(run, most_units)
    history = run.store.get(REFINEMENTS) if run.store.has(REFINEMENTS) else []
    key = _key(suggester.name, rounds, list(cases))
    earlier = [entry for entry in history if entry["key"] == key]
    if earlier and not again and not any(report["failed"] for report in earlier[-1]["reports"]):
        return _refined(run, suggester, earlier[-1]["reports"], reused=True)
    runtime = RefinementRuntime(
        suggester=suggester,
        cases=cases,
        ledger=Ledger(run.store, emit),
        seed=run.config.seed,
        threshold=run.findings.mcc_floor,
        coverage=run.findings.coverage_floor,
    )
    begin: RefinementInput = {"units": list(cases), "rounds": rounds}
    with checkpoints(run.store.path) as saver:
        ended = run_to_end(refinement_graph(saver), begin, runtime, f"refinement-{key}-{len(earlier)}")
    reports = ended.get("reports", [])
    record = {
        "key": key,
        "proposer": suggester.name,
        "prompts": {PROMPT: prompts.load(PROMPT).record()},
        "reports": reports,
    }
    run.store.put(REFINEMENTS, [*history, record])
    refined = _refined(run, suggester, reports)
    emit(
        RefinementFinished(
            proposer=suggester.name,
            units=len(reports),
            anchored=refined.anchored,
            before=refined.before,
            after=refined.after,
        )
    )
    return refined


def cases_of(run: Run, most: int) -> dict[str, UnitCase]:
    """The first `most` anchored units whose rule does not predict unseen train flips, by unit and direction.

    Cost: one rule learned a unit looked at.
    """
    findings, cases = run.findings, dict[str, UnitCase]()
    anchored = [
        (search, rule) for search in findings.searches if not search.suppressed for rule in search.anchored
    ]
    for search, rule in anchored:
        if len(cases) == most:
            break
        case = _case(run, search, rule)
        if validated_mcc(case, (), run.config.seed) < findings.mcc_floor:
            cases[f"{case.unit} {case.arrow}"] = case
    return cases


def _case(run: Run, search: SearchOutcome, anchored: AnchoredRule) -> UnitCase:
    eligible = run.eligible(search.regime)
    flips = run.flips([(anchored.neuron,)], eligible, search.regime)[0]
    texts = refined_texts(run, eligible, flips)
    return UnitCase(
        unit=str(anchored.neuron),
        arrow=search.regime.arrow,
        columns={name: np.asarray(column)[eligible] for name, column in run.columns.items()},
        flips=flips,
        train=run.train[eligible],
        vocabulary=tuple(texts),
        prompt_columns=run.task.prompt_columns,
        anchored=anchored,
    )


def _refined(
    run: Run, suggester: Suggester, reports: Sequence[UnitReport], *, reused: bool = False
) -> Refined:
    """Counts over every anchored rule of the run: those of refined units as reported, the others as they were."""
    findings: Findings = run.findings
    good = {
        (str(rule.neuron), search.regime.arrow): findings.is_hq_t(rule)
        for search in findings.searches
        for rule in search.anchored
    }
    refined = good | {(report["unit"], report["arrow"]): report["good_after"] for report in reports}
    return Refined(
        proposer=suggester.name,
        reports=tuple(reports),
        anchored=len(good),
        before=sum(good.values()),
        after=sum(refined.values()),
        reused=reused,
    )


def _key(proposer: str, rounds: int, units: Sequence[str]) -> str:
    """Eight hex digits that name a refinement."""
    content = canonical_json({"proposer": proposer, "rounds": rounds, "units": list(units)})
    return hashlib.sha256(content.encode("ascii")).hexdigest()[:8]
