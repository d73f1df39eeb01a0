"""What a tool's result states, as facts: its own, else those of its answer template, else its rows or lines.

A new tool needs nothing here: it returns `facts`, or a table, or lines of text. Every fact carries its sources.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.answering.answers import ANSWERS, Answer, Data
from agent.answering.claims import CITATION, UNIT, citations_of
from agent.answering.short_answers import SHORT_ANSWERS
from mecharule_ops.saying.fact import Fact
from tools.result import ToolResult

_LONGEST_RESULT = 3000
"""Characters of the facts of one result that a model is shown."""

COMPOSERS: Mapping[str, tuple[str, Callable[[Data], Answer]]] = {**ANSWERS, **SHORT_ANSWERS}
"""For each kind of question with a template the tool that is asked and the template."""
TOOLS_OF: Mapping[str, str] = {
    **{kind: tool for kind, (tool, _) in COMPOSERS.items()},
    **{
        kind: kind
        for kind in (
            *("versus", "layer", "disguise", "weakest"),
            *("evidence", "rules", "slices", "hypotheses"),
        )
    },
    "rank": "versus",
    "units": "neurons",
}
"""The tool that answers each kind of question."""
_PRICED = {"run", "price"}
"""What a result holds that only says a price."""
_MOST_ROWS = 8
_TEMPLATES = {tool: compose for kind, (tool, compose) in COMPOSERS.items() if kind == tool}


def facts_of(
    result: ToolResult, run: str, *, kind: str | None = None, tool: str | None = None
) -> tuple[Fact, ...]:
    """The facts of a result that answers a kind of question, or that a tool returned to a model."""
    source = (f"run:{run}",)
    if result.facts:
        return result.facts
    compose = COMPOSERS[kind][1] if kind is not None and kind in COMPOSERS else _TEMPLATES.get(tool or "")
    if compose is not None and not result.data.keys() <= _PRICED:
        facts = map(fact_of, compose(result.data).sentences)
        return tuple(fact if fact.sources else replace(fact, sources=source) for fact in facts)
    return tuple(
        Fact(template=sentence, unit=_only_unit(sentence), sources=source) for sentence in _sentences(result)
    )


def fact_of(sentence: str) -> Fact:
    """A sentence with citations as a fact."""
    sources = tuple(dict.fromkeys(id for citation in citations_of(sentence) for id in citation.ids))
    bare = re.sub(r"\s+([.,:;])(?!\d)", r"\1", " ".join(CITATION.sub(" ", sentence).split())).removesuffix(
        "."
    )
    return Fact(template=bare, unit=_only_unit(bare), sources=sources)


def _sentences(result: ToolResult) -> Iterator[str]:
    """The rows of a table, each as one sentence; else the lines of the text."""
    rows = result.data.get("rows")
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        yield from (line.strip() for line in result.text.splitlines() if line.strip())
        return
    yield from map(_row, rows[:_MOST_ROWS])
    total: Any = result.data.get("rows_in_all", len(rows))
    if not rows:
        yield "There is none"
    elif total > _MOST_ROWS:
        yield f"{total} in all; the others are left out here"


def _row(row: Mapping[str, Any]) -> str:
    """`m4.12: status τ-agonist, flips D+ 28/64, …`: the unit or certificate first, where there is one."""
    head = next((name for name in ("unit", "certificate") if row.get(name)), None)
    cells = [f"{name} {value}" for name, value in row.items() if name != head and str(value).strip()]
    return f"{row[head]}: {', '.join(cells)}" if head else ", ".join(cells)


def _only_unit(text: str) -> str | None:
    units = set(UNIT.findall(text))
    return next(iter(units)) if len(units) == 1 else None


def listed(facts: Sequence[Fact], first: int = 1) -> str:
    """Facts under their names, a line each."""
    shown = [f"f{number}: {fact.sentence}" for number, fact in enumerate(facts, first)]
    text = "\n".join(shown)
    return text if len(text) <= _LONGEST_RESULT else text[:_LONGEST_RESULT].rsplit("\n", 1)[0] + "\n(cut)"
