"""How a model is shown a tool: name, a line, its arguments with meanings; and the two tools that are about talking.

`answer` ends a question: facts by number, or what is missing. `tools` finds others where not all are shown.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

from agent.llm.protocol import ToolSpec
from tools.arguments import UNIT_MEANING
from tools.registry import TOOLS

ANSWER, FIND = "answer", "tools"
LONGEST_SENTENCE = 240
MOST_NAMED = 12
"""Facts of an answer."""
_RUN = {"compare": "first"}
"""The argument that names the run, where it is not `run`."""
_FOR_PEOPLE = frozenset(
    (
        "yes",
        "csv",
        "md",
        "tex",
        "html",
        "svg",
        "folder",
        "harmless",
        "model",
        "llm",
        "llm_budget",
        "device",
        "dtype",
    )
) | frozenset(("all", "again", "full", "show_text"))
"""What only a person decides, and what has no use in a talk."""
_NAMED_BY: Mapping[str, str] = {
    "regime": r"→|->|[01] to [01]|break|repair|mend|direction",
    "limit": r"\btop\b|\bfirst\b|\ball\b|how many",
    "test": r"ablat|exactly|\bnow\b",
    "estimate": r"price|cost|how long",
}
"""Words of a question that name an optional argument, beside its own name."""


def run_argument(name: str) -> str:
    """The argument of a tool that names the run."""
    return _RUN.get(name, "run")


def spec_of(name: str, question: str | None = None, unit: str = "") -> ToolSpec:
    """A tool of the registry; with a question without the optional arguments that the question does not name.

    `unit` is the one that meanings name as an example: a small model takes the example for the unit that is meant.
    """
    tool = TOOLS[name]
    schema: dict[str, Any] = copy.deepcopy(tool.arguments.model_json_schema())
    hidden = _FOR_PEOPLE | {run_argument(name)}
    if name in _RUN:
        hidden |= {"run"}
    required = [key for key in schema.get("required", []) if key not in hidden]
    properties = {
        key: _short(value, unit)
        for key, value in schema["properties"].items()
        if key not in hidden and (key in required or question is None or _is_named(key, question))
    }
    return ToolSpec(name=name, description=tool.help, schema=_object(properties, required))


def answer_spec(known: int) -> ToolSpec:
    """The tool that answers with some of the `known` facts, or says what is missing."""
    facts = {
        "type": "array",
        "maxItems": MOST_NAMED,
        "items": {"type": "integer", "enum": list(range(1, known + 1))},
        "description": "numbers of the facts that answer, in order",
    }
    sentence = {
        "type": "string",
        "maxLength": LONGEST_SENTENCE,
        "description": "one sentence that connects them, without digits, quantities, comparisons or units; or empty",
    }
    missing = {
        "type": "string",
        "maxLength": LONGEST_SENTENCE,
        "description": "where no fact answers: what would have to be known",
    }
    if not known:
        return ToolSpec(
            name=ANSWER,
            description="say that no tool tells, and what is missing",
            schema=_object({"missing": missing}, ["missing"]),
        )
    properties = {"facts": facts, "sentence": sentence, "missing": missing}
    return ToolSpec(
        name=ANSWER,
        description="end with the facts that answer, or say what is missing",
        schema=_object(properties, ["facts"]),
    )


def find_spec() -> ToolSpec:
    """The tool that finds tools."""
    about = {"type": "string", "maxLength": 80, "description": "what you need to know, in a few words"}
    return ToolSpec(
        name=FIND, description="find other tools about something", schema=_object({"about": about}, ["about"])
    )


def numbers_in(value: object) -> list[int]:
    """Fact numbers as a model writes them: `[1, 2]`, `["f1"]`, `"f1, f2"`."""
    return [int(number) for number in re.findall(r"\d{1,3}", str(value))]


def _is_named(argument: str, question: str) -> bool:
    pattern = "|".join(filter(None, (rf"\b{argument.replace('_', ' ')}\b", _NAMED_BY.get(argument))))
    return bool(re.search(pattern, question, re.IGNORECASE))


def _short(value: Mapping[str, Any], unit: str) -> dict[str, Any]:
    """A property without title, default and the null that a default stands for."""
    kinds = [kind for kind in value.get("anyOf", [value]) if kind.get("type") != "null"]
    kept = {key: kinds[0][key] for key in ("type", "enum", "minimum", "maximum") if key in kinds[0]}
    described = value.get("description") or kinds[0].get("description")
    if unit and UNIT_MEANING in (described or ""):
        described = f"a unit such as {unit}"
    return {**kept, "description": described} if described else kept


def _object(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
    }
