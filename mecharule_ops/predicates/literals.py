"""Literals taken apart: the conjuncts of chains and of `holds(p and q)`, comparisons with a constant as values.

Exact wherever columns hold no NaN and no integer of 2⁵³ or more, as `atoms.complement` takes it too.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from mecharule_ops.predicates.atoms import Literal, complement

Constant = int | float | str | bool
_SIGNS: dict[type[ast.cmpop], str] = {
    **{ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
    **{ast.Eq: "==", ast.NotEq: "!=", ast.In: "in", ast.NotIn: "not in"},
}
_SWAPPED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}


@dataclass(frozen=True, slots=True)
class TwoSides:
    """One comparison: `left sign right`, a constant on the right where there is one."""

    left: ast.expr
    sign: str
    right: ast.expr

    @property
    def constant(self) -> Constant | tuple[Constant, ...] | None:
        """The value on the right; None where it is computed."""
        try:
            value: Constant | tuple[Constant, ...] = ast.literal_eval(self.right)
        except ValueError:
            return None
        return value


@lru_cache(maxsize=16384)
def tree_of(atom: str) -> ast.expr:
    """The syntax tree of an atom; not to be changed."""
    return ast.parse(atom, mode="eval").body


def comparison(atom: str) -> TwoSides | None:
    """The comparison that an atom is; None for a chain of several and for anything else."""
    match tree_of(atom):
        case ast.Compare(left=left, ops=[sign], comparators=[right]):
            if _is_constant(left) and not _is_constant(right):
                left, right, sign = right, left, _SWAPPED.get(type(sign), type(sign))()
            return TwoSides(left, _SIGNS[type(sign)], right)
    return None


def conjuncts(literal: Literal) -> tuple[Literal, ...]:
    """Literals that hold together exactly where this one does: links of a chain, sides of an `and`, a turned `not`."""
    atom, value = literal
    tree = tree_of(atom)
    if not value:
        other = complement(atom)
        return (literal,) if other is None else conjuncts((other, True))
    match tree:
        case ast.Compare(ops=[_, _, *_]):
            return tuple(part for link in links(tree) for part in conjuncts((link, True)))
        case ast.Compare():
            found = comparison(ast.unparse(tree))
            assert found is not None
            return ((f"{ast.unparse(found.left)} {found.sign} {ast.unparse(found.right)}", True),)
        case ast.Call(func=ast.Name(id="holds"), args=[ast.BoolOp(op=ast.And(), values=values)]):
            return tuple(part for side in values for part in conjuncts(_literal(side)))
    return (literal,)


def links(tree: ast.Compare) -> Iterator[str]:
    """The comparisons of a chain."""
    left = tree.left
    for sign, right in zip(tree.ops, tree.comparators, strict=True):
        yield ast.unparse(ast.Compare(left=left, ops=[sign], comparators=[right]))
        left = right


def _literal(side: ast.expr) -> Literal:
    """A side of an `and` as a literal; what may have no value keeps its `not` inside, where it is then false."""
    match side:
        case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)):
            return name, False
        case ast.UnaryOp(op=ast.Not(), operand=ast.Compare() as turned):
            if (other := complement(ast.unparse(turned))) is not None:
                return other, True
            return f"holds({ast.unparse(side)})", True
        case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return f"holds({ast.unparse(side)})", True
    return ast.unparse(side), True


def _is_constant(node: ast.expr) -> bool:
    """A number, a text, or a tuple of them."""
    parts = ast.Constant | ast.Tuple | ast.UnaryOp | ast.operator | ast.unaryop | ast.expr_context
    return all(isinstance(one, parts) for one in ast.walk(node))
