"""A time belongs on a page with the command and the class of machine that made it, never into a docstring."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TIME = re.compile(r"(?<![\w/])\.?\d[\d.,]* (s|ms|seconds|minutes)\b")


def times(source: str) -> list[str]:
    """Times that strings standing alone tell."""
    texts = [
        node.value.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    return [found.group() for text in texts for found in TIME.finditer(text)]


@pytest.mark.parametrize("room", ["mecharule_ops", "agent", "tools", "tui"])
def test_no_docstring_tells_a_time(room: str) -> None:
    """Nobody measures it again when the code changes."""
    files = sorted((ROOT / room).rglob("*.py"))
    assert files
    assert {str(file): found for file in files if (found := times(file.read_text(encoding="utf-8")))} == {}


def test_a_time_is_found() -> None:
    """So that the test above can fail."""
    assert times('def fit():\n    """The trees. Cost: 0.5 s on one core."""') == ["0.5 s"]
    assert times('def fit():\n    """The trees of 2,000 splits."""\n    return "3 s"') == []
