"""How often held-out flips of a unit were read, and for what: whoever reads a verdict on them should know."""

from __future__ import annotations

from collections import Counter

from mecharule_ops.numbers import plural
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import looks_at
from mecharule_ops.types import Neuron, Regime


def looks_words(run: Run, unit: str, regime: Regime) -> str:
    """`Held-out flips of m1.37 (1→0) were read for 7 conditions so far, by investigate for 6 and by tabulate for 2`.

    A condition that two verbs read is one. What the run itself did on these records stands behind.
    """
    kept = looks_at(run, unit, regime)
    if kept:
        counts = Counter(look["by"] for look in kept)
        by = " and ".join(
            f"by {verb}{f' for {count}' if len(counts) > 1 else ''}" for verb, count in counts.items()
        )
        conditions = plural(len({look["condition"] for look in kept}), "condition")
        told = f"were read for {conditions} so far, {by}"
    else:
        told = "were read by no verb so far"
    found = None if "+" in unit else run.findings.unit(Neuron.parse(unit), regime)
    scored = found is not None and (found.rule is not None or found.account is not None)
    before = "; rules of this run were scored on these records before" if scored else ""
    return f"Held-out flips of {unit} ({regime.arrow}) {told}{before}"
