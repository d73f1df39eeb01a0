"""A model's prose with facts by reference: values and citations are put in here, and what stands outside is checked.

The model names a fact as `⟦f3⟧`; its whole sentence with its sources is put there, so that no number can be moved into
another sentence. What the model writes itself holds no number, quantity in words, comparison or unit of its own: it
is struck, unless the sentence names one fact and says nothing but that fact in other words, with the fact's own value.
A word that claims more than an ablation shows is marked wherever it stands. What is not checked, and said so: the
words between the facts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from agent.answering.claims import CITATION, Claim, citations_of, claims_of
from agent.answering.marks import Mark, counted
from agent.answering.overclaims import COMPARISON, OVERCLAIM, QUANTIFIERS, denied
from agent.answering.restating import restates, same_order, same_value, shares_of
from mecharule_ops.saying.fact import Fact

_ONE = r"f\s?(\d{1,3})"
REFERENCE = re.compile(
    rf"[⟦\[({{]+\s*{_ONE}(?:\s*(?:,|;|and|&)\s*f\s?\d{{1,3}})*\s*[⟧\])}}]+|(?<![\w.])f(\d{{1,3}})(?![\w.]\w|\w)"
)
"""`⟦f3⟧`, `[f3]`, `(f1, f2)` or a bare `f3`."""
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?]*")
_FENCE = re.compile(r"```.*?(?:```|\Z)|</?\w[^<>]{0,80}>|^\s*[{\[].*?[}\]]\s*$", re.DOTALL | re.MULTILINE)
_OBJECT = re.compile(r"\{[^{}⟦⟧]*[:\"'][^{}]*\}?")
_COMMAND = re.compile(r"`mecharule [^`\n]*`")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


class Fault(StrEnum):
    """What is wrong with a piece of prose."""

    OUTSIDE = "not from a fact"
    FORGED = "no such fact"
    OVERCLAIM = "more than an ablation shows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """Prose after its facts were put in."""

    text: str
    marks: tuple[Mark, ...]
    used: tuple[Fact, ...]
    """Facts that it names, in order, each once."""

    @property
    def cited(self) -> tuple[str, ...]:
        """The sources of those facts."""
        return tuple(dict.fromkeys(source for fact in self.used for source in fact.sources))

    @property
    def is_supported(self) -> bool:
        """At least one number stands in it that comes from a fact."""
        return any(
            claim.kind in ("number", "count") for fact in self.used for claim in claims_of(fact.sentence)
        )

    def sentence(self) -> str:
        """What was checked, and what was not."""
        facts = f"{len(self.used)} fact{'s' if len(self.used) != 1 else ''}"
        found = counted(self.marks, Fault)
        head = f"{facts} put in from {len(self.cited)} source{'s' if len(self.cited) != 1 else ''}"
        return f"{head}; {f'{found}; ' if found else ''}the words between them are the model's, unchecked"


def render(draft: str, facts: Sequence[Fact], above: Collection[Fact] = ()) -> Rendered:
    """The draft with facts put in, faults marked, repeats and machine text left out. `facts[0]` is f1.

    Of a fact that stands `above` already, only the sources are put in.
    """
    lines, marks = [], list[Mark]()
    used: dict[Fact, None] = {}
    said: set[str] = set()
    for line in _readable(draft).splitlines():
        parts = []
        for match in _SENTENCE.finditer(line):
            sentence = match[0].strip()
            key = " ".join(re.findall(r"\w+", sentence.lower()))
            if not key or key in said:
                continue
            said.add(key)
            text, found = _rendered(sentence, facts, used, above)
            marks += found
            parts.append(text)
        if any(re.search(r"\w", part) for part in parts):
            lines.append(" ".join(part for part in parts if part))
    return Rendered(text="\n".join(lines), marks=tuple(marks), used=tuple(used))


def _readable(draft: str) -> str:
    """Without code blocks, tags and JSON, which are no words to a person."""
    return _OBJECT.sub(" ", _FENCE.sub(" ", draft)).replace("**", "")


def _rendered(
    sentence: str, facts: Sequence[Fact], used: dict[Fact, None], above: Collection[Fact]
) -> tuple[str, list[Mark]]:
    """One sentence with its facts, and its faults; `used` takes the facts in."""
    references = _references(sentence)
    bare = _blanked(sentence, references)
    wordless = not re.search(r"[^\W\d_]{2}", bare)
    marks: list[Mark] = []
    pieces: list[tuple[int, int, str]] = []
    for begin, end, group in _stretches(sentence, references):
        named = list(
            dict.fromkeys(facts[n - 1] for one in group for n in one.numbers if 1 <= n <= len(facts))
        )
        faults = [*_faults(bare[begin:end], begin, named), *_forged(sentence, group, named, len(facts))]
        own = len(named) == 1 and not faults and _has_number(bare[begin:end])
        forged = {mark.begin for mark in faults if mark.fault is Fault.FORGED}
        for one in group:
            if one.begin not in forged:
                chosen = [facts[n - 1] for n in one.numbers]
                shown = " ".join(
                    _shown(fact, own or fact in used or fact in above, wordless) for fact in chosen
                )
                used.update((fact, None) for fact in chosen)
                pieces.append((one.begin, one.end, shown))
        marks += faults
    pieces += [(mark.begin, mark.end, str(mark)) for mark in marks]
    return _put(sentence, pieces), marks


@dataclass(frozen=True, slots=True)
class _Reference:
    """A place where facts are named, or where the model wrote a citation itself."""

    begin: int
    end: int
    numbers: tuple[int, ...]


def _references(sentence: str) -> list[_Reference]:
    found = [
        _Reference(match.start(), match.end(), tuple(map(int, re.findall(r"\d+", match[0]))))
        for match in REFERENCE.finditer(sentence)
    ]
    spans = [(one.begin, one.end) for one in found]
    found += [
        _Reference(one.begin, one.end, ())
        for one in citations_of(sentence)
        if not any(begin <= one.begin < end for begin, end in spans)
    ]
    return sorted(found, key=lambda one: one.begin)


def _stretches(
    sentence: str, references: Sequence[_Reference]
) -> Iterator[tuple[int, int, list[_Reference]]]:
    """The sentence cut after each run of references; what follows the last belongs to it."""
    groups: list[list[_Reference]] = []
    for one in references:
        if groups and not re.search(r"\w", sentence[groups[-1][-1].end : one.begin]):
            groups[-1].append(one)
        else:
            groups.append([one])
    begin = 0
    for place, group in enumerate(groups):
        end = len(sentence) if place == len(groups) - 1 else group[-1].end
        yield begin, end, group
        begin = end
    if not groups:
        yield 0, len(sentence), []


def _forged(sentence: str, group: Sequence[_Reference], named: Sequence[Fact], known: int) -> Iterator[Mark]:
    """References to no fact, and citations that are not those of the facts beside them."""
    for one in group:
        text = sentence[one.begin : one.end]
        real = all(1 <= n <= known for n in one.numbers) if one.numbers else _is_own(text, named)
        if not real:
            yield Mark(begin=one.begin, end=one.end, text=text, fault=Fault.FORGED)


def _has_number(text: str) -> bool:
    return any(claim.kind in ("number", "count") for claim in claims_of(text))


def _shown(fact: Fact, cite_only: bool, wordless: bool) -> str:
    if cite_only:
        return fact.citation
    if wordless:
        return f"{fact.sentence} {fact.citation}."
    sentence = fact.sentence
    first = sentence.split(" ", 1)[0]
    if first[:1].isupper() and first[1:].islower():
        sentence = sentence[0].lower() + sentence[1:]
    return f"({sentence} {fact.citation})"


def _faults(bare: str, offset: int, named: Sequence[Fact]) -> Iterator[Mark]:
    """The faults of a stretch of the model's own words beside the facts that it names."""
    one = named[0] if len(named) == 1 else None
    restated = one is not None and restates(bare, one)
    for begin, end, text, claim in _risky(bare):
        if claim is not None and claim.kind in ("unit", "layer"):
            holds = any(re.search(rf"(?<!\w){re.escape(text)}(?!\w)", fact.sentence) for fact in named)
        elif one is None or not restated:
            holds = False
        elif claim is not None:
            holds = same_value(bare, claim, one)
        else:
            holds = _quantity_holds(bare, text, one)
        if not holds:
            yield Mark(begin=offset + begin, end=offset + end, text=text, fault=Fault.OUTSIDE)
    for match in OVERCLAIM.finditer(bare):
        if not denied(bare, match.start()):
            begin, end = match.span()
            fault = Fault.OVERCLAIM
            yield Mark(begin=offset + begin, end=offset + end, text=match[0], fault=fault, struck=False)


def _risky(bare: str) -> Iterator[tuple[int, int, str, Claim | None]]:
    """Every piece that may stand only with a fact, in order and without overlaps."""
    taken: list[tuple[int, int]] = [match.span() for match in _COMMAND.finditer(bare)]
    found: list[tuple[int, int, str, Claim | None]] = []
    for claim in claims_of(_BULLET.sub(lambda match: " " * len(match[0]), bare)):
        found.append((claim.begin, claim.end, claim.text, claim))
    patterns = [pattern for pattern, _ in QUANTIFIERS.values()]
    for pattern in (*patterns, COMPARISON):
        found += [(match.start(), match.end(), match[0], None) for match in pattern.finditer(bare)]
    for begin, end, text, of in found:
        if not any(begin < there and here < end for here, there in taken):
            taken.append((begin, end))
            yield begin, end, text, of


def _quantity_holds(bare: str, text: str, fact: Fact) -> bool:
    """A quantifier that the fact's share bears out, or a word of the fact itself in the same order of units."""
    if re.search(rf"(?<![\w-]){re.escape(text)}(?![\w-])", fact.sentence, re.IGNORECASE):
        return same_order(bare, fact)
    for pattern, holds in QUANTIFIERS.values():
        if pattern.fullmatch(text):
            shares = shares_of(bare, fact)
            return bool(shares) and all(map(holds, shares))
    return False


def _is_own(citation: str, named: Sequence[Fact]) -> bool:
    """Whether a citation that the model wrote is one of the facts beside it."""
    match = CITATION.fullmatch(citation)
    ids = re.split(r"\s*[,;]\s*", match[1]) if match else []
    return bool(ids) and all(any(source == id for fact in named for source in fact.sources) for id in ids)


def _blanked(text: str, references: Sequence[_Reference]) -> str:
    for one in references:
        text = text[: one.begin] + " " * (one.end - one.begin) + text[one.end :]
    return text


def _put(sentence: str, pieces: Sequence[tuple[int, int, str]]) -> str:
    """The model's words made tidy around pieces that stay as they are: facts hold rules and sums."""
    text, begin = "", 0
    for start, end, piece in sorted(pieces):
        if start >= begin:
            text = _joined(_joined(text, sentence[begin:start]), piece)
            begin = end
    return _joined(text, sentence[begin:]).strip()


def _joined(text: str, more: str) -> str:
    """Two stretches with one space between words and none before punctuation."""
    more = re.sub(r"[ \t]+", " ", more)
    if re.match(r"\s*[.,;:!?]", more):
        text, more = text.rstrip(), more.lstrip()
        if text.endswith(".") and more.startswith("."):
            more = more[1:]
    elif text and not text[-1].isspace() and re.match(r"[(\[]", more):
        text += " "
    return text + (more.lstrip() if text.endswith(" ") else more)
