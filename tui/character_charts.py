"""Bars in characters; each stands beside its number, so that it never carries anything alone."""

from __future__ import annotations

_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(share: float, width: int, rest_of_it: str = " ") -> str:
    """A bar of `share` in [0, 1] of `width` cells, to an eighth of a cell."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + _EIGHTHS[rest] * (rest > 0)).ljust(width, rest_of_it)
