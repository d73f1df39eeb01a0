"""Every `mecharule …` that code, reports, prompts or documents show is a command that the real parser takes."""

import ast
import html
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from findings_fixture import FINDINGS, POSITIVE, anchored

from agent.verbs.command_line import parser, told
from agent.verbs.options import RunOptions
from mecharule_ops.errors import UsageError
from mecharule_ops.pages.content import report_page, report_text
from mecharule_ops.pages.screen import screen
from tools.registry import typed

ROOT = Path(__file__).parent.parent.parent
ROOMS = ("agent", "tools", "tui", "mecharule_ops")
PYTHON = sorted([ROOT / "app.py", *(file for room in ROOMS for file in (ROOT / room).rglob("*.py"))])
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "prompts").glob("*.md")]
PROSE = [*sorted(PAGES), ROOT / "Makefile"]
HOLE = "\x00"
"""Stands where a text is filled in."""
FORMATS = {"mecharule certificates 1"}
"""Names of file formats, which look like commands and are none."""
QUOTED = re.compile(r"\\?`(?:\$ )?mecharule ([a-z][^`\\]*)\\?`")
LINE = re.compile(
    r"^\s*(?:(?:\$|Command:|Ask:|All:|\x00) *)?(?:\S*/)?mecharule ([a-z].*?)(?: \(\d+ runs.*)?$", re.MULTILINE
)
LOOSE = re.compile(r"(?<![.\w])mecharule [a-z]+[^`\n]*")
COMMAND = parser()


def shown(text: str) -> Iterator[str]:
    """The arguments of each command in a text: in backticks, or a line of its own; ends of lines may be escaped."""
    text = re.sub(r"\\\n\s*", " ", text)
    yield from QUOTED.findall(text)
    yield from LINE.findall(QUOTED.sub("", text))


def loose(text: str) -> list[str]:
    """What looks like a command and stands neither in backticks nor on a line of its own."""
    return LOOSE.findall(LINE.sub("", QUOTED.sub("", re.sub(r"\\\n\s*", " ", text))))


def words(command: str) -> list[str]:
    """The command as a shell passes it, with plausible values for what it leaves open."""
    filled = command.replace("run …", "run arithmetic -m arith-tiny").replace(" …", "")
    given = shlex.split(re.sub(r"[\[\]]", "", filled).replace(HOLE, "1"), comments=True)
    ends = [place for place, word in enumerate(given) if word in ("|", ">", "&&", ";")]
    return ["1" if word == "N" else word for word in given[: min(ends, default=len(given))]]


def refused(command: str) -> str | None:
    """Why the real parser, or `run`, does not take it; None when they do. A verb alone names it only."""
    try:
        options = COMMAND.parse_args(words(command))
        if options.verb == "run" and " " in command:
            assert typed("run", RunOptions, told(options)[1]).chosen
    except SystemExit as end:
        return None if end.code == 0 else "it exits"
    except UsageError as error:
        return None if " " not in command and ", got none" in str(error) else str(error)
    return None


def constants(source: str) -> Iterator[str]:
    """Every text in a module, docstrings too, with a hole where a value is filled in."""
    inside = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            inside |= set(map(id, node.values))
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield re.sub(r"\{\w*\}", HOLE, node.value)


def wrong(texts: Iterator[str]) -> dict[str, str]:
    """Each command that is none, with the reason."""
    return {command: why for text in texts for command in shown(text) if (why := refused(command))}


@pytest.mark.parametrize("file", PYTHON, ids=lambda file: str(file.relative_to(ROOT)))
def test_commands_in_code_are_commands(file: Path) -> None:
    """Errors, answers, help, docstrings; one that is not set apart from its sentence cannot be read off it."""
    texts = [text for text in constants(file.read_text(encoding="utf-8")) if text not in FORMATS]
    assert wrong(iter(texts)) == {}
    assert [each for text in texts for each in loose(text)] == []


@pytest.mark.parametrize("file", PROSE, ids=lambda file: file.name)
def test_commands_in_documents_are_commands(file: Path) -> None:
    assert wrong(iter([file.read_text(encoding="utf-8")])) == {}


def test_commands_in_a_rendered_report_are_commands() -> None:
    """With a rule too long to print and units left out, where a report names the command that shows the rest."""
    rule = " and ".join(f"b >= {number}" for number in range(60))
    one = POSITIVE.agonists[3]
    weak = [replace(one, neuron=replace(one.neuron, channel=channel)) for channel in range(9, 60)]
    long = anchored("a20.h8", rule, 0.5, 84, 40)
    outcome = replace(POSITIVE, agonists=(*POSITIVE.agonists, *weak), anchored=(long,))
    findings = replace(FINDINGS, searches=(outcome,))
    assert set(LINE.findall(screen(findings))) >= {"show 0c1f --full"}
    assert wrong(iter([screen(findings)])) == {}
    page = re.sub(r"</text>\s*<text[^>]*>", " ", report_page(findings))
    for text in (report_text(findings), html.unescape(page)):
        flat = " ".join(text.split())
        assert QUOTED.findall(flat)
        assert wrong(iter([flat])) == {}


@pytest.mark.parametrize(
    "text",
    [
        "`mecharule analyse`",
        "`mecharule run … --full`",
        "see `mecharule why RUN m4.1 --long`",
        "$ mecharule analyse arithmetic",
        "`mecharule why-not {run} {neuron} --exactly`",
        "mecharule run arithmetic --yes",
    ],
)
def test_what_is_no_command_would_be_seen(text: str) -> None:
    """The check can fail: an option that a verb has not, a verb that is none, a value left out."""
    assert wrong(iter([text]))


def test_a_command_in_the_middle_of_a_sentence_would_be_seen() -> None:
    assert loose("then try mecharule why-not RUN and see") != []
