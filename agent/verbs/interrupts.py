"""^C that is never lost: a library may swallow the exception it raises, in a callback or while an object is freed."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts() -> Iterator[Callable[[], None]]:
    """A check that raises `KeyboardInterrupt` where ^C came since and nobody is ending for it.

    Outside the main thread, where signals do not arrive, it never raises.
    """
    heard = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        heard.set()
        signal.default_int_handler(number, frame)

    def check() -> None:
        if heard.is_set() and sys.exc_info()[0] is None:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield check
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)
