"""Refinement of a finished run: units without a good rule, put to a suggester; HQ-T before and after.

Nothing is ablated: the flips of each unit on D_b are in the run file since its rules were anchored. Units are chosen
on train records alone, since the held-out ones decide afterwards. What is found is stored apart from the findings,
which stay as they were.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

import prompts
from agent.graph import checkpoints, refinement_graph, run_to_end
from agent.refining.refinement_state import (
    RefinementInput,
    RefinementRuntime,
    Suggester,
    UnitCase,
    UnitReport,
)
from agent.refining.suggesting import PROMPT, StoredSuggester, validated_mcc
from mecharule_ops.codec import canonical_json
from mecharule_ops.errors import UsageError
from mecharule_ops.events import Event, RefinementFinished
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.refinement import refined_texts
from mecharule_ops.store.keys import REFINEMENTS
from mecharule_ops.store.ledger import Ledger
from mecharule_ops.tasks.meanings import meanings_of
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
    spent: bool = False
    """The budget ended it."""

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
    runtime = _runtime(run, suggester, cases, Ledger(run.store, emit))
    begin: RefinementInput = {"units": list(cases), "rounds": rounds}
    with checkpoints(run.store.path) as saver:
        ended = run_to_end(refinement_graph(saver), begin, runtime, f"refinement-{key}-{len(earlier)}")
    reports = ended.get("reports", [])
    record = {
        "key": key,
        "proposer": suggester.name,
        "rounds": rounds,
        "prompts": {PROMPT: prompts.load(PROMPT).record()},
        "reports": reports,
    }
    run.store.put(REFINEMENTS, [*history, record])
    refined = replace(_refined(run, suggester, reports), spent=ended.get("spent", False))
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


def played_again(run: Run) -> Refined:
    """The latest refinement once more, with the words that were said then; no model is asked and nothing is stored.

    The same words through the same tests give the same reports. Raises `UsageError` when there is none.
    """
    history = run.store.get(REFINEMENTS) if run.store.has(REFINEMENTS) else []
    if not history or "rounds" not in history[-1]:
        raise UsageError(f"expected a refinement to play again; run `mecharule refine {run.id}` first")
    last = history[-1]
    said = {f"{report['unit']} {report['arrow']}": report["said"] for report in last["reports"]}
    suggester = StoredSuggester(name=last["proposer"], said=said)
    cases = cases_of(run, len(said))
    begin: RefinementInput = {"units": list(cases), "rounds": last["rounds"]}
    runtime = _runtime(run, suggester, cases, Ledger(run.store))
    ended = run_to_end(refinement_graph(), begin, runtime, "again")
    return _refined(run, suggester, ended.get("reports", []))


def _runtime(run: Run, suggester: Suggester, cases: dict[str, UnitCase], ledger: Ledger) -> RefinementRuntime:
    return RefinementRuntime(
        suggester=suggester,
        cases=cases,
        ledger=ledger,
        seed=run.config.seed,
        threshold=run.findings.mcc_floor,
        coverage=run.findings.coverage_floor,
    )


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
        case = case_of(run, search, rule)
        if validated_mcc(case, (), run.config.seed) < findings.mcc_floor:
            cases[f"{case.unit} {case.arrow}"] = case
    return cases


def case_of(
    run: Run, search: SearchOutcome, anchored: AnchoredRule, without: Collection[str] = ()
) -> UnitCase:
    """An anchored unit with its flips; its vocabulary as anchoring had it, or as it would be `without` some texts."""
    eligible = run.eligible(search.regime)
    flips = run.flips([(anchored.neuron,)], eligible, search.regime)[0]
    known = [text for text in run.vocabulary["kept"] if text not in without]
    texts = refined_texts(run, eligible, flips, known)
    return UnitCase(
        unit=str(anchored.neuron),
        arrow=search.regime.arrow,
        columns={name: np.asarray(column)[eligible] for name, column in run.columns.items()},
        flips=flips,
        train=run.train[eligible],
        vocabulary=tuple(texts),
        prompt_columns=run.task.prompt_columns,
        anchored=anchored,
        meanings=meanings_of(run.task),
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
