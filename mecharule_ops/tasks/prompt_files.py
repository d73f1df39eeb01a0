"""What a command says about prompts, as settings of a task: the few-shot lines of a file, a typed template."""

from __future__ import annotations

from collections.abc import Iterator

from mecharule_ops.errors import UsageError
from mecharule_ops.plain_text import typed_path


def prompt_settings(few_shot: str | None, template: str | None) -> Iterator[tuple[str, str]]:
    """The settings `task.prefix` and `task.template` that were said. Raises `UsageError` for a file that is none."""
    if few_shot is not None:
        yield "task.prefix", few_shot_lines(few_shot)
    if template is not None:
        yield "task.template", template.replace("\\n", "\n").replace("\\t", "\t")


def few_shot_lines(file: str) -> str:
    """The text of the file, with a newline at its end. Raises `UsageError`."""
    try:
        text = typed_path(file).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise UsageError(f"expected a text file of few-shot lines, got {file!r}: {error}") from error
    if not text.strip():
        raise UsageError(f"expected few-shot lines in {file!r}, it is empty")
    return text if text.endswith("\n") else text + "\n"
