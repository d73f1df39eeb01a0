"""Accounts of the strongest τ-agonists of one search: when each flips, in three families of rules, and the law.

Flips of found units are cheap, so further records are observed first. The numbers of the clean-run and mechanism
families come from clean passes on the records of D_b alone; train records choose, held-out ones score.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.codec import decode, encode
from mecharule_ops.engine.behaviour import observe
from mecharule_ops.errors import DegenerateBehaviour
from mecharule_ops.findings.accounts import Account
from mecharule_ops.mechanism.law import Effects
from mecharule_ops.pipeline.journal import Journal
from mecharule_ops.pipeline.laws import CleanEffects, law_scores
from mecharule_ops.pipeline.localise import Localised
from mecharule_ops.pipeline.preparation import chosen_for_train
from mecharule_ops.pipeline.refinement import refined_texts
from mecharule_ops.pipeline.run import Run
from mecharule_ops.predicates.cuts import evaluated
from mecharule_ops.rules.accounts import AccountSettings, FamilyColumns, Target, account_rules
from mecharule_ops.rules.drive import DriveSettings, drive_rule
from mecharule_ops.rules.families import Family
from mecharule_ops.store import keys
from mecharule_ops.types import Neuron, Regime

LEARNED_FROM = 2000
"""Train records that rules and ceilings are learned from, at most; held-out ones are all scored."""


def account_units(run: Run, journal: Journal, found: Localised) -> tuple[Account, ...]:
    """The account of each of the strongest τ-agonists, up to the run's `accounts_for`; kept as each is made.

    Cost: units × |D_b| example-forwards over the further records; two clean passes over D_b, one of them with a
    backward a generated token and competitor; what `laws` says a unit.
    """
    units = [agonist.neuron for agonist in found.agonists if agonist.is_tau_agonist][
        : run.config.accounts_for
    ]
    if not units:
        return ()
    observe_further(run, journal)
    where = f"accounts {found.basis.value} {found.regime.arrow}"
    with journal.stage(where, len(units), "units") as stage:
        missing = [unit for unit in units if not run.store.has(keys.account(unit, found.regime))]
        stage.reused = not missing
        for account in _made(run, missing, found.regime) if missing else ():
            run.store.put(keys.account(account.neuron, found.regime), encode(account))
            journal.progress(stage.name)(
                sum(run.store.has(keys.account(unit, found.regime)) for unit in units), len(units)
            )
        accounts = tuple(decode(Account, run.store.get(keys.account(unit, found.regime))) for unit in units)
        shown = sum(account.best is not None for account in accounts)
        stage.summary = f"{shown} of {len(units)} units have a rule that predicts"
    return accounts


def observe_further(run: Run, journal: Journal) -> None:
    """Observe examples that the run has not seen, once a run; none where the task has no more."""
    if run.store.has(keys.FURTHER):
        return
    config = run.config
    wanted = config.records if config.further is None else config.further
    with journal.stage("further records") as stage:
        known = {record.example.id for record in run.records}
        drawn = run.task.examples(len(known) + wanted, np.random.default_rng([config.seed, 1]))
        fresh = [example for example in drawn if example.id not in known][:wanted]
        try:
            seen = observe(run.task, run.subject, fresh, on_progress=journal.progress(stage.name))
        except DegenerateBehaviour:
            run.observe_further((), np.zeros(0, bool))
        else:
            columns = run.task.columns(seen.records)
            run.observe_further(seen.records, chosen_for_train(run, seen.records, seen.labels, columns))
        stage.summary = f"{len(run.observed.records) - len(known):,} more, for the accounts alone"


def _made(run: Run, units: list[Neuron], regime: Regime) -> Iterator[Account]:
    """The accounts, one by one."""
    eligible = run.observed.eligible(regime)
    records = [run.observed.records[position] for position in eligible]
    flips = run.flips([(unit,) for unit in units], eligible, regime)
    clean = CleanEffects.of(run, units, records)
    in_train = run.observed.train[eligible]
    train, test = np.flatnonzero(in_train)[:LEARNED_FROM], np.flatnonzero(~in_train)
    for unit, flipped in zip(units, flips, strict=True):
        target = Target(flips=flipped, train=train, test=test)
        inputs = _input_columns(run, eligible, flipped)
        families = {
            Family.INPUT: inputs,
            Family.CLEAN_RUN: FamilyColumns(values=clean_run_columns(run, clean.drops)),
            Family.MECHANISM: FamilyColumns(values=mechanism_columns(unit, clean)),
        }
        scores = law_scores(run, unit, regime, clean, records, flipped, test)
        seed = run.config.seed
        assert inputs.predicates is not None
        yield Account(
            neuron=unit,
            regime=regime,
            flips=int(flipped.sum()),
            records=len(eligible),
            held_out=len(test),
            families=account_rules(target, families, AccountSettings(seed=seed)),
            laws=scores.laws,
            becomes_right=scores.becomes_right,
            drive=drive_rule(
                _drive(clean.drops, unit), inputs.predicates, train, test, DriveSettings(seed=seed)
            ),
            drop_error=scores.drop_error,
        )


def _input_columns(
    run: Run, eligible: Int[np.ndarray, " eligible"], flips: Bool[np.ndarray, " eligible"]
) -> FamilyColumns:
    """Φ, the task's vocabulary for accounts, and what the grammar proposes from the unit's train flips."""
    texts = dict.fromkeys((*refined_texts(run, eligible, flips), *run.task.account_predicates()))
    columns = {name: column[eligible] for name, column in run.observed.columns.items()}
    table = evaluated(tuple(texts), columns)
    outputs = frozenset(text for text in table.texts if not run.prompt_only(text))
    return FamilyColumns(predicates=table, outputs=outputs)


def clean_run_columns(run: Run, found: Effects) -> dict[str, np.ndarray]:
    """`lead_1` and `runner_up_1` of each generated token in reach, counted from 1, and `least_lead`."""
    lead, token = found.leads.lead[:, :, 0], found.leads.token[:, :, 0]
    columns: dict[str, np.ndarray] = {}
    for position in np.flatnonzero(found.leads.in_reach.any(0)).tolist():
        columns[f"lead_{position + 1}"] = lead[:, position].astype(float)
        columns[f"runner_up_{position + 1}"] = np.array(
            [run.subject.decode((one,)) if one >= 0 else "" for one in token[:, position].tolist()]
        )
    columns["least_lead"] = _extreme(np.fmin, lead)
    return columns


def mechanism_columns(unit: Neuron, clean: CleanEffects) -> dict[str, np.ndarray]:
    """`drop_1` and `push_1` of each generated token over its runner-up, and `drop_minus_lead`, the law's own number."""
    drops, pushes = clean.drops, clean.pushes
    place = drops.units.index(unit)
    columns: dict[str, np.ndarray] = {}
    for position in np.flatnonzero(drops.leads.in_reach.any(0)).tolist():
        columns[f"drop_{position + 1}"] = drops.effect[:, position, 0, place].astype(float)
        columns[f"push_{position + 1}"] = pushes.effect[:, position, 0, place].astype(float)
    excess = drops.excess[:, place].astype(float)
    columns["drop_minus_lead"] = np.where(np.isfinite(excess), excess, np.nan)
    return columns


def _drive(drops: Effects, unit: Neuron) -> np.ndarray:
    """The unit's largest first-order drop of a record, over tokens and competitors; NaN for a record without one."""
    effect = drops.effect[..., drops.units.index(unit)]
    return _extreme(np.fmax, effect.reshape(len(effect), -1))


def _extreme(take: np.ufunc, values: np.ndarray) -> np.ndarray:
    """The least or largest number of each row; NaN for a row with none."""
    return take.reduce(values.astype(float), axis=1, initial=np.nan)
