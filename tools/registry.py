"""The one table of tools and the one way to call them: the run opened once, the price said, the person asked.

A tool is a function over an open run, `NAME(run, given, tell)`. One that may ablate or keep something is a generator:
it yields first the ablated completions that it takes, 0 where all is stored, and works once it is asked to go on. Its
module is imported when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from mecharule_ops.errors import UsageError
from tools import arguments
from tools.arguments import Arguments
from tools.result import Priced, Quoted, accepted, price_words
from tools.result import Tell as Tell
from tools.result import ToolResult as ToolResult
from tools.result import of_facts as of_facts

if TYPE_CHECKING:
    from mecharule_ops.run.live_run import Run

_Arguments = TypeVar("_Arguments", bound=Arguments)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its name, what it may be told, when it keeps something even where nothing is ablated."""

    name: str
    arguments: type[Arguments]
    home: str = ""
    """The module that holds it among others; empty for one of its own name."""
    keeps: Callable[[Any], bool] | None = None
    """Such as a look that is counted; None for never."""
    alone: bool = False
    """Whether it is about no one run: a function `NAME(given, tell)`."""

    @property
    def help(self) -> str:
        """The line that describes it."""
        return self.arguments.meaning()

    @property
    def works(self) -> bool:
        """Whether it may run the model or change a file."""
        return self.keeps is not None or "estimate" in self.arguments.model_fields


@dataclass(slots=True)
class Begun:
    """A call up to its price: what was read before is not read again when it goes on."""

    tool: Tool
    told: Any
    """Its arguments, checked."""
    run: Run | None
    work: Priced | ToolResult
    price: Quoted | None = None
    """None of one that ablates nothing."""


def always(given: Any) -> bool:
    """For a tool that keeps something at every call."""
    return True


TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("why", arguments.WhyArguments),
        Tool("why-not", arguments.WhyNotArguments, "why"),
        Tool("flip", arguments.FlipArguments, "ablate"),
        Tool("ablate", arguments.AblateArguments),
        Tool("verify", arguments.VerifyArguments, alone=True),
        Tool("score", arguments.ScoreArguments, "scoring"),
        Tool("column", arguments.ColumnArguments, "scoring", keeps=always),
        Tool("tabulate", arguments.TabulateArguments, keeps=lambda given: given.records == "held-out"),
        Tool("records", arguments.RecordsArguments, "tabulate"),
        Tool("register", arguments.RegisterArguments, "registering", keeps=always),
        Tool("decide", arguments.DecideArguments, "registering", keeps=always),
        Tool("pairs", arguments.PairsArguments, "ablate"),
        Tool("extract", arguments.ExtractArguments, "scoring"),
        Tool("slices", arguments.SlicesArguments, "show"),
        Tool("candidates", arguments.CandidatesArguments, "show"),
        Tool("run", arguments.RunArguments, "runs"),
        Tool("anchor", arguments.AnchorArguments, "scoring"),
        Tool("explain", arguments.ExplainArguments),
        Tool("gates", arguments.GatesArguments),
        Tool("runs", arguments.RunsArguments, keeps=always, alone=True),
        Tool("show", arguments.ShowArguments),
        Tool("compare", arguments.CompareArguments),
    )
}


def begin(name: str, given: Mapping[str, object], tell: Tell = lambda line: None) -> Begun:
    """A tool on untyped arguments up to its price.

    Raises `UsageError` for an unknown tool or arguments that do not fit, and what the tool raises.
    """
    if name not in TOOLS:
        raise UsageError(f"expected a tool of: {', '.join(TOOLS)}; got {name!r}")
    return _begun(TOOLS[name], typed(name, TOOLS[name].arguments, given), tell)


def _begun(tool: Tool, told: Any, tell: Tell) -> Begun:
    function = tool.name.replace("-", "_")
    work = getattr(import_module(f"tools.{tool.home or function}"), function)
    where: Any = nullcontext()
    if not tool.alone:
        from mecharule_ops.run.opening import opened

        where = opened(told.run, tell=tell)
    with where as run:
        begun = Begun(tool, told, run, work(told, tell) if tool.alone else work(run, told, tell))
        if isinstance(begun.work, Generator):
            price = next(begun.work)
            begun.price = price if isinstance(price, Quoted) else price_words(run, price)
        return begun


def call(name: str, given: Mapping[str, object], tell: Tell = lambda line: None) -> ToolResult:
    """The result of a tool on untyped arguments. Raises as `begin`."""
    with _keeping(TOOLS.get(name)):
        return finish(begin(name, given, tell), tell)


def finish(begun: Begun, tell: Tell = lambda line: None, *, agreed: bool = False) -> ToolResult:
    """The result of a call, begun anew where its run was closed since; `agreed` is a yes to its price."""
    tool, told = begun.tool, begun.told
    with _keeping(tool):
        if begun.run is not None:
            from mecharule_ops.run.opening import is_kept, written_to

            begun = begun if is_kept(begun.run) else _begun(tool, told, tell)
        run, price = begun.run, begun.price
        if isinstance(begun.work, ToolResult):
            return begun.work
        assert price is not None
        if getattr(told, "estimate", False):
            return price.stated(*([f"run:{run.id}"] if run else []))
        if price.example_forwards and "yes" in tool.arguments.model_fields:
            accepted(price, agreed or told.yes, tell)
        keeps = price.example_forwards or (tool.keeps and tool.keeps(told))
        with written_to(run) if run and keeps else nullcontext():
            try:
                next(begun.work)
            except StopIteration as end:
                return end.value
    raise AssertionError("a tool yields its price alone")


def _keeping(tool: Tool | None) -> AbstractContextManager[None]:
    if tool is None or tool.alone:  # So that listing the runs loads no numerical package.
        return nullcontext()
    from mecharule_ops.run.opening import kept_open

    return kept_open()


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
