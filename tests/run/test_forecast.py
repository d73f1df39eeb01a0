"""How long a run still takes: one range over all that is to come, out of which no part that ends makes it jump."""

from itertools import count
from pathlib import Path

import numpy as np
import pytest
from bundled_run import QUICK, new_run

from mecharule_ops import events, numbers
from mecharule_ops.run import analyse, forecast


def test_what_is_left_lies_within_what_was_said_before() -> None:
    """Of 50 runs of two directions, each part of which takes what it may: the truth too, at any moment."""
    ahead = forecast.Forecast([forecast.UNKNOWN] * 7)
    ahead.parts[0] = 60.0, 90.0
    assert ahead.left() is None
    for search in (0, 1):
        ahead.parts[1 + 2 * search] = 60.0, 300.0
        ahead.know(search, *((0.0, np.nan, (0, 0), (0, 0)) if search else (300.0, 0.01)))
    few = forecast.Forecast([forecast.UNKNOWN] * 4, accounts=1)
    few.parts[0] = 60.0, 90.0
    few.know(0, 300.0, 0.01)
    assert (few.parts[2], few.parts[3][1] - 90.0) == (ahead.parts[2], (ahead.parts[5][1] - 90.0) / 8)
    few.accounts = 0
    few.know(0, 300.0, 0.01)
    assert few.parts[3] == (0.0, 0.0), "no further records either"
    ahead.begin(1, 0.0)
    ahead.priced(
        events.Price(evaluations=9, example_forwards=9, seconds=9e5, least_seconds=60, likely_seconds=150)
    )
    assert ahead.parts[1] == (60.0, 300.0)
    left = []
    for part in range(7):
        ahead.begin(part, 0.0)
        told = ahead.left()
        assert told is not None
        left.append(np.array([told.least, told.most]))
    bounds = [here - after for here, after in zip(left, [*left[1:], np.zeros(2)], strict=True)]
    draw = np.random.default_rng(0)
    for _ in range(50):
        takes = [draw.uniform(*each) for each in bounds]
        now, low, high = 0.0, 0.0, np.inf
        for part, long in enumerate(takes):
            ahead.begin(part, now)
            for quarter in range(4):
                told = ahead.left(now)
                assert told is not None
                truth = sum(takes[part:]) - long * quarter / 4
                assert low - 1e-6 <= told.least <= truth + 1e-6
                assert truth - 1e-6 <= told.most <= high + 1e-6
                now, low, high = now + long / 4, told.least - long / 4, told.most - long / 4


def test_a_run_tells_what_is_left_from_its_price_to_its_end(tmp_path: Path) -> None:
    """By a clock that goes on at every look; what was said of it before it began is told at once."""
    with new_run(tmp_path / "a.mecharule", QUICK) as run:
        told, ticks = list[events.Event](), count(0.0, 0.5)
        analyse.analyse_run(run, told.append, clock=lambda: next(ticks))
        left = [event for event in told if isinstance(event, events.TimeLeft)]
        after = [type(event) for event in told[[*map(type, told)].index(events.Price) :]]
        assert after.count(events.TimeLeft) == len(left) > 10
        assert left[0].spent < left[-1].spent
        assert 0 < left[0].share < left[-1].share <= 1
        assert run.told.left == left[-1]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        ((21, 49), "20 to 50 s"),
        ((0, 100), "at most 100 s"),
        ((61, 299), "1 to 5 min"),
        ((180, 190), "about 3 min"),
        ((3700, 9000), "1 to 3 h"),
    ],
)
def test_a_range_of_time_is_rounded_outwards(seconds: tuple[float, float], said: str) -> None:
    assert numbers.time_range(*seconds) == said
