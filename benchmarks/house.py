"""The house in numbers, and the ratchet that keeps it from growing.

    python benchmarks/house.py [--check | --lower | --write]

Without an option it prints every number. `--check` fails where one is above its limit in budget.toml (`make check`),
`--lower` lowers each limit to what is measured and raises none (`make budget`), `--write` puts the table into
docs/architecture.md. A code line is one that is neither blank nor a comment nor part of a docstring.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pages import ROOT, markdown, put_between

PAGE = ROOT / "docs" / "architecture.md"
LIMITS = ROOT / "budget.toml"
BEGIN, END = "<!-- house: begin -->", "<!-- house: end -->"
PRODUCT = ("app.py", "agent", "tools", "tui", "prompts", "mecharule_ops")
BESIDE = ("tests", "benchmarks")
_PARSES_RULES = (
    "mecharule_ops/codec.py",
    "mecharule_ops/rules/algebra.py",
    "mecharule_ops/rules/in_words.py",
    "tools/_asked.py",
)
"""The codec, the parser itself, words read back, and what a person gives as a condition."""
COUNTED: Mapping[str, str] = {
    "rule_classes": "classes of the product whose names end in `Rule`",
    "rule_parses": f"`Rule.parse` in the product's text, but for {', '.join(_PARSES_RULES)}",
}
"""How figures are taken that their names do not say."""
_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT),
    *(tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER),
}
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
Files = Mapping[Path, str]
Numbers = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: the names of its figures, what was measured at 85b89bd, the goal."""

    what: str
    keys: tuple[str, ...]
    before: str
    goal: str


TABLE = (
    Row("code lines of the product · files", ("product", "files"), "45,094 · 458", "≤ 27,000 · ≤ 290"),
    Row("of tests · of benchmarks", ("tests", "benchmarks"), "29,206 · 7,013", "≤ 20,000 · ≤ 4,300"),
    Row("verbs · tools · settings", ("verbs", "tools", "settings"), "55 · 45 · 43", "≤ 33 · ≤ 22 · –"),
    Row("settings shown without `--help all`", ("settings_shown",), "43", "≤ 10"),
    Row("public function names with two meanings", ("names_twice",), "86", "≤ 20"),
    Row("private functions used once", ("private_once",), "1,001", "≤ 450"),
    Row("share of imports in code, %", ("imports_percent",), "13", "≤ 9"),
    Row("classes that are a rule", ("rule_classes",), "8", "2"),
    Row("`Rule.parse` outside codec, command line, typed conditions", ("rule_parses",), "23", "0"),
    Row("words of README and docs/", ("words",), "32,000", "≤ 13,000"),
)


def texts(names: Sequence[str], root: Path = ROOT) -> dict[Path, str]:
    """Return the source files below `names`, by path from the root."""
    places = [root / name for name in names]
    files = (file for at in places for file in ([at] if at.is_file() else sorted(at.rglob("*.py"))))
    return {file.relative_to(root): file.read_text(encoding="utf-8") for file in files}


def code_lines(source: str) -> int:
    """Count the lines that hold code: no blank ones, no comments, no docstrings."""
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


def rooms(files: Files) -> Counter[str]:
    """Count code lines by room; a room is a top-level file, a package, or a folder of a package."""
    lines: Counter[str] = Counter()
    for path, source in files.items():
        room = "/".join(path.parts[:2]) if len(path.parts) > 2 else path.parts[0]
        lines[room] += code_lines(source)
    return lines


def of_code(files: Files) -> dict[str, int]:
    """Take the figures that the text of the product's files gives."""
    names: Counter[str] = Counter()
    total = once = rules = parses = imports = 0
    for path, source in files.items():
        tree = ast.parse(source)
        total += code_lines(source)
        names.update(
            node.name for node in tree.body if isinstance(node, _FUNCTION) and not node.name.startswith("_")
        )
        used: Counter[str] = Counter()
        private: list[str] = []
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    used[name] += 1
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    private += [name] if name.startswith("_") and not name.startswith("__") else []
                case ast.ClassDef(name=name):
                    rules += name.endswith("Rule")
                case ast.Import() | ast.ImportFrom():
                    imports += (node.end_lineno or node.lineno) - node.lineno + 1
        once += sum(used[name] == 1 for name in private)
        if not path.as_posix().startswith(_PARSES_RULES):
            parses += len(re.findall(r"\bRule\.parse\b", source))
    return {
        "product": total,
        "files": len(files),
        "names_twice": sum(count > 1 for count in names.values()),
        "private_once": once,
        "imports_percent": round(100 * imports / max(total, 1)),
        "rule_classes": rules,
        "rule_parses": parses,
    }


def of_surface(root: Path = ROOT) -> dict[str, int]:
    """Take the figures of what a user meets, and of the data made by hand."""
    from agent.verbs.options import SETTINGS_SHOWN, VERBS
    from mecharule_ops.config import RunConfig
    from tools.registry import TOOLS

    pages = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    return {
        "verbs": len({*VERBS, *TOOLS}),
        "tools": len(TOOLS),
        "settings": len(RunConfig.model_fields),
        "settings_shown": len(SETTINGS_SHOWN),
        "words": sum(len(page.read_text(encoding="utf-8").split()) for page in pages),
    }


def measured() -> dict[str, dict[str, int]]:
    """Measure every number of budget.toml; tests and benchmarks are a room each."""
    product = texts(PRODUCT)
    beside = {name: sum(map(code_lines, texts([name]).values())) for name in BESIDE}
    return {"figures": {**of_code(product), **of_surface()}, "rooms": {**rooms(product), **beside}}


def over(limits: Mapping[str, Mapping[str, object]], now: Mapping[str, Numbers]) -> list[str]:
    """Return a line for each number above its limit: which, both numbers, what to do."""
    lines = []
    for section, numbers in now.items():
        for name, number in numbers.items():
            limit = limits[section].get(name)
            if limit is None:
                lines.append(f"{section}: {name} measures {number:,} and has no limit: add it to budget.toml")
            elif number > int(str(limit)):
                lines.append(
                    f"{section}: {name} measures {number:,}, at most {limit:,}: cut and run `make budget`, or raise "
                    f"{name} in budget.toml with the reason as a comment on its line"
                )
    return lines


def lowered(text: str, now: Mapping[str, Numbers]) -> str:
    """Lower each limit in the text of budget.toml to what is measured; drop rooms that are gone."""
    section, lines = "", []
    for line in text.splitlines():
        if heading := re.fullmatch(r"\[(\w+)\]", line):
            section = heading[1]
        limit = re.match(r'("?)([\w./]+)\1 = (\d+)', line)
        if limit is None or section not in now:
            lines.append(line)
        elif (number := now[section].get(limit[2])) is not None:
            lowest = min(number, int(limit[3]))
            lines.append(f"{line[: limit.start(3)]}{lowest}{line[limit.end(3) :]}")
    return "\n".join(lines) + "\n"


def table(now: Mapping[str, Numbers]) -> str:
    """Return the figures as a Markdown table."""
    every = {**now["rooms"], **now["figures"]}
    counts = [" · ".join(f"{every[key]:,}" for key in row.keys) for row in TABLE]
    lines = [(row.what, row.before, now, row.goal) for row, now in zip(TABLE, counts, strict=True)]
    return "\n".join(markdown(("figure", "at 85b89bd", "now", "goal"), lines))


def main() -> int:
    """Print the numbers, check them, lower the limits, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="fail where a number is above its limit")
    what.add_argument("--lower", action="store_true", help="lower the limits to what is measured")
    what.add_argument("--write", action="store_true", help="put the table into docs/architecture.md")
    asked = parser.parse_args()
    now = measured()
    if asked.check:
        too_much = over(tomllib.loads(LIMITS.read_text(encoding="utf-8")), now)
        print("\n".join(too_much) or "the house is within budget.toml")
        return bool(too_much)
    if asked.lower:
        LIMITS.write_text(lowered(LIMITS.read_text(encoding="utf-8"), now), encoding="utf-8")
    if asked.write:
        put_between(PAGE, table(now), BEGIN, END)
    for numbers in now.values():
        for name, number in numbers.items():
            print(f"{name:30}{number:9,}  {COUNTED.get(name, '')}".rstrip())
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
