"""Spectral compression of slices: PCA, farthest-first k-center coverage, pairs of neighbours (paper, §4.2).

Representations are the final normalised hidden state at the last prompt token; everything here is geometry
on those vectors. No model is called.

Only whole numbers choose: a distance is rounded to `GRID`, which lies far above what sums of float64 differ by
between processors, and where several points are alike the lowest row is taken.
"""

import numpy as np
from jaxtyping import Bool, Float, Int

COMPONENTS = 32
"""Dimensions of the spectral space (paper, appendix B)."""
GRID = 2.0**-20
"""The unit in which distances are compared, in units of `project`."""
ALIKE = 16
"""Of two distances that differ by less than the larger one over this, neither counts as farther."""


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
    from sklearn.decomposition import PCA

    points = PCA(n_components=rank, svd_solver="covariance_eigh").fit_transform(data)
    return points / np.sqrt(np.mean(np.sum(points**2, axis=1)))


def farthest_first(points: Float[np.ndarray, "record component"], size: int) -> Int[np.ndarray, " centre"]:
    """min(size, record) rows as centres by farthest-first traversal (Gonzalez 1985); every prefix is itself a cover.

    The first centre is the point nearest to the mean, then always the point farthest from the chosen ones; of
    points that are `ALIKE` in this the lowest row, since which of them comes first is a matter of rounding.
    So the radius lies within 2 · 16/15 of the optimum. Selection goes on to `size` after everything lies within
    the paper's radius of 0.5 (appendix B), because each further example tightens the confidence bounds of the search.
    O(record · size · component) time.
    """
    if len(points) == 0:
        return np.zeros(0, dtype=np.int64)
    from_mean = _steps(_distances(points, points.mean(axis=0)))
    centres = [_lowest((ALIKE - 1) * from_mean <= ALIKE * from_mean.min())]
    nearest = _steps(_distances(points, points[centres[0]]))
    while len(centres) < min(size, len(points)):
        nearest[centres[-1]] = -1
        centres.append(_lowest(ALIKE * nearest >= (ALIKE - 1) * nearest.max()))
        nearest = np.minimum(nearest, _steps(_distances(points, points[centres[-1]])))
    return np.array(centres)


def two_clusters(points: Float[np.ndarray, "record component"]) -> Bool[np.ndarray, " record"]:
    """Which of two clusters each point belongs to; all to one when the points do not differ.

    Lloyd's algorithm from the two sides of the first component's mean, which solves the relaxed problem
    (Ding & He 2004); a point between both centres goes to the first. At most 100 rounds.
    """
    if len(points) == 0 or points.shape[1] == 0:
        return np.zeros(len(points), dtype=bool)
    second = _steps(points[:, 0] - points[:, 0].mean()) > 0
    for _ in range(100):
        if second.all() or not second.any():
            return np.zeros(len(points), dtype=bool)
        apart = [_steps(_distances(points, points[side].mean(axis=0))) for side in (~second, second)]
        moved = apart[1] < apart[0]
        if (moved == second).all():
            break
        second = moved
    return second


def covering_radius(
    points: Float[np.ndarray, "record component"], centres: Int[np.ndarray, " centre"]
) -> float:
    """Largest distance of a point to its nearest centre; NaN when there are no points."""
    nearest = np.full(len(points), np.inf)
    for centre in centres:
        nearest = np.minimum(nearest, _distances(points, points[centre]))
    return float(nearest.max()) if len(points) else float("nan")


def pair_by_length(
    first: Float[np.ndarray, "left component"],
    second: Float[np.ndarray, "right component"],
    first_lengths: Int[np.ndarray, " left"],
    second_lengths: Int[np.ndarray, " right"],
    max_pairs: int,
) -> Int[np.ndarray, "pair 2"]:
    """Each example with its nearest neighbour of equal token length in the other slice, both ways, once each.

    A pair is (row of the first slice, row of the second); the closest come first.
    Looking both ways puts every example that has a partner into a pair even when the slices differ in size,
    and gives up to 2 · 64 = 128 pairs from slices of 64, the paper's cap. Past `max_pairs` the closest stay.
    Interpolating a pair position by position needs equal lengths, so an example without an equal-length
    partner is in no pair.
    """
    if len(first) == 0 or len(second) == 0:
        return np.zeros((0, 2), dtype=np.int64)
    distance = np.stack([_steps(_distances(second, point)) for point in first])
    partnered = first_lengths[:, None] == second_lengths[None, :]
    distance[~partnered] = np.iinfo(np.int64).max
    left, right = partnered.any(axis=1).nonzero()[0], partnered.any(axis=0).nonzero()[0]
    onward = np.stack([left, distance[left].argmin(axis=1)], axis=1)
    backward = np.stack([distance[:, right].argmin(axis=0), right], axis=1)
    pairs = np.unique(np.concatenate([onward, backward]), axis=0)
    return pairs[np.argsort(distance[pairs[:, 0], pairs[:, 1]], kind="stable")[:max_pairs]].astype(np.int64)


def _distances(
    points: Float[np.ndarray, "record component"], centre: Float[np.ndarray, " component"]
) -> Float[np.ndarray, " record"]:
    return np.linalg.norm(points - centre, axis=1)


def _steps(lengths: Float[np.ndarray, " record"]) -> Int[np.ndarray, " record"]:
    """In whole multiples of `GRID`."""
    return np.rint(lengths / GRID).astype(np.int64)


def _lowest(true: Bool[np.ndarray, " record"]) -> int:
    """The first row of those that are true."""
    return int(np.argmax(true))
