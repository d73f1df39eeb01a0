"""Every command once: the palette, the slash commands, the keys and the help are made from this table.

A command `name` is carried out by the method `do_name` of the screen (dashes as underscores), or of the app.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from textual.binding import Binding, BindingType

EVERYWHERE = frozenset({"home", "new", "run", "replay", "compare", "ledger", "repair"})
_VIEWS = frozenset({"run", "replay"})
_LISTS = _VIEWS | {"home", "compare", "ledger", "repair"}
_TABLES = _VIEWS | {"compare", "ledger", "repair"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One thing a person can do."""

    name: str
    """The word after the slash."""
    help: str
    """One line, as an order."""
    keys: tuple[str, ...] = ()
    screens: frozenset[str] = EVERYWHERE
    takes: str = ""
    """What may follow the slash command; empty when it takes nothing."""
    first: bool = False
    """True when the key works while text is typed, and before a key pressed right after it is handed out."""

    @property
    def method(self) -> str:
        return f"do_{self.name.replace('-', '_')}"


def _at(*screens: str) -> frozenset[str]:
    return frozenset(screens)


COMMANDS: tuple[Command, ...] = (
    Command(name="help", help="explain the focused widget and list the keys", keys=("f1",), first=True),
    Command(
        name="back",
        help="close what is open, stop the model or (twice) the search, or go back",
        keys=("escape",),
    ),
    Command(
        name="interrupt", help="stop the search, or quit when pressed twice", keys=("ctrl+c",), first=True
    ),
    Command(name="quit", help="end the work, keep the checkpoint, leave", keys=("ctrl+q",), first=True),
    Command(
        name="demo",
        help="run the demo: bundled model, no key, no download",
        keys=("d",),
        screens=_at("home"),
    ),
    Command(name="new", help="set up a new run", keys=("n",), screens=_at("home")),
    Command(name="open", help="open the run under the cursor", keys=("o",), screens=_at("home")),
    Command(
        name="resume",
        help="continue this run from its checkpoint",
        keys=("ctrl+r",),
        screens=_at("home", "run"),
    ),
    Command(name="mark", help="mark the run to be compared", keys=("space",), screens=_at("home")),
    Command(
        name="compare-runs",
        help="compare two marked runs, or the regimes of this one",
        keys=("c",),
        screens=_at("home", "run"),
    ),
    Command(name="refresh", help="read the list of runs again", keys=("r",), screens=_at("home")),
    Command(
        name="start", help="start the run as set up here", keys=("ctrl+s",), screens=_at("new"), first=True
    ),
    Command(name="pane-chat", help="go to the chat", keys=("f2",), screens=_at("run"), first=True),
    Command(name="pane-tree", help="go to the CHA tree", keys=("f3",), screens=_VIEWS, first=True),
    Command(name="pane-rules", help="go to the rules table", keys=("f4",), screens=_VIEWS, first=True),
    Command(name="pane-figures", help="go to the figures", keys=("f5",), screens=_VIEWS, first=True),
    Command(name="pane-card", help="go to the neuron card", keys=("f6",), screens=_VIEWS, first=True),
    Command(name="down", help="move down", keys=("j",), screens=_LISTS),
    Command(name="up", help="move up", keys=("k",), screens=_LISTS),
    Command(name="top", help="go to the first line", keys=("g",), screens=_LISTS),
    Command(name="bottom", help="go to the last line and follow it", keys=("G",), screens=_LISTS),
    Command(name="expand", help="open or close the line under the cursor", keys=("space",), screens=_VIEWS),
    Command(
        name="next-layer",
        help="show the next layer or regime",
        keys=("right_square_bracket",),
        screens=_VIEWS,
    ),
    Command(
        name="previous-layer",
        help="show the layer or regime before",
        keys=("left_square_bracket",),
        screens=_VIEWS,
    ),
    Command(name="follow", help="follow the search again, wherever it is", keys=("f",), screens=_VIEWS),
    Command(
        name="freeze", help="freeze or release the view; the work goes on", keys=("p",), screens=_at("run")
    ),
    Command(
        name="search",
        help="find a unit in the tree, filter the rules",
        keys=("slash",),
        screens=_VIEWS,
        takes="TEXT",
    ),
    Command(name="sort", help="sort the rules by the next column", keys=("s",), screens=_VIEWS),
    Command(
        name="maximise",
        help="give the focused pane the whole screen, or take it back",
        keys=("z",),
        screens=_VIEWS,
    ),
    Command(
        name="copy",
        help="copy the line or card; a file has it too",
        keys=("y",),
        screens=_TABLES,
    ),
    Command(name="save", help="write the table to files, and say where", keys=("e",), screens=_TABLES),
    Command(name="report", help="write the HTML report and open it", keys=("o",), screens=_at("run")),
    Command(name="why-unit", help="ask why the unit under the cursor flips", keys=("w",), screens=_at("run")),
    Command(name="verify-unit", help="verify the certificate of this unit", keys=("v",), screens=_at("run")),
    Command(
        name="tool-output",
        help="show or hide what tools printed",
        keys=("ctrl+o",),
        screens=_at("run"),
        first=True,
    ),
    Command(
        name="ledger",
        help="read the hypothesis ledger: what was predicted, and what came out",
        keys=("h",),
        screens=_VIEWS,
    ),
    Command(
        name="repairs",
        help="read the repairs: right answers before and after, beside controls, with the gates",
        keys=("r",),
        screens=_at("run"),
    ),
    Command(
        name="next-repair",
        help="show the repair made before this one",
        keys=("right_square_bracket",),
        screens=_at("repair"),
    ),
    Command(
        name="previous-repair",
        help="show the repair made after this one",
        keys=("left_square_bracket",),
        screens=_at("repair"),
    ),
    Command(
        name="make-repair",
        help="make a repair of this run; its price is said first",
        keys=("m",),
        screens=_at("repair"),
    ),
    Command(name="replay", help="scrub through the search", keys=("t",), screens=_at("run")),
    Command(name="forward", help="one event forward", keys=("right",), screens=_at("replay")),
    Command(name="backward", help="one event back", keys=("left",), screens=_at("replay")),
    Command(
        name="leap", help="a twentieth forward", keys=("shift+right", "full_stop"), screens=_at("replay")
    ),
    Command(name="leap-back", help="a twentieth back", keys=("shift+left", "comma"), screens=_at("replay")),
    Command(name="start-of-run", help="to the first event", keys=("home",), screens=_at("replay")),
    Command(name="end-of-run", help="to the last event", keys=("end",), screens=_at("replay")),
    Command(
        name="why-opened",
        help="say why the group under the cursor was opened",
        keys=("w",),
        screens=_at("replay"),
    ),
)


def commands_of(screen: str) -> tuple[Command, ...]:
    """The commands of a screen, in the order of the table."""
    return tuple(command for command in COMMANDS if screen in command.screens)


def command_named(name: str, screen: str) -> Command | None:
    """The command of a screen by its slash word."""
    return next((command for command in commands_of(screen) if command.name == name), None)


def bindings_of(screen: str, only: Collection[str] | None = None) -> list[BindingType]:
    """The key bindings of a screen's commands, or of some of them."""
    return [
        Binding(
            ",".join(command.keys),
            f"command('{command.name}')",
            command.help,
            show=False,
            priority=command.first,
        )
        for command in commands_of(screen)
        if command.keys and (only is None or command.name in only)
    ]
