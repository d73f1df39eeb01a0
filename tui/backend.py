"""The one door from the screens to the engine, the run files and the tools. Everything behind it loads lazily.

Methods are called on working threads. Tests put their own object with these methods in its place.
"""

from __future__ import annotations

import json
import shlex
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from agent.consent import Listener as Listener
from mecharule_ops.errors import MechaRuleError, UsageError, did_you_mean
from mecharule_ops.events import OFFLINE
from tui.session import Entry, Session

if TYPE_CHECKING:
    from mecharule_ops.config import RunConfig
    from mecharule_ops.events import Event
    from mecharule_ops.store.run_directory import RunSummary
    from mecharule_ops.store.run_store import RunStore
    from tools.registry import ToolResult

Tell = Callable[[str], None]


class Backend:
    """The engine and the stored runs of this machine."""

    provider = OFFLINE
    """Who answers questions in the chat, in a few words."""

    def warm(self) -> None:
        """Loads what the first screens will need, off the screen's thread. Never torch."""
        import mecharule_ops.confidence
        import mecharule_ops.store.run_directory  # noqa: F401
        from agent.chat_models import choose

        try:
            self.provider = choose().who
        except MechaRuleError as error:
            self.provider = f"none ({error})"

    def folder(self) -> Path:
        """Where runs lie."""
        from mecharule_ops.store.run_directory import runs_directory

        return runs_directory()

    def runs(self) -> tuple[RunSummary, ...]:
        """Stored runs, newest first."""
        from mecharule_ops.store.run_directory import list_runs

        return list_runs(self.folder())

    def _file(self, run: str) -> RunStore:
        from mecharule_ops.store.run_directory import find_run
        from mecharule_ops.store.run_store import RunStore

        return RunStore.open(find_run(run, self.folder()), read_only=True)

    def schema(self) -> Mapping[str, Any]:
        """The JSON schema of a run's settings."""
        from mecharule_ops.config import RunConfig

        return RunConfig.model_json_schema()

    def config(self, settings: Mapping[str, object]) -> RunConfig:
        """Checked settings; the task's own file, if it has one, by its whole path. Raises `UsageError`."""
        from mecharule_ops.config import make_config
        from mecharule_ops.tasks.task_names import findable

        config = make_config(**settings)
        return config.model_copy(update={"task": findable(config.task)})

    def price(self, config: RunConfig) -> str:
        """What could go wrong and what a run costs at most, as `run --dry-run` says it."""
        from agent.verbs import runner

        return runner.priced(config)

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
        answer, verification = told["answer"], told["verification"]
        session.turns += [
            Entry(who="you", text=str(answer["question"])),
            Entry(who="agent", text=str(answer["answer"])),
            Entry(
                who="tool", text="verify last", detail=json.dumps(verification, indent=1, ensure_ascii=False)
            ),
        ]

    def resume(self, run: str, session: Session) -> None:
        """An earlier run, from its checkpoint."""
        from agent.verbs import runner

        runner.resume(run, session.show, session.should_stop)
        self.conclude(session)

    def read(self, run: str, session: Session) -> None:
        """Replay a stored run. Raises `UsageError` for one that ended before it began."""
        session.replay(self.events(run))
        if session.run is None:
            raise UsageError(f"expected a run that has begun; `mecharule resume {run}` begins {run}")
        self.conclude(session)

    def events(self, run: str) -> list[Event]:
        """Every event of a stored run."""
        with self._file(run) as store:
            return [event for _, _, event in store.events()]

    def conclude(self, session: Session) -> None:
        """Give the session what only the run file holds: findings and certificates."""
        from mecharule_ops.facts.found import found_line, in_short
        from mecharule_ops.run.live_run import Run

        assert session.run is not None
        with self._file(session.run) as store:
            session.certificates, run = store.certificates(), Run(store)
            if run.finished:
                session.findings = run.findings
                session.headline = found_line(session.findings)
                parts = in_short(session.findings).items()
                said = "\n".join(f"{part}. {sentence}" for part, sentence in parts)
                session.turns.append(Entry(who="agent", text=said))

    def investigate(
        self, run: str, question: str, tell: Tell, should_stop: Callable[[], bool] = lambda: False
    ) -> ToolResult:
        """Claims that the question makes of a unit, registered and decided, by the chosen model where there is one."""
        from agent.hypotheses import investigated

        return investigated(run, question, tell, should_stop=should_stop)

    def report(self, session: Session) -> str:
        """The HTML report of a finished run."""
        from mecharule_ops.pages.content import report_page

        if session.findings is None:
            raise UsageError("expected a finished run to report on; wait for its end, or resume it")
        return report_page(session.findings)

    def call(self, line: str, run: str | None, tell: Tell) -> ToolResult:
        """The result of a tool called as on a shell, `why m4.12`, about the open run. Raises `UsageError`."""
        from tools.registry import TOOLS, call

        name, *rest = _words(line)
        if name not in TOOLS:
            from tui.commands import commands_of

            known = [*TOOLS, *(command.name for command in commands_of("run"))]
            raise UsageError(
                f"expected a command, got /{name}{did_you_mean(name, known)}; F1 and ^P list them"
            )
        return call(name, _given(name, rest, run), tell)

    def ask(self, question: str, run: str | None, listener: Listener) -> ToolResult:
        """The answer to a question about the open run, offline at once and then by the chosen model."""
        from agent import chat

        return chat.ask(run or "last", question, listener)


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line) or [""]
    except ValueError as error:
        raise UsageError(f"expected closed quotes in {line!r} ({error})") from error


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}")


def _given(name: str, words: Sequence[str], run: str | None) -> Mapping[str, object]:
    """The tool's arguments; the open run stands for `run` where the line names none."""
    from tools.arguments import options_of
    from tools.registry import TOOLS

    arguments = TOOLS[name].arguments
    parser = _Parser(prog=f"/{name}", add_help=False, exit_on_error=False)
    for flags, keywords in options_of(arguments):
        if flags[0] == "run":
            parser.add_argument("--run", **{k: v for k, v in keywords.items() if k != "nargs"})
        else:
            parser.add_argument(*flags, **keywords)
    options = {key: value for key, value in vars(parser.parse_args(list(words))).items() if value is not None}
    return options if run is None else arguments.about(run, options)
