"""The house in numbers: code lines and files by room, files that hold τ, names with two meanings.

    python benchmarks/house.py [--write]

A code line is one that is neither blank nor a comment nor part of a docstring. `--write` puts the table into
docs/architecture.md.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pages import ROOT, put_between

PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- house: begin -->", "<!-- house: end -->"
PACKAGES = ("app.py", "agent", "tools", "tui", "prompts", "mecharule_ops")
_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT),
    *(tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row of the table."""

    what: str
    before: str
    """At commit 655330c."""
    now: int
    goal: str


def product(root: Path = ROOT) -> dict[Path, str]:
    """The text of every source file of the product, by its path from the root."""
    files = (file for name in PACKAGES for file in _files(root / name))
    return {file.relative_to(root): file.read_text(encoding="utf-8") for file in files}


def _files(place: Path) -> Sequence[Path]:
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


def code_lines(source: str) -> int:
    """Lines that hold code: no blank ones, no comments, no docstrings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - set(_docstring_lines(source)))


def _docstring_lines(source: str) -> Iterator[int]:
    """Lines of texts that stand as statements: docstrings, and those under a field."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def holds_tau(source: str) -> bool:
    """Whether a name of the code is `tau`."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return any(token.type == tokenize.NAME and token.string == "tau" for token in tokens)


def twice(names: Mapping[str, Sequence[Path]]) -> int:
    """Names that stand for two things."""
    return sum(len(places) > 1 for places in names.values())


def figures(files: Mapping[Path, str]) -> tuple[Figure, ...]:
    """Every figure of the table."""
    modules: defaultdict[str, list[Path]] = defaultdict(list)
    classes: defaultdict[str, list[Path]] = defaultdict(list)
    for path, source in files.items():
        if path.stem != "__init__":
            modules[path.stem].append(path)
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(path)
    lines = sum(map(code_lines, files.values()))
    rows = (
        ("code lines of the product", "37,714", lines, "≤ 27,000"),
        ("files", "476", len(files), "≤ 340"),
        ("files that hold τ", "59", sum(map(holds_tau, files.values())), "≤ 20"),
        ("module names with two meanings", "42", twice(modules), "0"),
        ("class names with two meanings", "36", twice(classes), "0"),
    )
    return tuple(Figure(what=what, before=before, now=now, goal=goal) for what, before, now, goal in rows)


def table(rows: Sequence[Figure]) -> str:
    """The figures as a Markdown table."""
    lines = [f"| {row.what} | {row.before} | {row.now:,} | {row.goal} |" for row in rows]
    return "\n".join(["| figure | at 655330c | now | goal |", "|---|---:|---:|---:|", *lines])


def by_room(files: Mapping[Path, str]) -> Iterator[str]:
    """A line a room: files, code lines."""
    lines: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for path, source in files.items():
        room = "/".join(path.parts[:2]) if len(path.parts) > 2 else path.parts[0]
        lines[room] += code_lines(source)
        counts[room] += 1
    for room in counts:
        yield f"{room:30}{counts[room]:5}{lines[room]:8,}"


def main() -> None:
    """Prints rooms and table, or writes the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="into docs/architecture.md")
    files = product()
    text = table(figures(files))
    if parser.parse_args().write:
        put_between(PAGE, text, BEGIN, END)
    print("\n".join([*by_room(files), "", text]))


if __name__ == "__main__":
    main()
