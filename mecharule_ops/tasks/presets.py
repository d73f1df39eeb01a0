"""Settings of each task that suit a model, measured where a number is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FOUR_SUMS = "1 + 1 = 2\n3 + 4 = 7\n12 + 5 = 17\n30 + 41 = 71\n"
"""The four-shot prefix with which SmolLM2-135M adds (28 % right on 0–99)."""
SIX_MIXED = "2 + 3 = 5\n9 - 4 = 5\n3 * 4 = 12\n8 / 2 = 4\n6 + 7 = 13\n7 - 2 = 5\n"
"""A six-shot prefix that shows every operator."""

_PAPER: Mapping[str, Any] = {"operators": ("+", "-", "*", "/"), "low": 0, "high": 299}
PRESETS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("arithmetic", "paper"): _PAPER,
    ("arithmetic", "qwen2-7b"): _PAPER,
    ("arithmetic", "qwen2-1.5b"): _PAPER,
    ("arithmetic", "gpt-j-6b"): _PAPER,
    ("arithmetic", "smollm2-135m"): {"operators": ("+",), "low": 0, "high": 99, "prefix": FOUR_SUMS},
    ("arithmetic", "arith-tiny"): {"operators": ("+", "-"), "low": 0, "high": 299},
    ("arithmetic", "mixed"): {**_PAPER, "high": 9, "prefix": SIX_MIXED},
}
"""By task and model, or another name."""
