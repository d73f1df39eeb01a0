"""Times the terminal app: flushes of a 10,000-node search, key latency beside it, memory, time to first paint.

`python benchmarks/bench_tui.py [--nodes N] [--json FILE]`. The app runs headless at 120×40, as on a terminal.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from textual.events import Key

from mecharule_ops.events import Event

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from tui_story import big_search

from tui.backend import Backend
from tui.screens.run_screen import RunScreen
from tui.session import Session
from tui.terminal_app import MechaRuleApp
from tui.tree_pane import TreePane

SEARCH = "cha:1:m0"


class Recorded(Backend):
    """Tells a recorded search, `pause` seconds between batches of 64 events."""

    def __init__(self, events: list[Event], pause: float) -> None:
        self.told, self.pause = events, pause

    def warm(self) -> None:
        from mecharule_ops import confidence  # noqa: F401

    def runs(self) -> tuple[()]:
        return ()

    def demo(self, session: Session) -> None:
        for number, event in enumerate(self.told):
            session.show(event)
            if self.pause and number % 64 == 0:
                time.sleep(self.pause)


def timed_flushes(into: list[float]) -> None:
    """From now on every flush of a run screen adds its seconds to the list."""
    flush = RunScreen.flush

    def call(screen: RunScreen) -> None:
        began = time.perf_counter()
        flush(screen)
        into.append(time.perf_counter() - began)

    RunScreen.flush = call  # type: ignore[method-assign, assignment]


async def heartbeat(stalls: list[float]) -> None:
    """Adds how late the event loop is, forever: flushes, layout and drawing together."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.005)
        stalls.append(time.perf_counter() - began - 0.005)


async def watch(nodes: int, pause: float) -> dict[str, float]:
    """Flush and key times while a search is told, and the memory that it took."""
    events = big_search(nodes)
    app = MechaRuleApp(Recorded(events, pause))
    flushes: list[float] = []
    stalls: list[float] = []
    keys: list[float] = []
    timed_flushes(flushes)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.5)
        idle = _memory()
        await pilot.press("d", "y")
        screen = app.screen
        assert isinstance(screen, RunScreen)
        beat = asyncio.create_task(heartbeat(stalls))
        began = time.perf_counter()
        while screen.session.busy or not keys:
            keys.append(await _reaction(app, "j" if len(keys) % 20 < 10 else "k"))
            await asyncio.sleep(0.05)
        told = time.perf_counter() - began
        await pilot.pause(0.5)
        beat.cancel()
        assert len(screen.state.searches[SEARCH].nodes) == nodes, "an event was dropped"
    return {
        "told_s": told,
        "flush_median_ms": 1e3 * statistics.median(flushes),
        "flush_worst_ms": 1e3 * max(flushes),
        "stall_worst_ms": 1e3 * max(stalls),
        "key_p95_ms": 1e3 * sorted(keys)[int(0.95 * len(keys))],
        "memory_mb": _memory() - idle,
    }


async def _reaction(app: MechaRuleApp, key: str) -> float:
    """Seconds from a key to the end of the drawing that it caused."""
    drawn = asyncio.Event()
    tree = app.screen.query_one(TreePane)
    began = time.perf_counter()
    app.post_message(Key(key, key))
    tree.following = True
    while tree.following and app.screen is tree.screen:
        await asyncio.sleep(0.001)
    tree.call_after_refresh(drawn.set)
    await drawn.wait()
    return time.perf_counter() - began


def _memory() -> float:
    """Peak resident memory of this process, MB; the events themselves count before the app starts."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def first_paint() -> float:
    """Seconds from the start of Python to the first screen drawn, in a fresh process."""
    program = (
        "import asyncio, pathlib, tempfile, os\n"
        "os.environ['MECHARULE_RUNS'] = tempfile.mkdtemp()\n"
        "from tui.terminal_app import MechaRuleApp\n"
        "async def main():\n"
        "    async with MechaRuleApp().run_test(size=(120, 40)):\n"
        "        os._exit(0)\n"
        "asyncio.run(main())\n"
    )
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return time.perf_counter() - began


def main() -> None:
    """Print the figures as JSON, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    figures = {
        "nodes": options.nodes,
        "full_speed": asyncio.run(watch(options.nodes, 0.0)),
        "paced": asyncio.run(watch(options.nodes, 0.02)),
        "first_paint_s": sorted(first_paint() for _ in range(3))[1],
    }
    text = json.dumps(figures, indent=1)
    sys.stdout.write(text + "\n")
    if options.json:
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
