"""The tools described for a language model: JSON schema of their arguments."""

from __future__ import annotations

import json

from tools.arguments import Spec
from tools.registry import TOOLS, Tell
from tools.result import ToolResult


def spec(given: Spec, tell: Tell) -> ToolResult:
    """Name, description and input schema of every tool."""
    tools = [
        {
            "name": tool.name,
            "description": tool.help,
            "runs_the_model": tool.works,
            "input_schema": tool.arguments.model_json_schema(),
        }
        for tool in TOOLS.values()
    ]
    return ToolResult(data={"tools": tools}, text=json.dumps(tools, indent=1, ensure_ascii=False))
