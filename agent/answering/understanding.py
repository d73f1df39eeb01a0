"""A question read: what it names, taken out of its words.

Units, layers, prompts and runs leave a letter behind (`U`, `L`, `P`, `R`), as in the wordings of `questions`; a word of
the glossary (`T`) and a property of a record (`C`) do beside their own words, since `the splitter` may be a word to
define or part of what is asked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from mecharule_ops.bases import UNIT_NAME
from mecharule_ops.saying.glossary import SPELLINGS
from mecharule_ops.saying.properties import PROPERTIES

ORDINALS = {
    **{"second": 2, "2nd": 2, "next": 2, "two": 2, "#2": 2, "runner-up": 2, "runner up": 2},
    **{"third": 3, "3rd": 3, "three": 3, "#3": 3, "fourth": 4, "4th": 4, "fifth": 5, "5th": 5},
}
LETTERS = frozenset("ULPRTC")
NOTHING: Mapping[str, str] = {}
_QUOTED = re.compile(r"(?<!\w)[\"'`“‘]([^\"'`”’]{2,})[\"'`”’](?!\w)")
_SHORTEST_TYPO, _ALIKE = 5, 0.85
"""Letters of a word that may be misspelt, and how like another it has to be."""
_WORD_QUOTED = re.compile(r"(?<!\w)[\"'`“‘]([^\W\d]+(?:[ -][^\W\d]+)?|[Dd][+-])[\"'`”’](?!\w)")
"""A word or two in quotes is a word that is asked about, no prompt."""
_MEANT = re.compile(
    r"(?P<before>\b(?:what (?:does|do)|what is meant by|define|explain)\s+)[\"“](?P<said>[^\"“”]+)[\"”]"
    r"(?P<after>(?:\s+(?:mean|stand for))?\s*\??\s*)$",
    re.IGNORECASE,
)
"""Words of an answer, in quotes, whose meaning is asked."""
_POLITE = re.compile(r",?\s*\b(?:please|pls|plz|thanks|thank you|thx)\b[,!]*", re.IGNORECASE)
_SUM = re.compile(r"(?<![\w.])\d+\s*[-+*/−×÷]\s*\d+\s*=?")
_ARROW = re.compile(r"(?<!\w)([01])\s*(?:→|->|to)\s*[01](?!\w)")
_DIRECTION = re.compile(
    rf"(?:\bin (?:the )?(?:direction )?)?{_ARROW.pattern}(?: direction\b)?", re.IGNORECASE
)
_UNIT = re.compile(rf"\b{UNIT_NAME}(?!\w)(?!\.\d)", re.IGNORECASE)
_SPELT_OUT = (
    (re.compile(r"\bL(\d{1,4})\s?H(\d{1,4})\b", re.IGNORECASE), r"a\1.h\2"),
    (re.compile(r"\bhead\s+(\d{1,4})\.h?(\d{1,4})\b(?!\s*%)", re.IGNORECASE), r"a\1.h\2"),
    (re.compile(r"\blayer\s+(\d{1,4})(?:'s)?,?\s+head\s+(\d{1,4})\b", re.IGNORECASE), r"a\1.h\2"),
    (re.compile(r"\bhead\s+(\d{1,4})\s+(?:of|in|at)\s+layer\s+(\d{1,4})\b", re.IGNORECASE), r"a\2.h\1"),
)
"""The field's other names of a head, read as its printed one."""
_LAYER = re.compile(r"\blayer\s*(?:number\s*)?(\d{1,4})\b|\b[mna](\d{1,4})\b(?!\.)", re.IGNORECASE)
_RUN = re.compile(
    r"\brun\s+([0-9a-f]{4,16}|last)\b|(?<=with )(last|(?=\w*\d)[0-9a-f]{4,16})\b", re.IGNORECASE
)
_NAMES = (("P", _QUOTED), ("U", _UNIT), ("R", _RUN), ("arrow", _ARROW), ("P", _SUM), ("L", _LAYER))
NAMED = ((_UNIT,), (_QUOTED, _SUM), (_LAYER,))
"""Patterns of units, prompts and layers."""
MAY_STATE = re.compile(r"\b(?:where|when|if|whenever)\b|[`\"“']", re.IGNORECASE)
"""What a question holds that may state a condition."""
WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*", re.UNICODE)
_ORDINAL = "second|2nd|third|3rd|fourth|4th|fifth|5th"
PLACE = re.compile(
    rf"(?<!\ba )(?:\bthe )?\b(?<!\ba )(?:(?P<ordinal>{_ORDINAL})(?:[ -](?:strongest|best|largest))?"
    r"|strongest|best|top|biggest|largest|main|most important)"
    r" (?:τ-agonist|agonist|unit|(?P<noun>neuron|head|channel)|one)s?\b"
    rf"|\bthe (?P<last>{_ORDINAL})(?=\s*\?*$)"
    rf"|\b(?:the )?(?P<ranked>{_ORDINAL}|next)[ -](?:strongest|largest|biggest|most (?:important|harmful|damaging))\b"
    r"|\b(?:the )?(?P<up>runner[- ]up)\b|\bnumber (?P<number>two|three)(?=\s*\?*$)|(?<!\w)(?P<hash>#[23])\b"
)
_EVERY = re.compile(
    r"\b(?:all|every)\b(?: (?:of|the|these|those|them|found|localized|other))*"
    r"(?: (?P<number>three|four|five|six|seven|eight))?(?= *(?:τ-agonist|agonist|unit|neuron|head|channel)s?\b|[^\w ]|$"
    r"| (?:at once|together|off|at the same time)\b)"
)
_COUNTS = {word: count for count, word in enumerate(("three", "four", "five", "six", "seven", "eight"), 3)}
_NOUN = re.compile(r"\b(neuron|head|channel)s?\b")
_PRONOUN = re.compile(
    r"\b(?:it|its(?! own)|it's|them|they|their|this (?:unit|neuron|head|one)|that (?:unit|neuron|head))\b"
)


def _bare(words: str) -> str:
    """Words as they compare: no blank, hyphen or underscore."""
    return re.sub(r"[\s_-]", "", words)


def _spelt_as(words: str) -> str:
    """A pattern for words that may have blanks, hyphens or underscores between them."""
    return r"[\s_-]".join(map(re.escape, re.split(r"[\s_-]", words)))


PROPERTY_WORDS = tuple(word for one in PROPERTIES.values() for word in one.said)
_TERM, PROPERTY_WORD = (
    re.compile(rf"(?<![\w.-])(?:{'|'.join(map(_spelt_as, sorted(words, key=len, reverse=True)))})(?![\w+])")
    for words in (SPELLINGS, PROPERTY_WORDS)
)
_TERMS = {_bare(spelling): name for spelling, name in SPELLINGS.items()}
_SAID = {_bare(word): one.name for one in PROPERTIES.values() for word in one.said}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One question, or one part of it."""

    units: tuple[str, ...] = ()
    layers: tuple[int, ...] = ()
    prompts: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    regimes: tuple[str, ...] = ()
    place: int | None = None
    """Which unit by strength is meant; None where none is asked for by its place."""
    noun: str = ""
    """The kind of unit that is counted for it: head, channel or neuron; empty for any."""
    refers: bool = False
    """Whether it has a pronoun."""
    every: int = 0
    """How many units are meant by `all three`; a great number by `all of them`, 0 where neither is said."""
    term: str | None = None
    """A word of the glossary."""
    about: str | None = None
    """A property of a record, or a column or condition of the run's own table."""
    is_own: bool = False
    """Whether that is of the run's own table."""
    text: str = ""
    """What is left, with a letter for each name."""
    texts: tuple[str, ...] = ("",)
    """The same as it stands, with a letter for a unit meant by its place, and beside that for a term or a property."""
    corrected: tuple[tuple[str, str], ...] = ()
    """(as written, as read)."""

    @property
    def names(self) -> bool:
        """Whether anything is named: a unit or a kind of one, a layer, prompt, run, direction, word or property."""
        named = (
            self.units,
            self.layers,
            self.prompts,
            self.runs,
            self.regimes,
            self.noun,
            self.term,
            self.about,
        )
        return any(named) or self.place is not None


def lowered(text: str) -> str:
    """In lower case but for the letters that stand for names; `D+` as a word."""
    text = re.sub(r"\b[Dd][+⁺](?!\d)", "dplus", text)
    text = re.sub(r"\b[Dd][-−⁻](?![\w])", "dminus", text)
    return re.sub(r"\S+", lambda match: match[0] if match[0] in LETTERS else match[0].lower(), text)


def read(question: str, known: Collection[str] = (), own: Mapping[str, str] = NOTHING) -> Reading:
    """Everything that a question holds; a long word not `known` is read as the known one most like it.

    `own`: words of the question that name a column or a condition on the run's own table, each with what they name.
    """
    text = " ".join(question.replace("’", "'").split())
    text = _WORD_QUOTED.sub(r" \1 ", _MEANT.sub(r"\g<before>\g<said>\g<after>", text))
    found: dict[str, list[str]] = {}
    for name, pattern in _NAMES:
        for spelt, printed in _SPELT_OUT if name == "U" else ():
            text = spelt.sub(printed, text)
        for match in pattern.finditer(text):
            found.setdefault(name, []).append(next((group for group in match.groups() if group), match[0]))
        text = text if name == "arrow" else pattern.sub(f" {name} ", text)
    named = []
    for words in sorted(own, key=len, reverse=True):
        text, times = re.subn(rf"(?<!\w){re.escape(words)}(?!\w)", " C ", text)
        named += [own[words]] * bool(times and own[words])
    of_own = next(iter(named), "")
    text = re.sub(r"(?<=\b[ULPR]) +'s\b", "", _POLITE.sub(" ", text))
    text, typos = _spelt(lowered(_DIRECTION.sub(" ", text)), known)
    term, place = _TERM.search(text), PLACE.search(text)
    properties = [_SAID[_bare(match[0])] for match in PROPERTY_WORD.finditer(text)]
    within = (name for name in properties if PROPERTIES[name].within in properties)
    every = _EVERY.search(text)
    placed = PLACE.sub("U", text)
    regimes = list(found.get("arrow", ()))
    if re.search(r"\b(?:break|breaks|broke|breaking)\b", text):
        regimes.append("1")
    if re.search(r"\b(?:repair|repairs|fix|fixes|mend|mends)\b", text):
        regimes.append("0")
    return Reading(
        units=tuple(dict.fromkeys(unit.lower() for unit in found.get("U", ()))),
        layers=tuple(dict.fromkeys(map(int, found.get("L", ())))),
        prompts=tuple(dict.fromkeys(prompt.strip() for prompt in found.get("P", ()))),
        runs=tuple(found.get("R", ())),
        regimes=tuple(dict.fromkeys(regimes)),
        place=None if place is None else _place_of(place),
        noun=_noun(text, place),
        refers=_PRONOUN.search(text) is not None,
        every=0 if every is None else _COUNTS.get(every["number"], sys.maxsize),
        term=None if term is None else _TERMS[_bare(term[0])],
        about=of_own or next(within, None) or next(iter(properties), None),
        is_own=bool(of_own),
        text=text,
        texts=(text, placed, _TERM.sub("T", placed), PROPERTY_WORD.sub("C", placed)),
        corrected=typos,
    )


def _noun(text: str, place: re.Match[str] | None) -> str:
    """Of which kind the unit meant by its place is, wherever the question says so."""
    if place is not None and place["noun"]:
        return place["noun"]
    said = {match[1] for match in _NOUN.finditer(text)}
    return said.pop() if len(said) == 1 else ""


def _place_of(match: re.Match[str]) -> int:
    """Which by strength; the first where none is said."""
    said = (match[name] for name in ("ordinal", "last", "ranked", "up", "number", "hash"))
    return ORDINALS.get(next(filter(None, said), ""), 1)


def _spelt(text: str, known: Collection[str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The text with misspelt words put right, and which they were."""
    typos = {
        word: near[0]
        for word in dict.fromkeys(WORD.findall(text))
        if known and word not in known and len(word) >= _SHORTEST_TYPO and word.isalpha()
        if (near := get_close_matches(word, [one for one in known if one[0] == word[0]], 1, _ALIKE))
    }
    return WORD.sub(lambda match: typos.get(match[0], match[0]), text), tuple(typos.items())
