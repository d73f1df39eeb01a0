"""The literals of a clause in words, made from what they are, never from how they are printed.

Two bounds on one term are one phrase. What has no words is its own syntax in backticks. Columns are taken to hold no
NaN, as `predicates.atoms.complement` takes it too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from mecharule_ops.predicates.atoms import Literal
from mecharule_ops.predicates.literals import TwoSides, comparison, conjuncts, links, tree_of
from mecharule_ops.tasks.bounds import (
    Bound,
    Phrase,
    alternatives,
    between,
    equal,
    outside,
    tightest,
    unequal,
)
from mecharule_ops.tasks.column_words import Said, Wording, column_words
from mecharule_ops.tasks.terms import Ranges, WordedTerm, term_of
from mecharule_ops.tasks.text_account import NEGATION
from mecharule_ops.tasks.text_pieces import place_name

_BOUNDS = ("<", "<=", ">", ">=")
_RELATIONS: Mapping[str, tuple[str, bool]] = {
    "==": ("equals", True),
    "!=": ("differs from", False),
    ">": ("exceeds", True),
    ">=": ("is at least", True),
    "<": ("is below", True),
    "<=": ("is at most", True),
}
"""Between two terms, and whether it says what is."""
_MORE: Mapping[str, str] = {
    "==": "as many {} as",
    ">": "more {} than",
    ">=": "at least as many {} as",
    "<": "fewer {} than",
    "<=": "at most as many {} as",
}
"""Between two counts of one kind."""
_PATTERNS: Mapping[str, tuple[str, str]] = {
    NEGATION: ("has a negation", "has no negation"),
    "[0-9]": ("has a digit", "has no digit"),
    "[A-Z]{3}": ("has three capitals in a row", "has no three capitals in a row"),
    "(?i)\\bnot?\\b": ("has the word no or not", "has neither the word no nor not"),
}
_VERBS: Mapping[str, tuple[str, str]] = {
    "contains": ("contains", "does not contain"),
    "startswith": ("begins with", "does not begin with"),
    "endswith": ("ends with", "does not end with"),
    "has_word": ("has the word", "does not have the word"),
    "matches": ("matches", "does not match"),
}


def clause_phrases(literals: Sequence[Literal], wording: Wording, ranges: Ranges) -> tuple[Phrase, ...]:
    """A phrase for each literal of a clause, or for several bounds on one term; what is comes before what is not."""
    parts = list(dict.fromkeys(part for literal in literals for part in conjuncts(literal)))
    bounded: dict[WordedTerm, tuple[list[Bound], list[Bound]]] = {}
    found: list[Phrase | WordedTerm] = []
    for atom, value in parts:
        side = _bound(atom, wording, ranges) if value and atom not in wording.sentences else None
        if side is None:
            found.append(_phrase(atom, value, wording, ranges))
            continue
        term, low, high = side
        found += [] if term in bounded else [term]
        lows, highs = bounded.setdefault(term, ([], []))
        lows.extend(low)
        highs.extend(high)
    phrases = [one if isinstance(one, Phrase) else between(one, *tightest(*bounded[one])) for one in found]
    return tuple(sorted(dict.fromkeys(phrases), key=lambda one: (not one.positive, len(one.text))))


def _bound(atom: str, wording: Wording, ranges: Ranges) -> tuple[WordedTerm, list[Bound], list[Bound]] | None:
    """A term with its lower or its upper end; None for anything but such a comparison."""
    found = comparison(atom)
    if found is None or found.sign not in _BOUNDS:
        return None
    term, value = term_of(found.left, wording, ranges), found.constant
    if term is None or not isinstance(value, int | float):
        return None
    if _share(found, value, wording, ranges) is not None:
        return None
    bound = Bound(value, found.sign.endswith("="))
    return (term, [bound], []) if found.sign.startswith(">") else (term, [], [bound])


def _phrase(atom: str, value: bool, wording: Wording, ranges: Ranges) -> Phrase:
    """One literal in words, else in backticks."""
    said = wording.sentences.get(atom) or next(_said(atom, wording, ranges), None)
    if said is not None:
        return Phrase(said[0]) if value else Phrase(said[1], positive=False)
    made = _compared(atom, value, wording, ranges) or (None if value else _not_both(atom, wording, ranges))
    if made is not None:
        return made
    return Phrase(f"`{atom}`") if value else Phrase(f"not `{atom}`", positive=False)


def _said(atom: str, wording: Wording, ranges: Ranges) -> Iterator[Said]:
    """What a condition says where it is true and where it is false."""
    match tree_of(atom):
        case ast.Name(id=name):
            words = column_words(wording, name)
            if words is not None and words.said is not None:
                yield words.said
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Eq()], comparators=[ast.Constant(value=str(text))]):
            words = column_words(wording, name)
            if words is not None and text in words.values:
                yield words.values[text]
        case ast.Compare(
            left=ast.Name(id=name), ops=[ast.NotEq()], comparators=[ast.Constant(value=str(text))]
        ):
            words = column_words(wording, name)
            if words is not None and text in words.values:
                yield words.values[text][::-1]
        case ast.Call(func=ast.Name(id=function), args=arguments):
            yield from _called(function, arguments, wording, ranges)


def _called(function: str, arguments: Sequence[ast.expr], wording: Wording, ranges: Ranges) -> Iterator[Said]:
    """Conditions that are a call of the language."""
    x = term_of(arguments[0], wording, ranges)
    if x is None:
        return
    match function, arguments:
        case "divisible", [_, ast.Constant(value=2)]:
            yield f"{x.noun} is even", f"{x.noun} is odd"
        case "divisible", [_, by]:
            other = repr(by.value) if isinstance(by, ast.Constant) else _noun(by, wording, ranges)
            if other is not None:
                yield f"{x.noun} is divisible by {other}", f"{x.noun} is not divisible by {other}"
        case "divides", [_, other]:
            if (of := _noun(other, wording, ranges)) is not None:
                yield f"{x.noun} divides {of}", f"{x.noun} does not divide {of}"
        case (("carry" | "borrow"), [_, other]):
            yield from _carried(function, x, term_of(other, wording, ranges), "")
        case (("carry_at" | "borrow_at"), [_, other, ast.Constant(value=int(place))]):
            yield from _carried(function, x, term_of(other, wording, ranges), place_name(place + 1))
        case "has_phrase", [_, other]:
            if (of := _noun(other, wording, ranges)) is not None:
                verb = "side by side in"
                yield (
                    f"the words of {of} stand {verb} {x.noun}",
                    f"the words of {of} do not stand {verb} {x.noun}",
                )
        case "matches", [_, ast.Constant(value=str(pattern))] if pattern in _PATTERNS:
            yes, no = _PATTERNS[pattern]
            yield f"{x.noun} {yes}", f"{x.noun} {no}"
        case _, [_, text] if function in _VERBS:
            yes, no = _VERBS[function]
            yield f"{x.noun} {yes} {ast.unparse(text)}", f"{x.noun} {no} {ast.unparse(text)}"


def _carried(function: str, x: WordedTerm, y: WordedTerm | None, above: str) -> Iterator[Said]:
    """A carry or a borrow of the sizes of two numbers, into or from a place where one is named."""
    if y is None:
        return
    one, other = (each.noun if _unsigned(each) else f"the size of {each.noun}" for each in (x, y))
    if function.startswith("carry"):
        head, verb, to = f"adding {other} to {one}", "carry", "into"
    else:
        head, verb, to = f"taking the smaller of {one} and {other} from the larger", "borrow", "from"
    end = f" {to} the {above}" if above else ""
    yield f"{head} {'carries' if verb == 'carry' else 'borrows'}{end}", f"{head} does not {verb}{end}"


def _unsigned(term: WordedTerm) -> bool:
    return term.span[0] is not None and term.span[0] >= 0


def _noun(node: ast.expr, wording: Wording, ranges: Ranges) -> str | None:
    term = term_of(node, wording, ranges)
    return None if term is None else term.noun


def _compared(atom: str, value: bool, wording: Wording, ranges: Ranges) -> Phrase | None:
    """Equality with values, a comparison of two terms, a chain that does not hold; None for anything else."""
    tree = tree_of(atom)
    if not value:
        return _not_between(tree, wording, ranges) if isinstance(tree, ast.Compare) else None
    found = comparison(atom)
    if found is None or (term := term_of(found.left, wording, ranges)) is None:
        return None
    constant = found.constant
    if constant is None:
        other = term_of(found.right, wording, ranges)
        return None if other is None else _of_two_terms(term, found, other, wording, ranges)
    if (share := _share(found, constant, wording, ranges)) is not None:
        return share
    if isinstance(constant, bool) or (isinstance(constant, tuple) and not constant):
        return None
    if isinstance(constant, tuple):
        joined = alternatives(constant)
        return equal(term, joined) if found.sign == "in" else unequal(term, joined)
    if found.sign not in ("==", "!="):
        return None
    if term.subject.endswith(" modulo 2") and constant in (0, 1):
        even = (constant == 0) == (found.sign == "==")
        return Phrase(f"{term.subject.removesuffix(' modulo 2')} is {'even' if even else 'odd'}")
    return equal(term, repr(constant)) if found.sign == "==" else unequal(term, repr(constant))


def _of_two_terms(
    term: WordedTerm, found: TwoSides, other: WordedTerm, wording: Wording, ranges: Ranges
) -> Phrase:
    relation, positive = _RELATIONS[found.sign]
    if term.unit and found.sign in _MORE:
        times, of = "", other
        if isinstance(found.right, ast.BinOp) and isinstance(found.right.op, ast.Mult):
            inner = term_of(found.right.right, wording, ranges)
            if inner is not None and ast.unparse(found.right.left) == "2":
                times, of = "twice ", inner
        if of.unit == term.unit:
            more = _MORE[found.sign].format(term.unit)
            if not times or more.startswith(("as", "at")):
                more = more.replace("as many", f"{times}as many")
                return Phrase(f"{term.subject} has {more} {of.subject}")
    return Phrase(f"{term.noun} {relation} {other.noun}", positive=positive)


def _share(found: TwoSides, constant: object, wording: Wording, ranges: Ranges) -> Phrase | None:
    """How many of one text's words another has: all, half or more, less than half."""
    if not isinstance(constant, int | float):
        return None
    match found.left:
        case ast.Call(func=ast.Name(id="overlap"), args=[x, y]):
            one, two = _noun(x, wording, ranges), _noun(y, wording, ranges)
            said = {
                ("==", 1): (f"{one} has every word of {two}", True),
                ("!=", 1): (f"{one} does not have every word of {two}", False),
                (">=", 0.5): (f"{one} has half of the words of {two} or more", True),
                ("<", 0.5): (f"{one} has less than half of the words of {two}", True),
            }.get((found.sign, float(constant)))
            return None if said is None or one is None or two is None else Phrase(*said)
    return None


def _not_between(tree: ast.Compare, wording: Wording, ranges: Ranges) -> Phrase | None:
    """That a chain of two bounds on one term does not hold."""
    sides = [_bound(part, wording, ranges) for link in links(tree) for part, _ in conjuncts((link, True))]
    if len(sides) != 2 or sides[0] is None or sides[1] is None or sides[0][0] != sides[1][0]:
        return None
    low, high = tightest([*sides[0][1], *sides[1][1]], [*sides[0][2], *sides[1][2]])
    return None if low is None or high is None else outside(sides[0][0], low, high)


def _not_both(atom: str, wording: Wording, ranges: Ranges) -> Phrase | None:
    """That `holds(p and q)` does not hold."""
    sides = clause_phrases([(atom, True)], wording, ranges) if len(conjuncts((atom, True))) > 1 else ()
    if len(sides) < 2:
        return None
    return Phrase(f"not ({' and '.join(one.text for one in sides)})", positive=False)
