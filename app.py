"""The `mecharule` command: what each verb calls, exit codes, printing, and nothing else.

stdout is data, stderr is narration. Exit codes: 0 ok · 1 run failed · 2 usage or config · 3 model or provider
unavailable · 4 claim not supported or verify mismatch · 5 budget spent, partial result kept · 124 time limit ·
130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent.verbs.command_line import Handler, parser, settings_of, workers_of
from mecharule_ops.errors import MechaRuleError, UsageError

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code; an error is one line on stderr, and JSON too where asked for."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Threads that wait by spinning make a shared machine many times slower; it must be said before torch loads.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        if not given:
            return _screens()
        options = parser(HANDLERS, _tool).parse_args(given)
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
    from agent.verbs import runner

    config = runner.config_from(
        task=options.task,
        model=options.model,
        **settings_of(options),
        proposer=options.llm,
        budget=options.budget,
        parity=options.parity,
        suppress_only=options.suppress_only,
        seed=options.seed,
    )
    if options.dry_run:
        return _print(options, runner.plan(config))
    approve = runner.approval(options.yes or options.budget is not None, sys.stdin.isatty())
    wanted = runner.Wanted(**workers_of(options))
    return _work(
        options,
        lambda show: runner.start(config, show, approve, llm_budget=options.llm_budget, wanted=wanted),
    )


def _resume(options: argparse.Namespace) -> int:
    from agent.verbs import runner

    return _work(
        options,
        lambda show: runner.resume(
            options.run,
            show,
            llm_budget=options.llm_budget,
            device=options.device,
            wanted=runner.Wanted(**workers_of(options)),
        ),
    )


def _fork(options: argparse.Namespace) -> int:
    from agent.verbs import runner

    config = runner.config_from(
        base=runner.config_of(options.run),
        **settings_of(options),
    )
    if options.dry_run:
        return _print(options, runner.plan(config))
    approve = runner.approval(options.yes, sys.stdin.isatty())
    wanted = runner.Wanted(**workers_of(options))
    return _work(options, lambda show: runner.fork(options.run, config, show, approve, wanted))


def _demo(options: argparse.Namespace) -> int:
    from agent.verbs.demo import demo

    return _work(options, demo)


def _refine(options: argparse.Namespace) -> int:
    from agent.verbs.refine import Limits, refine_run, replay_refinement

    if options.replay:
        return _print(options, replay_refinement(options.run))
    limits = Limits(
        budget=options.budget,
        tokens=options.llm_budget,
        rounds=options.rounds,
        units=options.units,
        again=options.again,
    )
    return _work(options, lambda show: refine_run(options.run, show, llm=options.llm, limits=limits))


def _experiment(options: argparse.Namespace) -> int:
    from agent.verbs import experiment as experimenting
    from agent.verbs import runner

    config = experimenting.config_of(task=options.task, model=options.model, **settings_of(options))
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
    from agent.verbs.interrupts import interrupts
    from tui.display import make_display

    if options.display == "full":
        raise UsageError(
            "expected a display of rich, plain, log or none for a verb; the screens have no verb"
        )
    display = make_display(options.display)
    lines = options.output == "jsonl"

    try:
        with interrupts() as check:

            def show(event: Any) -> None:
                check()
                if lines:
                    from mecharule_ops.store.event_json import event_to_json

                    print(event_to_json(event), flush=True)
                display.show(event)

            result = work(show)
    finally:
        display.close()
    if lines:
        return result.exit_code
    return _print(options, result)


def _repair(options: argparse.Namespace) -> int:
    from agent.verbs.repair import repair_run
    from tools.arguments import Repair
    from tools.registry import typed

    return _print(options, repair_run(typed("repair", Repair, _given(options)), _tell))


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

    return _print(options, call(options.verb, _given(options), _tell))


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """What was said, as a tool takes it."""
    skipped = {"verb", "handler", "json", "display", "output"}
    return {name: value for name, value in vars(options).items() if name not in skipped and value is not None}


def _ask(options: argparse.Namespace) -> int:
    from agent.answering.chat import ask
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
            budget=options.llm_budget,
            earlier=earlier,
            show=heard,
        )

    options.display = options.display or "plain"
    return _work(options, work)


def _print(options: argparse.Namespace, result: Any) -> int:
    print(json.dumps(result.data, indent=1, ensure_ascii=False) if options.json else result.text)
    return result.exit_code


HANDLERS: Mapping[str, Handler] = {
    "run": _run,
    "resume": _resume,
    "fork": _fork,
    "demo": _demo,
    "replay": _replay,
    "serve": _serve,
    "refine": _refine,
    "repair": _repair,
    "experiment": _experiment,
    "ask": _ask,
}
"""Every verb that is more than a tool."""


if __name__ == "__main__":
    sys.exit(main())
