"""When a unit flips the behaviour, in words: the truest form that held-out records bear out, with its counts.

First exact exceptions of a unit that nearly always flips, then its drive and whether that decides, then a rule. That is
shown where the whole bootstrap interval of its held-out MCC lies above 0 and its test against chance holds after
correction over all learned rules of the run (`findings.shown`), and told where halves of the data give it again.
A rule of high quality (HQ-T; paper, §4.5) reaches the floors of MCC and coverage as well.
"""

from mecharule_ops import codec, numbers, types
from mecharule_ops.facts.control_facts import p_words
from mecharule_ops.facts.fact import FactValue, said
from mecharule_ops.findings import accounts, records
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.families import (
    CHOSEN,
    PERMUTED,
    STABLE,
    Family,
    Fit,
    Graded,
    RuleStatus,
    Term,
    UnitRule,
)
from mecharule_ops.rules.in_words import CLAUSE

LONGEST_WORDS = 240
"""Characters of a rule in words in a sentence, but for its first clause; the clauses behind are counted."""
LONGEST_RULE = 200
"""Characters of a rule that are printed in a sentence."""
OPEN = "when not told"
"""The short name of what is said where nothing holds."""
TOLD = 2
"""Terms of a drive in a sentence; the others stand among its numbers."""


def told_rule(account: accounts.Account | None, anchored: UnitRule | None) -> UnitRule | None:
    """The one rule that is told of a unit, everywhere: its account's over the prompt, the anchored one without account.

    None where neither was sought. The others stand in the tables that `show --table rules` and `explain` print.
    """
    return anchored if account is None else account.family(Family.INPUT)


def told_where(account: accounts.Account | None, anchored: UnitRule | None) -> tuple[Rule, ...]:
    """The rules of the form that is told first; of a drive those of its said terms that lift it."""
    rule, drive = told_rule(account, anchored), None if account is None else account.drive
    if account is not None and account.exception is not None:
        rule = account.family(Family.EXCEPTION)
    elif drive is not None and drive.tells and not (rule is not None and rule.told and rule.tells):
        return tuple(term.rule for term in named_terms(drive) if term.lifts > 0)
    return (rule.rule,) if rule is not None and rule.rule is not None and rule.shown else ()


def when_told(account: accounts.Account | None, anchored: UnitRule | None, unit: object, run: str) -> str:
    """When a unit flips, for who has ten seconds; without account its anchored rule if shown, else what asks."""
    if account is not None:
        return next(iter(when_forms(account).values()))
    if anchored is None or not anchored.shown:
        return said(f"account.none{'.rule' if anchored else ''}", unit=unit, run=run)
    if anchored.where is None or not anchored.words:
        return rule_words(anchored, run)
    return f"{_by_rule(anchored)}; {stability(anchored)}"


def when_in_short(account: accounts.Account | None, anchored: UnitRule | None = None) -> str:
    """`exact exception`, `drive AUC .78`, `first order MCC .86`, `rule MCC .46`: the form told first."""
    if account is not None:
        return next(iter(when_forms(account)))
    if anchored is not None and anchored.shown and anchored.held_out is not None:
        return f"rule MCC {short(anchored.held_out.mcc)}"
    return "when not asked" if anchored is None else OPEN


def when_counts(account: accounts.Account | None, anchored: UnitRule | None) -> FactValue:
    """What is counted where the form told first holds and elsewhere, flips or a drive's top third; None without."""
    where, form = anchored.where if anchored is not None and anchored.shown else None, ""
    if account is not None:
        form, drive = when_in_short(account).partition(" ")[0], account.drive.top if account.drive else None
        of_form = {"exact": account.exception, "rule": account.family(Family.INPUT).where, "drive": drive}
        where = of_form.get(form)
    return None if where is None else dict(codec.encode(where), of="top third" if form == "drive" else "flip")


def when_forms(account: accounts.Account) -> dict[str, str]:
    """Every form that holds by its short name, the truest first; behind them what is open.

    An exception, a rule that tells the flips, drive and whether it decides, a rule that tells less; rules only where
    another sample gives them too.
    """
    rule, drive, compared = account.family(Family.INPUT), account.drive, _compared(account)
    every, forms = numbers.of_n(types.FlipCount(flips=account.flips, n=account.records)), dict[str, str]()
    if (where := account.exception) is not None:
        parts = {"never": account.family(Family.EXCEPTION).words, "quiet": where.elsewhere.n}
        forms["exact exception"] = said("when.exception", often=numbers.of_n(where.holds), **parts)
    by_rule = {f"rule MCC {short(rule.interval.mcc)}": _by_rule(rule)} if rule.told and rule.interval else {}
    forms |= by_rule if rule.tells else {}
    if drive is not None and drive.tells:
        told = said("when.drive", where=drive_words(drive), top=drive.top)
        forms[f"drive AUC {short(drive.fit.auc)}"] = f"{told}{compared}"
    elif account.comparison_holds and (score := account.compared) is not None and score.held_out is not None:
        by_lead = said("when.by_lead", every=every, drive="" if drive is None else said("when.no_words"))
        forms[f"first order MCC {short(score.held_out.mcc)}"] = f"{by_lead}{compared}"
    fits = "" if drive is None else said("when.trees", fit=_area(drive.fit), trees=short(drive.trees.auc))
    return forms | by_rule | {OPEN: said("when.open", every=every, beside=fits, compared=compared)}


def _by_rule(rule: UnitRule) -> str:
    assert rule.where is not None, "a rule that is told was scored"
    n = rule.where.holds.n + rule.where.elsewhere.n
    counts = f"{in_brief(rule.words)}: {where_words(rule.where)} elsewhere"
    return said("when.shown", often=_how_often(rule.where), counts=counts, of=f"{n:,} held-out answers")


def drive_words(drive: Graded) -> str:
    """`most where the tens carry, least where b is 0 (and 3 finer conditions)`: the terms by how early they came."""
    sides: dict[str, list[str]] = {}
    for term in (named := named_terms(drive)):
        sides.setdefault("most" if term.lifts > 0 else "least", []).append(term.words)
    told = (f"{side} where {'; and where '.join(words)}" for side, words in sides.items())
    finer = len(drive.terms) - len(named)
    return "; ".join(told) + (f" (and {numbers.plural(finer, 'finer condition')})" if finer > 0 else "")


def named_terms(drive: Graded) -> tuple[Term, ...]:
    """The terms of a drive that are said; the others are counted."""
    first, *others = drive.terms[:TOLD]
    # A condition that both lifts and lowers it would read as a contradiction.
    apart = (t for t in others if t.lifts * first.lifts > 0 or not t.rule.predicates & first.rule.predicates)
    return first, *apart


def drive_facts_words(drive: Graded) -> str:
    """Every term with what it adds, and what they are worth beside trees, permuted, and between halves."""
    fits = {"fit": drive.fit, "trees": drive.trees, "permuted": drive.permuted}
    parts = {name: f"{_area(fit)}, R² {short(fit.r2)}" for name, fit in fits.items()}
    terms = "; ".join(f"{term.words} {100 * term.lifts:+.0f}" for term in drive.terms) or "none"
    return said(
        "drive.fit", d=drive, terms=terms, agreement=short(drive.agreement), kept=short(drive.kept), **parts
    )


def _area(fit: Fit) -> str:
    return f"{short(fit.auc)} [{short(fit.low)}, {short(fit.high)}]"


def _compared(account: accounts.Account) -> str:
    """That drop against lead decides, by counts; that it is arithmetic; that first order is blind; that it is open."""
    score, error = account.compared, account.drop_error
    becomes = "" if account.regime is types.Regime.BASELINE_POSITIVE else " and what then wins is right"
    if error is not None and error.blind:
        return said("when.blind")
    if score is None or not account.comparison_holds:
        return said("when.undecided")
    always = max(score.happened, score.records - score.happened)
    name = "when.arithmetic" if account.nothing_above else "when.decides"
    return said(name, and_right=becomes, right=score.right, n=score.records, always=always)


def where_words(where: types.FlipsWhere) -> str:
    """`84 of 98, against 8 of 24`."""
    held, other = where.holds, where.elsewhere
    return f"{held.flips:,} of {held.n:,}, against {other.flips:,} of {other.n:,}"


def _how_often(where: types.FlipsWhere) -> str:
    """*Mostly*: more than half of all flips are where the rule holds, and it flips more than half there, and more."""
    held, other = where.holds, where.elsewhere
    more = held.flips * max(other.n, 1) > other.flips * max(held.n, 1)
    if more and 2 * held.flips > held.n and held.flips > other.flips:
        return "Mostly"
    return "More often" if more else "Less often"


def rule_words(rule: UnitRule | None, run: str) -> str:
    """`b is 7 or more (b >= 7) – input rule, MCC .45 [.38, .52]; …`, or why it has none.

    Beside an account's rule stands what free-form trees of the same columns reach, what the same learner gets of
    permuted flips, and whether another sample gives the rule again. A long rule is cut, and a command shows the rest.
    """
    if rule is None:
        return "no rule was sought in this run"
    beside = _beside_rule(rule)
    if rule.shown:
        kind = f"{rule.family} rule" if rule.family is not Family.EXCEPTION else "exception"
        if rule.family is Family.ANCHORED:
            kind = "input rule" if rule.prompt_only else "rule over the output"
        return f"{worded(clipped(str(rule.rule), run), rule.words)} – {kind}, MCC {rule.interval}{beside}"
    kind = "rule" if rule.family is Family.ANCHORED else f"{rule.family} rule"
    verb = "can be scored" if rule.status is RuleStatus.TOO_FEW_HELD_OUT else "is shown"
    why = f"the best one learned reaches {_why_not(rule)}" if rule.interval else rule.status.value
    return f"no {kind} {verb}: {why}{beside}"


def _beside_rule(rule: UnitRule) -> str:
    """`; .81 of what free-form trees of the same columns reach (.55 [.43, .66]); permuted flips .02; …`."""
    parts, trees = list[str](), rule.free_form
    if trees is not None:
        ratio = "" if rule.of_trees is None else f"{short(rule.of_trees)} of what "
        parts.append(f"{ratio}free-form trees of the same columns reach ({trees})")
    if rule.permuted is not None:
        parts.append(f"of permuted flips {short(rule.permuted)}")
    if rule.rule is not None:
        parts.append(stability(rule))
    return "".join(f"; {part}" for part in parts)


def stability(rule: UnitRule) -> str:
    """Whether another sample gives a rule again; of one whose halves were not learned from, that it is open."""
    if rule.agreement is None:
        return "whether another sample gives it again is open"
    again = (
        "halves of the data agree on it" if rule.agreement >= STABLE else "another sample gives another rule"
    )
    return f"{again} (agreement {short(rule.agreement)})"


def _why_not(rule: UnitRule) -> str:
    """`MCC .30 [.02, .55], p = .08 (corrected for 24 rules)`, the interval alone where that reaches 0."""
    tested = ""
    if rule.status is RuleStatus.NOT_APART and rule.chance is not None:
        tested = f", {_tested(rule)} (corrected for {numbers.plural(rule.chance.rules, 'rule')})"
    return f"MCC {rule.interval}{tested}"


def rule_value(rule: UnitRule) -> dict[str, FactValue]:
    """A rule with all its scores, shown or not."""
    kept, interval = codec.encode(rule), rule.interval
    named = "family", "rule", "train", "chance", "where", "words", "prompt_only", "validated", "free_form"
    return {
        **{name: kept[name] for name in (*named, "agreement", "permuted")},
        "shown": rule.shown,
        "status": rule.status.value,
        "of_trees": rule.of_trees,
        "held_out": interval and codec.encode(interval),
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


def shown_of_all(findings: records.Findings) -> str:
    """`2 of 24 learned rules are shown (corrected for 24, α = .05)`; empty without a rule that was tested so."""
    rules = [rule for outcome in findings.searches for rule in outcome.rules]
    tests = [rule.chance for rule in rules if rule.chance is not None and rule.chance.adjusted is not None]
    if not tests:
        return ""
    shown = sum(rule.shown for rule in rules)
    are = "is" if 1 in (shown, len(rules)) else "are"
    over = ", later ones for ".join(map(str, sorted({test.rules for test in tests})))
    corrected = f"(corrected for {over}, α = {short(tests[0].level)})"
    return f"{shown} of {numbers.plural(len(rules), 'learned rule')} {are} shown {corrected}"


def published_counts(findings: records.Findings) -> dict[str, int]:
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


def published_line(findings: records.Findings) -> str:
    """The same in words; empty in another run."""
    counts = published_counts(findings)
    return said("rules.published", **counts, floor=findings.mcc_floor) if counts else ""


def worded(rule: str, words: str) -> str:
    """The words of a rule and its syntax behind them; the syntax alone of one without words."""
    return f"{in_brief(words)} ({rule})" if words else rule


def in_brief(words: str) -> str:
    """A rule in words; of a long one its first clauses, and how many there are beside them."""
    clauses = words.split(CLAUSE)
    kept = next(
        n for n in range(len(clauses), 0, -1) if n == 1 or len(CLAUSE.join(clauses[:n])) <= LONGEST_WORDS
    )
    more = len(clauses) - kept
    return CLAUSE.join([*clauses[:kept], *[f"in {numbers.plural(more, 'more case')}"] * bool(more)])


def short(value: float) -> str:
    """`.78`, `-.05`, `1.00`: two decimals without the leading zero, as a correlation is printed."""
    text = f"{value + 0.0:.2f}"
    return "0.00" if float(text) == 0 else text.replace("0.", ".", 1) if abs(float(text)) < 1 else text


def clipped(rule: str, run: str) -> str:
    """The rule, or its beginning with a sign that more follows and the command that shows it."""
    if len(rule) <= LONGEST_RULE:
        return rule
    return rule[:LONGEST_RULE].rsplit(" ", 1)[0] + f" … (`mecharule show {run} --table rules`)"
