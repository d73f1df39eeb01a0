"""What kills, full disks, damaged files, forgeries and random keys once found."""

import math
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from bundled_run import QUICK, finish, opened
from outcome_audit import cells
from textual.events import Key, Mount, Resize
from tui_driving import Driver, drive
from tui_story import FakeBackend

from agent.verbs import runner
from mecharule_ops import config, events, types
from mecharule_ops.errors import ClaimNotSupported, StoreError, UsageError
from mecharule_ops.store import keys
from mecharule_ops.store.run_store import RunStore
from tools.registry import ToolResult
from tui.commands import Palette
from tui.screens import common, home_screen, run_screen


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE event SET unix_time = unix_time + 1 WHERE seq = 2", "event 2 of"),
        ("DELETE FROM event WHERE seq = 2", "it is lost"),
        ("UPDATE event SET body = CAST(x'ff' AS TEXT) WHERE seq = 2", "damaged"),
        ("UPDATE setting SET value = '5.0' WHERE name = 'created'", "they are damaged"),
    ],
)
def test_damage_beside_the_rows_contents_is_seen(tmp_path: Path, change: str, said: str) -> None:
    """The time of an event, an event that is gone, text that is none, a setting."""
    path = tmp_path / "run.mecharule"
    with RunStore.create(path, {}) as store:
        store.append([events.Notice(text=str(number)) for number in range(3)])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(change)
    with pytest.raises(StoreError, match=said) as caught, RunStore.open(path, read_only=True) as store:
        list(store.events())
    assert "\n" not in str(caught.value)


def test_a_run_file_is_made_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed while it is made, there is no run of that name; it can be made again. It has its last journal mode before
    it has its name: a later change could leave a journal that no reader may roll back."""
    modes = []

    def killed(self: Path, target: Path) -> None:
        modes.append(self.read_bytes()[18:20])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            RunStore.create(tmp_path / "run.mecharule", {})
    assert modes == [b"\x02\x02"]
    assert not list(tmp_path.glob("*.mecharule"))
    RunStore.create(tmp_path / "other.mecharule", {}).close()


def test_a_full_disk_at_the_lock_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The holder's number cannot be written."""

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StoreError, match="No space left"):
        RunStore.create(tmp_path / "run.mecharule", {})


def test_a_certificate_under_anothers_id_is_refused(quick_run: Path, tmp_path: Path) -> None:
    """An old certificate in the place of the one that is cited."""
    path = Path(shutil.copy(quick_run, tmp_path / "run.mecharule"))
    with RunStore.open(path) as store:
        cited = store.certificates()[0]
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE certificate SET sha256 = ?", ("0" * 64,))
        with pytest.raises(StoreError, match="under its id"):
            store.certificates()
        with pytest.raises(ClaimNotSupported):
            store.certificate(cited.id)


@pytest.mark.parametrize("cut", range(2))
def test_a_run_made_from_another_goes_on_wherever_it_was_cut(
    quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    """Cut at its first write, or before any stage: no run is there, or one with all that the earlier run ablated."""
    monkeypatch.setenv("MECHARULE_RUNS", str(tmp_path))
    earlier = Path(shutil.copy(quick_run, tmp_path / "aaaa.mecharule"))
    writes = iter(range(99))

    def striking(write: Callable[..., object]) -> Callable[..., object]:
        def struck(*given: object) -> object:
            if next(writes) == cut:
                raise KeyboardInterrupt
            return write(*given)

        return struck

    def before_any_stage(*_: object) -> ToolResult:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RunStore, "take_over", striking(RunStore.take_over))
        patch.setattr(runner, "_finish", before_any_stage)
        with pytest.raises(KeyboardInterrupt):
            runner.start(config.make_config(**{**QUICK, "tau": 0.35}), print, source="aaaa")
    left = set(tmp_path.iterdir()) - {earlier}
    made = [path for path in left if path.suffix == ".mecharule"]
    assert not [path for path in left if ".new" in path.name]
    assert len(made) == cut
    monkeypatch.setattr(runner, "_finish", lambda *_: ToolResult(data={}, text="went on"))
    for path in made:
        assert runner.resume(path.stem, print).text == "went on"
        assert cells(path) == cells(earlier)


def test_a_run_killed_before_its_pace_was_stored_goes_on(quick_run: Path, tmp_path: Path) -> None:
    """Its outcomes are there, their pace is not; the price says that the time was not measured."""
    path = Path(shutil.copy(quick_run, tmp_path / "fa57.mecharule"))
    with closing(sqlite3.connect(path)) as connection, connection:
        gone = (str(keys.pace(types.Basis.ATTN_HEAD)), str(keys.FINDINGS))
        connection.execute("DELETE FROM artefact WHERE name IN (?, ?)", gone)
    with opened(path) as run:
        _, told = finish(run)
    (price,) = [event for event in told if isinstance(event, events.Price)]
    assert math.isnan(price.seconds)
    assert price.time == "in a time that was not measured"
    assert any(isinstance(event, events.RunFinished) for event in told)


def test_an_error_is_one_line_whatever_it_quotes() -> None:
    """Line ends and what a terminal acts on are escaped."""
    assert str(UsageError("got \x1b[31m\nred \u202e é 漢\xa0!")) == "got \\x1b[31m\\nred \\u202e é 漢\xa0!"


def test_keys_that_come_before_a_screen_is_drawn_end_nothing(tmp_path: Path) -> None:
    """Two keys at once never close the screen under a popup: the palette takes PageDown and Escape before it has
    lines, and what closes twice closes once."""

    async def script(user: Driver) -> None:
        await open_run(user)
        await user.sees("DONE")
        for key, popup in (("f1", common.HelpPopup), ("ctrl+p", Palette)):
            await user.press(key)
            await user.until(lambda popup=popup: isinstance(user.app.screen, popup), "a popup")
            over = user.app.screen
            over.dismiss()
            over.dismiss()
            assert isinstance(user.app.screen, run_screen.RunScreen)
        post(user, *["escape"] * 4)
        await user.until(lambda: isinstance(user.app.screen, home_screen.HomeScreen), "the first screen")
        for line in ("f1 escape f1 escape", "ctrl+p pagedown pageup escape", "ctrl+p escape"):
            post(user, *line.split())
            await user.pilot.pause(0.2)
        assert user.app.is_running

    drive(FakeBackend(tmp_path), script)


def post(user: Driver, *keys: str) -> None:
    for key in keys:
        user.app.post_message(Key(key, None))


async def open_run(user: Driver) -> None:
    await user.press("enter")
    await user.until(lambda: isinstance(user.app.screen, run_screen.RunScreen), "a run")


def test_a_closed_screen_is_handed_nothing(tmp_path: Path) -> None:
    """A screen that is gone is handed and draws nothing."""
    handed, gone = list[int](), threading.Event()

    async def script(user: Driver) -> None:
        await open_run(user)
        closed = user.app.screen
        user.app.fetch(closed, "late", lambda: gone.wait(10), handed.append)
        user.app.fetch(user.app.screen_stack[1], "kept", lambda: 2, handed.append)
        await user.until(lambda: handed == [2], "what is for the first screen")
        await user.press("escape", "escape")
        await user.until(lambda: isinstance(user.app.screen, home_screen.HomeScreen), "the first screen")
        gone.set()
        await user.until(lambda: not closed.is_running, "the end of the run's screen")
        for event in (Mount(), Resize(user.app.size, user.app.size)):
            await closed.on_event(event)
        closed.draw()
        assert handed == [2]

    drive(FakeBackend(tmp_path), script)
