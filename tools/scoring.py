"""Predicates scored on train records, rules learned from them (paper, §4.2), the one anchored to a unit (§4.5)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import asdict, dataclass, replace

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.codec import encode
from mecharule_ops.errors import UsageError
from mecharule_ops.facts.fact import FactValue, fact
from mecharule_ops.facts.rules import rule_words
from mecharule_ops.findings.shown import anchored_beside
from mecharule_ops.numbers import of_n
from mecharule_ops.pages.document import Table, column, row_of
from mecharule_ops.predicates.cuts import column_predicates, evaluated
from mecharule_ops.predicates.language import parse_predicate, schema_of
from mecharule_ops.predicates.table import score_predicates
from mecharule_ops.rules.families import UnitRule
from mecharule_ops.rules.ruleshap import learn_rule
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import Part, columns_of, drawn, fires, forwards_missing
from mecharule_ops.run.unit_flips import anchored_rule, refined_texts
from mecharule_ops.store import keys
from tools._asked import Asked, condition_of, unit_and_regime
from tools._tables import shown
from tools.arguments import AnchorArguments, ExtractArguments, ScoreArguments, TargetArguments
from tools.result import About, Priced, Tell, of_facts


@dataclass(frozen=True, eq=False)
class _Target:
    """What is to be told apart, on which train records."""

    key: str
    words: str
    positions: Int[np.ndarray, " record"]
    holds: Bool[np.ndarray, " record"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseRow:
    """One clause that RuleSHAP ranked."""

    clause: str = column("clause")
    mcc: float = column("train MCC", "{0.mcc:.3f}".format)
    coverage: float = column("coverage")
    importance: float = column("importance", "{0.importance:+.3f}".format)


def _target(run: Run, given: TargetArguments) -> Generator[int, None, _Target]:
    """Success on all train records, or the flips of a unit on those that it may flip; flips not stored are priced."""
    if given.unit is None:
        yield 0
        positions = np.flatnonzero(run.train)
        return _Target("success", "success", positions, run.labels[positions])
    unit, regime = unit_and_regime(run, given.unit, given.regime)
    positions = drawn(run, regime, Part.TRAIN)
    yield forwards_missing(run, (unit,), positions)
    flips = run.flips([(unit,)], positions, regime)[0]
    return _Target(f"unit.{unit}", f"the flips of {unit}", positions, flips)


def score(run: Run, given: ScoreArguments, tell: Tell) -> Priced:
    """Counts where each holds and elsewhere, AUC, average precision above base rate, Δ/σ; or why it is refused.

    Exit code 2 when one is refused. Raises `UsageError` without a predicate.
    """
    texts = [text.strip() for text in given.predicates.split(";") if text.strip()]
    if not texts:
        raise UsageError("expected a predicate such as 'a > b', got none; `;` stands between several")
    target, facts, refused = (yield from _target(run, given)), [], False
    for text in dict.fromkeys(texts):
        key = f"{target.key}.score.{text}"
        try:
            holds = fires(run, condition_of(run, text))[target.positions]
            if holds.all() or not holds.any():
                raise UsageError("expected a condition that holds on some train records and not on others")
        except UsageError as error:
            refused = True
            value = {"refused": str(error)}
            facts.append(fact(f"{text} is refused: {error}", f"run:{run.id}", key=key, value=value))
            continue
        (one,) = score_predicates(holds[:, None], target.holds)
        hits, n = int((holds & target.holds).sum()), int(holds.sum())
        others, rest = int((~holds & target.holds).sum()), len(holds) - n
        said = (
            f"Of {target.words}, {text} holds on {hits} among its {n} train records; elsewhere there are {others} on "
            f"{rest} (AUC {one.auc:.3f}, average precision {one.ap_lift:+.3f} above the base rate, "
            f"Δ/σ {one.separation:+.2f})"
        )
        counts = {"hits": hits, "n": n, "hits_elsewhere": others, "n_elsewhere": rest}
        facts.append(fact(said, f"run:{run.id}", unit=given.unit, key=key, value={**counts, **asdict(one)}))
    return of_facts(facts, exit_code=UsageError.exit_code if refused else 0)


def extract(run: Run, given: ExtractArguments, tell: Tell) -> Priced:
    """Clauses by train MCC, best first, and the rule that their greedy OR makes; held-out records are not read.

    Of the run's predicates, with those proposed from the unit's flips and those over columns of one's own.
    """
    target = yield from _target(run, given)
    positions, holds = target.positions, target.holds
    if given.among is not None:
        inside = fires(run, condition_of(run, given.among))[positions]
        positions, holds = positions[inside], holds[inside]
    every = columns_of(run)
    columns = {name: column[positions] for name, column in every.items()}
    texts = refined_texts(run, positions, holds) if given.unit else tuple(run.vocabulary["kept"])
    own = {name: column for name, column in columns.items() if name not in run.observed.columns}
    asked = None if given.columns is None else {name.strip() for name in given.columns.split(",")}
    if unknown := sorted((asked or set()) - columns.keys()):
        raise UsageError(f"expected columns of {', '.join(columns)}; got {unknown[0]!r}")
    own |= {name: columns[name] for name in asked or ()}
    texts = (*texts, *column_predicates(own, np.arange(len(positions))))
    schema = schema_of(columns)
    if asked is not None:
        texts = tuple(text for text in texts if parse_predicate(text, schema).reads <= asked)
    table = evaluated(texts, columns)
    tell(f"RuleSHAP over {len(table.texts)} predicates and {len(positions):,} train records")
    learned = learn_rule(table, holds, seed=run.config.seed)
    rule = learned.status.value if learned.rule is None else str(learned.rule)
    train = None if learned.train is None else learned.train.mcc
    said = f"rule of {target.words} in run {run.id}: {rule}{'' if train is None else f' (train MCC {train:.2f})'}"
    clauses = [row_of(ClauseRow, ranked, clause=str(ranked.clause)) for ranked in learned.clauses]
    result = shown(said, Table.of_rows(ClauseRow, clauses), given, key=f"{target.key}.clauses", run=run.id)
    value = {"rule": None if learned.rule is None else rule, "train_mcc": train, "records": len(positions)}
    first = fact(f"The {said}", f"run:{run.id}", unit=given.unit, key=f"{target.key}.extracted", value=value)
    return replace(result, facts=(first, *result.facts))


def anchor(run: Run, given: AnchorArguments, tell: Tell) -> Priced:
    """How often the unit flips, when by that rule, whether it is of high quality; and what is told of it in its place.

    A rule made now is corrected together with those that the run has, learned on train records, scored on the others.
    Cost: an ablation of every record of the unit's direction; nothing where the rule is kept.
    """
    asked = Asked.of(run, given)
    unit, regime, findings, rule = asked.neuron, asked.regime, asked.findings, asked.rule
    eligible = run.eligible(regime)
    yield 0 if rule else len(eligible)
    if rule is None:
        made = anchored_rule(run, unit, eligible, run.flips([(unit,)], eligible, regime)[0])
        rule = anchored_beside(made, run.rule_ps(), findings.alpha)
        run.keep_of_unit(keys.anchored(unit, regime), rule)
    assert rule.flips is not None
    of, start = About(f"unit.{unit}.anchored", f"run:{run.id}", unit), findings.words.of(bool(regime.value))
    often = f"Switching {unit} off flips {of_n(rule.flips)} of the records that start {start}"
    when = f"When it flips, by the rule that the paper anchors: {rule_words(rule, run.id)}"
    facts = [of("flips", often, encode(rule.flips)), of("rule", when, _rule_data(rule))]
    if rule.shown:
        floors = f"MCC {findings.mcc_floor:g} and coverage {findings.coverage_floor:g} held out"
        reaches = findings.is_hq_t(rule)
        verb = "reaches" if reaches else "does not reach"
        said = f"It {verb} the paper's floors of a rule of high quality ({floors})"
        value = {"reaches": reaches, "mcc": findings.mcc_floor, "coverage": findings.coverage_floor}
        facts.append(of("high_quality", said, value))
    if asked.account is not None:
        said = f"Elsewhere the rule over the prompt alone is told of {unit}: {asked.told_words}"
        learned = str(asked.told.rule) if asked.told and asked.told.rule else None
        facts.append(fact(said, of.source, unit=unit, key=f"unit.{unit}.rule", value=learned))
    return of_facts(facts)


def _rule_data(rule: UnitRule) -> dict[str, FactValue] | None:
    """A rule that held-out records bear out, with its score; None when there is none."""
    interval = rule.interval
    if rule.held_out is None or not rule.shown:
        return None
    named = {"mcc": "mcc", "lower": "low", "upper": "high", "n": "n", "positives": "positives"}
    return {
        **{"text": str(rule.rule), "prompt_only": rule.prompt_only},
        **{f"held_out_{name}": getattr(interval, field) for name, field in named.items()},
        "held_out_coverage": rule.held_out.coverage,
        "p": rule.chance and rule.chance.p,
        "adjusted_p": rule.chance and rule.chance.adjusted,
    }
