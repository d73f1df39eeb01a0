"""Whether a hypothesis is worth a test: words and condition are about the same columns, and it is not known yet."""

from __future__ import annotations

import re

from agent.refining.refinement_state import UnitCase
from mecharule_ops.predicates.language import Predicate, evaluate, parse_predicate, schema_of
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.rules.algebra import Rule

_ARTICLE = "a"
"""A column of this name, or of texts such as `prompt`, is named only where it stands as a term: before an operator, a
comma, a bracket or an apostrophe."""
_TERM = r"(?=\s*(?:[-+*/%<>=,)’\']|≥|≤|×|÷))"


def checked(case: UnitCase, statement: str, predicate: Predicate) -> None:
    """Nothing. Raises `PredicateRefused` with the reason why this is no hypothesis to test.

    A statement that names no column by its name cannot be compared with the condition, and passes.
    """
    words = {_ARTICLE, *(name for name, column in case.columns.items() if column.dtype.kind == "U")}
    named = {name for name in case.columns if _names(statement, name, as_term=name in words)}
    if named - predicate.reads or (named and predicate.reads - named - words):
        raise PredicateRefused(
            f"the statement names {_listed(named)}, the condition reads {_listed(predicate.reads)}; "
            "say both of the same columns"
        )
    if case.anchored.rule and _copies(case, predicate, case.anchored.rule):
        raise PredicateRefused(f"known: it holds where the unit's rule does, {case.anchored.rule}")


def _copies(case: UnitCase, predicate: Predicate, rule: str) -> bool:
    """Whether both hold on the same train records, however they are spelt."""
    schema = schema_of(case.columns)
    fires = Rule.parse(rule).fires(lambda text: evaluate(parse_predicate(text, schema), case.columns))
    return bool((evaluate(predicate, case.columns) == fires)[case.train].all())


def _names(statement: str, column: str, *, as_term: bool) -> bool:
    end = _TERM if as_term else r"(?!\w)"
    return bool(re.search(rf"(?<![\w.]){re.escape(column)}{end}", statement))


def _listed(names: set[str] | frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
