"""The command line, made from the arguments models of verbs and tools. Loads nothing heavy."""

from __future__ import annotations

import argparse
import os
from typing import Any, NoReturn

from agent.verbs.options import VERBS
from mecharule_ops.errors import UsageError
from tools.registry import TOOLS
from tools.schemas import options_of

EXIT_CODES = (
    "Exit codes: 0 ok · 1 run failed · 2 usage or config · 3 model or provider unavailable · 4 claim not supported or "
    "verify mismatch · 5 budget spent, partial result kept · 124 time limit · 130 interrupted."
)
DISPLAYS = ("full", "rich", "plain", "log", "none")
_ON_OUTPUT = frozenset({"verb", "json", "display", "output"})


class Parser(argparse.ArgumentParser):
    """Reports a wrong command line as every other error is reported."""

    def error(self, message: str) -> NoReturn:
        """Raises `UsageError` naming the help to read."""
        raise UsageError(f"{message}; see `{self.prog} --help`")


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    command = Parser(
        prog="mecharule",
        description="Find the units of a language model that control a behaviour, attach a rule to each, prove it.",
        epilog=EXIT_CODES,
    )
    command.add_argument("--version", action="version", version="mecharule 0.1.0")
    verbs = command.add_subparsers(dest="verb", metavar="VERB", required=True)
    every = {**VERBS, **{tool.name: tool.arguments for tool in TOOLS.values()}}
    for name, arguments in every.items():
        help = " ".join((arguments.__doc__ or "").split())
        verb = verbs.add_parser(name, help=help, description=help)
        verb.add_argument("--json", action="store_true", help="print JSON on stdout, also on failure")
        verb.set_defaults(output=None, display=None)
        if name in VERBS and name != "serve":
            _add_display(verb)
        for flags, settings in options_of(arguments):
            verb.add_argument(*flags, **settings)
    return command


def _add_display(verb: argparse.ArgumentParser) -> None:
    """How the events of a verb that works for a while are shown."""
    verb.add_argument(
        "--display",
        choices=DISPLAYS,
        default=os.environ.get("MECHARULE_DISPLAY"),
        help="default: rich on a terminal, else plain",
    )
    verb.add_argument("--output", choices=["jsonl"], help="print every event as one JSON line instead")


def told(options: argparse.Namespace) -> dict[str, Any]:
    """What was said, as the verb's arguments take it."""
    return {
        name: value for name, value in vars(options).items() if name not in _ON_OUTPUT and value is not None
    }
