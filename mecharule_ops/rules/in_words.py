"""A rule in the words of its task, less what the task makes certain or impossible: equal on every input that it has.

Where the task enumerates its inputs, literals and clauses go that change nothing on any of them. Where only ranges are
known, a comparison that every value decides goes. Where nothing is known the syntax is put in order.
Records never decide: what is the same on some records need not be the same on others, and a file's items are a sample.
A literal over what the model wrote, or over leads and drops, is open: it may be true or false on any input.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import compress

import numpy as np
from jaxtyping import Bool

from mecharule_ops.predicates import atoms, language, type_check
from mecharule_ops.predicates.literals import comparison, conjuncts, links, tree_of
from mecharule_ops.rules.algebra import Clause, Condition, Rule
from mecharule_ops.rules.families import Family, Graded, UnitRule
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.column_words import Domain
from mecharule_ops.tasks.phrases import Speaker, clause_phrases
from mecharule_ops.types import Columns

CLAUSE = ", or "
"""Between the clauses of a rule."""
EVERYWHERE, NOWHERE = "always: the task has no other input", "never: the task has no such input"
Fires = Bool[np.ndarray, " input"]
Clauses = list[list[atoms.Literal]]


def rule_in_words(rule: Rule, task: Task) -> str:
    """`the right answer is negative, or b's units digit is 1 and …`: the shortest clause first.

    In a clause what is comes before what is not; a comma stands before each `or` between clauses. A literal without
    words stands as syntax, in backticks. Equal to the rule on every input of the task, as `simplified` says; columns
    are taken to hold no NaN. Cost: no model call.
    """
    plain, speaker = simplified(rule, task.domain), Speaker(task.wording, task.domain.ranges)
    if isinstance(plain, bool):
        return EVERYWHERE if plain else NOWHERE
    said = (
        clause_phrases([(one.predicate, one.value) for one in clause.conditions], speaker)
        for clause in sorted(plain.clauses, key=lambda clause: len(clause.conditions))
    )
    return CLAUSE.join(" and ".join(phrase.text for phrase in phrases) for phrases in said)


def with_words(rule: UnitRule, task: Task) -> UnitRule:
    """The unit's rule with its words, as it is stored: no room above needs the task to say it.

    Those of an exception say where it lies, which is where its rule does not hold.
    """
    if rule.rule is None:
        return rule
    if rule.family is Family.EXCEPTION:
        (never,) = rule.rule.clauses[0].conditions
        held = Rule((Clause((replace(never, value=not never.value),)),))
        return replace(rule, words=f"never where {rule_in_words(held, task)}")
    return replace(rule, words=rule_in_words(rule.rule, task))


def worded_terms(found: Graded, task: Task) -> Graded:
    """The terms with their words."""
    return replace(
        found, terms=tuple(replace(term, words=rule_in_words(term.rule, task)) for term in found.terms)
    )


def simplified(rule: Rule, domain: Domain) -> Rule | bool:
    """The rule in plainer terms; True where it holds on all inputs of the task, False where it holds on none."""
    decided = (_decided(clause, domain) for clause in rule.clauses)
    clauses = [clause for clause in decided if clause is not None]
    if domain.whole is not None:
        clauses = _least(clauses, domain)
    if not (clauses and all(clauses)):
        return bool(clauses)
    return Rule(tuple(Clause(tuple(Condition(*literal) for literal in clause)) for clause in clauses))


def _decided(clause: Clause, domain: Domain) -> list[atoms.Literal] | None:
    """The conjuncts of a clause that are not certain; None where one is impossible, or two contradict each other."""
    literals: list[atoms.Literal] = []
    for condition in clause.conditions:
        for literal in _parts((condition.predicate, condition.value), domain):
            known = _value(literal, domain)
            if known is False or (literal[0], not literal[1]) in literals:
                return None
            if known is None and literal not in literals:
                literals.append(literal)
    return literals


def _parts(literal: atoms.Literal, domain: Domain) -> tuple[atoms.Literal, ...]:
    """The conjuncts of a literal; of a chain that shall not hold first the links go that always do."""
    atom, value = literal
    tree = tree_of(atom)
    chain = getattr(tree, "ops", ())[1:]
    if value or not chain:
        return conjuncts(literal)
    open_links = [link for link in links(tree) if _value(conjuncts((link, True))[0], domain) is not True]  # type: ignore[arg-type]
    return conjuncts((open_links[0], False)) if len(open_links) == 1 else (literal,)


def _value(literal: atoms.Literal, domain: Domain) -> bool | None:
    """What a literal is on every input; None where it is not the same on all, or not known."""
    fires = _fires(literal, domain)
    if fires is None and (ends := _ends(literal[0], domain)):
        fires = _holds(literal, ends)
    return None if fires is None or fires.any() != fires.all() else bool(fires.all())


def _ends(atom: str, domain: Domain) -> Columns:
    """The values that decide a comparison of a column of known range: its ends, and the constant if between them."""
    found = comparison(atom)
    span = None if found is None else domain.ranges.get(name := getattr(found.left, "id", ""))
    if span is None or found is None or not isinstance(found.constant, int | float):
        return {}
    return {name: np.array([*span, np.clip(found.constant, *span)])}


@lru_cache(maxsize=128)
def _fires(literal: atoms.Literal, domain: Domain) -> Fires | None:
    """Where a literal holds; None where it is open."""
    return None if domain.whole is None else _holds(literal, domain.whole)


def _holds(literal: atoms.Literal, columns: Columns) -> Fires | None:
    try:
        fires = language.evaluate(language.parse_predicate(literal[0], language.schema_of(columns)), columns)
    except type_check.PredicateRefused:
        return None
    return fires if literal[1] else ~fires


def _least(clauses: Clauses, domain: Domain) -> Clauses:
    """The clauses less those, and then less literals, without which the rule holds on the same inputs."""
    opens = {_open(clause, domain) for clause in clauses}
    where = _where(clauses, opens, domain)
    for less in _shorter(clauses, domain):
        if np.array_equal(_where(less, opens, domain), where):
            return _least(less, domain)
    return clauses


def _shorter(clauses: Clauses, domain: Domain) -> Iterator[Clauses]:
    """Without one clause, then without one literal that is not open, the longest first."""
    for clause in sorted(clauses, key=lambda one: (-len(one), one)):
        yield [other for other in clauses if other is not clause]
    for place, clause in enumerate(clauses):
        for literal in sorted(clause, key=lambda one: (-len(one[0]), one)):
            if _fires(literal, domain) is not None:
                rest = [other for other in clause if other != literal]
                yield [*clauses[:place], rest, *clauses[place + 1 :]]


def _where(clauses: Clauses, opens: Iterable[frozenset[atoms.Literal]], domain: Domain) -> list[Fires]:
    """For each set of open literals the inputs on which some clause holds where these alone are true."""
    nowhere = np.zeros(domain.inputs, bool)
    known = [[m for one in clause if (m := _fires(one, domain)) is not None] for clause in clauses]
    masks = [np.logical_and.reduce([~nowhere, *some]) for some in known]
    own = [_open(clause, domain) for clause in clauses]
    return [np.logical_or.reduce([nowhere, *compress(masks, map(true.issuperset, own))]) for true in opens]


def _open(clause: Iterable[atoms.Literal], domain: Domain) -> frozenset[atoms.Literal]:
    return frozenset(literal for literal in clause if _fires(literal, domain) is None)
