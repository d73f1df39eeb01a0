"""The few ways in which a number, a count or a share is printed, for every page, screen and answer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mecharule_ops.types import FlipCount, Share


def sentence(text: str) -> str:
    """The text with a capital at its head and a full stop at its end."""
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def k_of_n(count: FlipCount | Share | None) -> str:
    """`28/64 (44 %)`; a rate is never printed without its counts. `–` for None."""
    if count is None:
        return "–"
    k = count.flips if hasattr(count, "flips") else count.count
    return f"{k:,}/{count.n:,} ({percent(k / count.n)})" if count.n else "0/0"


def of_n(count: FlipCount | Share) -> str:
    """`84 of 98 (86 %)`: the same as a sentence says it; without the share where it says nothing more."""
    k = count.flips if hasattr(count, "flips") else count.count
    return f"{k:,} of {count.n:,}" + (f" ({percent(k / count.n)})" if 0 < k < count.n else "")


def told_apart(value: float, limit: float, outwards: int = 0) -> str:
    """A value that lies below or above a limit with as many decimals as show it, at least two: `0.1998` beside 0.2.

    Of a lower bound (−1) or an upper one (1) what is printed lies no nearer than it.
    """
    for decimals in range(2, 12):
        rounded = 0.0 + outwards * -_floor(-outwards * value, 10**decimals) if outwards else value
        shown = f"{rounded:.{decimals}f}"
        if value == limit or (float(shown) != limit and (float(shown) < limit) == (value < limit)):
            return shown
    return f"just {'below' if value < limit else 'above'} {limit:g}"


def percent(rate: float) -> str:
    """`44 %`, with one decimal below 10 % and two below 1 %; never 0 % or 100 % for anything else."""
    if math.isnan(rate):
        return "–"
    value = 100 * rate
    if value in (0.0, 100.0):
        return f"{value:.0f} %"
    shown = f"{value:.{0 if 10 <= value < 99.5 else 1 if value >= 1 else 2}f}"
    return {0.0: "< 0.01 %", 100.0: "> 99.9 %"}.get(float(shown), f"{shown} %")


def percent_at_most(rate: float) -> str:
    """The same rounded up, `13 %` of .125, so that whatever is less than the rate is less than what is printed."""
    return percent(-_floor(-rate))


def percent_at_least(rate: float) -> str:
    """The same rounded down, `41 %` of .419, so that whatever is more than the rate is more than what is printed."""
    return percent(_floor(rate))


def bounds_apart(least: float, most: float) -> tuple[str, str]:
    """A bound rounded down and another rounded up, with a decimal more, or three, where it would not read as larger."""
    if least <= most or _floor(least) > -_floor(-most):
        return percent_at_least(least), percent_at_most(most)
    decimals = 1 if least - most > 0.002 else 3
    steps = 10 ** (2 + decimals)
    return f"{100 * _floor(least, steps):.{decimals}f} %", f"{-100 * _floor(-most, steps):.{decimals}f} %"


def _floor(rate: float, steps: int = 0) -> float:
    """A rate rounded down to steps of a whole, those that `percent` prints if none are given."""
    steps = steps or 100 * 10 ** (0 if abs(rate) >= 0.1 else 1 if abs(rate) >= 0.01 else 2)
    return math.floor(round(rate * steps, 6)) / steps


def time_range(least: float, most: float) -> str:
    """`… to … min`, rounded outwards, or in seconds or hours; `at most …` from none on, `about …` of two alike."""
    step, size, unit = (1, 3600, "h") if most > 6000 else (1, 60, "min") if most > 100 else (5, 5, "s")
    low, high = step * math.floor(least / size), step * max(1, math.ceil(most / size))
    if 2 * (most - least) < size:
        return f"about {step * max(1, round(most / size)):,} {unit}"
    return f"{low:,} to {high:,} {unit}" if low else f"at most {high:,} {unit}"


def two_decimals(value: float | None) -> str:
    """`0.78`; `–` for None or NaN."""
    return "–" if value is None or math.isnan(value) else f"{value:.2f}"


def signed(value: float) -> str:
    """`+0.39`, never `-0.00`; `–` for NaN."""
    return "–" if math.isnan(value) else f"{round(value, 2) + 0.0:+.2f}"


def plural(count: int, noun: str, many: str | None = None) -> str:
    """`1 unit`, `2 units`; `many` is a plural that takes more than an s."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {many or noun + 's'}"
