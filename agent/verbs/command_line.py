"""The command line: every verb, its options, and how they become settings. Loads nothing heavy."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NoReturn

from mecharule_ops.bases import Basis
from mecharule_ops.codec import parse_json
from mecharule_ops.errors import UsageError

Handler = Callable[[argparse.Namespace], int]
EXIT_CODES = (
    "Exit codes: 0 ok · 1 run failed · 2 usage or config · 3 model or provider unavailable · 4 claim not supported or "
    "verify mismatch · 5 budget spent, partial result kept · 124 time limit · 130 interrupted."
)
DISPLAYS = ("full", "rich", "plain", "log", "none")
LAST_PORT = 65_535
_SETTINGS = {
    "file": "config",
    "settings": "set",
    "bases": "basis",
    "phase": "phase",
    "baseline": "baseline",
    "regimes": "regime",
    "tau": "tau",
    "records": "records",
    "search": "search",
    "exhaustive_up_to": "exhaustive_up_to",
    "device": "device",
    "dtype": "dtype",
}
"""What `runner.config_from` calls the options of `_setting_arguments`."""


class Parser(argparse.ArgumentParser):
    """Reports a wrong command line as every other error is reported."""

    def error(self, message: str) -> NoReturn:
        """Raises `UsageError` naming the help to read."""
        raise UsageError(f"{message}; see `{self.prog} --help`")


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """The settings that `run`, `fork` and `experiment` were told, by the names that `config_from` takes."""
    return {name: getattr(options, option) for name, option in _SETTINGS.items()}


def parser(handlers: Mapping[str, Handler], tool: Handler) -> argparse.ArgumentParser:
    """The whole command line; `handlers` by verb, `tool` for every verb that is a tool of the same name."""
    command = Parser(
        prog="mecharule",
        description="Find the units of a language model that control a behaviour, attach a rule to each, prove it.",
        epilog=EXIT_CODES,
    )
    command.add_argument("--version", action="version", version="mecharule 0.1.0")
    verbs = command.add_subparsers(dest="verb", metavar="VERB", required=True)

    def verb(name: str, help: str) -> argparse.ArgumentParser:
        made = verbs.add_parser(name, help=help, description=help)
        made.add_argument("--json", action="store_true", help="print JSON on stdout, also on failure")
        made.set_defaults(handler=handlers.get(name, tool), output=None, display=None)
        return made

    def working(name: str, help: str) -> argparse.ArgumentParser:
        made = verb(name, help)
        made.add_argument(
            "--display",
            choices=DISPLAYS,
            default=os.environ.get("MECHARULE_DISPLAY"),
            help="default: rich on a terminal, else plain",
        )
        made.add_argument("--output", choices=["jsonl"], help="print every event as one JSON line instead")
        return made

    _run_arguments(working("run", "analyse a task on a model, from behaviour to anchored rules"))
    resume = working("resume", "continue a run that was stopped or killed; no stored ablation is repeated")
    resume.add_argument("run", nargs="?", default="last", help="run id, file, or `last`")
    _llm_budget(resume)
    resume.add_argument("--device", help="go on there: auto, cpu, cuda, cuda:N or mps (default: as it began)")
    _worker_arguments(resume)
    fork = working("fork", "search again under other settings; no stored ablation is repeated")
    fork.add_argument("run", help="run id, file, or `last`")
    _setting_arguments(fork)
    _worker_arguments(fork)
    working("demo", "the bundled model: search, rule, question, certificate; offline, under a minute")
    replay = working("replay", "tell a run's story again, from its events")
    replay.add_argument("run", nargs="?", default="last", help="run id, file, or `last`")
    replay.add_argument(
        "--speed", type=float, default=0.0, help="1 is as it happened, 10 ten times as fast, 0 at once"
    )
    serve = verb("serve", "the terminal app in a browser, on this machine only unless told otherwise")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    serve.add_argument("--port", type=_port, default=8000, help="0 takes any free one (default 8000)")
    _refine_arguments(
        working("refine", "seek better rules for units without one; held-out records decide once")
    )
    _experiment_arguments(
        working("experiment", "one of the paper's experiments over several seeds, as tables and figures")
    )
    ask = working("ask", "answer a question about a finished run, every number with its source")
    ask.add_argument("run", help="run id, file, or `last`")
    ask.add_argument("question", help='for example "why does the strongest neuron flip?"')
    ask.add_argument(
        "--llm", help="who words the answer: none, mock:FILE, local/FILE, anthropic/NAME or openai/NAME"
    )
    _llm_budget(ask)
    ask.add_argument("--follow", action="store_true", help="follow on what was asked about the run before")
    for name, help, arguments in import_module("tools.catalogue").VERBS:
        made = verb(name, help)
        for flags, settings in arguments:
            made.add_argument(*flags, **settings)
    return command


def _key_value(text: str) -> tuple[str, Any]:
    key, sign, value = text.partition("=")
    if not sign:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got {text!r}")
    try:
        return key, parse_json(value)
    except ValueError:
        return key, value


def _regimes(text: str) -> tuple[int, ...]:
    known = {"1": (1,), "0": (0,), "both": (1, 0)}
    if text not in known:
        raise argparse.ArgumentTypeError(f"expected 1, 0 or both, got {text!r}")
    return known[text]


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > LAST_PORT:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to {LAST_PORT}, got {text!r}")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, got {text!r}")
    return int(text)


def _llm_budget(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--llm-budget",
        type=_count,
        metavar="TOKENS",
        help="the language model is asked nothing more once it has read and written TOKENS (default 1,000,000)",
    )


def _refine_arguments(refine: argparse.ArgumentParser) -> None:
    refine.add_argument("run", nargs="?", default="last", help="run id, file, or `last`")
    refine.add_argument(
        "--llm",
        help="who suggests: none (offline), mock:FILE, local/FILE, anthropic/NAME or openai/NAME",
    )
    _llm_budget(refine)
    refine.add_argument("--budget", type=_count, metavar="N", help="at most N suggestions in all")
    refine.add_argument("--rounds", type=_count, default=3, metavar="N", help="at most N rounds a unit")
    refine.add_argument(
        "--units", type=_count, default=12, metavar="N", help="at most N units, strongest first"
    )
    refine.add_argument("--again", action="store_true", help="ask anew although it was done before")
    refine.add_argument(
        "--replay",
        action="store_true",
        help="the latest refinement again from its stored words; asks no model",
    )


def _run_arguments(run: argparse.ArgumentParser) -> None:
    def option(*flags: str, **settings: Any) -> None:
        run.add_argument(*flags, **settings)

    option("task", help="the task, for example arithmetic")
    option("-m", "--model", required=True, help="arith-tiny, smollm2-135m, a local directory or a hub id")
    _setting_arguments(run)
    _worker_arguments(run)
    option("--budget", type=int, metavar="N", help="stop after N group ablations; what was found is kept")
    option(
        "--llm",
        help="who proposes predicates: none (offline grammar), mock:FILE, local/FILE, anthropic/NAME or openai/NAME",
    )
    _llm_budget(run)
    option(
        "--suppress-only",
        action="store_true",
        help="units that flip 0→1 stay anonymous: for tasks where that direction is a risk",
    )
    option("--parity", action="store_true", help="Algorithm 1 as printed, without later improvements")
    option("--seed", type=int)


def _setting_arguments(made: argparse.ArgumentParser) -> None:
    """What `run`, `fork` and `experiment` can all be told."""

    def option(*flags: str, **settings: Any) -> None:
        made.add_argument(*flags, **settings)

    option("--basis", help=f"{', '.join(Basis)}, or several with commas")
    option("--phase", help="decode, last-prompt or whole (default: the task's)")
    option("--baseline", help="zero, mean, mean-positional, mean-donor, mean-donor-positional or slot0")
    option("--regime", type=_regimes, help="1 (1→0), 0 (0→1) or both")
    option("--tau", type=float, help="strength threshold (default .2)")
    option("--records", type=int, help="examples on which the behaviour is observed (default 2000)")
    option(
        "--search",
        choices=["guided", "cha", "exhaustive"],
        help="guided: what first order predicts first (default); cha: groups opened by halves; exhaustive: each unit",
    )
    option(
        "--exhaustive-up-to", type=int, metavar="N", help="ablate every unit too where a basis has at most N"
    )
    option(
        "--set", type=_key_value, action="append", default=[], metavar="KEY=VALUE", help="any other setting"
    )
    option("--config", metavar="FILE", help="a JSON file of settings; flags win")
    option("--device", help="auto (a CUDA device if there is one), cpu, cuda, cuda:N or mps")
    option("--dtype", help="auto (float32 if it fits, else bfloat16), float32, bfloat16 or float16")
    option("--yes", action="store_true", help="accept the price without being asked")
    option("--dry-run", action="store_true", help="print what would run and what it costs at most, then stop")


def _worker_arguments(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--workers",
        type=_count,
        metavar="N",
        help="N processes with a copy of the model each answer the ablations (Ray); results stay the same",
    )
    made.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="join a Ray cluster, such as auto or HOST:6379 (default: start one here)",
    )


def workers_of(options: argparse.Namespace) -> dict[str, Any]:
    """What was said about workers, by the names that `Wanted` takes."""
    return {"workers": options.workers, "ray": options.ray}


def _experiment_arguments(made: argparse.ArgumentParser) -> None:
    def option(*flags: str, **settings: Any) -> None:
        made.add_argument(*flags, **settings)

    option("name", help="e0, e1, e2, sensitivity, baselines, overlap, several with commas, or all")
    option("--task", default="arithmetic", help="the task (default arithmetic)")
    option("-m", "--model", default="arith-tiny", help="as for `run` (default arith-tiny)")
    option("--seeds", type=_count, default=5, metavar="N", help="seeds 0 to N−1 (default 5)")
    option("--units", metavar="U,…", help="baselines only: ask about these units alone, without a search")
    option("--again", action="store_true", help="analyse finished runs anew from their stored ablations")
    option("--md", action="store_true", help="print Markdown")
    option("--out", metavar="FOLDER", help="write the page as Markdown and HTML, and its figures as SVG")
    _setting_arguments(made)
