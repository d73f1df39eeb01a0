"""The terminal app by key presses: every screen, and the whole story from the demo to the resumed run."""

import csv
import shlex
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from events_told import folded
from findings_fixture import FINDINGS
from textual.command import CommandList
from textual.messages import ExitApp
from textual.widgets import Input
from tui_driving import Driver, drive
from tui_story import HOSTILE, FakeBackend, big_search, ledger_events, story

from agent.consent import put
from mecharule_ops.facts.fact import fact
from mecharule_ops.plain_text import plain
from mecharule_ops.state.run_state import RunState
from mecharule_ops.store.run_directory import RunSummary
from tools.registry import ToolResult
from tui import chat_pane, text_panes, tree_pane
from tui.backend import Backend, Listener
from tui.screens import common, home_screen, new_run, reading, replay_screen, run_screen
from tui.session import Session
from tui.words import Activity


def test_the_whole_story_from_the_demo_to_a_resumed_run(tmp_path: Path) -> None:
    """Demo, watch the tree, open an agonist, ask why, verify, stop, resume, quit."""
    backend = FakeBackend(tmp_path)
    backend.pause_at = 20
    backend.go_on.clear()

    async def script(user: Driver) -> None:
        await user.press("d", "y")
        await user.sees("▶ SEARCH", "m0.17", "reaches τ")
        await user.press("ctrl+home")
        while user.run.unit != "m0.17":
            await user.press("down")
        assert "reaches τ  m0.17  1→0" in user.run.query_one("#found", text_panes.ReadingPane).text.plain
        await user.press("w")
        await user.sees("result of why m0.17", "[c:7f3a]")
        assert backend.called == [("why m0.17", "0c1f")]
        await user.press("f2")
        await user.type("why does m0.17 flip?")
        await user.sees("Ablating it breaks 28/64 [c:7f3a]", "Predicted by [INST] rule.")
        await user.type("/verify 7f3a")
        await user.sees("result of verify 7f3a")
        assert not any("head of the card" in line.entry.text for line in user.run.query(chat_pane.ChatLine))
        await user.press("escape", "escape", "escape")
        assert "press Esc again to stop the search" in user.app.told[-1]
        assert user.run.session.activity is Activity.WORKING
        await user.press("escape")
        await user.sees("STOPPED, checkpoint kept")
        assert len(user.run.session.events) == backend.stored == 20
        backend.go_on.set()
        await user.press("ctrl+r")
        await user.sees("DONE", "12 units localized, 6 agonists")
        assert user.run.state == folded(story())
        await user.press("ctrl+q")

    assert drive(backend, script).return_code == 0


@pytest.mark.parametrize("ending", [("ctrl+c",), ("ctrl+q",), ()], ids=["stop", "quit", "signal"])
def test_whatever_ends_the_work_ends_it_at_its_next_event(ending: tuple[str, ...], tmp_path: Path) -> None:
    """^C, ^Q, or a message without a key, as of a closed page or a signal: no further event is shown."""
    backend, seen = FakeBackend(tmp_path), list[Session]()
    backend.pause_at = 30
    backend.go_on.clear()

    async def script(user: Driver) -> None:
        await user.press("d", "y")
        await user.until(backend.waiting.is_set, "the engine to pause")
        seen.append(user.run.session)
        if not ending:
            user.app.post_message(ExitApp())
        await user.press(*ending)
        if ending == ("ctrl+c",):
            await user.sees("STOPPED, checkpoint kept")
            await user.press("ctrl+c")
            assert user.app.told[-1] == "press ^C again to quit"
            await user.press("ctrl+c")

    drive(backend, script)
    assert (seen[0].activity, len(seen[0].events)) == (Activity.STOPPED, 30)
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]


def test_home_lists_runs_opens_one_and_compares_two(tmp_path: Path) -> None:
    """Stored runs are listed; Enter replays one; two marked ones are compared, of those that have ended."""
    backend = FakeBackend(tmp_path)
    first, second = backend.runs()
    backend.runs = lambda: (first, second, replace(second, id="7d3c"))  # type: ignore[method-assign]

    async def script(user: Driver) -> None:
        await user.sees("0c1f", "interrupted", "9e2b", "███▊···· 2", "a CSV or JSONL with prompt and answer")
        await user.press("j")
        await user.sees("9e2b · arithmetic · arith-tiny", "● m0.17", "at least 32 %", "layer 2")
        await user.press("k")
        for key, row in (("j", 1), ("k", 0), ("G", 2), ("g", 0)):
            await user.press(key)
            await user.pilot.pause()
            assert user.app.screen.query_one(text_panes.TextTable).cursor_row == row, key
        await user.press("c")
        assert user.app.told[-1] == "mark two runs with Space first"
        await user.press("space")
        assert user.app.told[-1] == "0c1f has not ended; finished runs alone are compared"
        await user.press("down", "space", "down", "space")
        await user.sees("9e2b*", "7d3c*")
        await user.press("c")
        await user.until(lambda: isinstance(user.app.screen, reading.ReadingScreen), "the comparison")
        await user.sees("compare 9e2b of run 7d3c")
        await user.press("escape", "k", "enter")
        await user.sees("DONE", "9e2b  arithmetic")
        await user.press("escape")
        assert user.app.told[-1] == "press Esc again to leave this run; it is kept"
        await user.press("escape")
        await user.until(lambda: isinstance(user.app.screen, home_screen.HomeScreen), "the first screen")

    drive(backend, script)


def test_new_run_is_three_questions_and_a_price_that_is_asked_once(tmp_path: Path) -> None:
    """Something moves while it is worked out, beside how a table of one's own is read; a wrong answer is said; before
    a model was chosen nothing is timed, without a yes to the price nothing is started.
    """
    backend, table = FakeBackend(tmp_path), tmp_path / "mine.csv"
    table.write_text("prompt,answer,continent\n1 + 1 =,2,none\n1 + 2 =,3,none\n")

    async def script(user: Driver) -> None:
        def on(screen: type[object]) -> Callable[[], bool]:
            return lambda: isinstance(user.app.screen, screen)

        await user.press("n")
        await user.until(on(new_run.NewRunScreen), "the form")
        await user.sees(
            "Which table or task?", "a table of your own", "arithmetic ·", "Three questions and a line"
        )
        lines = {line.id: line.query_one(Input) for line in user.app.screen.query(new_run.Question)}
        while lines["task"].value != "arithmetic":
            await user.press("down")
        lines["task"].value = str(table)
        backend.go_on.clear()
        await user.press("enter")
        await user.sees("mine.csv: 2 records", "answer (what is right), continent.", "Three questions")
        await user.press("enter")
        await user.sees("reading the task and")
        moves = user.text
        await user.until(lambda: user.text != moves, "a line that moves")
        backend.go_on.set()
        await user.sees("between 105 and 513 group ablations, about 6 min")
        lines["others"].value = "--tau=7"
        await user.press("ctrl+s")
        await user.sees("could go wrong: expected tau to be less than 1")
        lines["others"].value = "--tau=.3 --regime=1"
        for answer in "ny":
            assert backend.started_with is None
            await user.press("ctrl+s")
            await user.until(on(common.PricePopup), "the price")
            await user.sees("│  1 to 6 min for both directions  │", "│  y start · n back  ")
            await user.press(answer)
        await user.sees("DONE")

    drive(backend, script)
    assert backend.started_with is not None
    assert (backend.started_with["task"], backend.started_with["tau"]) == (str(table), 0.3)


def test_the_cursor_stays_on_its_node_while_the_tree_grows(tmp_path: Path) -> None:
    """Untouched, the cursor follows the newest node; moved, it keeps its node; `f` follows again."""
    backend = FakeBackend(tmp_path, big_search(400))
    backend.pause_at = 100
    backend.go_on.clear()

    async def script(user: Driver) -> None:
        await user.press("d", "y")
        await user.until(backend.waiting.is_set, "the engine to pause")
        tree = user.run.query_one(tree_pane.TreePane)
        await user.until(lambda: tree.key is not None and tree.key.node > 20, "the newest node")
        assert tree.following
        await user.press("ctrl+home", "down", "down")
        key = tree.key
        backend.go_on.set()
        await user.until(lambda: user.run.session.activity is Activity.ENDED, "the end")
        await user.until(lambda: len(user.run.state.searches["cha:1:m0"].nodes) == 400, "every node")
        assert tree.key == key
        await user.press("f")
        assert tree.following
        assert tree.key is not None
        assert tree.key.node > 100

    drive(backend, script)


def test_space_unfolds_what_was_ruled_out_and_search_finds_a_unit_inside(tmp_path: Path) -> None:
    """A folded line opens in place; `/` goes to a folded unit; a name that was never tested is said."""

    async def script(user: Driver) -> None:
        await user.sees("17 units ruled out, 1 group among them")
        tree = user.run.query_one(tree_pane.TreePane)
        assert "m0.19" not in user.text
        await user.press("ctrl+f")
        await user.type("m0.19")
        assert (
            " ".join(tree._text(tree.cursor).plain.strip(" │├└─").split())
            == "∙ m0.19 ▏ 2 % ruled out, at most 14 % of a half"
        )
        await user.press("j", "space")
        await user.sees("m0.0 … m0.15 (16)")
        await user.press("ctrl+f")
        await user.type("m9.1")
        assert user.app.told[-1] == "no unit m9.1 was tested so far"
        for said in ("1 map: 192 channels, 0→1", "1 map: 192 channels, 1→0"):
            await user.press("right_square_bracket")
            await user.sees(said)

    drive(FakeBackend(tmp_path), script, demo=True)


def test_what_a_tool_says_is_read_and_saved(tmp_path: Path) -> None:
    """Rules, claims, any other tool: a table with the row under the cursor in full, or a text."""
    backend = FakeBackend(tmp_path)

    async def script(user: Driver) -> None:
        await user.press("4")
        await user.sees("show --table rules --limit 10000 of run 0c1f")
        assert isinstance(user.app.screen, reading.ReadingScreen)
        await user.press("escape", "h")
        await user.sees("show --table claims --limit 10000 of run 0c1f", "state  supported")
        await user.press("j")
        await user.sees("state  refuted", plain(HOSTILE))
        await user.press("e")
        backend.later += ledger_events("ab")
        await user.press("r", "G")
        await user.sees("hypothesis  abc0de0003", "state  open")
        await user.press("escape", "x")
        await user.type("gates")
        await user.sees("result of gates", "D+ 28/64")
        await user.press("e", "escape")
        assert isinstance(user.app.screen, run_screen.RunScreen)

    app = drive(backend, script, demo=True)
    out = tmp_path / "out"
    rows = list(csv.reader((out / "0c1f-claims.csv").open()))
    assert [row[1] for row in rows] == ["state", "supported", "refuted", "open"]
    assert rows[2][-1] == plain(HOSTILE)
    assert (out / "0c1f-gates.txt").read_text().startswith("result of gates\n")
    assert f"written to {out / '0c1f-claims.csv'}" in app.told


def test_a_stored_run_is_read_by_the_tools(copied_run: Path, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """With the real door: a row a unit with its rule in words, uncut, and two bars; claims are a table."""
    monkeypatch.setenv("MECHARULE_RUNS", str(copied_run.parent))

    async def script(user: Driver) -> None:
        await user.press("enter")
        await user.sees("DONE")
        await user.press("4")
        await user.sees("rules of run", "where it holds █")
        screen = user.app.screen
        assert isinstance(screen, reading.ReadingScreen)
        lines = [line.split() for line in _read(user).splitlines() if line.startswith(("●", "◐", "○", "◦"))]
        names = [unit for _, unit, direction, *_ in lines if direction in ("1→0", "0→1")]
        assert set(names) == {row["unit"] for row in screen.rows}
        assert _read(user).count("    where it holds ") == _read(user).count("    elsewhere ") > 1
        told = {row["in words"] for row in screen.rows}
        assert {line for line in _read(user).splitlines() if line in told}
        assert "…" not in user.text
        await user.press("escape", "h")
        await user.sees("claims registered in run")
        await user.press("escape", "c")
        await user.sees(
            "What happens", "│ How sure", "at least 10 %", "where it holds █", "v verify · i claim · t try"
        )
        assert (_read(user).count("12 of 64"), _read(user).count(" → ") > 8) == (1, True)
        await user.press("escape", "c")
        await user.sees("│ How sure")
        await user.press("question_mark")
        await user.sees("Words: ", "how hard a unit pulls")
        await user.press("escape")
        await user.pilot.resize_terminal(80, 24)
        await user.sees("\n How sure\n ██▒")

    drive(Backend(), script)


def _read(user: Driver) -> str:
    return user.app.screen.query_one(text_panes.ReadingPane).text.plain


def test_replay_scrubs_forwards_and_back(tmp_path: Path) -> None:
    """At every position the screen shows the fold of that many events."""

    async def script(user: Driver) -> None:
        await user.press("r")
        screen = user.app.screen
        assert isinstance(screen, replay_screen.ReplayScreen)
        await user.sees("REPLAY", f"{len(story())}/{len(story())}")
        for key, unit in (("c", "m0.17"), ("full_stop", "m1.17"), ("comma", "m0.17")):
            await user.press(key)
            assert screen.unit == unit
        await user.press("escape")
        await user.press("home")
        assert screen.state == RunState()
        assert screen.unit is None
        for _ in range(15):
            await user.press("right")
        await user.sees("opened")
        assert screen.state.searches["cha:1:m0"].tested == 2
        await user.press("left", "left", "left")
        assert screen.state.searches["cha:1:m0"].tested == 1
        screen.session.findings = FINDINGS
        assert screen.on_file.findings is None
        await user.press("end")
        assert screen.on_file.findings is FINDINGS
        await user.press("left", "escape")
        assert isinstance(user.app.screen, run_screen.RunScreen)

    drive(FakeBackend(tmp_path), script, demo=True)


def test_replay_plays_from_the_beginning_by_verdicts(tmp_path: Path) -> None:
    """Space plays and pauses, `x` makes it faster; a turn goes on to the next verdicts, and the end stops it."""

    async def script(user: Driver) -> None:
        await user.press("r")
        screen = user.app.screen
        assert isinstance(screen, replay_screen.ReplayScreen)
        verdicts = [n for n, event in enumerate(story(), 1) if isinstance(event, replay_screen.VERDICTS)]
        await user.press("space")
        await user.until(lambda: 0 < screen.position < len(story()), "it to play")
        await user.press("space")
        at = screen.position
        await user.sees("Space play")
        assert at in {0, *verdicts}
        await user.press("x", "x", "space")
        await user.until(lambda: not screen.playing, "the end")
        assert screen.position == len(story())

    drive(FakeBackend(tmp_path), script, demo=True)


def test_a_prompt_of_ones_own_is_tried_with_the_unit_on_and_off(tmp_path: Path) -> None:
    """`t` asks for it and calls `flip` of the unit under the cursor, else of the first shown.

    `i` only prepares a claim, whose Enter is the person's, and Esc gives the keys back.
    """
    backend = FakeBackend(tmp_path)

    async def script(user: Driver) -> None:
        await user.press("t")
        assert user.app.told[-1].endswith("type PROMPT")
        await user.sees("Enter ask · / command")
        await user.type("The capital of 'Norway' is")
        await user.sees("result of flip m0.17 --prompt", "v verify")
        made = ("7f3a", "flip"), ("c0de", "why")
        own = tuple(SimpleNamespace(id=id, kind=kind, units=("m0.17",)) for id, kind in made)
        user.run.session.certificates = own  # type: ignore[assignment]
        await user.press("v")
        await user.sees("result of verify 7f3a c0de", "the count at the head of the card is of answers kept")
        await user.press("3", "ctrl+f")
        await user.type("m1.17")
        await user.press("i")
        assert user.run.query_one("#ask", Input).value == "/investigate when does m1.17 flip?"
        await user.press("escape", "t")
        await user.type("1 + 1 =")
        await user.sees("result of flip m1.17 --prompt '1 + 1 =' --yes")

    drive(backend, script, demo=True)
    prompts = [shlex.split(line) for line, run in backend.called if run == "0c1f"]
    assert prompts.pop(1) == ["verify", "7f3a", "c0de"]
    assert prompts == [
        ["flip", "m0.17", "--prompt", "The capital of 'Norway' is", "--yes"],
        ["flip", "m1.17", "--prompt", "1 + 1 =", "--yes"],
    ]


def test_help_explains_the_focused_widget_and_lists_the_keys(tmp_path: Path) -> None:
    """F1 differs by focus, works while text is typed, and Esc closes it before anything else."""

    async def script(user: Driver) -> None:
        await user.press("f1")
        await user.sees("The search as one tree", "go to the tree of the search")
        await user.press("escape", "f2", "f1")
        await user.sees("Ask about the open run, or give a slash command")
        assert isinstance(user.app.screen, common.HelpPopup)
        await user.press("escape")
        assert isinstance(user.app.screen, run_screen.RunScreen)

    drive(FakeBackend(tmp_path), script, demo=True)


def test_the_palette_carries_out_commands(tmp_path: Path) -> None:
    """^P, a few letters and Enter do what the key does."""

    async def script(user: Driver) -> None:
        await user.press("ctrl+p")
        await user.press(*"ledger")
        await user.sees("read the ledger")
        await user.press("enter")
        await user.sees("show --table claims")
        await user.press("ctrl+p")
        await user.press(*"screens")
        await user.sees("Screenshot")
        await user.press("escape", "ctrl+p")
        await user.press(*"theme")
        await user.sees("Theme")
        await user.press("enter")
        await user.sees("nord")
        lines = user.app.screen.query_one(CommandList)._line_cache
        with patch.object(CommandList, "_update_lines"):
            lines.clear()
            await user.press("pageup")
        assert user.app.is_running

    drive(FakeBackend(tmp_path), script, demo=True)


def test_slash_commands_reach_the_screen_and_the_tools_and_errors_are_said(tmp_path: Path) -> None:
    """A command of the table acts on the screen; another goes to the tools, in lines too; a wrong one is an error."""
    backend = FakeBackend(tmp_path)

    async def script(user: Driver) -> None:
        await user.press("f2")
        await user.type("/pane-map")
        await user.until(lambda: user.run.here == "map", "the map")
        await user.press("f2")
        await user.type("/nonsense 1")
        await user.sees("expected a command of: why, verify; got /nonsense")
        await user.type("/why\n  m1.17\n")
        await user.sees("why m1.17", "D+ 28/64")
        await user.press("up")
        assert user.run.query_one("#ask", Input).value == "/why m1.17"
        whos = [line.entry.who for line in user.run.query(chat_pane.ChatLine) if line.entry.who != "note"]
        assert whos == ["you", "you", "error", "you", "tool"]

    drive(backend, script, demo=True)
    assert backend.called == [("nonsense 1", "0c1f"), ("why m1.17", "0c1f")]


def test_an_answer_shows_the_tool_it_called_and_what_it_cites_and_the_next_question_follows_on(
    tmp_path: Path,
) -> None:
    """One line for the call with its arguments and time, then the answer and the facts under it."""
    backend, called = FakeBackend(tmp_path), {"tool": "why", "arguments": {"neuron": "m1.17"}, "ok": True}
    data = {"tools": [called], "cited": {"f1": "It breaks 28 of 64."}}
    backend.reply = lambda question, listener: ToolResult(data=data, text=f"{question} {listener.earlier}")

    async def script(user: Driver) -> None:
        await user.press("slash", "backspace")
        await user.type("eh?")
        await user.sees("tool why(neuron=m1.17) ✓ ok", "agent eh? ()", "[f1] It breaks 28 of 64.")
        await user.type("2")
        await user.sees("agent 2 (('eh?', 'eh? ()'),)")

    drive(backend, script, demo=True)


@pytest.mark.parametrize("words", ["It may ", ""], ids=["in its words", "before its first"])
def test_esc_gives_the_model_up_inside_its_request(words: str, tmp_path: Path) -> None:
    """Its words stream with the time so far; Esc ends it at once, and what is known without it takes their place."""

    class Slow(FakeBackend):
        def ask(self, question: str, run: str | None, listener: Listener) -> ToolResult:
            listener.first(ToolResult(data={"understood": "why"}, text="It breaks 28/64 [c:7f3a]."))
            if words:
                listener.hear(words)
            ends = time.monotonic() + 20
            while not listener.should_stop() and time.monotonic() < ends:
                time.sleep(0.01)
            said = "given up" if listener.should_stop() else "waited in vain"
            return ToolResult(data={"answer": said}, text=said)

    async def script(user: Driver) -> None:
        await user.press("f2")
        await user.type("why m1.17?")
        streamed = ("It may … ", "Esc ends the model") if words else ("28/64", "the model's answer follows")
        await user.sees(*streamed)
        await user.press("escape")
        await user.sees("agent given up")
        assert "It may" not in user.text
        assert not user.run.give_up()

    drive(Slow(tmp_path), script, demo=True)


def test_a_price_is_put_to_the_person(tmp_path: Path) -> None:
    """Yes runs it, no and Esc do not."""
    priced = put([("ablate", {"units": "m1.17"})], "64 ablated completions, ~70 s")

    class Asking(FakeBackend):
        def ask(self, question: str, run: str | None, listener: Listener) -> ToolResult:
            self.asked.append(question)
            listener.first(ToolResult())
            said = f"{question}: {listener.consent(priced)}"
            return ToolResult(data={"answer": said}, text=said)

    backend = Asking(tmp_path)

    async def script(user: Driver) -> None:
        await user.press("f2")
        for question, answer, said in (("q1", "y", "True"), ("q2", "n", "False"), ("q3", "escape", "False")):
            await user.type(question)
            await user.sees("It costs 64 ablated completions, ~70 s.", "y start · n back")
            await user.press(answer)
            await user.sees(f"agent {question}: {said}")
        assert backend.asked == ["q1", "q2", "q3"]

    drive(backend, script, demo=True)


def test_work_that_ends_after_its_screen_was_closed_ends_nothing_else(tmp_path: Path) -> None:
    """A job looks for the app when its screen has none any more."""
    go_on, done = threading.Event(), threading.Event()

    class Late(FakeBackend):
        def ask(self, question: str, run: str | None, listener: Listener) -> ToolResult:
            assert go_on.wait(20)
            listener.tell("late")
            done.set()
            return ToolResult(text="late")

    async def script(user: Driver) -> None:
        await user.press("f2")
        await user.type("why m1.17?")
        await user.press(*["escape"] * 4)
        await user.sees("interrupted")
        go_on.set()
        await user.until(done.is_set, "the job's end")
        await user.pilot.pause(0.2)
        await user.sees("interrupted")

    drive(Late(tmp_path), script, demo=True)


def test_an_answer_longer_than_the_chat_is_read_from_its_question(tmp_path: Path) -> None:
    """The first line is on the screen at 80×24; page down shows the last, page up the first again."""

    backend = FakeBackend(tmp_path)
    told = ["the point", *(f"then {number}" for number in range(24)), "the end"]
    backend.reply = lambda question, listener: ToolResult(text="\n".join(told))

    async def script(user: Driver) -> None:
        await user.press("f2")
        await user.type("why m1.17?")
        await user.sees("you why m1.17?", "agent the point")
        assert "the end" not in user.text
        await user.press("pagedown", "pagedown", "pagedown")
        await user.sees("the end")
        await user.press("pageup", "pageup", "pageup", "pageup", "pageup")
        await user.until(lambda: "the end" not in user.text, "the log to go back")

    drive(backend, script, (80, 24), demo=True)


def test_the_report_is_written_and_its_path_said(tmp_path: Path) -> None:
    """`o` writes the page; an unfinished run says why there is none."""
    backend = FakeBackend(tmp_path, story(finished=False))

    async def script(user: Driver) -> None:
        await user.press("d", "y")
        await user.sees("UNFINISHED", "not finished; ^R continues it")
        await user.press("o")
        await user.until(lambda: any("expected a finished run" in line for line in user.app.told), "it")
        await user.press("escape", "escape", "enter")
        await user.sees("DONE")
        await user.press("o")
        await user.until(lambda: (tmp_path / "out" / "0c1f-report.html").is_file(), "the report")

    drive(backend, script)


def test_an_error_nobody_named_ends_the_work_and_not_the_app(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The header says FAILED with the error and where its traceback is; the app can still be used."""

    class Broken(FakeBackend):
        def demo(self, session) -> None:  # type: ignore[no-untyped-def]
            raise ZeroDivisionError(f"no flips at all of {'long-named-' * 9}model")

    async def script(user: Driver) -> None:
        await user.press("d", "y")
        await user.sees("FAILED", "failed: ZeroDivisionError: no flips at all of …")
        await user.until(lambda: "in demo\n" in capfd.readouterr().err, "the traceback where prints go")
        await user.press("escape")
        await user.until(lambda: isinstance(user.app.screen, home_screen.HomeScreen), "the first screen")

    drive(Broken(tmp_path), script, (80, 24))


def test_ascii_and_no_colour_carry_the_same_words(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """With MECHARULE_ASCII nothing drawn is outside ASCII; with NO_COLOR every state still has its word."""
    monkeypatch.setenv("MECHARULE_ASCII", "1")
    monkeypatch.setenv("NO_COLOR", "1")

    async def script(user: Driver) -> None:
        await user.sees("shown", "not ruled out", "opened", "ruled out")
        for pane in ("1", "2", "3", "f1"):
            assert user.text.isascii(), [char for char in user.text if not char.isascii()]
            await user.press(pane)
            await user.pilot.pause(0.1)
        assert user.text.isascii()

    drive(FakeBackend(tmp_path), script, demo=True)


def test_all_work_ends_with_the_app(tmp_path: Path) -> None:
    """Also what was begun before the work that is shown: nothing goes on unseen after the screen is gone."""
    begun, ended = list[Session](), list[Session]()

    def work(session: Session) -> None:
        begun.append(session)
        while not session.should_stop():
            time.sleep(0.01)
        ended.append(session)

    async def script(user: Driver) -> None:
        for _ in range(2):
            user.app.begin(work)
        await user.until(lambda: len(begun) == 2, "both to begin")
        user.app.do_quit()

    drive(FakeBackend(tmp_path), script)
    assert {*ended} == {*begun}


def test_the_card_of_another_unit_is_read_from_its_first_line(tmp_path: Path) -> None:
    """However far the one before was scrolled."""
    backend = FakeBackend(tmp_path)
    backend.call = lambda line, *given: ToolResult(facts=(fact(f"{line} " * 200),))  # type: ignore[method-assign]

    async def script(user: Driver) -> None:
        user.run.session.findings = FINDINGS
        pane = user.run.query_one("#found", text_panes.ReadingPane)
        for unit in ("m0.18", "m0.17", "m0.18"):
            await user.press("ctrl+f")
            await user.type(unit)
            await user.until(lambda unit=unit: f"why {unit}" in pane.text.plain, "its card")
            assert pane.scroll_offset.y == 0
            pane.scroll_end(animate=False, immediate=True)
            assert pane.scroll_offset.y > 20

    drive(backend, script, demo=True)


def test_home_reads_a_run_once_a_cursor_rests_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that it passes are not read, and what takes long to read is not begun again where the list changes."""
    monkeypatch.setattr(home_screen, "RESTS", 2.0)
    backend, read, lists = FakeBackend(tmp_path), list[str](), list[int]()
    first, second = backend.runs()

    def runs() -> tuple[RunSummary, ...]:
        lists.append(len(lists))
        return first, *(replace(second, id=f"9e2{n}", shown=len(lists)) for n in range(8))

    def reads(run: str, session: Session) -> None:
        read.append(run)
        backend.go_on.wait(20)

    monkeypatch.setattr(backend, "runs", runs)
    monkeypatch.setattr(backend, "read", reads)
    backend.go_on.clear()

    async def script(user: Driver) -> None:
        await user.press(*"jjjjj")
        await user.until(lambda: read, "the run under the cursor")
        monkeypatch.setattr(home_screen, "RESTS", 0.01)
        seen = len(lists)
        await user.until(lambda: len(lists) > seen + 1, "other lists")
        assert read == ["9e24"]
        backend.go_on.set()

    drive(backend, script)


def test_home_shows_an_example_where_no_run_is_stored(tmp_path: Path) -> None:
    """What the demo finds, which `d` makes; a file that is no run says so in its place, and ends nothing."""
    backend = Backend()
    backend.folder = lambda: tmp_path  # type: ignore[method-assign]

    async def script(user: Driver) -> None:
        await user.sees("No run is stored here yet", "For example. Without m1.37:")
        (tmp_path / "beef.mecharule").write_text("no run")
        await user.press("r")
        await user.sees("unreadable", "expected a run")

    drive(backend, script, (120, 40))
