"""What every tool gives back: facts, a table or a text, an exit code; and what it costs, said and accepted before.

Of a table what is left out is always said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import fill
from typing import TYPE_CHECKING, Any

from mecharule_ops import errors, events, plain_text
from mecharule_ops.facts.answer_text import answer_text
from mecharule_ops.facts.fact import About as About
from mecharule_ops.facts.fact import Fact, fact, keyed
from mecharule_ops.facts.glossary import explained
from mecharule_ops.numbers import plural
from mecharule_ops.pages.as_text import WIDTH as WIDTH
from mecharule_ops.pages.as_text import block_lines, csv_of
from mecharule_ops.pages.document import Table
from tools.arguments import TableArguments

if TYPE_CHECKING:
    from mecharule_ops.run.live_run import Run

Tell = Callable[[str], None]
"""Is told one line at a time what a tool is doing; narration, never data."""
A_MINUTE, FEW = 60.0, 200
"""Seconds, and for want of a pace ablated completions, that a yes must allow beyond."""
_TOLD = ("key", "said", "unit", "part", "sources")
"""What JSON holds of a fact, beside its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """`data` is short JSON with ids and no arrays of the model; `text` says the same in sentences or a table.

    A tool whose facts have keys gives no data of its own: they are the facts' values.
    """

    data: Mapping[str, object] = field(default_factory=dict)
    text: str = ""
    exit_code: int = 0
    facts: tuple[Fact, ...] = ()
    """What an answer may say of it, each sentence with its sources."""
    table: Table | None = None
    """Rows as printed, where the text is a table."""

    @property
    def as_json(self) -> dict[str, object]:
        """The data, and each fact with its sources: all of them, the text shows fewer."""
        told = [{name: getattr(one, name) for name in _TOLD} for one in self.facts]
        return {**self.data, **keyed(self.facts), **({"facts": told} if told else {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """What ablated completions cost, said before they are run."""

    example_forwards: int
    seconds: float | None
    """None where the run ended before any ablation was timed."""
    said: str = ""
    """In words of its own; empty where those of any ablations do."""

    @property
    def words(self) -> str:
        if self.said:
            return self.said
        if not self.example_forwards:
            return "nothing, it is stored"
        took = "this run timed none yet" if self.seconds is None else f"~{self.seconds:.0f} s"
        return f"{plural(self.example_forwards, 'ablated completion')}, {took}"

    def stated(self, *sources: str) -> ToolResult:
        """The price as a tool's result."""
        text = f"price: {self.words}"
        value = {"example_forwards": self.example_forwards, "seconds": self.seconds}
        return ToolResult(text=text, facts=(fact(text, *sources, key="price", value=value),))


Priced = Generator[int | Quoted, None, ToolResult]
"""A tool that may ablate or keep something: it yields how many ablated completions it takes, then works."""


def price_words(run: Run, forwards: int) -> Quoted:
    """The price of so many example-forwards at the pace that the run measured."""
    measured = run.store.latest(events.Price)
    pace = measured.seconds / measured.example_forwards if measured and measured.example_forwards else None
    seconds = 0.0 if not forwards else None if pace is None else forwards * pace
    return Quoted(example_forwards=forwards, seconds=seconds)


def accepted(price: Quoted, yes: bool, tell: Tell) -> None:
    """Tells the price. Raises `UsageError` when it is above a minute, or unknown for more than a few, without a yes."""
    unknown = price.seconds is None and price.example_forwards > FEW
    if (unknown or (price.seconds or 0.0) > A_MINUTE) and not yes:
        raise errors.UsageError(f"expected --yes for a price above a minute, this costs {price.words}")
    tell(f"price: {price.words}")


def of_facts(facts: Iterable[Fact], *, exit_code: int = 0) -> ToolResult:
    """A result whose text is its facts, a line each, and whose data are their values."""
    told = tuple(facts)
    return ToolResult(text=answer_text(told), facts=told, exit_code=exit_code)


def shown(
    title: str,
    table: Table,
    given: TableArguments,
    *,
    under: Sequence[str] = (),
    key: str = "rows",
    **data: object,
) -> ToolResult:
    """The first `limit` rows as text or CSV; the same rows as facts, whose keys begin with `key`.

    JSON and CSV have the values of a table that holds any, its cells otherwise.

    `under` names columns of long texts, which text puts on lines of their own under each row.
    """
    most, total = given.limit, len(table.rows)
    cut = replace(table, rows=table.rows[:most], notes=table.notes[:most], data=table.data[:most])
    left_out = total - len(cut.rows)
    note = f"{left_out} of {total} rows left out; --limit {total} shows all" if left_out else ""
    cells = [dict(zip(table.header, row, strict=True)) for row in cut.rows]
    rows: Sequence[Mapping[str, Any]] = cut.data or cells
    if given.csv:
        csv = csv_of([*rows[0]] if rows else cut.header, [[*row.values()] for row in rows])
        text = f"{csv}# {note}" if note else csv.rstrip("\n")
    else:
        lines = [line.rstrip() for line in block_lines(_under(cut, under), WIDTH)] if rows else ["no rows"]
        text = "\n".join([plain_text.plain(title), *lines, *(["", note] if note else [])])
        text = "\n".join(filter(None, [text, fill(explained(text), WIDTH)]))
    facts = tuple(_facts(key, cells, rows, total, data.get("run")))
    data |= {"rows": rows, "rows_in_all": total, "truncated": left_out > 0}
    return ToolResult(data=data, text=text, table=cut, facts=facts)


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
    left = f", {total - len(rows):,} of them left out here" if total > len(rows) else ""
    said = f"{total:,} in all{left}" if total else "There is none"
    yield fact(said, *sources, key=f"{key}.in_all", value=total)


def _under(table: Table, columns: Sequence[str]) -> Table:
    """The table without some columns, whose texts stand under the rows, a dash left out."""
    below = [place for place, name in enumerate(table.header) if name in columns]
    kept = [place for place, name in enumerate(table.header) if name not in columns]
    if not below:
        return table
    return Table(
        header=tuple(table.header[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in table.rows),
        align="".join(table.align[place] for place in kept),
        notes=tuple(tuple(row[place] for place in below if row[place] != "–") for row in table.rows),
    )
