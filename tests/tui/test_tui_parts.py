"""The pure parts of the terminal app: rows, pictures, tables, forms, commands, and text from outside."""

import csv
import io
import os
import random
import subprocess
import sys
import unicodedata
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from events_told import folded
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text
from tui_story import FakeBackend, big_search, story

from agent.chat import ask
from mecharule_ops import errors, plain_text
from mecharule_ops.config import RunConfig, make_config
from mecharule_ops.facts.examples import example_of
from mecharule_ops.facts.found import in_short
from mecharule_ops.pages.as_text import csv_of
from mecharule_ops.run.opening import kept_open, opened
from mecharule_ops.state.board import Board, Key, Place
from mecharule_ops.state.run_state import RunState
from tools import registry
from tools.registry import TOOLS
from tui import backend, chat_pane, commands, found
from tui.screens.common import CommandScreen
from tui.screens.home_screen import HomeScreen
from tui.screens.new_run import QUESTIONS, NewRunScreen, as_options, choices_of
from tui.screens.reading import ReadingScreen
from tui.screens.replay_screen import STRIDE, ReplayScreen, Timeline
from tui.screens.run_screen import RunScreen
from tui.session import Entry, Session
from tui.terminal_app import MechaRuleApp, ascii_only
from tui.tree_pane import row_text, rows_of
from tui.unit_map import Grid
from tui.words import said

PIECES = [
    *"[]/\\{}()<>|`*_#:;'\"=.,- ",
    *("[red]", "[/]", "[b]", "[INST]", "[@click=app.quit]", "\x1b[31m", "\x1b]52;c;aGk=\x07", "\r\n"),
    *("\t", "\x00", "\x7f", "\x9b2J", "\u202e", "\u2066", "\u200b", "\ufeff", "\ud800", "\u2028"),
    *("שלום", "مرحبا", "漢字", "👩‍👩‍👧", "é", "e\u0301", "b >= 100", "$primary"),
]
SCREENS: tuple[type[CommandScreen], ...] = (HomeScreen, NewRunScreen, RunScreen, ReplayScreen, ReadingScreen)


@given(st.integers(1, 40), st.integers(1, 600), st.integers(10, 120), st.integers(1, 40))
def test_each_unit_of_each_layer_has_one_cell_of_the_map(
    layers: int, units: int, width: int, height: int
) -> None:
    cells = [cell for row in Grid.of(layers, units, width, height).cells for cell in row]
    found = [(layer, unit) for each in cells for layer in each.layers for unit in range(each.begin, each.end)]
    assert sorted(found) == [*product(range(layers), range(units))]


# --- text from outside ------------------------------------------------------------------------------------


def test_ten_thousand_hostile_texts_appear_exactly_as_plain_text() -> None:
    """What is drawn is `plain` of the text to the letter: no markup taken, no control character left."""
    draw, console = random.Random(5), Console(width=400, color_system="truecolor", force_terminal=True)
    for _ in range(10_000):
        text = "".join(draw.choices(PIECES, k=draw.randint(1, 12)))
        shown = plain_text.plain(text)
        assert not [char for char in shown if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co")]
        assert "".join(segment.text for segment in said(text).render(console)) == shown
        assert ascii_only(shown).isascii()
    assert ascii_only("'⏎' ○◦ → a") == r" \n o?-> a"
    assert plain_text.plain("a\n b") == "a b"
    assert Text.from_markup("op in [b]").plain != "op in [b]" == said("op in [b]").plain


def test_hostile_texts_pass_through_chat_and_files() -> None:
    """Plain lines in a turn; one row a row of CSV; a cell that a spreadsheet would run is quoted, a number is not."""
    draw = random.Random(6)
    for _ in range(300):
        text = "".join(draw.choices(PIECES, k=8))
        rows = [(text, "x"), ("y", text)]
        assert len(list(csv.reader(io.StringIO(csv_of(("a", "b"), rows))))) == len(rows) + 1
        turn = [line.plain for line in chat_pane.entry_lines(Entry(who="agent", text=text))]
        assert turn == [chat_pane.plain_columns(line) for line in text.splitlines()] or not text.strip()
    lines = chat_pane.entry_lines(
        Entry(
            who="tool",
            text="It flips 2.  So it does.  Ask:  why\nunit   flips  of\n      or what hangs under a row",
        )
    )
    assert [line.overflow for line in lines] == [None, "ellipsis", None]
    assert chat_pane.plain_columns("  m1.17   .44\x1b[31m  x") == "  m1.17   .44�[31m  x"
    assert csv_of(("a", "b", "c"), [("=1+1", "+.39", "@x")]).splitlines()[1] == "'=1+1,+.39,'@x"


def test_ascii_keeps_the_width_of_every_line() -> None:
    """The filter never moves a column."""
    for text in ("╭─ τ .20 ─╮", "●◐○ ▾▸", "漢字 1→0", "█▋ ├──●──┤", "❯ e\u0301…"):
        assert cell_len(ascii_only(text)) == cell_len(text)
        assert ascii_only(text).isascii()
    assert ascii_only("1→0 ▸ ├●┤ 5 → 6") == "1>0 > [*] 5-> 6"


# --- the tree ---------------------------------------------------------------------------------------------


PLACE = Place(1, "m")


def test_every_tested_node_is_on_a_row_or_counted_in_one() -> None:
    """With all branches open: no node is told twice or left out, at any moment of a growing tree."""
    state, board = RunState(), Board()
    for number, event in enumerate(big_search(300)):
        state = state.apply(event)
        board.catch_up(state)
        if number % 97 == 0 and state.searches:
            nodes = [board.key_of("cha:1:m0", node) for node in state.searches["cha:1:m0"].nodes]
            rows = rows_of(state, board, PLACE, {(key, False) for key in [Key("", "cha:1:m0"), *nodes]})
            told = [key for row in rows for key in (row.folded or (row.key,)) if key and key.node >= 0]
            assert sorted(told) == nodes


def test_a_row_says_its_state_by_word_glyph_and_style() -> None:
    """A bar with its bound and a word; green is for what is shown alone."""
    state, board = folded(story()), Board()
    board.catch_up(state)
    opened = {(key, False) for key in (Key("", "cha:1:m0"), *(Key("", "cha:1:m0", node) for node in (0, 1)))}

    def lines(state: RunState) -> dict[str, Text]:
        drawn = [row_text(state, board, PLACE, row, 100, 0) for row in rows_of(state, board, PLACE, opened)]
        return {" ".join(line.plain.strip(" │├└─").split()): line for line in drawn}

    told = lines(state)
    assert list(told)[:6] == [
        "192 channels, 1→0",
        "layer 0 · 7 tested · 1 reached 20 % of a half · 1 shown",
        "▾ m0.0 … m0.63 (64) █████████ 91 % opened",
        "▾ m0.0 … m0.31 (32) ███████▊ 78 % opened, at most 91 % of a half",
        "● m0.17 ████▊ 47 % shown, 30 of 64 kept aside",
        "◦ m0.18 █▎ 12 % not ruled out, at most 25 % of a half",
    ]
    assert "17 units ruled out, 1 group among them" in told
    green = [line.plain for line in told.values() if any("green" in str(span.style) for span in line.spans)]
    assert len(green) == 1
    assert "m0.17" in green[0]
    unjudged = lines(replace(state, judged={}))
    assert "▒ m0.17 ████▍ 44 % reaches τ, at most 56 % of a half" in unjudged
    assert not any("green" in str(span.style) for line in unjudged.values() for span in line.spans)


def test_a_timeline_gives_the_fold_of_the_first_events_at_every_position() -> None:
    """In any order of asking."""
    events = big_search(200)
    timeline, draw = Timeline(events), random.Random(3)
    for position in [0, len(events), STRIDE, STRIDE + 1, *(draw.randrange(len(events)) for _ in range(5))]:
        assert timeline.at(position) == folded(events[:position])


# --- tables -----------------------------------------------------------------------------------------------


def test_the_card_of_a_run_that_goes_on_says_how_much_changes_and_how_sure_that_is() -> None:
    """Answers kept aside first, solid up to their bound, then each half; colour is of what is shown alone."""
    state = folded(story())
    view = state.searches["cha:1:m0"]
    assert found.card(state, view, view.nodes[4], (60, 40)).plain == (
        "● shown  m0.17  1→0  1 channel of layer 0\n"
        "███████▒▒··········· 30 of 64 answers kept aside, at least 32 %\n"
        "████████▊··········· 28 of 64 of half A of the answers\n"
        "█··················· 3 of 64 of half B of the answers\n"
    )
    made = found.card(replace(state, judged={}), view, view.nodes[4], (60, 40))
    assert "green" not in str(made.spans)
    assert "▒ reaches τ" in made.plain


# --- forms ------------------------------------------------------------------------------------------------


def test_the_answers_of_the_form_give_a_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is typed stands as on a command line; what is left empty keeps its default; own tables come first."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("prompt,answer\na,b\n")
    choices = choices_of()
    assert list(choices) == [*QUESTIONS]
    assert [*choices["task"]][:2] == ["mine.csv", "arithmetic"]
    assert {"arith-tiny"} < {*choices["model"]}
    assert [*choices["basis"]] == ["mlp_out", "mlp_hidden", "attn_head"]
    assert {"--tau=", "--regime=", "--budget="} < {*choices["others"]}

    def config(**typed: str) -> RunConfig:
        given = dict.fromkeys(QUESTIONS, "") | {"task": "arithmetic", "model": "arith-tiny"} | typed
        return backend.Backend().config(as_options(given))

    assert config() == make_config(task="arithmetic", model="arith-tiny")
    others = "--regime=1 --budget 40 --parity --tau .3 --set task.high=19 --set task.operators='[\"+\"]'"
    made = config(basis="mlp_out,attn_head", others=others)
    assert [basis.value for basis in made.bases] == ["mlp_out", "attn_head"]
    assert (made.regimes, made.budget, made.parity, made.tau) == ((1,), 40, True, 0.3)
    assert made.task_settings == {"high": 19, "operators": ["+"]}
    assert config(task="my prompts.jsonl").task == str(Path("my prompts.jsonl").resolve())
    for wrong, why in (
        ({"others": "--set high"}, "KEY=VALUE"),
        ({"others": "--set a='"}, "closed quotes"),
        ({"model": ""}, "task and"),
    ):
        with pytest.raises(errors.UsageError, match=why):
            config(**wrong)


# --- layout and commands ----------------------------------------------------------------------------------


def test_every_command_is_done_by_its_screen_or_the_app_and_no_key_means_two_things() -> None:
    """The table cannot drift from what the screens do."""
    for screen in SCREENS:
        keys = [key for command in commands.commands_of(screen.NAME) for key in command.keys]
        assert len(keys) == len(set(keys)), screen
        for command in commands.commands_of(screen.NAME):
            assert hasattr(screen, command.method) or hasattr(MechaRuleApp, command.method), (screen, command)
        assert commands.bindings_of(screen.NAME) == screen.BINDINGS
    assert {screen.NAME for screen in SCREENS} == commands.EVERYWHERE
    known = {command.method for command in commands.COMMANDS}
    for owner in (*SCREENS, MechaRuleApp):
        assert {name for name in dir(owner) if name.startswith("do_")} <= known, owner


def test_slash_words_of_screens_and_tools_differ_and_keys_have_names() -> None:
    """`/why` is always the tool; every key is said in a word or sign."""
    assert not {command.name for command in commands.COMMANDS} & set(TOOLS)
    said_keys = [commands.key_said(key) for command in commands.COMMANDS for key in command.keys]
    assert all(key.strip() and "_" not in key for key in said_keys)
    assert commands.key_said("ctrl+r") == "^R"
    assert commands.key_said("right_square_bracket") == "]"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nothing", r"expected a command, got /nothing; F1 and \^P list them"),
        ("shwo", "got /shwo; did you mean 'show'"),
        ("flip m1.2", "expected --prompt"),
        ("show --help", "no --help here"),
        ('flip m1.2 --prompt "1', "closed quotes"),
    ],
)
def test_slash_commands_are_parsed_as_on_the_command_line(tmp_path: Path, line: str, said: str) -> None:
    """The open run is filled in; wrong words are usage errors, not exits."""
    with pytest.raises(errors.UsageError, match=said):
        backend.Backend.call(FakeBackend(tmp_path), line, "0c1f", lambda line: None)


def test_esc_stops_what_a_tool_ablates_and_no_tool_is_about_another_run(copied_run: Path) -> None:
    """Between two batches, or where it tells how far it is; before the open run has begun none is asked."""
    with kept_open(lambda: True), pytest.raises(errors.AblationStopped, match="between two batches"):
        registry.call("ablate", {"run": str(copied_run), "units": "m0.1,m0.2"})
    with pytest.raises(errors.AblationStopped, match="it was stopped"):
        backend.Backend().call("verify last", str(copied_run), print, lambda: True)
    with pytest.raises(errors.UsageError, match="that has begun"):
        backend.Backend().call("why m1.14", None, print)


# --- startup ----------------------------------------------------------------------------------------------


def test_the_app_starts_without_torch_or_the_engine(tmp_path: Path) -> None:
    """The first screen is drawn in a fresh process with no heavy package loaded."""
    program = (
        "import asyncio, sys\n"
        "from tui.terminal_app import MechaRuleApp\n"
        "async def main():\n"
        "    async with MechaRuleApp().run_test(size=(80, 24)) as pilot:\n"
        "        await pilot.pause(0.5)\n"
        "heavy = ('torch', 'transformers', 'transformer_lens', 'langgraph', 'xgboost', 'matplotlib', 'sklearn')\n"
        "first = [name for name in (*heavy, 'scipy', 'numpy') if name in sys.modules]\n"
        "asyncio.run(main())\n"
        "print(first, [name for name in heavy if name in sys.modules])\n"
    )
    environment = os.environ | {"MECHARULE_RUNS": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[] []"


def test_a_read_run_says_first_what_was_found(copied_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last turn, as the end of the run said it; questions asked before are no turns."""
    monkeypatch.setenv("MECHARULE_RUNS", str(copied_run.parent))
    ask(str(copied_run), "why does m1.14 flip?")
    session = Session()
    backend.Backend().read(copied_run.stem, session)
    *before, last = session.turns
    with opened(str(copied_run)) as run:
        told = in_short(run.findings, example_of(run))
    assert "For example" in told
    assert last.text == "\n".join(f"{part}. {said}" for part, said in told.items())
    assert not any("why does m1.14 flip?" in turn.text for turn in before)
