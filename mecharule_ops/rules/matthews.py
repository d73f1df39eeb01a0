"""Matthews correlation on packed bits, and what climbs it: the greedy OR-combination (paper, §4.2), the best cut.

A rule is one bit per record. Packed 64 records to a word, the four counts behind an MCC are population
counts, so a clause is scored in microseconds and each greedy step scores the whole pool.

MCC = (tp·tn − fp·fn) / √(fired · (n − fired) · positives · (n − positives)), Chicco and Jurman (2020); the
numerator equals tp·n − fired·positives. It is 0.0 where the denominator is.
"""

import math

import numpy as np
from jaxtyping import Bool, Float, Int, UInt64

MARGIN = 1e-12
"""Two MCC closer than this are equal: the rounding of one division and one square root stays far below."""


def mcc(fires: Bool[np.ndarray, " record"], target: Bool[np.ndarray, " record"]) -> float:
    """Matthews correlation of a rule with a target, in [−1, 1]; 0.0 when either is constant or empty."""
    hits, fired = int(np.count_nonzero(fires & target)), int(np.count_nonzero(fires))
    return mcc_of_one(hits, fired, int(np.count_nonzero(target)), len(target))


def mcc_of_one(hits: int, fired: int, positives: int, n: int) -> float:
    """`mcc_of_counts` of one clause, to the last bit, without an array of one."""
    bottom = math.sqrt(float(fired) * (n - fired) * (float(positives) * (n - positives)))
    if not bottom:
        return 0.0
    return min(1.0, max(-1.0, (float(hits) * n - float(fired) * positives) / bottom))


def mcc_of_counts(
    hits: Int[np.ndarray, " clause"],
    fired: Int[np.ndarray, " clause"],
    positives: int | Int[np.ndarray, " clause"],
    n: int,
) -> Float[np.ndarray, " clause"]:
    """MCC of each clause from its true positives `hits` and its firings `fired` among n records."""
    true = np.asarray(positives, np.float64)
    top = hits.astype(np.float64) * n - fired.astype(np.float64) * true
    bottom = np.sqrt(fired.astype(np.float64) * (n - fired) * (true * (n - true)))
    return np.clip(np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0), -1.0, 1.0)


def pack(bits: Bool[np.ndarray, "row record"]) -> UInt64[np.ndarray, "row word"]:
    """Each row's records as bits of 64-bit words; the padding at the end is zero."""
    packed = np.packbits(bits, axis=1)
    words = np.zeros((len(packed), -(-packed.shape[1] // 8)), np.uint64)
    words.view(np.uint8)[:, : packed.shape[1]] = packed
    return words


def packed_counts(
    fires: UInt64[np.ndarray, "clause word"], target: UInt64[np.ndarray, " word"]
) -> tuple[Int[np.ndarray, " clause"], Int[np.ndarray, " clause"]]:
    """True positives and firings of each clause."""
    hits = np.bitwise_count(fires & target).sum(axis=1, dtype=np.int64)
    return hits, np.bitwise_count(fires).sum(axis=1, dtype=np.int64)


def packed_mcc(
    fires: UInt64[np.ndarray, "clause word"], target: UInt64[np.ndarray, " word"], n: int
) -> Float[np.ndarray, " clause"]:
    """MCC of each packed clause with a packed target of n records."""
    hits, fired = packed_counts(fires, target)
    return mcc_of_counts(hits, fired, int(np.bitwise_count(target).sum()), n)


def greedy_union(
    fires: UInt64[np.ndarray, "clause word"],
    target: UInt64[np.ndarray, " word"],
    n: int,
    max_clauses: int,
    starts: int,
    min_gain: float,
) -> tuple[int, ...]:
    """Indices of the clauses whose OR the greedy search ends with, in the order kept.

    Clauses come best first, so that an earlier one wins a tie. A climb starts at each of the `starts` best
    single clauses by MCC and adds the clause that improves the union's MCC most, while it improves by more
    than `min_gain`. The climb that ends highest wins (then the shorter, then the earlier), so the result is
    never below the best single clause. Cost: about starts · max_clauses passes over the packed pool.
    """
    gain = max(MARGIN, min_gain)
    singles = packed_mcc(fires, target, n)
    best: tuple[int, ...] = ()
    best_value = -np.inf
    for seed in np.argsort(-singles, kind="stable")[:starts]:
        chosen, value = _climb(fires, target, n, int(seed), max_clauses, gain)
        if value > best_value + MARGIN or (abs(value - best_value) <= MARGIN and len(chosen) < len(best)):
            best, best_value = chosen, value
    return best


def _climb(
    fires: UInt64[np.ndarray, "clause word"],
    target: UInt64[np.ndarray, " word"],
    n: int,
    seed: int,
    max_clauses: int,
    gain: float,
) -> tuple[tuple[int, ...], float]:
    """The seed and the clauses added to it, each of which improved the union's MCC, and that MCC."""
    chosen, union = [seed], fires[seed]
    value = float(packed_mcc(union[None, :], target, n)[0])
    while len(chosen) < max_clauses:
        scores = packed_mcc(fires | union, target, n)
        pick = int(np.argmax(scores))
        if scores[pick] <= value + gain:
            break
        chosen.append(pick)
        union, value = union | fires[pick], float(scores[pick])
    return tuple(chosen), value


def best_threshold(
    guessed: Float[np.ndarray, " record"], target: Bool[np.ndarray, " record"]
) -> tuple[float, float]:
    """(threshold, MCC): the guess from which on to predict the target for the largest MCC; ties: the highest."""
    ranked, ends, scores = _ranked(guessed, target)
    place = int(np.argmax(scores))
    return float(ranked[ends[place]]), float(scores[place])


def best_cut(values: Float[np.ndarray, " record"], target: Bool[np.ndarray, " record"]) -> float:
    """θ for which `values > θ` has the largest MCC with the target; ∞ where no cut is better than chance.

    Of cuts with the same MCC the one that fires least. "Always" (θ = −∞) and "never" (θ = ∞) have an MCC of 0.
    """
    there = ~np.isnan(values)
    ranked, ends, scores = _ranked(values[there].astype(float), target[there], target)
    if not len(ends):
        return np.inf
    best = int(np.argmax(scores > scores.max() - MARGIN))
    if scores[best] <= MARGIN:
        return np.inf
    end = int(ends[best])
    return -np.inf if end + 1 == len(ranked) else float((ranked[end] + ranked[end + 1]) / 2)


def _ranked(
    values: Float[np.ndarray, " known"],
    target: Bool[np.ndarray, " known"],
    every: Bool[np.ndarray, " record"] | None = None,
) -> tuple[Float[np.ndarray, " known"], Int[np.ndarray, " cut"], Float[np.ndarray, " cut"]]:
    """(values, the largest first; the last place of each distinct one; MCC on `every` record of firing from it on)."""
    order = np.argsort(-values, kind="stable")
    ranked, hits = values[order], np.cumsum(target[order])
    ends = np.flatnonzero(np.append(ranked[1:] < ranked[:-1], np.ones(min(1, len(ranked)), bool)))
    whole = target if every is None else every
    return ranked, ends, mcc_of_counts(hits[ends], ends + 1, int(whole.sum()), len(whole))
