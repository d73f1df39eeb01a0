"""The program's own words and the field's, each said once in plain English in `glossary.txt`.

A text that holds one of its own words explains it, briefly, in a line of its own.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One word of the program."""

    name: str
    """As it is written."""
    means: str
    """A sentence without its full stop; `{tau}` and the like stand for a run's own settings."""
    also: tuple[str, ...] = ()
    """Other ways to write it."""
    short: str = ""
    """The part of the meaning that stands under a text; empty where none does."""
    found: str = ""
    """The pattern that finds it in a text."""


def _term(block: str) -> Term:
    spellings, means, *found = block.splitlines()
    name, *also = (spelling.strip() for spelling in spellings.split(" | "))
    short = re.search(r"\[(.*)\]", means)
    told, brief = re.sub(r"[\[\]]", "", means), short[1] if short else ""
    return Term(name=name, means=told, also=tuple(also), short=brief, found="".join(found).removeprefix("~ "))


_BLOCKS = files(__package__).joinpath("glossary.txt").read_text(encoding="utf-8").split("\n\n")[1:]
TERMS: Mapping[str, Term] = {term.name: term for term in map(_term, _BLOCKS)}
"""By name, in the order of the file."""
GLOSSES: Sequence[Term] = tuple(term for term in TERMS.values() if term.short)
"""Those that a text explains, in the order of its line."""


def written(name: str) -> str:
    """A term's name as one that compares: lower case, one blank between words."""
    return " ".join(re.sub(r"[\s_]+", " ", name.lower().replace("⁺", "+").replace("⁻", "-")).split())


SPELLINGS: Mapping[str, str] = {
    written(spelling): term.name for term in TERMS.values() for spelling in (term.name, *term.also)
}
"""The name of the term for each way to write it."""


def explained(text: str) -> str:
    """`Words: D+, D-: …; lead: ….` for the program's own words in a text; empty without any.

    A meaning that itself uses such a word brings that word's own with it.
    """
    told: list[Term] = []
    read = text
    while more := [term for term in GLOSSES if term not in told and re.search(term.found, read)]:
        told += more
        read = " ".join(term.short for term in more)
    words = [f"{term.name}: {term.short}" for term in GLOSSES if term in told]
    return f"Words: {'; '.join(words)}." if words else ""
