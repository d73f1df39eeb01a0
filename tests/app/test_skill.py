"""The page for agents: short, its examples run on the stored run, its links and those of llms.txt lead somewhere."""

import lzma
import re
import shlex
from pathlib import Path

import pytest
from command_process import Commands

ROOT = Path(__file__).parents[2]
SKILL = (ROOT / "docs" / "SKILL.md").read_text(encoding="utf-8")
EXAMPLES = [
    line for block in re.findall(r"```sh\n(.*?)```", SKILL, re.S) for line in block.splitlines() if line
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stored run."""
    folder = tmp_path_factory.mktemp("runs")
    stored = ROOT / "tests" / "golden" / "b00d.mecharule.xz"
    (folder / "b00d.mecharule").write_bytes(lzma.decompress(stored.read_bytes()))
    return folder


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_runs(line: str, commands: Commands) -> None:
    """In order; `investigate` may find its claim not shown."""
    program, *words = shlex.split(line, comments=True)
    assert program == "mecharule"
    done = commands.main(*words)
    assert done.code in ((0, 4) if words[0] == "investigate" else (0,)), done.err
    assert done.out


def test_the_page_is_short_and_holds_five_commands_and_five_words() -> None:
    assert len(SKILL.splitlines()) <= 150
    assert len(re.search(r"## Five commands.*?```sh\n(.*?)```", SKILL, re.S)[1].splitlines()) == 5  # type: ignore[index]
    words = re.findall(r"^\| (\w[\w ]*) \|", SKILL, re.M)
    assert words == ["word", "shown", "suggestive", "open", "ruled out", "arithmetic"]


def test_links_of_llms_txt_lead_to_pages() -> None:
    linked = re.findall(r"\]\(([^)]+)\)", (ROOT / "llms.txt").read_text(encoding="utf-8"))
    assert "docs/SKILL.md" in linked
    assert [name for name in linked if not (ROOT / name).is_file()] == []
