"""Texts from outside, invented by hypothesis: each is read or refused by one line, at once, and nothing of it runs.

An audit hook hears every import, file, process, socket and execution of code while a text is read.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from agent.llm.reading import parsed_as
from agent.proposing.nodes import Proposals
from agent.refining.state import Refinement
from benchmarks.faults.result import Figure, Result, Setting
from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.certificates.verification import inconsistencies
from mecharule_ops.codec import decode, parse_json
from mecharule_ops.config import RunConfig, make_config
from mecharule_ops.errors import MechaRuleError
from mecharule_ops.predicates.functions import FUNCTIONS
from mecharule_ops.predicates.language import evaluate, parse_predicate, schema_of
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.tasks.table import read_table

FULL = 20_000
"""Cases a kind; `--scale 5` tries the 100,000 that take half an hour."""
SLOW = 1.0
"""Seconds of this process after which a case counts as hung."""
BATCH = 25
"""Cases of one example of hypothesis."""
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


# --- texts -----------------------------------------------------------------------------------------------

_WORDS = [
    "a",
    "b",
    "x",
    "op",
    "ok",
    "0",
    "1",
    "7",
    "-3",
    "1e9",
    "10**12",
    "0.5",
    "'+'",
    "''",
    "'a'",
    "True",
    "None",
]
_HOSTILE = [
    "__import__('os').system('touch /tmp/x')",
    "().__class__.__bases__[0].__subclasses__()",
    "lambda: 1",
    "[c for c in 'ab']",
    "f'{a}'",
    "(a := 1)",
    "open('/etc/passwd')",
    "a.__class__",
    "a[0]",
    "9**9**9**9",
    "'x' * 10**10",
    "matches(op, '(a+)+$')",
    "matches(op, '(((((((((a{1,100}){1,100}){1,100})')",
    "a if ok else b",
    "await a",
    "*a",
    "...",
    "\x00",
    "\ud800",
    "a\\\n",
    "(" * 90,
    "-" * 400 + "a",
    "not " * 100 + "ok",
    "1e999 < a",
    "a < " * 60 + "a",
    "١ < a",
    "ａ > 1",
]
_OPERATORS = [
    " + ",
    " - ",
    " * ",
    " / ",
    " // ",
    " % ",
    " < ",
    " <= ",
    " == ",
    " != ",
    " and ",
    " or ",
    " in ",
    " is ",
    " ** ",
]
_CALLS = [*FUNCTIONS, "eval", "exec", "getattr", "print", "len"]
_ATOM = st.sampled_from([*_WORDS * 3, *_HOSTILE])
EXPRESSIONS = st.recursive(
    _ATOM,
    lambda inner: st.one_of(
        st.builds(lambda left, op, right: f"({left}{op}{right})", inner, st.sampled_from(_OPERATORS), inner),
        st.builds(
            lambda name, args: f"{name}({', '.join(args)})",
            st.sampled_from(_CALLS),
            st.lists(inner, max_size=3),
        ),
        st.builds(lambda one: f"not ({one})", inner),
        st.builds(
            lambda one, several: f"{one} in ({', '.join(several)},)", inner, st.lists(inner, max_size=4)
        ),
    ),
    max_leaves=8,
)
_NUMBER = st.recursive(
    st.sampled_from(
        ["a", "b", "a", "b", "x", "0", "1", "7", "-3", "10", "0.5", "10**12", "1000000000000", "length(op)"]
    ),
    lambda inner: st.one_of(
        st.builds(
            lambda left, op, right: f"({left} {op} {right})",
            inner,
            st.sampled_from(["+", "-", "*", "/", "//", "%"]),
            inner,
        ),
        st.builds(
            lambda name, one: f"{name}({one})", st.sampled_from(["abs", "n_digits", "digit_sum"]), inner
        ),
        st.builds(
            lambda name, one, two: f"{name}({one}, {two})",
            st.sampled_from(["min", "max", "gcd"]),
            inner,
            inner,
        ),
        st.builds(lambda one, place: f"digit({one}, {place})", inner, st.integers(-1, 17)),
    ),
    max_leaves=5,
)
_TEXT = st.sampled_from(
    ["''", "'a'", "'+'", "'é'", "'.'", "'(a+)+$'", "'['", "'(?i)A'", "'\\\\d'", "'a{1000}'", "'\\n'"]
)
_CONDITION = st.recursive(
    st.one_of(
        st.builds(
            lambda one, op, two: f"{one} {op} {two}",
            _NUMBER,
            st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
            _NUMBER,
        ),
        st.builds(
            lambda one, op, two, last: f"{one} {op} {two} < {last}",
            _NUMBER,
            st.sampled_from(["<", "<="]),
            _NUMBER,
            _NUMBER,
        ),
        st.builds(
            lambda one, places: f"{one} in ({', '.join(map(str, places))},)",
            _NUMBER,
            st.lists(st.integers(), min_size=1, max_size=4),
        ),
        st.builds(
            lambda name, text: f"{name}(op, {text})",
            st.sampled_from(["contains", "startswith", "endswith", "matches", "has_word"]),
            _TEXT,
        ),
        st.builds(
            lambda name, one, two: f"{name}({one}, {two})",
            st.sampled_from(["carry", "borrow", "divisible", "divides"]),
            _NUMBER,
            _NUMBER,
        ),
        st.just("ok"),
    ),
    lambda inner: st.one_of(
        st.builds(lambda one, op, two: f"({one} {op} {two})", inner, st.sampled_from(["and", "or"]), inner),
        st.builds(lambda one: f"not ({one})", inner),
        st.builds(lambda one: f"holds({one})", inner),
    ),
    max_leaves=4,
)
PREDICATES = st.one_of(_CONDITION, _CONDITION, EXPRESSIONS)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["", "nan", "auto", "../..", "a\nb", "1e400", -1, 10**30]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=5,
)


def _mutated(document: Any) -> st.SearchStrategy[str]:
    """JSON texts near a valid one: places replaced, removed or added; some with characters changed."""
    from forgeries import leaves, put

    places = [path for path in leaves(document) if path]

    def changed(edits: list[tuple[int, Any]], cut: tuple[int, str] | None) -> str:
        made = document
        for place, value in edits:
            try:
                made = put(made, places[place % len(places)], value)
            except (KeyError, IndexError, TypeError):
                continue
        text = json.dumps(made)
        if cut is not None:
            at = cut[0] % (len(text) + 1)
            text = text[:at] + cut[1] + text[at + 1 :]
        return text

    edit = st.tuples(st.integers(0, 10_000), VALUES)
    cut = st.one_of(
        st.none(), st.tuples(st.integers(0, 100_000), st.sampled_from(['"', "}", "[", "[" * 3000, ",", ""]))
    )
    return st.builds(changed, st.lists(edit, min_size=1, max_size=3), cut)


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
    texts: st.SearchStrategy[Any]
    read: Callable[[Any], object]


def targets(folder: Path, certificate: Certificate) -> tuple[Target, ...]:
    """All kinds."""
    plain = json.loads(certificate.to_json())
    plain["certificate"]["rows"] = plain["certificate"]["rows"][:2]
    suggestion = {
        "predicates": ["a > b"],
        "hypothesis": {"statement": "s", "condition": "a > 1", "refuted_by": "r"},
    }
    config = json.loads(RunConfig(task="arithmetic", model="arith-tiny").model_dump_json())
    table = folder / "table.csv"
    lines = folder / "table.jsonl"

    def read_file(path: Path) -> Callable[[str], None]:
        def read(text: str) -> None:
            HEARD.listening = False  # The file itself may be opened, by the test and by the reader.
            path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
            read_table(str(path), ("a",))

        return read

    cell = st.one_of(
        st.sampled_from(["a", "b", '"', "1", "-2.5", "nan", "", " ", "\x00", "\ufeff", "'", "1e999", "٣"]),
        st.text(max_size=5),
    )
    row = st.lists(cell, max_size=4).map(",".join)
    csv = st.builds(
        lambda head, rows: "\n".join([head, *rows]),
        st.sampled_from(["a", "a,b", "a,a", "b", ""]),
        st.lists(row, max_size=4),
    )
    jsonl = st.lists(
        st.one_of(
            st.dictionaries(st.sampled_from(["a", "b", ""]), SCALARS, max_size=3).map(json.dumps),
            st.just("[" * 3000),
            VALUES.map(json.dumps),
        ),
        max_size=4,
    ).map("\n".join)
    return (
        Target(name="predicates", texts=PREDICATES, read=_predicate),
        Target(name="rules", texts=PREDICATES, read=_rule),
        Target(
            name="JSON of proposals",
            texts=_mutated({"predicates": ["a > b", "b == 1"]}),
            read=lambda text: parsed_as(Proposals, text),
        ),
        Target(
            name="JSON of refinements",
            texts=_mutated(suggestion),
            read=lambda text: parsed_as(Refinement, text),
        ),
        Target(name="certificates", texts=_mutated(plain), read=_certificate),
        Target(name="config", texts=_mutated(config), read=_config),
        Target(name="task tables, CSV", texts=csv, read=read_file(table)),
        Target(name="task tables, JSONL", texts=jsonl, read=read_file(lines)),
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
    from benchmarks.faults.finished import finished_file
    from mecharule_ops.store.run_store import RunStore

    with RunStore.open(finished_file(setting.folder), read_only=True) as store:
        certificate = store.certificates()[0]
    warm()
    sys.addaudithook(_hook)
    tallies: dict[str, Tally] = {}
    for target in targets(setting.folder, certificate):
        tallies[target.name] = tried(target, setting.count(FULL, least=BATCH), setting.seed)
        tally = tallies[target.name]
        setting.tell(
            f"fuzzing: {target.name} {tally.cases:,}, {tally.read:,} read, {len(tally.problems)} kinds of problem"
        )
    return Result(
        tried=f"{sum(t.cases for t in tallies.values()):,} texts made by hypothesis: "
        + ", ".join(f"{name} {tally.cases:,}" for name, tally in tallies.items()),
        cases=sum(t.cases for t in tallies.values()),
        figures=(
            Figure(
                what="read as valid, of all", value=_listed({n: f"{t.read:,}" for n, t in tallies.items()})
            ),
            Figure(
                what="slowest case, seconds of processor",
                value=_listed({n: f"{t.slowest:.2f}" for n, t in tallies.items()}),
            ),
            Figure(what="escapes heard by the audit hook", value=str(len(HEARD.escapes))),
        ),
        problems=(
            *(
                f"{name}: {what}, {times} times, first {tally.first[what]}"
                for name, tally in tallies.items()
                for what, times in tally.problems.items()
            ),
            *dict.fromkeys(HEARD.escapes),
        ),
    )


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def tried(target: Target, cases: int, seed: int) -> Tally:
    """A kind's texts read one after another."""
    tally = Tally()

    @seeded(seed)
    @settings(
        max_examples=-(-cases // BATCH),
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(target.texts, min_size=BATCH, max_size=BATCH))
    def read(texts: list[Any]) -> None:
        for text in texts:
            _once(target, text, tally)

    read()
    return tally


def _no_json(text: str) -> bool:
    """Whether a text is no JSON at all, which its reader says by a `ValueError`."""
    try:
        parse_json(text)
    except ValueError:
        return True
    return False


def _once(target: Target, text: Any, tally: Tally) -> None:
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
    tally.cases += 1
    tally.slowest = max(tally.slowest, seconds)
    if seconds > SLOW:
        what = what or "over a second"
    if what:
        tally.problems[what] += 1
        tally.first.setdefault(what, repr(text)[:160])
