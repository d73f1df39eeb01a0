"""When a unit flips the behaviour, in words: a rule only where held-out records bear it out, and how far it could go.

A rule is shown where the whole bootstrap interval of its held-out MCC lies above 0 and its test against chance holds
after correction over all learned rules of the run (`findings.shown`); anywhere else one phrase says that none predicts.
A rule of high quality (HQ-T; paper, §4.5) reaches the floors of MCC and coverage as well.
"""

from __future__ import annotations

from mecharule_ops.codec import encode
from mecharule_ops.facts.control_facts import p_words
from mecharule_ops.facts.fact import FactValue
from mecharule_ops.findings.records import Findings
from mecharule_ops.numbers import k_of_n, percent, plural, sentence
from mecharule_ops.rules.families import Family, FamilyStatus, UnitRule

LONGEST_WORDS = 400
"""Characters of a rule in words in a sentence; a rule of more clauses than that holds is no clearer in words."""
LONGEST_RULE = 200
"""Characters of a rule that are printed in a sentence."""
TREES = "free-form trees of the same columns"
NOT_ANCHORED = "no rule was sought in this run"
NO_RULE, UNSCORED = "no rule predicts", "too few for a rule"
"""Where there is room for little: of rules that were scored, and of one that could not be."""


def rule_words(rule: UnitRule | None, run: str) -> str:
    """`b is 7 or more (b >= 7) – input rule, MCC .45 [.38, .52]; …`, or why it has none.

    Beside an account's rule stands what free-form trees of the same columns reach. A long anchored rule is cut, and a
    command shows the rest.
    """
    if rule is None:
        return NOT_ANCHORED
    return _anchored(rule, run) if rule.family is Family.ANCHORED else _of_account(rule)


def rule_value(rule: UnitRule) -> dict[str, FactValue]:
    """An account's rule with all its scores, shown or not."""
    kept, interval = encode(rule), rule.interval
    named = ("family", "train", "chance", "where", "words", "prompt_only", "validated", "free_form")
    return {
        **{name: kept[name] for name in named},
        "learned": kept["rule"],
        "status": rule.status.value,
        "held_out": interval and encode(interval),
    }


def _of_account(rule: UnitRule) -> str:
    kind, status = rule.family.value, rule.status
    if status is FamilyStatus.SHOWN:
        trees = "" if rule.free_form is None else f"; {TREES} reach {short(rule.free_form.mcc)}"
        return f"{worded(str(rule.rule), rule.words)} – {kind} rule, MCC {rule.interval}{trees}"
    trees = "" if rule.free_form is None else f" ({TREES} reach {rule.free_form})"
    why = "" if status is FamilyStatus.NO_BETTER else f": {status.value}"
    if status is FamilyStatus.NOT_APART:
        why = f": {_failed_words(rule)}"
    found = {FamilyStatus.TOO_FEW_HELD_OUT: "can be scored", FamilyStatus.ARITHMETIC: "is sought"}
    scored = found.get(status, "predicts")
    return f"no {kind} rule {scored}{trees}{why}"


def _failed_words(rule: UnitRule) -> str:
    """`the best one learned reaches MCC .30 [.02, .55], p = .08 (corrected for 24 rules)`."""
    best = f"the best one learned reaches MCC {rule.interval}"
    if rule.status is not FamilyStatus.NOT_APART or rule.chance is None or rule.chance.adjusted is None:
        return best
    return f"{best}, {p_words(rule.chance.adjusted)} (corrected for {plural(rule.chance.rules, 'rule')})"


def worded(rule: str, words: str) -> str:
    """The words of a rule and its syntax behind them; the syntax alone of a long rule, or where a run kept no words."""
    return f"{words} ({rule})" if 0 < len(words) <= LONGEST_WORDS else rule


def briefly(rule: UnitRule) -> str:
    """The words alone where they are not too long, else the syntax."""
    return rule.words if 0 < len(rule.words) <= LONGEST_WORDS else str(rule.rule)


def _anchored(rule: UnitRule, run: str) -> str:
    if rule.rule is None:
        flips = "" if rule.flips is None else f" for the {k_of_n(rule.flips)} records that it flips"
        return f"no rule predicts: no clause was found{flips}"
    if (held := rule.held_out) is None:
        return "no rule predicts: there were no held-out records to score one"
    if rule.shown:
        said = "input rule" if rule.prompt_only else "rule over the output"
        return f"{worded(clipped(str(rule.rule), run), rule.words)} – {said}, MCC {rule.interval}"
    if rule.interval is not None:
        return f"no rule predicts: {_failed_words(rule)}"
    return f"no rule can be scored: too few flips for an interval, {held.positives} in {held.n:,} held-out answers"


def short(value: float) -> str:
    """`.78`, `-.05`, `1.00`: two decimals without the leading zero, as a correlation is printed."""
    text = f"{value + 0.0:.2f}"
    return "0.00" if float(text) == 0 else text.replace("0.", ".", 1) if abs(float(text)) < 1 else text


def rule_line(findings: Findings, rule: UnitRule | None) -> str:
    """What is known of when ablating a unit flips a record, as a line of a report."""
    said = rule_words(rule, findings.run)
    if rule is None or rule.held_out is None or not rule.shown:
        return sentence(said)
    held = rule.held_out
    floor = "" if findings.is_hq_t(rule) else "; below the floors of high quality"
    counts = f"(n {held.n:,}, {plural(held.positives, 'flip')})"
    return f"Rule: {said} {counts}, fires on {percent(held.coverage)} of {held.n:,}{floor}."


def clipped(rule: str, run: str) -> str:
    """The rule, or its beginning with a sign that more follows and the command that shows it."""
    if len(rule) <= LONGEST_RULE:
        return rule
    kept = rule[:LONGEST_RULE].rsplit(" ", 1)[0]
    return f"{kept} … (`mecharule show {run} --table rules`)"
