"""The words that a question can be made of, each with what it means; a word that is not here is not understood.

A meaning is a short name such as `flip`. Words without a meaning of their own (articles, auxiliaries, courtesy) are
listed apart. Quantifiers, negations and numbers are not courtesy: a question that holds one is understood only by a
form that asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_FILLERS = """
a an the of for in on at by to from with about and or as am is are was were be been being do does did has
have had i me my we us our you your please hey hi hello ok okay thanks thank now then so well just really
actually exactly simply here there still let's s can could may might shall should tell show give say know
want like see make makes made get gets into any anything
"""
FILLERS = frozenset(_FILLERS.split())
"""Words that say nothing by themselves."""

MEANINGS: Mapping[str, str] = {
    word: meaning
    for meaning, words in {
        "what": "what what's which",
        "why": "why explain explanation reason reasons evidence matter matters account",
        "how": "how",
        "when": "when under",
        "flip": "flip flips flipped flipping effect effects change changes changed impact influence",
        "breaks": "break breaks broke broken breaking wrong",
        "repairs": "repair repairs repaired fix fixes fixed",
        "unit": "unit units neuron neurons head heads channel channels coordinate coordinates",
        "agonist": "agonist agonists localized localised localize localise",
        "strongest": "strongest top best biggest largest main greatest",
        "second": "second 2nd",
        "third": "third 3rd",
        "fourth": "fourth 4th",
        "fifth": "fifth 5th",
        "it": "it its it's this that that's these those one ones",
        "them": "them they their both",
        "not": "not never absent excluded pruned dropped rejected discarded missing isn't wasn't doesn't didn't aren't "
        "weren't don't isnt wasnt doesnt didnt no",
        "found": "found find located identified discovered detected",
        "missed": "miss misses missed overlook overlooked recall completeness complete",
        "search": "search searches run analysis",
        "rule": "rule rules clause clauses condition",
        "cover": "cover covers covered fire fires apply applies hold holds",
        "else": "else other others another further",
        "share": "share shares shared same overlap overlaps common too also",
        "reads": "read reads reading attend attends attending",
        "writes": "write writes writing push pushes",
        "through": "through via mediate mediates mediated",
        "act": "act acts acting work works operate operates",
        "prediction": "first order predict predicts predicted predictable lead drop",
        "responds": "respond responds drive drives driven",
        "ceiling": "ceiling ceilings",
        "refute": "refute falsify disprove counterexample",
        "prove": "prove proof verify recheck confirm rerun reproduce",
        "again": "again once more",
        "weakest": "weakest shakiest doubtful thinnest flimsiest least",
        "claim": "claim claims statement statements conclusion conclusions result results finding findings",
        "supported": "supported certain sure evidenced backed trustworthy reliable",
        "splitter": "splitter split",
        "disguise": "disguise disguised identical equal equals restates",
        "compare": "compare compared comparison versus vs against beside contrast",
        "than": "than",
        "more": "more stronger worse better bigger larger higher greater outflip beat beats differ differs difference",
        "fewer": "less weaker fewer smaller lower",
        "whole": "whole entire entirely jointly",
        "together": "together joint",
        "layer": "layer layers",
        "single": "single alone individual",
        "summary": "summary summarise summarize overview report recap gist",
        "list": "list enumerate all",
        "many": "many number",
        "would": "would will if suppose",
        "prompt": "prompt prompts question input sum",
        "outcome": "answer answers outcome outcomes prediction predictions output outputs completion completions "
        "example examples record records model case cases",
        "ablate": "ablate ablated ablating ablation remove removed knock knocked silence silenced",
        "happen": "happen happens happened",
        "control": "control controls random chance",
        "certificate": "certificate certificates certified",
        "slice": "slice slices",
        "hypothesis": "hypothesis hypotheses ledger",
        "ask": "ask help",
        "strong": "strong strength strongly much often large big",
        "last": "last previous",
        "instead": "instead",
    }.items()
    for word in words.split()
}
"""Each word of the vocabulary and its meaning."""

IDIOMS: tuple[tuple[str, str], ...] = (
    (
        r"change your mind|prove \w+(?: \w+)? wrong|what would it take to (?:refute|falsify|disprove)",
        "refute",
    ),
    (r"as a whole", "whole"),
    (r"in disguise|the same (?:thing )?as", "disguise"),
    (r"how come", "why"),
    (r"tell me (?:more )?about|what does (?=\S+ do\b)", "why"),
    (r"(?<=\S) do(?=\s*\?*$)", ""),
    (r"left out|ruled out|thrown out|filtered out", "not"),
    (r"most important|most influential", "strongest"),
    (r"least (?:well )?(?:supported|certain|sure|evidenced|backed|reliable|trustworthy)", "weakest"),
    (r"(?:least|weakest|thinnest) evidence", "weakest"),
    (r"how many", "many"),
    (
        r"are you (?:really )?sure(?: about (?:it|that|this))?|is (?:that|it|this) (?:really )?true|double[- ]check",
        "prove it",
    ),
    (r"knock(?:ed|ing)? out|turn(?:ed|ing)? off|switch(?:ed|ing)? off|take out", "ablate"),
    (
        r"show (?:me )?(?:the )?proof|(?:run|check|test|do) (?:it|that|this) (?:once )?(?:again|more)",
        "prove it",
    ),
    (r"what (?:can|could|may) i ask", "ask"),
    (r"(?:what|how) about", "instead"),
    (r"side by side", "compare"),
)
"""Phrases that mean one thing, and that meaning."""
_SHORTEST_TYPO = 5
_LONG = 9
_FOUR = tuple(word for word in MEANINGS if len(word) == 4)
"""Too short for a wrong letter; two swapped ones still show what was meant."""


def meaning(word: str) -> str | None:
    """The meaning of a word; empty for a filler, None for a word that is not known."""
    if word in FILLERS:
        return ""
    return MEANINGS.get(word)


def corrected(word: str) -> str | None:
    """The one known word that differs by a letter (two in a long word); None when there is none, or more than one."""
    swapped = [known for known in _FOUR if sorted(known) == sorted(word) and _distance(word, known) == 1]
    if len(swapped) == 1:
        return swapped[0]
    if len(word) < _SHORTEST_TYPO - 1 or not re.fullmatch(r"[a-z']+", word):
        return None
    for reach in range(1, 3 if len(word) >= _LONG else 2):
        near = [known for known in MEANINGS if _comparable(word, known) and _distance(word, known) <= reach]
        if len({MEANINGS[known] for known in near}) == 1:
            return near[0]
        if near:
            return None
    return None


def _comparable(word: str, known: str) -> bool:
    """Long enough to be told apart: of two words of four letters a wrong one says nothing."""
    return min(len(word), len(known)) >= _SHORTEST_TYPO - 1 and max(len(word), len(known)) >= _SHORTEST_TYPO


def _distance(left: str, right: str) -> int:
    """Letters inserted, left out, changed, or swapped with their neighbour (Damerau–Levenshtein)."""
    if abs(len(left) - len(right)) > 2:
        return 3
    rows = [list(range(len(right) + 1))]
    for i, one in enumerate(left, 1):
        row = [i]
        for j, other in enumerate(right, 1):
            cost = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (one != other))
            if i > 1 and j > 1 and one == right[j - 2] and left[i - 2] == other:
                cost = min(cost, rows[-2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]
