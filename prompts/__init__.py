"""Prompts as files: the two texts that a model is shown, with holes that are filled in.

    ## system
    …
    ## user
    … {{records}} …

What is filled in is data: it is inserted once and never read for holes again.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent
_PARTS = re.compile(r"^## (?:system|user)\n", re.MULTILINE)
_HOLE = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt before it is filled in."""

    system: str
    user: str
    sha256: str
    """Of the file, as a run keeps it."""

    def fill(self, **values: str) -> tuple[str, str]:
        """System text and user text. Raises `KeyError` for a hole that has no value."""
        system, user = (_HOLE.sub(lambda hole: values[hole[1]], text) for text in (self.system, self.user))
        return system, user


def load(name: str, folder: Path = _FOLDER) -> Prompt:
    """The prompt of a file."""
    content = (folder / f"{name}.md").read_bytes()
    _, system, user = map(str.strip, _PARTS.split(content.decode("utf-8")))
    return Prompt(system=system, user=user, sha256=hashlib.sha256(content).hexdigest())
