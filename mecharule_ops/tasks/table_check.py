"""What a table of prompts says before a model has seen it: its columns and their roles, and what could go wrong.

What a run makes of the table is made here too, so that a table which passes the check does not stop a run later.
"""

import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from mecharule_ops.codec import canonical_json, encode
from mecharule_ops.numbers import plural
from mecharule_ops.predicates import cuts, proposer
from mecharule_ops.predicates.table import build_table
from mecharule_ops.tasks.beginning import compared
from mecharule_ops.tasks.from_file import kind_of
from mecharule_ops.tasks.layout import ANSWERS, FOIL, PROMPT, TARGET
from mecharule_ops.tasks.prompt_table import PromptTable, Write
from mecharule_ops.tasks.text import TextTask, spelt
from mecharule_ops.types import BehaviourRecord, Regime, Share

SHOWN = 5
"""Prompts that are shown."""
SEARCHABLE, NAMED, FEW = 40, 20, 200
"""Below the first number of records two slices of 14 do not fill, which a search at τ = .2 needs; below the third
number of right answers chance alone lifts many units to τ, and rules have wide intervals; below the second it is not
said that what is real is still named, which was simulated from there on."""
REHEARSED = 256
"""Items on which predicates are tried before a run."""
_SHORT = 40
"""Characters of a cell that are shown."""


def column_roles(task: PromptTable) -> tuple[Mapping[str, str], ...]:
    """Every column in the file's order: its name as rules write it, its kind, what it is for, its first value."""
    rows, roles = task.rows(), []
    for name in rows[0]:
        values, uses = [row[name] for row in rows], []
        if name in task.shown_columns:
            uses.append("in the prompt, for rules")
        if name == FOIL and task.graded_by == TARGET:
            uses.append("what is wrong, for rules")
        elif name in task.solution_columns:
            uses.append("what is right" if name == ANSWERS else "what is right, for rules")
        text, written = str(values[0]), [f"{name!r} in the file"] * (spelt(name) != name)
        role = ", ".join([*(uses or ["for rules"]), *written])
        example = text if len(text) <= _SHORT else f"{text[:_SHORT]}…"
        roles.append({"name": spelt(name), "kind": kind_of(values), "role": role, "example": example})
    return tuple(roles)


_MORE = {
    Regime.BASELINE_POSITIVE: ", other few-shot lines (--few-shot FILE), a larger model",
    Regime.BASELINE_NEGATIVE: ", harder ones, a smaller model",
    None: "",
}
"""What but more rows brings more answers to flip from; nothing before a model has answered."""


def too_few(answers: str, many: float, regime: Regime | None = None) -> str:
    """What so few answers cannot show, with the cure; `answers` are such as `26 right answers`, `many` of them."""
    still = ", though what is real is still named" if many >= NAMED else ""
    return (
        f"{answers} are few: below about {FEW} chance lifts many units to τ, so little can be shown{still}; bring more "
        f"rows{_MORE[regime]}"
    )


def expected_few(start: Share, records: int, regime: Regime, word: str, half: int = 14) -> Iterator[str]:
    """That of so many records too few start in a direction, by the share that does of those tried; else nothing.

    A `half` takes so many, and a third is held out.
    """
    expected = records * start.count / max(1, start.n)
    if start.count and expected < FEW:
        wanted = math.ceil(FEW * start.n / start.count / 10) * 10
        answers = f"about {expected:.0f} {word} answers ({start.count} of {start.n} tried)"
        said = too_few(answers, expected, regime)
        if expected < 3 * half:
            said = f"nothing will be searched: {too_small(answers, half, regime)}"
        yield f"{said}; {wanted:,} such rows would do"


def too_small(answers: str, needed: int, regime: Regime) -> str:
    """That halves rule no unit out; `answers` are such as `26 right answers, in halves of 3 and 15,`."""
    return (
        f"{answers} can rule no unit out, which takes {needed} or more a half: test each unit alone (--search "
        f"exhaustive), or bring more rows{_MORE[regime]}"
    )


def warnings_of(task: PromptTable, write: Write | None = None) -> tuple[str, ...]:
    """What could go wrong, a sentence each; none where nothing was seen. `write` is the model's tokenizer."""
    return (*_of_prompts(task), *_of_answers(task, write), *_of_columns(task))


def rehearse(task: TextTask) -> None:
    """Make of a task's items all that a run does: records, columns, predicates and the grammar's candidates.

    Predicates are written from all items and evaluated on `REHEARSED`. Cost: no model call. Raises what these raise.
    """
    records = [
        BehaviourRecord(example=each, tokens=(), completion="", parsed=task.parse(each, ""), label=False)
        for each in task.examples(sys.maxsize, np.random.default_rng(0))
    ]
    canonical_json([encode(record) for record in records])
    columns = {name: column[:REHEARSED] for name, column in task.columns(records).items()}
    labels = np.arange(min(len(records), REHEARSED)) % 2 == 0
    cuts.evaluated((*task.seed_predicates(), *task.account_predicates()), columns)
    proposed = proposer.enumerate_candidates(columns, labels, task.prompt_columns)
    build_table(proposed, columns, labels, np.ones(len(labels), bool), prompt_columns=task.prompt_columns)


def _of_prompts(task: PromptTable) -> Iterator[str]:
    kept = task.questions
    if count := sum(text[-1:].isspace() and text[-1:] != "\n" for text in kept):
        yield (
            f"{plural(count, 'prompt')} end in white space: most tokenizers join a space to the word behind it, so "
            "that a model seldom goes on as you mean; delete the space"
        )
    if len(kept) < SEARCHABLE:
        yield (
            f"{plural(len(kept), 'record')} {'is' if len(kept) == 1 else 'are'} too few to search: bring {FEW} or more "
            "since a third is held out and 14 examples of one outcome are needed in a slice"
        )
    elif len(kept) < FEW:
        yield too_few(f"{len(kept)} records", len(kept))


def _of_answers(task: PromptTable, write: Write | None) -> Iterator[str]:
    """What answers could mislead by; those that no model can write, or that this one cannot, by its tokenizer."""
    rows = task.rows()
    answers = Counter(answer.strip() for row in rows for answer in task.right(row))
    if len(rows) > 1 and len(set(map(task.right, rows))) == 1:
        yield f"every row has the answer {next(iter(answers))!r}: a model that always says it is right on all of them"
    if 1 < len(answers) < 6 and all(len(answer) == 1 and answer.isdecimal() for answer in answers):
        yield (
            f"the answers are {', '.join(sorted(answers))}: if these number classes, say what they stand for with "
            "--means, if choices, name the columns of these with --target 'COLUMN{answer}'"
        )
    words = [word for row in rows for word in task.right(row)] if task.tokenizer else []
    inside = [word for word in words if not word[:1].isspace()]
    if 0 < len(inside) < len(words):
        yield (
            f"{len(inside):,} of {plural(len(words), 'token')} begin inside a word, such as {inside[0]!r}: the numbers "
            f"may be those of another model's tokens than {task.tokenizer}'s"
        )
    if gone := [answer for answer in answers if re.fullmatch(_NOTHING, answer.lower())]:
        count = plural(sum(answers[each] for each in gone), "answer")
        yield f"{count} may be cells without a value: {', '.join(map(repr, gone))}; leave out such rows if so"
    ended = {answer for answer in answers if any(stop in answer for stop in task.stop)}
    tried = answers.keys() - ended if write is not None else ()
    ways = {each: [*write(each), *write(compared(each, task.twins))] for each in tried if write is not None}
    shortest = {each: min(found)[0] for each, found in ways.items()}
    most = task.max_new_tokens
    never: Mapping[str, Callable[[str], bool]] = {
        f"the text ends at {' or '.join(map(repr, task.stop))}; keep what comes before it": ended.__contains__,
        f"they take more than the {most} tokens that are generated; --set task.max_new_tokens=N": (
            lambda each: shortest.get(each, 0) > most
        ),
        "their characters are not in the model's vocabulary": (
            lambda each: each in ways and not any(task.met(text, [each]) for _, text in ways[each])
        ),
    }
    for said, test in never.items():
        if found := list(filter(test, answers)):
            count = plural(sum(answers[each] for each in found), "answer")
            yield f"{count}, such as {found[0]!r}, can never be right: {said}"


def _of_columns(task: PromptTable) -> Iterator[str]:
    rows = task.rows()
    free = [name for name in rows[0] if name not in {*task.shown_columns, *task.solution_columns, PROMPT}]
    yield from filter(None, (_not_numbers(name, [str(row[name]) for row in rows]) for name in free))
    if not free:
        yield "there are no columns but prompt and answer: rules can only be about the words of these"


_NOTHING = "na|nan|n/a|null|none"
"""What tables write in a cell that holds nothing."""


def _not_numbers(name: str, texts: Sequence[str]) -> str:
    """That a column is read as text for a few cells, or commas, though it has numbers; empty where that is not so."""
    commas = [text for text in texts if re.fullmatch(r"\s*-?\d+,\d+\s*", text)]
    gone = [x for x in texts if re.fullmatch(rf"[+-]?(|inf(inity)?|{_NOTHING})", x.strip().lower())]
    real = [text for text in texts if re.fullmatch(r"\s*[-+]?\d*\.?\d+(e[-+]?\d+)?\s*", text, re.IGNORECASE)]
    if not (commas or gone) or len(commas + gone + real) < len(texts) or not (commas or real):
        return ""
    said = [f"a comma stands in {commas[0]!r}: write a point"] if commas else []
    said += [f"{gone[0]!r} is no number ({plural(len(gone), 'row')}): fill or drop them"] if gone else []
    return f"{name} is read as text, not as numbers, since {', and '.join(said)}"
