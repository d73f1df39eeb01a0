"""Who waits for an answer, and accepts the price of what is asked for: the person at a terminal, or nobody."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from mecharule_ops.errors import AblationStopped

if TYPE_CHECKING:
    from mecharule_ops.events import Event
    from tools.result import ToolResult

Exchanges = Sequence[tuple[str, str]]
"""Questions and their answers."""
PURSE = 60.0
"""Seconds of ablations that a question may spend unasked."""
NO_QUESTION = "That is no question that is answered without a language model (MECHARULE_LLM names one)"
"""Begins an answer that suggests others; a number, or an empty line, takes one of them."""
NOT_RUN = "not run:"
"""Begins the result of a call whose price was not accepted."""
Consent = Callable[[str], bool | str]
"""Whether calls above what is left of the purse, with their price, are accepted; a text says why not."""


def put(calls: Iterable[tuple[str, Mapping[str, object]]], words: str) -> str:
    """Calls of tools as they are put to the person, a line each, with their price in words."""
    lines = [" ".join([tool, *(f"{name}={value}" for name, value in given.items())]) for tool, given in calls]
    return "\n".join(["This needs your yes:", *(f"  {one}" for one in lines), f"It costs {words}."])


def pays(purse: float, seconds: Iterable[float | None]) -> bool:
    """Whether every price is known and the purse pays for all."""
    known = list(seconds)
    return None not in known and sum(each or 0.0 for each in known) < purse


def not_run(answer: bool | str, words: str) -> str:
    """Why calls of a price in `words` do not run; empty where it was accepted."""
    why = answer if isinstance(answer, str) else "the person declined it"
    return "" if answer is True else f"{NOT_RUN} {why} ({words})"


def unless_stopped(tell: Callable[[str], None], should_stop: Callable[[], bool]) -> Callable[[str], None]:
    """Tells, and raises `AblationStopped` in its place once the person has given up."""

    def told(line: str) -> None:
        if should_stop():
            raise AblationStopped("it was stopped")
        tell(line)

    return told


def nobody(price: str) -> str:
    """Nobody is there to accept a price."""
    return "nobody is there to accept this price; `--seconds N` allows it beforehand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Who waits for an answer."""

    tell: Callable[[str], None] = lambda line: None
    """Is told what is being done, a line at a time."""
    hear: Callable[[str], None] = lambda text: None
    """Hears a model's unchecked words as they come."""
    show: Callable[[Event], None] = lambda event: None
    """Is shown what happens."""
    first: Callable[[ToolResult], None] = lambda result: None
    """Is given the offline answer before a model is asked, empty where it is not stored."""
    consent: Consent = nobody
    should_stop: Callable[[], bool] = lambda: False
    """Whether the person has given the model's answer up."""
    earlier: Exchanges | None = None
    """Questions and answers before this one; None are those about the run before, and none begins anew."""


def at_terminal() -> Consent:
    """Consent of the person at the terminal; nobody's where there is none."""
    return (lambda price: says_yes(f"{price} Run it?")) if sys.stdin and sys.stdin.isatty() else nobody


def says_yes(question: str) -> bool:
    """What the person at the terminal says, who is asked on stderr."""
    sys.stderr.write(coloured(f"{question} [y/N] ", sys.stderr))
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def coloured(text: str, stream: TextIO) -> str:
    """The text with what could go wrong in red, where a person reads the stream at a terminal."""
    if not stream.isatty() or "NO_COLOR" in os.environ:
        return text
    return re.sub(r"(?m)^could go wrong: .*", "\033[1;31m\\g<0>\033[0m", text)
