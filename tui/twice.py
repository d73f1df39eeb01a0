"""A key that ends work only when it is pressed twice."""

from __future__ import annotations

import time

TWICE_SECONDS = 3.0
"""A second press within this time counts."""


class Twice:
    """Remembers the first press."""

    def __init__(self) -> None:
        self._pressed = float("-inf")

    def again(self) -> bool:
        """Whether this press is the second one; else it is the first."""
        now = time.monotonic()
        if now - self._pressed <= TWICE_SECONDS:
            return True
        self._pressed = now
        return False
