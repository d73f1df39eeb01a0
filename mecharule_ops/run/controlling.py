"""What stands behind a found unit: its flips on all of D_b, the rule anchored to them, and its controls.

One basis and one regime at a time. Units are chosen by strength on the compact slices, which lie in the train split;
the held-out records of D_b, which chose no unit, score rules and decide which are shown. Of each layer the union
coverage is counted (Cov_∪ of the paper, §5: the share of one regime's records that at least one unit flips).

The random units of the basis are one draw that all units of a search share: drawn from all others, whatever a search
made of them. A control that leaves out what was found is chosen by the outcome: where all units are alike it still
flips less than the strongest of them.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, islice

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops import events, subsets
from mecharule_ops.engine.outcomes import Group
from mecharule_ops.findings import evidence
from mecharule_ops.findings.controls import AgonistControls, as_many, decided
from mecharule_ops.findings.records import SearchOutcome
from mecharule_ops.predicates import cuts, proposer
from mecharule_ops.predicates.table import score_predicates
from mecharule_ops.rules import families, in_words, ruleshap
from mecharule_ops.rules.unit_rules import Target, hq_rules
from mecharule_ops.run.driver import count
from mecharule_ops.run.journal import Journal
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.localise import Localised, flips_on
from mecharule_ops.types import Baseline, FlipCount, FlipEstimate, Neuron, Regime, Share

RECORDS = 64
"""Held-out records, at most, on which random units are ablated."""
OF_LAYER = 8
"""Random units of its layer that a unit is ranked among, at most."""


def held_out_flips(run: Run, found: Localised, progress: Callable[..., None]) -> evidence.HeldOut:
    """The flips of every τ-agonist of a search on the control records, beside those of random units of the basis.

    Cost: each of these units on at most `RECORDS` records; where these are fewer, more random units are drawn. Raises
    `AblationStopped`.
    """
    regime, basis = found.slices.regime, found.candidates.basis
    records = control_records(run, regime)
    units = [agonist.neuron for agonist in found.outcome.tau_agonists]
    layers, width = range(run.subject.n_layers), run.subject.width(basis)
    size, alpha = len(layers) * width, run.config.alpha
    most = (
        evidence.to_draw(run.config.controls, RECORDS, len(records), size, len(units), alpha) if units else 0
    )
    seed, gone = run.config.seed, run.given
    drawn = subsets.random_units(basis, layers, width, most, but=gone, seed=seed)
    flips = _held_out_counts(run, regime, list(dict.fromkeys([*units, *drawn])), records, progress)
    return evidence.HeldOut(
        records=len(records),
        found=tuple(evidence.HeldOutFlips(neuron=unit, flips=flips[unit]) for unit in units),
        random=tuple(flips[unit] for unit in drawn),
        units=size,
        again=tuple(unit for unit in drawn if unit in set(units)),
    )


def beside(
    run: Run,
    units: Sequence[Neuron],
    regime: Regime,
    most: int,
    progress: Callable[..., None] = lambda *told: None,
) -> tuple[AgonistControls, ...]:
    """The controls beside τ-agonists of one basis; whether each is selective is decided over the whole run.

    `most` random units of the basis each, as many as `held_out_flips` drew: the same ones, less the unit itself. A unit
    that is only not ruled out claims nothing that a control could support. Cost: random units of its layer on at most
    `RECORDS` records, and each unit on the slices under the other baseline.
    """
    if not units:
        return ()
    records = control_records(run, regime)
    others = {unit: units_beside(run, unit, most) for unit in units}
    asked = dict.fromkeys(chain(units, *(each for drawn in others.values() for each in drawn)))
    main = run.intervention(units[0].basis)
    other = replace(main, baseline=second_baseline(main.baseline))
    flips = _held_out_counts(run, regime, list(asked), records, progress)

    def made(unit: Neuron) -> AgonistControls:
        every, layer = others[unit]
        outside, replaced = run.replacement(main).out_of_range(unit)
        return AgonistControls(
            neuron=unit,
            flips=FlipCount(flips=flips[unit], n=len(records)),
            basis=as_many(flips, unit, every) if len(records) and every else None,
            layer=as_many(flips, unit, layer) if len(records) and layer else None,
            split=_split(run, unit, regime),
            second_baseline=other.baseline,
            second=flips_on(run, regime, other, [(unit,)], run.slices(regime).named.values())[0],
            out_of_range=Share(count=outside, n=replaced),
        )

    return tuple(map(made, units))


def _held_out_counts(
    run: Run,
    regime: Regime,
    units: Sequence[Neuron],
    records: Int[np.ndarray, " record"],
    progress: Callable[..., None],
) -> dict[Neuron, int]:
    """Of each of some units of one basis how many of the records it flips alone."""
    if not units:
        return {}
    # Neighbours share a forward from their layer up.
    main, units = run.intervention(units[0].basis), sorted(units)
    counted = flips_on(run, regime, main, [(unit,) for unit in units], (records.tolist(), ()), progress)
    return {unit: estimate.associated.flips for unit, estimate in zip(units, counted, strict=True)}


def control_records(run: Run, regime: Regime) -> Int[np.ndarray, " record"]:
    """The held-out records of D_b on which random units are ablated."""
    held_out = _held_out(run, regime)
    ids = [run.records[position].example.id for position in held_out]
    return held_out[subsets.some_of(ids, RECORDS, of="control records", seed=run.config.seed)]


def units_beside(run: Run, unit: Neuron, most: int) -> tuple[tuple[Neuron, ...], tuple[Neuron, ...]]:
    """The run's `most` random units of the basis, and random ones of its layer, less the unit itself; none of 0."""
    width, seed = run.subject.width(unit.basis), run.config.seed
    layers, gone = range(run.subject.n_layers), run.given
    drawn = subsets.random_units(unit.basis, layers, width, most, but=gone, seed=seed)
    every = tuple(each for each in drawn if each != unit)
    of_layer = OF_LAYER if most else 0
    return every, subsets.random_units(
        unit.basis, [unit.layer], width, of_layer, but=[unit, *gone], of="control of the layer", seed=seed
    )


def same_layers(run: Run, units: Sequence[Neuron], of: str = "same layers") -> list[Neuron]:
    """As many units of each layer as there are of it, drawn from all of the layer that the run has; `of` names it."""
    drawn: list[Neuron] = []
    for layer, many in sorted(Counter(unit.layer for unit in units).items()):
        basis, width = units[0].basis, run.subject.width(units[0].basis)
        drawn += subsets.random_units(basis, [layer], width, many, but=run.given, of=of, seed=run.config.seed)
    return drawn


def second_baseline(main: Baseline) -> Baseline:
    """The baseline that stands beside the main one: the plain mean, or the positional one beside it."""
    return (
        Baseline.MEAN_POSITIONAL if main in (Baseline.MEAN, Baseline.ZERO, Baseline.SLOT0) else Baseline.MEAN
    )


def decided_over(searches: Sequence[SearchOutcome], alpha: float, epsilon: float) -> list[SearchOutcome]:
    """The searches of a run with the claims of all their controls decided at once."""
    ran = [controls for search in searches for controls in search.controls]
    done = iter(decided(ran, alpha=alpha, epsilon=epsilon))
    return [replace(search, controls=tuple(islice(done, len(search.controls)))) for search in searches]


def _held_out(run: Run, regime: Regime) -> Int[np.ndarray, " record"]:
    eligible = run.eligible(regime)
    return eligible[~run.train[eligible]]


def _split(run: Run, unit: Neuron, regime: Regime) -> FlipEstimate | None:
    """The unit's flips on the held-out records of D_b by the splitter rule; None without a rule."""
    rule, held_out = run.splitter.rule, _held_out(run, regime)
    if rule is None:
        return None
    flips, fires = run.flips([(unit,)], held_out, regime)[0], rule.fires(run.fires)[held_out]
    return FlipEstimate(associated=count(flips[fires]), unrelated=count(flips[~fires]))


CHUNK = 256
"""Records a call, between two signs of progress."""
LEAST = 10
"""Flipped and unflipped train records below which nothing is proposed."""


def coverage(
    run: Run, regime: Regime, units: Sequence[Neuron], searched: Sequence[int], progress: Callable[..., None]
) -> Bool[np.ndarray, "unit eligible"]:
    """Flips of each unit alone on all of D_b; `searched` are the records of the search that found them.

    Cost: units × |D_b| example-forwards, less what is stored.
    """
    eligible = run.eligible(regime)
    groups: list[Group] = [(unit,) for unit in units]
    flips = np.zeros((len(groups), len(eligible)), bool)
    # Of the records on which the search ran, which come last, each unit has other outcomes stored; of the rest none has
    # any, so all units are asked about it at once.
    order = np.argsort(np.isin(eligible, searched), kind="stable")
    for begin in range(0, len(order), CHUNK):
        columns = order[begin : begin + CHUNK]
        flips[:, columns] = run.flips(groups, eligible[columns], regime)
        progress(begin + len(columns), len(order))
    return flips


def unit_vocabulary(
    run: Run, positions: Int[np.ndarray, " record"], flips: Bool[np.ndarray, " record"]
) -> cuts.PredicateColumns:
    """Φ on some records, and up to `refinements` predicates proposed from one unit's train flips on them.

    The paper learns every anchored rule over one vocabulary Φ, chosen to tell success from failure; what tells a unit's
    flips apart may be missing from it. Here the offline grammar is searched once more with the unit's flips as the
    target, on train records only, and the best texts are added to Φ for that unit's rule alone.
    """
    columns = {name: column[positions] for name, column in run.observed.columns.items()}
    table, train = cuts.evaluated(run.vocabulary["kept"], columns), run.observed.train[positions]
    target = flips[train]
    if not run.config.refinements or min(int(target.sum()), int((~target).sum())) < LEAST:
        return table
    seen = table.on(train)
    seen = seen.at(np.flatnonzero(seen.matrix.any(axis=0) & ~seen.matrix.all(axis=0)))
    context = proposer.ProposalContext(
        columns={name: column[train] for name, column in columns.items()},
        labels=target,
        prompt_columns=run.task.prompt_columns,
        known=dict(zip(seen.texts, score_predicates(seen.matrix, target), strict=True)),
    )
    proposed = proposer.OfflineProposer(limit=run.config.refinements).propose(context)
    return table.beside(cuts.evaluated(proposed, columns))


def anchored_rule(
    run: Run, neuron: Neuron, eligible: Int[np.ndarray, " eligible"], flips: Bool[np.ndarray, " eligible"]
) -> families.UnitRule:
    """A unit's rule from its flips on D_b (`eligible`): learned on the train part and scored once on the rest."""
    train, test = (np.flatnonzero(run.train[eligible] == part) for part in (True, False))
    target, table = Target(flips=flips, train=train, test=test), unit_vocabulary(run, eligible, flips)
    return in_words.with_words(hq_rules(neuron, target, table, run.prompt_only, run.config.seed), run.task)


def anchor_rules(
    run: Run,
    journal: Journal,
    regime: Regime,
    units: Sequence[Neuron],
    flips: Bool[np.ndarray, "unit eligible"],
) -> tuple[families.UnitRule, ...]:
    """A rule for each unit, learned on the train part of D_b and scored once on the rest.

    By the published protocol each is scored over both regimes too. Cost then: units × the other records.
    """
    anchored, both = [], np.zeros((len(units), len(run.records)), bool)
    both[:, run.eligible(regime)] = flips
    if run.config.published:
        other, told = Regime(1 - regime.value), journal.progress("anchored rules, other regime")
        both[:, run.eligible(other)] = coverage(run, other, units, (), told)
        table = cuts.evaluated(run.vocabulary["kept"], run.columns)
    for done, (neuron, target) in enumerate(zip(units, flips, strict=True)):
        journal.progress(f"anchored rules {neuron.basis.value} {regime.arrow}")(done, len(units), neuron)
        rule = anchored_rule(run, neuron, run.eligible(regime), target)
        if run.config.published:
            scores = ruleshap.chosen_scores(table, both[done], run.labels, run.train, run.config.seed)
            rule = replace(rule, published=scores)
        anchored.append(rule)
        tell_rule(journal, regime, rule)
    return tuple(anchored)


def tell_rule(journal: Journal, regime: Regime, rule: families.UnitRule) -> None:
    """Say what was learned of a unit: when it is, and again when the run has decided which rules are shown."""
    if rule.rule is None:
        return
    interval = rule.interval
    journal.emit(
        events.RuleAnchored(
            regime=regime.value,
            neuron=str(rule.neuron),
            rule=str(rule.rule),
            held_out_mcc=None if rule.held_out is None else rule.held_out.mcc,
            full_mcc=None if rule.full is None else rule.full.mcc,
            prompt_only=rule.prompt_only,
            held_out_low=None if interval is None else interval.low,
            adjusted_p=None if rule.chance is None else rule.chance.adjusted,
            failed=rule.chance is not None and rule.chance.failed,
            words=rule.words,
        )
    )
