"""Which expressions are predicates: the whitelist over Python's syntax tree and its type rules.

Types are int, float, str and bool. Numbers compare with numbers, texts and conditions only for equality;
there is no conversion between conditions and numbers.
"""

import ast
from collections.abc import Mapping
from typing import NoReturn

import numpy as np

from mecharule_ops.errors import UsageError
from mecharule_ops.predicates.functions import FUNCTIONS, PLACES, Kind, matches_pattern

MAX_CONSTANT = 10**12
"""Largest magnitude of a number written in a predicate."""
MAX_TEXT = 200
"""Longest text written in a predicate."""
ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_NUMBERS = (int, float)


class PredicateRefused(UsageError):
    """A text that is not a predicate over the given columns."""


def refuse(expected: str, got: str) -> NoReturn:
    """Raises `PredicateRefused` with both sides on one line."""
    raise PredicateRefused(f"predicate refused: expected {expected}, got {got}")


def clip(text: str) -> str:
    """At most 80 printable ASCII characters of a quoted text."""
    printed = ascii(text)
    return printed if len(printed) <= 80 else printed[:79] + "…"


def shown(node: ast.AST) -> str:
    """A syntax node as at most 80 printable characters."""
    return clip(ast.unparse(node))


def infer(node: ast.expr, schema: Mapping[str, type]) -> type:
    """The type of an expression over these columns. Raises `PredicateRefused` on whatever is not listed."""
    match node:
        case ast.Constant():
            return _infer_constant(node)
        case ast.Name(id=name):
            if name not in schema:
                refuse(f"a column of {', '.join(schema)}", clip(name))
            return schema[name]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _demand(operand, Kind.BOOLEAN, schema)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return _demand(operand, Kind.NUMBER, schema)
        case ast.BoolOp(values=values):
            for value in values:
                _demand(value, Kind.BOOLEAN, schema)
            return bool
        case ast.BinOp(left=left, op=operator, right=right) if isinstance(operator, ARITHMETIC):
            kinds = {_demand(left, Kind.NUMBER, schema), _demand(right, Kind.NUMBER, schema)}
            return float if float in kinds or isinstance(operator, ast.Div) else int
        case ast.Compare():
            return _infer_comparison(node, schema)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return _infer_call(name, arguments, schema)
        case ast.Call():
            refuse(f"a call of one of {', '.join(FUNCTIONS)}", shown(node))
    refuse("columns, constants, listed functions and operators", f"{type(node).__name__} {shown(node)}")


def writable(value: float | str) -> bool:
    """Whether a predicate may name this number or text, beside a column's name and within its length."""
    return len(repr(value)) <= MAX_TEXT if isinstance(value, str) else abs(value) <= MAX_CONSTANT


def _infer_constant(node: ast.Constant) -> type:
    value = node.value
    if isinstance(value, bool):
        return bool
    if isinstance(value, int | float):
        if abs(value) > MAX_CONSTANT:
            refuse(f"a number up to {MAX_CONSTANT:.0e} in magnitude", shown(node))
        return type(value)
    if isinstance(value, str):
        # Lone surrogates cannot be stored or shown.
        if len(value) > MAX_TEXT or any("\ud800" <= character <= "\udfff" for character in value):
            refuse(f"text of at most {MAX_TEXT} Unicode characters", shown(node))
        return str
    refuse("a number, a text, True or False", shown(node))


def _infer_comparison(node: ast.Compare, schema: Mapping[str, type]) -> type:
    left = infer(node.left, schema)
    for operator, item in zip(node.ops, node.comparators, strict=True):
        if isinstance(operator, ast.In | ast.NotIn):
            if not isinstance(item, ast.Tuple) or not item.elts or len(node.ops) > 1:
                refuse("`in` with a tuple of constants, or contains(s, 'x')", shown(node))
            kinds = {_infer_member(element) for element in item.elts}
            comparable = all(_comparable(left, kind) for kind in kinds)
        else:
            right = infer(item, schema)
            equality = isinstance(operator, ast.Eq | ast.NotEq)
            order = isinstance(operator, _ORDER)
            comparable = (equality or (order and left in _NUMBERS)) and _comparable(left, right)
            left = right
        if not comparable:
            refuse("a comparison of numbers, or equality of one type", shown(node))
    return bool


def _infer_member(node: ast.expr) -> type:
    match node:
        case ast.Constant() | ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant()):
            return infer(node, {})
    refuse("constants in a tuple", shown(node))


def _comparable(left: type, right: type) -> bool:
    return left is right or (left in _NUMBERS and right in _NUMBERS)


def _infer_call(name: str, arguments: list[ast.expr], schema: Mapping[str, type]) -> type:
    function = FUNCTIONS[name]
    if len(arguments) != len(function.parameters):
        refuse(function.signature, f"{len(arguments)} arguments")
    kinds = [
        _demand(argument, kind, schema) for argument, kind in zip(arguments, function.parameters, strict=True)
    ]
    return function.result or (float if float in kinds else int)


def _demand(node: ast.expr, kind: Kind, schema: Mapping[str, type]) -> type:
    """The type of `node`, which must be of this kind."""
    value = node.value if isinstance(node, ast.Constant) else None
    found = infer(node, schema)
    if not {
        Kind.NUMBER: found in _NUMBERS,
        Kind.INTEGER: found is int,
        Kind.BOOLEAN: found is bool,
        Kind.TEXT: found is str and isinstance(node, ast.Name),
        Kind.LITERAL: isinstance(value, str) and value != "",
        Kind.PATTERN: isinstance(value, str) and _is_pattern(value),
        Kind.PLACE: type(value) is int and 0 <= value < PLACES,
    }[kind]:
        refuse(kind.value, f"{shown(node)}, which is {found.__name__}")
    return found


def _is_pattern(pattern: str) -> bool:
    try:
        matches_pattern(np.array([""]), pattern)
    except ValueError:
        return False
    return True
