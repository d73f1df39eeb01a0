"""The `mecharule` command: verbs over one set of tools. Parsing, exit codes, printing, and nothing else.

stdout is data, stderr is narration. Exit codes: 0 ok · 1 run failed · 2 usage or config · 3 model or provider
unavailable · 4 claim not supported or verify mismatch · 5 budget spent, partial result kept · 124 time limit ·
130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from mecharule_ops.errors import MechaRuleError, UsageError

INTERRUPTED = 130
LAST_PORT = 65_535
DISPLAYS = ("full", "rich", "plain", "log", "none")


class Parser(argparse.ArgumentParser):
    """Reports a wrong command line as every other error is reported."""

    def error(self, message: str) -> NoReturn:
        """Raises `UsageError` naming the help to read."""
        raise UsageError(f"{message}; see `{self.prog} --help`")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code; an error is one line on stderr, and JSON too where asked for."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Threads that wait by spinning make a shared machine many times slower; it must be said before torch loads.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        if not given:
            return _screens()
        options = _parser().parse_args(given)
        return options.handler(options)
    except KeyboardInterrupt:
        message = "interrupted; what was stored is kept, `mecharule resume` continues"
        return _failed(given, message, INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MechaRuleError as error:
        return _failed(given, str(error), error.exit_code)


def _failed(given: Sequence[str], message: str, code: int) -> int:
    if "--json" in given or "jsonl" in given or "--output=jsonl" in given:
        print(json.dumps({"ok": False, "error": message, "exit_code": code}))
    _tell(f"mecharule: {message}")
    return code


def _tell(line: str) -> None:
    """Narration: one line on stderr."""
    print(line, file=sys.stderr, flush=True)


def _screens() -> int:
    """The full-screen interface; only a person at a terminal can use it."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("expected a verb, since this is no terminal for the screens; see `mecharule --help`")
    from tui.app import run_app

    return run_app()


# --- verbs that work for a while -------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> int:
    from agent import runner

    config = runner.config_from(
        task=options.task,
        model=options.model,
        settings=options.set,
        file=options.config,
        bases=options.basis,
        phase=options.phase,
        baseline=options.baseline,
        regimes=options.regime,
        tau=options.tau,
        records=options.records,
        exhaustive_up_to=options.exhaustive_up_to,
        proposer=options.llm,
        budget=options.budget,
        parity=options.parity,
        suppress_only=options.suppress_only,
        seed=options.seed,
    )
    if options.dry_run:
        return _print(options, runner.plan(config))
    approve = runner.approval(options.yes or options.budget is not None, sys.stdin.isatty())
    return _work(options, lambda show: runner.start(config, show, approve))


def _resume(options: argparse.Namespace) -> int:
    from agent import runner

    return _work(options, lambda show: runner.resume(options.run, show))


def _fork(options: argparse.Namespace) -> int:
    from agent import runner

    config = runner.config_from(
        base=runner.config_of(options.run),
        settings=options.set,
        file=options.config,
        bases=options.basis,
        phase=options.phase,
        baseline=options.baseline,
        regimes=options.regime,
        tau=options.tau,
        records=options.records,
        exhaustive_up_to=options.exhaustive_up_to,
    )
    if options.dry_run:
        return _print(options, runner.plan(config))
    approve = runner.approval(options.yes, sys.stdin.isatty())
    return _work(options, lambda show: runner.fork(options.run, config, show, approve))


def _demo(options: argparse.Namespace) -> int:
    from agent.demo import demo

    return _work(options, demo)


def _refine(options: argparse.Namespace) -> int:
    from agent.refine_verb import Limits, refine_run

    limits = Limits(budget=options.budget, rounds=options.rounds, units=options.units, again=options.again)
    return _work(options, lambda show: refine_run(options.run, show, llm=options.llm, limits=limits))


def _experiment(options: argparse.Namespace) -> int:
    from agent import experimenting, runner

    config = experimenting.config_of(
        options.set,
        file=options.config,
        task=options.task,
        model=options.model,
        bases=options.basis,
        phase=options.phase,
        baseline=options.baseline,
        regimes=options.regime,
        tau=options.tau,
        records=options.records,
        exhaustive_up_to=options.exhaustive_up_to,
    )
    wanted = experimenting.Wanted(
        name=options.name,
        seeds=options.seeds,
        again=options.again,
        units=options.units,
        out=options.out,
        markdown=options.md,
    )
    if options.dry_run:
        return _print(options, experimenting.dry_run(wanted, config))
    approve = runner.approval(options.yes, sys.stdin.isatty())
    return _work(options, lambda show: experimenting.experiment(wanted, config, show, approve))


def _replay(options: argparse.Namespace) -> int:
    from tools.replay import replay

    return _work(options, lambda show: replay(options.run, show, options.speed))


def _work(options: argparse.Namespace, work: Callable[[Callable[[Any], None]], Any]) -> int:
    """Show a run's events while it works, then print its report (or its events, one JSON a line)."""
    from tui.display import make_display

    if options.display == "full":
        raise UsageError(
            "expected a display of rich, plain, log or none for a verb; the screens have no verb"
        )
    display = make_display(options.display)
    lines = options.output == "jsonl"

    def show(event: Any) -> None:
        if lines:
            from mecharule_ops.store.event_json import event_to_json

            print(event_to_json(event), flush=True)
        display.show(event)

    try:
        result = work(show)
    finally:
        display.close()
    if lines:
        return result.exit_code
    return _print(options, result)


def _serve(options: argparse.Namespace) -> int:
    from tui.serving import LOOPBACK, serve

    def ready(address: str) -> None:
        if options.json:
            print(json.dumps({"ok": True, "address": address}), flush=True)
        _tell(f"open {address} in a browser; ^C ends the server, and the work of every open page")
        if options.host not in LOOPBACK:
            _tell("warning: whoever reaches this address can read the runs here and start new ones")

    return serve(options.host, options.port, ready)


# --- verbs that look things up ---------------------------------------------------------------------------


def _tool(options: argparse.Namespace) -> int:
    """Call the tool of the verb's name with the verb's options as its typed arguments."""
    from tools.registry import call

    skipped = {"verb", "handler", "json", "display", "output"}
    given = {
        name: value for name, value in vars(options).items() if name not in skipped and value is not None
    }
    return _print(options, call(options.verb, given, _tell))


def _ask(options: argparse.Namespace) -> int:
    from agent.chat import ask
    from mecharule_ops.events import Event, Notice, QuestionAnswered

    def work(show: Callable[[Event], None]) -> Any:
        def heard(event: Event) -> None:
            # A person reads the answer itself below; a program reads it in the stream.
            if options.output or not isinstance(event, QuestionAnswered):
                show(event)

        earlier = None if options.follow else ()
        return ask(
            options.run,
            options.question,
            lambda line: show(Notice(text=line)),
            llm=options.llm,
            earlier=earlier,
            show=heard,
        )

    options.display = options.display or "plain"
    return _work(options, work)


def _print(options: argparse.Namespace, result: Any) -> int:
    print(json.dumps(result.data, indent=1, ensure_ascii=False) if options.json else result.text)
    return result.exit_code


# --- the command line ------------------------------------------------------------------------------------


def _key_value(text: str) -> tuple[str, Any]:
    key, sign, value = text.partition("=")
    if not sign:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got {text!r}")
    try:
        return key, json.loads(value)
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


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="mecharule",
        description="Find the units of a language model that control a behaviour, attach a rule to each, prove it.",
        epilog=__doc__.split("\n\n")[1],
    )
    parser.add_argument("--version", action="version", version="mecharule 0.1.0")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)

    def verb(name: str, help: str, handler: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        made = verbs.add_parser(name, help=help, description=help)
        made.add_argument("--json", action="store_true", help="print JSON on stdout, also on failure")
        made.set_defaults(handler=handler, output=None, display=None)
        return made

    def working(
        name: str, help: str, handler: Callable[[argparse.Namespace], int]
    ) -> argparse.ArgumentParser:
        made = verb(name, help, handler)
        made.add_argument(
            "--display",
            choices=DISPLAYS,
            default=os.environ.get("MECHARULE_DISPLAY"),
            help="default: rich on a terminal, else plain",
        )
        made.add_argument("--output", choices=["jsonl"], help="print every event as one JSON line instead")
        return made

    _run_arguments(working("run", "analyse a task on a model, from behaviour to anchored rules", _run))
    resume = working(
        "resume", "continue a run that was stopped or killed; no stored ablation is repeated", _resume
    )
    resume.add_argument("run", nargs="?", default="last", help="run id, file, or `last`")
    fork = working("fork", "search again under other settings; no stored ablation is repeated", _fork)
    fork.add_argument("run", help="run id, file, or `last`")
    _setting_arguments(fork)
    working("demo", "the bundled model: search, rule, question, certificate; offline, under a minute", _demo)
    replay = working("replay", "tell a run's story again, from its events", _replay)
    replay.add_argument("run", nargs="?", default="last", help="run id, file, or `last`")
    replay.add_argument(
        "--speed", type=float, default=0.0, help="1 is as it happened, 10 ten times as fast, 0 at once"
    )
    serve = verb("serve", "the terminal app in a browser, on this machine only unless told otherwise", _serve)
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    serve.add_argument("--port", type=_port, default=8000, help="0 takes any free one (default 8000)")
    _refine_arguments(
        working("refine", "seek better rules for units without one; held-out records decide once", _refine)
    )
    _experiment_arguments(
        working(
            "experiment",
            "one of the paper's experiments over several seeds, as tables and figures",
            _experiment,
        )
    )
    ask = working("ask", "answer a question about a finished run, every number with its source", _ask)
    ask.add_argument("run", help="run id, file, or `last`")
    ask.add_argument("question", help='for example "why does the strongest neuron flip?"')
    ask.add_argument("--llm", help="who words the answer: none, mock:FILE, anthropic/NAME or openai/NAME")
    ask.add_argument("--follow", action="store_true", help="follow on what was asked about the run before")
    for name, help, arguments in import_module("tools.catalogue").VERBS:
        made = verb(name, help, _tool)
        for flags, settings in arguments:
            made.add_argument(*flags, **settings)
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, got {text!r}")
    return int(text)


def _refine_arguments(refine: argparse.ArgumentParser) -> None:
    refine.add_argument("run", nargs="?", default="last", help="run id, file, or `last`")
    refine.add_argument(
        "--llm", help="who suggests: none (offline), mock:FILE, anthropic/NAME or openai/NAME"
    )
    refine.add_argument("--budget", type=_count, metavar="N", help="at most N suggestions in all")
    refine.add_argument("--rounds", type=_count, default=3, metavar="N", help="at most N rounds a unit")
    refine.add_argument(
        "--units", type=_count, default=12, metavar="N", help="at most N units, strongest first"
    )
    refine.add_argument("--again", action="store_true", help="ask anew although it was done before")


def _run_arguments(run: argparse.ArgumentParser) -> None:
    def option(*flags: str, **settings: Any) -> None:
        run.add_argument(*flags, **settings)

    option("task", help="the task, for example arithmetic")
    option("-m", "--model", required=True, help="arith-tiny, smollm2-135m, a local directory or a hub id")
    _setting_arguments(run)
    option("--budget", type=int, metavar="N", help="stop after N group ablations; what was found is kept")
    option(
        "--llm",
        help="who proposes predicates: none (offline grammar), mock:FILE, anthropic/NAME or openai/NAME",
    )
    option(
        "--suppress-only",
        action="store_true",
        help="units that flip 0→1 stay anonymous: for tasks where that direction is a risk",
    )
    option("--parity", action="store_true", help="Algorithm 1 as printed, without later improvements")
    option("--seed", type=int)


def _setting_arguments(made: argparse.ArgumentParser) -> None:
    """What `run` and `experiment` can both be told."""

    def option(*flags: str, **settings: Any) -> None:
        made.add_argument(*flags, **settings)

    option("--basis", help="mlp_out, mlp_hidden, attn_head, or several with commas")
    option("--phase", help="decode, last-prompt or whole (default: the task's)")
    option("--baseline", help="zero, mean, mean-positional, mean-donor, mean-donor-positional or slot0")
    option("--regime", type=_regimes, help="1 (1→0), 0 (0→1) or both")
    option("--tau", type=float, help="strength threshold (default .2)")
    option("--records", type=int, help="examples on which the behaviour is observed (default 2000)")
    option(
        "--exhaustive-up-to", type=int, metavar="N", help="ablate every unit too where a basis has at most N"
    )
    option(
        "--set", type=_key_value, action="append", default=[], metavar="KEY=VALUE", help="any other setting"
    )
    option("--config", metavar="FILE", help="a JSON file of settings; flags win")
    option("--yes", action="store_true", help="accept the price without being asked")
    option("--dry-run", action="store_true", help="print what would run and what it costs at most, then stop")


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


if __name__ == "__main__":
    sys.exit(main())
