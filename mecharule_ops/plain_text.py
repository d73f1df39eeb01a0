"""Text that a person or a model wrote, fit for a line of a terminal, a table or a report; text as a file, and paths."""

import os
import re
import shutil
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from mecharule_ops.errors import UsageError, system_errors

_TRICKS = frozenset({"Cc", "Cf", "Cs", "Co"})
"""Control, format (bidi, zero width), surrogate and private characters."""

_SENTENCE = re.compile(r"(?<=\w{4}[.!?])\s|\n|(?<=\w{4});\s")
"""Behind one, or behind a clause; not behind `St.`, `U.S.` or `1.`."""
_TEMPLATE = 12
"""Characters that prompts have in common from which these are left out."""
_NAME = 4
"""Words at most that stand for their question: more of them are a piece of a sentence."""


def plain(text: str) -> str:
    """The text on one line, without control, format or surrogate characters (terminal and bidi tricks)."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    return "".join("�" if unicodedata.category(char) in _TRICKS else char for char in " ".join(text.split()))


def tied(text: str) -> str:
    """The text with no-break spaces, so that `44 %` and `τ ≥ 0.2` stay on one line."""
    return re.sub(r"(?<=\d) (?=%)|(?<=[≥=]) (?=\d)|(?<=τ) (?=[≥=])", "\u00a0", text)


def beginning(text: str) -> str:
    """The first sentence or line of a text, without its full stop; `nothing` where there is no text.

    >>> [beginning(text) for text in ("Riga. Latvia is a", "3.5 of 10", " ")]
    ['Riga', '3.5 of 10', 'nothing']
    """
    return plain(_SENTENCE.split(text.strip(), maxsplit=1)[0]).removesuffix(".") or "nothing"


def last_line(prompt: str) -> str:
    """The question of a prompt, without few-shot lines."""
    return plain(prompt.rstrip("\n").rsplit("\n", 1)[-1])


def quoted(prompt: str) -> str:
    """The question of a prompt in quotes, its end left out where it is long."""
    line = last_line(prompt)
    return repr(line if len(line) <= 120 else f"{line[:119]}…")


def what_differs(prompts: Sequence[str]) -> tuple[str, ...]:
    """Each question, as it stands before its answer: the few words that differ where all else is said by each.

    >>> what_differs(["The capital of Peru is", "The capital of Chad is"]), what_differs(["2 + 3 =", "2 + 4 ="])
    (('Peru:', 'Chad:'), ('2 + 3 =', '2 + 4 ='))
    """
    asked = [last_line(prompt) for prompt in prompts]
    words = [line.split() for line in asked]
    begins = alike(words)
    ends = alike([line[begins:][::-1] for line in words])
    parts = [" ".join(line[begins : len(line) - ends]) for line in words]
    shared = min((len(line) - len(part) for line, part in zip(asked, parts, strict=True)), default=0)
    tells = len(parts) > 1 and all(any(map(str.isalpha, part)) and part.count(" ") < _NAME for part in parts)
    return tuple(f"{part}:" for part in parts) if tells and shared >= _TEMPLATE else tuple(asked)


def alike(lines: Sequence[Sequence[object]]) -> int:
    """How many elements all lines, or other sequences, begin with."""
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*lines, strict=False)))


def write_file(file: str | Path, text: str | bytes) -> Path:
    """The file after it was written, whole or not at all, its folder made where it is missing.

    Raises `StoreError`; `UsageError` for the file of a run.
    """
    path, body = Path(file), text.encode() if isinstance(text, str) else text
    there = Path(os.path.realpath(path))
    if ".mecharule" in (path.suffix, there.suffix):
        raise UsageError(f"expected a file of another kind to write, {file} is a run's; choose another name")
    with system_errors(f"to write {file}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():  # A pipe or a terminal.
            path.write_bytes(body)
            return path
        unfinished = there.with_name(f".{os.getpid()}-{there.name[-40:]}")
        try:
            unfinished.write_bytes(body)
            if there.exists():
                there.open("ab").close()  # Raises where the old one may not be written.
                shutil.copymode(there, unfinished)
            unfinished.replace(there)
        finally:
            unfinished.unlink(missing_ok=True)
    return path


def user_folder(
    variable: str, usual: Callable[[str], str], environment: Mapping[str, str] = os.environ
) -> Path:
    """The program's folder of one kind: what the variable names, else the user's usual one. It may not exist yet.

    Raises `UsageError` where that lies in the home folder of a user who has none.
    """
    if chosen := environment.get(variable):
        return Path(chosen)
    try:
        return Path(usual("mecharule")).expanduser()
    except RuntimeError as error:
        raise UsageError(
            f"expected a home folder, got none: HOME is not set and the system does not know this user; set HOME, or "
            f"{variable}, to a folder"
        ) from error


def typed_path(name: str) -> Path:
    """A path as a person types it: `~` is the home folder where there is one, else a name like any other."""
    return Path(os.path.expanduser(name))  # noqa: PTH111
