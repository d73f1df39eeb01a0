"""Two runs beside each other."""

from __future__ import annotations

from mecharule_ops.findings.measures import jaccard
from mecharule_ops.findings.records import Findings, Unit
from mecharule_ops.numbers import of_n, percent, plural
from mecharule_ops.run.opening import findings_of, opened
from mecharule_ops.saying.fact import fact
from mecharule_ops.types import Neuron, Regime
from tools.arguments import CompareArguments
from tools.registry import Tell, ToolResult, stated

Key = tuple[Neuron, Regime]
Found = dict[Key, Unit]


def compare(given: CompareArguments, tell: Tell) -> ToolResult:
    """Shared shown units, their Jaccard index a regime, and how the strengths of shared units changed.

    What the other run did not search is told apart from what it searched and did not find.
    """
    with opened(given.first) as first, opened(given.second) as second:
        runs = findings_of(first), findings_of(second)
        told = first.told, second.told
    found = [{(unit.neuron, unit.search.regime): unit for unit in findings.shown()} for findings in runs]
    unsearched = [
        {unit for unit in theirs if unit not in ours and not state.searched(unit[0], unit[1].value)}
        for ours, theirs, state in zip(found, found[::-1], told, strict=True)
    ]
    settings = _differences(*runs)
    regimes = sorted({regime for units in found for _, regime in units}, key=lambda regime: -regime.value)
    overlap = {regime.arrow: _overlap(found, unsearched, regime) for regime in regimes}
    shared = [unit for unit in found[0] if unit in found[1]]
    changed = [
        {
            "unit": str(neuron),
            "regime": regime.value,
            "first": found[0][neuron, regime].estimate.strength,
            "second": found[1][neuron, regime].estimate.strength,
        }
        for neuron, regime in shared[: given.limit]
    ]
    data = {
        "runs": [findings.run for findings in runs],
        "different_settings": settings,
        "overlap": overlap,
        "shared": changed,
        "shared_in_all": len(shared),
    }
    said = [f"{arrow}: {row['sentence']}" for arrow, row in overlap.items()] or [
        "No unit is shown in either run"
    ]
    if settings:
        differ = "; ".join(f"{name}: {left} | {right}" for name, (left, right) in settings.items())
        said.append(f"They differ in {', '.join(settings)}, so read that with care ({differ})")
    for row in changed:
        before, after = float(str(row["first"])), float(str(row["second"]))
        said.append(
            f"{row['unit']} ({Regime(row['regime']).arrow}) flips {percent(before)} of one half in the first and "
            f"{percent(after)} in the second"
        )
    if len(shared) > given.limit:
        said.append(f"{len(shared) - given.limit} more shared units; --limit {len(shared)} shows all")
    sources = dict.fromkeys(f"run:{findings.run}" for findings in runs)
    facts = [fact(sentence, *sources) for sentence in said]
    return stated(data, facts)


def _overlap(found: list[Found], unsearched: list[set[Key]], regime: Regime) -> dict[str, object]:
    """Of the units of one direction how many both runs found, among those that both searched."""
    first, second = ({unit for unit in units if unit[1] is regime} for units in found)
    by_first, by_second = second & unsearched[0], first & unsearched[1]
    sides = [{neuron for neuron, _ in units} for units in (first - by_second, second - by_first)]
    share = jaccard(*sides)
    units = plural(share.n, "shown unit").partition(" ")[2]
    shared = f"the runs share {of_n(share)} {units} of either ({len(sides[0])} and {len(sides[1])})"
    left = [
        f"of the {run} run's {plural(len(of), 'shown unit')} the other run did not search {len(missing)}"
        for run, of, missing in (("first", first, by_second), ("second", second, by_first))
        if missing
    ]
    if left:
        shared = f"of what both searched {shared}"
    return {
        "first": len(first),
        "second": len(second),
        "shared": share.count,
        "union": share.n,
        "not_searched_by_first": len(by_first),
        "not_searched_by_second": len(by_second),
        "sentence": "; ".join([*([shared] if share.n else []), *left]),
    }


def _differences(first: Findings, second: Findings) -> dict[str, tuple[str, str]]:
    """Settings that differ: a comparison across them is not one of the units alone."""
    names = ("model", "model_hash", "task", "task_settings", "tau", "epsilon", "alpha", "proposer", "seed")
    pairs = {name: (str(getattr(first, name)), str(getattr(second, name))) for name in names}
    how = tuple(
        ", ".join(sorted({f"{s.intervention.basis} {s.intervention.baseline}" for s in findings.searches}))
        for findings in (first, second)
    )
    pairs["interventions"] = (how[0], how[1])
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
