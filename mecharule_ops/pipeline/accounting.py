"""Accounts of the strongest τ-agonists of one search: when each flips, in three families of rules, and the law.

Flips of found units are cheap, so further records are observed first. The law and the numbers of the clean-run and
mechanism families come from clean passes on the records of D_b alone; train records choose, held-out ones score.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.engine.behaviour import observe
from mecharule_ops.errors import DegenerateBehaviour
from mecharule_ops.findings.accounts import Account, Breaks, Law, LawScore
from mecharule_ops.mechanism.effects import Effect
from mecharule_ops.mechanism.law import Effects, effects
from mecharule_ops.mechanism.mediation import first_change
from mecharule_ops.pipeline.journal import Journal
from mecharule_ops.pipeline.localise import Localised
from mecharule_ops.pipeline.preparation import chosen_for_train
from mecharule_ops.pipeline.refinement import refined_texts
from mecharule_ops.pipeline.run import Run
from mecharule_ops.predicates.cuts import evaluated
from mecharule_ops.rules.accounts import AccountSettings, FamilyColumns, Target, account_rules
from mecharule_ops.rules.families import Family
from mecharule_ops.rules.interval import mcc_interval
from mecharule_ops.store import keys
from mecharule_ops.types import Neuron

EXAMPLES_OF_BREAKS = 200
"""Flipped records whose whole completions are looked at."""


def account_units(run: Run, journal: Journal, found: Localised) -> tuple[Account, ...]:
    """The account of each of the strongest τ-agonists, up to the run's `accounts_for`.

    Cost: units × |D_b| example-forwards over the further records; two clean passes over D_b, one of them with a
    backward a generated token and competitor; a completion of some flipped records a unit.
    """
    units = [agonist.neuron for agonist in found.agonists if agonist.is_tau_agonist][
        : run.config.accounts_for
    ]
    if not units:
        return ()
    observe_further(run, journal)
    eligible = run.observed.eligible(found.regime)
    where = f"accounts {found.basis.value} {found.regime.arrow}"
    with journal.stage(where, len(units), "units") as stage:
        flips = run.flips([(unit,) for unit in units], eligible, found.regime)
        drops = unit_effects(run, units, eligible, Effect.FIRST_ORDER)
        pushes = unit_effects(run, units, eligible, Effect.DIRECT)
        accounts = []
        for place, unit in enumerate(units):
            accounts.append(_account(run, found, unit, eligible, flips[place], (drops, pushes)))
            journal.progress(stage.name)(place + 1, len(units))
        shown = sum(account.best is not None for account in accounts)
        stage.summary = f"{shown} of {len(units)} units have a rule that predicts"
    return tuple(accounts)


def observe_further(run: Run, journal: Journal) -> None:
    """Observe examples that the run has not seen, once a run; none where the task has no more."""
    config = run.config
    wanted = config.records if config.further is None else config.further
    if run.store.has(keys.FURTHER):
        return
    with journal.stage("further records") as stage:
        known = {record.example.id for record in run.records}
        drawn = run.task.examples(len(known) + wanted, np.random.default_rng([config.seed, 1]))
        fresh = [example for example in drawn if example.id not in known][:wanted]
        try:
            records = observe(run.task, run.subject, fresh, on_progress=journal.progress(stage.name)).records
        except DegenerateBehaviour:
            records = ()
        labels = np.array([record.label for record in records], bool)
        train = (
            chosen_for_train(run, records, labels, run.task.columns(records)) if records else labels.copy()
        )
        run.observe_further(records, train)
        stage.summary = f"{len(records):,} more, for the accounts alone"


def unit_effects(
    run: Run, units: Sequence[Neuron], positions: Int[np.ndarray, " eligible"], effect: Effect
) -> Effects:
    """Leads and effects of units of one basis on observed records."""
    records = [run.observed.records[position] for position in positions]
    replacement = run.replacement(run.intervention(units[0].basis))
    return effects(run.subject, records, replacement, units, effect=effect, should_stop=run.should_stop)


def _account(
    run: Run,
    found: Localised,
    unit: Neuron,
    eligible: Int[np.ndarray, " eligible"],
    flips: Bool[np.ndarray, " eligible"],
    measured: tuple[Effects, Effects],
) -> Account:
    in_train = run.observed.train[eligible]
    target = Target(flips=flips, train=np.flatnonzero(in_train), test=np.flatnonzero(~in_train))
    drops, pushes = measured
    families = {
        Family.INPUT: _input_columns(run, eligible, flips),
        Family.CLEAN_RUN: FamilyColumns(values=clean_run_columns(run, drops)),
        Family.MECHANISM: FamilyColumns(values=mechanism_columns(unit, drops, pushes)),
    }
    return Account(
        neuron=unit,
        regime=found.regime,
        flips=int(flips.sum()),
        records=len(eligible),
        held_out=len(target.test),
        families=account_rules(target, families, AccountSettings(seed=run.config.seed)),
        laws=(
            law_score(run, Law.FIRST_ORDER, drops, unit, target),
            law_score(run, Law.DIRECT, pushes, unit, target),
        ),
        breaks=breaks(run, unit, eligible[flips][:EXAMPLES_OF_BREAKS]),
    )


def law_score(run: Run, law: Law, found: Effects, unit: Neuron, target: Target) -> LawScore:
    """How well the law says which held-out records flip."""
    says = found.flips[:, found.units.index(unit)][target.test]
    generator = np.random.default_rng([run.config.seed, list(Law).index(law)])
    return LawScore(
        law=law,
        predicted=int(says.sum()),
        held_out=mcc_interval(says, target.flips[target.test], generator),
    )


def _input_columns(
    run: Run, eligible: Int[np.ndarray, " eligible"], flips: Bool[np.ndarray, " eligible"]
) -> FamilyColumns:
    """The vocabulary, the task's own for accounts and what the grammar proposes from the unit's train flips."""
    texts = refined_texts(run, eligible, flips)
    columns = {name: column[eligible] for name, column in run.observed.columns.items()}
    table = evaluated(texts, columns)
    outputs = frozenset(text for text in table.texts if not run.prompt_only(text))
    return FamilyColumns(predicates=table, outputs=outputs)


def clean_run_columns(run: Run, found: Effects) -> dict[str, np.ndarray]:
    """`lead_1` and `runner_up_1` of each generated token in reach, counted from 1, and `min_lead`."""
    lead, token = found.leads.lead[:, :, 0], found.leads.token[:, :, 0]
    columns: dict[str, np.ndarray] = {}
    for position in np.flatnonzero(found.leads.in_reach.any(0)).tolist():
        columns[f"lead_{position + 1}"] = lead[:, position].astype(float)
        columns[f"runner_up_{position + 1}"] = np.array(
            [run.subject.decode((one,)) if one >= 0 else "" for one in token[:, position].tolist()]
        )
    columns["min_lead"] = _least(lead.astype(float))
    return columns


def mechanism_columns(unit: Neuron, drops: Effects, pushes: Effects) -> dict[str, np.ndarray]:
    """`drop_1` and `push_1` of each generated token against its runner-up, and `max_excess`, the law's own number."""
    place = drops.units.index(unit)
    columns: dict[str, np.ndarray] = {}
    for position in np.flatnonzero(drops.leads.in_reach.any(0)).tolist():
        columns[f"drop_{position + 1}"] = drops.effect[:, position, 0, place].astype(float)
        columns[f"push_{position + 1}"] = pushes.effect[:, position, 0, place].astype(float)
    excess = drops.excess[:, place].astype(float)
    columns["max_excess"] = np.where(np.isfinite(excess), excess, np.nan)
    return columns


def _least(lead: np.ndarray) -> np.ndarray:
    """The smallest of each row that is there; NaN for a row with none."""
    least = np.nan_to_num(lead, nan=np.inf).min(1, initial=np.inf)
    return np.where(np.isfinite(least), least, np.nan)


def breaks(run: Run, unit: Neuron, positions: Int[np.ndarray, " record"]) -> Breaks | None:
    """Where the completions of flipped records first change; None for none. Cost: a completion a record."""
    if not len(positions):
        return None
    completed = run.completer(run.intervention(unit.basis)).completions([(unit,)], positions.tolist())
    firsts = []
    for position, after in zip(positions.tolist(), completed.tokens[0], strict=True):
        before = run.observed.records[position].tokens
        place = first_change(before, after)
        if place is not None:
            firsts.append((place, _text(run, before, place), _text(run, after, place)))
    return Breaks.of(firsts)


def _text(run: Run, tokens: Sequence[int], place: int) -> str:
    """The token at a place as text; empty past the end."""
    return run.subject.decode(tuple(tokens[place : place + 1])) if place < len(tokens) else ""
