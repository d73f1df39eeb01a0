"""Bounds what a search missed: pruned units drawn at random and tested alone on the run's own slices.

Beyond the paper, which reports recall only where brute force was run. How a bound follows is told in `cha.audit`.
After a guided search the strata are those of the predicted rate, and drawn units are ruled out by a part of the
examples, in an order of the audit's own; so the same money draws more of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mecharule_ops.cha.audit import Audit, AuditResult, AuditSettings, pruned_together, unsettled
from mecharule_ops.findings.counts import SearchAudit
from mecharule_ops.run.driver import found_event
from mecharule_ops.run.journal import Journal, Stage
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.localise import Localised, flips_on
from mecharule_ops.run.planning import audit_tests
from mecharule_ops.state.search_id import search_id
from mecharule_ops.types import GroupAnswer, GroupQuery, Neuron, Verdict

IN_A_GROUP = "pruned with a group"
ALONE = "tested alone on a part of the examples"
OVERLOOKED = 0.005
"""Chance of overlooking a drawn τ-agonist after a guided search: 40 of 128 examples rule a quiet unit out. For the same
money less draws fewer units, and more widens the bound once agonists are met."""


def audited(run: Run, journal: Journal, found: Localised) -> Localised:
    """The search with what its audit says; as it was when brute force ran, it was cut short, or nothing was pruned.

    Cost: at most one singleton test for each unit that is drawn or was pruned with a τ-agonist that is met, less what
    is stored. Raises `AblationStopped`.
    """
    strata = _by_prediction(found) if found.plan.predictions else _by_ending(found)
    population = sum(map(len, strata.values()))
    tests = audit_tests(run.config, population)
    if found.exhaustive or not found.complete or not tests:
        return found
    where = f"{found.basis.value} {found.regime.arrow}"
    settings = _settings(run, found, tests, population)
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


def _settings(run: Run, found: Localised, tests: int, population: int) -> AuditSettings:
    """What the money of so many exact tests buys; all exact where it buys them for everyone."""
    exact = AuditSettings(
        at_most=0,
        n_associated=len(found.slices.associated),
        n_unrelated=len(found.slices.unrelated),
        tau=run.config.tau,
        budget=tests,
    )
    if not found.plan.predictions or tests >= population:
        return exact
    early = replace(exact, slip=OVERLOOKED)
    return replace(early, budget=min(population, early.draws_for(tests)))


def _by_ending(found: Localised) -> dict[str, list[Neuron]]:
    """The units whose strength on the full slices is not known, by how the search left them."""
    strata: dict[str, list[Neuron]] = {IN_A_GROUP: [], ALONE: []}
    for tree, candidates in zip(found.trees, found.candidates.layers, strict=True):
        dropped = {node.channels[0] for node in tree.nodes if node.verdict is Verdict.DROPPED}
        for neuron in unsettled(tree, candidates, found.basis, len(found.examples)):
            strata[ALONE if neuron.channel in dropped else IN_A_GROUP].append(neuron)
    return {name: units for name, units in strata.items() if units}


def _by_prediction(found: Localised) -> dict[str, list[Neuron]]:
    """The same units by what was predicted of them."""
    some = found.plan.settings.tau / 4
    names = "predicted to flip nothing", "predicted to flip less", f"predicted to flip {some:.0%} or more"
    strata: dict[str, list[Neuron]] = {name: [] for name in reversed(names)}
    layers = zip(found.trees, found.candidates.layers, found.plan.predictions, strict=True)
    for tree, candidates, prediction in layers:
        strength = dict(zip(candidates.channels.tolist(), prediction.strength.tolist(), strict=True))
        for neuron in unsettled(tree, candidates, found.basis, len(found.examples)):
            rate = strength[neuron.channel]
            strata[names[(rate > 0) + (rate >= some)]].append(neuron)
    return {name: units for name, units in strata.items() if units}


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
        same = [each for each in questions if _ranges(each) == _ranges(questions[0])]
        estimates = flips_on(
            run,
            found.regime,
            run.intervention(found.basis),
            [(Neuron(found.basis, question.layer, question.channels[0]),) for question in same],
            (associated[questions[0].associated].tolist(), unrelated[questions[0].unrelated].tolist()),
            stage.progress,
        )
        for question, estimate in zip(same, estimates, strict=True):
            audit.tell(GroupAnswer(node=question.node, estimate=estimate))
    return audit.result


def _ranges(question: GroupQuery) -> tuple[range, range]:
    return question.associated, question.unrelated
