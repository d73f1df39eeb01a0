"""The screen of repairs: bars, controls, gates and examples of a real repair, none yet, concealed texts, making one."""

from __future__ import annotations

import random
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from bundled_run import opened
from repairs_told import RULES, helping, hostile, result, unopened
from rich.cells import cell_len
from tui_driving import Driver, drive
from tui_story import HOSTILE, FakeBackend

from agent.verbs.command_line import parser
from mecharule_ops.errors import AblationStopped, StoreError
from mecharule_ops.findings.repair_outcome import ControlKind, Repair, RepairControl, RepairStatus
from mecharule_ops.mcnemar import Paired
from mecharule_ops.plain_text import plain
from mecharule_ops.repair.learning import GateSettings
from mecharule_ops.repair.material import RepairRequest
from mecharule_ops.report.document import Bullets, Table
from mecharule_ops.report.repairs import compared
from mecharule_ops.saying.repair_facts import changed_words, points_words, what_repair_is
from mecharule_ops.types import RIGHT_OR_WRONG, OutcomeWords
from tools import repair as tool
from tools.arguments import RepairArguments as Arguments
from tools.registry import call
from tui.backend import Backend, _given
from tui.character_charts import axis, changed_bars, interval_around_zero
from tui.chat_pane import ChatPane
from tui.repair_text import HeldRepairs, empty_text, repair_text
from tui.screens.common import HelpPopup, PricePopup
from tui.screens.repair_screen import RepairScreen
from tui.screens.run_screen import RunScreen
from tui.terminal_app import ascii_only

WIDTHS = (38, 58, 78, 118)
REFUSED = OutcomeWords(success="answered", failure="refused", success_is_harm=True)
EAGER = RepairRequest(
    records=900,
    tried=6,
    units=3,
    solution=True,
    learning=GateSettings(caution=0.0, harm=1.0, least_fixed=2),
)
"""Gates learned without caution, so that a small table gives some."""


def held(*repairs: Repair, concealed: bool = False, words: OutcomeWords = RIGHT_OR_WRONG) -> HeldRepairs:
    return HeldRepairs(run="0c1f", repairs=repairs, words=words, concealed=concealed)


def squeezed(text: str) -> str:
    """Without white space, bars and rules, so that wrapping makes no difference."""
    return re.sub(r"[\s█░▓·├┤─┼│●✓✗◐○-]+", "", text)


@pytest.fixture(scope="module")
def mended(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the bundled model that holds a real repair; read it, never write it."""
    path = Path(shutil.copy(finished_run, tmp_path_factory.mktemp("mended") / finished_run.name))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MECHARULE_RUNS", str(path.parent))
        patch.setattr(tool, "request_of", lambda run, given: EAGER)
        call("repair", {"what": "last", "yes": True})
    return path


@pytest.fixture
def of_the_bundled_run(copied_run: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run without a repair, alone in the runs directory; a repair of it is a small one."""
    monkeypatch.setenv("MECHARULE_RUNS", str(copied_run.parent))
    monkeypatch.setattr(tool, "request_of", lambda run, given: EAGER)
    return copied_run


async def opened_repairs(user: Driver) -> RepairScreen:
    """The repairs of the first run of the list."""
    await user.sees("b00d")
    await user.press("o")
    await user.sees("DONE")
    await user.press("r")
    await user.until(lambda: isinstance(user.app.screen, RepairScreen), "the repairs")
    screen = user.app.screen
    assert isinstance(screen, RepairScreen)
    await user.until(lambda: screen.held is not None and "Reading" not in screen.moved.text.plain, "the file")
    return screen


# --- pictures ---------------------------------------------------------------------------------------------


def test_bars_hold_their_counts_to_half_a_cell_and_show_whatever_is_not_nothing() -> None:
    """Both bars begin alike; what changed has at least a cell; nothing is longer than its room."""
    draw = random.Random(7)
    for _ in range(2000):
        n = draw.randint(1, 9000)
        before = draw.randint(0, n)
        fixed, broken = draw.randint(0, n - before), draw.randint(0, before)
        paired = Paired(n=n, before=before, fixed=fixed, broken=broken, acted=fixed + broken)
        width = draw.randint(8, 60)
        first, second = changed_bars(paired, width)
        assert len(first) == len(second) == width
        assert first.count("█") == second.count("█")
        assert ("░" in first, "▓" in second) == (broken > 0, fixed > 0)
        assert "▓" not in first
        assert "░" not in second
        for bar, count in ((first, before), (second, paired.after)):
            assert abs(width - bar.count("·") - count / n * width) <= 2
    assert ascii_only("█░▓·◂") == "#-+.<", "told apart in ASCII too"
    assert changed_bars(Paired(n=100, before=80, fixed=10, broken=20, acted=30), 10) == (
        "██████░░··",
        "██████▓···",
    )


def test_an_interval_stands_left_right_or_across_the_mark_of_no_change() -> None:
    """Worked by hand on a scale from −5 to 5 of ten cells, whose sixth is no change."""
    scale = (-5.0, 5.0)
    assert interval_around_zero(1.0, 2.0, 4.0, scale, 10) == "     │├●─┤"
    assert interval_around_zero(-4.0, -3.0, -1.0, scale, 10) == " ├●─┤│    "
    assert interval_around_zero(-3.0, -1.0, 2.0, scale, 10) == "  ├─●┼─┤  "
    assert interval_around_zero(0.1, 0.5, 1.9, scale, 10) == "     │●   ", "above it in one cell, not on it"
    assert interval_around_zero(-1.9, -0.5, -0.1, scale, 10) == "   ├●│    "
    assert interval_around_zero(-80.0, -75.0, -70.0, scale, 10) == "◂    │    "
    assert interval_around_zero(-80.0, -3.0, 70.0, scale, 10) == "◂─●──┼───▸"
    assert interval_around_zero(0.0, 0.0, 0.0, (0.0, 0.0), 6) == "●     "
    assert axis(scale, 20) == "-5.0      0     +5.0"
    assert axis((0.0, 5.0), 10) == "0     +5.0"
    assert axis((-2.2, 9.4), 22) == "    0             +9.4", "-2.2 would touch the 0"
    assert axis((-9.0, 1.0), 20) == "-9.0              0 "


def test_an_interval_holds_the_mark_where_its_numbers_hold_no_change() -> None:
    """On random intervals and scales: the mark is inside, to the left or to the right as the numbers say."""
    draw = random.Random(11)
    for _ in range(3000):
        low, value, high = sorted(draw.uniform(-9, 9) for _ in range(3))
        scale = (min(0.0, low) - draw.uniform(0.5, 4), max(0.0, high) + draw.uniform(0.5, 4))
        width = draw.randint(40, 60)
        line = interval_around_zero(low, value, high, scale, width)
        assert len(line) == width
        mark = max(line.find("│"), line.find("┼"))
        drawn = [place for place, sign in enumerate(line) if sign in "├─┼●┤"]
        where = "left" if mark < drawn[0] else "right" if mark > drawn[-1] else "inside"
        assert where == ("left" if low > 0 else "right" if high < 0 else "inside"), line


# --- what is said -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("status", RepairStatus)
def test_every_word_of_the_report_is_on_the_screen(status: RepairStatus, width: int) -> None:
    """Nothing is lost at any width: each sentence, each cell; and no line is wider than the pane."""
    tested = status in (RepairStatus.HELPS, RepairStatus.HARMS, RepairStatus.OPEN)
    made = held(replace(helping(), status=status) if tested else unopened(status=status))
    text = repair_text(made, 0, width).plain
    assert max(map(cell_len, text.splitlines())) <= width
    shown = squeezed(text)
    for section in made.document(0).sections:
        for block in section.blocks:
            if isinstance(block, Table):
                cells = [cell for row in block.rows for cell in row[:3] if width >= 78]
                if section.title == "On the test records":
                    cells = [cell for row in block.rows for cell in (row[0], row[2], row[3])]
                assert all(squeezed(cell)[:12] in shown for cell in cells), section.title
            else:
                said = block.items if isinstance(block, Bullets) else (block,)
                assert all(squeezed(one) in shown for one in said), section.title


def test_only_titles_are_underlined() -> None:
    """No style runs on from a title into the bars below it, nor from the first line into how to make a repair."""
    for text in (repair_text(held(helping()), 0, 78), empty_text(held(), 78, "m")):
        assert not text.style
        titled = [text.plain[span.start : span.end] for span in text.spans if "underline" in str(span.style)]
        assert all(one.endswith("\n") and one.count("\n") == 1 for one in titled), titled


def test_the_point_comes_first_then_bars_then_every_control() -> None:
    """Controls are whatever the repair holds, a kind that is new included, each with its interval and its counts."""
    made = helping()
    more = RepairControl(
        kind=ControlKind.ALWAYS,
        name="something else",
        result=Paired(n=600, before=500, fixed=1, broken=2, acted=3),
    )
    made = replace(made, controls=(*made.controls, more))
    text = repair_text(held(made), 0, 118).plain
    lines = text.splitlines()
    assert lines[0].startswith("✓ Test, 600 records that chose nothing: 83 % right becomes 86 %")
    assert "becomes 86 %" in lines[0]
    order = [
        "The gates help",
        "before ",
        "after ",
        "\nthe gates ",
        "Gates",
        "Examples",
        "What it does not show",
    ]
    places = [text.index(one) for one in order]
    assert places == sorted(places)
    assert "500/600 (83 %)" in text
    assert "517/600 (86 %)" in text
    rows = compared(made)
    assert len(rows) == 2 + len(ControlKind) + 1
    for name, paired in rows:
        line = next(one for one in lines if one.startswith(name[:20]) and points_words(paired) in one)
        assert changed_words(paired) in line
        assert "●" in line or "◂" in line


def test_a_control_that_goes_far_off_does_not_squeeze_the_others() -> None:
    """Everything but its own line is drawn as without it; its line has an arrow, and its numbers."""
    made = helping()
    ruin = RepairControl(kind=ControlKind.MODEL, name="ruin", result=result(0, 494, 600))
    without, with_it = (
        repair_text(held(replace(made, controls=controls)), 0, 78).plain.splitlines()
        for controls in (made.controls, (*made.controls, ruin))
    )
    more = [line for line in with_it if line not in without]
    assert [line for line in with_it if line not in more] == without
    (arrow,) = [line for line in more if "◂" in line]
    assert points_words(ruin.result) in arrow


def test_what_is_told_apart_by_colour_is_told_apart_by_words_and_signs_too() -> None:
    """Fixed and broken examples, the status, and what of a bar changed."""
    for status, sign in ((RepairStatus.HELPS, "✓"), (RepairStatus.HARMS, "✗"), (RepairStatus.OPEN, "◐")):
        assert repair_text(held(replace(helping(), status=status)), 0, 78).plain.startswith(f"{sign} Test, ")
    text = repair_text(held(helping()), 0, 78).plain
    assert "✓ fixed" in text
    assert "✗ broken" in text
    assert "░ broken by a gate" in text
    assert repair_text(held(unopened()), 0, 78).plain.startswith("○ No gate helps")


def test_a_task_whose_success_is_harm_has_its_own_words() -> None:
    text = repair_text(held(helping(), words=REFUSED), 0, 118).plain
    assert "Answered on the test records" in text
    text = empty_text(held(words=REFUSED), 78, "m").plain
    assert "more answers become refused" in " ".join(text.split())


def test_concealed_texts_are_counted_and_not_shown() -> None:
    """Neither prompt nor completion is anywhere; they are without concealment, so that the check can fail."""
    made = helping()
    text = " ".join(repair_text(held(made, concealed=True), 0, 78).plain.split())
    assert "2 fixed and 1 broken examples are kept; this task conceals prompts and completions" in text
    clear = " ".join(repair_text(held(made), 0, 78).plain.split())
    for one in made.examples:
        last = one.prompt.split("\n")[-1]
        assert last in clear
        assert last not in text
        assert one.after not in text


def test_hostile_texts_are_plain() -> None:
    """A rule, a prompt and completions with markup and control characters come out as plain text."""
    text = repair_text(held(hostile(HOSTILE)), 0, 118)
    assert plain(HOSTILE).split()[0] in text.plain
    assert "\x1b" not in text.plain
    assert "\u202e" not in text.plain
    assert "[red]" in text.plain


# --- on the screen ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "size",
    [pytest.param((80, 24), id="80x24"), pytest.param((120, 40), id="120x40", marks=pytest.mark.slow)],
)
def test_a_real_repair_of_the_bundled_model_is_read_to_its_last_line(
    mended: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    """Every line of the pane comes by while it is scrolled; the numbers are the file's."""
    monkeypatch.setenv("MECHARULE_RUNS", str(mended.parent))
    with opened(mended, read_only=True) as run:
        (made,) = run.repairs
    assert made.test is not None

    async def script(user: Driver) -> None:
        screen = await opened_repairs(user)
        assert screen.focused is screen.moved
        text = screen.moved.text.plain
        await user.sees("Repair of run b00d: 0→1, mlp_out, input gates")
        assert " ".join(text.split()).startswith(("✓ Test, 300", "◐ Test, 300", "✗ Test, 300"))
        assert points_words(made.test) in " ".join(text.split())
        assert all(str(gate.unit) in text for gate in made.gates)
        assert all(squeezed(gate.rule)[:12] in squeezed(text) for gate in made.gates)
        assert all(squeezed(points_words(one.result)) in squeezed(text) for one in made.controls)
        seen = set(user.text.splitlines())
        for _ in range(len(text.splitlines())):
            await user.press("j")
            seen |= set(user.text.splitlines())
        drawn = {re.sub(r" *[▁▂▃▄▅▆▇█]?$", "", line) for line in seen} | seen
        assert {line for line in text.splitlines() if line} <= drawn
        await user.press("g")
        assert screen.moved.scroll_offset.y == 0

    drive(Backend(), script, size)


def test_without_a_repair_it_says_what_one_is_and_a_command_that_the_parser_takes(
    of_the_bundled_run: Path,
) -> None:
    """Nothing is saved; Esc leads back."""

    async def script(user: Driver) -> None:
        screen = await opened_repairs(user)
        said = " ".join(screen.moved.text.plain.split())
        assert said.startswith("Run b00d holds no repair yet.")
        assert what_repair_is(RIGHT_OR_WRONG) in said
        command = re.search(r"`mecharule ([^`]+)`", said)
        assert command is not None
        assert command[1] == "repair b00d"
        assert parser().parse_args(command[1].split()).what == "b00d"
        await user.press("e")
        assert user.app.told[-1] == "there is nothing to save here yet"
        await user.press("right_square_bracket", "escape")
        assert isinstance(user.app.screen, RunScreen)

    drive(Backend(), script, (80, 24))


@pytest.mark.slow
def test_one_is_made_from_the_screen_once_its_price_was_accepted(of_the_bundled_run: Path) -> None:
    """A no makes nothing; a yes makes one, shows it, and a second time nothing is left to make."""

    async def script(user: Driver) -> None:
        screen = await opened_repairs(user)
        await user.press("m")
        await user.until(lambda: isinstance(user.app.screen, PricePopup), "the price")
        await user.sees("A repair of run b00d", "ablated completions", "y yes   n no")
        await user.press("n")
        await user.sees("nothing slow was started", "holds no repair yet")
        await user.press("m")
        await user.until(lambda: isinstance(user.app.screen, PricePopup), "the price again")
        await user.press("y")
        await user.sees("making a repair")
        await user.until(lambda: screen.held is not None and screen.held.repairs, "the repair")
        await user.sees("the repair is made", "Repair of run b00d: 0→1")
        await user.press("m")
        await user.sees("expected a repair to make")

    drive(Backend(), script, (120, 40))
    with opened(of_the_bundled_run, read_only=True) as run:
        assert len(run.repairs) == 1


def test_repairs_are_turned_copied_saved_and_explained(tmp_path: Path) -> None:
    """`]` and `[` go round, `y` takes the text, `e` writes report and gates, F1 says what is seen."""
    backend = FakeBackend(tmp_path)

    async def script(user: Driver) -> None:
        await user.press("d")
        await user.sees("DONE")
        await user.press("r")
        await user.sees("1 of 2 · Repair of run 0c1f", "✓ Test, 600 records")
        await user.press("G", "right_square_bracket")
        await user.sees("2 of 2", "No gate helps: no rule was found")
        await user.press("right_square_bracket")
        await user.sees("1 of 2", "✓ Test, 600 records")
        await user.press("left_square_bracket")
        await user.sees("2 of 2")
        await user.press("left_square_bracket", "y", "e", "f1")
        await user.sees("does nothing that was shown")
        assert isinstance(user.app.screen, HelpPopup)
        await user.press("escape", "escape")
        assert isinstance(user.app.screen, RunScreen)

    drive(backend, script)
    out = tmp_path / "out"
    assert (out / "copied-repair.txt").read_text().startswith("✓ Test, 600 records")
    assert RULES[0] in (out / "0c1f-gates.csv").read_text()
    assert "McNemar" in (out / "0c1f-repair.md").read_text()


def test_concealed_texts_leave_by_no_key(tmp_path: Path) -> None:
    """Neither the screen nor a file has them."""
    backend = FakeBackend(tmp_path)
    backend.concealed = True

    async def script(user: Driver) -> None:
        await user.press("d")
        await user.sees("DONE")
        await user.press("r")
        await user.sees("1 of 2")
        await user.press("y", "e", "G")
        await user.sees("--show-text")

    drive(backend, script)
    files = "".join(path.read_text() for path in (tmp_path / "out").iterdir())
    assert "conceals prompts" in files
    assert not [one for one in helping().examples if one.prompt.split("\n")[-1] in files]


def test_esc_twice_stops_the_making_and_once_does_not(tmp_path: Path) -> None:
    """While one is made `m` starts no second; the screen stays until the work has ended."""
    backend = FakeBackend(tmp_path)
    backend.held = ()

    async def script(user: Driver) -> None:
        await user.press("d")
        await user.sees("DONE")
        backend.go_on.clear()
        await user.press("r")
        await user.sees("holds no repair yet")
        await user.press("m")
        await user.until(lambda: isinstance(user.app.screen, PricePopup), "the price")
        await user.press("y")
        await user.sees("8 units ablated on 1,200 records")
        await user.press("m", "escape")
        assert user.app.told[-2:] == [
            "a repair is being made; Esc twice stops it",
            "press Esc again to stop the repair (nothing of it is kept)",
        ]
        assert isinstance(user.app.screen, RepairScreen)
        await user.press("escape")
        await user.sees("stopped; nothing of this repair is kept")
        await user.press("escape")
        assert isinstance(user.app.screen, RunScreen)

    drive(backend, script)
    assert backend.held == ()


def test_a_run_that_cannot_be_read_or_is_being_worked_on_is_said(tmp_path: Path) -> None:
    """Nothing is made while the search runs; an error of the file is a line."""
    backend = FakeBackend(tmp_path)
    backend.pause_at = 20
    backend.go_on.clear()
    fine = backend.repairs

    def gone(run: str) -> HeldRepairs:
        raise StoreError("expected a run file, there is none")

    async def script(user: Driver) -> None:
        await user.press("d")
        await user.until(backend.waiting.is_set, "the engine to pause")
        await user.press("r")
        await user.sees("1 of 2")
        await user.press("m")
        assert user.app.told[-1].startswith("the search is still running")
        await user.press("escape")
        backend.repairs = gone  # type: ignore[method-assign]
        await user.press("r")
        await user.sees("expected a run file, there is none")
        backend.repairs = fine  # type: ignore[method-assign]
        await user.press("escape", "r")
        await user.sees("1 of 2")

    drive(backend, script)


def test_the_slash_word_opens_the_screen_and_the_verb_is_about_the_open_run(tmp_path: Path) -> None:
    """`/repairs` is the screen's; `/repair` is the tool's, whose run stands as its first word."""
    assert _given("repair", [], "0c1f") == {"what": "0c1f"}
    assert _given("repair", ["last", "--units", "3"], "0c1f") == {"what": "last", "units": 3}
    assert _given("repair", ["export", "out"], "0c1f") == {"what": "export", "folder": "out", "run": "0c1f"}
    assert _given("why", ["m1.17"], "0c1f") == {"neuron": "m1.17", "run": "0c1f"}
    assert _given("compare", ["0c1f", "9e2b"], "0c1f") == {"first": "0c1f", "second": "9e2b"}
    assert _given("repair", [], None) == {}

    async def script(user: Driver) -> None:
        await user.press("d")
        await user.sees("DONE")
        await user.press("f2")
        await user.type("/repairs")
        await user.sees("1 of 2")
        await user.press("escape")
        assert [one.text for one in user.run.query_one(ChatPane).entries() if one.who == "you"] == [
            "/repairs"
        ]

    drive(FakeBackend(tmp_path), script)


def test_a_stop_is_heard_between_two_batches_and_keeps_nothing(of_the_bundled_run: Path) -> None:
    """The verb itself, told to stop from its first word on."""
    heard: list[str] = []
    with pytest.raises(AblationStopped):
        tool.repair(Arguments.model_validate({"what": "last", "yes": True}), heard.append, lambda: True)
    assert heard
    with opened(of_the_bundled_run, read_only=True) as run:
        assert run.repairs == ()
