"""^C that is never lost: a library may swallow the exception it raises, in a callback or while an object is freed."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts() -> Iterator[Callable[[], None]]:
    """A check that raises `KeyboardInterrupt` where ^C came since and nobody is ending for it. In the main thread."""
    heard = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        heard = True
        signal.default_int_handler(number, frame)

    def check() -> None:
        if heard and sys.exc_info()[0] is None:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)
