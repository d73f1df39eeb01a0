"""A rule less what its task makes certain or impossible: equal to the rule on every input that the task has.

Where the task enumerates its inputs, literals and clauses go that change nothing on any of them, and a comparison of
two terms gives way to a plainer condition that is true of the same inputs: `a < expected` of sums is `b != 0`. Where
only ranges are known, a comparison that every value decides goes. Where nothing is known the syntax is put in order.
Records never decide: what is the same on some records need not be the same on others, and a file's items are a sample.
A literal over what the model wrote, or over leads and drops, may be true or false on any input.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Bool

from mecharule_ops.predicates.atoms import Literal
from mecharule_ops.predicates.language import evaluate, parse_predicate, schema_of
from mecharule_ops.predicates.literals import comparison, conjuncts, links, tree_of
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.rules.algebra import Clause, Condition, Rule
from mecharule_ops.tasks.column_words import Domain

Fires = Bool[np.ndarray, " input"]


def simplified(rule: Rule, domain: Domain) -> Rule | bool:
    """The rule in plainer terms; True where it holds on all inputs of the task, False where it holds on none."""
    clauses = [_decided(clause, domain) for clause in rule.clauses]
    kept = [clause for clause in clauses if clause is not None]
    if domain.whole is not None:
        kept = _without_clauses([one for one in (_less(c, domain) for c in kept) if one is not None], domain)
        kept = [list(dict.fromkeys(_plainer(one, domain) for one in c)) for c in _absorbed(kept, domain)]
    if any(not clause for clause in kept):
        return True
    if not kept:
        return False
    return Rule(tuple(Clause(tuple(Condition(*literal) for literal in clause)) for clause in kept))


def _decided(clause: Clause, domain: Domain) -> list[Literal] | None:
    """The conjuncts of a clause that are not certain; None where one is impossible, or two contradict each other."""
    literals: list[Literal] = []
    for condition in clause.conditions:
        for literal in _parts((condition.predicate, condition.value), domain):
            known = _value(literal, domain)
            if known is False or (literal[0], not literal[1]) in literals:
                return None
            if known is None and literal not in literals:
                literals.append(literal)
    return literals


def _parts(literal: Literal, domain: Domain) -> tuple[Literal, ...]:
    """The conjuncts of a literal; of a chain that shall not hold first the links go that always do."""
    atom, value = literal
    tree = tree_of(atom)
    chain = getattr(tree, "ops", ())[1:]
    if value or not chain:
        return conjuncts(literal)
    open_links = [link for link in links(tree) if _value(conjuncts((link, True))[0], domain) is not True]  # type: ignore[arg-type]
    return conjuncts((open_links[0], False)) if len(open_links) == 1 else (literal,)


def _value(literal: Literal, domain: Domain) -> bool | None:
    """What a literal is on every input; None where it is not the same on all, or not known."""
    fires = _fires(literal, domain)
    if fires is not None:
        return True if fires.all() else None if fires.any() else False
    atom, value = literal
    found = comparison(atom)
    span = None if found is None else domain.ranges.get(getattr(found.left, "id", ""))
    if span is None or found is None or not isinstance(constant := found.constant, int | float):
        return None
    least, most = span
    ends: dict[str, tuple[bool, bool]] = {
        "<": (most < constant, least >= constant),
        "<=": (most <= constant, least > constant),
        ">": (least > constant, most <= constant),
        ">=": (least >= constant, most < constant),
        "==": (least == most == constant, not least <= constant <= most),
        "!=": (not least <= constant <= most, least == most == constant),
    }
    always, never = ends.get(found.sign, (False, False))
    return value if always else not value if never else None


@lru_cache(maxsize=128)
def _fires(literal: Literal, domain: Domain) -> Fires | None:
    """Where a literal holds; None where it reads more than the inputs."""
    if domain.whole is None:
        return None
    try:
        predicate = parse_predicate(literal[0], schema_of(domain.whole))
    except PredicateRefused:
        return None
    fires = evaluate(predicate, domain.whole)
    return fires if literal[1] else ~fires


def _known(literals: Iterable[Literal], domain: Domain) -> Fires:
    """Where those literals hold together that the inputs decide."""
    masks = [mask for literal in literals if (mask := _fires(literal, domain)) is not None]
    return np.logical_and.reduce([np.ones(domain.inputs, bool), *masks])


def _open(literals: Iterable[Literal], domain: Domain) -> frozenset[Literal]:
    """Those that the inputs do not decide."""
    return frozenset(literal for literal in literals if _fires(literal, domain) is None)


def _longest_first(literals: Iterable[Literal]) -> list[Literal]:
    return sorted(literals, key=lambda literal: (-len(literal[0]), literal))


def _less(literals: list[Literal], domain: Domain) -> list[Literal] | None:
    """The clause less what its other literals imply; None where it holds on no input."""
    whole = _known(literals, domain)
    if not whole.any():
        return None
    for literal in _longest_first(literals):
        rest = [other for other in literals if other != literal]
        if _fires(literal, domain) is not None and np.array_equal(_known(rest, domain), whole):
            literals = rest
    return literals


def _elsewhere(literals: Sequence[Literal], others: Iterable[Sequence[Literal]], domain: Domain) -> Fires:
    """Where some other clause holds wherever this one's open literals do."""
    own = _open(literals, domain)
    weaker = [_known(other, domain) for other in others if _open(other, domain) <= own]
    return np.logical_or.reduce([np.zeros(domain.inputs, bool), *weaker])


def _without_clauses(clauses: list[list[Literal]], domain: Domain) -> list[list[Literal]]:
    """The clauses less those that the others imply, the longest looked at first."""
    for clause in sorted(clauses, key=lambda one: (-len(one), one)):
        others = [other for other in clauses if other is not clause]
        if not (_known(clause, domain) & ~_elsewhere(clause, others, domain)).any():
            clauses = others
    return clauses


def _absorbed(clauses: list[list[Literal]], domain: Domain) -> list[list[Literal]]:
    """The clauses less literals that only keep them off what another clause covers: `a or (not a and b)`."""
    for place, clause in enumerate(clauses):
        others = clauses[:place] + clauses[place + 1 :]
        for literal in _longest_first(clause):
            rest = [other for other in clauses[place] if other != literal]
            more = _known(rest, domain) & ~_known(clauses[place], domain)
            if _fires(literal, domain) is not None and not (more & ~_elsewhere(rest, others, domain)).any():
                clauses = [*clauses[:place], rest, *clauses[place + 1 :]]
    return clauses


def _plainer(literal: Literal, domain: Domain) -> Literal:
    """In place of a comparison of two terms a plainer condition on the same inputs, if any."""
    found, fires = comparison(literal[0]), _fires(literal, domain)
    if found is None or found.constant is not None or fires is None or literal[0] in domain.plainer:
        return literal
    for atom in domain.plainer:
        if np.array_equal(_fires((atom, True), domain), fires):  # type: ignore[arg-type]
            return atom, True
    return literal
