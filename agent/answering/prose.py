"""A model's reply read as what it may say: facts by name, in an order, and at most one sentence of its own.

The model names a fact as `⟦f3⟧`; the fact's whole sentence with its sources is put there, so that no number can be
moved into another sentence. Of the model's own words one sentence is kept that states nothing: no digit (so no unit,
layer or certificate), no number or quantity in words, no comparison, and no word for more than that an outcome changes
when a unit is ablated. Every other sentence is left out and counted. What is not checked, and said so: the one kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent.answering.facts import paragraph
from mecharule_ops.numbers import plural
from mecharule_ops.saying.fact import Fact
from tools.registry import TOOLS

_ONE = r"f\s?(\d{1,3})"
REFERENCE = re.compile(
    rf"[⟦\[({{]+\s*{_ONE}(?:\s*(?:,|;|and|&)\s*f\s?\d{{1,3}})*\s*[⟧\])}}]+|(?<![\w.])f(\d{{1,3}})(?![\w.]\w|\w)"
)
"""`⟦f3⟧`, `[f3]`, `(f1, f2)` or a bare `f3`."""
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?]*")
_MACHINE = re.compile(
    r"```.*?(?:```|\Z)|</?\w[^<>]{0,80}>|^\s*[{\[].*?[}\]]\s*$|\{[^{}⟦⟧]*[:\"'][^{}]*\}?",
    re.DOTALL | re.MULTILINE,
)
"""Code blocks, tags and JSON, which are no words to a person."""
_VERB = "|".join((*TOOLS, "ask", "run", "resume", "fork", "refine"))
_NAME = r"last|[0-9a-f]{4}|[mna]\d+\.h?\d+|--[a-z-]+"
_COMMAND = re.compile(rf"`mecharule (?:{_VERB})(?: (?:{_NAME}))*`")
"""A command to type: a verb, runs, units and flags."""
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+", re.MULTILINE)


def _words(*lists: str) -> str:
    return "|".join("|".join(each.split()) for each in lists)


_FIGURE = (
    r"\d|[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2079\u2080-\u2089\u2150-\u2188"
    r"\u2460-\u249b\u24ea-\u24ff\u2776-\u2793]"
)
"""A digit in any script; a raised, lowered or circled one, a vulgar fraction, a Roman numeral sign."""
_CITATION = r"\[\s*(?:c|run|h):"
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
    rf"{_FIGURE}|{_CITATION}|\b(?:{_NUMBER})\b|(?<![\w-])(?:{_QUANTITY}|{_COMPARISON})(?![\w-])",
    re.IGNORECASE,
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
        parts = [f"{plural(len(self.facts), 'fact')} put in from {plural(len(self.cited), 'source')}"]
        if self.left_out:
            parts.append(f"{plural(len(self.left_out), 'sentence')} of the model left out")
        return "; ".join([*parts, "the words between them are the model's, unchecked"])


def read(draft: str, facts: Sequence[Fact], above: str = "") -> Prose:
    """What may be shown of a draft; `facts[0]` is f1. A sentence that stands `above` already is not said again."""
    named: dict[Fact, None] = {}
    own, left_out = "", []
    for sentence in _sentences(draft):
        numbers = [int(n) for one in REFERENCE.finditer(sentence) for n in re.findall(r"\d+", one[0])]
        named.update((facts[n - 1], None) for n in numbers if 1 <= n <= len(facts))
        words = _tidy(REFERENCE.sub(" ", sentence))
        if any(not 1 <= n <= len(facts) for n in numbers) or _states(words):
            left_out.append(sentence)
        elif not own and re.search(r"[^\W\d_]{2}", words) and words.rstrip(".") not in above:
            own = words
    return Prose(sentence=own, facts=tuple(named), left_out=tuple(left_out))


def _sentences(draft: str) -> Iterator[str]:
    """Every sentence once."""
    readable = _BULLET.sub("", _MACHINE.sub(" ", draft).replace("**", ""))
    yield from dict.fromkeys(match[0].strip() for match in _SENTENCE.finditer(readable) if match[0].strip())


def _states(words: str) -> bool:
    """Whether a sentence says anything that only a fact may say; a command to type says nothing."""
    said = _COMMAND.sub(" ", words)
    return bool(_STATES.search(said)) or any(
        not _DENIED.search(said[: match.start()]) for match in _CLAIMS.finditer(said)
    )


def _tidy(words: str) -> str:
    """One space between words and none before punctuation, with a mark at the end."""
    text = re.sub(r"\s+([.,:;!?])", r"\1", " ".join(words.split())).strip(" ,;")
    return text if text.endswith((".", ":", "!", "?")) else f"{text}."
