"""Parameters that not every model or server takes: sent until an error names one of them, left out from then on.

Which models take an effort, a temperature, a cache mark or which name of the longest reply changes faster than a table
of models could be kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_REJECTED = (400, 422)


class Refusable:
    """Parameters by name, each with the words by which an error names it."""

    def __init__(self, words: Mapping[str, str]) -> None:
        self._words = words
        self._refused: set[str] = set()

    def among(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments without those that were refused."""
        return {name: value for name, value in arguments.items() if name not in self._refused}

    def is_refused(self, status: int, message: str, arguments: Mapping[str, Any]) -> bool:
        """Whether an error names one that was sent; the first that it names is left out from then on."""
        named = {
            name: found.start()
            for name, words in self._words.items()
            if name in arguments and (found := re.search(rf"\b(?:{words})\b", message))
        }
        if status not in _REJECTED or not named:
            return False
        self._refused.add(min(named, key=lambda name: named[name]))
        return True
