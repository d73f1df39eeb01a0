"""Stage 4 of a run: flips of chosen units on all of D_b, each ablated alone, and the rules anchored to them.

One basis and one regime at a time. Everything here is chosen by strength on the compact slices, which lie in
the train split; the held-out records score rules, and decide at the end of the run which are shown. Of each layer the
union coverage is counted (Cov_∪ of the paper, §5: the share of one regime's records that at least one unit flips).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.engine.outcomes import Group
from mecharule_ops.events import RuleAnchored
from mecharule_ops.predicates.cuts import PredicateColumns, evaluated
from mecharule_ops.predicates.language import schema_of
from mecharule_ops.predicates.proposer import OfflineProposer, ProposalContext
from mecharule_ops.predicates.table import score_predicates
from mecharule_ops.rules.anchoring import hq_rules
from mecharule_ops.rules.families import UnitRule
from mecharule_ops.rules.in_words import with_words
from mecharule_ops.run.journal import Journal
from mecharule_ops.run.live_run import Run
from mecharule_ops.types import Neuron, Regime

CHUNK = 256
"""Records a call, between two signs of progress."""
LEAST = 10
"""Flipped and unflipped train records below which nothing is proposed."""


def coverage(
    run: Run,
    regime: Regime,
    units: Sequence[Neuron],
    searched: Sequence[int],
    progress: Callable[[int, int], None],
) -> Bool[np.ndarray, "unit eligible"]:
    """Flips of each unit alone on all of D_b; `searched` are the records of the search that found them.

    Cost: units × |D_b| example-forwards, less what is stored.
    """
    eligible = run.eligible(regime)
    groups: list[Group] = [(unit,) for unit in units]
    done, flips = 0, np.zeros((len(groups), len(eligible)), bool)
    # Of the records on which the search ran, which come last, each unit has other outcomes stored; of the rest none has
    # any, so all units are asked about it at once.
    known = np.isin(eligible, searched)
    parts = [part for part in (np.flatnonzero(~known), np.flatnonzero(known)) if len(part) and groups]
    for columns in (some for part in parts for some in np.split(part, range(CHUNK, len(part), CHUNK))):
        flips[:, columns] = run.flips(groups, eligible[columns], regime)
        done += len(columns)
        progress(done, len(eligible))
    return flips


def refined_texts(
    run: Run, eligible: Int[np.ndarray, " eligible"], flips: Bool[np.ndarray, " eligible"]
) -> tuple[str, ...]:
    """Φ and up to `refinements` predicates proposed from one unit's train flips on these records of D_b.

    The paper learns every anchored rule over one vocabulary Φ, chosen to tell success from failure; what tells a unit's
    flips apart may be missing from it. Here the offline grammar is searched once more with the unit's flips as the
    target, on train records only, and the best texts are added to Φ for that unit's rule alone.
    """
    texts = tuple(run.vocabulary["kept"])
    train = run.observed.train[eligible]
    target = flips[train]
    if not run.config.refinements or min(int(target.sum()), int((~target).sum())) < LEAST:
        return texts
    columns = {name: column[eligible[train]] for name, column in run.observed.columns.items()}
    matrix = evaluated(texts, columns).matrix
    varied = np.flatnonzero(matrix.any(axis=0) & ~matrix.all(axis=0))
    scores = score_predicates(matrix[:, varied], target)
    context = ProposalContext(
        columns=columns,
        labels=target,
        schema=schema_of(columns),
        prompt_columns=run.task.prompt_columns,
        known={texts[int(index)]: score for index, score in zip(varied, scores, strict=True)},
    )
    proposed = OfflineProposer(limit=run.config.refinements).propose(context)
    return texts + tuple(text for text in proposed if text not in texts)


def anchored_rule(
    run: Run,
    neuron: Neuron,
    eligible: Int[np.ndarray, " eligible"],
    flips: Bool[np.ndarray, " eligible"],
) -> UnitRule:
    """A unit's rule from its flips on D_b (`eligible`): learned on the train part and scored once on the rest."""
    predicates = refined_texts(run, eligible, flips)
    fires = np.array([run.fires(text)[eligible] for text in predicates], bool)
    matrix = fires.reshape(len(predicates), len(eligible)).T
    in_train = run.train[eligible]
    rule = hq_rules(
        neuron,
        flips,
        PredicateColumns(texts=tuple(predicates), matrix=matrix),
        np.flatnonzero(in_train),
        np.flatnonzero(~in_train),
        run.prompt_only,
        run.config.seed,
    )
    return with_words(rule, run.task)


def anchor_rules(
    run: Run,
    journal: Journal,
    regime: Regime,
    units: Sequence[Neuron],
    flips: Bool[np.ndarray, "unit eligible"],
) -> tuple[UnitRule, ...]:
    """A rule for each unit, learned on the train part of D_b and scored once on the rest."""
    anchored = []
    for done, (neuron, target) in enumerate(zip(units, flips, strict=True)):
        journal.progress("anchored rules")(done, len(units))
        anchored.append(anchored_rule(run, neuron, run.eligible(regime), target))
        tell_rule(journal, regime, anchored[-1])
    return tuple(anchored)


def tell_rule(journal: Journal, regime: Regime, rule: UnitRule) -> None:
    """Say what was learned of a unit: when it is, and again when the run has decided which rules are shown."""
    if rule.rule is None:
        return
    interval = rule.interval
    journal.emit(
        RuleAnchored(
            regime=regime.value,
            neuron=str(rule.neuron),
            rule=str(rule.rule),
            held_out_mcc=None if rule.held_out is None else rule.held_out.mcc,
            full_mcc=None if rule.full is None else rule.full.mcc,
            prompt_only=rule.prompt_only,
            held_out_low=None if interval is None else interval.low,
            held_out_high=None if interval is None else interval.high,
            adjusted_p=None if rule.chance is None else rule.chance.adjusted,
            failed=rule.chance is not None and rule.chance.failed,
            words=rule.words,
        )
    )
