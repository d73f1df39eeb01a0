"""The predicate language of stage 1 (paper, §4.1 and appendix "Operational settings").

A predicate is a Boolean expression over typed columns: comparisons, arithmetic, `and` / `or` / `not`, `in`
with constants, and the functions of `functions`. It is read by a whitelist over Python's syntax
tree and evaluated by column; no text is ever executed.

A predicate is true on a row where Python would find it true, and false where Python would find it false
or stop (division by zero). It is also false on a row where it meets an integer of 2⁵³ or more, so that no
arithmetic can wrap. `and`, `or` and chained comparisons stop early as in Python.

The printed form is canonical: `and`, `or`, `not` at the top are wrapped as `holds(...)`, so that predicates
joined by `and` / `or` into rules can be taken apart again.
"""

import ast
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce

import numpy as np
from jaxtyping import Bool

from mecharule_ops.errors import UsageError
from mecharule_ops.predicates.functions import FUNCTIONS
from mecharule_ops.predicates.type_check import clip, infer, refuse, shown
from mecharule_ops.types import Columns

MAX_CHARACTERS = 500
MAX_NODES = 120
_ASSIGNS = re.compile(r"(?<![=<>!])=(?!=)")
_INTEGER_LIMIT = 2.0**53

_ARITHMETIC: Mapping[type[ast.operator], np.ufunc] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.remainder,
}
_COMPARISONS: Mapping[type[ast.cmpop], np.ufunc] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
_DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)
_TYPES = {"i": int, "f": float, "U": str, "b": bool}


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """A parsed predicate as a value; prints as its canonical text and parses back to itself.

    >>> print(parse_predicate("100<=b", {"b": int}))
    100 <= b
    """

    text: str
    """Canonical form."""
    reads: frozenset[str]
    """Names of the columns it depends on."""

    def __str__(self) -> str:
        return self.text


def schema_of(columns: Columns) -> dict[str, type]:
    """The type (int, float, str, bool) of each column. Raises `UsageError` on any other array type."""
    for name, column in columns.items():
        if column.dtype.kind not in _TYPES:
            raise UsageError(f"expected column {name!r} of int, float, str or bool, got {column.dtype}")
    return {name: _TYPES[column.dtype.kind] for name, column in columns.items()}


def parse_predicate(text: str, schema: Mapping[str, type]) -> Predicate:
    """The predicate that `text` denotes over columns of these types.

    Raises `PredicateRefused` when the text is too long or too large, does not parse, has a wrong type, reads
    no column, or uses anything but the listed operators, functions and columns.
    """
    return _parse(text, tuple(schema.items()))[0]


def evaluate(predicate: Predicate, columns: Columns) -> Bool[np.ndarray, " record"]:
    """Whether the predicate is true on each record. Raises `PredicateRefused` when the columns do not fit."""
    _, tree = _parse(predicate.text, tuple(schema_of(columns).items()))
    with np.errstate(all="ignore"):
        values, defined = _evaluate(tree, columns)
    return np.ascontiguousarray(np.broadcast_to(values & defined, (len(next(iter(columns.values()))),)))


def values_of(text: str, columns: Columns) -> np.ndarray:
    """What a condition or arithmetic of the language gives on each record; false or NaN where it is undefined.

    Raises `PredicateRefused` as `parse_predicate` does.
    """
    tree = _canonical(_read(text))
    kind = infer(tree, schema_of(columns))
    with np.errstate(all="ignore"):
        values, defined = _evaluate(tree, columns)
    if kind in (int, float):
        values = values if defined.all() else np.where(defined, values.astype(float), np.nan)
    elif kind is bool:
        values = values & defined
    return np.ascontiguousarray(np.broadcast_to(values, (len(next(iter(columns.values()))),)))


def vocabulary() -> str:
    """The language described for people and for prompts, one line an operator group or function."""
    lines = [
        "x < y, <=, >, >=, ==, != (chains allowed): comparison",
        "x + y, -, *, /, //, %: arithmetic on numbers; false on a row that divides by 0",
        "x in (1, 2), x not in ('+', '-'): membership in constants",
        "p and q, p or q, not p: logic on conditions; a bool column is a condition",
    ]
    return "\n".join(lines + [f"{row.signature}: {row.doc}" for row in FUNCTIONS.values()])


@lru_cache(maxsize=4096)
def _parse(text: str, schema: tuple[tuple[str, type], ...]) -> tuple[Predicate, ast.expr]:
    tree = _canonical(_read(text))
    types = dict(schema)
    kind = infer(tree, types)
    if kind is not bool:
        refuse("a condition (true or false)", f"{shown(tree)}, which is {kind.__name__}")
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in functions)
    reads = frozenset(node.id for node in names)
    if not reads:
        refuse(f"a condition on a column of {', '.join(types)}", shown(tree))
    return Predicate(text=ast.unparse(tree), reads=reads), tree


def _read(text: str) -> ast.expr:
    """The syntax tree, bounded in length and nodes before anything else looks at it."""
    if len(text) > MAX_CHARACTERS:
        refuse(f"at most {MAX_CHARACTERS} characters", f"{len(text)}: {clip(text)}")
    try:
        with warnings.catch_warnings():
            # A pattern such as '\d' is an invalid escape to Python and means what was intended.
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval").body
    # The parser reports nesting that is too deep as RecursionError or MemoryError.
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        hint = " (equal is ==, a text stands in quotes)" if _ASSIGNS.search(text) else ""
        refuse(f"one expression{hint}", clip(text))
    nodes = sum(1 for _ in ast.walk(tree))
    if nodes > MAX_NODES:
        refuse(f"at most {MAX_NODES} syntax nodes", f"{nodes}: {clip(text)}")
    return tree


class _Canonical(ast.NodeTransformer):
    """Drops `holds(...)` and writes lists and sets of constants as tuples."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        plain = isinstance(node.func, ast.Name) and node.func.id == "holds" and not node.keywords
        return node.args[0] if plain and len(node.args) == 1 else node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        node.comparators = [
            ast.Tuple(elts=item.elts, ctx=ast.Load()) if isinstance(item, ast.List | ast.Set) else item
            for item in node.comparators
        ]
        return node


def _canonical(tree: ast.expr) -> ast.expr:
    tree = _Canonical().visit(tree)
    if isinstance(tree, ast.BoolOp) or (isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not)):
        return ast.Call(func=ast.Name(id="holds", ctx=ast.Load()), args=[tree], keywords=[])
    return tree


_Cell = tuple[np.ndarray, np.ndarray]
"""(values, rows on which they are defined), each one a record or a single one for all records."""


def _bounded(values: np.ndarray, magnitude: np.ndarray) -> _Cell:
    """Integers of 2⁵³ and more, by their float magnitude, become undefined zeros."""
    small = magnitude < _INTEGER_LIMIT
    return np.where(small, values, 0), small


def _evaluate(node: ast.expr, columns: Columns) -> _Cell:
    match node:
        case ast.Constant(value=value):
            return np.array([value]), np.array([True])
        case ast.Name(id=name):
            column = columns[name]
            if column.dtype.kind != "i":
                return column, np.array([True])
            return _bounded(column.astype(np.int64), np.abs(column.astype(np.float64)))
        case ast.UnaryOp(op=operator, operand=operand):
            values, defined = _evaluate(operand, columns)
            if isinstance(operator, ast.UAdd):
                return values, defined
            return (~values if isinstance(operator, ast.Not) else -values), defined
        case ast.BinOp(left=left, op=operator, right=right):
            return _evaluate_arithmetic(operator, _evaluate(left, columns), _evaluate(right, columns))
        case ast.BoolOp(op=operator, values=parts):
            join = _and if isinstance(operator, ast.And) else _or
            return reduce(join, (_evaluate(part, columns) for part in parts))
        case ast.Compare():
            return _evaluate_comparison(node, columns)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _evaluate_call(name, [_evaluate(argument, columns) for argument in arguments])
    raise AssertionError(f"the type check let {ast.dump(node)} through")


def _evaluate_arithmetic(operator: ast.operator, left: _Cell, right: _Cell) -> _Cell:
    (x, x_defined), (y, y_defined) = left, right
    defined = x_defined & y_defined
    if isinstance(operator, _DIVISIONS):
        defined = defined & (y != 0)
        y = np.where(y == 0, 1, y)
    function = _ARITHMETIC[type(operator)]
    values = function(x, y)
    if values.dtype.kind == "f":
        return values, defined
    values, small = _bounded(values, np.abs(function(x.astype(np.float64), y.astype(np.float64))))
    return values, defined & small


def _and(left: _Cell, right: _Cell) -> _Cell:
    return left[0] & right[0], left[1] & (~left[0] | right[1])


def _or(left: _Cell, right: _Cell) -> _Cell:
    return left[0] | right[0], left[1] & (left[0] | right[1])


def _evaluate_comparison(node: ast.Compare, columns: Columns) -> _Cell:
    left = _evaluate(node.left, columns)
    links = []
    for operator, item in zip(node.ops, node.comparators, strict=True):
        if isinstance(item, ast.Tuple):
            members = [np.equal(left[0], _evaluate(element, columns)[0]) for element in item.elts]
            inside = np.logical_or.reduce(members)
            links.append((inside if isinstance(operator, ast.In) else ~inside, left[1]))
            continue
        right = _evaluate(item, columns)
        links.append((_COMPARISONS[type(operator)](left[0], right[0]), left[1] & right[1]))
        left = right
    return reduce(_and, links)


def _evaluate_call(name: str, arguments: list[_Cell]) -> _Cell:
    function = FUNCTIONS[name]
    values = [cell[0] for cell in arguments]
    defined = reduce(np.logical_and, (cell[1] for cell in arguments))
    if function.undefined is not None:
        defined = defined & ~function.undefined(*values)
    return function.apply(*values), defined
