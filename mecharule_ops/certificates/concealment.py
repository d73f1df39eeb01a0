"""A certificate's examples as they may be shown: without their texts where the task conceals them.

The stored certificate keeps every token, since running it again needs them. What a person or a language model
is shown goes through here, and only `show_text` lifts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mecharule_ops.certificates.certificate import Certificate, Completion, ExampleRow

CONCEALED = "concealed"
"""The entry of a task's description that says so."""


def is_concealed(task: Mapping[str, object]) -> bool:
    """Whether a task's description asks for it."""
    return bool(task.get(CONCEALED, False))


def hidden(text: str) -> str:
    """What stands for a text: its length, and how to see it."""
    return f"[{len(text)} characters, --show-text shows them]"


def shown_rows(certificate: Certificate, show_text: bool) -> tuple[ExampleRow, ...]:
    """The rows with their texts, or with what stands for them."""
    if show_text or not is_concealed(certificate.task):
        return certificate.rows
    return tuple(
        replace(row, prompt=hidden(row.prompt), before=_hidden(row.before), after=_hidden(row.after))
        for row in certificate.rows
    )


def _hidden(completion: Completion) -> Completion:
    return replace(completion, text=hidden(completion.text))
