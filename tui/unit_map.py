"""The map of a model: a cell for each head, or for each strip of a layer's units, with what is known of it.

Colour is for what is shown alone; everything else has a sign of its own, so that the map needs no colour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rich.style import Style
from rich.text import Text
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from mecharule_ops.state.board import OPEN, REACHES, RULED_OUT, TO_COME, Board, Layer, Place
from mecharule_ops.state.run_state import RunState
from tui.words import noun_of, percent

MAP_HELP = (
    "The model: layers across, heads or strips of a layer's units down (or the other way where there are few "
    "layers). A cell fills with every verdict. Shading says how many answers of the better half change without the "
    "strongest unit in it; green is for units shown on answers kept aside, and for nothing else. Arrows move, Enter "
    "opens the card."
)
_LEVELS = " ▁▂▃▄▅▆▇█"
_SHADES = ((120, "█"), (80, "▓"), (0, "▒"))
LEGEND = 12
"""Rows from which one says what the signs are."""
MARK = Style(reverse=True)


@dataclass(frozen=True, slots=True)
class Cell:
    """Some units of some layers."""

    layers: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Grid:
    """How a map of so many layers of so many units is cut into cells."""

    cells: tuple[tuple[Cell, ...], ...]
    """Rows from above."""
    step: int
    """Columns on the screen of one cell."""
    names: tuple[str, ...]
    across_layers: bool

    @classmethod
    @lru_cache(8)
    def of(cls, layers: tuple[int, ...], units: int, width: int, height: int, mark: str) -> Grid:
        """The finest grid of a map that fits so many columns and rows."""
        across = len(layers) > height
        room = max(1, width)
        if across:
            columns, rows = _cut(len(layers), room), _cut(units, height)
            cells = tuple(
                tuple(Cell(tuple(layers[c.start : c.stop]), r.start, r.stop) for c in columns) for r in rows
            )
            names = tuple(
                f"{mark}{r.start}" if len(r) == 1 else f"{mark}{r.start}–{r.stop - 1}" for r in rows
            )
        else:
            lines = _cut(units, min(max(1, height // max(1, len(layers))), -(-units // room)))
            columns = _cut(len(lines[0]), room)
            cells = tuple(
                tuple(
                    Cell((layer,), line.start + c.start, min(line.start + c.stop, line.stop)) for c in columns
                )
                for layer in layers
                for line in lines
            )
            names = tuple("" if line.start else f"layer {layer}" for layer in layers for line in lines)
        return cls(cells, max(1, min(3, room // max(1, len(columns)))), names, across)


def _cut(many: int, most: int) -> list[range]:
    parts = max(1, min(many, most))
    return [range(many * part // parts, many * (part + 1) // parts) for part in range(parts)]


class MapPane(Widget, can_focus=True):
    """The map, with a cursor that is moved by the arrows."""

    about = MAP_HELP
    NAMES = 9
    """Columns for the names of rows."""

    class Picked(Message):
        """The cursor was moved to another cell."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.state = RunState()
        self.units: Mapping[int, Layer] = {}
        self.place: Place | None = None
        self.at = (0, 0)
        """Row and column of the cursor."""
        self._tick = 0
        self._shown: set[tuple[int, int]] = set()
        self._now: tuple[int, frozenset[int]] = (-1, frozenset())
        """Layer and units of the node asked last."""

    def show(self, state: RunState, board: Board, place: Place | None, tick: int = 0) -> None:
        """Draw a snapshot."""
        from mecharule_ops.types import Neuron

        self.state, self.place, self._tick = state, place, tick
        self.units = board.places.get(place, {}) if place else {}
        names = [
            neuron
            for (regime, neuron), judged in state.judged.items()
            if judged.rank and place and regime == place.regime and neuron.startswith(place.letter)
        ]
        units = map(Neuron.parse, names)
        self._now = -1, frozenset()
        if state.latest and place == board.place_of(state.latest[0]):
            key = board.key_of(*state.latest)
            if board.node(key).verdict is None and not state.finished:
                self._now = board.view(key.search).layer, frozenset(board.units_of(key))
        self._shown = {(unit.layer, unit.channel) for unit in units}
        self.refresh()

    @property
    def grid(self) -> Grid:
        """The cells at the size that the pane has."""
        units = max((len(layer.fates) for layer in self.units.values()), default=1)
        mark = "head " if self.place and self.place.letter == "a" else ""
        room, height = self.size.width - self.NAMES, self.size.height - 2 - self._has_legend
        return Grid.of(tuple(sorted(self.units)), units, room, max(1, height), mark)

    @property
    def unit(self) -> str | None:
        """The only unit of the cell under the cursor, or the strongest there that reaches τ."""
        cell = self._cell
        if cell is None or self.place is None:
            return None
        from mecharule_ops.bases import Basis
        from mecharule_ops.types import Neuron

        alone = (len(cell.layers), cell.end - cell.begin) == (1, 1)
        found = [
            (strength, layer, cell.begin + at)
            for layer in cell.layers
            for at, strength in enumerate(self.units[layer].strengths[cell.begin : cell.end])
            if strength or alone
        ]
        basis = next(each for each in Basis if each.letter == self.place.letter)
        return str(Neuron(basis, *max(found)[1:])) if found else None

    @property
    def _cell(self) -> Cell | None:
        cells = self.grid.cells
        row, column = self.at
        return cells[row][column] if row < len(cells) and column < len(cells[row]) else None

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if not self.units:
            text = Text("cells fill with the search" if y == 0 else "", "dim")
        else:
            text = self._line(self.grid, y)
        strip = Strip(list(text.render(self.app.console)))
        return strip.adjust_cell_length(width, self.rich_style).apply_style(self.rich_style)

    def _line(self, grid: Grid, y: int) -> Text:
        rows = len(grid.cells)
        if y == 0:
            return self._axis(grid)
        if y <= rows:
            text = Text().append(f"{grid.names[y - 1]:<{self.NAMES - 1}.{self.NAMES - 1}} ", "dim")
            for column, cell in enumerate(grid.cells[y - 1]):
                text.append_text(self._glyph(cell, (y - 1, column), grid.step))
            whole = (
                ""
                if grid.across_layers or not grid.names[y - 1]
                else self._whole(grid.cells[y - 1][0].layers)
            )
            return text.append(whole)
        if y == rows + 1 and grid.across_layers:
            text = Text().append(f"{'all':<{self.NAMES}}", "dim")
            for cell in grid.cells[0]:
                text.append(f"{self._whole(cell.layers):<{grid.step}}")
            return text
        return self._legend() if self._has_legend and y == self.size.height - 1 else Text()

    @property
    def _has_legend(self) -> bool:
        return self.size.height >= LEGEND

    def _axis(self, grid: Grid) -> Text:
        """Numbers of layers, or of units, every few cells."""
        text = f"{'layer' if grid.across_layers else noun_of(self.place.letter) if self.place else '':<{self.NAMES}}"
        for column, cell in enumerate(grid.cells[0]):
            number = str(cell.layers[0] if grid.across_layers else cell.begin)
            if len(text) <= self.NAMES + column * grid.step and (column * grid.step) % (5 * grid.step) == 0:
                text = f"{text:<{self.NAMES + column * grid.step}}{number}"
        return Text(text, "dim")

    def _whole(self, layers: Sequence[int]) -> str:
        """How much changes without whole layers, as a height."""
        assert self.place is not None
        known = [self.state.whole.get((self.place.regime, f"{self.place.letter}{layer}")) for layer in layers]
        found = [share for share in known if share is not None]
        return _LEVELS[max(1, round(8 * max(found)))] if found else "·"

    def _glyph(self, cell: Cell, at: tuple[int, int], step: int) -> Text:
        glyph, style = self._sign(cell)
        at_work = any(self.units[layer].at_work.find(1, cell.begin, cell.end) >= 0 for layer in cell.layers)
        layer, now = self._now
        if layer in cell.layers and self._tick % 2 == 0 and not now.isdisjoint(range(cell.begin, cell.end)):
            style = f"{style} reverse".strip()
        text = Text("░" if at_work and glyph in "·∙◦" else glyph, style)
        if at == self.at and self.has_focus:
            text.stylize(MARK)
        return text.append(" " * (step - 1))

    def _sign(self, cell: Cell) -> tuple[str, str]:
        """The sign of a cell and its style."""
        counts, strongest = [0] * 4, 0
        for number in cell.layers:
            layer = self.units[number]
            for fate in (TO_COME, RULED_OUT, OPEN, REACHES):
                counts[fate] += layer.fates.count(fate, cell.begin, cell.end)
            strongest = max(strongest, max(layer.strengths[cell.begin : cell.end], default=0))
        if counts[REACHES]:
            shown = any(layer in cell.layers and cell.begin <= unit < cell.end for layer, unit in self._shown)
            return next(sign for least, sign in _SHADES if strongest >= least), "bold green" if shown else ""
        if counts[OPEN]:
            return "◦", ""
        return ("∙", "dim") if counts[RULED_OUT] > counts[TO_COME] else ("·", "dim")

    def _legend(self) -> Text:
        tau = percent(self.state.thresholds.tau)
        signs = f" shown  █▓▒ reaches {tau}  ◦ not ruled out  ∙ ruled out  ░ now"
        if self.size.width <= len(signs):
            signs = f" shown █▓▒ {tau} ◦ open ∙ ruled out ░ now"
        return Text().append("█", "bold green").append(signs, "dim")

    def _step(self, rows: int, columns: int) -> None:
        cells = self.grid.cells
        if not cells:
            return
        row = min(max(self.at[0] + rows, 0), len(cells) - 1)
        self.at = row, min(max(self.at[1] + columns, 0), len(cells[row]) - 1)
        self.refresh()
        self.post_message(self.Picked())

    def move(self, lines: int) -> None:
        """Move the cursor by rows."""
        self._step(lines, 0)

    def key_up(self) -> None:
        self._step(-1, 0)

    def key_down(self) -> None:
        self._step(1, 0)

    def key_left(self) -> None:
        self._step(0, -1)

    def key_right(self) -> None:
        self._step(0, 1)

    def on_click(self, event: Click) -> None:
        grid = self.grid
        self.at = max(0, event.y - 1), max(0, (event.x - self.NAMES) // grid.step)
        self._step(0, 0)
