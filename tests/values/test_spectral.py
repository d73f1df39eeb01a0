"""Spectral space, farthest-first coverage and pairing against brute force."""

from itertools import combinations

import numpy as np
import pytest

from mecharule_ops.spectral import covering_radius, farthest_first, pair_by_length, project, two_clusters


def spread(seed: int, n: int, width: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, width))


def test_projection_keeps_the_shape_and_fixes_the_scale() -> None:
    """All components kept: distances are the original ones times one factor; the mean squared norm is 1."""
    data = spread(0, 40, 5) * [10, 3, 1, 1, 0.1] + 7
    points = project(data)
    original = np.linalg.norm(data[:, None] - data[None], axis=2)
    projected = np.linalg.norm(points[:, None] - points[None], axis=2)
    assert np.allclose(projected, projected[0, 1] / original[0, 1] * original, atol=1e-9)
    assert np.mean(np.sum(points**2, axis=1)) == pytest.approx(1.0)


def test_projection_ignores_a_models_scale_and_takes_the_leading_directions() -> None:
    """Multiplying all activations changes nothing; two of five components are the largest two by SVD."""
    data = spread(1, 50, 5) * [9, 5, 1, 0.5, 0.1]
    points = project(data, 2)
    assert np.allclose(points, project(1000 * data, 2))
    left, values, _ = np.linalg.svd((data - data.mean(axis=0)), full_matrices=False)
    expected = left[:, :2] * values[:2]
    expected /= np.sqrt(np.mean(np.sum(expected**2, axis=1)))
    assert np.allclose(np.abs(points), np.abs(expected), atol=1e-9)


def naive_farthest_first(points: np.ndarray, size: int) -> list[int]:
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    central = np.linalg.norm(points - points.mean(axis=0), axis=1)
    chosen = [next(i for i in range(len(points)) if central[i] <= central.min() * 16 / 15 + 1e-9)]
    while len(chosen) < min(size, len(points)):
        rest = [i for i in range(len(points)) if i not in chosen]
        nearest = {i: min(distance[i, c] for c in chosen) for i in rest}
        chosen.append(next(i for i in rest if nearest[i] >= max(nearest.values()) * 15 / 16 - 1e-9))
    return chosen


@pytest.mark.parametrize("seed", range(8))
def test_traversal_equals_the_naive_one(seed: int) -> None:
    """Same centres in the same order, also with repeated points and past the number of distinct ones."""
    points = np.repeat(spread(seed, 7, 2), 1 + seed % 2, axis=0)
    centres = farthest_first(points, 10).tolist()
    assert centres == naive_farthest_first(points, 10)
    assert len(set(centres)) == min(10, len(points))


@pytest.mark.parametrize("seed", range(8))
def test_coverage_is_within_twice_the_optimum(seed: int) -> None:
    """Gonzalez' guarantee, a sixteenth weaker, against all subsets; centres in one corner break it."""
    points = np.concatenate([spread(seed, 6, 2) * 0.1, spread(seed, 6, 2) * 0.1 + 5])
    optimum = min(covering_radius(points, np.array(chosen)) for chosen in combinations(range(len(points)), 3))
    assert covering_radius(points, farthest_first(points, 3)) <= 2 * 16 / 15 * optimum + 1e-12
    assert covering_radius(points, np.array([0, 1, 2])) > 2 * optimum


@pytest.mark.parametrize("seed", range(4))
def test_two_clusters_are_a_fixed_point_of_two_means(seed: int) -> None:
    """Every point lies nearer to its own cluster's mean; two far clouds are found whole."""
    points = project(spread(seed, 60, 4) * [3, 1, 1, 1])
    second = two_clusters(points)
    means = [points[side].mean(axis=0) for side in (~second, second)]
    apart = [np.linalg.norm(points - mean, axis=1) for mean in means]
    assert ((apart[1] < apart[0]) == second).all()
    found = two_clusters(project(np.concatenate([spread(seed, 20), spread(seed, 5) + 30])))
    assert (found == found[0]).tolist() == [True] * 20 + [False] * 5


@pytest.mark.parametrize(
    "points", [np.full((6, 4), 1e4 / 3), np.ones((1, 4)), np.zeros((0, 4)), np.zeros((3, 0))]
)
def test_points_that_do_not_differ_project_to_the_origin_and_are_one_cluster(points: np.ndarray) -> None:
    """Equal, single and no records have no direction; nothing is divided by zero."""
    projected = project(points)
    assert len(projected) == len(points)
    assert not projected.any()
    assert not two_clusters(points).any()
    if len(points) == 0:
        assert len(farthest_first(points, 5)) == 0
        assert np.isnan(covering_radius(points, np.zeros(0, dtype=int)))


@pytest.mark.parametrize("seed", range(6))
def test_pairs_are_the_nearest_neighbours_of_equal_length_both_ways(seed: int) -> None:
    """A loop over all candidates finds the same pairs in the same order."""
    generator = np.random.default_rng(seed)
    first, second = spread(seed, 9), spread(seed + 100, 6)
    a, b = generator.integers(3, 7, 9), generator.integers(3, 7, 6)
    expected = set()
    distance = np.where(a[:, None] == b, np.linalg.norm(first[:, None] - second, axis=2), np.inf)
    for axis, rows in enumerate((distance, distance.T)):
        for place, row in enumerate(rows.tolist()):
            pair = (place, row.index(min(row)))
            expected |= {pair[::-1] if axis else pair} if min(row) < np.inf else set()
    by_distance = sorted(expected, key=lambda pair: distance[pair])
    for most in (100, 2):
        pairs = pair_by_length(first, second, a, b, most).tolist()
        assert [tuple(row) for row in pairs] == by_distance[:most]
