"""Planned times against ones worked out by hand, and the waves of a run against what it asked."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bundled_run import opened

from mecharule_ops.engine.group_questions import GroupQuestion
from mecharule_ops.errors import StoreError, UsageError
from mecharule_ops.run.waves import Costs, Planned, Wave, measured_costs, merged, planned, recorded_waves
from mecharule_ops.store import keys
from mecharule_ops.types import Basis, Neuron, Regime
from mecharule_ops.workers.dealing import LEAST, cut
from tools.arguments import PlanArguments
from tools.plan import _flattens, plan

MLP = Basis.MLP_OUT
POSITIVE = Regime.BASELINE_POSITIVE


def wave(groups: int, examples: int = LEAST, layer: int = 0, telling: float = 0.0) -> Wave:
    """With so many examples every group is a part of its own, as long as the wave is no larger than its workers."""
    units = tuple((Neuron(MLP, layer, channel),) for channel in range(groups))
    return Wave(questions=(GroupQuestion(groups=units, examples=tuple(range(examples))),), telling=telling)


def costs(**more: float) -> Costs:
    given = {"part": 0.0, "pair": 1.0 / LEAST, "layer": 0.0, "clean": 0.0} | more
    return Costs(**given, layers=4)


def seconds(waves: list[Wave], given: Costs, workers: int) -> float:
    (one,) = planned(waves, given, [workers])
    return one.seconds


@pytest.mark.parametrize(
    ("waves", "given", "workers", "expected"),
    [
        ([wave(4)], costs(), 1, 4.0),
        ([wave(4)], costs(), 2, 2.0),
        ([wave(3)], costs(), 2, 2.0),
        ([wave(4)], costs(), 9, 1.0),
        ([wave(2), wave(1), wave(2)], costs(), 2, 3.0),
        ([wave(2), wave(2)], costs(part=0.5), 2, 3.0),
        ([wave(2, layer=3), wave(2)], costs(pair=0.0, layer=1.0 / LEAST), 2, 5.0),
        ([wave(2), wave(2)], costs(clean=1.0 / LEAST), 2, 3.0),
        ([wave(2, telling=7.0), wave(2, telling=0.5)], costs(), 2, 8.0),
    ],
    ids=[
        "one worker",
        "two",
        "one waits",
        "more workers than parts",
        "a wave waits for the last",
        "each part costs something",
        "lower layers cost more",
        "each worker makes the clean pass once",
        "the one that asks is slower",
    ],
)
def test_a_plan_is_what_the_hand_works_out(
    waves: list[Wave], given: Costs, workers: int, expected: float
) -> None:
    assert seconds(waves, given, workers) == pytest.approx(expected)


def test_starved_and_held_up_waves_are_counted() -> None:
    (one,) = planned([wave(2), wave(8, telling=9.0)], costs(), [4])
    assert (one.starved, one.telling) == (1, 1)
    assert one.speedup == pytest.approx((2 + 9) / (1 + 9))


@pytest.mark.parametrize("seed", range(10))
def test_no_plan_beats_its_bounds(seed: int) -> None:
    """Nobody is faster than all work shared evenly, nor than the longest part; nor slower than one after the other."""
    rng = np.random.default_rng(seed)
    waves = [wave(int(rng.integers(1, 60)), int(rng.integers(1, 80)), int(rng.integers(4))) for _ in range(3)]
    given = costs(part=0.1, layer=0.01)
    for workers in (1, 3, 17):
        parts = [cut(each.questions, workers) for each in waves]
        work = [[given.of(part, 0) for part in each] for each in parts]
        least = sum(max(max(each), sum(each) / workers) for each in work)
        assert least - 1e-9 <= seconds(waves, given, workers) <= sum(map(sum, work)) + 1e-9


def test_two_waves_at_once_ask_the_same() -> None:
    waves = [wave(2), wave(3), wave(4)]
    assert [each.pairs for each in merged(waves)] == [waves[0].pairs + waves[1].pairs, waves[2].pairs]


def ticking() -> Callable[[], float]:
    """A clock that goes on by a second whenever it is read."""
    count = itertools.count()
    return lambda: float(next(count))


def test_the_waves_of_a_run_are_what_its_search_asked(copied_run: Path) -> None:
    """Every pair once, and as many as the search says it took; without a model."""
    with opened(copied_run, read_only=True) as run:
        waves = recorded_waves(run, MLP, POSITIVE, ticking())
        searched = run.findings.searches[0].cost
        assert "subject" not in run.__dict__
    pairs = [
        (group, example)
        for each in waves
        for question in each.questions
        for group in question.groups
        for example in question.examples
    ]
    assert len(pairs) == len(set(pairs)) == searched.example_forwards
    assert [each.telling for each in waves] == [1.0] * len(waves)


def test_costs_are_fitted_to_what_was_timed(copied_run: Path) -> None:
    """Under a clock that counts its readings every part takes one second, whatever it holds."""
    with opened(copied_run, read_only=True) as run:
        found = measured_costs(run, MLP, POSITIVE, ticking())
    assert found.part == pytest.approx(1.0015)
    assert (found.pair, found.layer, found.clean, found.layers) == pytest.approx((0.0, 0.0, 0.0, 2))


def test_plan_prints_a_curve_and_where_it_flattens(copied_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under costs and a clock that are given."""
    monkeypatch.setattr("tools.plan.measured_costs", lambda *_: costs())
    monkeypatch.setattr("tools.plan.perf_counter", lambda: 0.0)
    told: list[str] = []
    result = plan(PlanArguments(run=str(copied_run), workers="1,4,1024"), told.append)
    (search,) = result.data["searches"]
    assert [one["workers"] for one in search["curve"]] == [1, 4, 1024]
    assert search["curve"][0]["speedup"] == 1.0
    assert search["curve"][2]["starved"] == search["waves"]
    assert "it flattens at" in result.text
    assert "waves are too narrow" in result.text
    assert any("measuring" in line for line in told)


def test_it_flattens_where_twice_as_many_gain_less_than_a_fifth() -> None:
    """A step to four times as many counts as two steps of their own size."""

    def curve(*speedups: float) -> list[Planned]:
        return [
            Planned(workers=4**step, seconds=1 / gain, speedup=gain, starved=0, telling=0)
            for step, gain in enumerate(speedups)
        ]

    assert _flattens(curve(1.0, 3.9, 15.0)) == "it does not flatten up to 16 workers"
    assert _flattens(curve(1.0, 3.9, 6.1)) == "it flattens at 4 workers: 16 are 1.56 × as fast"
    assert _flattens(curve(1.0, 1.1)) == "it flattens at 1 worker: 4 are 1.10 × as fast"
    assert _flattens(curve(1.0, 3.9, 6.3)) == "it does not flatten up to 16 workers"


@pytest.mark.parametrize("text", ["", "0", "2,x", "5000"])
def test_numbers_of_workers_that_are_none_are_refused(copied_run: Path, text: str) -> None:
    with pytest.raises(UsageError, match="expected numbers of workers"):
        plan(PlanArguments(run=str(copied_run), workers=text), print)


def test_a_search_that_was_cut_short_is_named(copied_run: Path) -> None:
    """Its waves cannot be known."""
    with opened(copied_run) as run:
        context = run.store.get(keys.context(run.intervention(MLP)))
        run.store.put(keys.context(run.intervention(MLP)), context + "0")
        with pytest.raises(StoreError, match=r"lacks outcomes; `mecharule resume b00d`"):
            recorded_waves(run, MLP, POSITIVE, ticking())
