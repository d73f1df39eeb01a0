"""The literals of a clause in words, made from what they are, never from how they are printed.

Several bounds on one term are one phrase: `a's tens digit is from 3 to 5`. What has no words is its own syntax in
backticks. Columns are taken to hold no NaN, as `predicates.atoms.complement` takes it too.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import NamedTuple

from mecharule_ops.predicates.atoms import Literal
from mecharule_ops.predicates.literals import TwoSides, comparison, conjuncts, links, tree_of
from mecharule_ops.tasks.column_words import Said, Wording, column_words
from mecharule_ops.tasks.terms import NoWords, Speaker, WordedTerm
from mecharule_ops.tasks.text_account import NEGATION
from mecharule_ops.tasks.text_pieces import place_name

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
_SHARES: Mapping[tuple[str, float], tuple[str, bool]] = {
    ("==", 1): ("{} has every word of {}", True),
    ("!=", 1): ("{} does not have every word of {}", False),
    (">=", 0.5): ("{} has half of the words of {} or more", True),
    ("<", 0.5): ("{} has less than half of the words of {}", True),
}
"""How many of one text's words another has."""
_PATTERNS: Mapping[str, Said] = {
    NEGATION: ("has a negation", "has no negation"),
    "[0-9]": ("has a digit", "has no digit"),
    "[A-Z]{3}": ("has three capitals in a row", "has no three capitals in a row"),
    "(?i)\\bnot?\\b": ("has the word no or not", "has neither the word no nor not"),
}
_VERBS: Mapping[str, Said] = {
    "contains": ("contains", "does not contain"),
    "startswith": ("begins with", "does not begin with"),
    "endswith": ("ends with", "does not end with"),
    "has_word": ("has the word", "does not have the word"),
    "matches": ("matches", "does not match"),
}


@dataclass(frozen=True, slots=True)
class Phrase:
    """A sentence, and whether it says what is rather than what is not."""

    text: str
    positive: bool = True


class Bound(NamedTuple):
    """One end of what is meant."""

    side: OneOf["low", "high"]
    at: float
    closed: bool
    """Whether the number belongs to it."""

    @property
    def whole(self) -> int:
        """The last whole number that is meant."""
        step, inwards = (1, math.ceil) if self.side == "low" else (-1, math.floor)
        return inwards(self.at) if self.closed or self.at % 1 else int(self.at) + step


def clause_phrases(
    literals: Sequence[Literal], wording: Wording, ranges: Mapping[str, tuple[int, int]]
) -> tuple[Phrase, ...]:
    """A phrase for each literal of a clause, or for several bounds on one term; what is comes before what is not."""
    return _phrases(literals, Speaker(wording, ranges))


def _phrases(literals: Sequence[Literal], speaker: Speaker) -> tuple[Phrase, ...]:
    bounded: dict[WordedTerm, list[Bound]] = {}
    found: list[Phrase | WordedTerm] = []
    for atom, value in dict.fromkeys(part for literal in literals for part in conjuncts(literal)):
        side = _bound(atom, speaker) if value and atom not in speaker.wording.sentences else None
        if side is None:
            found.append(_phrase(atom, value, speaker))
            continue
        term, bound = side
        found += [] if term in bounded else [term]
        bounded.setdefault(term, []).append(bound)
    phrases = [one if isinstance(one, Phrase) else _between(one, *_tightest(bounded[one])) for one in found]
    return tuple(sorted(dict.fromkeys(phrases), key=lambda one: (not one.positive, len(one.text))))


def _bound(atom: str, speaker: Speaker) -> tuple[WordedTerm, Bound] | None:
    """A term with its lower or its upper end; None for anything but such a comparison."""
    found = comparison(atom)
    if found is None or found.sign[0] not in "<>" or not isinstance(value := found.constant, int | float):
        return None
    try:
        term = speaker.term(found.left)
        shared = _share(found, speaker)
    except NoWords:
        return None
    side: OneOf["low", "high"] = "low" if found.sign[0] == ">" else "high"
    return None if shared else (term, Bound(side, value, found.sign.endswith("=")))


def _phrase(atom: str, value: bool, speaker: Speaker) -> Phrase:
    """One literal in words, else in backticks."""
    try:
        if said := speaker.wording.sentences.get(atom) or _said(atom, speaker):
            return Phrase(said[not value], positive=value)
    except NoWords:
        pass
    try:
        made = _compared(atom, speaker) if value else _not_between(atom, speaker) or _not_both(atom, speaker)
    except NoWords:
        made = None
    return made or (Phrase(f"`{atom}`") if value else Phrase(f"not `{atom}`", positive=False))


def _said(atom: str, speaker: Speaker) -> Said | None:
    """What a condition says where it is true and where it is false."""
    match tree_of(atom):
        case ast.Name(id=name):
            words = column_words(speaker.wording, name)
            return words.said if words else None
        case ast.Compare(
            left=ast.Name(id=name),
            ops=[ast.Eq() | ast.NotEq() as sign],
            comparators=[ast.Constant(value=str(text))],
        ):
            words = column_words(speaker.wording, name)
            said = words.values.get(text) if words else None
            return said[::-1] if said and isinstance(sign, ast.NotEq) else said
        case ast.Call(func=ast.Name(id=function), args=[first, *rest]):
            return _called(function, speaker.term(first), rest, speaker)
    return None


def _called(function: str, x: WordedTerm, rest: Sequence[ast.expr], speaker: Speaker) -> Said | None:
    """Conditions that are a call of the language."""
    match function, rest:
        case "divisible", [ast.Constant(value=2)]:
            return f"{x.noun} is even", f"{x.noun} is odd"
        case "divisible", [by]:
            other = repr(by.value) if isinstance(by, ast.Constant) else speaker.noun(by)
            return f"{x.noun} is divisible by {other}", f"{x.noun} is not divisible by {other}"
        case "divides", [other]:
            of = speaker.noun(other)
            return f"{x.noun} divides {of}", f"{x.noun} does not divide {of}"
        case (("carry" | "borrow"), [other]):
            return _carried(function, x, speaker.term(other), "")
        case (("carry_at" | "borrow_at"), [other, ast.Constant(value=int(place))]):
            return _carried(function.removesuffix("_at"), x, speaker.term(other), place_name(place + 1))
        case "has_phrase", [other]:
            of, beside = speaker.noun(other), f"side by side in {x.noun}"
            return f"the words of {of} stand {beside}", f"the words of {of} do not stand {beside}"
        case "matches", [ast.Constant(value=str(pattern))] if pattern in _PATTERNS:
            yes, no = _PATTERNS[pattern]
            return f"{x.noun} {yes}", f"{x.noun} {no}"
        case _, [text] if function in _VERBS:
            yes, no = _VERBS[function]
            return f"{x.noun} {yes} {ast.unparse(text)}", f"{x.noun} {no} {ast.unparse(text)}"
    return None


def _carried(verb: str, x: WordedTerm, y: WordedTerm, above: str) -> Said:
    """A carry or a borrow of the sizes of two numbers, into or from a place where one is named."""
    one, other = (
        each.noun if each.span[0] is not None and each.span[0] >= 0 else f"the size of {each.noun}"
        for each in (x, y)
    )
    if verb == "carry":
        head, does, to = f"adding {other} to {one}", "carries", "into"
    else:
        head, does, to = f"taking the smaller of {one} and {other} from the larger", "borrows", "from"
    end = f" {to} the {above}" if above else ""
    return f"{head} {does}{end}", f"{head} does not {verb}{end}"


def _compared(atom: str, speaker: Speaker) -> Phrase | None:
    """Equality with values, or a comparison of two terms; None for anything else."""
    found = comparison(atom)
    if found is None:
        return None
    term, constant = speaker.term(found.left), found.constant
    if constant is None:
        return _of_two_terms(term, found, speaker)
    if (share := _share(found, speaker)) is not None:
        return share
    if constant == () or isinstance(constant, bool) or found.sign not in ("==", "!=", "in", "not in"):
        return None
    said = _equal if found.sign in ("==", "in") else _unequal
    if isinstance(constant, tuple):
        *first, last = map(repr, constant)
        return said(term, f"{', '.join(first)} or {last}" if first else last)
    if term.subject.endswith(" modulo 2") and constant in (0, 1):
        even = (constant == 0) == (found.sign == "==")
        return Phrase(f"{term.subject.removesuffix(' modulo 2')} is {'even' if even else 'odd'}")
    return said(term, repr(constant))


def _of_two_terms(term: WordedTerm, found: TwoSides, speaker: Speaker) -> Phrase:
    other = speaker.term(found.right)
    relation, positive = _RELATIONS[found.sign]
    if term.unit and found.sign in _MORE:
        times, of = "", other
        match found.right:
            case ast.BinOp(left=ast.Constant(value=2), op=ast.Mult(), right=right):
                times, of = "twice ", speaker.term(right)
        more = _MORE[found.sign].format(term.unit)
        if of.unit == term.unit and (not times or more.startswith(("as", "at"))):
            return Phrase(f"{term.subject} has {more.replace('as many', f'{times}as many')} {of.subject}")
    return Phrase(f"{term.noun} {relation} {other.noun}", positive=positive)


def _share(found: TwoSides, speaker: Speaker) -> Phrase | None:
    """How many of one text's words another has: all, half or more, less than half; None for anything else."""
    match found.left:
        case ast.Call(func=ast.Name(id="overlap"), args=[x, y]) if isinstance(found.constant, int | float):
            if said := _SHARES.get((found.sign, found.constant)):
                return Phrase(said[0].format(speaker.noun(x), speaker.noun(y)), said[1])
    return None


def _not_between(atom: str, speaker: Speaker) -> Phrase | None:
    """That a chain of two bounds on one term of whole numbers does not hold."""
    tree = tree_of(atom)
    parts = (
        [part for link in links(tree) for part in conjuncts((link, True))]
        if isinstance(tree, ast.Compare)
        else []
    )
    sides = [_bound(part, speaker) for part, _ in parts]
    if len(sides) != 2 or sides[0] is None or sides[1] is None or sides[0][0] != sides[1][0]:
        return None
    term, (low, high) = sides[0][0], _tightest([sides[0][1], sides[1][1]])
    if low is None or high is None or not term.whole or term.verb != "is":
        return None
    if low.whole == high.whole:
        return _unequal(term, str(low.whole))
    return Phrase(f"{term.subject} is not from {low.whole} to {high.whole}", positive=False)


def _not_both(atom: str, speaker: Speaker) -> Phrase | None:
    """That `holds(p and q)` does not hold."""
    sides = _phrases([(atom, True)], speaker) if len(conjuncts((atom, True))) > 1 else ()
    if len(sides) < 2:
        return None
    return Phrase(f"not ({' and '.join(one.text for one in sides)})", positive=False)


def _equal(term: WordedTerm, value: str) -> Phrase:
    return Phrase(f"{term.subject} {term.verb} {term.counted(value)}")


def _unequal(term: WordedTerm, value: str) -> Phrase:
    return Phrase(f"{term.subject} {term.negated} {term.counted(value)}", positive=False)


def _tightest(bounds: Sequence[Bound]) -> tuple[Bound | None, Bound | None]:
    """The ends that hold where all do."""
    lows, highs = ([one for one in bounds if one.side == side] for side in ("low", "high"))
    return (
        max(lows, key=lambda one: (one.at, not one.closed), default=None),
        min(highs, key=lambda one: (one.at, one.closed), default=None),
    )


def _between(term: WordedTerm, low: Bound | None, high: Bound | None) -> Phrase:
    """The term within one or two bounds; whole numbers by the last one that is meant where both ends are given."""
    if term.whole:
        if (exact := _of_whole(term, low and low.whole, high and high.whole)) is not None:
            return exact
        if low and high:
            return Phrase(f"{term.subject} {_within(term, low.whole, high.whole)}")
    return Phrase(f"{term.subject} {' and '.join(_end(term, one) for one in (low, high) if one)}")


def _of_whole(term: WordedTerm, least: int | None, most: int | None) -> Phrase | None:
    """One value, or all but one end of what is possible, or a sign; None where none of these is meant."""
    first, last = term.span
    low = first if least is None or (first is not None and least <= first) else least
    high = last if most is None or (last is not None and most >= last) else most
    if low is not None and low == high:
        return _equal(term, str(low))
    if most is None and least is not None and first is not None and least == first + 1:
        return _unequal(term, str(first))
    if least is None and most is not None and last is not None and most == last - 1:
        return _unequal(term, str(last))
    if term.verb == "is" and (first is None or first < 0):
        if (least, most) == (0, None):
            return Phrase(f"{term.subject} is not negative", positive=False)
        if (least, most) == (None, -1):
            return Phrase(f"{term.subject} is negative")
    return None


def _within(term: WordedTerm, least: int, most: int) -> str:
    if term.verb == "is":
        return f"is from {least} to {most}"
    if term.unit:
        return f"has {least} to {most} {term.unit}"
    return f"{term.verb} at least {least} and at most {most}"


def _end(term: WordedTerm, end: Bound) -> str:
    number = str(int(end.at)) if end.at == int(end.at) else repr(end.at)
    beyond = "more" if end.side == "low" else "fewer" if term.unit else "less"
    if end.closed:
        return f"{term.verb} {term.counted(number)} or {beyond}"
    if term.verb == "is":
        return f"is {'above' if end.side == 'low' else 'below'} {number}"
    return f"{term.verb} {beyond} than {term.counted(number)}"
