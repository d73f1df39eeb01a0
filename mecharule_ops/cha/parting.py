"""Which groups part the units that a search pruned together, so that two that cancel are asked without each other.

Of any two units of one pruned group, one round holds exactly one (`partition.separated`). Halves of quiet groups are
asked together. A τ-agonist that turns up refutes its group, whose other units are asked alone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from itertools import zip_longest

from mecharule_ops.cha.partition import Channels, separated


class Parting:
    """The rounds of one layer; each waits for the answers to the one before."""

    def __init__(
        self, pruned: Mapping[Channels, float], *, of: Callable[[int], bool], quiet: float, largest: int
    ) -> None:
        """`pruned` says of each group what share of a slice it flips; only units `of` which it holds are parted.

        Halves of groups whose shares sum to `quiet`, at most `largest` units, are one question.
        """
        self._pruned, self._refuted = tuple(pruned), dict[int, None]()
        halves = [
            [(half, share) for half in separated(tuple(filter(of, group)))] for group, share in pruned.items()
        ]
        turns = zip_longest(*halves)
        self._rounds = [list(_joined(filter(None, turn), quiet, largest)) for turn in turns]

    def refute(self, unit: int) -> None:
        """A unit is a τ-agonist: whatever was pruned together with it was pruned wrongly."""
        for group in self._pruned:
            if unit in group:
                self._refuted |= dict.fromkeys(group)

    def following(self, settled: Set[int], alone: int) -> list[Channels]:
        """The next groups, without units that are `settled`; none when there is nothing left to part.

        At most so many units of refuted groups are asked `alone` at a time.
        """
        while self._rounds or self._refuted:
            if open_ := [unit for unit in self._refuted if unit not in settled]:
                return [(unit,) for unit in open_[:alone]]
            self._refuted.clear()
            groups = self._rounds.pop(0) if self._rounds else []
            left = [tuple(unit for unit in group if unit not in settled) for group in groups]
            if left := [group for group in left if group]:
                return left
        return []


def _joined(halves: Iterable[tuple[Channels, float]], quiet: float, largest: int) -> Iterator[Channels]:
    group: Channels = ()
    flipped = 0.0
    for half, share in halves:
        if group and (flipped + share > quiet or len(group + half) > largest):
            yield group
            group, flipped = (), 0.0
        group, flipped = group + half, flipped + share
    if group:
        yield group
