"""A wave is cut into parts that hold every pair once, and no pair is forgotten whoever is lost."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from mecharule_ops.engine.group_questions import GroupQuestion
from mecharule_ops.types import Basis, Neuron
from mecharule_ops.workers.assignment import WorkerShare
from mecharule_ops.workers.dealing import LEAST, MOST, MOST_LOSSES, SHARES, Dealer, cut, halves


def question(groups: int, examples: int, layer: int = 0) -> GroupQuestion:
    return GroupQuestion(
        groups=tuple((Neuron(Basis.MLP_OUT, layer, channel),) for channel in range(groups)),
        examples=tuple(range(100, 100 + examples)),
    )


def pairs(parts: list[WorkerShare]) -> Counter:
    """Every (question, group, example) of some parts, by place and by what it names."""
    return Counter(
        (part.question, row, column, group, example)
        for part in parts
        for row, group in zip(part.rows, part.groups, strict=True)
        for column, example in zip(part.columns, part.examples, strict=True)
    )


def all_pairs(wave: list[GroupQuestion]) -> Counter:
    return Counter(
        (place, row, column, group, example)
        for place, one in enumerate(wave)
        for row, group in enumerate(one.groups)
        for column, example in enumerate(one.examples)
    )


@pytest.mark.parametrize("seed", range(20))
def test_parts_hold_every_pair_of_a_wave_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wave = [question(*map(int, rng.integers(0, 90, 2)), layer) for layer in range(rng.integers(1, 5))]
    workers = int(rng.integers(1, 70))
    parts = cut(wave, workers)
    assert pairs(parts) == all_pairs(wave)
    total = sum(one.pairs for one in wave)
    assert all(part.pairs <= max(LEAST, -(-total // (workers * SHARES))) for part in parts)


def test_a_large_question_is_cut_by_groups_and_a_part_is_never_too_large() -> None:
    """Examples stay together, whose clean pass a worker keeps."""
    (one,) = wave = [question(640, 128)]
    assert {part.examples for part in cut(wave, 2)} == {one.examples}
    assert all(part.pairs <= MOST for part in cut(wave, 1))


@pytest.mark.parametrize("seed", range(20))
def test_whoever_is_lost_every_pair_is_answered_once(seed: int) -> None:
    """Workers come, go and run out of memory at random."""
    rng = np.random.default_rng(seed)
    wave = [question(int(rng.integers(1, 40)), int(rng.integers(1, 60))) for _ in range(3)]
    dealer = Dealer(cut(wave, 4))
    answered: list[WorkerShare] = []
    losses = ticket = 0
    while not dealer.done:
        worker = int(rng.integers(4))
        if dealer.held_by(worker) < 2 and (part := dealer.next()):
            dealer.dealt(ticket, worker, part)
            ticket += 1
        held = dealer.tickets
        if not held or rng.random() < 0.3:
            continue
        chosen = held[rng.integers(len(held))]
        what = rng.random()
        if what < 0.2 and losses < MOST_LOSSES - 1:
            losses += 1
            void = dealer.lost(dealer.holder(chosen))
            assert chosen in void
            assert not set(void) & set(dealer.tickets)
        elif what < 0.3:
            dealer.too_large(chosen)
        else:
            answered.append(dealer.answered(chosen))
    assert not dealer.hopeless
    assert pairs(answered) == all_pairs(wave)


def test_a_part_is_halved_from_the_second_loss_on_and_given_up_at_the_last() -> None:
    dealer = Dealer(cut([question(16, 4)], 1))
    sizes = []
    for loss in range(MOST_LOSSES):
        part = dealer.next()
        assert part is not None
        sizes.append(part.pairs)
        dealer.dealt(loss, "w", part)
        dealer.lost("w")
    assert sizes == [64, 64, 32, 16]
    assert [part.pairs for part in dealer.hopeless] == [16]
    assert sum(part.pairs for part in dealer.remaining()) == 64


def test_a_single_pair_cannot_be_halved() -> None:
    (part,) = cut([question(1, 1)], 1)
    assert halves(part) == [part]
    dealer = Dealer([part])
    taken = dealer.next()
    assert taken is not None
    dealer.dealt(0, "w", taken)
    assert not dealer.too_large(0)
