"""What a predicted change does to the answer, and how predictions are scored against real flips.

Two predictions that are never mixed: that the answer changes (the law), and what its label becomes. The second puts
the competitor that wins in the place of the first changed token and asks the task: where the task can tell from the
completion up to there, that is the label; else the rest of the clean completion is kept behind it. In 1→0 the two
nearly agree, in 0→1 most changed answers stay wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.loading.model import Subject
from mecharule_ops.rules.matthews import mcc
from mecharule_ops.tasks.base import Task
from mecharule_ops.types import BehaviourRecord


def predicted_labels(
    subject: Subject,
    task: Task,
    records: Sequence[BehaviourRecord],
    position: Int[np.ndarray, " record"],
    token: Int[np.ndarray, " record"],
) -> Bool[np.ndarray, " record"]:
    """The label of every record after its predicted change; its own where none is predicted (position −1)."""
    labels = np.array([record.label for record in records], bool)
    for row in np.flatnonzero(position >= 0).tolist():
        record, at = records[row], int(position[row])
        begun = (*record.tokens[:at], int(token[row]))
        decided = task.decide(record.example, subject.decode(begun))
        if decided is None:
            whole = (*begun, *record.tokens[at + 1 :])
            decided = task.label(record.example, subject.decode(whole))
        labels[row] = decided
    return labels


class ScoreStatus(StrEnum):
    """Whether a prediction can be scored; the value is the sentence a person reads."""

    SCORED = "flips and predictions both vary"
    NO_FLIP = "no record flips, so no prediction can be scored"
    ALL_FLIP = "every record flips, so no prediction can be scored"
    CONSTANT = "the prediction is the same for every record"
    EMPTY = "there are no records to score on"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A prediction of flips against the flips."""

    mcc: float
    """Matthews correlation; NaN unless the status is `SCORED`, 0 for a constant prediction of varying flips."""
    flips: int
    """Records that flip."""
    predicted: int
    hits: int
    """Records that flip and are predicted to."""
    n: int
    status: ScoreStatus


def score(predicted: Bool[np.ndarray, " record"], flips: Bool[np.ndarray, " record"]) -> Score:
    """How well a prediction says which records flip."""
    n, some, said = len(flips), int(flips.sum()), int(predicted.sum())
    status = ScoreStatus.SCORED
    if n == 0:
        status = ScoreStatus.EMPTY
    elif some in (0, n):
        status = ScoreStatus.ALL_FLIP if some else ScoreStatus.NO_FLIP
    elif said in (0, n):
        status = ScoreStatus.CONSTANT
    defined = status in (ScoreStatus.SCORED, ScoreStatus.CONSTANT)
    return Score(
        mcc=mcc(predicted, flips) if defined else float("nan"),
        flips=some,
        predicted=said,
        hits=int((predicted & flips).sum()),
        n=n,
        status=status,
    )


def bootstrap_mcc(
    predicted: Bool[np.ndarray, " record"],
    flips: Bool[np.ndarray, " record"],
    generator: np.random.Generator,
    draws: int = 2000,
    confidence: float = 0.95,
) -> tuple[float, float]:
    """Percentile bootstrap interval of the MCC over records; NaN twice where the MCC is not defined.

    A draw in which flips or prediction are constant has no MCC and is left out.
    """
    if score(predicted, flips).status is not ScoreStatus.SCORED:
        return float("nan"), float("nan")
    cells = np.array([np.sum(predicted & flips), np.sum(predicted & ~flips), np.sum(~predicted & flips)])
    n = len(flips)
    drawn = generator.multinomial(n, [*(cells / n), 1 - cells.sum() / n], size=draws).astype(float)
    tp, fp, fn, tn = drawn.T
    bottom = np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    values = ((tp * tn - fp * fn)[bottom > 0]) / bottom[bottom > 0]
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def best_threshold(excess: np.ndarray, flips: Bool[np.ndarray, " record"]) -> float:
    """The excess beyond which a flip is said, with the largest MCC on these records; 0, the law's own, on a tie.

    Fitted on train records only, it is the law's variant with one parameter.
    """
    finite = np.unique(excess[np.isfinite(excess)].astype(np.float64))
    between = np.concatenate([[0.0], (finite[:-1] + finite[1:]) / 2])
    values = [mcc(excess > threshold, flips) for threshold in between]
    return float(between[int(np.argmax(values))])
