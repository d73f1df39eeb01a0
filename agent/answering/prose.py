"""A model's reply read as what it may say: facts by number, in an order, and at most one sentence of its own.

The program puts each fact's whole sentence with its sources where the model names it, so that no number can be moved
into another sentence. Of the model's own words one sentence is kept that states nothing: no digit (so no unit, layer or
certificate), no number or quantity in words, no comparison, and no word for more than that an outcome changes when a
unit is ablated. Every other is left out and counted. What is not checked, and said so: the one kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent.answering.facts import paragraph
from mecharule_ops.numbers import plural
from mecharule_ops.saying.fact import Fact

_ONE = r"f\s?\d{1,3}"
REFERENCE = re.compile(
    rf"[⟦\[({{]+\s*{_ONE}(?:\s*(?:,|;|and|&)?\s*{_ONE})*\s*[⟧\])}}]+|(?<![\w.])f\d{{1,3}}(?![\w.]\w|\w)"
)
"""`⟦f3⟧`, `[f3]`, `(f1, f2)` or a bare `f3`."""
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?]*")
_MACHINE = re.compile(r"[{}<>|\\]|```")
"""What no sentence to a person holds: code, tags and JSON."""
_MARKS = re.compile(r"\*\*|^\s*(?:[-*•]|\d+[.)])\s+", re.MULTILINE)
"""Of bold words and of lists."""
_FIGURE_SAID = re.compile(r"\b[mna]\d+\.h?\d+\b|\d+(?:,\d{3})*(?:\.\d+)?|\.\d+")


def _words(*lists: str) -> str:
    return "|".join("|".join(each.split()) for each in lists)


_FIGURE = (
    r"\d|[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2079\u2080-\u2089\u2150-\u2188"
    r"\u2460-\u249b\u24ea-\u24ff\u2776-\u2793]"
)
"""A digit in any script; a raised, lowered or circled one, a vulgar fraction, a Roman numeral sign."""
_NUMBER = _words(
    "two three four five six seven eight nine ten eleven twelve \\w+teen twenty thirty forty fifty sixty",
    "seventy eighty ninety dozens? hundreds? thousands? millions? billions? \\w+fold half halves thirds? quarters?",
    "fifths? tenths? times twice thrice double[sd]? triple[sd]? zero percent per\\scent",
)
_QUANTITY = _words(
    "all every\\w* each always invariably entire(?:ly)? whole complete(?:ly)? fully without\\sexception any no none",
    "not\\sa\\ssingle (?:hardly|barely|scarcely)\\sever",
    "nothing never nowhere neither not\\sone most(?:ly)? majority usually generally predominantly nearly almost",
    "virtually practically rarely seldom few handful minority occasionally many numerous plenty lots often frequently",
    "countless some several sometimes couple part only solely exclusively both single-handedly",
)
_COMPARISON = _words(
    "more less fewer greater higher lower larger smaller bigger stronger weaker better worse rarer commoner strongest",
    "weakest largest smallest highest lowest biggest best worst than exceed(?:s|ing)? outweighs? surpass(?:es)? beats?",
    "tops halve[sd]? equals? equally identical same similar(?:ly)? alike unlike unique as\\s\\w+\\sas above below",
    "beyond increases? decreases? reduces? first last main major dominant top",
)
_OVERCLAIM = _words(
    "explain\\w* comput(?:e|es|ed|ing|ation) caus(?:e|es|ed|ing|al|ally) implement\\w* encod\\w+ represent\\w*",
    "stor(?:e|es|ed|ing) perform\\w* calculat\\w+ responsible in\\scharge determin(?:e|es|ed|ing) driv(?:e|es|en|ing)",
    "understand\\w* knows? guarantee\\w* prov(?:e|es|ed|en|ing) detect(?:s|ed|ing|or|ors) recogni[sz]\\w+",
    "learn(?:s|ed|t) decid(?:e|es|ed) necessary sufficient essential crucial indispensable mechanism speciali[sz]\\w+",
    "track(?:s|ed|ing) handl(?:e|es|ed|ing) carries\\sout govern(?:s|ed)? owns? solves? master\\w* the\\sreason",
    "controls\\sthe add(?:s|ing)\\s(?:the\\s)?(?:numbers|digits)",
    "does\\s(?:the\\s)?(?:addition|arithmetic|sums?|carry\\w*)",
)
_DENIED = re.compile(r"(?:\bnot|n't|\bcannot|\bnever|\bnor|\bwithout|\bno)(?:\s+\w+){0,3}\s*$", re.IGNORECASE)
_STATES = re.compile(
    rf"{_FIGURE}|[\[\]⟦⟧]|\b(?:{_NUMBER})\b|(?<![\w-])(?:{_QUANTITY}|{_COMPARISON})(?![\w-])", re.IGNORECASE
)
_CLAIMS = re.compile(rf"(?<![\w-])(?:{_OVERCLAIM})(?![\w-])", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """What may be shown of a reply."""

    sentence: str
    """The one of the model's own, without references; empty without one."""
    facts: tuple[Fact, ...]
    """Those that it names, in order, each once."""
    left_out: tuple[str, ...]
    """Sentences that state something of their own, or name a fact that there is not, as they were written."""

    @property
    def cited(self) -> tuple[str, ...]:
        """The sources of the facts."""
        return tuple(dict.fromkeys(source for fact in self.facts for source in fact.sources))

    @property
    def text(self) -> str:
        """The sentence, then the facts."""
        return paragraph([*([self.sentence] if self.sentence else []), *(fact.cited for fact in self.facts)])

    @property
    def beside(self) -> str:
        """The sentence with the sources of the facts, where these stand above already."""
        return f"{self.sentence.rstrip('.')} {' '.join(f'[{source}]' for source in self.cited)}."

    def outcome(self) -> str:
        """What was put in, what was left out, and what was not checked."""
        put_in = f"{plural(len(self.facts), 'fact')} put in from {plural(len(self.cited), 'source')}"
        parts = [put_in if self.facts else "no fact put in"]
        if self.left_out:
            parts.append(f"{plural(len(self.left_out), 'sentence')} of the model left out")
        if self.sentence:
            parts.append("the words between them are the model's, unchecked")
        return "; ".join(parts)


def composed(numbers: Sequence[int], sentence: str, facts: Sequence[Fact], above: str = "") -> Prose:
    """What may be shown of a reply by schema: fact numbers in an order, and a sentence; `facts[0]` is fact 1.

    A sentence that stands `above` already is not said again.
    """
    strange = [f"f{number}" for number in numbers if not 1 <= number <= len(facts)]
    words = _tidy(REFERENCE.sub(" ", sentence))
    is_said = bool(re.search(r"[^\W\d_]{2}", words))
    is_kept = is_said and not strange and is_empty_of_claims(words)
    return Prose(
        sentence=words if is_kept and words.rstrip(".") not in above else "",
        facts=tuple(dict.fromkeys(facts[number - 1] for number in numbers if 1 <= number <= len(facts))),
        left_out=(sentence,) if is_said and not is_kept else tuple(strange),
    )


def read(draft: str, facts: Sequence[Fact], above: str = "") -> Prose:
    """What may be shown of a reply in free words that name facts as `⟦f3⟧`, `[f1, f2]`, `(f1)` or `f1:`."""
    parts = [
        composed(
            [int(n) for one in REFERENCE.finditer(sentence) for n in re.findall(r"\d+", one[0])],
            sentence,
            facts,
            above,
        )
        for sentence in _sentences(draft)
    ]
    return Prose(
        sentence=next((part.sentence for part in parts if part.sentence), ""),
        facts=tuple(dict.fromkeys(fact for part in parts for fact in part.facts)),
        left_out=tuple(dict.fromkeys(said for part in parts for said in part.left_out)),
    )


def restated(draft: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The facts that hold every figure and unit of a draft which names none; empty where one of them is in no fact.

    As few as will do, in their order: each next one holds most of the figures that are left.
    """
    wanted = _figures(draft)
    held = [_figures(fact.sentence) for fact in facts]
    if not wanted or not wanted <= set().union(*held):
        return ()
    taken: list[int] = []
    while wanted:
        best = max(range(len(facts)), key=lambda place: len(held[place] & wanted))
        taken.append(best)
        wanted -= held[best]
    return tuple(facts[place] for place in sorted(taken))


def is_empty_of_claims(words: str) -> bool:
    """Whether a sentence states nothing that only a fact may state."""
    return not _STATES.search(words) and all(
        _DENIED.search(words[: match.start()]) for match in _CLAIMS.finditer(words)
    )


def _figures(text: str) -> set[str]:
    """Units and numbers of a text, each in one spelling."""
    return {said.replace(",", "").lstrip("0") or "0" for said in _FIGURE_SAID.findall(text)}


def _sentences(draft: str) -> Iterator[str]:
    """Every sentence once; of machine text only what names facts."""
    for match in _SENTENCE.finditer(_MARKS.sub("", draft)):
        said = match[0].strip()
        if _MACHINE.search(REFERENCE.sub(" ", said)):
            said = " ".join(one[0] for one in REFERENCE.finditer(said))
        if said:
            yield said


def _tidy(words: str) -> str:
    """One space between words and none before punctuation, with a mark at the end."""
    text = re.sub(r"\s+([.,:;!?])", r"\1", " ".join(words.split())).strip(" ,;:")
    return text if text.endswith((".", "!", "?")) else f"{text}."
