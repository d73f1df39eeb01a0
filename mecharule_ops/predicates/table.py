"""The predicate vocabulary Φ as a scored table (paper, §4.1 and appendix "Operational settings").

Texts are parsed, evaluated on every record, scored against a target and filtered. Scores and every choice
use the train records only; the test records are evaluated and otherwise unseen. Axes: record, predicate.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from mecharule_ops.predicates import language, type_check
from mecharule_ops.types import Columns

WEAK_AUC, WEAK_LIFT = 0.01, 0.005
"""A predicate is weak when |AUC − 0.5| is below the one and |ap_lift| below the other."""
RESTATES = 0.995
"""A predicate that reads the output with max(AUC, 1 − AUC) at least this restates the label: a splitter made of it
would leave one slice empty in each regime."""
MAD = 3.5
"""Robust z-score, 0.6745·(median − x)/MAD with x = log₁₀ of the rarer outcome's share. The paper does not say what is
an outlier in what; ours is rarity, since an outlier in score is what one looks for."""
RARE = 0.005
"""A MAD outlier is dropped only when its rarer outcome's share is below this too (the coverage floor)."""
CORRELATION = 0.98
"""Of two predicates with |φ| at least this the better-scored stays; on ties the earlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredicateScore:
    """How well one 0/1 predicate separates success from failure on the train records."""

    auc: float
    """Area under the ROC curve, (1 + TPR − FPR) / 2, in [0, 1]; 0.5 says nothing."""
    ap_lift: float
    """Average precision above the base rate π: TPR·precision + (1 − TPR)·π − π = TPR·(precision − π)."""
    separation: float
    """Δ/σ = (TPR − FPR) / √(f(1 − f)), f the share of records on which the predicate fires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A proposed text that did not enter the table, and why, on one line."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PredicateTable:
    """Φ evaluated on every record; the order is the order of proposal."""

    predicates: tuple[language.Predicate, ...]
    matrix: Bool[np.ndarray, "record predicate"]
    scores: tuple[PredicateScore, ...]
    """Aligned with `predicates`; train records only."""


def is_one_sided(target: Bool[np.ndarray, " record"]) -> bool:
    """Whether all records have the same outcome, so that nothing can tell outcomes apart."""
    return bool(target.all() or not target.any())


def score_predicates(
    matrix: Bool[np.ndarray, "record predicate"], target: Bool[np.ndarray, " record"]
) -> tuple[PredicateScore, ...]:
    """Scores of non-constant predicates; those of chance where the target has one value only."""
    positives, records = int(target.sum()), len(target)
    if is_one_sided(target):
        return (PredicateScore(auc=0.5, ap_lift=0.0, separation=0.0),) * matrix.shape[1]
    hits = matrix[target].sum(axis=0)
    fires = matrix.sum(axis=0)
    assert ((fires > 0) & (fires < records)).all(), "a constant predicate has no score"
    true_rate, false_rate = hits / positives, (fires - hits) / (records - positives)
    auc = (1 + true_rate - false_rate) / 2
    lift = true_rate * (hits / fires - positives / records)
    share = fires / records
    return tuple(
        PredicateScore(auc=float(a), ap_lift=float(p), separation=float(s))
        for a, p, s in zip(auc, lift, (true_rate - false_rate) / np.sqrt(share * (1 - share)), strict=True)
    )


def build_table(
    texts: Sequence[str],
    columns: Columns,
    target: Bool[np.ndarray, " record"],
    train: Bool[np.ndarray, " record"],
    *,
    prompt_columns: frozenset[str] | None = None,
) -> tuple[PredicateTable, tuple[Refusal, ...]]:
    """The table of those texts that are useful predicates, and one refusal for each of the others.

    A text is refused when it is no predicate, is constant on train, fires on the same train records as an
    earlier one, or is dropped by a filter. `prompt_columns` names the columns known before generation (all
    of them by default). Where the target has one value only nothing is weak and nothing restates it. Costs no model
    call.
    """
    parsed, matrix, refusals = _evaluate_distinct(texts, columns, train)
    scores = score_predicates(matrix[train], target[train])
    prompt = frozenset(columns) if prompt_columns is None else prompt_columns
    reads_output = np.array([not predicate.reads <= prompt for _, predicate in parsed], dtype=bool)
    reasons = {} if is_one_sided(target[train]) else dict(_uninformative(scores, reads_output))
    reasons |= _rarity_outliers(matrix[train])
    alive = [index for index in range(len(parsed)) if index not in reasons]
    reasons |= _near_duplicates(matrix[train], scores, [text for text, _ in parsed], alive)
    kept = [index for index in range(len(parsed)) if index not in reasons]
    dropped = (Refusal(text=parsed[index][0], reason=reason) for index, reason in sorted(reasons.items()))
    return PredicateTable(
        predicates=tuple(parsed[index][1] for index in kept),
        matrix=matrix[:, kept],
        scores=tuple(scores[index] for index in kept),
    ), (*refusals, *dropped)


def _evaluate_distinct(
    texts: Sequence[str], columns: Columns, train: Bool[np.ndarray, " record"]
) -> tuple[list[tuple[str, language.Predicate]], Bool[np.ndarray, "record predicate"], list[Refusal]]:
    """(text, predicate) of distinct non-constant fire vectors on train, their matrix, other refusals."""
    schema, parsed, vectors, refusals = language.schema_of(columns), [], [], []
    seen: dict[bytes, str] = {}
    for text in texts:
        try:
            predicate = language.parse_predicate(text, schema)
        except type_check.PredicateRefused as refused:
            refusals.append(Refusal(text=text, reason=str(refused)))
            continue
        fires = language.evaluate(predicate, columns)
        on_train = fires[train]
        key = np.packbits(on_train).tobytes()
        if on_train.all() or not on_train.any():
            reason = f"constant: true on {int(on_train.sum())} of {len(on_train)} train records"
            refusals.append(Refusal(text=text, reason=reason))
        elif key in seen:
            refusals.append(Refusal(text=text, reason=f"duplicate: true on the same records as {seen[key]}"))
        else:
            seen[key] = predicate.text
            parsed.append((text, predicate))
            vectors.append(fires)
    return parsed, (np.column_stack(vectors) if vectors else np.zeros((len(train), 0), dtype=bool)), refusals


def _uninformative(
    scores: Sequence[PredicateScore], reads_output: Bool[np.ndarray, " predicate"]
) -> Iterator[tuple[int, str]]:
    """What says nothing of the label, and what restates it."""
    for index, score in enumerate(scores):
        if abs(score.auc - 0.5) < WEAK_AUC and abs(score.ap_lift) < WEAK_LIFT:
            yield index, f"weak: AUC {score.auc:.3f}, average precision {score.ap_lift:+.3f} above base rate"
        elif reads_output[index] and max(score.auc, 1 - score.auc) >= RESTATES:
            yield index, f"restates the label: reads the output with AUC {score.auc:.3f}"


def _rarity_outliers(matrix: Bool[np.ndarray, "record predicate"]) -> dict[int, str]:
    share = matrix.mean(axis=0) if matrix.shape[1] else np.ones(0)
    rarer = np.minimum(share, 1 - share)
    height = np.log10(rarer)
    below = (np.median(height) if len(height) else 0.0) - height
    outlier = (0.6745 * below > MAD * (np.median(np.abs(below)) if len(below) else 0.0)) & (rarer < RARE)
    return {
        int(index): f"outlier: only {rarer[index]:.2%} of train records fall on its rarer side"
        for index in np.flatnonzero(outlier)
    }


def _near_duplicates(
    matrix: Bool[np.ndarray, "record predicate"],
    scores: Sequence[PredicateScore],
    texts: Sequence[str],
    alive: Sequence[int],
) -> dict[int, str]:
    columns = matrix[:, list(alive)]
    centred = columns - columns.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    correlation = np.abs((centred.T @ centred) / np.outer(norms, norms))  # φ of 0/1 columns.
    strength = [abs(scores[index].auc - 0.5) for index in alive]
    kept: list[int] = []
    reasons = {}
    for place in sorted(range(len(alive)), key=lambda place: -strength[place]):
        twin = next((other for other in kept if correlation[place, other] >= CORRELATION), None)
        if twin is None:
            kept.append(place)
            continue
        reasons[alive[place]] = (
            f"near-duplicate: |φ| {correlation[place, twin]:.3f} with {texts[alive[twin]]}"
        )
    return reasons
