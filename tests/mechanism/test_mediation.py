"""Counts of mediation, pairs and breaks, by hand and against slow loops over random outcomes."""

import numpy as np
import pytest
from scipy.stats import binomtest

from mecharule_ops.confidence import lower_bound, upper_bound
from mecharule_ops.mechanism import links, pairs
from mecharule_ops.mechanism.mediation import mediation
from mecharule_ops.types import FlipCount

ALONE = np.array([True, True, True, False])


def test_four_records_by_hand() -> None:
    """Three flips, of which one does not happen with the unit held; one record flips only then."""
    found = mediation(ALONE, {"a1.h0": np.array([False, True, True, True])}, 0.05)
    assert found.flips == FlipCount(flips=3, n=4)
    (through,) = found.through
    assert (through.gone.count, through.gone.n) == (1, 3)
    assert through.new == FlipCount(flips=1, n=1)
    assert (through.gone.lower, through.gone.upper) == (lower_bound(1, 3, 0.025), upper_bound(1, 3, 0.025))
    assert found.of("a1.h0") is through
    assert found.of("m3") is None


def test_nothing_held_takes_nothing_away_and_all_held_everything() -> None:
    """The two ends: the same outcomes leave every flip, clean ones none; without flips bounds say nothing."""
    same, every = mediation(ALONE, {"same": ALONE, "all": ALONE & False}, 0.05).through
    assert (same.gone.count, same.new.flips, every.gone.count) == (0, 0, 3)
    (through,) = mediation(ALONE & False, {"m1": ALONE & False}, 0.05).through
    assert (through.gone.n, through.gone.lower, through.gone.upper) == (0, 0.0, 1.0)


def test_pairs_are_counted_as_a_loop_counts_them() -> None:
    """On random outcomes: either, both, extra and lost record by record; the independent union by its formula."""
    generator = np.random.default_rng(5)
    for _ in range(50):
        one, two, together = generator.random((3, 40)) < generator.random((3, 1))
        pair = pairs.pair_flips("a1.h1", one, two, together, 0.05, 3)
        either = one | two
        assert (pair.either, pair.both) == (either.sum(), (one & two).sum())
        assert (pair.extra.count, pair.extra.n) == ((together & ~either).sum(), (~either).sum())
        assert pair.lost.count == (either & ~together).sum()
        if pair.extra.count + pair.lost.count:
            sign = binomtest(pair.extra.count, pair.extra.count + pair.lost.count)
            assert pair.p_value == pytest.approx(sign.pvalue)
        assert pair.together == pair.either + pair.extra.count - pair.lost.count
        assert pair.independent == pytest.approx(40 * (one.mean() + two.mean() - one.mean() * two.mean()))


def test_what_a_pair_shows() -> None:
    """Backup where both together flip what neither does; cancelling the other way; nothing where they add up."""
    none, some = np.zeros(40, bool), np.arange(40) < 12
    assert pairs.pair_flips("x", none, none, some, 0.05, 4).interaction is pairs.Interaction.BACKUP
    assert pairs.pair_flips("x", some, none, none, 0.05, 4).interaction is pairs.Interaction.CANCEL
    assert pairs.pair_flips("x", some, none, some, 0.05, 4).interaction is pairs.Interaction.NONE
    few = np.arange(40) < 6
    assert pairs.pair_flips("x", none, none, few, 0.05, 1).interaction is pairs.Interaction.BACKUP
    assert pairs.pair_flips("x", none, none, few, 0.05, 4).interaction is pairs.Interaction.NONE


def test_breaks_are_counted_by_place_and_change() -> None:
    """The most frequent first, ties by name; what is not listed still counts for its place."""
    made = [("tens", "3", "4")] * 3 + [("units", "1", "2")] * 2 + [("units", "5", "6")]
    found = links.breaks([links.FirstChange(place=p, before=b, after=a) for p, b, a in made], listed=2)
    places = [(place.place, place.count.flips, place.count.n) for place in found.places]
    assert places == [("tens", 3, 6), ("units", 3, 6)]
    changes = [(change.before, change.after, change.count) for change in found.changes]
    assert changes == [("3", "4", 3), ("1", "2", 2)]
    assert links.breaks([]).places == ()
