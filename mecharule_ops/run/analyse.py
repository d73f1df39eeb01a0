"""All stages of the method, composed; the only module that sees them all (paper, figure 2).

task → records → predicates → rule → slices → candidates → CHA trees → agonists → anchored rules → findings.
Every ablation is stored as it is made, so a run that was killed continues where it was: a repeated search asks
the same questions and the file answers them.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from itertools import product

import numpy as np

from mecharule_ops import errors, events, numbers
from mecharule_ops.codec import decode
from mecharule_ops.config import given_text
from mecharule_ops.engine.guard import check_intervention
from mecharule_ops.engine.outcomes import Group
from mecharule_ops.engine.rounding import Rounding
from mecharule_ops.findings import chain, counts, records
from mecharule_ops.findings.evidence import evidence_of
from mecharule_ops.findings.shown import shown_over
from mecharule_ops.predicates.proposer import Proposer
from mecharule_ops.rules.families import UnitRule
from mecharule_ops.run import accounting, certify, chains, controlling, live_run, localise, opening, planning
from mecharule_ops.run.forecast import UNKNOWN, Forecast
from mecharule_ops.run.journal import Journal
from mecharule_ops.run.preparation import prepare
from mecharule_ops.slices import CompactSlices
from mecharule_ops.store import keys
from mecharule_ops.tasks.table_check import FEW, too_few, too_small
from mecharule_ops.types import Basis, Candidates, Regime, Share

PACED = 5
"""Every so many layers one is ablated as a whole before the search, from the last but one down: their pace prices it.

The last one comes first and is not timed where there are others: it pays once for what all later ones find ready.
"""


def analyse_run(
    run: live_run.Run,
    show: Callable[[events.Event], None],
    *,
    clock: Callable[[], float],
    proposer: Proposer | None = None,
    forecast: Forecast | None = None,
) -> records.Findings:
    """Run or continue every stage; returns the findings, which are stored too.

    `show` is told each event, `clock` gives seconds, `proposer` stands in for the one that the config names, `forecast`
    is what was said of the run before it began.
    Raises `AblationStopped` before the first search, or what a stage raises; what was stored stays.
    """
    journal = Journal(run.store, show, clock)
    run.should_stop = journal.counting(run.should_stop)
    try:
        config = run.config
        of_config = ("baseline", "regimes", "slice_size", "tau", "epsilon", "alpha")
        journal.emit(
            events.RunStarted(
                run=run.id,
                task=run.task.name,
                model=given_text(config.model, config.given),
                basis="+".join(config.bases),
                phase=config.phase or run.task.phase,
                **{name: getattr(config, name) for name in of_config},
            )
        )
        run.told_where = journal.notice
        searches = [*product(config.bases, run.regimes)]
        journal.forecast = forecast = forecast or Forecast([UNKNOWN] * (1 + 3 * len(searches)))
        forecast.accounts = config.accounts_for
        journal.part(0)
        prepare(run, journal, proposer)
        forecast.parts[0] = (journal.stages[0].seconds,) * 2
        outcomes, skipped = list[records.SearchOutcome](), list[str]()
        for number, (basis, regime) in enumerate(searches):
            journal.part(1 + 2 * number)
            spent = run.cost.group_evaluations >= (run.config.budget or math.inf)
            if outcomes and (spent or run.should_stop()):
                why = "the budget is spent" if spent else "the run was stopped"
                skipped.append(f"{basis.value} {regime.arrow}: not searched, {why}")
                journal.notice(skipped[-1])
                continue
            outcomes.append(found := _searched(run, journal, basis, regime))
            pace, kept = run.store.find(keys.pace(basis)) or math.nan, (len(found.agonists),) * 2
            explained = (len(found.explained(config.alpha)),) * 2
            forecast.know(number, len(run.eligible(regime)), pace, kept, explained)
        last = 1 + 2 * len(searches)
        least, most = map(sum, zip(*forecast.parts[last:], strict=True))
        forecast.parts[last:] = [(least, most)]
        journal.part(last)
        findings = run_findings(run, tuple(accounting.account_units(run, journal, outcomes)), journal.stages)
        for search in findings.searches:
            for rule in search.anchored:
                controlling.tell_rule(journal, search.regime, rule)
        chains_of = tuple(_chains(run, journal, findings))
        findings = replace(findings, chains=chains_of, skipped="; ".join(skipped))
        run.store.put(keys.FINDINGS, records.to_json(findings))
        try:
            opening.tell_first(run, findings)
        except (errors.UsageError, errors.StoreError) as error:
            journal.notice(f"the run that this one is another of does not hear what it shows: {error}")
        journal.emit(events.RunFinished(run=run.id, status=run_status(findings)))
        return findings
    finally:
        journal.flush()


def _chains(run: live_run.Run, journal: Journal, findings: records.Findings) -> Iterator[chain.Chain]:
    """How the flips of the units of each regime that are explained come about, the first by their bound."""
    keep = partial(opening.keep, run, emit=journal.emit)
    for regime in run.regimes:
        for unit in [each.neuron for each in findings.explained(regime)][: run.config.chains_for]:
            name = f"chain of {unit} {regime.arrow}"
            with suppress(errors.AblationStopped), journal.stage(name) as stage:
                journal.emit(events.StageProgress(stage=name, done=0, neuron=str(unit)))
                known = run.chain(unit, regime)
                stage.reused = known is not None
                asked = chains.chain_plan(run, findings, unit, regime, layers=False)
                stage.summary = f"{len(asked.holds)} units or groups held, {len(asked.partners)} pairs"
                yield known or chains.kept_chain(run, asked, keep)


def _searched(run: live_run.Run, journal: Journal, basis: Basis, regime: Regime) -> records.SearchOutcome:
    """Slices, attribution, guard, search, audit, rules and controls of one basis and regime.

    A stop after the search has begun leaves what was found without rules and controls.
    """
    slices, where = run.slices(regime), f"{basis.value} {regime.arrow}"
    journal.notice(f"{where}: {slices.sentence}")
    if not slices.positions:
        plan = planning.SearchPlan(settings=run.search_settings(regime))
        return localise.localised(run, slices, Candidates(basis=basis, layers=()), plan).outcome
    candidates = localise.rank_candidates(run, journal, basis, slices)
    with journal.stage(f"no-op guard {basis.value}") as stage:
        intervention = run.intervention(basis)
        table = run.replacement(intervention)
        stage.summary = check_intervention(run.subject, run.task, run.records, intervention, table).sentence
    plan = localise.search_plan(run, journal, candidates, slices)
    stuck = all(search.done for search in plan.searches(candidates, regime).values())
    if little := _too_little(run, regime, slices, stuck):
        journal.notice(little, level="warning")
    if stuck:
        return localise.localise(run, journal, candidates, slices, plan).outcome
    *others, last = candidates.layers
    if others:
        localise.whole_layers(run, journal, replace(candidates, layers=(last,)), slices)
    began, before = journal.clock(), run.cost.example_forwards
    paced = replace(candidates, layers=tuple(others[::-PACED]) or (last,))
    localise.whole_layers(run, journal, paced, slices)
    # A resumed run that only read outcomes has the pace measured before; none where a kill came between the two.
    if forwards := run.cost.example_forwards - before:
        run.store.put(keys.pace(basis), (journal.clock() - began) / forwards)
    of, pace = journal.forecast, run.store.find(keys.pace(basis))
    journal.emit(told := planning.price(run.config, candidates, plan, math.nan if pace is None else pace))
    of.priced(told)
    of.know(of.at // 2, len(run.eligible(regime)), math.nan if pace is None else pace)
    journal.part(of.at)
    found = localise.localise(run, journal, candidates, slices, plan)
    with suppress(errors.AblationStopped):
        whole = localise.whole_layers(run, journal, candidates, slices)
        found.outcome = replace(found.outcome, whole_layers=whole)
        localise.audit_search(run, journal, found)
        journal.part(of.at + 1)
        _explain(run, journal, found)
    return found.outcome


def _too_little(run: live_run.Run, regime: Regime, slices: CompactSlices, stuck: bool) -> str:
    """Why a search of so few answers can show or rule out little, with the cure; empty where there are enough.

    `stuck` is one that asks nothing, since no group could be ruled out.
    """
    right, word = len(run.eligible(regime)), run.task.words.of(bool(regime.value))
    halves = sorted((len(slices.associated), len(slices.unrelated)))
    answers = f"{numbers.plural(right, f'{word} answer')}, in halves of {halves[0]} and {halves[1]},"
    small = too_small(answers, slices.required, regime)
    if stuck:
        return f"{small}; no group is asked"
    if right < FEW:
        return too_few(answers, right, regime)
    return small if halves[0] < slices.required else ""


def _explain(run: live_run.Run, journal: Journal, found: localise.Localised) -> None:
    """Add held-out flips, rules, controls, certificates and union coverage to what was localized."""
    where, regime, config = found.where, found.slices.regime, run.config
    with journal.stage(f"held-out flips {where}") as stage:
        held_out = controlling.held_out_flips(run, found, stage.progress)
        evidence = evidence_of(held_out, config.alpha)
        place = {unit: each for each, unit in enumerate(evidence)}
        ranked = sorted(found.outcome.agonists, key=lambda one: place.get(one.neuron, len(place)))
        found.outcome = replace(found.outcome, held_out=held_out, agonists=tuple(ranked))
        found.outcome = outcome = replace(found.outcome, resampled=localise.drawn_anew(run, found))
        for unit, each in evidence.items():
            journal.emit(
                events.UnitJudged(
                    regime=regime.value,
                    neuron=str(unit),
                    certainty=each.certainty.value,
                    **asdict(each.flips),
                    lower=each.lower,
                    rank=each.rank,
                )
            )
        shown = sum(each.rank is not None for each in evidence.values())
        stage.summary = f"{shown} of {numbers.plural(len(evidence), 'τ-agonist')} shown"
    neurons = [agonist.neuron for agonist in outcome.agonists[: config.anchor_for]]
    examples, strong = found.slices.positions, [agonist.neuron for agonist in outcome.tau_agonists]
    with journal.stage(f"anchored rules {where}", len(run.eligible(regime)), "records") as stage:
        flips = controlling.coverage(run, regime, neurons, examples, stage.progress)
        anchored = controlling.anchor_rules(run, journal, regime, neurons, flips)
        learned = sum(rule.rule is not None for rule in anchored)
        stage.summary = f"a rule was learned for {learned} of {len(anchored)} units"
    with journal.stage(f"controls {where}") as stage:
        chosen, most = strong[: config.controls_for], len(held_out.random)
        ran = controlling.beside(run, chosen, regime, most, stage.progress)
        drawn_units = controlling.same_layers(run, neurons)
        drawn = controlling.coverage(run, regime, drawn_units, examples, stage.progress)
        stage.summary = f"beside {len(ran)} units"
    with journal.stage(f"certificates {where}") as stage:
        groups: list[Group] = [(unit,) for unit in chosen]
        rules: dict[Group, UnitRule | None] = {(rule.neuron,): rule for rule in anchored}
        written = []
        # What a stop leaves unwritten `ablate` certifies; rules and controls are not lost to it.
        with suppress(errors.AblationStopped):
            for made in certify.certify(run, groups, regime, rules=rules):
                written.append(opening.keep(run, made, journal.emit))
        stage.summary = f"{len(written)} of {len(groups)} written"
    covered, outside = counts.union_coverage, ~np.isin(run.eligible(regime), examples)
    layers = np.array([unit.layer for unit in neurons])
    of_layer = {int(layer): covered(flips[layers == layer]) for layer in np.unique(layers)}
    found.outcome = replace(
        outcome,
        anchored=anchored,
        controls=ran,
        union=covered(flips[:, outside]) if neurons else None,
        drawn_union=covered(drawn[:, outside]) if neurons else None,
        layer_union=tuple(counts.LayerCoverage(layer=each, flipped=of_layer[each]) for each in of_layer),
    )


def run_findings(
    run: live_run.Run, searches: tuple[records.SearchOutcome, ...], stages: Sequence[events.StageFinished]
) -> records.Findings:
    """The whole report's data."""
    vocabulary, config, placed = run.vocabulary, run.config, run.placed
    rounding = run.store.find(keys.ROUNDING)
    of_config = ("tau", "epsilon", "alpha", "slice_alpha", "seed", "proposer")
    usual = placed is None or (placed["dtype"], placed["device"]) == ("float32", "cpu")
    return records.Findings(
        run=run.id,
        model=given_text(config.model, config.given),
        **{name: getattr(config, name) for name in of_config},
        **{name: getattr(run.subject, name) for name in ("model_hash", "tokenizer_hash")},
        task=run.task.name,
        task_settings=run.task.describe(),
        task_score=Share(count=int(run.labels.sum()), n=len(run.records)),
        versions=certify.versions(),
        predicates={
            "proposed": vocabulary["proposed"],
            "refused": len(vocabulary["refusals"]),
            "kept": len(vocabulary["kept"]),
        },
        searches=tuple(
            shown_over(controlling.decided_over(searches, config.alpha, config.epsilon), config.alpha)
        ),
        words=run.task.words,
        notes=run.task.notes,
        close_completions=None if rounding is None else _close_completions(run, decode(Rounding, rounding)),
        numbers=None if usual or placed is None else {"dtype": placed["dtype"], "device": placed["device"]},
        clusters=run.task.cluster_column,
        stages={stage.stage: stage.seconds for stage in stages},
    )


def _close_completions(run: live_run.Run, rounding: Rounding) -> counts.CloseCompletions:
    """How many records have a lead that rounding may turn."""
    close = Share(count=sum(record.margin < rounding.lead for record in run.records), n=len(run.records))
    return counts.CloseCompletions(lead=rounding.lead, close=close, **asdict(rounding))


def run_status(findings: records.Findings) -> str:
    """How the run ended, in a few words for a list of runs."""
    found = f"{numbers.plural(many, 'unit')} shown" if (many := len(findings.shown())) else "no unit is shown"
    if all(search.nothing_searched for search in findings.searches):
        return "finished: nothing was searched"
    return f"{'partial' if findings.cut_short else 'finished'}: {found}"
