"""When a unit flips, as counts: how often where its rule holds, against how often elsewhere."""

from __future__ import annotations

from mecharule_ops.rules.families import FamilyRule
from mecharule_ops.saying.fact import Fact, fact
from mecharule_ops.saying.rules import predicts
from mecharule_ops.types import AnchoredRule, FlipsWhere, Neuron


def where_words(where: FlipsWhere) -> str:
    """`84 of 98, against 8 of 24`."""
    held, other = where.holds, where.elsewhere
    return f"{held.flips:,} of {held.n:,}, against {other.flips:,} of {other.n:,}"


def when_words(rule: FamilyRule | AnchoredRule | None) -> str:
    """`Mostly when adding b to a carries into the tens: 84 of 98, against 8 of 24`; empty where there is none to say.

    Of held-out records. *Mostly* where more than half of all flips are where the rule holds and it flips more than half
    there; else *more often*, or *less often*. Empty without a shown rule, and where a run kept no words or no counts.
    """
    if rule is None or rule.where is None or not rule.words or not _is_shown(rule):
        return ""
    return f"{_how_often(rule.where)} when {rule.words}: {where_words(rule.where)}"


def when_fact(rule: FamilyRule | AnchoredRule | None, unit: Neuron, run: str) -> Fact | None:
    """The same as a fact of the run; None where there is nothing to say."""
    said = when_words(rule)
    return (
        fact(f"{said} held-out records elsewhere", f"run:{run}", unit=unit, kinds="why when")
        if said
        else None
    )


def _is_shown(rule: FamilyRule | AnchoredRule) -> bool:
    return predicts(rule) is not None if isinstance(rule, AnchoredRule) else rule.rule is not None


def _how_often(where: FlipsWhere) -> str:
    held, other = where.holds, where.elsewhere
    if 2 * held.flips > held.n and held.flips > other.flips:
        return "Mostly"
    more = held.flips * max(other.n, 1) > other.flips * max(held.n, 1)
    return "More often" if more else "Less often"
