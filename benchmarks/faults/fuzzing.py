"""Texts from outside, invented by hypothesis: each is read or refused by one line, at once, and nothing of it runs.

An audit hook hears every import, file, process, socket and execution of code while a text is read.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from agent.llm.parsing import parsed_as
from agent.proposing.proposal_nodes import Proposals
from agent.refining.refinement_state import Refinement
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis.strategies import SearchStrategy

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.certificates.verification import inconsistencies
from mecharule_ops.codec import decode, parse_json
from mecharule_ops.config import make_config
from mecharule_ops.errors import MechaRuleError
from mecharule_ops.predicates.language import evaluate, parse_predicate, schema_of
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.tasks.from_file import read_table

from .invented import csv_tables, json_near, jsonl_tables, predicates
from .result import Figure, Result, Setting

FULL = 100_000
"""Cases a kind."""
SLOW = 1.0
"""Seconds of this process after which a case counts as hung."""
LEAST = 25
FORBIDDEN = ("exec", "import", "open", "os.", "subprocess.", "socket.", "shutil.", "ctypes.", "pty.")
"""Audit events that no text may cause; `compile` is Python's parser, which the predicate language uses."""

COLUMNS = {
    "a": np.array([0, 1, 7, -3, 12_345, 2**52, -(2**53)]),
    "b": np.array([5, 0, -1, 10, 99, 3, 2**40]),
    "x": np.array([0.5, -1.5, float("inf"), float("nan"), 0.0, 1e300, 2.0]),
    "op": np.array(["+", "-", "*", "", "é", "a b", "\n"]),
    "ok": np.array([True, False, True, False, True, False, True]),
}


@dataclass(slots=True)
class Heard:
    """What the audit hook and the clock saw."""

    listening: bool = False
    escapes: list[str] = field(default_factory=list)


HEARD = Heard()


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if HEARD.listening and event.startswith(FORBIDDEN):
        HEARD.escapes.append(f"{event} {arguments!r}"[:200])


# --- readers ---------------------------------------------------------------------------------------------


def warm() -> None:
    """Whatever is imported when first used is imported before anything listens."""
    for text in (
        "matches(op, 'a')",
        "upper_ratio(op) > 0",
        "words(op) > 1",
        "has_word(op, 'a')",
        "digit_sum(a) > 1",
    ):
        evaluate(parse_predicate(text, schema_of(COLUMNS)), COLUMNS)


def _predicate(text: str) -> None:
    found = parse_predicate(text, schema_of(COLUMNS))
    assert parse_predicate(str(found), schema_of(COLUMNS)) == found, "it does not read back as it prints"
    assert evaluate(found, COLUMNS).shape == (7,)


def _rule(text: str) -> None:
    found = Rule.parse(text)
    assert Rule.parse(str(found)) == found, "it does not read back as it prints"


def _certificate(text: str) -> None:
    """The text as it is; then its content with whatever hash it has, as a forger would hash it again."""
    try:
        found = Certificate.from_json(text)
    except MechaRuleError:
        document = parse_json(text)
        if not isinstance(document, dict) or "certificate" not in document:
            raise
        found = decode(Certificate, document["certificate"])
    inconsistencies(found)


def _config(text: str) -> None:
    given = parse_json(text)
    if isinstance(given, dict) and all(isinstance(name, str) for name in given):
        made = make_config(**given)
        assert make_config(**made.model_dump(mode="json")) == made, "it does not read back as it prints"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One kind of text and who reads it."""

    name: str
    texts: SearchStrategy[list[str]]
    """Texts that one draw gives."""
    read: Callable[[str], object]


def targets(folder: Path, certificate: Certificate) -> tuple[Target, ...]:
    """All kinds."""
    plain = json.loads(certificate.to_json())
    plain["certificate"]["rows"] = plain["certificate"]["rows"][:2]
    suggestion = {
        "predicates": ["a > b"],
        "hypothesis": {"statement": "s", "condition": "a > 1", "refuted_by": "r"},
    }
    config = make_config(task="arithmetic", model="arith-tiny").model_dump(mode="json")
    table = folder / "table.csv"
    lines = folder / "table.jsonl"

    def read_file(path: Path) -> Callable[[str], None]:
        def read(text: str) -> None:
            HEARD.listening = False  # The file itself may be opened, by the test and by the reader.
            path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
            read_table(str(path), ("a",))

        return read

    return (
        Target(name="predicates", texts=predicates(), read=_predicate),
        Target(name="rules", texts=predicates(), read=_rule),
        Target(
            name="JSON of proposals",
            texts=json_near({"predicates": ["a > b", "b == 1"]}),
            read=lambda text: parsed_as(Proposals, text),
        ),
        Target(
            name="JSON of refinements",
            texts=json_near(suggestion),
            read=lambda text: parsed_as(Refinement, text),
        ),
        Target(name="certificates", texts=json_near(plain), read=_certificate),
        Target(name="config", texts=json_near(config), read=_config),
        Target(name="task tables, CSV", texts=csv_tables(), read=read_file(table)),
        Target(name="task tables, JSONL", texts=jsonl_tables(), read=read_file(lines)),
    )


# --- the row ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Tally:
    """What came of one kind's texts."""

    cases: int = 0
    read: int = 0
    slowest: float = 0.0
    problems: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)


def fuzzing(setting: Setting) -> Result:
    """Every kind of text, so many cases each."""
    from mecharule_ops.store.run_store import RunStore

    from .finished import finished_file

    with RunStore.open(finished_file(setting.folder), read_only=True) as store:
        certificate = store.certificates()[0]
    warm()
    sys.addaudithook(_hook)
    tallies: dict[str, Tally] = {}
    for target in targets(setting.folder, certificate):
        tallies[target.name] = tried(target, setting.count(FULL, least=LEAST), setting.seed)
        tally = tallies[target.name]
        setting.tell(
            f"fuzzing: {target.name} {tally.cases:,}, {tally.read:,} read, {len(tally.problems)} wrong"
        )
    return Result(
        tried=f"{sum(t.cases for t in tallies.values()):,} texts made by hypothesis: "
        + ", ".join(f"{name} {tally.cases:,}" for name, tally in tallies.items()),
        cases=sum(t.cases for t in tallies.values()),
        figures=(
            Figure(what="read as valid", value=_listed({n: f"{t.read:,}" for n, t in tallies.items()})),
            Figure(
                what="slowest case in seconds of processor time",
                value=_listed({n: f"{t.slowest:.2f}" for n, t in tallies.items()}),
            ),
            Figure(what="escapes heard by the audit hook", value=str(len(HEARD.escapes))),
        ),
        problems=(
            *(problem for name, tally in tallies.items() for problem in _said(name, tally)),
            *dict.fromkeys(HEARD.escapes),
        ),
    )


def _said(name: str, tally: Tally) -> list[str]:
    return [
        f"{name}: {what}, {times} times, first {tally.first[what]}" for what, times in tally.problems.items()
    ]


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def tried(target: Target, cases: int, seed: int) -> Tally:
    """A kind's texts read one after another, until there were so many."""
    tally = Tally()

    @seeded(seed)
    @settings(
        max_examples=cases,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(target.texts)
    def read(texts: list[str]) -> None:
        for text in texts[: cases - tally.cases]:
            _once(target, text, tally)
        if tally.cases >= cases:
            raise _Enough

    with suppress(_Enough):
        read()
    return tally


class _Enough(BaseException):
    """So many cases were tried."""


def _no_json(text: str) -> bool:
    """Whether a text is no JSON at all, which its reader says by a `ValueError`."""
    try:
        parse_json(text)
    except ValueError:
        return True
    return False


def _once(target: Target, text: str, tally: Tally) -> None:
    # What hypothesis has made in the meantime is not the reader's to clear away: half a second of it at times.
    gc.disable()
    began = time.process_time()
    what = ""
    try:
        HEARD.listening = True
        target.read(text)
        tally.read += 1
    except MechaRuleError as error:
        if len(str(error).splitlines()) != 1:
            what = "a refusal of several lines"
    except ValueError as error:
        if not _no_json(text):
            what = f"ValueError: {error}"[:80]
    except Exception as error:
        what = f"{type(error).__name__}: {error}"[:80]
    finally:
        HEARD.listening = False
    seconds = time.process_time() - began
    gc.enable()
    tally.cases += 1
    tally.slowest = max(tally.slowest, seconds)
    if seconds > SLOW:
        what = what or "over a second"
    if what:
        tally.problems[what] += 1
        tally.first.setdefault(what, repr(text)[:160])
