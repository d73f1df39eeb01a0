"""What people read of one stored run: whole texts as they stood, no tag inside, no private word unexplained.

`MECHARULE_GOLDEN=write` keeps what is said today: read it as a newcomer would before it is committed.
"""

from __future__ import annotations

import lzma
import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from mecharule_ops.facts.answer_text import answer_text
from mecharule_ops.facts.fact import fact
from mecharule_ops.facts.glossary import GLOSSES, Term, explained, unexplained
from tools.registry import call

HERE = Path(__file__).parent
READ = HERE / "read"
TAG = re.compile(r"\[(?:c|run|h):")
MADE_NOW = re.compile(r"\b[0-9a-f]{12}\b")
"""A certificate's id, which another processor makes another."""
OF_UNIT = {"run": "RUN", "neuron": "m1.14"}
TEXTS: tuple[tuple[str, str, Mapping[str, object]], ...] = (
    ("why", "why", OF_UNIT),
    ("why_without_account", "why", {"run": "RUN", "neuron": "m1.99"}),
    ("why_without_certificate", "why", {"run": "RUN", "neuron": "m1.118"}),
    ("why_full", "why", {**OF_UNIT, "full": True}),
    ("show", "show", {"run": "RUN"}),
    ("explain", "explain", OF_UNIT),
    ("why_not", "why-not", {"run": "RUN", "neuron": "m0.0"}),
    ("compare", "compare", {"run": "RUN", "first": "RUN"}),
)
"""Of the stored run alone: no model is asked."""
ALSO: tuple[tuple[str, Mapping[str, object]], ...] = (
    *(
        ("show", {"run": "RUN", "table": table})
        for table in ("units", "rules", "certificates", "claims", "tree", "candidates", "slices")
    ),
    *((tool, {"run": "RUN"}) for tool in ("slices",)),
    ("show", {"run": "RUN", "full": True}),
    ("compare", {"run": "RUN", "first": "layer 1"}),
    ("anchor", OF_UNIT),
    ("why-not", OF_UNIT),
    ("candidates", {"run": "RUN"}),
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The stored run."""
    path = tmp_path / "b00d.mecharule"
    path.write_bytes(lzma.decompress((HERE / "b00d.mecharule.xz").read_bytes()))
    return path


def _text(run: Path, tool: str, given: Mapping[str, object]) -> str:
    return call(tool, {key: str(run) if value == "RUN" else value for key, value in given.items()}).text


@pytest.mark.parametrize(("name", "tool", "given"), TEXTS, ids=[name for name, _, _ in TEXTS])
def test_a_text_reads_as_it_was_read(name: str, tool: str, given: Mapping[str, object], run: Path) -> None:
    text = MADE_NOW.sub("ID", _text(run, tool, given)).rstrip("\n") + "\n"
    kept = READ / f"{name}.txt"
    if os.environ.get("MECHARULE_GOLDEN") == "write":
        READ.mkdir(exist_ok=True)
        kept.write_text(text, encoding="utf-8")
    assert text == kept.read_text(encoding="utf-8")


@pytest.mark.parametrize(("tool", "given"), [(tool, given) for _, tool, given in TEXTS] + list(ALSO), ids=str)
def test_no_text_holds_a_tag_or_a_private_word_without_its_meaning(
    tool: str, given: Mapping[str, object], run: Path
) -> None:
    text = _text(run, tool, given)
    assert not TAG.search(text)
    assert unexplained(text) == ()


def test_a_bare_word_and_a_tag_would_be_seen() -> None:
    """The check can fail; a meaning brings those of the words in it, over however many lines."""
    said = "m1.14 flips 8 of these 32 of D+ [c:1a2b]."
    assert TAG.search(said)
    assert unexplained(said) == ("D+, D-",)
    assert unexplained(f"{said}\n{explained(said)}") == ()
    assert "splitter rule: " in explained(said)


@pytest.mark.parametrize("term", GLOSSES, ids=[term.name for term in GLOSSES])
def test_a_word_has_one_meaning_whoever_asks(term: Term, run: Path) -> None:
    """What stands under a text is a part of what the section of words says."""
    assert (
        term.short
        in _text(run, "show", {"run": "RUN", "section": "words", "term": term.name}).splitlines()[0]
    )


def test_what_proves_a_text_stands_once_at_its_end() -> None:
    """Certificates first, each once; facts of one part follow each other after its name."""
    facts = [
        fact("Switch m1.14 off", "c:aa", "run:b00d"),
        fact("It flips 3", "c:aa", part="How sure"),
        fact("So do others", "c:bb", part="How sure"),
    ]
    assert answer_text(facts).splitlines() == [
        "Switch m1.14 off.",
        "How sure. It flips 3. So do others.",
        "Proof: `mecharule verify aa bb` · the rest: run b00d",
    ]
    assert answer_text(facts[:0]) == ""
    assert answer_text([fact("It is so", "run:b00d")]).endswith("\nSource: run b00d.")
