"""Two of a kind beside each other: units of a run on the same examples, runs."""

import re
from collections.abc import Iterator
from typing import Any

from mecharule_ops import bases, errors, mcnemar, nodes, types
from mecharule_ops.facts.answer_text import answer_text
from mecharule_ops.facts.fact import Fact, FactValue
from mecharule_ops.findings.counts import jaccard
from mecharule_ops.numbers import of_n, percent_at_least, plural
from mecharule_ops.pages import as_text, document
from mecharule_ops.plain_text import plain
from mecharule_ops.run import live_run, opening
from mecharule_ops.state.run_state import RunState
from tools import _counts, arguments
from tools._asked import units_of
from tools.result import WIDTH, About, Priced, Tell, ToolResult, of_facts

_TOLD_OTHERWISE = [
    "task_settings",
    "bases",
    "baseline",
    "phase",
    "rows",
    "device",
    "engine",
    "anchor_for",
    "accounts_for",
    "chains_for",
    "further",
]
NAMES = "first", "second"
"""Of two runs, as facts name them."""


def compare(run: live_run.Run, given: arguments.CompareArguments, tell: Tell) -> Priced:
    """Which flips more with an exact paired test, or what two runs share.

    Cost: both slices of each unit that has no certificate; nothing for runs.
    """
    if re.fullmatch(bases.UNIT_NAME, given.first):
        units = units_of(run, f"{given.first},{given.second or given.first}")
        findings = opening.findings_of(run)
        if len(units) < 2:
            raise errors.UsageError(f"expected a unit beside {given.first}, got {given.second or 'none'}")
        regime = opening.outcome_for(findings, units[0], opening.regime_of(given.regime)).regime
        opening.outcome_for(findings, units[1], regime)
        missing = [unit for unit in units if opening.find_certificate(run, (unit,), regime) is None]
        yield len(missing) * len(run.slices(regime).positions)
        return of_facts(_of_units(run, regime, units))
    yield 0
    if given.second is not None:
        raise errors.UsageError(f"expected two units or another run, got {given.first!r}, {given.second!r}")
    with opening.opened(given.first) as other:
        return _beside(tuple(_of_runs(run, other)), run.id, other.id)


def _of_units(run: live_run.Run, regime: types.Regime, units: tuple[types.Neuron, ...]) -> Iterator[Fact]:
    """Both certificates, example by example, with McNemar's exact test at α."""
    made = [_counts.certificate_of(run, unit, regime) for unit in units]
    (left, right), n = _counts.flips_of(*made)
    both, first, second = len(left & right), len(left - right), len(right - left)
    p, alpha = mcnemar.mcnemar_p(first, second), run.findings.alpha
    of = About(f"pair.{units[0]}.{units[1]}", f"run:{run.id}")
    sources = *(f"c:{one.id}" for one in made), of.source
    more, fewer = units if first > second else units[::-1]
    stronger, sentence = (str(more), "compare.stronger") if p <= alpha else (None, "compare.open")
    parts: dict[str, Any] = {"units": units, "fewer": fewer, "p": p, "alpha": alpha}
    yield of.told("stronger", sentence, stronger, *sources, **parts)
    counts = {"n": n, "both": both, "first_only": first, "second_only": second, "p": p, "alpha": alpha}
    yield of.told("paired", "compare.paired", counts, *sources, units=units)
    for unit, one in zip(units, made, strict=True):
        yield _counts.flips_fact(one, About.of_unit(run, unit))
        if run.findings.unit(unit, regime) is None:
            yield About.of_unit(run, unit).told("found", "compare.not_found", False, regime=regime)


def _of_runs(first: live_run.Run, second: live_run.Run) -> Iterator[Fact]:
    """Shared shown units and their Jaccard index in each direction, what differs, what answers kept aside say of each.

    What the other run did not search is told apart from what it searched and did not find.
    """
    runs = opening.findings_of(first), opening.findings_of(second)
    sources = tuple(dict.fromkeys(f"run:{findings.run}" for findings in runs))
    of_runs = About("runs", sources[0])
    found = [{(unit.neuron, unit.search.regime) for unit in findings.shown()} for findings in runs]
    searched = [{one.regime for one in findings.searches if not one.nothing_searched} for findings in runs]
    told = first.told, second.told
    least = {key: one.lower for state in told[::-1] for key, one in state.judged.items()}
    for regime in sorted(searched[0] | searched[1], key=lambda regime: -regime.value):
        ours, theirs = ({unit for unit, at in units if at is regime} for units in found)
        by_first = {unit for unit in theirs - ours if not told[0].settled(unit, regime.value)}
        by_second = {unit for unit in ours - theirs if not told[1].settled(unit, regime.value)}
        share = jaccard(ours - by_second, theirs - by_first)
        parts = [
            f"of the {name} run's {plural(len(units), 'shown unit')} the other run did not search {len(lacks)}"
            for name, units, lacks in (("first", ours, by_second), ("second", theirs, by_first))
            if lacks
        ]
        if share.n:
            both = f"the runs share {of_n(share)} {plural(share.n, 'shown unit').partition(' ')[2]} of either"
            each = f"{len(ours - by_second)} and {len(theirs - by_first)}"
            parts.insert(0, f"{'of what both searched ' * bool(parts)}{both} ({each})")
        counts = {"first": len(ours), "second": len(theirs), "shared": share.count, "union": share.n}
        counts |= {"not_searched_by_first": len(by_first), "not_searched_by_second": len(by_second)}
        lacking = [name for name, of in zip(NAMES, searched, strict=True) if regime not in of]
        value: Any = {"regime": regime.arrow, "not_searched": lacking, **counts}
        told_of = f"{regime.arrow}: {'; '.join(parts) or 'no unit is shown'}"
        yield of_runs(f"shared.{regime.value}", told_of, value, *sources)
        for unit in sorted(ours | theirs, key=lambda unit: (-least[regime.value, f"{unit}"], unit)):
            fates = {name: _fate(state, unit, regime) for name, state in zip(NAMES, told, strict=True)}
            of, cells = About(f"unit.{unit}.{regime.value}", sources[0], unit), [*map(_cells, fates.values())]
            value = {"regime": regime.arrow, **fates}
            yield of.told("kept_aside", "compare.runs.kept_aside", value, *sources, cells=cells)
    if differing := _differences(first, second):
        differ = "; ".join(
            f"{name}: {plain(one)} | {plain(other)}" for name, (one, other) in differing.items()
        )
        parted = {"names": ", ".join(differing), "differ": differ}
        yield of_runs.told("settings", "compare.runs.settings", differing, *sources, **parted)


def _fate(told: RunState, unit: types.Neuron, regime: types.Regime) -> dict[str, FactValue]:
    """What answers kept aside say of a unit in a run; the certainty alone where they were not asked there."""
    if one := told.judged.get((regime.value, str(unit))):
        return {"certainty": one.certainty, "flips": one.flips, "n": one.n, "at_least": one.lower}
    if not (path := told.settled(unit, regime.value)):
        return {"certainty": "not searched"}
    return {"certainty": "not ruled out" if path[-1].verdict is nodes.Verdict.KEPT else "ruled out"}


def _cells(fate: Any) -> tuple[str, ...]:
    """How many answers kept aside flip, at least what share of all, how sure that is."""
    return *(
        (f"{fate['flips']} of {fate['n']}", percent_at_least(fate["at_least"])) if "n" in fate else ("–", "–")
    ), fate["certainty"]


def _beside(told: tuple[Fact, ...], *runs: str) -> ToolResult:
    """Facts of two runs; as a table, a row a run, the units that are shown in either, and directions without one."""
    rows = list[tuple[str, ...]]()
    for one in told:
        value: Any = one.value
        if one.unit is not None:
            cells = [_cells(value[name]) for name in NAMES]
            head = value["regime"], one.unit
        elif one.key.startswith("runs.shared") and not (value["first"] or value["second"]):
            lacks = [name in value["not_searched"] for name in NAMES]
            cells = [_cells({"certainty": "not searched" if lacking else "none shown"}) for lacking in lacks]
            head = value["regime"], "none"
        else:
            continue
        rows += [(*head, run, *of_run) for run, of_run in zip(runs, cells, strict=True)]
    header = ("direction", "unit", "run", "kept aside", "at least", "certainty")
    table = as_text.block_lines(document.Table(header=header, rows=tuple(rows), align="llllll"), WIDTH)
    text = answer_text([one for one in told if one.unit is None])
    return ToolResult(text="\n".join([" ↔ ".join(runs), text, "", *map(str.rstrip, table)]), facts=told)


def _differences(*runs: live_run.Run) -> dict[str, tuple[str, str]]:
    """Settings that differ, of one task its own too: a comparison across them is not one of the units alone."""
    told, same_task = list[dict[str, str]](), runs[0].config.task == runs[1].config.task
    for run in runs:
        findings = run.findings
        settings = {name: str(value) for name, value in run.config if name not in _TOLD_OTHERWISE}
        settings |= {f"task.{name}": f"{it}" for name, it in findings.task_settings.items() if same_task}
        how = {one.intervention for one in findings.searches}
        settings["interventions"] = ", ".join(
            sorted(f"{one.basis} {one.baseline} {one.phase}" for one in how)
        )
        told.append(settings | {"model_hash": findings.model_hash})
    one, other = told
    named = {name: (one.get(name, "–"), other.get(name, "–")) for name in one | other}
    return {name: both for name, both in named.items() if both[0] != both[1]}
