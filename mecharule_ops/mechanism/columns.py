"""The columns that rules of the clean-run and mechanism families read, from leads, drops and pushes of some records.

That is: logit differences of the clean run, their attribution patching, and the unit's direct logit attribution.
Names count generated tokens from 1. A record without a value at a token has NaN there, or the empty text, which no
predicate over it holds for.
"""

from collections.abc import Callable, Sequence

import numpy as np

from mecharule_ops.mechanism.first_order import Effects
from mecharule_ops.mechanism.leads import Leads
from mecharule_ops.types import Neuron

Decode = Callable[[Sequence[int]], str]


def clean_run_columns(leads: Leads, decode: Decode) -> dict[str, np.ndarray]:
    """`lead_1` and `runner_up_1` of each generated token in reach of some record, and `least_lead`."""
    columns: dict[str, np.ndarray] = {}
    for position in leads.positions:
        columns[f"lead_{position + 1}"] = leads.lead[:, position, 0].astype(float)
        columns[f"runner_up_{position + 1}"] = texts_of(leads.token[:, position, 0], decode)
    columns["least_lead"] = extreme(np.fmin, leads.lead[:, :, 0])
    return columns


def mechanism_columns(unit: Neuron, drops: Effects, pushes: Effects) -> dict[str, np.ndarray]:
    """`drop_1` and `push_1` of each such token over its runner-up; `drop_minus_lead`, as first order has it."""
    place = drops.units.index(unit)
    columns: dict[str, np.ndarray] = {}
    for position in drops.leads.positions:
        columns[f"drop_{position + 1}"] = drops.effect[:, position, 0, place].astype(float)
        columns[f"push_{position + 1}"] = pushes.effect[:, position, 0, place].astype(float)
    excess = drops.excess[:, place].astype(float)
    columns["drop_minus_lead"] = np.where(np.isfinite(excess), excess, np.nan)
    return columns


def texts_of(tokens: np.ndarray, decode: Decode) -> np.ndarray:
    """The text of each token; empty for −1."""
    known = {int(token): decode((int(token),)) if token >= 0 else "" for token in np.unique(tokens)}
    return np.array([known[token] for token in tokens.tolist()], np.str_)


def extreme(take: np.ufunc, values: np.ndarray) -> np.ndarray:
    """The least or largest number of each row; NaN for a row with none."""
    return take.reduce(values.astype(float), axis=1, initial=np.nan)
