"""Tables of a run in the formats that a shell asks for; what is left out is always said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from textwrap import fill
from typing import Any

from mecharule_ops.facts.fact import Fact, fact
from mecharule_ops.facts.glossary import explained
from mecharule_ops.pages.as_text import block_lines, csv_of
from mecharule_ops.pages.document import Table
from mecharule_ops.plain_text import plain
from tools.arguments import TableArguments
from tools.result import ToolResult

WIDTH = 120
_TEX = {c: f"\\{c}" for c in "&%$#_{}"} | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def shown(
    title: str,
    table: Table,
    given: TableArguments,
    *,
    under: Sequence[str] = (),
    key: str = "rows",
    **data: object,
) -> ToolResult:
    """The first `limit` rows as text or in the format asked; the same rows as facts, whose keys begin with `key`.

    JSON and CSV have the values of a table that holds any, its cells otherwise.

    `under` names columns of long texts, which text puts on lines of their own under each row.
    """
    left_out = max(0, len(table.rows) - given.limit)
    cut = replace(
        table,
        rows=table.rows[: given.limit],
        notes=table.notes[: given.limit],
        data=table.data[: given.limit],
    )
    note = f"{left_out} of {len(table.rows)} rows left out; --limit {len(table.rows)} shows all"
    cells = [dict(zip(table.header, row, strict=True)) for row in cut.rows]
    rows: Sequence[Mapping[str, Any]] = cut.data or cells
    return ToolResult(
        data={**data, "rows": rows, "rows_in_all": len(table.rows), "truncated": left_out > 0},
        text=_formatted(title, cut, given, note if left_out else "", under),
        table=cut,
        facts=tuple(_facts(key, cells, rows, len(table.rows), data.get("run"))),
    )


def _facts(
    key: str, cells: Sequence[Mapping[str, str]], rows: Sequence[Mapping[str, Any]], total: int, run: object
) -> Iterator[Fact]:
    """`m4.12: status τ-agonist, flips D+ 28/64, …`, a sentence a row; the first column names what it is about."""
    sources, seen = () if run is None else (f"run:{run}",), Counter[str]()
    for row, values in zip(cells, rows, strict=True):
        head = next((row[name] for name in ("unit", "certificate") if row.get(name)), None)
        told = ", ".join(f"{name} {value}" for name, value in row.items() if value.strip() and value != head)
        name = f"{key}.{head or next(iter(row.values()))}"
        seen[name] += 1
        again = f".{seen[name]}" if seen[name] > 1 else ""
        said = f"{head}: {told}" if head else told
        yield fact(said, *sources, unit=row.get("unit") or None, key=f"{name}{again}", value=dict(values))
    left = total - len(rows)
    said = (
        f"{total:,} in all{f', {left:,} of them left out here' if left else ''}" if total else "There is none"
    )
    yield fact(said, *sources, key=f"{key}.in_all", value=total)


def _under(table: Table, columns: Sequence[str]) -> Table:
    """The table without some columns, whose texts stand under the rows, a dash left out."""
    below = [table.header.index(column) for column in columns]
    kept = [place for place in range(len(table.header)) if place not in below]
    return Table(
        header=tuple(table.header[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in table.rows),
        align="".join(table.align[place] for place in kept),
        notes=tuple(tuple(row[place] for place in below if row[place] != "–") for row in table.rows),
    )


def _formatted(title: str, table: Table, given: TableArguments, note: str, under: Sequence[str]) -> str:
    if given.csv:
        return _csv(table, note)
    if given.tex:
        return _tex(table, note)
    if set(under) <= set(table.header) and under:
        table = _under(table, under)
    lines = [line.rstrip() for line in block_lines(table, WIDTH)] if table.rows else ["no rows"]
    text = "\n".join([plain(title), *lines, *(["", note] if note else [])])
    return f"{text}\n{words}" if (words := fill(explained(text), WIDTH)) else text


def _csv(table: Table, note: str) -> str:
    names = list(table.data[0]) if table.data else table.header
    text = csv_of(names, [[*row.values()] for row in table.data] or table.rows)
    return f"{text}# {note}" if note else text.rstrip("\n")


def _tex(table: Table, note: str) -> str:
    rows = [" & ".join(_escaped(cell) for cell in row) + r" \\" for row in (table.header, *table.rows)]
    body = [rf"\begin{{tabular}}{{{table.align}}}", rows[0], r"\hline", *rows[1:], r"\end{tabular}"]
    return "\n".join([*body, *([f"% {note}"] if note else [])])


def _escaped(cell: str) -> str:
    safe = plain(cell).replace("\\", "\0")
    return "".join(_TEX.get(character, character) for character in safe).replace("\0", r"\textbackslash{}")
