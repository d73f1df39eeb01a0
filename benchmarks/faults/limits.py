"""What the largest things that the predicate language lets in cost: regexes on long texts, expressions on many records.

Each case is a process of its own, so that its memory is its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from mecharule_ops.errors import MechaRuleError
from mecharule_ops.predicates.language import MAX_CHARACTERS, MAX_NODES, evaluate, parse_predicate, schema_of
from mecharule_ops.types import Columns

from .result import Figure, Result, Setting

RECORDS, LONG, TEXTS = 1_000_000, 1_000_000, 3
MOST_SECONDS, MOST_MEGABYTES = 60.0, 4096.0
"""A case above these is a find; 16 numbers and texts of a million records are 130 MB themselves."""
ROOT = Path(__file__).parents[2]
REGEXES = (
    "(a+)+$",
    "(a|aa)+$",
    "(a|a?)+b",
    "(.*)(.*)(.*)(.*)b",
    "(a{1,30}){1,30}b",
    "a.{0,900}b",
    "(?i)[a-z]+[0-9]+$",
    "(\\\\p{L}+\\\\s?)+$",
)
"""Patterns that take a backtracking matcher for ever."""


def expressions() -> Mapping[str, str]:
    """At the limits of size, each of another kind of work."""
    return {
        "a chain of `or`": _longest("a == {}", " or "),
        "a chain of sums": _longest("b", " + ") + " < a",
        "a tuple of constants": f"a in ({', '.join(str(number) for number in range(100, 195))})",
        "nested gcd": "gcd(" * 22 + "a" + ", b)" * 22 + " > 1",
        "nested digit sums": "digit_sum(" * 20 + "a" + ")" * 20 + " > 3",
        "carries": _longest("carry(a, b)", " and "),
        "words of texts": _longest("has_word(s, 'seven{}')", " or "),
        "shares of texts": "overlap(s, t) > 0.5 and upper_ratio(s) < 0.5 and has_phrase(s, t)",
        "regexes": _longest("matches(s, '(a+)+{}$')", " or "),
    }


def _longest(part: str, joint: str) -> str:
    """As many parts as the limits of characters and syntax nodes let in."""
    text = part.format(1)
    columns = schema_of(columns_of(2))
    for number in range(2, MAX_NODES):
        longer = text + joint + part.format(number)
        try:
            parse_predicate(longer if "==" in part or "(" in part else longer + " < a", columns)
        except MechaRuleError:
            break
        text = longer
    return text


def columns_of(records: int) -> Columns:
    """Numbers and short texts."""
    draw = np.random.default_rng(0)
    texts = np.array(["one seven apples", "NO no", "the 12 words of a Text", "aaaaaaaaaaaaaaaaaaaaaaaa!"])
    return {
        "a": draw.integers(-(10**9), 10**9, records),
        "b": draw.integers(0, 1000, records),
        "s": texts[draw.integers(0, 4, records)],
        "t": texts[draw.integers(0, 4, records)],
    }


def limits(setting: Setting) -> Result:
    """Time and memory of each case."""
    records, long = setting.count(RECORDS), setting.count(LONG)
    cases = {f"regex {pattern}": f"matches(s, '{pattern}')" for pattern in REGEXES} | dict(expressions())
    figures, problems = [], []
    for name, text in cases.items():
        done = _measured(text, long if name.startswith("regex ") else 0, records)
        figures.append(
            Figure(what=name, value=f"{done['seconds']:.1f} s, {done['megabytes']:,.0f} MB above the columns")
        )
        if done["seconds"] > MOST_SECONDS or done["megabytes"] > MOST_MEGABYTES:
            problems.append(f"{name} takes {done['seconds']:.0f} s and {done['megabytes']:,.0f} MB")
        setting.tell(f"limits: {name}: {figures[-1].value}")
    return Result(
        tried=f"{len(REGEXES)} regexes on {TEXTS} texts of {long:,} characters, and {len(cases) - len(REGEXES)} "
        f"expressions as large as the language lets in ({MAX_CHARACTERS} characters, {MAX_NODES} syntax nodes) on {records:,} "
        f"records; a find is a case above {MOST_SECONDS:.0f} s or {MOST_MEGABYTES / 1024:.0f} GB",
        cases=len(cases),
        figures=tuple(figures),
        problems=tuple(problems),
    )


def _measured(text: str, long: int, records: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.faults.limits", text, str(long), str(records)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20 * MOST_SECONDS)
    if done.returncode:
        raise AssertionError(f"{text}: {done.stderr.strip()[-300:]}")
    return dict(json.loads(done.stdout))


def _case(text: str, long: int, records: int) -> dict[str, float]:
    """Seconds of processor and megabytes of one evaluation, in this process."""
    columns = {"s": np.array(["a" * long + "!"] * TEXTS)} if long else columns_of(records)
    found = parse_predicate(text, schema_of(columns))
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    evaluate(found, columns)
    seconds = time.process_time() - began
    return {
        "seconds": seconds,
        "megabytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_case(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
