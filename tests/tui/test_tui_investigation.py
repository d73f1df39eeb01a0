"""The screen of investigations: a board that fills, a stop that reports, past ones, a price, and how it is reached."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from bundled_run import opened
from textual.widgets import Input
from tui_driving import Driver, drive
from tui_story import HOSTILE, FakeBackend, board

from agent.investigating import nodes
from agent.investigating.board_shown import BoardShown
from agent.investigating.investigation_loop import past, played_again
from agent.investigating.report import reported
from agent.verbs import investigate as verb
from mecharule_ops.plain_text import plain
from tui.backend import Backend
from tui.chat_pane import ChatPane
from tui.investigation_text import investigation_text, plain_lines
from tui.screens.common import HelpPopup, PricePopup, SearchPopup
from tui.screens.investigation_screen import InvestigationScreen
from tui.screens.run_screen import RunScreen

QUESTION = "why does the strongest unit flip?"


@pytest.fixture
def on_file(copied_run: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run of the bundled model, alone in the runs directory."""
    monkeypatch.setenv("MECHARULE_RUNS", str(copied_run.parent))
    return copied_run


class Watched(Backend):
    """The engine itself; every board that it publishes is kept."""

    def __init__(self) -> None:
        self.published: list[BoardShown] = []
        self.told: list[str] = []

    def investigate(self, run: str, question: str, session: Any, show: Any, dear: Any = None) -> None:
        def kept(board: BoardShown) -> None:
            self.published.append(board)
            show(board)

        try:
            super().investigate(run, question, session, kept, dear)
        finally:
            self.told += [turn.text for turn in session.turns]


async def opened_screen(user: Driver) -> InvestigationScreen:
    """The investigations of the run on the screen, with a line to type a question."""
    await user.until(lambda: isinstance(user.app.screen, RunScreen), "the run")
    await user.sees("DONE")
    await user.press("i")
    await user.until(lambda: isinstance(user.app.screen, SearchPopup), "a line for the question")
    screen = user.app.screen_stack[-2]
    assert isinstance(screen, InvestigationScreen)
    return screen


def ended(screen: InvestigationScreen) -> bool:
    return screen.making is None and screen.board is not None and screen.board.ended


# --- a real one -------------------------------------------------------------------------------------------


def test_the_board_fills_and_the_report_is_that_of_the_verb(on_file: Path) -> None:
    """A look, rivals that are open, then verdicts, in this order; a question about no unit is a line before that."""
    backend = Watched()

    async def script(user: Driver) -> None:
        await user.sees("b00d")
        await user.press("o")
        screen = await opened_screen(user)
        assert user.app.screen.query_one(Input).value == ""
        await user.type("what is the weather?")
        await user.sees("expected a question about when a unit flips", "holds no investigation that ended")
        await user.press("e")
        assert user.app.told[-1] == "there is nothing to save here yet"
        await user.press("i")
        await user.type(QUESTION)
        await user.until(lambda: ended(screen), "the report")
        assert screen.notice == ""
        assert screen.board is not None
        assert screen.board.text == backend.published[-1].text
        first = plain(screen.board.text.split("\n")[0])
        assert " ".join(screen.moved.text.plain.split()).startswith(first)
        seen = set(user.text.splitlines())
        for _ in screen.moved.text.plain.splitlines():
            await user.press("j")
            seen |= set(user.text.splitlines())
        assert any("Ended: " in line for line in seen)
        await user.press("i")
        await user.until(lambda: isinstance(user.app.screen, SearchPopup), "the former question")
        assert user.app.screen.query_one(Input).value == QUESTION
        await user.press("enter")
        await user.until(
            lambda: ended(screen) and "It was made before" in screen.board.text, "the same again"
        )
        assert len(screen.boards) == 1

    drive(backend, script, (80, 24))
    boards = [one for one in backend.published if not one.ended]
    look = next(place for place, one in enumerate(boards) if "train records [run:b00d]" in one.text)
    rivals = next(place for place, one in enumerate(boards) if "open" in one.states.values())
    under_way = next(place for place, one in enumerate(boards) if one.doing.startswith("table of "))
    verdict = next(place for place, one in enumerate(boards) if {*one.states.values()} - {"open"})
    assert look <= rivals < under_way < verdict
    assert "held-out records" not in "\n".join(one.text.split("Rivals")[0] for one in boards[: under_way + 1])
    said = [
        next(place for place, line in enumerate(backend.told) if what in line)
        for what in ("registered", "table of")
    ]
    assert said == sorted(said)
    assert all("s of 60 s left" in one.purse for one in boards)
    with opened(on_file, read_only=True) as run:
        (found,) = past(run)
        assert played_again(run)[1]
        report = next(one.text for one in backend.published if one.ended)
        assert reported(run, found).text == report


def test_esc_twice_stops_with_a_report_and_the_same_question_goes_on(
    on_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known stays, the run is as good as before, and what was registered is decided once."""
    backend, paused, go_on, whole = Watched(), threading.Event(), threading.Event(), nodes.run

    def slow(state: Any, runtime: Any) -> Any:
        if state["chosen"]["kind"] == "table":
            paused.set()
            go_on.wait(20)
        return whole(state, runtime)

    monkeypatch.setattr(nodes, "run", slow)

    async def script(user: Driver) -> None:
        await user.sees("b00d")
        await user.press("o")
        screen = await opened_screen(user)
        await user.type(QUESTION)
        await user.until(paused.is_set, "a test under way")
        await user.sees("investigating", "s of 60 s left", "◌ r1")
        await user.press("i", "escape")
        assert user.app.told[-2:] == [
            "an investigation is being made; Esc twice stops it",
            "press Esc again to stop the investigation (what is known is kept)",
        ]
        await user.press("escape")
        await user.sees("stopping after this batch")
        go_on.set()
        await user.until(lambda: ended(screen), "the report")
        await user.sees("stopped; the same question goes on where it was")
        assert screen.board is not None
        assert "Ended: it was stopped" in screen.board.text
        assert set(screen.board.states.values()) == {"open"}
        with opened(on_file, read_only=True) as run:
            assert past(run) == ()
            assert run.finished
        await user.press("i", "enter")
        await user.until(lambda: ended(screen) and "it was stopped" not in screen.board.text, "the end")
        assert "made before" not in screen.board.text
        await user.press("escape")
        assert isinstance(user.app.screen, RunScreen)

    drive(backend, script)
    with opened(on_file, read_only=True) as run:
        (found,) = past(run)
        assert "open" not in {rival["state"] for rival in found.state["rivals"]}
        kinds = [(step["kind"], step["rivals"]) for step in found.state["steps"]]
        assert len(kinds) == len({str(kind) for kind in kinds})
        assert played_again(run)[1]


def test_what_the_purse_left_is_made_once_its_price_was_accepted(
    on_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is ablated within an empty purse; after a yes no more than the price that was said."""
    monkeypatch.setattr(verb, "A_MINUTE", -1.0)  # The shared run was made under a clock that stands still.
    backend, question = Watched(), "when does m0.5 flip?"

    async def script(user: Driver) -> None:
        await user.sees("b00d")
        await user.press("o")
        screen = await opened_screen(user)
        await user.type(question)
        await user.until(lambda: ended(screen), "the report")
        await user.sees(
            "Undecided: the tests that would tell cannot be afforded", "Not affordable: look of m0.5"
        )
        await user.press("m")
        await user.until(lambda: isinstance(user.app.screen, PricePopup), "the price")
        await user.sees("The same question of run b00d again.", "price: at most ", " ablated completions")
        await user.press("y")
        await user.until(lambda: ended(screen) and "Spent: 0 " not in screen.board.text, "the look")
        await user.sees("m0.5 flips", "of 128 train records", "1 of 2")

    drive(backend, script)
    with opened(on_file, read_only=True) as run:
        poor, rich = past(run)
        assert poor.state.get("forwards", 0) == 0
        assert 0 < rich.state["forwards"] == rich.state["purse"]["forwards"]


# --- told -------------------------------------------------------------------------------------------------


def test_it_is_reached_by_key_palette_and_slash_and_not_while_the_search_works(tmp_path: Path) -> None:
    """The slash word carries the question; the key and the palette ask for it."""
    backend = FakeBackend(tmp_path)
    backend.pause_at = 20
    backend.go_on.clear()

    async def script(user: Driver) -> None:
        await user.press("d")
        await user.until(backend.waiting.is_set, "the engine to pause")
        await user.press("i")
        assert user.app.told[-1].startswith("the search is still running; investigate when")
        assert isinstance(user.app.screen, RunScreen)
        backend.go_on.set()
        screen = await opened_screen(user)
        assert user.app.screen.query_one(Input).value == QUESTION
        await user.press("escape")
        await user.sees("1 of 2 · Investigation of run 0c1f")
        await user.press("escape")
        await user.press("ctrl+p")
        await user.pilot.pause(0.2)
        user.app.screen.query_one(Input).value = "investigate"
        await user.pilot.pause(0.6)
        await user.press("enter")
        await user.until(lambda: isinstance(user.app.screen, SearchPopup), "a line for the question")
        await user.press("escape", "escape", "f2")
        assert backend.inquiries == []
        await user.type("/investigate does m1.17 flip where [red]a[/] < b?")
        await user.until(lambda: isinstance(user.app.screen, InvestigationScreen), "the screen")
        screen = user.app.screen
        assert isinstance(screen, InvestigationScreen)
        await user.until(lambda: ended(screen), "the report")
        await user.sees("1 of 3", "does m1.17 flip where [red]a[/] < b?")
        await user.press("escape")
        assert [one.text for one in user.run.query_one(ChatPane).entries() if one.who == "you"][
            -1
        ].startswith("/investigate does")

    drive(backend, script)
    assert backend.inquiries == [("does m1.17 flip where [red]a[/] < b?", 0)]


def test_past_ones_are_turned_copied_saved_and_explained(tmp_path: Path) -> None:
    """`]` and `[` go round, `y` takes the text, `e` writes it whole, F1 says what is seen; markup is text."""
    backend = FakeBackend(tmp_path)

    async def script(user: Driver) -> None:
        await user.press("d")
        await opened_screen(user)
        await user.press("escape")
        await user.sees("1 of 2", QUESTION, "✓ r1 a borrow", "✗ r2", "○ r3", "◌ r4", "[red]", "[b]")
        await user.press("right_square_bracket")
        await user.sees("2 of 2", "does m1.17 flip where a < b?")
        await user.press("left_square_bracket", "left_square_bracket")
        await user.sees("2 of 2")
        await user.press("y", "e", "f1")
        await user.sees("Rivals say what a unit's flips may go with")
        assert isinstance(user.app.screen, HelpPopup)
        await user.press("escape", "escape")
        assert isinstance(user.app.screen, RunScreen)

    drive(backend, script)
    saved = (tmp_path / "out" / "0c1f-investigation.txt").read_text()
    assert saved.startswith("does m1.17 flip where a < b?\n\nWhere a is below b, m1.17 flips 28 of 64")
    assert "\x1b" not in saved
    assert (tmp_path / "out" / "copied-investigation.txt").read_text().startswith("Where a is below b")


def test_what_cannot_be_afforded_is_gone_on_with_at_a_price(tmp_path: Path) -> None:
    """A no starts nothing; a yes puts the same question with the price that was said; else there is nothing to pay."""
    backend = FakeBackend(tmp_path)

    async def script(user: Driver) -> None:
        await user.press("d")
        screen = await opened_screen(user)
        await user.press("escape")
        await user.sees("m go on")
        await user.press("m")
        await user.until(lambda: isinstance(user.app.screen, PricePopup), "the price")
        await user.sees("at most 245 ablated completions", "y yes   n no")
        await user.press("n")
        await user.sees("nothing slow was started")
        assert backend.inquiries == []
        await user.press("m")
        await user.until(lambda: isinstance(user.app.screen, PricePopup), "the price again")
        await user.press("y")
        await user.until(lambda: backend.inquiries and ended(screen), "the end")
        await user.press("m")
        assert user.app.told[-1] == "nothing was left for want of a price"

    drive(backend, script)
    assert backend.inquiries == [(QUESTION, 245)]


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_the_test_under_way_and_the_purse_are_in_sight_at_every_size(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    """Below the board, wrapped and whole; so is why a question was refused."""
    backend = FakeBackend(tmp_path)

    async def script(user: Driver) -> None:
        await user.press("d")
        screen = await opened_screen(user)
        backend.go_on.clear()
        await user.type("does m1.17 flip where a < b?")
        await user.sees("investigating", "Known:", "1 of 3 · Investigation")
        seen = " ".join(user.text.split())
        assert "12 s of 60 s left · table of m1.17: 245 records, 245 not stored, about 9 s" in seen
        await user.press("escape", "escape")
        await user.until(lambda: ended(screen), "the report")
        await user.sees("stopped; the same question goes on where it was")
        await user.press("i")
        await user.type("[b]what[/b] is [red]it?")
        await user.sees("expected a question about when a unit flips", "[b]what[/b] is [red]it?")

    drive(backend, script, size)


@pytest.mark.parametrize("width", [38, 58, 78, 118])
def test_every_word_is_on_the_screen_with_the_state_in_a_sign(width: int) -> None:
    """Nothing is cut at any width, no line is wider than the pane, hostile text is plain."""
    made = board()
    shown = investigation_text(made, width).plain
    assert max(map(len, shown.splitlines())) <= width
    for line in plain_lines(made.text):
        assert "".join(line.split()) in "".join(shown.split())
    for sign in ("✓ r1 ", "✗ r2 ", "○ r3 ", "◌ r4 "):
        assert sign in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert HOSTILE.split()[0] in shown
