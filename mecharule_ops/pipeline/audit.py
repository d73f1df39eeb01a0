"""Bounds what a search missed: pruned units drawn at random and tested exactly on the run's own slices.

Beyond the paper, which reports recall only where brute force was run. How a bound follows is told in `cha.audit`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mecharule_ops.cha.audit import Audit, AuditResult, AuditSettings, unsettled
from mecharule_ops.events import AgonistFound
from mecharule_ops.findings.records import SearchAudit
from mecharule_ops.pipeline.journal import Journal
from mecharule_ops.pipeline.localise import Localised, slice_estimates
from mecharule_ops.pipeline.pricing import audit_tests
from mecharule_ops.pipeline.run import Run
from mecharule_ops.state.search_id import CHA, search_id
from mecharule_ops.types import Agonist, GroupAnswer, Neuron, Verdict

IN_A_GROUP = "pruned with a group"
ALONE = "tested alone on a part of the examples"


def audited(run: Run, journal: Journal, found: Localised) -> Localised:
    """The search with what its audit says; as it was when brute force ran, it was cut short, or nothing was pruned.

    Cost: one exact singleton test a drawn unit, less what is stored. Raises `AblationStopped`.
    """
    strata = _strata(found)
    tests = audit_tests(run.config, sum(map(len, strata.values())))
    if found.exhaustive or not found.complete or not tests:
        return found
    where = f"{found.basis.value} {found.regime.arrow}"
    with journal.stage(f"audit {where}", tests, "ablations") as stage:
        result = _drawn(run, journal, found, strata, tests, stage.name)
        agonists = [
            Agonist(
                neuron=neuron,
                regime=found.regime,
                estimate=estimate,
                ucb=estimate.ucb(run.config.slice_alpha),
                tau=run.config.tau,
                epsilon=run.config.epsilon,
            )
            for neuron, estimate in result.found.items()
        ]
        for agonist in agonists:
            journal.emit(_event(agonist))
        stage.summary = result.sentence
    audit = SearchAudit.of(result.strata, tuple(agonists), result.missed_at_most, result.confidence)
    return replace(found, audit=audit)


def _strata(found: Localised) -> dict[str, list[Neuron]]:
    """The units whose strength on the full slices is not known, by how the search left them."""
    strata: dict[str, list[Neuron]] = {IN_A_GROUP: [], ALONE: []}
    for tree in found.trees:
        dropped = {node.channels[0] for node in tree.nodes if node.verdict is Verdict.DROPPED}
        for neuron in unsettled(tree, found.basis, len(found.examples)):
            strata[ALONE if neuron.channel in dropped else IN_A_GROUP].append(neuron)
    return {name: units for name, units in strata.items() if units}


def _drawn(
    run: Run, journal: Journal, found: Localised, strata: dict[str, list[Neuron]], tests: int, stage: str
) -> AuditResult:
    """Ask the audit's questions until it has none left."""
    audit = Audit(
        strata,
        settings=AuditSettings(
            at_most=0,
            n_associated=len(found.slices.associated),
            n_unrelated=len(found.slices.unrelated),
            tau=run.config.tau,
            budget=tests,
        ),
        rng=np.random.default_rng([run.config.seed, found.regime.value, len(found.trees)]),
    )
    intervention = run.intervention(found.basis)
    while questions := audit.ask():
        groups = [(Neuron(found.basis, question.layer, question.channels[0]),) for question in questions]
        estimates = slice_estimates(run, found.slices, intervention, groups, journal.progress(stage))
        for question, estimate in zip(questions, estimates, strict=True):
            audit.tell(GroupAnswer(node=question.node, estimate=estimate))
    return audit.result


def _event(agonist: Agonist) -> AgonistFound:
    return AgonistFound(
        search=search_id(CHA, agonist.regime, agonist.neuron.basis, agonist.neuron.layer),
        regime=agonist.regime.value,
        neuron=str(agonist.neuron),
        strength=agonist.estimate.strength,
        ucb=agonist.ucb,
        signed_selectivity=float(np.nan_to_num(agonist.estimate.signed_selectivity)),
        is_tau_agonist=agonist.is_tau_agonist,
    )
