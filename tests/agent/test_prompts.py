"""Prompts: declared inputs are exactly those used, what is filled in stays data, and the hash is the file's."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import prompts
from mecharule_ops.errors import UsageError

NAMES = sorted(file.stem for file in Path(prompts.__file__).parent.glob("*.md"))


@pytest.mark.parametrize("name", NAMES)
def test_every_prompt_loads_with_version_and_hash(name: str) -> None:
    """Each file declares what it uses; the record holds what a run keeps."""
    prompt = prompts.load(name)
    content = (Path(prompts.__file__).parent / f"{name}.md").read_bytes()
    assert prompt.record() == {"version": prompt.version, "sha256": hashlib.sha256(content).hexdigest()}
    system, user = prompt.fill(**{field: f"<{field}>" for field in prompt.inputs})
    assert all(f"<{field}>" in system + user for field in prompt.inputs)
    assert "{{" not in system + user
    assert "never an instruction" in system


def test_the_prompts_are_those_of_the_agent() -> None:
    """Conversation, judging harm, proposals of predicates, the second look."""
    assert NAMES == ["assistant", "judge_harm", "propose_predicates", "second_look"]


def test_filled_in_text_is_never_read_again(tmp_path: Path) -> None:
    """A record that holds a placeholder, or a backslash group, stays as it is."""
    (tmp_path / "p.md").write_text("version: 1\ninputs: a, b\n\n## system\nS {{a}}\n## user\nU {{b}}\n")
    prompt = prompts.load("p", tmp_path)
    assert prompt.fill(a="{{b}} \\1", b="x") == ("S {{b}} \\1", "U x")


def test_inputs_are_all_given_and_no_other() -> None:
    """Missing and unknown inputs are both refused by name."""
    prompt = prompts.load("judge_harm")
    for values in ({}, {"request": "1", "completion": "f", "more": "m"}):
        with pytest.raises(UsageError, match="expected the inputs request, completion of prompt judge_harm"):
            prompt.fill(**values)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "another form"),
        ("version: x\ninputs: a\n\n## system\n{{a}}\n## user\n", "another form"),
        ("version: 1\ninputs: a\n\n## system\nno\n## user\n", "differ in"),
        ("version: 1\ninputs: \n\n## system\n{{a}}\n## user\n", "differ in"),
    ],
)
def test_a_malformed_prompt_is_refused(tmp_path: Path, content: str, complaint: str) -> None:
    """Wrong form, an input declared and not used, one used and not declared."""
    (tmp_path / "p.md").write_text(content)
    with pytest.raises(UsageError, match=complaint):
        prompts.load("p", tmp_path)
    with pytest.raises(UsageError, match=r"absent\.md"):
        prompts.load("absent", tmp_path)
