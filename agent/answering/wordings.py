"""Wordings of each kind of question, read from `wordings.txt`; what the letters stand for is said in `questions`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path


def by_kind(text: str) -> Mapping[str, tuple[str, ...]]:
    """Lines by the `[kind]` above them; blank ones and comments are passed over."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    kind = ""
    for line in text.splitlines():
        if line.startswith("["):
            kind = line.strip("[]")
        elif line and not line.startswith("#"):
            found[kind].append(line)
    return {kind: tuple(lines) for kind, lines in found.items()}


NONE = "none"
"""The kind of what no row answers."""
WORDINGS = by_kind(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8"))
"""By kind."""
