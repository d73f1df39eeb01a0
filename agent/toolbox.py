"""The tools of one run as a language model calls them: the run is filled in, facts get ids, a price is asked first.

Of what the tools take, a model is never offered what only a person decides or what is of a screen: accepting a price,
naming a file or another folder, showing concealed texts, the form of a table.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate, count
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.tools import StructuredTool, ToolException

from agent.prose import Cited
from mecharule_ops import bases, codec
from mecharule_ops.errors import MechaRuleError, UsageError
from tools.arguments import Arguments
from tools.registry import TOOLS, Begun, Tell, ToolResult, begin, finish
from tools.result import Quoted
from tools.runs import BEGUN

DECIDES = "decide"
NOT_OFFERED = frozenset(("gates", DECIDES))
"""A person's to decide."""
_OF_PEOPLE = {
    *("run", "yes", "estimate", "show_text", "csv", "html", "export", "model", "device", "dtype"),
    "made_by",
}
_NAMES = ("first", "second", "what", "more", "stop", "task", "labels")
"""Arguments that may be the path of any file for a person, and are ids, or JSON, for a model."""
_ID = re.compile(rf"last|[0-9a-f]{{4,}}|layer \d+|{bases.UNIT_NAME}|[a-z][a-z-]*|\s*\{{.*", re.DOTALL)
LONGEST = 6000
"""Characters of a result that a model reads; what is cut is said."""


class Toolbox:
    """The tools of the run whose file lies at `run`, for the one called `by`; `tell` hears what a tool is doing."""

    def __init__(
        self, run: str, tell: Tell = lambda line: None, *, by: str = "a client", decides: bool = False
    ) -> None:
        self._run, self._tell, self._by = run, tell, by
        self._begun: dict[str, Begun] = {}
        self.names = tuple(name for name in TOOLS if name not in NOT_OFFERED or (name == DECIDES and decides))

    def tools(self) -> list[StructuredTool]:
        """Every tool offered, the same list at every turn."""
        return [
            StructuredTool(
                name=name,
                description=TOOLS[name].arguments.meaning(),
                args_schema={"title": name, **schema_of(TOOLS[name].arguments)},
                coroutine=self._calling(name),
                response_format="content_and_artifact",
                handle_tool_error=True,
            )
            for name in self.names
        ]

    def _calling(self, name: str) -> Any:
        async def work(**given: object) -> tuple[str, list[dict[str, Any]]]:
            try:
                return "", await asyncio.to_thread(self.result, name, given)
            except MechaRuleError as error:
                raise ToolException(f"error: {error}") from None

        return work

    def quote(self, name: str, given: Mapping[str, object]) -> Quoted | None:
        """The price of a call, which is begun and goes on when it is made; None for one that ablates nothing.

        Raises as the tool.
        """
        key = codec.canonical_json([name, dict(given)])
        if key not in self._begun:
            self._begun[key] = begin(name, self._checked(name, given), self._tell)
        price = self._begun[key].price
        return price if price and price.example_forwards else None

    def result(self, name: str, given: Mapping[str, object]) -> list[dict[str, Any]]:
        """What a tool states. Its price is taken as accepted. Raises as the tool, `UsageError` on one not offered."""
        self.quote(name, given)
        begun = self._begun.pop(codec.canonical_json([name, dict(given)]))
        stated = statements(finish(begun, self._tell, agreed=True))
        if begun.price is not None:  # What was read before it may be another now.
            self._begun.clear()
        return [{**one, "arguments": codec.canonical_json(dict(given))} for one in stated]

    def _checked(self, name: str, given: Mapping[str, object]) -> dict[str, object]:
        """The arguments, about the run. Raises `UsageError` where the tool is not offered, or a file is named."""
        if name not in self.names:
            raise UsageError(f"expected a tool of: {', '.join(self.names)}; got {name!r}")
        if extra := sorted(_OF_PEOPLE & given.keys()):
            raise UsageError(f"expected arguments of {name} that a model may give, got {', '.join(extra)}")
        named = (given.get(key) for key in _NAMES)
        for one in (each for value in named for each in (value if isinstance(value, list) else [value])):
            if one is not None and not _ID.fullmatch(str(one)):
                raise UsageError(
                    f"expected a run, unit, layer, task or certificate by its name, or labels as JSON, got {one!r}"
                )
        if name == "runs" and (stop := given.get("stop")) not in (None, *BEGUN):
            raise UsageError(f"expected a run that was begun from here, {stop} is a person's to stop")
        made = {"made_by": self._by} if "made_by" in TOOLS[name].arguments.model_fields else {}
        return TOOLS[name].arguments.about(self._run, {**given, **made})


def schema_of(arguments: type[Arguments]) -> dict[str, Any]:
    """The JSON schema of what a model may tell a tool, in few words."""
    schema: dict[str, Any] = arguments.model_json_schema()
    properties = {key: _short(value) for key, value in schema["properties"].items() if key not in _OF_PEOPLE}
    required = [key for key in schema.get("required", []) if key in properties]
    return {"type": "object", "properties": properties, "required": required}


def _short(value: Any) -> Any:
    """A property without what says nothing to a reader: titles, defaults of None, a union with null."""
    members = [one for one in value.get("anyOf", ()) if one.get("type") != "null"]
    dull = {"title", "anyOf", *(["default"] if value.get("default", ...) is None else [])}
    told = {key: each for key, each in value.items() if key not in dull}
    return {**told, **(members[0] if members else {})}


def statements(result: ToolResult) -> list[dict[str, Any]]:
    """What a result states, each without an id: its facts, else each line that begins a sentence, with what goes on."""
    facts = [(one.said, list(one.sources), str(one.unit or "")) for one in result.facts]
    lines = (" ".join(one.split()) for one in re.split(r"\n\n|\n(?=[A-Z])", result.text))
    stated = facts or [(line, [], "") for line in lines if line]
    return [{"sentence": said, "sources": sources, "unit": unit} for said, sources, unit in stated]


def as_read(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """A conversation as a model reads it: the facts of results numbered, a line each as far as there is room."""
    numbers, told = count(1), list[AnyMessage]()
    for message in messages:
        if isinstance(message, ToolMessage):
            lines = [f"[f{next(numbers)}] {fact['sentence']}" for fact in message.artifact or ()]
            room = sum(size <= LONGEST for size in accumulate(len(line) + 1 for line in lines))
            rest = f"({len(lines) - room} more of {len(lines)}; ask for less at once, or of one kind)"
            parts = [str(message.content), *lines[:room], *([rest] if room < len(lines) else [])]
            message = message.model_copy(update={"content": "\n".join(filter(None, parts)) or "(nothing)"})
        told.append(message)
    return told


def cited_of(messages: Sequence[AnyMessage]) -> dict[str, Cited]:
    """Every fact of a conversation by its id."""
    facts = (fact for one in messages if isinstance(one, ToolMessage) for fact in one.artifact or ())
    return {
        f"f{nth}": Cited(**{**fact, "id": f"f{nth}", "sources": tuple(fact["sources"])})
        for nth, fact in enumerate(facts, 1)
    }


def calls_of(message: AnyMessage) -> list[Any]:
    """The tool calls of a reply."""
    return list(message.tool_calls) if isinstance(message, AIMessage) else []
