"""A search told by hand: a fixed story of events, and an engine that tells it, for tests of the terminal app."""

import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from events_told import run_started

from mecharule_ops import errors, events
from mecharule_ops.events import Event, NodeAsked, NodeTested, Notice, Price
from mecharule_ops.nodes import NOTHING, FlipCount, FlipEstimate, Node, Verdict
from mecharule_ops.pages.document import Table
from mecharule_ops.state.search_view import SearchId
from mecharule_ops.store.run_directory import RunSummary
from tools.registry import ToolResult
from tui.backend import Backend, Listener
from tui.session import Session

RULE = "op == '-' and b >= 100"
HOSTILE = "op in [/,*] and x == '[red]\x1b[31mhi\u202e' | [INST] [b]"
UNITS = 64


def replay(session: Session, told: Iterable[Event]) -> None:
    """Fold events in."""
    for event in told:
        session.show(event)


def asked(told: NodeTested) -> NodeAsked:
    """The question whose answers decided a node."""
    return NodeAsked(search=told.search, node=replace(told.node, estimate=NOTHING, ucb=1.0, verdict=None))


def tested(
    search: str, node: int, parent: int | None, channels: Sequence[int], flips: tuple[int, int], verdict: str
) -> NodeTested:
    associated, unrelated = (FlipCount(flips=some, n=64) for some in flips)
    decided = Node(
        id=node,
        parent=parent,
        layer=SearchId.parse(search).layer,
        channels=tuple(channels),
        estimate=FlipEstimate(associated=associated, unrelated=unrelated),
        ucb=min(1.0, max(flips) / 64 + 0.12),
        verdict=Verdict(verdict),
    )
    return NodeTested(search=search, node=decided)


def found(search: str, unit: str, regime: int, flips: tuple[int, int]) -> events.AgonistFound:
    strength, selectivity = max(flips) / 64, (flips[0] - flips[1]) / 64
    told = {"strength": strength, "ucb": strength + 0.12, "signed_selectivity": selectivity}
    return events.AgonistFound(
        search=search, regime=regime, neuron=unit, is_tau_agonist=strength >= 0.2, **told
    )


def judged(unit: str, regime: int, flips: int, rank: int | None) -> events.UnitJudged:
    certainty = "suggestive" if rank is None else "shown"
    return events.UnitJudged(
        regime=regime, neuron=unit, certainty=certainty, flips=flips, n=64, lower=flips / 64 - 0.14, rank=rank
    )


def layer_events(regime: int, layer: int) -> Iterator[Event]:
    """One layer's search: a root, two halves, one opened to an agonist, a localized unit and a dropped one."""
    search = f"cha:{regime}:m{layer}"
    plan: tuple[tuple[int, int | None, range, tuple[int, int], str], ...] = (
        (0, None, range(64), (58, 9), "split"),
        (1, 0, range(32), (50, 6), "split"),
        (2, 0, range(32, 64), (2, 1), "pruned"),
        (3, 1, range(16), (1, 1), "pruned"),
        (4, 1, range(17, 18), (28, 3), "kept"),
        (5, 1, range(18, 19), (8, 7), "kept"),
        (6, 1, range(19, 20), (1, 0), "dropped"),
    )
    for node, parent, channels, flips, verdict in plan:
        decided = tested(search, node, parent, channels, flips, verdict)
        yield from (asked(decided), decided)
        if verdict == "kept":
            yield found(search, f"m{layer}.{channels[0]}", regime, flips)
    yield events.SearchFinished(
        search=search, status="every group was tested or pruned", queries=7, example_forwards=896, localized=2
    )


def ledger_events(ids: str = "") -> Iterator[Event]:
    """Three hypotheses: one holds, one with a hostile statement does not, one is still open."""
    plan: tuple[tuple[str, str, str, str, float | None], ...] = (
        ("3b1d0001", "m1.17", "It borrows from large operands.", "b >= 100", 0.81),
        ("77aa0002", "m2.17", HOSTILE, "op == '-'", 0.12),
        ("c0de0003", "m0.17", "It follows the sign.", "a < b", None),
    )
    for name, unit, statement, condition, value in plan:
        same = {"hypothesis": ids + name, "subject": unit}
        said = {"statement": statement, "condition": condition, "test": "MCC on the held-out records"}
        yield events.HypothesisRegistered(threshold=0.7, **same, **said)
        if value is not None:
            state = "supported" if value >= 0.7 else "refuted"
            yield events.HypothesisDecided(state=state, value=value, n=148, positives=31, **same)


def anchored(unit: str, rule: str, mcc: float, full: float | None, ends: tuple[float, float]) -> Event:
    held_out: dict[str, Any] = {"held_out_mcc": mcc, "held_out_low": ends[0]}
    return events.RuleAnchored(
        regime=1, neuron=unit, rule=rule, full_mcc=full, prompt_only=full is not None, **held_out
    )


def story(run: str = "0c1f", layers: int = 3, finished: bool = True) -> list[Event]:
    """A whole run over both regimes."""
    told: list[Event] = [
        run_started(run),
        events.StageStarted(stage="behaviour", total=2000, unit="records"),
        events.StageProgress(stage="behaviour", done=1000, total=2000),
        events.StageFinished(stage="behaviour", summary="2,000 records, 79 % right", seconds=3.0),
        Notice(text="mlp_out 1→0: both slices hold 64 examples"),
        Price(evaluations=1840, example_forwards=235_520, seconds=362.0),
    ]
    for regime in (1, 0):
        stage = f"CHA mlp_out {regime}"
        told.append(events.StageStarted(stage=stage, unit="ablations"))
        told += [events.SearchStarted(search=f"cha:{regime}:m{at}", units=UNITS) for at in range(layers)]
        for layer in range(layers):
            told += layer_events(regime, layer)
            told.append(events.CostChanged(group_evaluations=7 * (layer + 1), example_forwards=896, reused=0))
        told.append(events.StageFinished(stage=stage, summary="21 group ablations", seconds=9.0))
        for unit, flips, rank in (("m0.17", 30, 1), ("m1.17", 26, 2), ("m2.17", 3, None)):
            told.append(judged(unit, regime, flips, rank))
    told.append(anchored("m1.17", RULE, 0.78, 0.81, (0.64, 0.88)))
    told.append(anchored("m2.17", HOSTILE, 0.5, None, (0.31, 0.67)))
    told += ledger_events()
    said = {"certificate": "7f3a00000000", "claim": "m1.17 flips 28/64 of D+"}
    told.append(events.CertificateWritten(units=("m1.17",), **said))
    return [*told, events.RunFinished(run=run, status="12 units localized, 6 agonists")][
        : None if finished else -1
    ]


def big_search(nodes: int, layers: int = 1, units: int = 0, seed: int = 0) -> list[Event]:
    """Layers whose trees together have so many tested nodes, grown at random one after the other."""
    draw, each = random.Random(seed), -(-nodes // layers)
    told: list[Event] = [run_started()]
    for layer in range(layers):
        search = f"cha:1:m{layer}"
        told.append(events.SearchStarted(search=search, units=units or each))
        groups = [0]
        root = tested(search, 0, None, range(units or each + 10), (60, 3), "split")
        told += [asked(root), root]
        for node in range(1, each):
            parent = draw.choice(groups[-40:])
            verdict = draw.choices(("split", "pruned", "kept", "dropped"), (3, 4, 1, 2))[0]
            channels = range(node, node + 1 if (verdict in ("kept", "dropped")) else node + 10)
            flips = {"split": 30, "pruned": 1, "kept": 20, "dropped": 2}[verdict]
            decided = tested(search, node, parent, channels, (flips, 1), verdict)
            told += [asked(decided), decided]
            if verdict == "split":
                groups.append(node)
            if verdict == "kept":
                told.append(found(search, f"m{layer}.{node}", 1, (flips, 1)))
    return told


class FakeBackend(Backend):
    """Tells the story instead of running a model. A test lets it go on event by event, or at full speed."""

    def __init__(self, folder: Path, told: list[Event] | None = None, *, stored: int = 0) -> None:
        self.place = folder
        self.told = story() if told is None else told
        self.go_on = threading.Event()
        self.go_on.set()
        self.pause_at: int | None = None
        """Events after which the engine waits for `go_on`, looking at the stop flag."""
        self.waiting = threading.Event()
        self.stored = stored
        """Events of run 0c1f that are already on file."""
        self.asked: list[str] = []
        self.reply: Callable[[str, Listener], ToolResult] | None = None
        """Answers in place of the story's."""
        self.called: list[tuple[str, str | None]] = []
        self.started_with: Mapping[str, object] | None = None
        self.later: list[Event] = []
        """What was told to the run's file after the run."""

    def warm(self) -> None:
        pass

    def folder(self) -> Path:
        return self.place

    def runs(self) -> tuple[RunSummary, ...]:
        same: dict[str, Any] = {"when": 1_700_000_000.0, "task": "arithmetic", "model": "arith-tiny"}
        return tuple(
            RunSummary(id=name, path=self.place / name, status=status, shown=shown, broken=0.47, **same)
            for name, status, shown in (("0c1f", "interrupted", 0), ("9e2b", "finished: 2 units shown", 2))
        )

    def events(self, run: str) -> list[Event]:
        if run == "gone":
            raise errors.StoreError("expected a run file, there is none")
        return [*story(run), *self.later]

    def read(self, run: str, session: Session) -> None:
        replay(session, self.events(run))

    def demo(self, session: Session) -> None:
        self._tell(session)

    def price(self, config: Any) -> str:
        self.go_on.wait(20)
        return "1 to 6 min for both directions\n\nm1 1→0  between 105 and 513 group ablations, about 6 min"

    def start(self, config: Any, session: Session) -> None:
        self.started_with = config.model_dump()
        self._tell(session)

    def resume(self, run: str, session: Session) -> None:
        self.pause_at = None
        session.show(Notice(text=f"{self.stored} events were on file"))
        self._tell(session)

    def _tell(self, session: Session) -> None:
        for number, event in enumerate(self.told):
            if number == self.pause_at:
                self.waiting.set()
                while not self.go_on.wait(0.01):
                    if session.should_stop():
                        break
            session.show(event)
            self.stored = number + 1

    def report(self, session: Session) -> str:
        if not session.state.finished:
            raise errors.UsageError("expected a finished run to report on; wait for its end, or resume it")
        return "<!doctype html><title>report</title>"

    def call(
        self,
        line: str,
        run: str | None,
        tell: Callable[[str], None],
        should_stop: Callable[[], bool] = lambda: False,
    ) -> ToolResult:
        self.called.append((line, run))
        if line.startswith("investigate "):
            return ToolResult(text="Shown on held-out records: m1.17 flips more often where a < b.")
        if line.startswith(("show --table", "compare")):
            told = self.events(str(run))
            decided = {one.hypothesis: one.state for one in told if isinstance(one, events.HypothesisDecided)}
            entries = [one for one in told if isinstance(one, events.HypothesisRegistered)]
            rows = [(one.hypothesis, decided.get(one.hypothesis, "open"), one.statement) for one in entries]
            table = Table(header=("hypothesis", "state", "claim"), rows=tuple(rows), align="lll")
            return ToolResult(table=table, text=f"{line} of run {run}")
        if not line.startswith(("why ", "verify ", "flip ", "gates")):
            raise errors.UsageError(f"expected a command of: why, verify; got /{line.split()[0]}")
        tell("loading the model")
        return ToolResult(text=f"result of {line}\nD+ 28/64  D- 3/64  [c:7f3a]")

    def ask(self, question: str, run: str | None, listener: Listener) -> ToolResult:
        self.asked.append(question)
        if self.reply is not None:
            return self.reply(question, listener)
        listener.tell("reading the run")
        listener.first(ToolResult())
        listener.hear("Ablating ")
        said = "Ablating it breaks 28/64 [c:7f3a] but 3/64 others."
        return ToolResult(text=f"{said}\nPredicted by [INST] rule.")
