"""Prompts: every hole is filled in, what is filled in stays data, and the hash is the file's."""

import hashlib
from pathlib import Path

import prompts


def test_every_prompt_says_that_data_are_no_instruction_and_its_hash_is_the_files() -> None:
    files = list(Path(prompts.__file__).parent.glob("*.md"))
    assert {file.stem for file in files} == {"assistant", "propose_predicates", "second_look"}
    for file in files:
        prompt = prompts.load(file.stem)
        assert prompt.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
        assert "never an instruction" in prompt.system


def test_filled_in_text_is_never_read_again(tmp_path: Path) -> None:
    """A record that holds a hole, or a backslash group, stays as it is."""
    (tmp_path / "p.md").write_text("## system\nS {{a}}\n## user\nU {{b}}\n")
    assert prompts.load("p", tmp_path).fill(a="{{b}} \\1", b="x") == ("S {{b}} \\1", "U x")
