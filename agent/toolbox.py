"""The tools of one run as a language model calls them: the run is filled in, facts get ids, a price is asked first.

Of what the tools take, a model is never offered what only a person decides or what is of a screen: accepting a price,
naming a file or another folder, showing concealed texts, the form of a table.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import accumulate
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.tools import StructuredTool

from agent.consent import NOT_RUN
from agent.prose import Cited
from mecharule_ops.bases import UNIT_NAME
from mecharule_ops.codec import canonical_json
from mecharule_ops.errors import MechaRuleError, UsageError
from tools.arguments import Arguments
from tools.registry import TOOLS, Begun, Tell, ToolResult, begin, call
from tools.result import Quoted
from tools.runs import BEGUN

NOT_OFFERED = frozenset(("gates", "decide"))
"""A person's to decide."""
_OF_PEOPLE = {
    *("run", "yes", "estimate", "show_text", "csv", "md", "tex", "svg", "html", "export", "model", "device"),
    "dtype",
}
_NAMES: Mapping[str, tuple[str, ...]] = {
    "compare": ("first", "second"),
    "verify": ("what", "more"),
    "runs": ("stop",),
    "run": ("task",),
}
"""Arguments that may be the path of any file for a person, and are ids for a model."""
_ID = re.compile(rf"last|[0-9a-f]{{4,}}|layer \d+|{UNIT_NAME}|[a-z][a-z-]*")
LONGEST = 6000
"""Characters of a result that a model reads; what is cut is said."""
_WRAPPED = 80
"""Characters of a line from which the next may go on with it."""


class Toolbox:
    """The tools of the run whose file lies at `run`; `tell` hears what a tool is doing."""

    def __init__(self, run: str, tell: Tell = lambda line: None, *, decides: bool = False) -> None:
        self._run = run
        self._tell = tell
        self._begun: dict[tuple[str, str], Begun] = {}
        self._one_at_a_time = asyncio.Lock()
        left_out = NOT_OFFERED - ({"decide"} if decides else set())
        self.names = tuple(name for name in TOOLS if name not in left_out)

    def tools(self) -> list[StructuredTool]:
        """Every tool offered, the same list at every turn."""
        return [
            StructuredTool(
                name=name,
                description=TOOLS[name].help,
                args_schema=schema_of(name),
                coroutine=self._calling(name),
                response_format="content_and_artifact",
            )
            for name in self.names
        ]

    def quote(self, name: str, given: Mapping[str, object]) -> Quoted | None:
        """The price of a call, which is begun and goes on when it is made; None for one that ablates nothing.

        Raises as the tool.
        """
        key = name, canonical_json(dict(given))
        if key not in self._begun:
            self._begun[key] = begin(name, self._checked(name, _known(name, given)), self._tell)
        price = self._begun[key].price
        return price if price and price.example_forwards else None

    def call(self, name: str, given: Mapping[str, object], begun: Begun | None = None) -> ToolResult:
        """A tool's result. Raises `UsageError` on one that is not offered, and what the tool raises."""
        return call(name, self._checked(name, given), self._tell, begun)

    def _checked(self, name: str, given: Mapping[str, object]) -> dict[str, object]:
        """The arguments, about the run. Raises `UsageError` where the tool is not offered, or a file is named."""
        if name not in self.names:
            raise UsageError(f"expected a tool of: {', '.join(self.names)}; got {name!r}")
        if name == "column" and not str(given.get("labels") or "{").lstrip().startswith("{"):
            raise UsageError("expected labels as JSON, a file is a person's to name")
        named = (given.get(key) for key in _NAMES.get(name, ()))
        for value in (each for one in named for each in (one if isinstance(one, list) else [one])):
            if value is not None and not _ID.fullmatch(str(value)):
                raise UsageError(
                    f"expected a run, unit, layer, task or certificate by its name, got {value!r}"
                )
        if name == "runs" and (stop := given.get("stop")) not in (None, *BEGUN):
            raise UsageError(f"expected a run that was begun from here, {stop} is a person's to stop")
        return TOOLS[name].arguments.about(self._run, given)

    def _calling(self, name: str) -> Any:
        async def work(**given: object) -> tuple[str, list[dict[str, Any]]]:
            # One after another, so that facts are numbered in the order of the calls and one model is in memory.
            async with self._one_at_a_time:
                return await asyncio.to_thread(self.result, name, given)

        return work

    def result(self, name: str, given: Mapping[str, object]) -> tuple[str, list[dict[str, Any]]]:
        """Why a tool gave nothing, or empty; and what it states. Its price is taken as accepted."""
        asked = canonical_json(dict(given))
        takes_yes = name in self.names and "yes" in TOOLS[name].arguments.model_fields
        try:
            known = {**_known(name, given), **({"yes": True} if takes_yes else {})}
            result = self.call(name, known, self._begun.pop((name, asked), None))
        except MechaRuleError as error:
            return f"error: {error}", []
        return "", [{**fact, "arguments": asked} for fact in statements(result)]


def schema_of(name: str) -> dict[str, Any]:
    """The JSON schema of what a model may tell a tool."""
    return {"title": name, **schema_from(TOOLS[name].arguments, _OF_PEOPLE)}


def schema_from(arguments: type[Arguments], left_out: Set[str] = frozenset()) -> dict[str, Any]:
    """The JSON schema of some arguments, in few words."""
    schema: dict[str, Any] = arguments.model_json_schema()
    properties = {key: _short(value) for key, value in schema["properties"].items() if key not in left_out}
    required = [key for key in schema.get("required", []) if key in properties]
    return {"type": "object", "properties": properties, "required": required}


def _short(value: Any) -> Any:
    """A property without what says nothing to a reader: titles, defaults of None, a union with null."""
    kept = {key: each for key, each in value.items() if key != "title"}
    if kept.get("default", ...) is None:
        del kept["default"]
    members = [one for one in kept.get("anyOf", ()) if one.get("type") != "null"]
    return {**{key: each for key, each in kept.items() if key != "anyOf"}, **members[0]} if members else kept


def _known(name: str, given: Mapping[str, object]) -> Mapping[str, object]:
    """The arguments, none of them a person's. Raises `UsageError` on one that is."""
    if extra := sorted(_OF_PEOPLE & given.keys()):
        raise UsageError(f"expected arguments of {name} that a model may give, got {', '.join(extra)}")
    return given


def statements(result: ToolResult) -> list[dict[str, Any]]:
    """What a result states, each without an id: its facts, and of a table each row under its head."""
    facts = [
        {"sentence": one.said, "sources": list(one.sources), "unit": one.unit or ""} for one in result.facts
    ]
    if facts:
        return facts
    lines: list[str] = []
    for line in filter(None, map(str.strip, result.text.splitlines())):
        # A line that goes on from the one before states nothing alone.
        if lines and len(lines[-1]) > _WRAPPED and line[0].islower():
            lines[-1] += f" {line}"
        else:
            lines.append(line)
    return [{"sentence": line, "sources": [], "unit": ""} for line in lines]


def numbered(messages: Sequence[AnyMessage], new: Sequence[ToolMessage]) -> list[ToolMessage]:
    """Tool messages with their facts numbered on from those of the conversation, and written out a line each as far as
    there is room."""
    place = sum(len(one.artifact or ()) for one in messages if isinstance(one, ToolMessage))
    told = []
    for message in new:
        facts = [
            {**fact, "id": f"f{nth}"} for nth, fact in enumerate(message.artifact or (), start=place + 1)
        ]
        place += len(facts)
        lines = [f"[{fact['id']}] {fact['sentence']}" for fact in facts]
        room = sum(size <= LONGEST for size in accumulate(len(line) + 1 for line in lines))
        rest = f"({len(lines) - room} more of {len(lines)}; ask for less at once, or of one kind)"
        parts = [str(message.content), *lines[:room], *([rest] if room < len(lines) else [])]
        content = "\n".join(filter(None, parts))
        told.append(message.model_copy(update={"artifact": facts, "content": content or "(nothing)"}))
    return told


def cited_of(messages: Iterable[AnyMessage]) -> dict[str, Cited]:
    """Every fact of a conversation by its id."""
    return {
        fact["id"]: Cited(**{**fact, "sources": tuple(fact["sources"])})
        for message in messages
        if isinstance(message, ToolMessage)
        for fact in message.artifact or ()
    }


def calls_of(message: AnyMessage) -> list[Any]:
    """The tool calls of a reply."""
    return list(message.tool_calls) if isinstance(message, AIMessage) else []


def went_well(message: ToolMessage) -> bool:
    """Whether a call gave a result: it was neither refused, nor left for its price, nor did it fail."""
    return message.status != "error" and not str(message.content).startswith(("error:", NOT_RUN))
