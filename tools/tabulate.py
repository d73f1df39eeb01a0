"""Flips counted: units by a condition, by the values of a column, among some records, two units paired; records; and
claims that a person makes of when a unit flips, entered in the ledger first, decided once on held-out records.

Each cell is k of n with an exact interval. Train records are free to look at; a look at held-out ones is counted, since
whoever reads a verdict on them should know how often they were read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from jaxtyping import Bool

from mecharule_ops import codec, mcnemar, numbers, plain_text
from mecharule_ops.confidence import difference_interval, lower_bound, upper_bound
from mecharule_ops.config import given_text
from mecharule_ops.errors import UsageError
from mecharule_ops.facts.claims import claim_fact, looks_words
from mecharule_ops.facts.fact import Fact, fact
from mecharule_ops.findings import claim_verdicts, controls
from mecharule_ops.pages.document import Table, column
from mecharule_ops.rules.in_words import rule_in_words
from mecharule_ops.rules.interval import mcc_interval
from mecharule_ops.run import opening, tabulating
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import AMONG, Part, columns_of, count_look, fires, forwards_missing
from mecharule_ops.store.ledger import Claim, Hypothesis, Ledger
from mecharule_ops.thresholds import ALPHA
from mecharule_ops.types import FlipCount, Neuron, Regime
from tools import _asked, arguments, result

Cells = Mapping[str, Bool[np.ndarray, " record"]]
"""Which of the records are in each cell, by its name."""


def tabulate(run: Run, given: arguments.TabulateArguments, tell: result.Tell) -> result.Priced:
    """Flips of each unit in each cell. Raises `UsageError` for a condition or column that the records do not have.

    Cost: flips that are not stored yet.
    """
    if (by := given.by) not in (None, *columns_of(run)):
        raise UsageError(f"expected a column of {', '.join(columns_of(run))}; got {by!r}")
    where = None if given.where is None else _asked.condition_of(run, given.where)
    units = _asked.units_of(run, given.units)
    part, regime = Part(given.records), opening.regime_for(run, units[0], given.regime)
    positions = _asked.records_among(run, regime, part, given.among)
    yield sum(forwards_missing(run, (unit,), positions) for unit in units)
    cells: dict[str, Bool[np.ndarray, " record"]] = {}
    if where is not None:
        holds = fires(run, where)[positions]
        cells = {f"{given.where}": holds, f"not ({given.where})": ~holds}
    if by is not None:
        cells |= _by(by, columns_of(run)[by][positions])
    cells = cells or {"all": np.ones(len(positions), bool)}
    flips = {unit: run.flips([(unit,)], positions, regime)[0] for unit in units}
    facts, which = list[Fact](), given_text(f"{part} records ({regime.arrow})", run.config.given)
    for unit in units:
        facts += _of_unit(result.About.of_unit(run, unit, part), which, cells, flips[unit], given.where)
    if given.paired:
        facts += _paired(run, which, flips)
    if part is Part.HELD_OUT:
        among = "" if given.among is None else f"{AMONG}{_asked.condition_of(run, given.among)}"
        for unit in units:
            for looked in list(filter(None, (where and str(where), by))) or ["all"]:
                count_look(run, str(unit), regime, f"{looked}{among}", "tabulate")
            facts.append(fact(looks_words(run, str(unit), regime), f"run:{run.id}", unit=unit))
    return result.of_facts(facts)


def _by(name: str, values: np.ndarray) -> Iterator[tuple[str, Bool[np.ndarray, " record"]]]:
    distinct, most = np.unique(values), tabulating.MOST_VALUES
    if len(distinct) <= most:
        yield from ((f"{name} = {value}", values == value) for value in distinct.tolist())
    elif values.dtype.kind in "iuf":
        cuts = np.unique(np.quantile(values, [0.25, 0.5, 0.75], method="inverted_cdf")).tolist()
        for low, high in pairwise([-np.inf, *cuts, np.inf]):
            said = f"{low} < " * (low > -np.inf) + name + f" ≤ {high}" * (high < np.inf)
            yield said, (values > low) & (values <= high)
    else:
        told = f"{name} has {len(distinct):,} texts"
        raise UsageError(f"expected a column of numbers, or of at most {most} values; {told}")


def _of_unit(
    of: result.About, which: str, cells: Cells, flips: Bool[np.ndarray, " record"], where: str | None
) -> Iterator[Fact]:
    """A fact a cell, and for a condition the difference of its two sides and what it is worth as a rule."""
    counts = {
        name: FlipCount(flips=int(flips[inside].sum()), n=int(inside.sum())) for name, inside in cells.items()
    }
    for name, count in counts.items():
        low, high = (bound(count.flips, count.n, ALPHA / 2) for bound in (lower_bound, upper_bound))
        value = {"flips": count.flips, "n": count.n, "low": low, "high": high}
        parts: dict[str, Any] = {"at": "" if name == "all" else f" where {name}", "which": which}
        parts |= {"rate": numbers.percent(count.flip_rate) if count.n else ""}
        parts |= {"from_": numbers.percent(low), "to": numbers.percent(high)}
        yield of.told(name, "tabulate.cell" if count.n else "tabulate.cell.none", value, **parts)
    if where is None:
        return
    held, other = list(counts.values())[:2]
    if held.n and other.n:
        interval = difference_interval(held.flips, held.n, other.flips, other.n, ALPHA)
        value = {"low": 100 * interval[0], "high": 100 * interval[1]}
        value |= {"points": 100 * (held.flip_rate - other.flip_rate)}
        yield of.told(f"{where}.difference", "tabulate.difference", value, where=where)
    if (found := mcc_interval(cells[where], flips)) is not None:
        value = {"mcc": found.mcc, "low": found.low, "high": found.high}
        yield of.told(f"{where}.mcc", "tabulate.mcc", value, where=where, interval=found)


def _paired(run: Run, which: str, flips: Mapping[Neuron, Bool[np.ndarray, " record"]]) -> Iterator[Fact]:
    """Each two units on the same records, with McNemar's exact test, Holm over the pairs."""
    pairs = list(combinations(flips, 2))
    alone = [(int((flips[a] & ~flips[b]).sum()), int((flips[b] & ~flips[a]).sum())) for a, b in pairs]
    over = f", corrected for {len(pairs)} pairs" if len(pairs) > 1 else ""
    corrected = controls.holm([mcnemar.mcnemar_p(*each) for each in alone])
    for (first, second), (one, other), p in zip(pairs, alone, corrected, strict=True):
        both, n = int((flips[first] & flips[second]).sum()), len(flips[first])
        value = {"n": n, "both": both, "first_only": one, "second_only": other, "p": p}
        of = result.About(f"units.{first}.{second}.{which.split()[0]}", f"run:{run.id}")
        stronger = first if one > other else second
        more = f"{stronger} flips more" if p <= ALPHA else "these do not tell which flips more"
        parts: dict[str, Any] = {"first": first, "second": second, "which": which, "more": more, "over": over}
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


def records(run: Run, given: arguments.RecordsArguments, tell: result.Tell) -> result.Priced:
    """A row a train record of the unit's direction: id, prompt, answer, answer without the unit, whether it flips.

    The answer without the unit stands where a certificate holds it; the lead is the least of its tokens. Texts of a
    task that conceals them are left out. Raises `UsageError` for a condition that does not read. Cost: flips that are
    not stored yet of the records that are looked at.
    """
    unit, regime = _asked.unit_and_regime(run, given.unit, given.regime)
    positions = _asked.records_among(run, regime, Part.TRAIN, given.where)
    yield forwards_missing(run, (unit,), positions)
    flips = run.flips([(unit,)], positions, regime)[0].tolist()
    certificate = opening.find_certificate(run, (unit,), regime)
    after = {row.example: plain_text.plain(row.after.text) for row in certificate.rows} if certificate else {}
    rows = []
    for record, flipped in zip([run.observed.records[place] for place in positions], flips, strict=True):
        if given.flips in ("any", "yes" if flipped else "no"):
            id, prompt = record.example.id, plain_text.last_line(record.example.prompt)
            texts = prompt, plain_text.plain(record.completion), after.get(id)
            said = ("(concealed)",) * 3 if run.task.concealed else texts
            rows.append(RecordRow(str(id), *said, flips=flipped, lead=record.margin))
    of = given_text(f"of run {run.id}", run.config.given)
    title = f"{len(rows)} of {len(positions)} train records ({regime.arrow}) {of}"
    if any(row.without is None for row in rows):
        more = f" (`mecharule ablate {run.id} {unit}` writes one of the records of the slices)"
        title += f"; –: no certificate holds the answer without {unit}{'' if certificate else more}"
    return result.shown(title, Table.of_rows(RecordRow, rows), given, run=run.id)


def register(run: Run, given: arguments.RegisterArguments, tell: result.Tell) -> result.Priced:
    """The ledger's entry of a claim; what was decided before is read back. Cost: no model call, no flip is read."""
    asked = _asked.Asked.of(run, given)
    unit, condition = str(asked.neuron), _asked.condition_of(run, given.where)
    if not fires(run, condition).any():
        raise UsageError(f"expected a condition that holds on some record, got {given.where!r}")
    claim = Claim(unit=unit, regime=asked.regime, rule=condition, threshold=given.threshold, by="register")
    sentence = claim.sentence(rule_in_words(condition, run.task))
    yield 0
    entry = _ledger(run).entered(claim, sentence)
    of = result.About(f"claim.{entry.id}", f"run:{run.id}", unit)
    value = {"claim": entry.id, "state": entry.state, **codec.encode(entry.prediction)}
    facts = [of.told("registered", "register.entered", value, said=sentence.removesuffix("."))]
    looks = tabulating.looks_at(run, unit, asked.regime)
    looked = [look["by"] for look in looks if tabulating.touches(look["condition"], str(condition))]
    looked = looked[: [*looked, "decide"].index("decide")]
    if entry.outcome is not None:
        facts.append(claim_fact(run, _claim(run, entry), entry))
    if looked:
        key = f"register.looked{'' if entry.outcome is None else '.decided'}"
        facts.append(of.told("looked_at_before_by", key, looked, verbs=", ".join(looked)))
    facts.append(_looks(run, asked.neuron, asked.regime))
    if entry.outcome is None:
        facts.append(fact(f"`mecharule decide {run.id} {entry.id}` decides it, once", of.source, unit=unit))
    return result.of_facts(facts)


def decide(run: Run, given: arguments.DecideArguments, tell: result.Tell) -> result.Priced:
    """The verdicts of registered claims of one unit and direction, which share an error of .05.

    All of that unit that are registered share it, those of before and those that are not decided now too: choosing one
    costs what all cost, and so does entering one after another. Those that were decided before are read back. Of one
    claim at two thresholds the first is decided and read back for both. Cost: the unit's flips on the held-out records
    that have none stored. Raises `UsageError` for what is no registered claim, or claims of several units.
    """
    opening.findings_of(run)
    ledger = _ledger(run)
    entries = [ledger.entry(id) for id in given.claims.split(",")]
    found = {(claim.unit, claim.regime) for claim in (_claim(run, entry) for entry in entries)}
    if len(found) > 1:
        raise UsageError("expected claims of one unit and direction, which are decided together; got several")
    ((name, regime),) = found
    unit, places = Neuron.parse(name), tabulating.drawn(run, regime, Part.HELD_OUT)
    yield forwards_missing(run, (unit,), places)
    settled = [ledger.settled(entry.prediction) or entry for entry in entries]
    decided: dict[str, Hypothesis] = {}
    if new := list(dict.fromkeys(_claim(run, entry) for entry in settled if entry.outcome is None)):
        flips = run.flips([(unit,)], places, regime)[0]
        holds = np.array([fires(run, claim.rule)[places] for claim in new])
        shares = claim_verdicts.Shares(alpha=ALPHA, family=len(tabulating.claims_of(run, unit, regime)))
        made = tabulating.claims_decided(run, ledger, new, holds, flips, regime, shares, "decide")
        decided = {claim.id: entry for claim, entry in zip(new, made, strict=True)}
    done = {one.id: one for one in (decided.get(entry.id, entry) for entry in settled)}
    return result.of_facts(
        [*(claim_fact(run, _claim(run, one), one) for one in done.values()), _looks(run, unit, regime)]
    )


def _claim(run: Run, entry: Hypothesis) -> Claim:
    """What is claimed. Raises `UsageError` for a prediction of another kind."""
    if not isinstance(entry.prediction, Claim):
        raise UsageError(
            f"expected a registered claim, got {entry.id}; `mecharule show {run.id} --table claims` lists all"
        )
    return entry.prediction


def _looks(run: Run, unit: Neuron, regime: Regime) -> Fact:
    """At which conditions the unit's held-out flips were looked."""
    read = sorted({look["condition"] for look in tabulating.looks_at(run, str(unit), regime)})
    return result.About.of_unit(run, unit)("held_out_looks", looks_words(run, str(unit), regime), read)


def _ledger(run: Run) -> Ledger:
    return Ledger(run.store, lambda event: run.store.append([event]))
