"""Predicates scored on train records, rules learned from them (paper, §4.2), the one anchored to a unit (§4.5), and
columns of one's own."""

import re
from collections import Counter
from collections.abc import Generator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from annotated_types import Len
from jaxtyping import Bool, Int
from pydantic import StrictBool, StrictFloat, StrictInt, StrictStr, TypeAdapter

from mecharule_ops.codec import encode
from mecharule_ops.errors import UsageError
from mecharule_ops.facts.fact import fact
from mecharule_ops.facts.rules import rule_value, rule_words
from mecharule_ops.findings.shown import corrected_beside
from mecharule_ops.numbers import of_n
from mecharule_ops.pages import document
from mecharule_ops.predicates.cuts import column_predicates, evaluated
from mecharule_ops.predicates.language import parse_predicate, schema_of
from mecharule_ops.predicates.table import score_predicates
from mecharule_ops.rules.ruleshap import learn_rule
from mecharule_ops.run import live_run, tabulating
from mecharule_ops.run.controlling import anchored_rule, unit_vocabulary
from mecharule_ops.store import keys
from tools._asked import Asked, condition_of, unit_and_regime
from tools.arguments import AnchorArguments, ColumnArguments, ExtractArguments, ScoreArguments
from tools.result import About, Priced, Tell, of_facts, shown

SHOWN = 8
"""Values of a column that are told."""
LABELS: TypeAdapter[dict[str, Any]] = TypeAdapter(
    Annotated[dict[str, StrictStr] | dict[str, StrictBool] | dict[str, StrictInt | StrictFloat], Len(1)]
)


class _Target(NamedTuple):
    """What is to be told apart, on which train records."""

    key: str
    words: str
    positions: Int[np.ndarray, " record"]
    holds: Bool[np.ndarray, " record"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseRow:
    """One clause that RuleSHAP ranked."""

    clause: str = document.column("clause")
    mcc: float = document.column("train MCC", "{0.mcc:.3f}".format)
    coverage: float = document.column("coverage")
    importance: float = document.column("importance", "{0.importance:+.3f}".format)


def _target(run: live_run.Run, given: ScoreArguments | ExtractArguments) -> Generator[int, None, _Target]:
    """Success on all train records, or the flips of a unit on those that it may flip; flips not stored are priced."""
    if given.unit is None:
        yield 0
        positions = np.flatnonzero(run.train)
        return _Target("success", "success", positions, run.labels[positions])
    unit, regime = unit_and_regime(run, given.unit, given.regime)
    positions = tabulating.drawn(run, regime, tabulating.Part.TRAIN)
    yield tabulating.forwards_missing(run, (unit,), positions)
    flips = run.flips([(unit,)], positions, regime)[0]
    return _Target(f"unit.{unit}", f"the flips of {unit}", positions, flips)


def score(run: live_run.Run, given: ScoreArguments, tell: Tell) -> Priced:
    """Counts where each holds and elsewhere, AUC, average precision above base rate, Δ/σ; or why it is refused.

    Exit code 2 when one is refused. Raises `UsageError` without a predicate.
    """
    texts = [text.strip() for text in given.predicates.split(";") if text.strip()]
    if not texts:
        raise UsageError("expected a predicate such as 'a > b', got none; `;` stands between several")
    target, facts, refused = (yield from _target(run, given)), [], False
    of = About(f"{target.key}.score", f"run:{run.id}", given.unit)
    for text in dict.fromkeys(texts):
        try:
            holds = tabulating.fires(run, condition_of(run, text))[target.positions]
            if holds.all() or not holds.any():
                raise UsageError("expected a condition that holds on some train records and not on others")
        except UsageError as error:
            refused = True
            facts.append(of.told(text, "score.refused", {"refused": str(error)}, text=text))
            continue
        (one,) = score_predicates(holds[:, None], target.holds)
        hits, n = int((holds & target.holds).sum()), int(holds.sum())
        value = {"hits": hits, "n": n, **asdict(one)}
        value |= {"hits_elsewhere": int(target.holds.sum()) - hits, "n_elsewhere": len(holds) - n}
        facts.append(of.told(text, "score", value, of=target.words, text=text))
    return of_facts(facts, exit_code=UsageError.exit_code if refused else 0)


def extract(run: live_run.Run, given: ExtractArguments, tell: Tell) -> Priced:
    """Clauses by train MCC, best first, and the rule that their greedy OR makes; held-out records are not read.

    Of the run's predicates, with those proposed from the unit's flips and those over columns of one's own.
    """
    key, words, positions, holds = yield from _target(run, given)
    if given.among is not None:
        inside = tabulating.fires(run, condition_of(run, given.among))[positions]
        positions, holds = positions[inside], holds[inside]
    columns = {name: column[positions] for name, column in tabulating.columns_of(run).items()}
    asked = None if given.columns is None else {name.strip() for name in given.columns.split(",")}
    if unknown := sorted((asked or set()) - columns.keys()):
        raise UsageError(f"expected columns of {', '.join(columns)}; got {unknown[0]!r}")
    cut = columns.keys() - {"lead", *run.observed.columns} | (asked or set())
    texts = unit_vocabulary(run, positions, holds).texts if given.unit else tuple(run.vocabulary["kept"])
    of_cuts = {name: column for name, column in columns.items() if name in cut}
    texts, schema = (*texts, *column_predicates(of_cuts, np.arange(len(positions)))), schema_of(columns)
    if asked is not None:
        texts = tuple(text for text in texts if parse_predicate(text, schema).reads <= asked)
    table = evaluated(texts, columns)
    tell(f"RuleSHAP over {len(table.texts)} predicates and {len(positions):,} train records")
    learned = learn_rule(table, holds, seed=run.config.seed)
    rule, train = learned.rule and str(learned.rule), learned.train and learned.train.mcc
    mixed = learn_rule(table, np.random.default_rng(0).permutation(holds), seed=run.config.seed)
    permuted = mixed.train.mcc if mixed.train else 0.0
    score = "" if train is None else f" (train MCC {train:.2f}; of permuted labels {permuted:.2f})"
    said = f"rule of {words} in run {run.id}: {rule or learned.status.value}{score}"
    clauses = [document.row_of(ClauseRow, ranked, clause=str(ranked.clause)) for ranked in learned.clauses]
    result = shown(said, document.Table.of_rows(ClauseRow, clauses), given, key=f"{key}.clauses", run=run.id)
    value = {"rule": rule, "train_mcc": train, "permuted_mcc": permuted, "records": len(positions)}
    first = fact(f"The {said}", f"run:{run.id}", unit=given.unit, key=f"{key}.extracted", value=value)
    return replace(result, facts=(first, *result.facts))


def anchor(run: live_run.Run, given: AnchorArguments, tell: Tell) -> Priced:
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
        (rule,) = corrected_beside([made], run.rule_ps(), findings.alpha)
        run.keep_of_unit(keys.of_unit(keys.ANCHORED, unit, regime), rule)
    assert rule.flips is not None
    of, start = About.of_unit(run, unit, "anchored"), findings.words.of(bool(regime.value))
    facts = [
        of.told("flips", "anchor.flips", encode(rule.flips), counted=of_n(rule.flips), start=start),
        of.told("rule", "anchor.rule", rule_value(rule), said=rule_words(rule, run.id)),
    ]
    if rule.shown:
        reaches = findings.is_hq_t(rule)
        value = {"reaches": reaches, "mcc": findings.mcc_floor, "coverage": findings.coverage_floor}
        verb = "reaches" if reaches else "does not reach"
        facts.append(of.told("high_quality", "anchor.high_quality", value, verb=verb))
    return of_facts(facts)


def column(run: live_run.Run, given: ColumnArguments, tell: Tell) -> Priced:
    """What a column of one's own holds, kept with whose it is; every condition of this run may name it from now on.

    Raises `UsageError` for a name that is taken, an expression that does not read, labels of no record of the run.
    """
    if not re.fullmatch(r"[a-z_][a-z0-9_]*", given.name) or given.name in run.observed.columns:
        raise UsageError(f"expected a name of small letters that no column has, got {given.name!r}")
    if (given.expression is None) == (given.labels is None):
        raise UsageError("expected --expression or --labels, one of them")
    labels = None if given.labels is None else _labels(run, given.labels)
    yield 0
    own = keys.OwnColumn(name=given.name, by=given.made_by, expression=given.expression or "", labels=labels)
    tabulating.keep_column(run, own)
    values = tabulating.columns_of(run)[given.name]
    held = {str(value): count for value, count in Counter(values.tolist()).most_common()}
    told = ", ".join(f"{value} ({count})" for value, count in [*held.items()][:SHOWN])
    rest = f" and {len(held) - SHOWN} more values" if len(held) > SHOWN else ""
    made = f"by labels of {len(labels)} records" if labels else f"by the expression {given.expression}"
    value = {"by": given.made_by, "expression": given.expression, "records": len(values), "values": held}
    parts = {"column": given.name, "made": made, "told": told, "rest": rest}
    return of_facts([About("column", f"run:{run.id}").told(given.name, "column", value, **parts)])


def _labels(run: live_run.Run, said: str) -> dict[str, Any]:
    """`{record id: label}`, as JSON or from a file of it; all of one type, text, number or truth."""
    try:
        text = said if said.lstrip().startswith("{") else Path(said).read_text(encoding="utf-8")
        read = LABELS.validate_json(text)
    except (OSError, ValueError) as error:
        raise UsageError(
            "expected labels {record id: label}, all texts, numbers, or true and false, as JSON or a file of it"
        ) from error
    known = {str(record.example.id) for record in run.observed.records}
    if unknown := [id for id in read if id not in known]:
        told = "expected ids of the run's records, as `mecharule records` shows them"
        raise UsageError(f"{told}; got {unknown[0]!r}")
    return read
