"""The one table of tools and the one way to call them: the run opened once, the price said, the person asked.

A tool's module is imported when it is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from mecharule_ops.errors import UsageError
from tools import arguments
from tools.arguments import Arguments
from tools.result import Priced
from tools.result import Tell as Tell
from tools.result import ToolResult as ToolResult
from tools.result import of_facts as of_facts

if TYPE_CHECKING:
    from tools._ablations import Quoted

_Arguments = TypeVar("_Arguments", bound=Arguments)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its name, what it may be told, and whether it may run the model or change a file.

    One that is `over` an open run is a function `NAME(run, given, tell)` of its module; where it may ablate it yields
    first the ablated completions that it takes, 0 where all is stored, and works once it is asked to go on. The
    registry opens the run, says the price, asks, and opens it for writing only where something is to be kept.
    """

    name: str
    arguments: type[Arguments]
    works: bool = False
    """False for tools that only read what is stored."""
    home: str = ""
    """The module that holds it among others; empty for one of its own name."""
    over: bool = False

    @property
    def help(self) -> str:
        """The line that describes it."""
        return " ".join((self.arguments.__doc__ or "").split())

    @property
    def function(self) -> str:
        """The name of its function."""
        return self.name.replace("-", "_")

    @property
    def module(self) -> Any:
        """The module that holds it, imported now."""
        return import_module(f"tools.{self.home or self.function}")

    @property
    def has_price(self) -> bool:
        """Whether a call may cost ablations."""
        return "estimate" in self.arguments.model_fields

    def price(self, given: Any, tell: Tell = lambda line: None) -> Quoted | None:
        """What a call costs; None of one that ablates nothing. Raises what the tool raises."""
        from mecharule_ops.run.opening import opened
        from tools._ablations import Quoted, price_words

        if not self.has_price:
            return None
        if self.over:
            with opened(given.run, tell=tell) as run:
                return price_words(run, next(getattr(self.module, self.function)(run, given, tell)))
        told = self.call(given.model_copy(update={"estimate": True}), lambda line: None)
        price: Any = told.as_json["price"]
        words = told.text.removeprefix("price: ")
        return Quoted(example_forwards=price["example_forwards"], seconds=price["seconds"], said=words)

    def call(self, given: Any, tell: Tell, priced: Quoted | None = None) -> ToolResult:
        """Its result, by the function of its name; `priced` where its price was just asked."""
        function = getattr(self.module, self.function)
        if not self.over:
            return function(given, tell)
        from mecharule_ops.run.opening import kept_open, opened
        from tools._ablations import accepted

        with kept_open():
            quoted = priced or self.price(given, tell)
            if quoted is not None and given.estimate:
                with opened(given.run) as run:
                    return quoted.stated(run.id)
            costs = quoted is not None and bool(quoted.example_forwards)
            if quoted is not None and costs:
                accepted(quoted, given.yes, tell)
            with opened(given.run, write=costs or given.writes, tell=tell) as run:
                return _finished(function(run, given, tell))


def _finished(work: ToolResult | Priced) -> ToolResult:
    """What a tool comes to, whose price was accepted."""
    if isinstance(work, ToolResult):
        return work
    next(work)
    try:
        next(work)
    except StopIteration as end:
        return end.value
    raise AssertionError("a tool yields its price alone")


TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("why", arguments.WhyArguments, over=True),
        Tool("why-not", arguments.WhyNotArguments, works=True, over=True),
        Tool("flip", arguments.FlipArguments, works=True, over=True),
        Tool("ablate", arguments.AblateArguments, works=True, over=True),
        Tool("verify", arguments.VerifyArguments, works=True),
        Tool("score", arguments.ScoreArguments, works=True, home="scoring", over=True),
        Tool("column", arguments.ColumnArguments, works=True, over=True),
        Tool("tabulate", arguments.TabulateArguments, works=True, over=True),
        Tool("records", arguments.RecordsArguments, works=True, over=True),
        Tool("register", arguments.RegisterArguments, works=True, home="registering", over=True),
        Tool("decide", arguments.DecideArguments, works=True, home="registering", over=True),
        Tool("pairs", arguments.PairsArguments, works=True, over=True),
        Tool("extract", arguments.ExtractArguments, works=True, home="scoring", over=True),
        Tool("slices", arguments.SlicesArguments, home="run_slices", over=True),
        Tool("candidates", arguments.CandidatesArguments, home="listing", over=True),
        Tool("run", arguments.RunArguments, works=True, home="runs", over=True),
        Tool("anchor", arguments.AnchorArguments, works=True, over=True),
        Tool("explain", arguments.ExplainArguments, works=True, over=True),
        Tool("gates", arguments.GatesArguments, works=True, over=True),
        Tool("runs", arguments.RunsArguments, works=True),
        Tool("show", arguments.ShowArguments, over=True),
        Tool("compare", arguments.CompareArguments, works=True, over=True),
    )
}


def call(
    name: str, given: Mapping[str, object], tell: Tell = lambda line: None, priced: Quoted | None = None
) -> ToolResult:
    """The result of a tool on untyped arguments; `priced` where `price_of` just gave its price.

    Raises `UsageError` for an unknown tool or arguments that do not fit, and what the tool raises.
    """
    tool = _tool(name)
    return tool.call(typed(tool.name, tool.arguments, given), tell, priced)


def price_of(name: str, given: Mapping[str, object]) -> Quoted | None:
    """What a call costs; None of one that ablates nothing. Raises as `call`."""
    tool = _tool(name)
    return tool.price(typed(tool.name, tool.arguments, given))


def _tool(name: str) -> Tool:
    if name not in TOOLS:
        raise UsageError(f"expected a tool of: {', '.join(TOOLS)}; got {name!r}")
    return TOOLS[name]


def typed(name: str, arguments: type[_Arguments], given: Mapping[str, object]) -> _Arguments:
    """The arguments as the tool of that name takes them. Raises `UsageError`."""
    try:
        return arguments(**given)
    except ValidationError as error:
        wrong = next((one for one in error.errors() if one["type"] != "missing"), None)
        if wrong is None:
            named = ".".join(map(str, error.errors()[0]["loc"]))
            raise UsageError(f"{name}: expected {named}, got none") from None
        place = ".".join(map(str, wrong["loc"])) or "arguments"
        raise UsageError(f"{name}: {place}: {wrong['msg']}, got {wrong['input']!r}") from None
