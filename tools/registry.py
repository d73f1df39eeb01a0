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
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import ValidationError

from mecharule_ops.errors import UsageError
from tools import arguments, result
from tools.arguments import Arguments
from tools.result import Tell as Tell
from tools.result import ToolResult as ToolResult

if TYPE_CHECKING:
    from mecharule_ops.run.live_run import Run

_Arguments = TypeVar("_Arguments", bound=Arguments)


@dataclass(frozen=True, slots=True)
class Tool(Generic[_Arguments]):
    """A tool: its name, what it may be told, when it keeps something even where nothing is ablated.

    A package adds one of its own by an entry point of the group `mecharule.tools` that names a `Tool`.
    """

    name: str
    arguments: type[_Arguments]
    home: str
    """The module that holds its function."""
    keeps: Callable[[_Arguments], bool] | None = None
    """Such as a look that is counted; None for never."""
    alone: bool = False
    """Whether it is about no one run: a function `NAME(given, tell)`."""

    @property
    def works(self) -> bool:
        """Whether it may run the model or change a file."""
        return self.keeps is not None or "estimate" in self.arguments.model_fields


@dataclass(slots=True)
class Begun:
    """A call up to its price: what was read before is not read again when it goes on."""

    tool: Tool[Any]
    told: Any
    """Its arguments, checked."""
    run: Run | None
    work: result.Priced | ToolResult
    price: result.Quoted | None = None
    """None of one that ablates nothing."""


def always(given: Any) -> bool:
    """For a tool that keeps something at every call."""
    return True


def looks(given: arguments.TabulateArguments) -> bool:
    """For a tool that counts each look at held-out records."""
    return given.records == "held-out"


TOOLS: Mapping[str, Tool[Any]] = {
    tool.name: tool
    for tool in (
        Tool("why", arguments.WhyArguments, "tools.why"),
        Tool("why-not", arguments.WhyNotArguments, "tools.why"),
        Tool("flip", arguments.FlipArguments, "tools.ablate"),
        Tool("ablate", arguments.AblateArguments, "tools.ablate"),
        Tool("verify", arguments.VerifyArguments, "tools.verify", alone=True),
        Tool("score", arguments.ScoreArguments, "tools.scoring"),
        Tool("column", arguments.ColumnArguments, "tools.scoring", keeps=always),
        Tool("tabulate", arguments.TabulateArguments, "tools.tabulate", keeps=looks),
        Tool("records", arguments.RecordsArguments, "tools.tabulate"),
        Tool("register", arguments.RegisterArguments, "tools.tabulate", keeps=always),
        Tool("decide", arguments.DecideArguments, "tools.tabulate", keeps=always),
        Tool("pairs", arguments.PairsArguments, "tools.ablate"),
        Tool("extract", arguments.ExtractArguments, "tools.scoring"),
        Tool("slices", arguments.SlicesArguments, "tools.show"),
        Tool("candidates", arguments.CandidatesArguments, "tools.show"),
        Tool("run", arguments.RunArguments, "tools.runs"),
        Tool("anchor", arguments.AnchorArguments, "tools.scoring"),
        Tool("explain", arguments.ExplainArguments, "tools.explain"),
        Tool("gates", arguments.GatesArguments, "tools.gates"),
        Tool("runs", arguments.RunsArguments, "tools.runs", keeps=always, alone=True),
        Tool("show", arguments.ShowArguments, "tools.show"),
        Tool("compare", arguments.CompareArguments, "tools.compare"),
        *(point.load() for point in entry_points(group="mecharule.tools")),
    )
}


def begin(name: str, given: Mapping[str, object], tell: Tell = lambda line: None) -> Begun:
    """A tool on untyped arguments up to its price.

    Raises `UsageError` for an unknown tool or arguments that do not fit, and what the tool raises.
    """
    if name not in TOOLS:
        raise UsageError(f"expected a tool of: {', '.join(TOOLS)}; got {name!r}")
    return _begun(TOOLS[name], typed(name, TOOLS[name].arguments, given), tell)


def _begun(tool: Tool[Any], told: Any, tell: Tell) -> Begun:
    work = getattr(import_module(tool.home), tool.name.replace("-", "_"))
    where: Any = nullcontext()
    if not tool.alone:
        from mecharule_ops.run.opening import opened

        where = opened(told.run, tell=tell)
    with where as run:
        begun = Begun(tool, told, run, work(told, tell) if tool.alone else work(run, told, tell))
        if isinstance(begun.work, Generator):
            price = next(begun.work)
            begun.price = price if isinstance(price, result.Quoted) else result.price_words(run, price)
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
            result.accepted(price, agreed or told.yes, tell)
        keeps = price.example_forwards or (tool.keeps and tool.keeps(told))
        with written_to(run) if run and keeps else nullcontext():
            try:
                next(begun.work)
            except StopIteration as end:
                return end.value
    raise AssertionError("a tool yields its price alone")


def _keeping(tool: Tool[Any] | None) -> AbstractContextManager[None]:
    if tool is None or tool.alone:  # So that listing the runs loads no numerical package.
        return nullcontext()
    from mecharule_ops.run.opening import kept_open

    return kept_open()


def typed(name: str, arguments: type[_Arguments], given: Mapping[str, object]) -> _Arguments:
    """The arguments as the tool of that name takes them. Raises `UsageError`."""
    try:
        return arguments(**given)
    except ValidationError as error:
        wrong = min(error.errors(), key=lambda one: one["type"] == "missing")
        place = ".".join(map(str, wrong["loc"])) or "arguments"
        if wrong["type"] == "missing":
            raise UsageError(f"{name}: expected {place}, got none") from None
        raise UsageError(f"{name}: {place}: {wrong['msg']}, got {wrong['input']!r}") from None
