"""The command line, made from the arguments models of verbs and tools. Loads nothing heavy."""

import argparse
import json
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, TextIO

from agent.verbs.options import HIDDEN, VERBS, WORKING, RunOptions
from mecharule_ops import bases, errors
from mecharule_ops.facts.fact import SENTENCES
from tools.arguments import Arguments, options_of
from tools.registry import TOOLS, Tell, ToolResult

ABOUT = "Find the units of a language model that control a behaviour, attach a rule to each, prove it."
EXIT_CODES = {name[5:]: means for name, means in SENTENCES.items() if name.startswith("exit.")}
DISPLAYS = ("rich", "plain", "none")
GROUPS = {name[6:]: tuple(each.split()) for name, each in SENTENCES.items() if name.startswith("verbs.")}
"""Every verb once, as `--help all` lists them; `--help` alone shows the first group."""
OF_THE_STRONGEST = frozenset({"why", "explain", "anchor"})
"""Verbs that take the strongest unit found where none is named, and the last run where a unit stands in its place."""
_MORE = "`mecharule run --help all` lists every option and every setting of `--set`."
_MORE_VERBS = "`mecharule --help all` lists every verb and the exit codes."
_TAKEN = {"run": "last", "neuron": "the strongest shown, else the first by evidence"}
_INVALID = re.compile(r"argument ([^:]+): invalid choice: '([^']*)'")
_MISSING = re.compile(r"the following arguments are required: (.+)")
_WIDTH, _NAME = 80, 16
_ON_OUTPUT = frozenset({"verb", "json", "display", "output"})


def write(text: str) -> None:
    """Data: text on stdout, at once. Raises `StoreError` where it cannot be written, `BrokenPipeError` as it is."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        silence(sys.stdout)
        raise errors.StoreError(
            f"expected to write to stdout, the system says: {error.strerror}; free the disk or name another file"
        ) from error


def silence(stream: TextIO) -> None:
    """From here on a stream that failed takes what is written and drops it, so that the exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Parser(argparse.ArgumentParser):
    """Reports a wrong command line as every other error is reported."""

    def _print_message(self, message: str, file: Any = None) -> None:
        """Help or version, where argparse would pass over a full disk. Raises as `write`."""
        write(message.rstrip())

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Every argument must be known. Raises `UsageError`."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            several = "; several units are joined by commas" if re.fullmatch(bases.UNIT_NAME, rest[0]) else ""
            near = errors.did_you_mean(rest[0].partition("=")[0], self._option_string_actions)
            self.error(f"expected nothing more, got {' '.join(rest)!r}{several or near}")
        return found, rest

    def error(self, message: str) -> NoReturn:
        """Raises `UsageError`: what was expected, what came, the nearest to it, and the help to read."""
        named = {
            name: one for one in self._actions for name in (one.metavar or one.dest, *one.option_strings)
        }
        if wrong := _INVALID.match(message):
            known = list(named[wrong[1].split("/")[0]].choices or ())
            what = "a verb" if wrong[1] == "VERB" else f"{', '.join(known[:-1])} or {known[-1]}"
            message = f"expected {what}, got {wrong[2]!r}{errors.did_you_mean(wrong[2], known)}"
        elif missing := _MISSING.match(message):
            wanted = [f"{name} ({named[name.split('/')[0]].help})" for name in missing[1].split(", ")]
            message = f"expected {' and '.join(wanted)}, got none"
        raise errors.UsageError(f"{message}; see `{self.prog} --help`")


def parser(whole: bool = False) -> argparse.ArgumentParser:
    """The whole command line; its help lists every verb, option and setting where it is asked for the `whole`."""
    every = _every()
    first, *others = _listed(every)
    codes = " · ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items())
    rest = [*others, textwrap.fill(f"Exit codes: {codes}.", _WIDTH)]
    command = Parser(
        prog="mecharule",
        description=textwrap.fill(ABOUT, _WIDTH),
        epilog="\n\n".join([first, *(rest if whole else [_MORE_VERBS])]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("--version", action="version", version="mecharule 0.1.0")
    verbs = command.add_subparsers(
        dest="verb",
        metavar="VERB",
        required=True,
        help="one of those below; `mecharule VERB --help` says more",
    )
    for name, arguments in every.items():
        verb = verbs.add_parser(name, description=textwrap.fill(arguments.meaning(), _WIDTH))
        verb.add_argument("--json", action="store_true", help="print JSON on stdout, also on failure")
        verb.set_defaults(output=None, display=None)
        if name in WORKING:
            shown = os.environ.get("MECHARULE_DISPLAY")
            meaning = "how its work is shown (default: rich on a terminal, else plain)"
            verb.add_argument("--display", choices=DISPLAYS, default=shown, help=meaning)
            verb.add_argument("--output", choices=["jsonl"], help="print each event as a JSON line instead")
        for flags, settings in options_of(arguments):
            if name in OF_THE_STRONGEST and (default := _TAKEN.get(flags[0])):
                settings |= {"nargs": "?", "help": f"{settings['help']} (default: {default})"}
            option = verb.add_argument(*flags, **settings)
            if arguments is RunOptions and option.dest in HIDDEN and not whole:
                option.help = argparse.SUPPRESS
        if arguments is RunOptions:
            verb.formatter_class = argparse.RawDescriptionHelpFormatter
            verb.epilog = _settings() if whole else _MORE
    return command


def _settings() -> str:
    from mecharule_ops.config import RunConfig

    given = json.loads(RunConfig.model_construct().model_dump_json())
    defaults = {name: "=" + json.dumps(value).strip('"') for name, value in given.items()}
    lines = (
        _entry(f"{name}{defaults.get(name, '')}: {field.description}", "  ", 6)
        for name, field in RunConfig.model_fields.items()
    )
    return "\n".join(["every setting, for --set KEY=VALUE or a file of --config, with its default:", *lines])


def _entry(text: str, head: str, indent: int) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=head, subsequent_indent=" " * indent)


def _every() -> dict[str, type[Arguments]]:
    return {**{tool.name: tool.arguments for tool in TOOLS.values()}, **VERBS}


def spec() -> ToolResult:
    """Every verb: what it does, its input schema, whether it runs the model; and the exit codes of all."""
    verbs = []
    for name, arguments in _every().items():
        works = TOOLS[name].works if name in TOOLS else name != "spec"
        told = {"name": name, "description": arguments.meaning(), "runs_the_model": works}
        schema, positional = arguments.model_json_schema(), list(arguments.positional)
        verbs.append({**told, "input_schema": schema, "positional": positional, "exit_codes": EXIT_CODES})
    return ToolResult(data={"verbs": verbs}, text=json.dumps(verbs, indent=1, ensure_ascii=False))


def _listed(every: Mapping[str, type[Arguments]]) -> Iterable[str]:
    """A block a group: its verbs with what each does."""
    others = tuple(every.keys() - {name for names in GROUPS.values() for name in names})
    for title, names in {**GROUPS, **({"of other packages": others} if others else {})}.items():
        lines = [_entry(every[name].meaning(), f"  {name:{_NAME}}", _NAME + 2) for name in names]
        yield "\n".join([f"{title}:", *lines])


def told(options: argparse.Namespace, tell: Tell = lambda line: None) -> tuple[str, dict[str, Any]]:
    """The verb and its arguments as it takes them; `tell` hears which unit is taken where none was named.

    Where none reached τ either, `show` answers: what the run found. Raises what opening the run raises.
    """
    said = {name: value for name, value in vars(options).items() if value is not None}
    given, verb = {name: said[name] for name in said.keys() - _ON_OUTPUT}, options.verb
    if verb not in OF_THE_STRONGEST or "neuron" in given or given.get("suffices"):
        return verb, given
    named = given.get("run", "last")
    if re.fullmatch(bases.UNIT_NAME, named):
        return verb, {**given, "run": "last", "neuron": named}
    from mecharule_ops.run.opening import findings_of, opened, regime_of

    with opened(named) as run:
        found = findings_of(run).by_evidence(regime_of(given.get("regime")))
    first = next((unit for unit in found if unit.is_tau_agonist), None)
    if first is None:
        tell(f"no unit is named, and none was found in run {run.id} to take instead")
        return "show", {"run": named}
    which = ": {}, the strongest" if first.is_shown else ", and none is shown: {}, the first by evidence"
    tell(f"no unit is named{which.format(first.neuron)} of run {run.id}")
    return verb, {**given, "run": named, "neuron": str(first.neuron)}
