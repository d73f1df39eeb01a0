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

Found = dict[tuple[Neuron, Regime], Unit]


def compare(given: CompareArguments, tell: Tell) -> ToolResult:
    """Shared shown units, their Jaccard index a regime, and how the strengths of shared units changed."""
    with opened(given.first) as first, opened(given.second) as second:
        runs = findings_of(first), findings_of(second)
    found = [{(unit.neuron, unit.search.regime): unit for unit in findings.shown()} for findings in runs]
    settings = _differences(*runs)
    regimes = sorted({regime for units in found for _, regime in units}, key=lambda regime: -regime.value)
    overlap = {regime.arrow: _overlap(found, regime) for regime in regimes}
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


def _overlap(found: list[Found], regime: Regime) -> dict[str, object]:
    sets = [{neuron for neuron, of in units if of is regime} for units in found]
    share = jaccard(*sets)
    units = plural(share.n, "shown unit").partition(" ")[2]
    sentence = f"the runs share {of_n(share)} {units} of either ({len(sets[0])} and {len(sets[1])})"
    sizes = {"first": len(sets[0]), "second": len(sets[1])}
    return {**sizes, "shared": share.count, "union": share.n, "sentence": sentence}


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
