"""Flips counted: units by a condition, by the values of a column, among some records, two units paired; and records.

Each cell is k of n with an exact interval. Train records are free to look at; a look at held-out ones is counted, since
whoever reads a verdict on them should know how often they were read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.confidence import difference_interval, lower_bound, upper_bound
from mecharule_ops.errors import UsageError
from mecharule_ops.facts.claims import looks_words
from mecharule_ops.facts.fact import Fact, fact
from mecharule_ops.findings.controls import holm
from mecharule_ops.mcnemar import mcnemar_p
from mecharule_ops.numbers import percent
from mecharule_ops.pages.document import Table, column
from mecharule_ops.plain_text import last_line, plain
from mecharule_ops.rules.in_words import column_from_words
from mecharule_ops.rules.interval import mcc_interval
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import find_certificate, regime_for
from mecharule_ops.run.tabulating import AMONG, Part, columns_of, count_look, fires, forwards_missing
from mecharule_ops.thresholds import ALPHA
from mecharule_ops.types import FlipCount, Neuron
from tools._asked import condition_of, records_among, unit_and_regime, units_of
from tools._tables import shown
from tools.arguments import RecordsArguments, TabulateArguments
from tools.result import About, Priced, Tell, of_facts

MOST_VALUES = 12
"""Distinct values of a column that are told apart; a column of more numbers is cut at its quartiles."""


def tabulate(run: Run, given: TabulateArguments, tell: Tell) -> Priced:
    """Flips of each unit in each cell. Raises `UsageError` for a condition or column that the records do not have.

    Cost: flips that are not stored yet.
    """
    if given.by is not None:
        given = given.model_copy(update={"by": _by_words(run, given.by)})
    units = units_of(run, given.units)
    part, regime = Part(given.records), regime_for(run, units[0], given.regime)
    positions = records_among(run, regime, part, given.among)
    yield sum(forwards_missing(run, (unit,), positions) for unit in units)
    cells = dict(_cells(run, given, positions))
    flips = {unit: run.flips([(unit,)], positions, regime)[0] for unit in units}
    facts: list[Fact] = []
    for unit in units:
        facts += _of_unit(run, unit, part, cells, flips[unit], given.where)
    if given.paired:
        facts += _paired(run, part, flips)
    if part is Part.HELD_OUT:
        among = "" if given.among is None else f"{AMONG}{condition_of(run, given.among)}"
        told = (given.where and str(condition_of(run, given.where)), given.by)
        for unit in units:
            for looked in list(filter(None, told)) or ["all"]:
                count_look(run, str(unit), regime, f"{looked}{among}", "tabulate")
            facts.append(fact(looks_words(run, str(unit), regime), f"run:{run.id}", unit=unit))
    return of_facts(facts)


def _cells(
    run: Run, given: TabulateArguments, positions: Int[np.ndarray, " record"]
) -> Iterator[tuple[str, Bool[np.ndarray, " record"]]]:
    """The name of each cell and which of the records are in it."""
    if given.where is None and given.by is None:
        yield "all", np.ones(len(positions), bool)
    if given.where is not None:
        holds = fires(run, condition_of(run, given.where))[positions]
        yield given.where, holds
        yield f"not ({given.where})", ~holds
    if given.by is not None:
        columns = columns_of(run)
        yield from _by(given.by, columns[given.by][positions])


def _by_words(run: Run, asked: str) -> str:
    """The column of that name or of those words. Raises `UsageError`."""
    if (name := column_from_words(asked, columns := [*columns_of(run)], run.task)) not in columns:
        raise UsageError(f"expected a column of {', '.join(columns)}; got {asked!r}")
    return name


def _by(name: str, values: np.ndarray) -> Iterator[tuple[str, Bool[np.ndarray, " record"]]]:
    distinct = np.unique(values)
    if len(distinct) <= MOST_VALUES:
        yield from ((f"{name} = {value}", values == value) for value in distinct.tolist())
    elif values.dtype.kind in "iuf":
        cuts = np.unique(np.quantile(values, [0.25, 0.5, 0.75], method="inverted_cdf")).tolist()
        for low, high in pairwise([-np.inf, *cuts, np.inf]):
            yield f"{low:g} < {name} ≤ {high:g}", (values > low) & (values <= high)
    else:
        told = f"{name} has {len(distinct):,} texts"
        raise UsageError(f"expected a column of numbers, or of at most {MOST_VALUES} values; {told}")


def _of_unit(
    run: Run,
    unit: Neuron,
    part: Part,
    cells: dict[str, Bool[np.ndarray, " record"]],
    flips: Bool[np.ndarray, " record"],
    where: str | None,
) -> Iterator[Fact]:
    """A fact a cell, and for a condition the difference of its two sides and what it is worth as a rule."""
    of = About(f"unit.{unit}.{part}", f"run:{run.id}", unit)
    counts = {
        name: FlipCount(flips=int(flips[inside].sum()), n=int(inside.sum())) for name, inside in cells.items()
    }
    for name, count in counts.items():
        at = "" if name == "all" else f" where {name}"
        low, high = (bound(count.flips, count.n, ALPHA / 2) for bound in (lower_bound, upper_bound))
        value = {"flips": count.flips, "n": count.n, "low": low, "high": high}
        parts: dict[str, Any] = {"rate": percent(count.flip_rate) if count.n else "", "at": at, "which": part}
        parts |= {"from_": percent(low), "to": percent(high)}
        yield of.told(name, "tabulate.cell" if count.n else "tabulate.cell.none", value, **parts)
    if where is None:
        return
    held, other = list(counts.values())[:2]
    low, high = (
        100 * bound for bound in difference_interval(held.flips, held.n, other.flips, other.n, ALPHA)
    )
    if held.n and other.n:
        value = {"points": 100 * (held.flip_rate - other.flip_rate), "low": low, "high": high}
        yield of.told(f"{where}.difference", "tabulate.difference", value, where=where)
    if (interval := mcc_interval(cells[where], flips)) is not None:
        value = {"mcc": interval.mcc, "low": interval.low, "high": interval.high}
        yield of.told(f"{where}.mcc", "tabulate.mcc", value, where=where, interval=interval)


def _paired(run: Run, part: Part, flips: Mapping[Neuron, Bool[np.ndarray, " record"]]) -> Iterator[Fact]:
    """Each two units on the same records, with McNemar's exact test, Holm over the pairs."""
    pairs = list(combinations(flips, 2))
    alone = [(int((flips[a] & ~flips[b]).sum()), int((flips[b] & ~flips[a]).sum())) for a, b in pairs]
    over = f", corrected for {len(pairs)} pairs" if len(pairs) > 1 else ""
    corrected = holm([mcnemar_p(*each) for each in alone])
    for (first, second), (one, other), p in zip(pairs, alone, corrected, strict=True):
        both, n = int((flips[first] & flips[second]).sum()), len(flips[first])
        value = {"n": n, "both": both, "first_only": one, "second_only": other, "p": p}
        more = (
            f"{first if one > other else second} flips more"
            if p <= ALPHA
            else "these do not tell which flips more"
        )
        of = About(f"units.{first}.{second}.{part}", f"run:{run.id}")
        parts: dict[str, Any] = {"first": first, "second": second, "which": part, "more": more, "over": over}
        yield of.told("paired", "tabulate.paired", value, **parts)


@dataclass(frozen=True, slots=True)
class RecordRow:
    """One record and what ablating the unit does to it."""

    record: str = column("record", side="r")
    prompt: str = column("prompt")
    answer: str = column("answer")
    without: str | None = column("without the unit")
    """Its answer then; None where no certificate holds it."""
    flips: bool = column("flips")
    lead: float = column("lead")
    """The least of its tokens, in logits."""


def records(run: Run, given: RecordsArguments, tell: Tell) -> Priced:
    """A row a train record of the unit's direction: id, prompt, answer, answer without the unit, whether it flips.

    The answer without the unit stands where a certificate holds it; the lead is the least of its tokens. Texts of a
    task that conceals them are left out. Raises `UsageError` for a condition that does not read. Cost: flips that are
    not stored yet of the records that are looked at.
    """
    unit, regime = unit_and_regime(run, given.unit, given.regime)
    positions = records_among(run, regime, Part.TRAIN, given.where)
    yield forwards_missing(run, (unit,), positions)
    flips = run.flips([(unit,)], positions, regime)[0].tolist()
    certificate = find_certificate(run, (unit,), regime)
    after = {row.example: plain(row.after.text) for row in certificate.rows} if certificate else {}
    rows = []
    for position, flipped in zip(positions.tolist(), flips, strict=True):
        record = run.observed.records[position]
        example = record.example
        texts = last_line(example.prompt), plain(record.completion), after.get(example.id)
        said = ("(concealed)",) * 3 if run.task.concealed else texts
        if given.flips in ("any", "yes" if flipped else "no"):
            rows.append(RecordRow(str(example.id), *said, flips=flipped, lead=record.margin))
    title = f"{len(rows)} of {len(positions)} train records ({regime.arrow}) of run {run.id}"
    if any(row.without is None for row in rows):
        title += f"; –: no certificate holds the answer without {unit} (`mecharule ablate {run.id} {unit}` writes one)"
    return shown(title, Table.of_rows(RecordRow, rows), given, run=run.id)
