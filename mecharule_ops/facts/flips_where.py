"""When a unit flips, as counts: how often where its rule holds, against how often elsewhere."""

from __future__ import annotations

from mecharule_ops.facts.control_facts import p_words
from mecharule_ops.facts.rules import LONGEST_WORDS, short
from mecharule_ops.numbers import plural
from mecharule_ops.rules.families import UnitRule
from mecharule_ops.types import FlipsWhere

SHORT_WORDS = 120
"""Characters of a rule that is said though it is not shown."""


def where_words(where: FlipsWhere) -> str:
    """`84 of 98, against 8 of 24`."""
    held, other = where.holds, where.elsewhere
    return f"{held.flips:,} of {held.n:,}, against {other.flips:,} of {other.n:,}"


def when_words(rule: UnitRule | None) -> str:
    """`Mostly when adding b to a carries into the tens: 84 of 98, against 8 of 24`; empty where there is none to say.

    Of held-out answers. *Mostly* where more than half of all flips are where the rule holds and it flips more than half
    there, more than elsewhere; else *more often*, or *less often*. Empty without a shown rule, and where a run kept no
    words or no counts.
    """
    if rule is None or rule.where is None or not rule.words or not rule.shown:
        return ""
    return f"{_how_often(rule.where)} when {rule.words}: {where_words(rule.where)}"


def counted_when(rule: UnitRule | None) -> str:
    """The same with what it rests on, `… elsewhere, of 122 held-out answers (MCC .49)`; no counts where none were kept.

    Empty without a shown rule, or where a run kept no words.
    """
    if rule is None or not rule.words or len(rule.words) > LONGEST_WORDS or not rule.shown:
        return ""
    score = "" if rule.held_out is None else f"MCC {short(rule.held_out.mcc)}"
    if rule.where is None:
        return f"{rule.words[:1].upper()}{rule.words[1:]} (held-out {score})"
    of = rule.where.holds.n + rule.where.elsewhere.n
    return f"{when_words(rule)} elsewhere, of {of:,} held-out answers ({score})"


def not_shown_words(rule: UnitRule | None) -> str:
    """The words, counts and interval of the best rule learned where none is shown: why it is not.

    `No short rule is shown. The best one learned, b is not 0: 84 of 98, against 3 of 4 elsewhere, of 102 held-out …`;
    empty with a shown rule or without one, where its words are long, and where a run kept no words or counts. On too
    few held-out answers for an interval the counts stand alone.
    """
    if rule is None or rule.where is None or not 0 < len(rule.words) <= SHORT_WORDS or rule.shown:
        return ""
    interval = rule.interval
    of = rule.where.holds.n + rule.where.elsewhere.n
    counts = (
        f"The best one learned, {rule.words}: {where_words(rule.where)} elsewhere, of {of:,} held-out answers"
    )
    if interval is None:
        return f"Too few held-out answers to score a rule. {counts}"
    why = f"its MCC, {interval}, may be 0"
    if interval.above_chance:
        adjusted = None if rule.chance is None else rule.chance.adjusted
        if rule.chance is None or adjusted is None:
            return ""
        why = f"MCC {interval}, {p_words(adjusted)}, corrected for {plural(rule.chance.rules, 'rule')}"
    return f"No short rule is shown. {counts}; {why}"


def _how_often(where: FlipsWhere) -> str:
    held, other = where.holds, where.elsewhere
    more = held.flips * max(other.n, 1) > other.flips * max(held.n, 1)
    if more and 2 * held.flips > held.n and held.flips > other.flips:
        return "Mostly"
    return "More often" if more else "Less often"
