"""Flips of a unit on records of D_b drawn by a hashed key, train and held out apart, and what asking for them costs.

A table says where a predicate holds and where not, and how often the unit flips on either side. Train records choose,
held-out ones decide; a draw of fewer records is a prefix of a draw of more.
"""

from __future__ import annotations

from enum import StrEnum
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Bool, Float, Int

from mecharule_ops.engine.group_questions import Group
from mecharule_ops.predicates.language import evaluate, parse_predicate, schema_of
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.run.contents import ObservedRecords
from mecharule_ops.run.live_run import Run
from mecharule_ops.store.keys import CLEAN_LEADS, LOOKS, HeldOutLook
from mecharule_ops.subsets import some_places
from mecharule_ops.types import Columns, Regime

LEAST_LEAD = "least_lead"
"""The column of the clean run's least lead."""
COMPETITORS = 1
_COLUMNS: WeakKeyDictionary[Run, tuple[ObservedRecords, Columns]] = WeakKeyDictionary()
"""Of each open run its columns, which every predicate reads."""


class Part(StrEnum):
    """Which records of D_b are meant."""

    TRAIN = "train"
    HELD_OUT = "held-out"


def drawn(run: Run, regime: Regime, part: Part, most: int | None = None) -> Int[np.ndarray, " record"]:
    """Positions of `most` of the part's records, or of all, in the order of their hashed keys.

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
    return np.concatenate(tuple(draws))[:most]


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
    return [
        look for look in run.store.find(LOOKS) or () if (look["unit"], look["arrow"]) == (unit, regime.arrow)
    ]


def fires(run: Run, condition: str) -> Bool[np.ndarray, " record"]:
    """Where a predicate, or a printed rule, holds on the observed records. Raises `UsageError`."""
    columns = columns_of(run)
    schema = schema_of(columns)
    return Rule.parse(condition).fires(lambda text: evaluate(parse_predicate(text, schema), columns))


def columns_of(run: Run) -> Columns:
    """The task's columns, and the least lead where it was measured; made once for the records observed so far."""
    observed, columns = _COLUMNS.get(run, (None, {}))
    if observed is not run.observed:
        columns = run.observed.columns
        columns = {**columns, LEAST_LEAD: measure_leads(run)} if has_leads(run) else columns
        _COLUMNS[run] = run.observed, columns
    return columns


def has_leads(run: Run) -> bool:
    """Whether the clean leads of all observed records are in the run file."""
    found = run.store.find(CLEAN_LEADS)
    return found is not None and len(found) == len(run.observed.records)


def measure_leads(run: Run) -> Float[np.ndarray, " record"]:
    """The least lead of every record's clean completion, of a success up to where it is settled, kept in the run file.

    A file from before keeps those of all tokens. Cost: a clean forward a record.
    """
    if has_leads(run):
        return run.store.get(CLEAN_LEADS)
    leads = _least_leads(run)
    if run.store.writable:
        run.store.put(CLEAN_LEADS, leads)
        _COLUMNS.pop(run, None)
    return leads


def _least_leads(run: Run) -> Float[np.ndarray, " record"]:
    from mecharule_ops.engine.settling import until_settled
    from mecharule_ops.mechanism.columns import extreme
    from mecharule_ops.mechanism.forced import Forcing
    from mecharule_ops.mechanism.leads import LeadHead, Leads

    records = until_settled(run.subject, run.task, run.observed.records)
    forcing, head = Forcing(run.subject, records, run.task.phase), LeadHead(run.subject, COMPETITORS)
    leads = Leads.empty(forcing.completions, COMPETITORS)
    for batch in forcing.batches():
        fed = forcing.feed(batch)
        at = fed.predicted
        leads.enter(batch, at, head.compare(fed.final[at.row, at.column], at.generated))
    return np.asarray(extreme(np.fmin, leads.lead[:, :, 0]).astype(float))
