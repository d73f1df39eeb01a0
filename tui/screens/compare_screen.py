"""Compare: two runs, or the two regimes of one, unit by unit: which they share, and how strong each is."""

from __future__ import annotations

from dataclasses import dataclass

from textual.app import ComposeResult

from mecharule_ops.events import AgonistFound
from mecharule_ops.plain_text import plain
from mecharule_ops.state.run_state import RunState
from tui.screens.common import CommandScreen, Line, hints
from tui.session import ranked
from tui.text_panes import TextTable
from tui.words import arrow, rate, signed_rate

COMPARE_HELP = (
    "Localized units of both sides: the shown first, by the bound of what they flip, the others by name. The Jaccard "
    "index is the share that both sides localized of those that both searched."
)
NOT_SEARCHED = "not searched"
HEADER = ("unit", "flips", "in", "shown", "E left", "E right", "difference", "rule left", "rule right")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a comparison."""

    name: str
    state: RunState
    regime: int | None = None
    """Only this regime, or both."""

    def units(self, match_regimes: bool) -> dict[tuple[str, int], AgonistFound]:
        """Its localized units by name and regime; regime −1 where those of both sides are not to match."""
        found = [unit for unit in ranked(self.state) if self.regime in (None, unit.regime)]
        return {(unit.neuron, unit.regime if match_regimes else -1): unit for unit in found}

    def bound(self, found: AgonistFound | None) -> float:
        """The lower bound of what a shown unit flips; 0 of any other."""
        judged = self.state.judged.get((found.regime, found.neuron)) if found else None
        return judged.lower if judged and judged.rank else 0.0

    def searched(self, found: AgonistFound) -> bool:
        """Whether its search decided the unit that the other side found: what it did not search it says nothing of."""
        from mecharule_ops.types import Neuron

        regime = found.regime if self.regime is None else self.regime
        return self.state.searched(Neuron.parse(found.neuron), regime)

    def rule(self, found: AgonistFound | None) -> str:
        """The rule that predicts a unit's flips; empty without one."""
        rule = self.state.rules.get((found.regime, found.neuron)) if found else None
        return plain(rule.rule) if rule and rule.predicts else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The rows of the table and the sentence above it."""

    sentence: str
    rows: tuple[tuple[str, ...], ...]


def compare(left: Side, right: Side) -> Comparison:
    """Units by the larger bound of the sides that show them; a unit is one neuron of one regime."""
    match_regimes = left.regime is None and right.regime is None
    ours, theirs = left.units(match_regimes), right.units(match_regimes)
    both = ours.keys() & theirs.keys()

    def bounds(key: tuple[str, int]) -> tuple[float, float]:
        return left.bound(ours.get(key)), right.bound(theirs.get(key))

    every = sorted(ours.keys() | theirs.keys(), key=lambda key: (-max(bounds(key)), key))
    unsearched = {key for key in ours.keys() - both if not right.searched(ours[key])}
    unsearched |= {key for key in theirs.keys() - both if not left.searched(theirs[key])}
    of_both = len(every) - len(unsearched)
    nothing = (
        "undefined, nothing that both searched was localized" if every else "undefined, nothing was localized"
    )
    jaccard = rate(len(both) / of_both) if of_both else nothing
    not_searched = f" · {len(unsearched)} not searched by the other" if unsearched else ""
    sentence = (
        f"{plain(left.name)}: {len(ours)} localized · {plain(right.name)}: {len(theirs)} localized · "
        f"shared {len(both)} · Jaccard {jaccard}{not_searched}"
    )
    rows = []
    for key in every:
        one, other, (here, there) = ours.get(key), theirs.get(key), bounds(key)
        shown = here > 0, there > 0
        only, absent = ("", NOT_SEARCHED) if key in unsearched else (" only", rate(None))
        cells = (
            plain(key[0]),
            arrow(key[1]) if key[1] >= 0 else "each",
            "both" if one and other else f"{'left' if one else 'right'}{only}",
            {(True, True): "both", (True, False): "left", (False, True): "right"}.get(shown, "–"),
            rate(one.strength) if one else absent,
            rate(other.strength) if other else absent,
            signed_rate(other.strength - one.strength if one and other else None),
            left.rule(one),
            right.rule(other),
        )
        rows.append(cells)
    return Comparison(sentence=sentence, rows=tuple(rows))


class CompareScreen(CommandScreen):
    """One table of both sides."""

    NAME = "compare"

    def __init__(self, left: Side, right: Side) -> None:
        super().__init__()
        self.comparison = compare(left, right)

    def compose(self) -> ComposeResult:
        yield Line(" Compare", classes="title")
        yield Line(f" {self.comparison.sentence}", id="sentence")
        yield TextTable(HEADER, COMPARE_HELP, id="comparison")
        yield Line(hints("compare", ("copy", "save", "back", "help")), classes="status")

    def on_mount(self) -> None:
        table = self.query_one(TextTable)
        table.focus()
        self.call_after_refresh(table.show, self.comparison.rows)

    def do_copy(self) -> None:
        selected = self.query_one(TextTable).selected
        self.app.copy("comparison", "\t".join(selected) if selected else self.comparison.sentence)

    def do_save(self) -> None:
        self.app.save_table("comparison", HEADER, self.comparison.rows)
