"""Spectral compression of slices: PCA, farthest-first k-center coverage, pairs of neighbours (paper, §4.2).

Representations are the final normalised hidden state at the last prompt token; everything here is geometry
on those vectors. No model is called.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from sklearn.decomposition import PCA

COMPONENTS = 32
"""Dimensions of the spectral space (paper, appendix B)."""
RADIUS = 0.5
"""Covering radius of the k-center heuristic (paper, appendix B), in units of `project`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coverage:
    """Representatives of a set of points."""

    centres: Int[np.ndarray, " centre"]
    """Rows of the points, distinct, in the order of selection: every prefix is itself a cover."""
    radius: float
    """Largest distance of a point to its nearest centre; NaN when there are no points."""
    enough: int | None
    """Centres after which every point lay within the wanted radius; None when the cap came first."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairing:
    """Neighbouring examples of two slices, equal in token length."""

    pairs: Int[np.ndarray, "pair 2"]
    """(row of the first slice, row of the second), distinct, closest first."""
    partnerless: int
    """Examples of either slice for which the other slice has none of equal token length."""


def project(
    representation: Float[np.ndarray, "record channel"], components: int = COMPONENTS
) -> Float[np.ndarray, "record component"]:
    """Coordinates on the leading principal components, scaled by one factor to a mean squared norm of 1.

    The paper gives a radius of 0.5 but no unit. One common factor keeps the shape of the cloud (whitening
    would blow up the weak directions) and gives the radius a meaning that no model's scale changes: two
    random points lie about √2 apart. Constant representations project to the origin. At most
    min(record, channel) components exist. Exact eigendecomposition; the signs are fixed by the data.
    """
    rank = min(components, *representation.shape)
    data = np.asarray(representation, dtype=np.float64)
    if rank == 0 or (data == data[0]).all():
        return np.zeros((len(data), rank))
    fitted = PCA(n_components=rank, svd_solver="covariance_eigh")
    points = fitted.fit_transform(data)
    return points / np.sqrt(np.mean(np.sum(points**2, axis=1)))


def farthest_first(
    points: Float[np.ndarray, "record component"], size: int, radius: float = RADIUS
) -> Coverage:
    """min(size, record) centres by farthest-first traversal (Gonzalez 1985), within factor 2 of the optimum.

    The first centre is the point nearest to the mean; then always the point farthest from the chosen ones,
    the lowest row on a tie. Selection goes on to `size` after everything lies within `radius`, because each
    further example tightens the confidence bounds of the search; `enough` says where the paper's criterion
    was met. O(record · size · component) time.
    """
    if len(points) == 0:
        return covering(points, np.zeros(0, dtype=np.int64), radius)
    centres = [int(np.argmin(_distances(points, points.mean(axis=0))))]
    nearest = _distances(points, points[centres[0]])
    while len(centres) < min(size, len(points)):
        nearest[centres[-1]] = -1.0
        centres.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, _distances(points, points[centres[-1]]))
    return covering(points, np.array(centres), radius)


def covering(
    points: Float[np.ndarray, "record component"], centres: Int[np.ndarray, " centre"], radius: float = RADIUS
) -> Coverage:
    """How well given centres cover the points."""
    nearest = np.full(len(points), np.inf)
    enough = None
    for used, centre in enumerate(centres, start=1):
        nearest = np.minimum(nearest, _distances(points, points[centre]))
        if enough is None and nearest.max() <= radius:
            enough = used
    reached = float(nearest.max()) if len(points) else float("nan")
    return Coverage(centres=centres, radius=reached, enough=enough)


def pair_by_length(
    first: Float[np.ndarray, "left component"],
    second: Float[np.ndarray, "right component"],
    first_lengths: Int[np.ndarray, " left"],
    second_lengths: Int[np.ndarray, " right"],
    max_pairs: int,
) -> Pairing:
    """Each example with its nearest neighbour of equal token length in the other slice, both ways, once each.

    Looking both ways puts every example that has a partner into a pair even when the slices differ in size,
    and gives up to 2 · 64 = 128 pairs from slices of 64, the paper's cap. Past `max_pairs` the closest stay.
    Interpolating a pair position by position needs equal lengths, so an example without an equal-length
    partner is counted in `partnerless`, never paired.
    """
    if len(first) == 0 or len(second) == 0:
        return Pairing(pairs=np.zeros((0, 2), dtype=np.int64), partnerless=len(first) + len(second))
    distance = np.stack([_distances(second, point) for point in first])
    distance[first_lengths[:, None] != second_lengths[None, :]] = np.inf
    partnered = np.isfinite(distance)
    left, right = partnered.any(axis=1).nonzero()[0], partnered.any(axis=0).nonzero()[0]
    onward = np.stack([left, distance[left].argmin(axis=1)], axis=1)
    backward = np.stack([distance[:, right].argmin(axis=0), right], axis=1)
    pairs = np.unique(np.concatenate([onward, backward]), axis=0)
    closest = np.argsort(distance[pairs[:, 0], pairs[:, 1]], kind="stable")[:max_pairs]
    partnerless = len(first) - len(left) + len(second) - len(right)
    return Pairing(pairs=pairs[closest].astype(np.int64), partnerless=partnerless)


def _distances(
    points: Float[np.ndarray, "record component"], centre: Float[np.ndarray, " component"]
) -> Float[np.ndarray, " record"]:
    return np.linalg.norm(points - centre, axis=1)
