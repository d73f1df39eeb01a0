"""Two runs, or two regimes of one, unit by unit: which localized units they share and how strong each is."""

from __future__ import annotations

from dataclasses import dataclass

from mecharule_ops.events import AgonistFound
from mecharule_ops.plain_text import plain
from mecharule_ops.state.run_state import RunState
from tui.units import strongest
from tui.words import arrow, rate, signed_rate

HEADER = ("unit", "flips", "in", "E left", "E right", "difference", "rule left", "rule right")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a comparison."""

    name: str
    state: RunState
    regime: int | None = None
    """Only this regime, or both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The rows of the table and the sentence above it."""

    sentence: str
    rows: tuple[tuple[str, ...], ...]


def compare(left: Side, right: Side) -> Comparison:
    """Units by the larger of their two strengths; a unit is one neuron of one regime."""
    match_regimes = left.regime is None and right.regime is None
    ours, theirs = _units(left, match_regimes), _units(right, match_regimes)
    both = ours.keys() & theirs.keys()
    every = sorted(
        ours.keys() | theirs.keys(), key=lambda key: (-_larger(ours.get(key), theirs.get(key)), key)
    )
    jaccard = rate(len(both) / len(every)) if every else "undefined, nothing was localized"
    sentence = (
        f"{plain(left.name)}: {len(ours)} localized · {plain(right.name)}: {len(theirs)} localized · "
        f"shared {len(both)} · Jaccard {jaccard}"
    )
    rows = tuple(_row(key, ours.get(key), theirs.get(key), left, right) for key in every)
    return Comparison(sentence=sentence, rows=rows)


def _units(side: Side, match_regimes: bool) -> dict[tuple[str, int], AgonistFound]:
    found = [agonist for agonist in strongest(side.state) if side.regime in (None, agonist.regime)]
    return {(agonist.neuron, agonist.regime if match_regimes else -1): agonist for agonist in found}


def _larger(ours: AgonistFound | None, theirs: AgonistFound | None) -> float:
    return max(found.strength for found in (ours, theirs) if found)


def _row(
    key: tuple[str, int], ours: AgonistFound | None, theirs: AgonistFound | None, left: Side, right: Side
) -> tuple[str, ...]:
    where = "both" if ours and theirs else "left only" if ours else "right only"
    difference = signed_rate(theirs.strength - ours.strength) if ours and theirs else "–"
    return (
        plain(key[0]),
        arrow(key[1]) if key[1] >= 0 else "each",
        where,
        rate(ours.strength if ours else None),
        rate(theirs.strength if theirs else None),
        difference,
        _rule(left, ours),
        _rule(right, theirs),
    )


def _rule(side: Side, found: AgonistFound | None) -> str:
    rule = side.state.rules.get((found.regime, found.neuron)) if found else None
    return plain(rule.rule) if rule and rule.predicts else ""
