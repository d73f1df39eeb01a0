"""Words that say more than the facts beside them: quantities in words, comparisons, and verbs beyond an ablation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

QUANTIFIERS: Mapping[str, tuple[re.Pattern[str], Callable[[float], bool]]] = {
    name: (re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE), holds)
    for name, pattern, holds in (
        (
            "nearly all",
            r"(?:nearly|almost|virtually|practically|close to) (?:all|every\w*|always|each)|the vast majority",
            lambda share: 0.9 <= share < 1,
        ),
        (
            "hardly any",
            r"(?:hardly|barely|scarcely) (?:any|ever)|(?:nearly|almost) (?:no|none|never)|rarely|seldom|very few",
            lambda share: 0 < share <= 0.1,
        ),
        ("not all", r"not (?:all|every|always)", lambda share: share < 1),
        (
            "all",
            r"all|every|everything|everywhere|each|always|invariably|entire(?:ly)?|whole|complete(?:ly)?|fully|"
            r"without exception|any",
            lambda share: share == 1,
        ),
        (
            "none",
            r"no|none|nothing|never|nowhere|zero|neither|not (?:one|a single|any)",
            lambda share: share == 0,
        ),
        (
            "most",
            r"most(?:ly)?|(?:the|a) majority|usually|generally|predominantly",
            lambda share: share > 0.5,
        ),
        ("half", r"half|halves", lambda share: abs(share - 0.5) <= 0.02),
        ("few", r"few|a handful|(?:a|the) minority|occasionally", lambda share: 0 < share < 0.5),
        ("many", r"many|numerous|plenty|lots|often|frequently|countless", lambda share: share >= 0.5),
        ("some", r"some|several|sometimes|a (?:couple|part)", lambda share: share > 0),
        ("only", r"only|solely|exclusively|both|single-handedly", lambda share: False),
    )
}
"""Quantities in words, longest first: the pattern, and when a share bears it out."""
COMPARISON = re.compile(
    r"(?<![\w-])(?:more|less|fewer|greater|higher|lower|larger|smaller|bigger|stronger|weaker|better|worse|rarer|"
    r"commoner|strongest|weakest|largest|smallest|highest|lowest|biggest|best|worst|than|exceeds?|exceeding|outweighs?|"
    r"surpass(?:es)?|beats?|tops|twice|thrice|double[sd]?|triple[sd]?|halve[sd]?|equals?|equally|identical|same|"
    r"similar(?:ly)?|alike|unlike|unique|as \w+ as|above|below|beyond|increases?|decreases?|reduces?|first|last|main|"
    r"major|dominant|top)(?![\w-])",
    re.IGNORECASE,
)
"""Words that set one thing against another."""
OVERCLAIM = re.compile(
    r"(?<![\w-])(?:explain\w*|comput(?:e|es|ed|ing|ation)|caus(?:e|es|ed|ing|al|ally)|implement\w*|encod\w+|represent\w*|"
    r"stor(?:e|es|ed|ing)|perform\w*|calculat\w+|responsible|in charge|determin(?:e|es|ed|ing)|driv(?:e|es|en|ing)|"
    r"understand\w*|knows?|guarantee\w*|prov(?:e|es|ed|en|ing)|detect(?:s|ed|ing|or|ors)|recogni[sz]\w+|learn(?:s|ed|t)|"
    r"decid(?:e|es|ed)|necessary|sufficient|essential|crucial|indispensable|mechanism|speciali[sz]\w+|track(?:s|ed|ing)|"
    r"handl(?:e|es|ed|ing)|carries out|govern(?:s|ed)?|owns?|solves?|master\w*|the reason|controls the|"
    r"add(?:s|ing) (?:the )?(?:numbers|digits)|does (?:the )?(?:addition|arithmetic|sums?|carry\w*))(?![\w-])",
    re.IGNORECASE,
)
"""Verbs and words that claim more than that an outcome changes when a unit is ablated."""
_DENIED = re.compile(r"(?:\bnot|n't|\bcannot|\bnever|\bnor|\bwithout|\bno)(?:\s+\w+){0,3}\s*$", re.IGNORECASE)


def denied(text: str, begin: int) -> bool:
    """Whether the word at a place stands under a negation: `does not explain`."""
    return bool(_DENIED.search(text[:begin]))
