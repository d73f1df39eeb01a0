"""A tool call that a model wrote into its text, read where that is safe.

Small models write a call as a JSON block, in tags, in a code fence, with Python's quoting, under other keys, or as
`name(argument=value)`. It is read when it gives exactly one listed tool with arguments that the tool takes; stray
fields beside a call are dropped, strange ones inside its arguments are not.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent.llm.protocol import ToolCall, ToolSpec

_NAMES = ("tool", "name", "function", "tool_name", "action")
_ARGUMENTS = ("arguments", "args", "parameters", "params", "input", "action_input")
_WRITTEN = re.compile(r"\b(?P<name>[a-z][a-z-]*)\((?P<inside>[^()]*)\)")
_LONGEST = 20_000
"""Characters looked through."""


def calls_in(text: str, tools: Sequence[ToolSpec]) -> tuple[ToolCall, ...]:
    """The one call in a text, as a tuple of one; empty when there is none, or more than one, or it does not fit."""
    known = {tool.name: tool for tool in tools}
    found: dict[str, tuple[str, dict[str, object]]] = {}
    for name, arguments in _candidates(text[:_LONGEST], known):
        fitting = _fitted(known[name], arguments)
        if fitting is not None:
            found[repr((name, sorted(fitting.items())))] = (name, fitting)
    if len(found) != 1:
        return ()
    ((name, fitting),) = found.values()
    return (ToolCall(id=f"written-{name}", name=name, arguments=fitting),)


def looks_like_a_call(text: str) -> bool:
    """Whether a text is machine text rather than words to a person."""
    bare = text.strip()
    return bare.startswith(("{", "[{", "```", "<tool")) or bool(
        re.search(r"[\"'](?:" + "|".join((*_NAMES, *_ARGUMENTS)) + r")[\"']\s*:", bare)
    )


def _candidates(text: str, known: Mapping[str, ToolSpec]) -> Iterator[tuple[str, dict[str, Any]]]:
    for value in _objects(text):
        wrapped = value.get("function")
        inner: dict[str, Any] = wrapped if isinstance(wrapped, dict) else value
        name = next((str(inner[key]) for key in _NAMES if isinstance(inner.get(key), str)), "")
        arguments: Any = next((inner[key] for key in _ARGUMENTS if key in inner), None)
        if isinstance(arguments, str):
            arguments = next(_objects(arguments), None)
        if arguments is None and name in known:
            arguments = {key: item for key, item in inner.items() if key in _properties(known[name])}
        if name in known and isinstance(arguments, dict):
            yield name, arguments
    for match in _WRITTEN.finditer(text):
        if match["name"] in known:
            keywords = _keywords(match["inside"])
            if keywords is not None:
                yield match["name"], keywords


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every outermost JSON-like object in a text."""
    begin = text.find("{")
    while begin >= 0:
        end = _closing(text, begin)
        value = _read(text[begin:end]) if end else None
        if isinstance(value, dict):
            yield value
        begin = text.find("{", end if end and value is not None else begin + 1)


def _closing(text: str, begin: int) -> int:
    depth = 0
    for place in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    return 0


def _read(text: str) -> object:
    """JSON, or the same in Python's quoting, or with a comma too many."""
    for form in (text, re.sub(r",\s*([}\]])", r"\1", text)):
        try:
            return json.loads(form)
        except (ValueError, RecursionError):
            pass
        try:
            return ast.literal_eval(form)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            pass
    return None


def _keywords(inside: str) -> dict[str, Any] | None:
    """`neuron="m1.3", test=True` as arguments."""
    try:
        call = ast.parse(f"f({inside})", mode="eval").body
        assert isinstance(call, ast.Call)
        if call.args:
            return None
        return {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _fitted(tool: ToolSpec, arguments: Mapping[str, object]) -> dict[str, object] | None:
    """The arguments when the tool takes all of them and misses none."""
    required: Any = tool.schema.get("required", ())
    if not set(arguments) <= set(_properties(tool)) or not set(required) <= set(arguments):
        return None
    return dict(arguments)


def _properties(tool: ToolSpec) -> Mapping[str, object]:
    properties: Any = tool.schema.get("properties", {})
    return properties
