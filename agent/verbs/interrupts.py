"""A signal to stop that is never lost: a library may swallow the exception it raises, in a callback for one."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOPPING = [
    number for name in ("INT", "TERM", "HUP", "USR1") if (number := getattr(signal, f"SIG{name}", None))
]
"""^C, and what a scheduler or a terminal that goes away sends."""


@contextmanager
def interrupts() -> Iterator[Callable[[], None]]:
    """A check that raises `KeyboardInterrupt` where one came since and nobody is ending for it. In the main thread.

    Its argument is the signal's number. SIGHUP stays ignored where it is, under nohup; a shell ignores ^C for what it
    puts behind, and whoever sends that one means it.
    """
    heard = 0

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        heard = number
        raise KeyboardInterrupt(number)

    def check() -> None:
        if heard and sys.exc_info()[0] is None:
            raise KeyboardInterrupt(heard)

    before = {number: signal.getsignal(number) for number in STOPPING}
    caught = [n for n, handler in before.items() if n == signal.SIGINT or handler is not signal.SIG_IGN]
    try:
        for number in caught:
            signal.signal(number, note)
        yield check
    finally:
        for number in caught:
            signal.signal(number, before[number])
