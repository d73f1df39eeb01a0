"""Prompts as files: text with declared inputs, a version, and a hash that runs record.

A file `NAME.md` begins with its version and inputs, then holds the two parts that a model is shown:

    version: 1
    inputs: task, records

    ## system
    …
    ## user
    … {{records}} …

What is filled in is data: it is inserted once and never read for placeholders again.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from mecharule_ops.errors import UsageError

_FOLDER = Path(__file__).parent
_HOLE = re.compile(r"\{\{(\w+)\}\}")
_SHAPE = re.compile(
    r"version: (?P<version>\d+)\ninputs:(?P<inputs>[\w, ]*)\n\n## system\n(?P<system>.*?)\n## user\n?(?P<user>.*)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt before it is filled in."""

    name: str
    version: int
    inputs: tuple[str, ...]
    """Names that must be filled in, all of them and no other."""
    system: str
    user: str
    sha256: str
    """Of the file."""

    def fill(self, **values: str) -> tuple[str, str]:
        """System text and user text. Raises `UsageError` when an input is missing or unknown."""
        if set(values) != set(self.inputs):
            raise UsageError(
                f"expected the inputs {', '.join(self.inputs)} of prompt {self.name}, got {', '.join(values)}"
            )

        def value(match: re.Match[str]) -> str:
            return values[match[1]]

        return _HOLE.sub(value, self.system), _HOLE.sub(value, self.user)

    def record(self) -> dict[str, str | int]:
        """What a run keeps of it."""
        return {"version": self.version, "sha256": self.sha256}


def load(name: str, folder: Path = _FOLDER) -> Prompt:
    """The prompt of a file. Raises `UsageError` when its form or its inputs are not as described above."""
    path = folder / f"{name}.md"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"expected a prompt in {path.name}, got {error.strerror}") from error
    match = _SHAPE.fullmatch(content.decode("utf-8"))
    if match is None:
        raise UsageError(f"expected version, inputs, ## system and ## user in {path.name}, got another form")
    inputs = tuple(part.strip() for part in match["inputs"].split(",") if part.strip())
    used = set(_HOLE.findall(match["system"] + match["user"]))
    if used != set(inputs):
        raise UsageError(
            f"expected {path.name} to use the inputs it declares, they differ in {used ^ set(inputs)}"
        )
    return Prompt(
        name=name,
        version=int(match["version"]),
        inputs=inputs,
        system=match["system"].strip(),
        user=match["user"].strip(),
        sha256=hashlib.sha256(content).hexdigest(),
    )
