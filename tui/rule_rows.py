"""The rules table: a row a rule of a localized unit, sortable, filterable, and written as CSV or Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mecharule_ops.plain_text import plain
from mecharule_ops.state.run_state import RunState
from tui.session import known_unit, ranked
from tui.words import arrow, rate, signed_rate

if TYPE_CHECKING:
    from mecharule_ops.findings.records import Findings
    from mecharule_ops.rules.families import FamilyRule

_COLUMNS: tuple[tuple[str, Callable[[Any], str]], ...] = (
    ("unit", str),
    ("flips", arrow),
    ("at least", rate),
    ("E", rate),
    ("MCC", rate),
    ("trees", rate),
    ("family", str),
    ("in words", str),
    ("rule", lambda rule: rule or "none predicts"),
    ("reads", str),
    ("Sel", signed_rate),
    ("UCB", rate),
    ("MCC all", rate),
)
"""The titles in the order of a row's values, and how each is printed: `MCC` is the held-out score, `trees` that of
free-form trees of the same columns, `MCC all` the descriptive score of an anchored rule (HQ-F)."""
HEADER = tuple(title for title, _ in _COLUMNS)
AT_LEAST = HEADER.index("at least")
ANCHORED = "anchored"
"""In place of a family: the rule of the paper, learned after each search."""


class RuleLine(NamedTuple):
    """One rule of a localized unit, or that it has none."""

    unit: str
    regime: int
    at_least: float | None
    """Lower bound of what a shown unit flips of answers kept aside; None of any other, which has no rank."""
    strength: float
    held_out: float | None = None
    trees: float | None = None
    family: str = ""
    in_words: str = ""
    rule: str = ""
    reads: str = ""
    """`prompt` or `output`, or what of the model's own run."""
    selectivity: float | None = None
    ucb: float | None = None
    full: float | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as printed, in the order of `HEADER`."""
        return tuple(printed(value) for value, (_, printed) in zip(self, _COLUMNS, strict=True))


def rule_rows(state: RunState, findings: Findings | None) -> tuple[RuleLine, ...]:
    """Every localized unit, the shown first: the rules of its account that predict, then the anchored one.

    Accounts are in the findings of a run that has ended; until then the anchored rules stand alone.
    """
    rows = list[RuleLine]()
    for agonist in ranked(state):
        judged = state.judged.get((agonist.regime, agonist.neuron))
        bare = RuleLine(
            unit=plain(agonist.neuron),
            regime=agonist.regime,
            at_least=judged.lower if judged and judged.rank else None,
            strength=agonist.strength,
            ucb=agonist.ucb,
            selectivity=agonist.signed_selectivity,
        )
        known = known_unit(findings, agonist.regime, agonist.neuron)
        families = known.account.families if known and known.account else ()
        own = [_of_family(bare, one) for one in families if one.rule]
        learned = state.rules.get((agonist.regime, agonist.neuron))
        rows += own
        if learned is None:
            rows += [] if own else [bare]
            continue
        shown = learned if learned.predicts else None
        rows.append(
            bare._replace(
                held_out=learned.held_out_mcc,
                family=ANCHORED,
                full=learned.full_mcc,
                reads="" if shown is None else "prompt" if shown.prompt_only else "output",
                in_words=plain(shown.words) if shown else "",
                rule=plain(shown.rule) if shown else "",
            )
        )
    return tuple(rows)


def _of_family(bare: RuleLine, one: FamilyRule) -> RuleLine:
    from mecharule_ops.rules.families import Family

    own_run = {Family.CLEAN_RUN: "clean run", Family.MECHANISM: "gradients"}
    return bare._replace(
        held_out=one.held_out.mcc if one.held_out else None,
        trees=one.free_form.mcc if one.free_form else None,
        family=one.family.value,
        in_words=plain(one.words) if one.rule else "",
        rule=plain(str(one.rule or "")),
        reads=own_run.get(one.family, "prompt" if one.prompt_only else "output"),
    )


def arranged(rows: Sequence[RuleLine], column: int, text: str) -> list[RuleLine]:
    """The rows that contain a text, by one column: numbers from the largest, words from A; blanks last."""
    wanted = text.casefold()
    kept = [row for row in rows if wanted in " ".join(row.cells).casefold()]
    return sorted(kept, key=lambda row: _order(row[column]))


def _order(value: str | float | None) -> tuple[bool, float, str]:
    if value is None or value == "":
        return True, 0.0, ""
    return (False, 0.0, value) if isinstance(value, str) else (False, -value, "")
