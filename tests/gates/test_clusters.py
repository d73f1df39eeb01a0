"""Splits of whole clusters: none is in two, all kinds of outcome are in each, and too few are refused."""

from __future__ import annotations

import numpy as np
import pytest

from mecharule_ops.errors import UsageError
from mecharule_ops.gates.material import split_by_cluster


@pytest.mark.parametrize("seed", range(5))
def test_every_split_has_whole_clusters_of_every_kind(seed: int) -> None:
    """Of 18 clusters six go to each split, three or so of those that are mostly good."""
    generator = np.random.default_rng(seed)
    clusters = generator.permutation(np.repeat([f"c{place}" for place in range(18)], 20))
    good = np.array([int(one[1:]) % 2 == 0 for one in clusters])
    parts = split_by_cluster(clusters, good, generator)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(clusters)))
    names = [set(clusters[part]) for part in parts]
    assert [len(one) for one in names] == [6, 6, 6]
    assert not names[0] & names[1] | names[0] & names[2] | names[1] & names[2]
    assert all(good[part].mean() == 0.5 for part in parts)


def test_fewer_clusters_than_splits_are_refused() -> None:
    """In one line."""
    with pytest.raises(UsageError, match="three kinds or more"):
        split_by_cluster(np.array(["a", "b"]), np.array([True, False]), np.random.default_rng(0))
