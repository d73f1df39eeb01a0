"""Forty questions that need two or more tools or thought, put to `investigate`; how a reader graded the replies.

    python benchmarks/hard_questions.py FOLDER [--blind] [--only N ...] [--llm local/FILE.gguf]
    python benchmarks/hard_questions.py --write

The questions were worded, and each truth taken from the data of the stored run of `tests/golden`, by one who saw no
reply. `--blind` puts twenty others, worded when the cures of what the forty showed were made, and read by none of
their makers before they were first asked. Replies go to FOLDER, a file each; somebody reads them beside the truths, and
his grades are kept in `hard_grades.json`, of which `--write` puts the table into docs/agent.md.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pages import ROOT, put_between

RUN = ROOT / "tests" / "golden" / "b00d.mecharule.xz"
QUESTIONS = ROOT / "benchmarks" / "questions_hard.json"
BLIND = ROOT / "benchmarks" / "questions_hard_blind.json"
GRADES = ROOT / "benchmarks" / "hard_grades.json"
KINDS = ("right", "partly right", "refused or undecided", "something else", "wrong")
"""Of a reply: `something else` is true and no answer to what was asked."""
BEGIN, END = "<!-- hard questions: begin -->", "<!-- hard questions: end -->"


def replied(question: str, options: Sequence[str]) -> str:
    """What the program prints, on a fresh copy of the run, with its exit code and seconds."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "b00d.mecharule").write_bytes(lzma.decompress(RUN.read_bytes()))
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "app", "investigate", "b00d", question, *options],
            env={**os.environ, "MECHARULE_RUNS": folder},
            cwd=ROOT,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        took = time.monotonic() - began
    return f"{question}\nexit {done.returncode}, {took:.0f} s\n{done.stdout}\n{done.stderr}"


def table() -> str:
    """A row a reading: how many of the questions that were put came out how."""
    rows = [f"| who | questions | {' | '.join(KINDS)} |", f"|---|---:|{'---:|' * len(KINDS)}"]
    for reading in json.loads(GRADES.read_text(encoding="utf-8")):
        counts = Counter(reading["grades"].values())
        cells = " | ".join(str(counts[kind]) for kind in KINDS)
        rows.append(f"| {reading['who']} | {counts.total()} | {cells} |")
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask them, or write the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("folder", nargs="?", type=Path)
    options.add_argument("--blind", action="store_true")
    options.add_argument("--only", nargs="*", type=int)
    options.add_argument("--llm")
    options.add_argument("--write", action="store_true")
    chosen = options.parse_args(arguments)
    if chosen.write:
        put_between(ROOT / "docs" / "agent.md", table(), BEGIN, END)
        return 0
    if chosen.folder is None:
        options.error("expected a folder for the replies, or --write")
    chosen.folder.mkdir(parents=True, exist_ok=True)
    asked = json.loads((BLIND if chosen.blind else QUESTIONS).read_text(encoding="utf-8"))
    for place in chosen.only or range(len(asked)):
        reply = replied(asked[place]["ask"], ("--llm", chosen.llm) if chosen.llm else ())
        (chosen.folder / f"{place:02}.txt").write_text(reply, encoding="utf-8")
        print(place, reply.splitlines()[1], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
