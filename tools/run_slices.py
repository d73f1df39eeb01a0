"""The compact slices of a run, as its searches test on them, or made anew in another size (paper, §4.2)."""

from __future__ import annotations

from collections.abc import Iterator

from mecharule_ops.facts.fact import Fact, FactValue, fact
from mecharule_ops.plain_text import last_line
from mecharule_ops.run.live_run import Run
from mecharule_ops.types import Regime
from tools._accounts import direction, finite
from tools.arguments import SlicesArguments
from tools.result import Tell, ToolResult, of_facts

SHOWN = 5


def slices(run: Run, given: SlicesArguments, tell: Tell) -> ToolResult:
    """For each regime asked: splitter, sizes before and after compaction, pairs, power, a few prompts.

    Made anew by spectral compression nothing of the run changes.
    """
    regimes = run.regimes if given.regime is None else (direction(run, given.regime),)
    return of_facts([one for regime in regimes for one in _told(run, regime, given)])


def _told(run: Run, regime: Regime, given: SlicesArguments) -> Iterator[Fact]:
    anew = " anew" if given.again or given.size else ""
    made = run.compacted(regime, given.size) if anew else run.slices(regime)
    key, source = f"slices.{regime.value}", f"run:{run.id}"
    said = f"{regime.arrow}: split{anew} by {made.rule or 'spectral clusters, without a rule'}"
    yield fact(said, source, key=f"{key}.rule", value=made.rule)
    for name, side, positions, size, radius in (
        ("associated", "D+", made.associated, made.associated_size, made.associated_radius),
        ("unrelated", "D-", made.unrelated, made.unrelated_size, made.unrelated_radius),
    ):
        shown = () if run.task.concealed else positions[:SHOWN].tolist()
        prompts = [last_line(run.records[place].example.prompt) for place in shown]
        such = f", such as {'; '.join(prompts)}" if prompts else ""
        said = f"{side} ({regime.arrow}): {len(positions)} of {size} train records{such}"
        value = {"n": len(positions), "of": size, "radius": finite(radius), "prompts": [*prompts]}
        yield fact(said, source, key=f"{key}.{name}", value=value)
    counted: FactValue = {"pairs": len(made.pairs), "required": made.required, "status": made.sentence}
    said = f"{regime.arrow}: {len(made.pairs)} matched pairs; {made.sentence.removesuffix('.')}"
    yield fact(said, source, key=f"{key}.pairs", value=counted)
