"""Flips of a unit on records of D_b drawn by a hashed key, train and held out apart, and what asking for them costs.

A table says where a predicate holds and where not, and how often the unit flips on either side. Train records choose,
held-out ones decide; a draw of fewer records is a prefix of a draw of more.

Claims of when a unit flips stand in the ledger: registered before a held-out flip is read, then decided once. What was
decided of a unit, direction and condition by a test stands, whatever threshold it had: a second decision on the same
records would spend an error that no family counts.
"""

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.engine.outcomes import Group
from mecharule_ops.findings.claim_verdicts import Shares, TableVerdict, table_verdicts
from mecharule_ops.predicates.language import evaluate, parse_predicate, schema_of, values_of
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.run.live_run import ObservedRecords, Run
from mecharule_ops.store.keys import LOOKS, OWN_COLUMNS, HeldOutLook, OwnColumn
from mecharule_ops.store.ledger import Claim, Hypothesis, Ledger, TestOutcome
from mecharule_ops.subsets import some_places
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.text import TextTask
from mecharule_ops.types import BehaviourRecord, Columns, Neuron, Regime

AMONG = " among "
"""Between the condition of a look and the one whose records alone were looked at."""
_COLUMNS: WeakKeyDictionary[Run, tuple[ObservedRecords, Columns]] = WeakKeyDictionary()
"""Of each open run its columns, which every predicate reads."""
MOST_VALUES = 12
"""Distinct values of a column that are told apart; a column of more numbers is cut at its quartiles."""


class Part(StrEnum):
    """Which records of D_b are meant."""

    TRAIN = "train"
    HELD_OUT = "held-out"


def drawn(run: Run, regime: Regime, part: Part) -> Int[np.ndarray, " record"]:
    """Positions of the part's records, in the order of their hashed keys.

    After the run's own come the further ones that accounts observed, so that a draw of before stays a prefix.
    """
    observed = run.observed
    eligible = observed.eligible(regime)
    among = eligible[observed.train[eligible] == (part is Part.TRAIN)]
    own = among < len(run.records)
    draws = (
        some_places(observed.records, among[which], of=f"tabulated {part}", seed=run.config.seed)
        for which in (own, ~own)
    )
    return np.concatenate(tuple(draws))


def forwards_missing(run: Run, group: Group, positions: Int[np.ndarray, " record"]) -> int:
    """Example-forwards that the group's flips on these records cost: those that are not stored."""
    return int(run.engine(run.intervention(group[0].basis)).missing(group, positions).sum())


def count_look(run: Run, unit: str, regime: Regime, condition: str, by: str) -> None:
    """Keeps that held-out flips of the unit were read for a condition by a verb; the same again is one look."""
    look = HeldOutLook(unit=unit, arrow=regime.arrow, condition=condition, by=by)
    kept = [*(run.store.find(LOOKS) or ())]
    if look not in kept and run.store.writable:
        run.store.put(LOOKS, [*kept, look])


def looks_at(run: Run, unit: str, regime: Regime) -> list[HeldOutLook]:
    """The looks at the unit's held-out flips so far."""
    of = unit, regime.arrow
    return [look for look in run.store.find(LOOKS) or () if (look["unit"], look["arrow"]) == of]


def touches(look: str, condition: str) -> bool:
    """Whether a look showed flips for a condition: for itself, for a column that it reads, or for it among others."""
    return look in (condition, *re.findall(r"\w+", condition)) or look.startswith(f"{condition}{AMONG}")


def fires(run: Run, rule: Rule) -> Bool[np.ndarray, " record"]:
    """Where a rule holds on the observed records. Raises `UsageError` for a column that they do not have."""
    return _holds(rule, columns_of(run))


def rule_fires(rule: Rule, task: Task, records: Sequence[BehaviourRecord]) -> Bool[np.ndarray, " record"]:
    """Where a rule fires on records, also on ones that no run has seen. Loads no model."""
    return _holds(rule, task.columns(records))


def _holds(rule: Rule, columns: Columns) -> Bool[np.ndarray, " record"]:
    schema = schema_of(columns)
    return rule.fires(lambda text: evaluate(parse_predicate(text, schema), columns))


def columns_of(run: Run) -> Columns:
    """The task's columns, the lead and one's own; made once for the records observed so far."""
    observed, columns = _COLUMNS.get(run, (None, {}))
    if observed is not run.observed:
        columns = _with_own(run, run.store.find(OWN_COLUMNS) or ())
        _COLUMNS[run] = run.observed, columns
    return columns


def keep_column(run: Run, own: OwnColumn) -> None:
    """Keep a column of one's own, in the place of one of its name. Raises `UsageError` where it cannot be made."""
    kept = {one["name"]: one for one in run.store.find(OWN_COLUMNS) or ()} | {own["name"]: own}
    _with_own(run, kept.values())
    run.store.put(OWN_COLUMNS, [*kept.values()])
    _COLUMNS.pop(run, None)


def _with_own(run: Run, every: Iterable[OwnColumn]) -> Columns:
    """The task's columns, the lead and these; where a record has no label, empty, false or no number."""
    columns = {**run.observed.columns}
    columns.setdefault("lead", np.array([record.margin for record in run.observed.records]))
    for own in every:
        if (labels := own["labels"]) is None:
            columns[own["name"]] = values_of(own["expression"], columns)
        else:
            absent = {str: "", bool: False}.get(type(next(iter(labels.values()))), np.nan)
            of_each = [labels.get(str(record.example.id), absent) for record in run.observed.records]
            columns[own["name"]] = np.array(of_each)
    return columns


def few_valued(run: Run) -> dict[str, list[str | int]]:
    """The columns of the prompt with 2 to `MOST_VALUES` distinct values, texts or whole numbers.

    None of a task that has words of its own for what its columns hold, or that conceals them.
    """
    task = run.task
    if not isinstance(task, TextTask) or task.concealed:
        return {}
    own = task.prompt_columns - task.solution_columns
    plain = {
        name: np.unique(values).tolist()
        for name, values in run.observed.columns.items()
        if name in own and values.dtype.kind in "iU"
    }
    return {name: values for name, values in plain.items() if 2 <= len(values) <= MOST_VALUES}


def claims_of(run: Run, neuron: Neuron, regime: Regime) -> list[tuple[Claim, Hypothesis]]:
    """The claims of when a unit flips with their entries, decided or not, in the order of registration."""
    return [
        (claim, entry)
        for entry in Ledger(run.store).entries()
        if isinstance(claim := entry.prediction, Claim)
        and (claim.unit, claim.regime) == (str(neuron), regime)
    ]


def claims_decided(
    run: Run,
    ledger: Ledger,
    claims: Sequence[Claim],
    holds: Bool[np.ndarray, "claim record"],
    flips: Bool[np.ndarray, " record"],
    regime: Regime,
    shares: Shares,
    by: str,
) -> list[Hypothesis]:
    """The decided entry of each claim of one unit, all entered before, on the same held-out records."""

    def entry(claim: Claim) -> Hypothesis:
        return ledger.settled(claim) or ledger.entry(claim.id)

    found = table_verdicts(holds, flips, [entry(claim).prediction.threshold for claim in claims], shares)
    for claim in claims:
        count_look(run, claim.unit, regime, claim.condition, by)
    decided = []
    for claim, verdict in zip(claims, found, strict=True):
        # What was decided before stands and the outcome is not taken.
        if (known := entry(claim)).outcome is None:
            known = ledger.decide(known.id, partial(_outcome, verdict, flips))
        decided.append(known)
    return decided


def _outcome(verdict: TableVerdict, flips: Bool[np.ndarray, " record"], prediction: object) -> TestOutcome:
    told, inside, outside = verdict.told, verdict.told.where.holds, verdict.told.where.elsewhere
    return TestOutcome(
        value=told.value,
        n=len(flips),
        positives=int(flips.sum()),
        state=verdict.state,
        counts=(inside.flips, inside.n, outside.flips, outside.n),
        low=told.low,
        high=told.high,
        p=verdict.p,
    )
