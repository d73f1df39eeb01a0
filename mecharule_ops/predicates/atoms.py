"""The text of a rule taken apart into atoms: the canonical texts of predicates (paper, §4.2).

An atom is what `ast.unparse` writes for an expression whose top is no connective, so equal predicates have
equal text, and `and`, `or`, `not` around atoms always belong to the rule. A predicate that is itself a
connective is wrapped by the predicate language as `holds(...)`. Nothing is evaluated; `ast` only splits.
"""

import ast
from collections.abc import Mapping
from functools import lru_cache

from mecharule_ops.errors import UsageError

Literal = tuple[str, bool]
"""An atom and the value it must have."""


@lru_cache(maxsize=65536)
def canonical(text: str) -> str:
    """The atom as `ast.unparse` writes it. Raises `UsageError` unless the text is one atom."""
    return _unparse(_expression(text))


def disjuncts(text: str) -> tuple[tuple[Literal, ...], ...]:
    """The clauses of a printed rule as literals. Raises `UsageError` unless it is an OR of ANDs of them."""
    branches = _operands(_expression(text), ast.Or)
    return tuple(tuple(map(_literal, _operands(branch, ast.And))) for branch in branches)


def _expression(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UsageError(f"expected a rule such as a > b and carry(a, b), got {text[:80]!r}") from None


def _operands(node: ast.expr, connective: type[ast.boolop]) -> list[ast.expr]:
    """The operands of a possibly nested connective; the node itself when its top is another."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, connective):
        return [leaf for value in node.values for leaf in _operands(value, connective)]
    return [node]


def _literal(node: ast.expr) -> Literal:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _unparse(node.operand), False
    return _unparse(node), True


def _unparse(node: ast.expr) -> str:
    """The text of an atom. Raises `UsageError` on a connective: it binds looser than the rule around it."""
    loose = isinstance(node, ast.BoolOp | ast.IfExp | ast.Lambda | ast.NamedExpr)
    if loose or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        text = ast.unparse(node)[:80]
        raise UsageError(f"expected clauses of predicates joined by or, got {text!r}: wrap it as holds(...)")
    return ast.unparse(node)


def equality(text: str) -> tuple[str, int | float | str] | None:
    """The expression and the constant of an atom such as `digit(a, 0) == 7`; None for any other atom."""
    match _expression(text):
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[constant]):
            try:
                value = ast.literal_eval(constant)
            except ValueError:
                return None
            plain = isinstance(value, int | float | str) and not isinstance(value, bool)
            return (ast.unparse(left), value) if plain else None
    return None


_PAIRS = ((ast.Lt, ast.GtE), (ast.Gt, ast.LtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn))
_OPPOSITE: Mapping[type[ast.cmpop], type[ast.cmpop]] = dict(_PAIRS) | {no: yes for yes, no in _PAIRS}


@lru_cache(maxsize=65536)
def complement(text: str) -> str | None:
    """The atom that is true where this one is false: `a < 5` for `a >= 5`; None where `not (...)` must stay.

    That is: anything but one comparison, and a comparison that divides by more than a constant, since both
    directions are false where there is no value. Columns are taken to hold no NaN.
    """
    tree = _expression(text)
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1 or any(map(_may_be_undefined, ast.walk(tree))):
        return None
    return ast.unparse(
        ast.Compare(left=tree.left, ops=[_OPPOSITE[type(tree.ops[0])]()], comparators=tree.comparators)
    )


def _may_be_undefined(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod)
        and not (isinstance(node.right, ast.Constant) and node.right.value != 0)
    )
