"""Drawing some of the records: what is drawn depends on ids, purpose and seed, and on nothing else."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mecharule_ops.subsets import some_of


@given(
    ids=st.lists(st.integers(0, 10**6), min_size=1, max_size=60, unique=True),
    most=st.integers(0, 70),
    shuffle=st.randoms(use_true_random=False),
)
def test_the_ids_drawn_are_the_same_in_every_order_of_the_records(
    ids: list[int], most: int, shuffle: random.Random
) -> None:
    """And they come in the same order."""
    other = list(ids)
    shuffle.shuffle(other)
    one, two = (some_of(each, most, of="test") for each in (ids, other))
    assert [ids[place] for place in one] == [other[place] for place in two]
    assert len(set(one.tolist())) == min(most, len(ids))


def test_a_prefix_is_a_smaller_draw() -> None:
    """So what comes after it is a disjoint one."""
    every = some_of(range(100), of="test")
    assert every[:10].tolist() == some_of(range(100), 10, of="test").tolist()
    assert sorted(every) == list(range(100))


def test_seed_and_purpose_draw_for_themselves() -> None:
    """Two purposes do not see the same records, nor do two seeds."""
    draws = [some_of(range(1000), 100, of=of, seed=seed) for of in ("one", "two") for seed in (0, 1)]
    for place, one in enumerate(draws):
        for other in draws[place + 1 :]:
            assert len(set(one) & set(other)) < 30


def test_a_draw_is_a_fair_share_of_what_file_order_would_hide() -> None:
    """Ids sorted by what matters: of 256 among 10,000 about as many come from each tenth. A prefix would not."""
    tenths = np.bincount(some_of(range(10_000), 256, of="test") // 1000, minlength=10)
    assert tenths.min() >= 10
    assert tenths.max() <= 45
