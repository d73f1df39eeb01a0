"""Texts from outside, invented by Hypothesis: each is read, or refused by one line, and nothing of it runs."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forgeries import leaves, put
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mecharule_ops import codec, errors
from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.certificates.verification import inconsistencies
from mecharule_ops.config import make_config
from mecharule_ops.predicates import functions, language
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.tasks.from_file import read_table

Texts = st.SearchStrategy[str]
RUNS_CODE = ("exec", "import", "open", "os.", "subprocess.", "socket.", "shutil.", "ctypes.", "pty.")
"""Audit events that no text may cause; `compile` is Python's parser, which the predicate language uses."""
COLUMNS = {
    "a": np.array([0, 1, 7, -3, 12_345, 2**52, -(2**53)]),
    "x": np.array([0.5, -1.5, float("inf"), float("nan"), 0.0, 1e300, 2.0]),
    "op": np.array(["+", "-", "*", "", "é", "a b", "\n"]),
    "ok": np.array([True, False, True, False, True, False, True]),
}
WORDS = ["a", "x", "op", "ok", "0", "1", "-3", "1e9", "10**12", "0.5", "'+'", "''", "True", "None"]
HOSTILE = [
    "__import__('os').system('touch /tmp/x')",
    "().__class__.__bases__[0].__subclasses__()",
    *("lambda: 1", "[c for c in 'ab']", "f'{a}'", "(a := 1)", "open('/etc/passwd')", "a.__class__", "a[0]"),
    *("9**9**9**9", "'x' * 10**10", "matches(op, '(a+)+$')", "matches(op, '(((a{1,100}){1,100}){1,100})')"),
    *("a if ok else x", "await a", "*a", "...", "\x00", "\ud800", "a\\\n", "(" * 90, "-" * 400 + "a"),
    *("not " * 100 + "ok", "1e999 < a", "a < " * 60 + "a", "١ < a", "ａ > 1"),
]
SIGNS = ["+", "-", "*", "/", "//", "%", "<", "<=", "==", "!=", "and", "or", "in", "is", "**"]
CALLS = [*functions.FUNCTIONS, "holds", "not", "eval", "exec", "getattr", "len"]
EXPRESSIONS: Texts = st.recursive(
    st.sampled_from([*WORDS * 3, *HOSTILE]) | st.text(max_size=4),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(SIGNS), inner),
        st.builds("{}({})".format, st.sampled_from(CALLS), st.lists(inner, max_size=3).map(", ".join)),
        st.builds("{} in ({},)".format, inner, st.lists(inner, max_size=4).map(", ".join)),
    ),
    max_leaves=8,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)
CELLS = st.sampled_from(["a", '"', "1", "-2.5", "nan", "", " ", "\x00", "\ufeff", "'", "1e999", "٣"])


def near(document: Any) -> Texts:
    """JSON near a valid one: another value at one place, then perhaps a character changed."""
    places = st.sampled_from([place for place in leaves(document) if place])
    changed = st.builds(lambda place, value: json.dumps(put(document, place, value)), places, VALUES)
    ends = st.sampled_from(['"', "}", "[", "[" * 3000, ",", ""])
    cut = st.builds(
        lambda text, at, end: text[:at] + end + text[at + 1 :], changed, st.integers(0, 5000), ends
    )
    return changed | cut


def predicate(text: str) -> None:
    found = language.parse_predicate(text, language.schema_of(COLUMNS))
    assert language.parse_predicate(str(found), language.schema_of(COLUMNS)) == found
    assert language.evaluate(found, COLUMNS).shape == (7,)


def rule(text: str) -> None:
    found = Rule.parse(text)
    assert Rule.parse(str(found)) == found


def certificate(text: str) -> None:
    """The text as it is; else its content with whatever hash it has, as a forger would hash it again."""
    try:
        found = Certificate.from_json(text)
    except errors.MechaRuleError:
        document = codec.parse_json(text)
        if not isinstance(document, dict) or "certificate" not in document:
            raise
        found = codec.decode(Certificate, document["certificate"])
    inconsistencies(found)


def config(text: str) -> None:
    given = codec.parse_json(text)
    if isinstance(given, dict):
        made = make_config(**given)
        assert make_config(**made.model_dump(mode="json")) == made


READERS: Mapping[Callable[[str], None], Texts] = {
    predicate: EXPRESSIONS,
    rule: EXPRESSIONS,
    config: near(make_config(task="arithmetic", model="arith-tiny").model_dump(mode="json")),
}


class Heard:
    """What an audit hook hears while `listening`; a hook cannot be taken away."""

    def __init__(self) -> None:
        self.listening, self.events = False, list[str]()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.listening and event.startswith(RUNS_CODE):
            self.events.append(f"{event} {arguments!r}"[:200])


@pytest.fixture(scope="module")
def heard() -> Heard:
    return Heard()


def check(read: Callable[[str], None], text: str, heard: Heard) -> None:
    """Read, or refused by one line; what is no JSON may be a `ValueError`."""
    refusal = ""
    heard.listening = True
    try:
        read(text)
    except errors.MechaRuleError as error:
        refusal = str(error)
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011
            codec.parse_json(text)
    finally:
        heard.listening = False
    assert len(refusal.splitlines()) <= 1
    assert heard.events == []


def tried(texts: Texts, read: Callable[[str], None], heard: Heard) -> None:
    each = given(texts)(lambda text: check(read, text, heard))
    settings(max_examples=200, suppress_health_check=list(HealthCheck))(each)()


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_a_text_is_read_or_refused_by_one_line(read: Callable[[str], None], heard: Heard) -> None:
    for text in ("matches(op, 'a') or upper_ratio(op) > 0", "has_word(op, 'a') or digit_sum(a) > words(op)"):
        predicate(text)  # What is imported when it is first used is imported before anybody listens.
    tried(READERS[read], read, heard)


def test_a_certificate_is_read_or_refused_by_one_line(quick_run: Path, heard: Heard) -> None:
    with RunStore.open(quick_run, read_only=True) as store:
        document = json.loads(store.certificates()[0].to_json())
    document["certificate"]["rows"] = document["certificate"]["rows"][:2]
    tried(near(document), certificate, heard)


@pytest.mark.parametrize("name", ["table.csv", "table.jsonl"])
def test_a_table_is_read_or_refused_by_one_line(tmp_path: Path, heard: Heard, name: str) -> None:
    """The file itself may be opened, so that nobody listens."""
    rows = st.dictionaries(st.sampled_from(["a", "b", ""]), VALUES, max_size=3).map(json.dumps)
    lines = {
        "table.csv": st.sampled_from(["a", "a,b", "a,a"])
        | st.lists(CELLS | st.text(max_size=5)).map(",".join),
        "table.jsonl": rows | st.just("[" * 3000) | VALUES.map(json.dumps),
    }

    def read(text: str) -> None:
        heard.listening = False
        (tmp_path / name).write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
        read_table(str(tmp_path / name), ("a",))

    tried(st.lists(lines[name], min_size=1, max_size=5).map("\n".join), read, heard)


@pytest.mark.parametrize("text", ["__import__('os')", "open('/dev/null')", "1/0", "raise"])
def test_a_reader_that_runs_a_text_is_found(heard: Heard, text: str) -> None:
    """What runs it is heard; what it raises is no refusal."""
    with pytest.raises((AssertionError, ZeroDivisionError, SyntaxError)):
        check(lambda each: eval(each), text, heard)
    heard.events.clear()
