"""The compact slices of a run, as its searches test on them (paper, §4.2)."""

from __future__ import annotations

from mecharule_ops.plain_text import last_line
from mecharule_ops.run.opening import opened, regime_of
from mecharule_ops.saying.glossary import explained
from tools._accounts import finite
from tools.arguments import SlicesArguments
from tools.registry import Tell, ToolResult

SHOWN = 5


def slices(given: SlicesArguments, tell: Tell) -> ToolResult:
    """For each regime asked: splitter, sizes before and after compaction, pairs, power, a few prompts."""
    with opened(given.run) as run:
        asked = regime_of(given.regime)
        regimes = run.regimes if asked is None else (asked,)
        rows = []
        for regime in regimes:
            made = run.slices(regime)
            sides = (
                ("associated", made.associated, made.associated_size, made.associated_radius),
                ("unrelated", made.unrelated, made.unrelated_size, made.unrelated_radius),
            )
            row: dict[str, object] = {
                "regime": regime.value,
                "arrow": regime.arrow,
                "rule": made.rule,
                "sentence": made.sentence,
                "required": made.required,
                "pairs": len(made.pairs),
            }
            for name, positions, size, radius in sides:
                prompts = [last_line(run.records[int(place)].example.prompt) for place in positions[:SHOWN]]
                row[name] = {
                    "n": len(positions),
                    "of": size,
                    "radius": finite(radius),
                    "prompts": [] if run.task.concealed else prompts,
                }
            rows.append(row)
        identifier = run.id
    lines = [f"slices of run {identifier}", *(line for row in rows for line in _lines(row))]
    text = "\n".join(lines)
    return ToolResult(data={"run": identifier, "slices": rows}, text=f"{text}\n{explained(text)}")


def _lines(row: dict) -> list[str]:
    sides = [
        f"  {name}  {side['n']} of {side['of']} train records"
        + (f", such as {'; '.join(side['prompts'])}" if side["prompts"] else "")
        for name, side in (("D+", row["associated"]), ("D-", row["unrelated"]))
    ]
    return [
        f"{row['arrow']}: split by {row['rule'] or 'spectral clusters, without a rule'}",
        *sides,
        f"  {row['pairs']} matched pairs; {row['sentence']}",
    ]
