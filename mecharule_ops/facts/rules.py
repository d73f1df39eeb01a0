"""When a unit flips the behaviour, in words: a rule with its counts where held-out records bear it out, else why not.

A rule is shown where the whole bootstrap interval of its held-out MCC lies above 0 and its test against chance holds
after correction over all learned rules of the run (`findings.shown`); anywhere else one phrase says that none predicts.
A rule of high quality (HQ-T; paper, §4.5) reaches the floors of MCC and coverage as well.
"""

from mecharule_ops.codec import encode
from mecharule_ops.facts.control_facts import p_words
from mecharule_ops.facts.fact import FactValue, said
from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.records import Findings
from mecharule_ops.numbers import plural
from mecharule_ops.rules.families import CHOSEN, PERMUTED, Family, RuleStatus, UnitRule
from mecharule_ops.types import FlipsWhere

LONGEST_WORDS = 400
"""Characters of a rule in words in a sentence; a rule of more clauses than that holds is no clearer in words."""
LONGEST_RULE = 200
"""Characters of a rule that are printed in a sentence."""
SHORT_WORDS = 120
"""Characters of a rule that is said though it is not shown."""
NO_RULE, UNSCORED = "no rule predicts", "too few for a rule"
"""Where there is room for little: of rules that were scored, and of one that could not be."""


def told_rule(account: Account | None, anchored: UnitRule | None) -> UnitRule | None:
    """The one rule that is told of a unit, everywhere: its account's over the prompt, the anchored one without account.

    None where neither was sought. The others stand in the tables that `show --table rules` and `explain` print.
    """
    return anchored if account is None else account.family(Family.INPUT)


def when_told(account: Account | None, anchored: UnitRule | None, run: str) -> str:
    """When a unit flips, for who has ten seconds: the words of that rule with counts; else as `rule_words`.

    Of a rule that is not shown too, where it is short: what it comes to says why it is not.
    """
    rule = told_rule(account, anchored)
    room = LONGEST_WORDS if rule is not None and rule.shown else SHORT_WORDS
    if rule is None or rule.where is None or not 0 < len(rule.words) <= room:
        text = rule_words(rule, run)
        return text if rule is not None and rule.shown else text[:1].upper() + text[1:]
    where, interval = rule.where, rule.interval
    parts = {
        "counts": f"{rule.words}: {where_words(where)} elsewhere",
        "of": f"{where.holds.n + where.elsewhere.n:,} held-out answers",
        "often": _how_often(where),
        "mcc": "" if interval is None else short(interval.mcc),
        "why": _why_not(rule),
    }
    name = "when.unscored" if interval is None else "when.shown" if rule.shown else "when.not_shown"
    return said(name, **parts)


def where_words(where: FlipsWhere) -> str:
    """`84 of 98, against 8 of 24`."""
    held, other = where.holds, where.elsewhere
    return f"{held.flips:,} of {held.n:,}, against {other.flips:,} of {other.n:,}"


def _how_often(where: FlipsWhere) -> str:
    """*Mostly*: more than half of all flips are where the rule holds, and it flips more than half there, and more."""
    held, other = where.holds, where.elsewhere
    more = held.flips * max(other.n, 1) > other.flips * max(held.n, 1)
    if more and 2 * held.flips > held.n and held.flips > other.flips:
        return "Mostly"
    return "More often" if more else "Less often"


def rule_words(rule: UnitRule | None, run: str) -> str:
    """`b is 7 or more (b >= 7) – input rule, MCC .45 [.38, .52]; …`, or why it has none.

    Beside an account's rule stands what free-form trees of the same columns reach. A long rule is cut, and a command
    shows the rest.
    """
    if rule is None:
        return "no rule was sought in this run"
    trees, anchored = rule.free_form, rule.family is Family.ANCHORED
    if rule.shown:
        kind = f"{rule.family} rule"
        if anchored:
            kind = "input rule" if rule.prompt_only else "rule over the output"
        beside = f"; free-form trees of the same columns reach {short(trees.mcc)}" if trees else ""
        return f"{worded(clipped(str(rule.rule), run), rule.words)} – {kind}, MCC {rule.interval}{beside}"
    beside = f" (free-form trees of the same columns reach {trees})" if trees else ""
    verb = "can be scored" if rule.status is RuleStatus.TOO_FEW_HELD_OUT else "predicts"
    why = f"the best one learned reaches {_why_not(rule)}" if rule.interval else rule.status.value
    return f"no {'' if anchored else f'{rule.family} '}rule {verb}{beside}: {why}"


def _why_not(rule: UnitRule) -> str:
    """`MCC .30 [.02, .55], p = .08 (corrected for 24 rules)`, the interval alone where that reaches 0."""
    tested = ""
    if rule.status is RuleStatus.NOT_APART and rule.chance is not None:
        tested = f", {_tested(rule)} (corrected for {plural(rule.chance.rules, 'rule')})"
    return f"MCC {rule.interval}{tested}"


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


def shown_words(rule: UnitRule) -> str:
    """Whether a rule is shown and why: `yes, p = .004`, `no, p = .08`, `no, its interval reaches 0`; `–` without one.

    The p is that of Fisher's exact test on held-out records, corrected over all learned rules of the run (Holm).
    """
    if rule.rule is None:
        return "–"
    if rule.interval is None:
        return "no, too few held out"
    if not rule.interval.above_chance:
        return "no, its interval reaches 0"
    return f"{'yes' if rule.shown else 'no'}, {_tested(rule)}"


def _tested(rule: UnitRule) -> str:
    adjusted = None if rule.chance is None else rule.chance.adjusted
    return "not corrected" if adjusted is None else p_words(adjusted)


def shown_of_all(findings: Findings) -> str:
    """`2 of 24 learned rules are shown (corrected for 24, α = .05)`; empty without a rule that was tested so."""
    rules = [rule for outcome in findings.searches for rule in outcome.rules]
    tests = [rule.chance for rule in rules if rule.chance is not None and rule.chance.adjusted is not None]
    if not tests:
        return ""
    shown = sum(rule.shown for rule in rules)
    are = "is" if 1 in (shown, len(rules)) else "are"
    over = " to ".join(map(str, sorted({test.rules for test in tests})))  # Those learned later are more.
    corrected = f"(corrected for {over}, α = {short(tests[0].level)})"
    return f"{shown} of {plural(len(rules), 'learned rule')} {are} shown {corrected}"


def published_counts(findings: Findings) -> dict[str, int]:
    """Units that the published protocol counts, and how many of them reach the MCC of HQ-T by each score, and by ours.

    Those that make every answer wrong are dropped. Empty in another run.
    """
    rules = [(search.regime.value, rule) for search in findings.searches for rule in search.anchored]
    total = {rule.neuron for b, rule in rules if b and rule.flips and rule.flips.flips == rule.flips.n}
    kept = [rule for _, rule in rules if rule.published and rule.neuron not in total]
    units = {"units": {rule.neuron for rule in kept}, "dropped": total}
    for name in (f"{how}{null}" for how in CHOSEN for null in ("", PERMUTED)):
        units[name] = {rule.neuron for rule in kept if rule.published.get(name, 0) >= findings.mcc_floor}
    units["ours"] = {rule.neuron for rule in kept if findings.is_hq_t(rule)}
    return {name: len(each) for name, each in units.items()} if any(r.published for _, r in rules) else {}


def published_line(findings: Findings) -> str:
    """The same in words; empty in another run."""
    counts = published_counts(findings)
    return said("rules.published", **counts, floor=findings.mcc_floor) if counts else ""


def worded(rule: str, words: str) -> str:
    """The words of a rule and its syntax behind them; the syntax alone of a long rule."""
    return f"{words} ({rule})" if 0 < len(words) <= LONGEST_WORDS else rule


def short(value: float) -> str:
    """`.78`, `-.05`, `1.00`: two decimals without the leading zero, as a correlation is printed."""
    text = f"{value + 0.0:.2f}"
    return "0.00" if float(text) == 0 else text.replace("0.", ".", 1) if abs(float(text)) < 1 else text


def clipped(rule: str, run: str) -> str:
    """The rule, or its beginning with a sign that more follows and the command that shows it."""
    if len(rule) <= LONGEST_RULE:
        return rule
    kept = rule[:LONGEST_RULE].rsplit(" ", 1)[0]
    return f"{kept} … (`mecharule show {run} --table rules`)"
