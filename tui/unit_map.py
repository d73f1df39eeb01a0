"""The map of a model: a cell for each head, or for each strip of a layer's units, with what is known of it.

Colour is for what is shown alone; it and everything else has a sign of its own, so that the map needs no colour.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partialmethod

from rich.text import Text
from textual.events import Click, Resize
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from mecharule_ops import nodes, numbers
from mecharule_ops.facts.fact import said
from mecharule_ops.state.board import OPEN, REACHES, RULED_OUT, TO_COME, Board, Layer, Place
from mecharule_ops.state.run_state import RunState
from tui import text_panes, words
from tui.found import judged_units

_LEVELS = " ▁▂▃▄▅▆▇█"
_MARKS = {"shown": "█", "suggestive": "◐", "open": "○"}
_HALF = 100
"""The strength that is half of the answers, in halves of a per cent."""
LEGEND = 12
"""Rows from which one says what the signs are."""
NAMES, ALL = 9, " all"
"""Columns for the names of rows; over what a layer as a whole does, at their end."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Some units of some layers."""

    layers: range
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Grid:
    """How a map of so many layers of so many units is cut into cells."""

    cells: tuple[tuple[Cell, ...], ...]
    """Rows from above; layers by their place among those searched."""
    step: int
    """Columns on the screen of one cell."""
    across_layers: bool

    @classmethod
    @lru_cache(8)
    def of(cls, layers: int, units: int, width: int, height: int) -> "Grid":
        """The finest grid of a map that fits so many columns and rows."""
        across = layers > height
        room = max(1, width if across else width - len(ALL))
        if across:
            columns, rows = _cut(layers, room), _cut(units, height)
            cells = tuple(tuple(Cell(c, r.start, r.stop) for c in columns) for r in rows)
        else:
            size = -(-units // min(max(1, height // max(1, layers)), -(-units // room)))
            columns = _cut(size, room)
            cells = tuple(
                tuple(Cell(at, r + c.start, min(r + c.stop, units)) for c in columns if r + c.start < units)
                for at in _cut(layers, layers)
                for r in range(0, units, size)
            )
        return cls(cells, max(1, min(3, room // max(1, len(columns)))), across)


def _cut(many: int, most: int) -> list[range]:
    parts = max(1, min(many, most))
    return [range(many * part // parts, many * (part + 1) // parts) for part in range(parts)]


class MapPane(Widget, can_focus=True):
    """The map, with a cursor that is moved by the arrows; its lines are made once a snapshot."""

    about = said("help.map")

    class Picked(Message):
        """The cursor was moved to another cell."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.state, self._tick = RunState(), 0
        self.units: Mapping[int, Layer] = {}
        self.place: Place | None = None
        self.at = (0, 0)
        """Row and column of the cursor."""
        self._layers: list[int] = []
        self._judged: dict[tuple[int, int], str] = {}
        """How sure it is of the units asked on answers kept aside, by layer and number, the surest first."""
        self._now: tuple[int, frozenset[int]] = (-1, frozenset())
        """Layer and units of the node asked last."""
        self._lines: dict[int, Text] = {}

    def show(self, state: RunState, board: Board, place: Place | None, tick: int = 0) -> None:
        """Draw a snapshot, where it is another."""
        if state is self.state and (place, tick) == (self.place, self._tick):
            return
        self.state, self.place, self._tick = state, place, tick
        self.units = board.places.get(place, {}) if place else {}
        self._layers = sorted(self.units)
        judged = [(nodes.Neuron.parse(one.neuron), one.certainty) for one in judged_units(state, place)]
        self._judged = {(unit.layer, unit.channel): certainty for unit, certainty in judged}
        self._now = -1, frozenset()
        if state.stage and state.stage.neuron and place and state.stage.neuron[0] == place.letter:
            unit = nodes.Neuron.parse(state.stage.neuron)
            self._now = unit.layer, frozenset({unit.channel})
        elif state.latest and not state.finished and place == board.place_of(state.latest[0]):
            key = board.key_of(*state.latest)
            if board.node(key).verdict is None:
                self._now = board.view(key.search).at.layer, frozenset(board.node(key).channels)
        self.on_resize()

    def on_resize(self, event: Resize | None = None) -> None:
        self._lines = {}
        self.refresh()

    @property
    def grid(self) -> Grid:
        """The cells at the size that the pane has."""
        units = max((len(layer.fates) for layer in self.units.values()), default=1)
        height = self.size.height - 2 - (self.size.height >= LEGEND)
        return Grid.of(len(self._layers), units, self.size.width - NAMES, max(1, height))

    @property
    def unit(self) -> str | None:
        """The unit of the cell under the cursor, the strongest of several."""
        if self.place is None or not self._layers:
            return None
        row = self.grid.cells[min(self.at[0], len(self.grid.cells) - 1)]
        cell = row[min(self.at[1], len(row) - 1)]
        units = [
            (of[unit], layer, unit)
            for layer, of in ((layer, self.units[layer].strengths) for layer in self._layers_of(cell))
            for unit in range(cell.begin, min(cell.end, len(of)))
        ]
        return str(nodes.Neuron(words.basis_of(self.place.letter), *max(units)[1:])) if units else None

    def _layers_of(self, cell: Cell) -> list[int]:
        return self._layers[cell.layers.start : cell.layers.stop]

    def render_line(self, y: int) -> Strip:
        if not self.units:
            return text_panes.drawn(self, Text(said("map.begins") if y == 0 else "", "dim"))
        line = self._lines.get(y) or self._lines.setdefault(y, self._line(self.grid, y))
        if y - 1 == self.at[0] and self.has_focus:
            begin = NAMES + self.at[1] * self.grid.step
            line = line.copy()
            line.stylize("reverse", begin, begin + 1)
        return text_panes.drawn(self, line)

    def _line(self, grid: Grid, y: int) -> Text:
        text, last = Text(no_wrap=True), len(grid.cells)
        if y == 0:
            return self._axis(grid)
        if y <= last:
            row = grid.cells[y - 1]
            text.append(f"{self._row_name(grid, row[0]):<{NAMES - 1}.{NAMES - 1}} ", "dim")
            for cell in row:
                glyph, style = self._glyph(cell)
                text.append(f"{glyph:<{grid.step}}", style)
            return text if grid.across_layers or row[0].begin else text.append(f" {self._whole(row[0])}")
        if y == last + 1 and grid.across_layers:
            text.append(f"{'all':<{NAMES}}", "dim")
            return text.append("".join(f"{self._whole(cell):<{grid.step}}" for cell in grid.cells[0]))
        return self._legend() if LEGEND <= self.size.height == y + 1 else text

    def _row_name(self, grid: Grid, cell: Cell) -> str:
        if not grid.across_layers:
            return f"   +{cell.begin}" if cell.begin else f"layer {self._layers[cell.layers[0]]}"
        mark = "head " if self.place and self.place.letter == "a" else ""
        return f"{mark}{cell.begin}" + (f"–{cell.end - 1}" if cell.begin + 1 < cell.end <= 1000 else "")

    def _axis(self, grid: Grid) -> Text:
        """Numbers of layers, or of units, every few cells."""
        noun = words.noun_of(self.place.letter) if self.place else ""
        text = f"{'layer' if grid.across_layers else noun:<{NAMES}}"
        for column, cell in enumerate(grid.cells[0]):
            number = str(self._layers[cell.layers[0]] if grid.across_layers else cell.begin)
            fits = len(number) <= (len(grid.cells[0]) - column) * grid.step
            if len(text) <= NAMES + column * grid.step and column % 5 == 0 and fits:
                text = f"{text:<{NAMES + column * grid.step}}{number}"
        if not grid.across_layers:
            text = f"{text:<{NAMES + len(grid.cells[0]) * grid.step}}{ALL}"
        return Text(text, "dim")

    def _whole(self, cell: Cell) -> str:
        """How much changes without a cell's whole layers, as a height."""
        assert self.place is not None
        names = [(self.place.regime, f"{self.place.letter}{layer}") for layer in self._layers_of(cell)]
        found = [self.state.whole[name] for name in names if name in self.state.whole]
        return _LEVELS[max(1, round(8 * max(found)))] if found else "·"

    def _glyph(self, cell: Cell) -> tuple[str, str]:
        """The sign of a cell and its style."""
        layers, (now, tested), begin, end = self._layers_of(cell), self._now, cell.begin, cell.end
        is_now = now in layers and not tested.isdisjoint(range(begin, end))
        judged = [self._judged[at] for at in self._judged if at[0] in layers and begin <= at[1] < end]
        count = {
            fate: sum(self.units[layer].fates.count(fate, begin, end) for layer in layers)
            for fate in (TO_COME, RULED_OUT, OPEN, REACHES)
        }
        style = ""
        if judged:
            glyph, style = _MARKS[judged[0]], words.JUDGED[judged[0]].style
        elif count[REACHES]:
            strengths = (self.units[layer].strengths[begin:end] for layer in layers)
            glyph = "▓" if max(map(max, filter(None, strengths))) >= _HALF else "▒"
        elif is_now:
            glyph = "░"
        elif count[OPEN]:
            glyph = "◦"
        else:
            glyph, style = "∙" if count[RULED_OUT] > count[TO_COME] else "·", "dim"
        return glyph, f"{style} reverse" if is_now and self._tick % 2 == 0 else style

    def _legend(self) -> Text:
        tau = numbers.percent(self.state.thresholds.tau)
        now = () if self.state.finished else (f"▓▒ {tau} of a half", "░ now")
        text = Text().append("█ shown", words.JUDGED["shown"].style)
        for sign in ("◐ suggestive", "○ open", *now, "◦ not ruled out", "∙ ruled out", "· not tested"):
            text.append(f"  {sign}" * (text.cell_len + len(sign) + 2 <= self.size.width), "dim")
        return text

    def _step(self, rows: int, columns: int) -> None:
        self._go(self.at[0] + rows, self.at[1] + columns)

    def _go(self, row: int, column: int) -> None:
        cells = self.grid.cells
        if cells:
            before, row = self.at[0], min(max(row, 0), len(cells) - 1)
            self.at = row, min(max(column, 0), len(cells[row]) - 1)
            self.refresh(*(Region(0, 1 + at, self.size.width, 1) for at in {before, row}))
            self.post_message(self.Picked())

    key_up = partialmethod(_step, -1, 0)
    key_down = partialmethod(_step, 1, 0)
    key_left = partialmethod(_step, 0, -1)
    key_right = partialmethod(_step, 0, 1)
    key_ctrl_home = partialmethod(_step, -1000, 0)
    key_ctrl_end = partialmethod(_step, 1000, 0)

    def on_click(self, event: Click) -> None:
        self._go(event.y - 1, (event.x - NAMES) // self.grid.step)
