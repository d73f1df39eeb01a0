"""Each sentence of a fact is made once, in `facts/`, and read whole everywhere else."""

import re
from pathlib import Path

from mecharule_ops.facts.fact import SENTENCES

ROOT = Path(__file__).parents[2]
FACTS = ROOT / "mecharule_ops" / "facts"
CUT = re.compile(
    r"\.(?:sentence|said|cited)(?:\[|\.(?!r(?:emovesuffix|strip)\([\"']\.[\"']\))"
    r"(?:split|r?partition|removesuffix|removeprefix|replace|startswith|endswith|strip|[lr]strip|find|index)\()"
    r"|re\.\w+\([^)]*\.(?:sentence|said|cited)\b"
)
"""A fact's text that is cut, searched or patched; its full stop may go."""


def _files() -> list[Path]:
    rooms = (ROOT / name for name in ("agent", "tools", "tui", "mecharule_ops"))
    return [file for room in rooms for file in sorted(room.rglob("*.py")) if FACTS not in file.parents]


def test_nothing_outside_facts_cuts_or_parses_a_sentence() -> None:
    assert [
        f"{file.relative_to(ROOT)}:{number}"
        for file in _files()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if CUT.search(line)
    ] == []


def test_a_sentence_that_is_cut_would_be_seen() -> None:
    for line in ("fact.sentence.split('; ')[1]", "one.said[:40]", "re.search('p = ', fact.sentence)"):
        assert CUT.search(line), line
    assert not CUT.search("one.sentence.removesuffix('.')")


def test_each_sentence_of_the_table_is_asked_for() -> None:
    """By its name, or by the beginning of it that ends in a value."""
    code = "\n".join(file.read_text(encoding="utf-8") for file in [*_files(), *FACTS.glob("*.py")])
    names = {name: re.escape(name.rpartition(".")[0]) for name in SENTENCES}
    assert [
        one for one, begin in names.items() if not re.search(f'"{re.escape(one)}"|"{begin}["{{.]', code)
    ] == []
