"""The one table of tools, and the one way to call them. A tool's module is imported when it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TypeVar

from pydantic import ValidationError

from mecharule_ops.errors import UsageError
from tools import arguments
from tools.arguments import Arguments
from tools.result import ToolResult

_Arguments = TypeVar("_Arguments", bound=Arguments)
Tell = Callable[[str], None]
"""Is told one line at a time what a tool is doing; narration, never data."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its name, what it may be told, and whether it may run the model or change a file."""

    name: str
    arguments: type[Arguments]
    works: bool = False
    """False for tools that only read what is stored."""
    home: str = ""
    """The module that holds it among others; empty for one of its own name."""

    @property
    def help(self) -> str:
        """The line that describes it."""
        return " ".join((self.arguments.__doc__ or "").split())

    def call(self, given: Arguments, tell: Tell) -> ToolResult:
        """Its result, by the function of its name."""
        function = self.name.replace("-", "_")
        return getattr(import_module(f"tools.{self.home or function}"), function)(given, tell)


TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("why", arguments.Why, works=True),
        Tool("why-not", arguments.WhyNot, works=True),
        Tool("flip", arguments.Flip, works=True),
        Tool("ablate", arguments.Ablate, works=True),
        Tool("verify", arguments.Verify, works=True),
        Tool("export", arguments.Export, works=True),
        Tool("tree", arguments.Tree, home="listing"),
        Tool("neurons", arguments.Neurons, home="listing"),
        Tool("rules", arguments.Rules, home="listing"),
        Tool("evidence", arguments.Evidence, home="listing"),
        Tool("score", arguments.Score, home="scoring"),
        Tool("extract", arguments.Extract, home="scoring"),
        Tool("slices", arguments.Slices),
        Tool("candidates", arguments.Candidates, home="listing"),
        Tool("localise", arguments.Localise, works=True),
        Tool("anchor", arguments.Anchor, works=True, home="unit_rule"),
        Tool("control", arguments.Control, works=True),
        Tool("account", arguments.Account, works=True, home="explaining"),
        Tool("path", arguments.Path, works=True, home="explaining"),
        Tool("repair", arguments.Repair, works=True),
        Tool("hypotheses", arguments.Hypotheses, home="listing"),
        Tool("covers", arguments.Covers, home="unit_rule"),
        Tool("shared", arguments.Shared, home="overlap"),
        Tool("versus", arguments.Versus, works=True, home="overlap"),
        Tool("layer", arguments.Layer),
        Tool("disguise", arguments.Disguise, home="unit_rule"),
        Tool("weakest", arguments.Weakest, home="open_claims"),
        Tool("missed", arguments.Missed, home="open_claims"),
        Tool("runs", arguments.Runs, home="inventory"),
        Tool("show", arguments.Show),
        Tool("compare", arguments.Compare),
        Tool("models", arguments.Models, works=True, home="inventory"),
        Tool("data", arguments.Data, works=True, home="inventory"),
        Tool("plan", arguments.Plan, works=True),
        Tool("doctor", arguments.Doctor, works=True),
        Tool("spec", arguments.Spec, home="catalogue"),
    )
}


def call(name: str, given: Mapping[str, object], tell: Tell = lambda line: None) -> ToolResult:
    """The result of a tool on untyped arguments.

    Raises `UsageError` for an unknown tool or arguments that do not fit, and what the tool raises.
    """
    tool = TOOLS.get(name)
    if tool is None:
        raise UsageError(f"expected a tool of: {', '.join(TOOLS)}; got {name!r}")
    return tool.call(typed(tool.name, tool.arguments, given), tell)


def typed(name: str, arguments: type[_Arguments], given: Mapping[str, object]) -> _Arguments:
    """The arguments as the tool of that name takes them. Raises `UsageError`."""
    try:
        return arguments(**given)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "arguments"
        raise UsageError(f"{name}: {place}: {first['msg']}, got {first['input']!r}") from None
