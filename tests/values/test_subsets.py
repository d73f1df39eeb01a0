"""Drawing some of the records, or random units beside one: by ids, purpose and seed, and by nothing else."""

import random
from collections import Counter
from itertools import chain, combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mecharule_ops.subsets import random_units, some_of
from mecharule_ops.types import Basis, Neuron


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


def test_a_prefix_is_a_smaller_draw_and_seed_and_purpose_draw_for_themselves() -> None:
    """So what comes after it is a disjoint one; two purposes do not see the same records, nor do two seeds."""
    every = some_of(range(100), of="test")
    assert every[:10].tolist() == some_of(range(100), 10, of="test").tolist()
    assert sorted(every) == list(range(100))
    draws = [some_of(range(1000), 100, of=of, seed=seed) for of in ("one", "two") for seed in (0, 1)]
    assert all(len(set(one) & set(other)) < 30 for one, other in combinations(draws, 2))


def test_a_draw_is_a_fair_share_of_what_file_order_would_hide() -> None:
    """Ids sorted by what matters: of 256 among 10,000 about as many come from each tenth. A prefix would not."""
    tenths = np.bincount(some_of(range(10_000), 256, of="test") // 1000, minlength=10)
    assert tenths.min() >= 10
    assert tenths.max() <= 45


BASIS, WIDTH = Basis.MLP_OUT, 6
FOUND = Neuron(BASIS, 1, 2)


def test_every_other_unit_of_the_layers_is_drawn_equally_often() -> None:
    """Over seeds each of the 11 others comes as often, found ones too; the unit itself never comes."""
    drawn = (random_units(BASIS, [1, 4], WIDTH, 2, but=[FOUND], seed=seed) for seed in range(1100))
    counts = Counter(chain.from_iterable(drawn))
    others = {Neuron(BASIS, layer, channel) for layer in (1, 4) for channel in range(WIDTH)} - {FOUND}
    assert set(counts) == others
    assert stats.chisquare(list(counts.values())).pvalue > 0.001
    skewed = [count + 90 * (unit.channel == 0) for unit, count in counts.items()]
    assert stats.chisquare(skewed).pvalue < 0.001


def test_a_prefix_is_a_smaller_draw_and_a_layer_ends() -> None:
    """So a larger control keeps what a smaller one ablated; at most all others are drawn, none twice."""
    every = random_units(BASIS, [3], WIDTH, seed=5)
    assert random_units(BASIS, [3], WIDTH, 4, seed=5) == every[:4]
    assert len(set(every)) == len(every) == WIDTH
    assert random_units(BASIS, [3], WIDTH, 99, but=every[:2], seed=5) == every[2:]


def test_each_layer_draws_for_itself() -> None:
    """Of two layers the same channels would come first if the layer were not in the key."""
    drawn = [[unit.channel for unit in random_units(BASIS, [layer], 200, seed=1)] for layer in range(12)]
    shared = [len(set(one[:40]) & set(two[:40])) for one, two in combinations(drawn, 2)]
    assert 6 < np.mean(shared) < 10
    assert max(shared) < 20
