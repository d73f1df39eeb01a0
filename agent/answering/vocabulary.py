"""Words that mean the same here, words that say little, and how a misspelt word is read.

Nothing here decides which words may stand in a question: a word that no list knows counts against every row of
`questions` alike, and one that differs by a letter from a known one is read as that.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_LIGHT = """
a an the of for in on at by to from with about and or as am is are was were be been being do does did done has
have had i me my we us our you your yours please pls plz hey hi hello ok okay thanks thank now then so just really
actually exactly simply here there still let's s can could may might shall should tell show give say know got
want like see make makes made get gets into any anything if but im i'm i'd i'll me mean's s's dear quick
own take took taken two three once really goes go going use used using done any there's final finally sorry could you
us let lets anyone somebody someone anybody thing things stuff around altogether one ones some kind sort
bit also too even ever them they their it its it's this that that's these those both
he she there's isn ur u r ya hmm um er yes also then though such very much
"""
LIGHT = frozenset(_LIGHT.split())
"""Words that say little by themselves."""

SYNONYMS: Mapping[str, str] = {
    word: meaning
    for meaning, words in {
        "what": "what what's wat whats",
        "which": "which",
        "why": "why wy",
        "explain": "explain explanation reason reasons account describe clarify elaborate",
        "evidence": "evidence",
        "how": "how",
        "howmany": "fraction proportion percentage percent",
        "when": "when under circumstances situations",
        "where": "where",
        "who": "who whom",
        "flip": "flip flips flipped flipping flp",
        "effect": "effect effects affect affects affected impact influence influences change changes changed alter",
        "break": "break breaks broke broken breaking destroy destroys damage damages hurt hurts "
        "harm harms ruin ruins spoil "
        "spoils disrupt disrupts kill kills",
        "wrong": "wrong wrongly incorrect incorrectly mistake mistakes error errors fail fails failed failing failure "
        "failures mess",
        "repair": "repair repairs repaired fix fixes fixed mend mends",
        "unit": "unit units neuron neurons channel channels coordinate coordinates nueron "
        "component components node nodes",
        "head": "head heads",
        "agonist": "agonist agonists",
        "localized": "localized localised localize localise",
        "strongest": "strongest top best biggest largest main greatest",
        "second": "second 2nd",
        "third": "third 3rd",
        "fourth": "fourth 4th",
        "fifth": "fifth 5th",
        "not": "not never absent excluded pruned dropped rejected discarded missing isn't wasn't doesn't didn't aren't "
        "weren't don't isnt wasnt doesnt didnt no arent cannot can't",
        "always": "always every everything each",
        "all": "all",
        "only": "only solely exclusively",
        "found": "found find finds located identify identified discover discovered detect detected discovery",
        "missed": "miss misses missed overlook overlooked overlooks",
        "complete": "recall completeness complete exhaustive exhaustively",
        "search": "search searches searched",
        "run": "run analysis experiment study investigation",
        "rule": "rule rules clause clauses condition conditions",
        "cover": "cover covers covered fire fires apply applies hold holds",
        "else": "else other others another further",
        "share": "share shares shared same overlap overlaps common",
        "read": "read reads reading attend attends attending",
        "write": "write writes writing push pushes",
        "through": "through via mediate mediates mediated mediation",
        "direct": "direct directly indirect indirectly",
        "act": "act acts acting work works operate operates function functions",
        "predict": "predict predicts predicted predictable prediction predictions",
        "first-order": "first-order linear gradient",
        "respond": "respond responds drive drives driven triggers trigger",
        "refute": "refute falsify disprove counterexample falsified",
        "prove": "prove proof recheck confirm double-check",
        "check": "verify check checked reproduce reproduced replicate replicated reproducible "
        "replicable rerun validate "
        "validated verified verification reproducibility",
        "weakest": "weakest shakiest doubtful thinnest flimsiest least",
        "claim": "claim claims statement statements conclusion conclusions finding findings",
        "result": "result results",
        "sure": "supported certain sure evidenced backed trustworthy reliable confident certainty",
        "splitter": "splitter split splits splitting separates separate separating separated divides "
        "parts distinguishes",
        "disguise": "disguise disguised identical equal equals restates",
        "compare": "compare compared comparison versus vs against contrast",
        "than": "than",
        "more": "more stronger worse better bigger larger higher greater beat beats differ "
        "differs difference outperform",
        "fewer": "less weaker fewer smaller lower",
        "whole": "whole entire entirely",
        "together": "together joint jointly simultaneously",
        "layer": "layer layers",
        "alone": "single alone individual individually",
        "summary": "summary summarise summarize overview recap gist summarised summarized summarising summarizing "
        "report tldr abstract takeaway headline nutshell upshot bottomline",
        "list": "list enumerate",
        "many": "many number count amount total",
        "prompt": "prompt prompts input inputs question questions",
        "record": "record records sum sums example examples problem "
        "problems sample samples item items case cases exercise exercises calculation calculations instance instances "
        "equation equations datapoints",
        "answer": "answer answers outcome outcomes output outputs completion completions",
        "ablate": "ablate ablated ablating ablation ablations remove removed removes removing "
        "knock knocked silence silenced "
        "gone disable disabled delete deleted deleting suppress suppressed deactivate deactivated zeroed "
        "lesion lesioned",
        "happen": "happen happens happened",
        "random": "random randomly control controls arbitrary",
        "chance": "chance coincidence luck noise fluke accident accidental lucky spurious",
        "certificate": "certificate certificates certified",
        "slice": "slice slices",
        "hypothesis": "hypothesis hypotheses ledger registered preregistered",
        "help": "help",
        "strong": "strong strength strongly big large powerful",
        "last": "last previous",
        "matter": "matter matters important importance relevant crucial essential key role involved "
        "responsible counts",
        "model": "model models network lm",
        "accuracy": "accuracy accurate accurately",
        "right": "right correct correctly succeed succeeds success successful pass passes solve solves solved",
        "perform": "performance perform performs score scores",
        "good": "good well",
        "seed": "seed seeds",
        "setting": "setting settings parameter parameters hyperparameter hyperparameters config "
        "configuration threshold "
        "thresholds",
        "long": "long duration runtime minutes hours seconds time",
        "cost": "cost costs pay paid expensive cheap compute effort computation computational budget",
        "significant": "significant significance statistically",
        "p-value": "p-value p-values pvalue pval",
        "interval": "interval intervals bound bounds bounded",
        "confidence": "confidence ci uncertainty",
        "correct-for": "multiplicity multiple-comparisons",
        "limit": "limit limits limitation limitations caveat caveats weakness weaknesses shortcoming shortcomings",
        "cause": "cause causes causal causally caused causation causality",
        "need": "necessary needed need needs sufficient suffices sufficiency suffice necessity",
        "replace": "replace replaced replaces replacement replacements substitute substituted",
        "value": "value values",
        "zero": "zero zeros 0",
        "mean": "mean means meaning define definition defined",
        "word": "word words term terms",
        "train": "train trained training",
        "held-out": "held-out unseen heldout",
        "test": "test tests tested testing try tried evaluate evaluated examined",
        "group": "group groups cluster clusters",
        "prune": "prune",
        "attribution": "attribution eap-ig",
        "language-model": "llm llms gpt chatgpt claude ai",
        "version": "version versions library libraries software package packages",
        "hardware": "hardware gpu cpu machine device",
        "operator": "operator operators operation operations",
        "range": "range ranges",
        "size": "size sizes",
        "digit": "digit digits token tokens character",
        "next": "next future",
        "range-of": "distribution out-of-distribution ood out-of-range",
        "selective": "selective selectivity selectively specific specifically specialised specialized",
        "interact": "interact interacts interaction backup redundant redundancy synergy compensate compensates",
        "generalise": "generalise generalize generalises generalizes generalisation generalization transfer transfers",
        "baseline": "baseline baselines",
        "template": "template format form shape",
        "difficult": "difficult hard hardest easy easiest",
        "instead": "instead",
    }.items()
    for word in words.split()
}
"""Each word that has others beside it, and what they mean together."""

IDIOMS: tuple[tuple[str, str], ...] = (
    (r"(?:change|changes) your mind|prove \w+(?: \w+)? wrong", "refute"),
    (r"what would it take to (?:refute|falsify|disprove)", "what refute"),
    (r"as a whole", "whole"),
    (r"in disguise|the same (?:thing )?as", "disguise"),
    (r"in other words", "disguise"),
    (r"how come", "why"),
    (r"tell me (?:more )?about", "explain"),
    (r"left out|ruled out|thrown out|filtered out", "ruledout"),
    (r"most important|most influential|matters? (?:the )?most", "strongest"),
    (r"least (?:well )?(?:supported|certain|sure|evidenced|backed|reliable|trustworthy)", "weakest"),
    (r"(?:least|weakest|thinnest) evidence", "weakest"),
    (r"how (?:many|much)", "howmany"),
    (r"how long", "howlong"),
    (r"are you (?:really |absolutely )?(?:sure|certain)(?: about (?:it|that|this))?(?=\s*\?*$)", "prove"),
    (r"is (?:that|it|this) (?:really )?true", "prove"),
    (
        r"(?:knock|turn|switch|shut|cut|take)(?:s|ed|ing|n)? (?:it |them |that )?(?:out|off|away)|get rid of",
        "ablate",
    ),
    (
        r"(?:knock|turn|switch|shut|cut|take)(?:s|ed|ing|n)? ((?:[a-z]+ ){1,4}?)(?:out|off|away)(?= |\W|$)",
        r"ablate \1",
    ),
    (r"(?:is|are|was|were|being|be) (?:switched |turned |shut )?off", "ablate"),
    (r"(?:do|does|did) without|were gone|was gone|is gone|is missing|went missing", "ablate"),
    (r"show (?:me )?(?:the )?proof|(?:run|check|test|do) (?:it|that|this) (?:once )?(?:again|more)", "prove"),
    (r"what (?:can|could|may) i ask", "help"),
    (r"side by side", "compare"),
    (r"held[- ](?:out|back)", "held-out"),
    (r"thrown away|throw(?:n)? out|threw out", "ruledout"),
    (r"first[- ]order", "first-order"),
    (r"p[- ]values?", "p-value"),
    (r"out[- ]of[- ](?:distribution|range)", "out-of-range"),
    (r"large language models?|language models?", "llm"),
    (r"multiple (?:comparisons?|testing|tests|hypothes[ei]s)", "multiple-comparisons"),
    (r"back (?:each other|one another) up|compensate for each other", "backup"),
    (r"go(?:es)? wrong|get(?:s)? (?:it |them )?wrong", "wrong"),
    (r"rely on|relies on|depends? on|has to do with|(?:something|anything) to do with", "about"),
    (r"by chance", "chance"),
    (r"in (?:total|all)|altogether|overall", "overall"),
    (r"(?:all )?(?:on its own|by itself|on their own)", "alone"),
)
"""Phrases that mean one thing, and that meaning."""
_ENDINGS = ("ing", "ies", "es", "ed", "ly", "s")
_SHORTEST_STEM = 4
_SHORTEST_TYPO = 5
_LONG = 9


def meaning(word: str) -> str:
    """What a word means here; its stem where it has no others beside it."""
    if word in SYNONYMS:
        return SYNONYMS[word]
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= _SHORTEST_STEM:
            for known in (stem, f"{stem}e"):
                if known in SYNONYMS:
                    return SYNONYMS[known]
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= _SHORTEST_STEM:
            return stem.removesuffix("e")
    return word.removesuffix("e") if len(word) > _SHORTEST_STEM else word


def corrected(word: str, known: Collection[str]) -> str | None:
    """The one known word that differs by a letter (two in a long word); None when there is none, or more than one."""
    if not re.fullmatch(r"[a-z']+", word) or len(word) < _SHORTEST_TYPO - 1:
        return None
    swapped = [
        one
        for one in known
        if len(one) == len(word) == _SHORTEST_TYPO - 1
        and one[0] == word[0]
        and sorted(one) == sorted(word)
        and _distance(word, one) == 1
    ]
    if len(swapped) == 1:
        return swapped[0]
    if len(word) < _SHORTEST_TYPO:
        return None
    for reach in range(1, 3 if len(word) >= _LONG else 2):
        near = [one for one in known if _comparable(word, one) and _distance(word, one) <= reach]
        if len({meaning(one) for one in near}) == 1:
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
