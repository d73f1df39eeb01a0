"""The one door from the screens to the engine, the run files and the tools. Everything behind it loads lazily.

Methods are called on working threads. Tests put their own object with these methods in its place.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.consent import Listener as Listener
from agent.consent import unless_stopped
from mecharule_ops.errors import UsageError, did_you_mean
from mecharule_ops.store.run_file import check_there, is_held
from tui.session import Entry, Session
from tui.words import Activity

if TYPE_CHECKING:
    from mecharule_ops.config import RunConfig
    from mecharule_ops.store.run_directory import RunSummary
    from tools.registry import ToolResult

Tell = Callable[[str], None]
LOOK = 0.25
"""Seconds between two looks: at a run that goes on in another process, at whether the person has left."""


class Backend:
    """The engine and the stored runs of this machine."""

    def warm(self) -> None:
        """Loads what the first screens will need, off the screen's thread. Never torch."""
        import mecharule_ops.confidence
        import mecharule_ops.store.run_directory  # noqa: F401

    def folder(self) -> Path:
        """Where runs lie."""
        from mecharule_ops.store.run_directory import runs_directory

        return runs_directory()

    def runs(self) -> tuple[RunSummary, ...]:
        """Stored runs, newest first."""
        from mecharule_ops.store.run_directory import list_runs

        return list_runs(self.folder())

    def config(self, options: str) -> RunConfig:
        """The settings that options of `run` stand for, as on a shell. Raises `UsageError`."""
        from agent.verbs.options import RunOptions
        from agent.verbs.runner import config_from
        from tools.registry import typed

        return config_from(**typed("run", RunOptions, _parsed(["run", *_words(options)])).chosen)

    def price(self, config: RunConfig) -> str:
        """What could go wrong and what a run costs at most, as `run --dry-run` says it."""
        from agent.verbs import runner

        return runner.priced(config)

    def checked(self, config: RunConfig) -> str:
        """How a table of one's own is read; empty of another task. Raises `UsageError` where it cannot be."""
        from mecharule_ops.facts.fact import said
        from mecharule_ops.tasks import prompt_table, table_check, task_names

        task = task_names.task_of(config)
        if not isinstance(task, prompt_table.PromptTable):
            return ""
        roles = {
            one["name"]: one["role"].rpartition("for rules")[0].strip(", ")
            for one in table_check.column_roles(task)
        }
        columns = ", ".join(f"{name} ({role})" if role else name for name, role in roles.items())
        return said("form.table", task=task, records=len(task.questions), columns=columns) + "\n\n"

    def start(self, config: RunConfig, session: Session) -> None:
        """A new run to its end, whose price was agreed to."""
        from agent.verbs import runner

        runner.start(config, session.show, session.should_stop)
        self.conclude(session)

    def demo(self, session: Session) -> None:
        """The demo: the bundled model, no questions asked."""
        from agent.verbs.demo import demo

        told: Any = demo(session.show, session.should_stop).data
        self.conclude(session)
        verified = "\n".join(fact["said"] for fact in told["verification"].get("facts", ()))
        session.turns += [
            Entry(who="you", text=told["answer"]["question"]),
            Entry(who="agent", text=told["answer"]["answer"]),
            Entry(who="tool", text="verify last", detail=verified),
        ]

    def resume(self, run: str, session: Session) -> None:
        """An earlier run, from its checkpoint."""
        from agent.verbs import runner

        runner.resume(run, session.show, session.should_stop)
        self.conclude(session)

    def read(self, run: str, session: Session) -> None:
        """Replay a stored run, and follow it while another process works on it.

        Raises `UsageError` for one that ended before it began, `StoreError` for one that is gone by then.
        """
        from mecharule_ops.run.opening import opened

        with opened(run) as held:
            goes_on = True
            while goes_on and not session.should_stop():
                goes_on = is_held(held.store.path)  # Asked first: all that is told until then is read.
                for _, moment, event in held.store.events(len(session.events)):
                    session.show(event, time.time() - moment)
                if goes_on := goes_on and (session.live or not session.state.finished):
                    session.activity = Activity.FOLLOWED
                    time.sleep(LOOK)
        check_there(held.store.path)
        if session.run is None:
            raise UsageError(f"expected a run that has begun; `mecharule resume {run}` begins {run}")
        self.conclude(session)

    def conclude(self, session: Session) -> None:
        """Give the session what only the run file holds: findings and certificates."""
        from mecharule_ops.facts import examples, found
        from mecharule_ops.run.opening import opened

        assert session.run is not None
        with opened(session.run) as run:
            session.certificates = run.store.certificates()
            if run.finished:
                session.findings = run.findings
                session.told = found.in_short(session.findings, examples.example_of(run))
                session.headline = found.top_line(session.findings)
                text = "\n".join(f"{part}. {sentence}" for part, sentence in session.told.items())
                session.turns.append(Entry(who="agent", text=text))

    def report(self, session: Session) -> str:
        """The HTML report of a finished run."""
        from mecharule_ops.facts.examples import examples_of
        from mecharule_ops.pages.content import report_page
        from mecharule_ops.run.opening import opened

        if session.findings is None or session.run is None:
            raise UsageError("expected a finished run to report on; wait for its end, or resume it")
        with opened(session.run) as run:
            return report_page(session.findings, examples_of(run))

    def call(
        self, line: str, run: str | None, tell: Tell, should_stop: Callable[[], bool] = lambda: False
    ) -> ToolResult:
        """The result of a tool called as on a shell, `why m4.12`, about the open run, or of `investigate QUESTION`.

        Raises `UsageError`, also where the tool needs a run and none has begun, and `AblationStopped`.
        """
        from mecharule_ops.run.opening import kept_open
        from tools.registry import TOOLS, call

        tell = unless_stopped(tell, should_stop)
        name, *words = _words(line) or [""]
        if name == "investigate":
            from agent.hypotheses import investigated

            with kept_open(should_stop):
                return investigated(_begun(run), " ".join(words), tell, should_stop=should_stop)
        if name not in TOOLS:
            from tui.commands import commands_of

            known = [*TOOLS, *(command.name for command in commands_of("run"))]
            raise UsageError(
                f"expected a command, got /{name}{did_you_mean(name, known)}; F1 and ^P list them"
            )
        arguments = TOOLS[name].arguments
        about = _begun(run) if "run" in arguments.model_fields else ""
        if arguments.positional[:1] == ("run",):
            words = [about, *words]
        with kept_open(should_stop):
            return call(name, arguments.about(about, _parsed([name, *words])), tell)

    def ask(self, question: str, run: str | None, listener: Listener) -> ToolResult:
        """The answer to a question about the open run, offline at once and then by the chosen model."""
        from agent import chat

        return chat.ask(_begun(run), question, listener)


def _begun(run: str | None) -> str:
    """The open run, so that nothing is told of another. Raises `UsageError` before it has begun."""
    if run is None:
        raise UsageError("expected a run that has begun, this one has not; ask again in some seconds")
    return run


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"expected closed quotes in {line!r} ({error})") from error


def _parsed(words: Sequence[str]) -> dict[str, Any]:
    """What a line of the command line gives its verb. Raises `UsageError`."""
    from agent.verbs.command_line import parser, told

    try:
        return told(parser().parse_args(words))[1]
    except SystemExit as error:
        raise UsageError(
            f"expected no --help here; on a shell `mecharule {words[0]} --help` says it"
        ) from error
