"""A request that can be given up while it is under way, whoever answers it.

The model is asked on a thread of its own; when the person stops, the caller is free at once, and the thread ends with
the next piece that the model sends, which closes the provider's stream.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from agent.llm.faults import ReplyStopped
from agent.llm.protocol import OnText, Reply

_EVERY = 0.05
"""Seconds between two looks at the flag."""


def until_stopped(
    complete: Callable[[OnText], Reply], on_text: OnText, should_stop: Callable[[], bool]
) -> Reply:
    """The reply of `complete`. Raises what it raises, and `ReplyStopped` once `should_stop` says so."""
    came: SimpleQueue[Reply | BaseException] = SimpleQueue()
    given_up = threading.Event()

    def hear(piece: str) -> None:
        if given_up.is_set():
            raise ReplyStopped
        on_text(piece)

    def work() -> None:
        try:
            came.put(complete(hear))
        except BaseException as fault:
            came.put(fault)

    threading.Thread(target=work, daemon=True).start()
    while not should_stop():
        try:
            reply = came.get(timeout=_EVERY)
        except Empty:
            continue
        if isinstance(reply, BaseException):
            raise reply
        return reply
    given_up.set()
    raise ReplyStopped
