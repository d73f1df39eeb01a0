"""All stages of the method, composed; the only module that sees them all (paper, figure 2).

task → records → predicates → rule → slices → candidates → CHA trees → agonists → anchored rules → findings.
Every ablation is stored as it is made, so a run that was killed continues where it was: a repeated search asks
the same questions and the file answers them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product

from mecharule_ops.engine.group_questions import Group
from mecharule_ops.engine.guard import check_intervention
from mecharule_ops.errors import AblationStopped, UsageError
from mecharule_ops.events import Event, Price, RunFinished, RunStarted
from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.as_json import to_json
from mecharule_ops.findings.chain import Chain
from mecharule_ops.findings.measures import flip_overlaps
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.findings.suppression import RISKY
from mecharule_ops.numbers import plural
from mecharule_ops.predicates.proposer import Proposer
from mecharule_ops.rules.families import AnchoredRule
from mecharule_ops.run.accounting import account_units
from mecharule_ops.run.auditing import audited
from mecharule_ops.run.certify import certify_each
from mecharule_ops.run.chains import kept_chain, plan
from mecharule_ops.run.controlling import controls, held_out_flips, judged_events, same_layers
from mecharule_ops.run.journal import Journal
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.localise import (
    Localised,
    localise,
    not_searched,
    rank_candidates,
    whole_layers,
)
from mecharule_ops.run.opening import keep
from mecharule_ops.run.planning import price
from mecharule_ops.run.predicting import search_plan
from mecharule_ops.run.preparation import prepare
from mecharule_ops.run.summing_up import run_findings, run_status, search_outcome
from mecharule_ops.run.unit_flips import (
    anchor_rules,
    coverage,
    share_of_union,
    tell_rule,
)
from mecharule_ops.slices import CompactSlices
from mecharule_ops.store import keys
from mecharule_ops.tasks.table_check import FEW, too_few, too_small
from mecharule_ops.types import Basis, Regime

PACED = 5
"""Every so many layers one is ablated as a whole before the search, from the last but one down: their pace prices it.

The last one comes first and is not timed where there are others: it pays once for what all later ones find ready.
"""


class PriceDeclined(UsageError):
    """Nobody accepted the price; nothing slow was started."""


def analyse(
    run: Run,
    show: Callable[[Event], None],
    *,
    clock: Callable[[], float],
    approve: Callable[[Price], bool] = lambda price: True,
    proposer: Proposer | None = None,
) -> Findings:
    """Run or continue every stage; returns the findings, which are stored too.

    `show` is told each event, `clock` gives seconds, `approve` is asked once a search with its price,
    `proposer` stands in for the one that the config names.
    Raises `PriceDeclined`, `AblationStopped` before the first search, or what a stage raises; what was stored stays.
    """
    hide = run.suppression
    journal = Journal(run.store, show, clock, told_as=hide.event if hide else lambda event: event)
    try:
        journal.emit(_started(run))
        run.told_where = journal.notice
        prepare(run, journal, proposer)
        outcomes: list[SearchOutcome] = []
        for basis, regime in product(run.config.bases, run.regimes):
            if reason := _over(run) if outcomes else "":
                journal.notice(f"{basis.value} {regime.arrow}: not searched, {reason}")
                continue
            outcomes.append(_cell(run, journal, basis, regime, approve))
        findings = run_findings(run, tuple(outcomes), journal.stages)
        for rule in (rule for search in findings.searches for rule in search.anchored):
            tell_rule(journal, rule)
        findings = replace(findings, chains=_chains(run, journal, findings))
        findings = hide.findings(findings) if hide else findings
        run.store.put(keys.FINDINGS, to_json(findings))
        journal.emit(RunFinished(run=run.id, status=run_status(findings)))
        return findings
    finally:
        journal.flush()


def _chains(run: Run, journal: Journal, findings: Findings) -> tuple[Chain, ...]:
    """How the flips of the units of each regime that are explained come about, the first by their bound."""
    found: list[Chain] = []
    for regime in run.regimes:
        if run.should_stop() or (run.suppression and regime is RISKY):
            continue
        for unit in [each.neuron for each in findings.explained(regime)][: run.config.chains_for]:
            with journal.stage(f"chain of {unit} {regime.arrow}") as stage:
                known = run.chain(unit, regime)
                stage.reused = known is not None
                asked = plan(run, findings, unit, regime, layers=False)
                with suppress(AblationStopped):
                    found.append(known or kept_chain(run, asked, partial(keep, run, emit=journal.emit)))
                stage.summary = f"{len(asked.holds)} units or groups held, {len(asked.partners)} pairs"
    return tuple(found)


def _started(run: Run) -> RunStarted:
    config, task, told = run.config, run.task, ("model", "baseline", "regimes", "slice_size")
    return RunStarted(
        run=run.id,
        task=task.name,
        basis="+".join(config.bases),
        phase=config.phase or task.phase,
        **{name: getattr(config, name) for name in (*told, "tau", "epsilon", "alpha")},
    )


def _over(run: Run) -> str:
    """Why no further search may begin; empty when one may."""
    if run.should_stop():
        return "the run was stopped"
    budget = run.config.budget
    return "the budget is spent" if budget is not None and run.cost.group_evaluations >= budget else ""


def _cell(
    run: Run, journal: Journal, basis: Basis, regime: Regime, approve: Callable[[Price], bool]
) -> SearchOutcome:
    """Slices, attribution, guard, search, audit, rules and controls of one basis and regime.

    A stop after the search has begun leaves what was found without rules and controls.
    """
    slices = run.slices(regime)
    journal.notice(f"{basis.value} {regime.arrow}: {slices.sentence}")
    if not slices.positions:
        return search_outcome(run, not_searched(run, basis, slices))
    candidates = rank_candidates(run, journal, basis, slices)
    with journal.stage(f"no-op guard {basis.value}") as stage:
        intervention = run.intervention(basis)
        table = run.replacement(intervention)
        guard = check_intervention(run.subject, run.task, run.records, intervention, table)
        stage.summary = guard.sentence
    plan = search_plan(run, journal, candidates, slices)
    stuck = all(named.search.done for named in plan.searches(candidates, regime))
    if little := _too_little(run, regime, slices, stuck):
        journal.notice(little, level="warning")
    if stuck:
        return search_outcome(run, localise(run, journal, candidates, slices, plan))
    *others, last = candidates.layers
    if others:
        whole_layers(run, journal, candidates, slices, [last])
    began, before = journal.clock(), run.cost.example_forwards
    whole_layers(run, journal, candidates, slices, others[::-PACED] or [last])
    pace = _pace(run, basis, journal.clock() - began, run.cost.example_forwards - before)
    cost = price(run.config, candidates, plan, pace)
    journal.emit(cost)
    where, agreed = f"{basis.value} {regime.arrow}", run.store.find(keys.AGREED) or []
    if not {where, keys.EVERY} & set(agreed) and not approve(cost):
        raise PriceDeclined("expected a yes to the price; add --yes, or --budget N to cap it")
    if where not in agreed:
        run.store.put(keys.AGREED, [*agreed, where])
    found = localise(run, journal, candidates, slices, plan)
    try:
        whole = whole_layers(run, journal, candidates, slices, candidates.layers)
        found = replace(found, whole_layers=whole)
        found = audited(run, journal, found)
        return _explain(run, journal, found)
    except AblationStopped:
        return search_outcome(run, found)


def _too_little(run: Run, regime: Regime, slices: CompactSlices, stuck: bool) -> str:
    """Why a search of so few answers can show or rule out little, with the cure; empty where there are enough.

    `stuck` is one that asks nothing, since no group could be ruled out.
    """
    right, word = len(run.eligible(regime)), run.task.words.of(bool(regime.value))
    halves = sorted((len(slices.associated), len(slices.unrelated)))
    answers = f"{plural(right, f'{word} answer')}, in halves of {halves[0]} and {halves[1]},"
    if stuck:
        small = too_small(answers, slices.required, regime)
        return f"{small}, or test each unit alone (--search exhaustive); no group is asked"
    if right < FEW:
        return too_few(answers, regime)
    return too_small(answers, slices.required, regime) if halves[0] < slices.required else ""


def _pace(run: Run, basis: Basis, seconds: float, forwards: int) -> float:
    """Seconds an example-forward; a resumed run that only read outcomes has the pace measured before.

    NaN where a kill came between those outcomes and their pace.
    """
    if forwards:
        run.store.put(keys.pace(basis), seconds / forwards)
    pace = run.store.find(keys.pace(basis))
    return math.nan if pace is None else pace


def _explain(run: Run, journal: Journal, found: Localised) -> SearchOutcome:
    """Held-out flips, rules, controls, certificates and union coverage of what was localized."""
    where = f"{found.basis.value} {found.regime.arrow}"
    with journal.stage(f"held-out flips {where}") as stage:
        found = replace(found, held_out=held_out_flips(run, found, stage.progress))
        for judged in judged_events(found):
            journal.emit(judged)
        stage.summary = f"{len(found.shown)} of {plural(len(found.evidence), 'τ-agonist')} shown"
    neurons = [agonist.neuron for agonist in found.agonists[: run.config.anchor_for]]
    with journal.stage(f"anchored rules {where}", len(run.eligible(found.regime)), "records") as stage:
        flips = coverage(run, found, neurons, stage.progress)
        anchored = anchor_rules(run, journal, found, flips)
        learned = sum(rule.rule is not None for rule in anchored)
        stage.summary = f"a rule was learned for {learned} of {len(anchored)} units"
    with journal.stage(f"controls {where}") as stage:
        ran = controls(run, found, stage.progress)
        drawn = coverage(run, found, same_layers(run, neurons), stage.progress)
        stage.summary = f"beside {len(ran)} units"
    with journal.stage(f"certificates {where}") as stage:
        named = () if run.suppression and found.regime is RISKY else found.agonists
        strong = [(a.neuron,) for a in named[: run.config.controls_for] if a.is_tau_agonist]
        rules: dict[Group, AnchoredRule | None] = {(rule.neuron,): rule for rule in anchored}
        written = 0
        # What a stop leaves unwritten is certified when somebody asks why; rules and controls are not lost to it.
        with suppress(AblationStopped):
            for certificate in certify_each(run, strong, found.regime, rules=rules):
                keep(run, certificate, journal.emit)
                written += 1
        stage.summary = f"{written} of {len(strong)} written"
    accounts: tuple[Account, ...] = ()
    # What a stop leaves out is made by the next resume; rules and controls are not lost to it.
    with suppress(AblationStopped):
        if not (run.suppression and found.regime is RISKY):
            accounts = account_units(run, journal, found)
    reaching = [agonist.neuron for agonist in found.agonists if agonist.is_tau_agonist]
    return replace(
        search_outcome(run, found),
        anchored=anchored,
        accounts=accounts,
        controls=ran,
        union=share_of_union(flips, found.examples),
        drawn_union=share_of_union(drawn, found.examples),
        layer_union=flips.by_layer(),
        overlaps=flip_overlaps(flips.neurons, flips.flips, reaching),
    )
