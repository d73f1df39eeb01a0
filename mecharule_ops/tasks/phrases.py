"""The literals of a clause in words, made from what they are, never from how they are printed.

One table of `words.toml` says what is compared (`TERMS`), one what a condition says (`SAID`); both are templates over
forms of the language, filled by `Speaker`. Several bounds on one term
are one phrase: `a's tens digit is from 3 to 5`. What has no words is its own syntax in backticks. Columns are taken to
hold no NaN, as `predicates.atoms.complement` takes it too.
"""

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mecharule_ops.predicates.atoms import Literal
from mecharule_ops.predicates.literals import TwoSides, comparison, conjuncts, tree_of
from mecharule_ops.tasks.column_words import DENIED, WORDS, ColumnWords, Said, both_ways, column_words
from mecharule_ops.tasks.text_pieces import place_name

Span = tuple[int | None, int | None]
"""The least and the largest value of a term of whole numbers; None where it is not known."""
_OPEN: Span = (None, None)
"""Of a term that is as whole as what it is made of."""

TERMS: Mapping[str, tuple[str, Sequence[int] | str, str]] = WORDS["terms"]
SAID = {form: both_ways(said) for form, said in WORDS["said"].items()}

_OPPOSITE = {"!=": "==", "<": ">=", "<=": ">"}
_HOLES: Mapping[str, Callable[[ast.AST], bool]] = {
    **dict.fromkeys("xy", lambda node: isinstance(node, ast.expr)),
    **dict.fromkeys("nm", lambda node: isinstance(node, ast.Name)),
    "k": lambda node: isinstance(node, ast.Constant) and type(node.value) is int,
    "s": lambda node: isinstance(node, ast.Constant),
}


class NoWords(Exception):
    """An expression has no words."""


class Noun(str):
    """A noun in a template, `{x}`, and what it owns, `{x:digit sum}`: `a's digit sum`, `words of the column text`."""

    def __format__(self, owns: str) -> str:
        if not owns:
            return str(self)
        return f"{owns} of {self}" if self.startswith("the column ") else f"{self}'s {owns}"


@dataclass(frozen=True, slots=True)
class Phrase:
    """A sentence, and whether it says what is rather than what is not."""

    text: str
    positive: bool = True


class Bound(NamedTuple):
    """One end of what is meant: 1 for the lower one, -1 for the upper."""

    side: int
    at: float
    closed: bool
    """Whether the number belongs to it."""

    @property
    def whole(self) -> int:
        """The last whole number that is meant."""
        inwards = math.ceil(self.side * self.at)
        return self.side * (inwards if self.closed or self.at % 1 else inwards + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordedTerm:
    """A subject with the verb that joins it to a value: `a's tens digit` *is* 5, `the premise` *has* 5 words."""

    subject: str
    verb: str = "is"
    unit: str = ""
    """In the plural; empty where the value stands alone."""
    whole: bool = False
    span: Span = _OPEN

    @property
    def noun(self) -> Noun:
        """The value itself as a noun."""
        if self.unit:
            return Noun(f"the number of {self.unit} of {self.subject}")
        return Noun(self.subject if self.verb == "is" else f"the sum of {self.subject}")

    def counted(self, value: str) -> str:
        """A value with its unit: `1 digit`, `2 or 3 digits`."""
        return f"{value} {self.unit.removesuffix('s') if value == '1' else self.unit}" if self.unit else value

    def equal(self, value: str) -> Phrase:
        """That it is, or has, a value."""
        return Phrase(f"{self.subject} {self.verb} {self.counted(value)}")

    def unequal(self, value: str) -> Phrase:
        """That it is not."""
        return Phrase(f"{self.subject} {DENIED[self.verb]} {self.counted(value)}", positive=False)

    def within(self, bounds: Sequence[Bound]) -> Phrase:
        """That it lies within the tightest bounds; whole numbers by the last one that is meant where both are given."""
        lows, highs = ([one for one in bounds if one.side == side] for side in (1, -1))
        low = max(lows, key=lambda one: (one.at, not one.closed), default=None)
        high = min(highs, key=lambda one: (one.at, one.closed), default=None)
        if self.whole:
            least, most = (end and end.whole for end in (low, high))
            if (exact := self._exact(least, most)) is not None:
                return exact
            if low and high:
                to = f"{least} to {most}" if self.unit else f"at least {least} and at most {most}"
                return self.equal(f"from {least} to {most}" if self.verb == "is" else to)
        ends = (f"{self.verb} {self._end(one)}" for one in (low, high) if one)
        return Phrase(f"{self.subject} {' and '.join(ends)}")

    def _exact(self, least: int | None, most: int | None) -> Phrase | None:
        """One value, or all but one end of what is possible, or a sign; None where none of these is meant."""
        first, last = self.span
        low = first if least is None or (first is not None and least <= first) else least
        if low is not None and low == (last if most is None or (last is not None and most >= last) else most):
            return self.equal(str(low))
        if most is None and least is not None and first is not None and least == first + 1:
            return self.unequal(str(first))
        if least is None and most is not None and last is not None and most == last - 1:
            return self.unequal(str(last))
        if self.verb == "is" and (first is None or first < 0) and (least, most) in ((0, None), (None, -1)):
            negative = most == -1
            return Phrase(f"{self.subject} is {'' if negative else 'not '}negative", positive=negative)
        return None

    def _end(self, end: Bound) -> str:
        number = str(int(end.at)) if end.at == int(end.at) else repr(end.at)
        lower = end.side > 0
        beyond = "more" if lower else "fewer" if self.unit else "less"
        if end.closed:
            return f"{self.counted(number)} or {beyond}"
        if self.verb == "is":
            return f"{'above' if lower else 'below'} {number}"
        return f"{beyond} than {self.counted(number)}"


@dataclass(frozen=True, slots=True)
class Speaker:
    """Words of expressions and conditions; methods raise `NoWords` where there are none."""

    wording: Mapping[str, ColumnWords]
    ranges: Mapping[str, tuple[int, int]]
    """Of columns of whole numbers, over all that the task makes possible."""

    def term(self, node: ast.expr) -> WordedTerm:
        """An expression as what is compared."""
        if isinstance(node, ast.Constant):
            return WordedTerm(subject=repr(node.value), whole=isinstance(node.value, int))
        if isinstance(node, ast.Name) and (words := column_words(self.wording, node.id)) is not None:
            return WordedTerm(
                subject=words.noun,
                verb="has" if words.unit else "is",
                unit=words.unit,
                whole=words.whole or bool(words.unit),
                span=self.ranges.get(node.id, _OPEN),
            )
        for form, (subject, values, joined) in TERMS.items():
            if (holes := _holes(form, node)) is not None:
                whole, span = bool(values), _OPEN
                if isinstance(values, str):
                    whole = all(self.term(holes[each]).whole for each in holes.keys() & set("xynm"))
                else:
                    least, most, *_ = *values, None, None
                    span = least, most
                verb, unit = (joined, "") if joined in DENIED else ("has", joined)
                said = self._filled(subject, holes)
                return WordedTerm(subject=said, verb=verb, unit=unit, whole=whole, span=span)
        raise NoWords

    def said(self, node: ast.expr) -> Said | None:
        """What a condition says where it is true and where it is false; None where that is made of its terms."""
        match node:
            case ast.Name(id=name):
                words = column_words(self.wording, name)
                return words.said if words else None
            case ast.Compare(
                left=ast.Name(id=name), ops=[ast.Eq()], comparators=[ast.Constant(value=str(text))]
            ):
                words = column_words(self.wording, name)
                return words.values.get(text) if words else None
        for form, (yes, no) in SAID.items():
            if (holes := _holes(form, node)) is not None:
                return self._filled(yes, holes), self._filled(no, holes)
        return None

    def _filled(self, template: str, holes: Mapping[str, ast.expr]) -> str:
        """A template with the words of what stands in its holes."""
        words: dict[str, str] = {}
        for hole, node in holes.items():
            if hole == "k":
                place = ast.literal_eval(node)
                words |= {"k": str(place), "place": place_name(place), "above": place_name(place + 1)}
            elif hole == "s":
                words["s"] = ast.unparse(node)
            else:
                term = self.term(node)
                size = f"the size of {term.noun}" if term.span[0] is None or term.span[0] < 0 else term.noun
                words |= {hole: term.noun, f"size_{hole}": size}
        return template.format(**words)


def _holes(form: str, node: ast.expr) -> dict[str, ast.expr] | None:
    """What stands in the holes of a form, one thing in each; None where the expression has another form."""
    holes: dict[str, ast.expr] = {}

    def fits(form: object, node: object) -> bool:
        if isinstance(form, ast.Name) and form.id in _HOLES:
            assert isinstance(node, ast.expr)
            kept = holes.setdefault(form.id, node)
            return _HOLES[form.id](node) and (kept is node or ast.unparse(kept) == ast.unparse(node))
        if isinstance(form, list) and isinstance(node, list):
            return len(form) == len(node) and all(map(fits, form, node))
        if isinstance(form, ast.AST) and type(form) is type(node):
            return all(fits(getattr(form, name), getattr(node, name)) for name in form._fields)
        return form == node

    return holes if fits(tree_of(form), node) else None


def clause_phrases(literals: Sequence[Literal], speaker: Speaker) -> tuple[Phrase, ...]:
    """A phrase for each literal of a clause, or for several bounds on one term; what is comes before what is not."""
    found: dict[Phrase | WordedTerm, list[Bound]] = {}
    for atom, value in dict.fromkeys(part for literal in literals for part in conjuncts(literal)):
        try:
            one, bound = _worded(atom, value, speaker)
        except NoWords:
            one, bound = Phrase(f"{'' if value else 'not '}`{atom}`", positive=value), None
        found.setdefault(one, []).extend([bound] if bound else [])
    phrases = (one if isinstance(one, Phrase) else one.within(bounds) for one, bounds in found.items())
    return tuple(sorted(dict.fromkeys(phrases), key=lambda one: (not one.positive, len(one.text))))


def _worded(atom: str, value: bool, speaker: Speaker) -> tuple[Phrase | WordedTerm, Bound | None]:
    """One literal as a phrase, or as a bound on a term. Raises `NoWords`."""
    if said := speaker.said(tree_of(atom)):
        return Phrase(said[not value], positive=value), None
    if not value:
        return _not_both(atom, speaker), None
    if (found := comparison(atom)) is None:
        raise NoWords
    if found.sign in _OPPOSITE:
        opposite = f"{ast.unparse(found.left)} {_OPPOSITE[found.sign]} {ast.unparse(found.right)}"
        if said := speaker.said(tree_of(opposite)):
            return Phrase(said[1], positive=found.sign != "!="), None
    term = speaker.term(found.left)
    if found.sign[0] in "<>" and isinstance(found.constant, int | float):
        return term, Bound(1 if found.sign[0] == ">" else -1, found.constant, found.sign.endswith("="))
    return _compared(term, found, speaker), None


def _compared(term: WordedTerm, found: TwoSides, speaker: Speaker) -> Phrase:
    """Equality with values, or a comparison of two terms."""
    constant = found.constant
    if constant is None:
        related = f"{term.noun} {WORDS['relations'][found.sign]} {speaker.term(found.right).noun}"
        return Phrase(related, positive=found.sign != "!=")
    if constant == () or isinstance(constant, bool) or found.sign not in ("==", "!=", "in", "not in"):
        raise NoWords
    values = [repr(each) for each in constant] if isinstance(constant, tuple) else [repr(constant)]
    listed = " or ".join([", ".join(values[:-1]), values[-1]] if values[1:] else values)
    first = constant[0] if isinstance(constant, tuple) else None
    if isinstance(first, int) and constant == (*range(first, first + len(values)),) and values[2:]:
        listed = f"{first} to {values[-1]}"
    return (term.equal if found.sign in ("==", "in") else term.unequal)(listed)


def _not_both(atom: str, speaker: Speaker) -> Phrase:
    """That `p and q`, or a chain of bounds, does not hold. Raises `NoWords` for anything else."""
    parts = conjuncts((atom, True))
    if len(parts) < 2:
        raise NoWords
    sides = clause_phrases(parts, speaker)
    said = " and ".join(one.text for one in sides)
    if len(sides) == 1 and sides[0].positive and said.count(" is ") == 1 and "`" not in said:
        return Phrase(said.replace(" is ", " is not "), positive=False)
    return Phrase(f"not ({said})", positive=False)
