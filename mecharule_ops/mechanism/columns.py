"""The columns that rules of the clean-run and mechanism families read, from leads, drops and pushes of some records.

That is: logit differences of the clean run, their attribution patching, and the unit's direct logit attribution.
Names count generated tokens from 1. A record without a value at a token has NaN there, or the empty text, which no
predicate over it holds for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mecharule_ops.mechanism.first_order import Effects
from mecharule_ops.mechanism.leads import Leads
from mecharule_ops.types import Neuron

Decode = Callable[[Sequence[int]], str]


def clean_run_columns(leads: Leads, decode: Decode, positions: Sequence[int]) -> dict[str, np.ndarray]:
    """`lead_1` and `runner_up_1` of each generated token of `positions` (from 0), and `least_lead`."""
    columns: dict[str, np.ndarray] = {}
    for position in positions:
        lead, token = _at(leads, position)
        columns[f"lead_{position + 1}"] = lead
        columns[f"runner_up_{position + 1}"] = texts_of(token, decode)
    columns["least_lead"] = extreme(np.fmin, leads.lead[:, :, 0])
    return columns


def written_columns(leads: Leads, decode: Decode, positions: Sequence[int]) -> dict[str, np.ndarray]:
    """`token_1` of every position, what the model wrote; where its least lead is, what stood and who came second.

    `least_at` counts from 1; `least_token` and `least_runner_up` are the two texts there.
    """
    records = len(leads.generated)
    columns: dict[str, np.ndarray] = {}
    for position in positions:
        inside = position < leads.generated.shape[1]
        token = leads.generated[:, position] if inside else np.full(records, -1)
        columns[f"token_{position + 1}"] = texts_of(token, decode)
    lead = leads.lead[:, :, 0]
    some = np.isfinite(lead).any(1) if lead.size else np.zeros(records, bool)
    at = np.where(np.isfinite(lead), lead, np.inf).argmin(1) if lead.size else np.zeros(records, int)
    row = np.arange(records)
    columns["least_at"] = np.where(some, at + 1.0, np.nan)
    for name, tokens in (("least_token", leads.generated), ("least_runner_up", leads.token[:, :, 0])):
        chosen = np.where(some, tokens[row, at], -1) if lead.size else np.full(records, -1)
        columns[name] = texts_of(chosen, decode)
    return columns


def mechanism_columns(
    unit: Neuron, drops: Effects, pushes: Effects, positions: Sequence[int]
) -> dict[str, np.ndarray]:
    """`drop_1` and `push_1` of each generated token over its runner-up; `drop_minus_lead`, as first order has it."""
    place = drops.units.index(unit)
    columns: dict[str, np.ndarray] = {}
    for position in positions:
        columns[f"drop_{position + 1}"] = _effect_at(drops, position, place)
        columns[f"push_{position + 1}"] = _effect_at(pushes, position, place)
    excess = drops.excess[:, place].astype(float)
    columns["drop_minus_lead"] = np.where(np.isfinite(excess), excess, np.nan)
    return columns


def first_order_columns(unit: Neuron, drops: Effects, decode: Decode) -> dict[str, np.ndarray]:
    """What first order says that the unit's ablation does: whether the answer `changes`, where, and to which token.

    `changes_at` counts generated tokens from 1; `changes_to` is empty where no change is predicted.
    """
    position, token = drops.changes(unit)
    changes = position >= 0
    return {
        "changes": changes,
        "changes_at": np.where(changes, position + 1.0, np.nan),
        "changes_to": texts_of(token, decode),
    }


def texts_of(tokens: np.ndarray, decode: Decode) -> np.ndarray:
    """The text of each token; empty for −1."""
    known = {int(token): decode((int(token),)) if token >= 0 else "" for token in np.unique(tokens)}
    return np.array([known[token] for token in tokens.tolist()], np.str_)


def extreme(take: np.ufunc, values: np.ndarray) -> np.ndarray:
    """The least or largest number of each row; NaN for a row with none."""
    return take.reduce(values.astype(float), axis=1, initial=np.nan)


def _at(leads: Leads, position: int) -> tuple[np.ndarray, np.ndarray]:
    """(lead, token) of the runner-up at a position; NaN and −1 beyond every completion."""
    records, length, _ = leads.lead.shape
    if position >= length:
        return np.full(records, np.nan), np.full(records, -1)
    return leads.lead[:, position, 0].astype(float), leads.token[:, position, 0]


def _effect_at(found: Effects, position: int, place: int) -> np.ndarray:
    records, length = found.effect.shape[:2]
    if position >= length:
        return np.full(records, np.nan)
    return found.effect[:, position, 0, place].astype(float)
