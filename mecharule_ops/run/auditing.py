"""Bounds what a search missed: pruned units drawn at random and tested alone on the run's own slices.

Beyond the paper, which reports recall only where brute force was run. How a bound follows is told in `cha.audit`.
After a guided search the strata are those of the predicted rate, and drawn units are ruled out by a part of the
examples, in an order of the audit's own; so the same money draws more of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mecharule_ops.cha.audit import Audit, AuditResult, AuditSettings, pruned_together
from mecharule_ops.findings.counts import SearchAudit
from mecharule_ops.run.driver import found_event
from mecharule_ops.run.journal import Journal, Stage
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.localise import Localised, flips_on
from mecharule_ops.run.planning import audit_settings, audit_strata, audit_tests
from mecharule_ops.state.search_id import search_id
from mecharule_ops.types import GroupAnswer, Neuron


def audited(run: Run, journal: Journal, found: Localised) -> Localised:
    """The search with what its audit says; as it was when brute force ran, it was cut short, or nothing was pruned.

    Cost: at most one singleton test for each unit that is drawn or was pruned with a τ-agonist that is met, less what
    is stored. Raises `AblationStopped`.
    """
    strata = audit_strata(found.plan, found.trees, found.candidates)
    population = sum(map(len, strata.values()))
    tests = audit_tests(run.config, population)
    if found.exhaustive or not found.complete or not tests:
        return found
    where = f"{found.basis.value} {found.regime.arrow}"
    settings = audit_settings(run.config, found.plan, tests, population)
    with journal.stage(f"audit {where}", settings.budget, "ablations") as stage:
        result = _drawn(run, found, strata, settings, stage)
        trees = {tree.layer: tree for tree in found.trees}
        agonists = tuple(
            trees[neuron.layer].agonist(neuron, estimate, estimate.ucb(run.config.slice_alpha))
            for neuron, estimate in result.found.items()
        )
        for agonist in agonists:
            search = search_id(found.plan.kind, found.regime, found.basis, agonist.neuron.layer)
            journal.emit(found_event(search, agonist))
        known = sum(agonist.is_tau_agonist for agonist in found.agonists)
        audit = SearchAudit.of(result, agonists, known=known, exact=not settings.slip)
        stage.summary = audit.summary
    return replace(found, audit=audit)


def _drawn(
    run: Run, found: Localised, strata: dict[str, list[Neuron]], settings: AuditSettings, stage: Stage
) -> AuditResult:
    """Ask the audit's questions until it has none left, those about the same examples together."""
    seed = [run.config.seed, found.regime.value, len(found.trees)]
    together = pruned_together(found.trees, found.basis)
    audit = Audit(strata, settings=settings, rng=np.random.default_rng(seed), together=together)
    associated, unrelated = found.slices.associated, found.slices.unrelated
    if settings.slip:
        order = np.random.default_rng([*seed, 1])
        associated, unrelated = order.permutation(associated), order.permutation(unrelated)
    while questions := audit.ask():
        some, others = questions[0].associated, questions[0].unrelated
        same = [each for each in questions if (each.associated, each.unrelated) == (some, others)]
        estimates = flips_on(
            run,
            found.regime,
            run.intervention(found.basis),
            [(Neuron(found.basis, question.layer, question.channels[0]),) for question in same],
            (associated[some].tolist(), unrelated[others].tolist()),
            stage.progress,
        )
        for question, estimate in zip(same, estimates, strict=True):
            audit.tell(GroupAnswer(node=question.node, estimate=estimate))
    return audit.result
