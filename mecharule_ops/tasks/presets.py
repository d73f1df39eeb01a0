"""Settings of each task that suit a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FOUR_SUMS = "1 + 1 = 2\n3 + 4 = 7\n12 + 5 = 17\n30 + 41 = 71\n"
"""The four-shot prefix with which SmolLM2-135M adds."""
SIX_MIXED = "2 + 3 = 5\n9 - 4 = 5\n3 * 4 = 12\n8 / 2 = 4\n6 + 7 = 13\n7 - 2 = 5\n"
"""A six-shot prefix that shows every operator."""
FOUR_PAIRS = (
    "The boy and the cook ate. So: The cook ate. -> yes\nThe cook saw the boy. So: The boy saw the cook. -> no\n"
    "If the boy ate, the cook sang. So: The boy ate. -> no\n"
    "The king was seen by the boy. So: The boy saw the king. -> yes\n"
)
"""A four-shot prefix of HANS with which SmolLM2-135M gives both answers; asked without examples it
names neither."""
CHAT = "<|im_start|>user\n{request}<|im_end|>\n<|im_start|>assistant\n"
"""What stands around a request to a model of the SmolLM2 and Qwen2 families."""

_PAPER: Mapping[str, Any] = {"operators": ("+", "-", "*", "/"), "low": 0, "high": 299}
PRESETS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("arithmetic", "paper"): _PAPER,
    ("arithmetic", "qwen2-7b"): _PAPER,
    ("arithmetic", "qwen2-1.5b"): _PAPER,
    ("arithmetic", "gpt-j-6b"): _PAPER,
    ("arithmetic", "smollm2-135m"): {"operators": ("+",), "low": 0, "high": 99, "prefix": FOUR_SUMS},
    ("arithmetic", "arith-tiny"): {"operators": ("+", "-"), "low": 0, "high": 299},
    ("arithmetic", "mixed"): {**_PAPER, "high": 9, "prefix": SIX_MIXED},
    ("hans", "smollm2-135m"): {"template": "{premise} So: {hypothesis} ->", "prefix": FOUR_PAIRS},
    ("jailbreak", "smollm2-135m"): {"template": CHAT},
    ("jailbreak", "qwen2-1.5b"): {"template": CHAT},
    ("jailbreak", "qwen2-7b"): {"template": CHAT},
}
"""By task and model, or another name."""
