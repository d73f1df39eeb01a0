"""How many questions that users ask are answered rightly, refused or answered wrongly, with no language model.

    python benchmarks/question_table.py [--show seen|calibration] [--write]

The questions were worded, and the truth of each taken from the run's data, without a look at what answers them. They
were parted once, by the sha256 of their words: the half with the lowest is `unseen`, and its answers are never printed,
so that nothing is built to fit them. Every question is asked of a fresh copy of the stored run of `tests/golden`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pages import ROOT, made_at, put_between

from agent.answering.chat import ask
from mecharule_ops.errors import MechaRuleError

RUN = ROOT / "tests" / "golden" / "b00d.mecharule.xz"
HALVES = ("people", "natural", "newest", "latest", "blind", "fresh", "unseen", "calibration", "seen")
"""`unseen` and `seen` are 150 of one hand, parted once. `calibration`, by another, was read, like `seen`, while
wordings were written. `fresh`, `blind`, `latest`, `newest`, `natural` and `people` were blind, one after the other:
whoever made the router of that time saw none of their questions before they were first asked."""
REFUSES = re.compile(
    r"\bdid not understand\b|\bclaim nothing\b|\A(?:\([^\n]*\)\n)?There is no answer to that\b"
)
PLAIN = str.maketrans({"−": "-", "–": "-", "\u00a0": " ", "\u202f": " ", "⁺": "+", "⁻": "-"})

PAGE = ROOT / "docs" / "agent.md"
BEGIN, END = "<!-- questions: begin -->", "<!-- questions: end -->"

OTHER_READING = re.compile(r"^If you mean “.*$", re.MULTILINE)
"""What an answer says beside it, of what else the question may mean."""
Verdict = Literal["right", "among", "refused", "wrong"]
"""`among`: not the answer itself but one of up to three readings, whose answers begin beside it, is right; a question
that nothing answers is refused then, with readings beside."""
VERDICTS: tuple[Verdict, ...] = ("right", "among", "refused", "wrong")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a user asks, and what is so."""

    ask: str
    first: str | None = None
    """What was asked before it, where it follows on something."""
    answerable: bool
    """Whether the run, its certificates or the program's own definitions hold the answer."""
    must: tuple[tuple[str, ...], ...]
    """Of each of these lists of patterns one is found in a right answer."""
    must_not: tuple[str, ...] = ()
    """Patterns that show a wrong answer."""
    about: str
    """What a right answer says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back."""

    text: str
    refused: bool
    """It says that it did not understand or that it cannot."""
    readings: tuple[str, ...] = ()
    """The beginnings of the answers to what else it may mean, which are shown too, each under its own question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A question, its reply and what the reply is."""

    question: Question
    reply: Reply
    verdict: Verdict


def questions(half: str) -> tuple[Question, ...]:
    """The committed questions of one half."""
    rows = json.loads((ROOT / "benchmarks" / f"questions_{half}.json").read_text(encoding="utf-8"))
    return tuple(_question(row) for row in rows)


def _question(row: dict[str, Any]) -> Question:
    must = tuple(tuple(one) for one in row["must"])
    return Question(**{**row, "must": must, "must_not": tuple(row["must_not"])})


def parted(asked: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Seen and unseen: the half with the lowest sha256 of its words is unseen."""
    ordered = sorted(asked, key=lambda words: hashlib.sha256(words.encode()).hexdigest())
    middle = len(ordered) // 2
    return frozenset(ordered[middle:]), frozenset(ordered[:middle])


def judged(question: Question, reply: Reply) -> Verdict:
    """Right, right among its readings, refused or wrong.

    Where nothing holds the answer a refusal is right, and `among` where readings stand beside it. Else a right reply
    has all that it must have and nothing that it must not, whatever it says beside that; so a refusal is right too
    that says all that it must, such as that no other model was tested.
    """
    if not question.answerable and reply.refused:
        return "among" if reply.readings else "right"
    itself = OTHER_READING.sub("", reply.text)
    says = bool(question.must) and not reply.readings and _holds(question, itself)
    if says if reply.refused else _is_right(question, itself):
        return "right"
    if any(_is_right(question, text) for text in reply.readings):
        return "among"
    return "refused" if reply.refused else "wrong"


def _is_right(question: Question, text: str) -> bool:
    return _holds(question, text) and not any(_found(one, _plain(text)) for one in question.must_not)


def _holds(question: Question, text: str) -> bool:
    return all(any(_found(pattern, _plain(text)) for pattern in one) for one in question.must)


def _plain(text: str) -> str:
    return " ".join(text.translate(PLAIN).split())


def _found(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def replied(question: Question, packed: bytes) -> Reply:
    """What the program says to it, asked of a fresh copy of the run, after the question before it if there is one."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "b00d.mecharule"
        run.write_bytes(packed)
        try:
            if question.first is not None:
                ask(str(run), question.first, _quiet, llm="none", earlier=())
            earlier = () if question.first is None else None
            data = ask(str(run), question.ask, _quiet, llm="none", earlier=earlier).data
        except MechaRuleError as error:
            return Reply(text=str(error), refused=True)
        text = str(data["answer"])
        refused = data.get("understood") is False or REFUSES.search(text) is not None
        readings = tuple(str(one["answer"]) for one in data.get("readings", ()))  # type: ignore[attr-defined]
        return Reply(text=text, refused=refused, readings=readings)


def _quiet(line: str) -> None:
    """Narration is not judged."""


def row(half: str, of: Sequence[Judged]) -> str:
    """One line of the table: how many are right, refused, wrong, and of those that nothing answers."""
    held, beyond = (
        Counter(one.verdict for one in of if one.question.answerable is which) for which in (True, False)
    )
    counts = "  ".join(f"{held[verdict] + beyond[verdict]:>4} {verdict}" for verdict in VERDICTS)
    return (
        f"{half:<11} {len(of):>3} asked  {counts}   "
        f"(answerable: {held['right']} of {held.total()} right, {held['among']} among readings, {held['wrong']} wrong; "
        f"not answerable: {beyond['right']} of {beyond.total()} right)"
    )


def table(halves: dict[str, Sequence[Judged]]) -> str:
    """The unseen half first: of all, of those that the run can answer and of those that nothing answers."""
    lines = [
        "| half | questions | right | right among up to three readings | refused | wrong |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for half, of in halves.items():
        for name, which in (("", (True, False)), (", answerable", (True,)), (", not answerable", (False,))):
            part = [one for one in of if one.question.answerable in which]
            counts = Counter(one.verdict for one in part)
            counted = " | ".join(str(counts[verdict]) for verdict in VERDICTS)
            lines.append(f"| {half}{name} | {len(part)} | {counted} |")
    return "\n".join(lines)


def missed(of: Iterable[Judged]) -> str:
    """Each question that was not answered rightly, what a right answer says, and what came back."""
    return "\n\n".join(
        "\n".join(
            (
                f"{one.verdict}: {one.question.ask}",
                *([f"  after: {one.question.first}"] if one.question.first else []),
                f"  right: {one.question.about}",
                f"  said:  {one.reply.text}",
            )
        )
        for one in of
        if one.verdict != "right"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask them all and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument(
        "--show", choices=("seen", "calibration"), help="print each miss of these with its answer"
    )
    options.add_argument("--write", action="store_true", help="put the table into docs/agent.md")
    chosen = options.parse_args(arguments)
    show, halves = chosen.show, dict[str, Sequence[Judged]]()
    packed = lzma.decompress(RUN.read_bytes())
    with tempfile.TemporaryDirectory() as empty:
        os.environ["MECHARULE_RUNS"] = empty
        for half in HALVES:
            came = [(question, replied(question, packed)) for question in questions(half)]
            of = [Judged(question=one, reply=reply, verdict=judged(one, reply)) for one, reply in came]
            halves[half] = of
            if half == show:
                print(missed(of), end="\n\n")
            print(row(half, of), flush=True)
    if chosen.write:
        put_between(PAGE, f"{table(halves)}\n\n{made_at()}", BEGIN, END)
    return 0


if __name__ == "__main__":
    sys.exit(main())
