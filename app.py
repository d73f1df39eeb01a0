"""The `mecharule` command: what each verb calls, exit codes, printing, and nothing else.

stdout is data, stderr is narration. Exit codes: 0 ok · 1 run failed · 2 usage or config · 3 model or provider
unavailable · 4 claim not supported or verify mismatch · 5 budget spent, partial result kept · 124 time limit ·
128 + N stopped by signal N (130 ^C, 143 SIGTERM, 129 SIGHUP, 138 SIGUSR1).
"""

from __future__ import annotations

import argparse
import codecs
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.consent import coloured
from agent.verbs import options as verbs
from agent.verbs.command_line import parser, silence, spec, told, write
from mecharule_ops.errors import MechaRuleError, StoreError, UsageError
from mecharule_ops.pages.as_text import WIDTH, within
from tools.registry import Tell, ToolResult, call, typed

if TYPE_CHECKING:
    from mecharule_ops.events import Event

Show = Callable[["Event"], None]

RESUMED = ("run", "resume", "demo")
"""Verbs whose run `resume` continues."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code; an error is one line on stderr, and JSON too where asked for."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if sys.flags.optimize > 1 and arguments is None:
        # transformers and XGBoost read docstrings, and help is made of them.
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONOPTIMIZE": "1"})
    # Threads that wait by spinning make a shared machine many times slower; it must be said before torch loads.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    _open_streams()
    try:
        if not given:
            return _screens()
        options = parser(given[-2:] in (["-h", "all"], ["--help", "all"])).parse_args(given)
        if options.verb in WORK:
            asked = typed(options.verb, verbs.VERBS[options.verb], told(options)[1])
            return _work(options, partial(WORK[options.verb], asked, options))
        if options.verb == "mcp":
            return _mcp()
        if options.verb == "spec":
            return _print(options, spec())
        answering = verbs.called if options.verb in verbs.VERBS else call
        return _print(options, answering(*told(options, _tell), _tell))
    except KeyboardInterrupt as stopped:
        goes_on = ", `mecharule resume` continues" if given and given[0] in RESUMED else ""
        number = signal.Signals(stopped.args[0] if stopped.args else signal.SIGINT)
        if run := "".join(getattr(stopped, "__notes__", [])):
            goes_on = f" in run {run}, `mecharule resume {run}` continues"
        how = "interrupted" if number == signal.SIGINT else f"stopped by {number.name}"
        return _failed(given, f"{how}; what was stored is kept{goes_on}", 128 + number)
    except BrokenPipeError:
        silence(sys.stdout)
        return 0
    except MechaRuleError as error:
        return _failed(given, str(error), error.exit_code)


def _failed(given: Sequence[str], message: str, code: int) -> int:
    if "--json" in given or "jsonl" in given or "--output=jsonl" in given:
        with suppress(StoreError):
            write(json.dumps({"ok": False, "error": message, "exit_code": code}))
    _tell(f"mecharule: {message}")
    return code


def _open_streams() -> None:
    """A closed stream reads as empty and drops what is written; a sign that an encoding lacks is written as in JSON."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
    codecs.register_error("as in JSON", _as_in_json)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="as in JSON")


def _as_in_json(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


@contextmanager
def _narrating() -> Iterator[None]:
    """What stderr has no room for is left out: a full disk under it ends no work."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError:
        silence(sys.stderr)


def _tell(line: str) -> None:
    """Narration: one line on stderr."""
    with _narrating():
        print(line, file=sys.stderr, flush=True)


def _screens() -> int:
    """The full-screen interface; only a person at a terminal can use it."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        raise UsageError("expected a verb, since this is no terminal for the screens; see `mecharule --help`")
    from tui.terminal_app import run_app

    return run_app()


def _mcp() -> int:
    try:
        from agent.mcp_server import Server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        raise UsageError("expected the extra `mcp`, got none; `pip install 'mecharule[mcp]'`") from None
    Server(_tell).run()
    return 0


# --- verbs that work for a while -------------------------------------------------------------------------


def _run(asked: verbs.RunOptions, options: argparse.Namespace, show: Show) -> ToolResult:
    from agent.verbs import runner

    base = None if asked.source is None else runner.config_of(asked.source)
    config = runner.config_from(base=base, **asked.chosen)
    if asked.again and asked.peel:
        raise UsageError("expected --again or --peel, got both; run one after the other")
    if asked.dry_run:
        options.output = None
        return runner.plan(config, asked.again or 1 + (asked.peel or 0))
    how: Any = {"llm_budget": asked.llm_budget, "granted": asked.yes or asked.budget is not None}
    if asked.again and asked.source:
        return runner.run_again(asked.source, config, asked.again, show, **how)
    begin = runner.start if asked.peel is None else partial(runner.run_peeled, asked.peel)
    return begin(config, show, source=asked.source, **how)


def _resume(asked: verbs.ResumeOptions, options: argparse.Namespace, show: Show) -> ToolResult:
    from agent.verbs import runner

    return runner.resume(asked.run, show, llm_budget=asked.llm_budget, device=asked.device)


def _demo(asked: verbs.DemoOptions, options: argparse.Namespace, show: Show) -> ToolResult:
    from agent.verbs.demo import demo

    return demo(show)


def _investigate(asked: verbs.InvestigateOptions, options: argparse.Namespace, show: Show) -> ToolResult:
    from agent.hypotheses import investigated

    return investigated(asked.run, asked.question, _telling(show), llm=asked.llm, seconds=asked.seconds)


def _ask(asked: verbs.AskOptions, options: argparse.Namespace, show: Show) -> ToolResult:
    from agent.chat import ask
    from agent.consent import Listener, at_terminal

    tell, earlier = _telling(show), () if asked.new else None
    stands = ""

    def first(result: ToolResult) -> None:
        nonlocal stands
        if result.data.get("understood") and not (options.json or options.output):
            stands = result.text
            write(f"Without a model:\n{coloured(within(stands, WIDTH), sys.stdout)}\n\nThe model:")

    listener = Listener(tell=tell, show=show, first=first, consent=at_terminal(), earlier=earlier)
    result = ask(asked.run, asked.question, listener, llm=asked.llm, seconds=asked.seconds)
    return replace(result, text="it failed; the answer above stands") if result.text == stands else result


WORK: Mapping[str, Callable[[Any, argparse.Namespace, Show], ToolResult]] = {
    work.__name__[1:]: work for work in (_run, _resume, _demo, _investigate, _ask)
}


def _telling(show: Show) -> Tell:
    from mecharule_ops.events import Notice

    return lambda line: show(Notice(text=line))


def _work(options: argparse.Namespace, work: Callable[[Show], ToolResult]) -> int:
    """Show a run's events while it works, then print its report; or all events, one JSON a line."""
    from agent.verbs.interrupts import interrupts
    from mecharule_ops.facts.fact import said
    from tui.display import make_display

    display = make_display(options.display or ("plain" if options.verb == "ask" else None))
    if options.verb in RESUMED and options.display != "none":
        _tell(said("app.loading"))
    try:
        with interrupts() as check:

            def show(event: Event) -> None:
                check()
                if options.output:
                    from mecharule_ops.store.run_log import event_to_json

                    write(event_to_json(event))
                with _narrating():
                    display.show(event)

            result = work(show)
    except KeyboardInterrupt as stopped:
        if header := display.session.state.header:
            stopped.add_note(header.run)
        raise
    finally:
        display.close()
    return result.exit_code if options.output else _print(options, result)


def _print(options: argparse.Namespace, result: ToolResult) -> int:
    json_too = options.json and json.dumps(result.as_json, indent=1, ensure_ascii=False)
    told = (result.facts or options.verb == "ask") and result.table is None
    write(json_too or coloured(within(result.text, WIDTH) if told else result.text, sys.stdout))
    return result.exit_code


if __name__ == "__main__":
    sys.exit(main())
