"""Accounts of the shown units of one search: when each flips, by drive, comparison, exceptions and a rule.

Flips of found units are cheap, so further records are observed first. A drive needs no ablation, so it is told from
every record, whatever its answer; train records choose, held-out ones score.

First order says which records flip with nothing fitted. In 1→0 it is scored against the flips. In 0→1 it says that the
answer changes, and is scored against that; that the changed answer is right is a second prediction, scored against the
flips and never mixed with the first. Beside it stand, on the same records, one threshold on the lead and one on the
drop, both fitted on train, and the rank correlation of drop and measured drop.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.stats import spearmanr

from mecharule_ops import errors, events, subsets, types
from mecharule_ops.engine import behaviour, settling
from mecharule_ops.findings import accounts, shown
from mecharule_ops.findings.records import SearchOutcome
from mecharule_ops.mechanism.first_order import Effects, Progress, drops, predicted_labels
from mecharule_ops.mechanism.holds import nothing_above
from mecharule_ops.mechanism.measured import Measured, measured_drop
from mecharule_ops.predicates.cuts import evaluated
from mecharule_ops.rules import in_words, interval, matthews
from mecharule_ops.rules.graded import graded
from mecharule_ops.rules.unit_rules import Target, exception, input_rule
from mecharule_ops.run.controlling import unit_vocabulary
from mecharule_ops.run.journal import Journal
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.preparation import chosen_for_train
from mecharule_ops.store import keys
from mecharule_ops.store.ledger import HypothesisState, Ledger, Prediction, TestOutcome

LEARNED_FROM = 2000
"""Train records that rules and trees are learned from, at most; held-out ones are all scored."""
HELD_OUT = 300
"""Held-out records of a direction from which a hundred more narrow the 95 % interval of an MCC by too little to see:
it is 1.96 / √n to either side of one of 0."""
MEASURED_ON = 400
"""Held-out records at most on which a drop is measured, since each costs as much as an ablation."""
DRAWN = 240
"""Held-out records at most in the figure of leads and drops."""


def account_units(run: Run, journal: Journal, searches: Sequence[SearchOutcome]) -> Iterator[SearchOutcome]:
    """The searches with the account of each shown unit, by rank, up to the run's `accounts_for`; kept as each is made.

    Cost: that of `kept_accounts`, first order once for all bases, and the further records once a run.
    """
    units = [found.explained(run.config.alpha)[: run.config.accounts_for] for found in searches]

    @cache
    def told(regime: types.Regime) -> UnitDrops:
        every = [
            unit for found, own in zip(searches, units, strict=True) if found.regime is regime for unit in own
        ]
        return unit_drops(run, [unit for unit in every if run.account(unit, regime) is None], regime)

    for found, own in zip(searches, units, strict=True):
        # What a stop leaves out is made by the next resume; rules and controls are not lost to it.
        with suppress(errors.AblationStopped):
            if own and not run.should_stop():
                found = replace(found, accounts=_told_accounts(run, journal, found, own, told))
        yield found


def _told_accounts(
    run: Run,
    journal: Journal,
    found: SearchOutcome,
    units: list[types.Neuron],
    told: Callable[[types.Regime], "UnitDrops"],
) -> tuple[accounts.Account, ...]:
    if not run.store.has(keys.FURTHER):
        with journal.stage("further records") as stage:
            stage.summary = f"{observe_further(run, stage.progress):,} more, for the accounts alone"
    with journal.stage(f"accounts {found.intervention.basis.value} {found.regime.arrow}") as stage:
        missing = [unit for unit in units if run.account(unit, found.regime) is None]
        stage.reused, done = not missing, len(units) - len(missing)
        of_all = told(found.regime) if missing else None
        made = kept_accounts(run, missing, found.regime, journal.emit, of_all) if missing else ()
        stage.progress(done, len(units), *missing[:1])
        for place, _ in enumerate(made, 1):
            stage.progress(done + place, len(units), *missing[place : place + 1])
        known = tuple(account for unit in units if (account := run.account(unit, found.regime)))
        learned = sum(rule.rule is not None for account in known for rule in account.families)
        stage.summary = f"{learned} rules learned, of {len(units)} units"
    return known


def observe_further(run: Run, on_progress: Progress = lambda done, total: None) -> int:
    """Observe examples that the run has not seen, once a run; returns how many, 0 where the task has no more.

    As many as `further` says; where it says nothing, as many as bring every direction to `HELD_OUT` held-out records,
    at most as many as the run has.
    """
    if run.store.has(keys.FURTHER):
        return 0
    config = run.config
    known = {record.example.id for record in run.records}
    wanted = min(config.records, held_out_missing(run)) if config.further is None else config.further
    unseen = subsets.unseen(run.task.examples, known, wanted, of="further", seed=config.seed, salt=1)
    fresh = run.usable(unseen)
    if not fresh:
        run.observe_further((), np.zeros(0, bool))
        return 0
    seen = behaviour.behaviour_on(run.task, run.subject, fresh, on_progress=on_progress)
    run.observe_further(
        seen.records, chosen_for_train(run, seen.records, seen.labels, run.task.columns(seen.records))
    )
    return len(fresh)


def held_out_missing(run: Run) -> int:
    """Further records of which as many are expected to be held out as a direction lacks, the one that lacks most."""
    wanted = [0]
    for regime in run.regimes:
        eligible = run.eligible(regime)
        coming = run.config.test_share * len(eligible) / len(run.records)
        if coming:
            wanted.append(math.ceil((HELD_OUT - np.count_nonzero(~run.train[eligible])) / coming))
    return max(wanted)


def account_forwards(run: Run, regime: types.Regime) -> int:
    """About how many example-forwards the account of one unit takes, the further records left out.

    An ablation of all of D_b and a clean pass over it with derivatives, counted as four forwards a record together,
    such a pass over the other records, for its drive, and three for each held-out record whose drop is measured.
    """
    eligible = run.observed.eligible(regime)
    others = min(LEARNED_FROM, len(run.observed.records) - len(eligible))
    return 4 * len(eligible) + 3 * others + 3 * min(MEASURED_ON, int((~run.observed.train[eligible]).sum()))


def kept_accounts(
    run: Run,
    units: list[types.Neuron],
    regime: types.Regime,
    emit: Callable[[events.Event], object] = lambda event: None,
    told: "UnitDrops | None" = None,
) -> Iterator[accounts.Account]:
    """The accounts of units of one basis, each put into the run, which is open for writing, as it is made.

    Its rules are corrected at the end of the run together with all others, and after that with those learned so far.
    That a unit flips exactly where its drop exceeds the lead is registered in the ledger before it is asked whether
    it does, and decided with the account; not where nothing lies above the unit, since it is arithmetic there.

    Cost: units × |D_b| example-forwards; that of `FirstOrder`, and of `unit_drops` where they are not `told`.
    """
    eligible = run.observed.eligible(regime)
    records = [run.observed.records[position] for position in eligible]
    ledger = Ledger(run.store, emit)
    arithmetic = {unit for unit in units if nothing_above(unit, run.subject.n_layers)}
    registered = {
        unit: ledger.register(prediction_hypothesis(unit, regime)) for unit in units if unit not in arithmetic
    }
    flips = run.flips([(unit,) for unit in units], eligible, regime)
    in_train = run.observed.train[eligible]
    seed = run.config.seed
    train = subsets.some_places(records, np.flatnonzero(in_train), LEARNED_FROM, of="learned from", seed=seed)
    test = subsets.some_places(records, np.flatnonzero(~in_train), of="held out", seed=seed)
    of_all, drives = told or unit_drops(run, units, regime)
    first = FirstOrder(run, of_all.of(units), regime, records, train, test)
    texts = dict.fromkeys((*run.task.account_predicates(), *run.vocabulary["kept"]))
    prompts = evaluated([text for text in texts if run.prompt_only(text)], run.observed.columns)
    every, rest = (np.flatnonzero(run.observed.train == part) for part in (True, False))
    columns = {name: column[eligible] for name, column in run.observed.columns.items()}
    own = evaluated(run.task.account_predicates(), columns)
    for unit, flipped in zip(units, flips, strict=True):
        target = Target(flips=flipped, train=train, test=test)
        vocabulary = unit_vocabulary(run, eligible, flipped).beside(own)
        table = vocabulary.at(np.array(list(map(run.prompt_only, vocabulary.texts)), bool))
        rules = (input_rule(unit, target, table, seed), exception(unit, target, table, seed))
        drive = graded(prompts, drives[:, of_all.units.index(unit)], every, rest, seed)
        learned = accounts.Account(
            neuron=unit,
            regime=regime,
            flips=int(flipped.sum()),
            records=len(flipped),
            held_out=len(test),
            families=tuple(in_words.with_words(rule, run.task) for rule in rules if rule is not None),
            drive=drive and in_words.worded_terms(drive, run.task),
            nothing_above=unit in arithmetic,
            points=_points(first.drops, unit, flipped, test[:DRAWN]),  # The held-out places come as a draw.
        )
        account = first.scored(learned, flipped)
        claim = registered.get(unit)
        if claim and claim.state == HypothesisState.OPEN and account.first_order is not None:
            ledger.decide(claim.id, partial(_prediction_outcome, account.first_order))
        if run.finished:
            beside = shown.corrected_beside(account.families, run.rule_ps(unit, regime), run.findings.alpha)
            account = replace(account, families=beside)
        run.keep_of_unit(keys.of_unit(keys.ACCOUNT, unit, regime), account)
        yield account


UnitDrops = tuple[Effects, Float[np.ndarray, "record unit"]]
"""First order of some units on D_b; how far each lowers a lead at most on every record observed, NaN if not asked."""


def unit_drops(run: Run, units: list[types.Neuron], regime: types.Regime) -> UnitDrops:
    """First order of units of any bases, each record once.

    Cost: that of `drops` over D_b and the records beside it, `LEARNED_FROM` at most.
    """
    every, eligible = run.observed.records, run.observed.eligible(regime)
    rest = np.setdiff1d(np.arange(len(every)), eligible)
    rest = subsets.some_places(every, rest, LEARNED_FROM, of="drives", seed=run.config.seed)
    bases = dict.fromkeys(unit.basis for unit in units)
    tables = {basis: run.replacement(run.intervention(basis)) for basis in bases}
    found, told = np.full((len(every), len(units)), np.nan), []
    for places in (eligible, rest):
        asked = settling.until_settled(run.subject, run.task, [every[at] for at in places])
        with run.clean_kept(run.intervention(units[0].basis)):
            told.append(drops(run.subject, asked, tables, units, should_stop=run.should_stop))
        found[places] = told[-1].largest
    return told[0], found


def prediction_hypothesis(unit: types.Neuron, regime: types.Regime) -> Prediction:
    """That first order says when one unit flips, as a prediction that can fail."""
    changes = "flips" if regime is types.Regime.BASELINE_POSITIVE else "changes the answer"
    return Prediction(
        subject=str(unit),
        statement=f"{unit} {changes} ({regime.arrow}) exactly where its first-order drop exceeds the lead.",
        condition="drop_minus_lead > 0",
        test="MCC of the first-order prediction, nothing fitted, on the held-out records of D_b",
        threshold=accounts.PREDICTION_HOLDS,
    )


def _prediction_outcome(score: accounts.PredictionScore, prediction: object) -> TestOutcome:
    """The held-out score and how many answers changed; no value where too few records of one side leave no interval."""
    found = score.held_out
    return TestOutcome(
        value=None if found is None else found.mcc,
        n=score.records,
        positives=score.happened,
        state=score.verdict,
        low=None if found is None else found.low,
        high=None if found is None else found.high,
    )


def _points(
    drops: Effects, unit: types.Neuron, flips: Bool[np.ndarray, " eligible"], drawn: Int[np.ndarray, " drawn"]
) -> accounts.LeadsAndDrops | None:
    """Lead and drop of each record where drop − lead is largest; records without a token in reach are left out."""
    lead, drop = (values[drawn] for values in drops.closest(unit))
    there = np.isfinite(lead)
    if not there.any():
        return None
    return accounts.LeadsAndDrops(
        lead=tuple(round(float(logits), 6) for logits in lead[there]),
        drop=tuple(round(float(logits), 6) for logits in drop[there]),
        flipped=tuple(flips[drawn[there]].tolist()),
    )


class FirstOrder:
    """What first order says of units of one basis on the records of D_b, and what is measured beside it.

    Drops are measured on held-out records, which chose nothing; in 0→1, where flips do not tell which answers change,
    on all of them and on the train records that thresholds are fitted on, a draw then.
    """

    def __init__(
        self,
        run: Run,
        drops: Effects,
        regime: types.Regime,
        records: list[types.BehaviourRecord],
        train: Int[np.ndarray, " train"],
        test: Int[np.ndarray, " test"],
    ) -> None:
        """`train` and `test` are places among `records`, which are those of D_b, as `drops` has them.

        Cost: clean passes over the records measured that are not kept, and for each unit an ablation of them.
        """
        self.run, self.regime, self.train, self.test, self.asked = run, regime, train, test, test
        self.drops = drops
        self.records = settling.until_settled(run.subject, run.task, records)
        table = run.replacement(run.intervention(drops.units[0].basis))
        seed, also = run.config.seed, train[:0]
        if regime is types.Regime.BASELINE_NEGATIVE:
            self.train = also = subsets.some_places(records, train, MEASURED_ON, of="fitted", seed=seed)
        else:
            self.asked = subsets.some_places(records, test, MEASURED_ON, of="integrated", seed=seed)
        self.measured_on = np.concatenate([self.asked, also])
        every = [self.records[at] for at in self.measured_on]
        with run.clean_kept(table.intervention):
            self.measured = measured_drop(run.subject, every, table, [[unit] for unit in drops.units])

    def happened(self, unit: types.Neuron, flips: Bool[np.ndarray, " record"]) -> Bool[np.ndarray, " record"]:
        """Where the answer changed: in 1→0 where it flipped."""
        if self.regime is types.Regime.BASELINE_POSITIVE:
            return flips
        changed = flips.copy()
        changed[self.measured_on] = self.measured.changed[self.drops.units.index(unit)]
        return changed

    def scored(self, account: accounts.Account, flips: Bool[np.ndarray, " record"]) -> accounts.Account:
        """The account with the scores of its unit on the held-out records; of train only the thresholds know.

        Cost: no forward.
        """
        unit, train, test, steady = account.neuron, self.train, self.test, accounts.PredictionKind.STEADY
        if not len(test):
            return account
        place, happened = self.drops.units.index(unit), self.happened(unit, flips)
        least = np.fmin.reduce(self.drops.leads.lead[:, :, 0], axis=1, initial=np.nan)
        most = self.drops.largest[:, place]
        scored = replace(
            account,
            predictions=(
                _score(steady, self.drops.excess[:, place] > 0, happened, test),
                *cut_scores(least, most, happened, train, test),
            ),
            drop_error=_drop_error(self.drops, self.asked, self.measured, place),
        )
        if self.regime is types.Regime.BASELINE_POSITIVE:
            return scored
        # Whether the answer that first order predicts is right.
        position, token = self.drops.changes(unit)
        chosen, said = [self.records[at] for at in test], np.zeros(len(flips), bool)
        labels = predicted_labels(self.run.subject, self.run.task, chosen, position[test], token[test])
        said[test] = self.regime.flipped(labels)
        beside = cut_scores(least, most, flips, train, test)
        return replace(scored, becomes_right=_score(steady, said, flips, test), beside_right=beside)


def _score(
    kind: accounts.PredictionKind,
    said: Bool[np.ndarray, " record"],
    happened: Bool[np.ndarray, " record"],
    where: Int[np.ndarray, " test"],
    threshold: float | None = None,
) -> accounts.PredictionScore:
    return accounts.PredictionScore(
        kind=kind,
        predicted=int(said[where].sum()),
        held_out=interval.mcc_interval(said[where], happened[where]),
        records=len(where),
        happened=int(happened[where].sum()),
        threshold=threshold,
        right=int((said[where] == happened[where]).sum()),
    )


def cut_scores(
    lead: Float[np.ndarray, " record"],
    drop: Float[np.ndarray, " record"],
    target: Bool[np.ndarray, " record"],
    train: Int[np.ndarray, " train"],
    test: Int[np.ndarray, " test"],
) -> tuple[accounts.PredictionScore, ...]:
    """Lead only and drop only: each one threshold, no other better on train, scored on the held-out records."""
    kinds, found = accounts.PredictionKind, []
    for kind, values, sign in ((kinds.LEAD_ONLY, -lead, -1), (kinds.DROP_ONLY, drop, 1)):
        cut = matthews.best_cut(values[train], target[train])
        found.append(_score(kind, values > cut, target, test, sign * cut))
    return tuple(found)


def _drop_error(
    drops: Effects, asked: Int[np.ndarray, " asked"], measured: Measured, place: int
) -> accounts.DropError | None:
    """First-order against measured drop, at each record's token where least is left, over the token that is best then.

    The runner-up may not move at all where a third token wins. Where that token is none of the clean run's
    competitors, first order's drop is that over the competitor which it brings nearest.
    """
    left = np.nan_to_num(measured.left[place][: len(asked)], nan=np.inf)
    there = np.isfinite(left).any(1)
    if not there.any():
        return None
    rows, tokens = np.flatnonzero(there), left[there].argmin(1)
    real = measured.fall[place][rows, tokens]
    drop, lead = drops.effect[asked[rows], tokens, :, place], drops.leads.lead[asked[rows], tokens]
    same = drops.leads.token[asked[rows], tokens] == measured.best[place][rows, tokens][:, None]
    beyond = np.where(same, np.inf, np.nan_to_num(drop - lead, nan=-np.inf))
    first = drop[np.arange(len(rows)), beyond.argmax(1)]
    return accounts.DropError(
        records=len(rows),
        measured=float(np.median(real)),
        first_order=float(np.median(first)),
        error=float(np.median(np.abs(real - first))),
        spearman=float(spearmanr(real, first).statistic) if min(np.ptp(real), np.ptp(first)) > 0 else None,
    )
