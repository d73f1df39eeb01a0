"""What no product code does: cut the beginning, or every k-th, off a list of records; tell a time in a docstring."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PRODUCT = ("mecharule_ops", "tools", "agent", "tui", "benchmarks")
HOLDS_RECORDS = frozenset(
    {"records", "train", "test", "examples", "eligible", "held_out", "unseen", "fresh", "bad", "good"}
)
ALLOWED = {
    "mecharule_ops/facts/run_setting.py: run.observed.train[total:]": "the further records, all of them",
    "mecharule_ops/run/accounting.py: train[:0]": "none of them",
    "mecharule_ops/gates/testing.py: records[row].tokens[:place]": "the tokens of one completion",
    "mecharule_ops/run/accounting.py: test[:DRAWN]": "held-out places come as a draw",
    "mecharule_ops/certificates/verification.py: examples[:limit]": "the first names of a sentence",
    "benchmarks/engine_figures.py: given.examples[:half]": "drawn at random; only time is measured",
    "benchmarks/engine_figures.py: given.examples[half:]": "likewise",
}
"""Cuts that stand for no sample, each with its reason."""


def cuts(source: str) -> list[str]:
    """Slices of names that hold records."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            names = {one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)}
            names |= {one.attr for one in ast.walk(node.value) if isinstance(one, ast.Attribute)}
            if names & HOLDS_RECORDS:
                found.append(ast.unparse(node))
    return found


def test_no_list_of_records_is_cut() -> None:
    """`subsets.some_of` draws instead; a cut that is allowed and no longer there is taken off the list."""
    files = [file for room in PRODUCT for file in sorted((ROOT / room).rglob("*.py"))]
    seen = {
        f"{file.relative_to(ROOT)}: {cut}" for file in files for cut in cuts(file.read_text(encoding="utf-8"))
    }
    assert seen == ALLOWED.keys()


def test_a_cut_would_be_seen() -> None:
    """The check can fail: at a constant, a name, an attribute, every second, inside a call."""
    for cut in ("records[:256]", "run.records[:MOST]", "train[::2]", "np.flatnonzero(test)[:k]"):
        assert cuts(cut) == [cut]
    assert cuts("rows[:3] + records[3]") == []


TIME = re.compile(r"(?<![\w/])\.?\d[\d.,]* (s|ms|seconds|minutes)\b")


def times(source: str) -> Iterator[str]:
    """Times that strings standing alone tell: they belong on a page with the command and the machine's class."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield from (found.group() for found in TIME.finditer(str(node.value.value)))


def test_no_docstring_tells_a_time() -> None:
    """Nobody measures it again when the code changes."""
    for file in (file for room in PRODUCT[:-1] for file in (ROOT / room).rglob("*.py")):
        assert not [*times(file.read_text(encoding="utf-8"))], file
    assert [*times('def fit():\n    """The trees. Cost: 0.5 s on one core."""')] == ["0.5 s"]
    assert not [*times('def fit():\n    """The trees of 2,000 splits."""\n    return "3 s"')]
