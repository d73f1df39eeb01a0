"""^C ends a verb even where a library swallowed the exception that it raised."""

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from agent.verbs.interrupts import STOPPING, interrupts


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    """As at a terminal: a shell starts what it puts behind with ^C ignored, and what is ignored stays so."""
    before = {
        number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGINT, *STOPPING)
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def swallowed(number: int = signal.SIGINT) -> None:
    """A signal, whose exception ends here as in a callback of C code."""
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", STOPPING)
def test_a_swallowed_interrupt_is_raised_again_at_the_next_event(number: int) -> None:
    before = signal.getsignal(number)
    with interrupts() as check:
        check()
        swallowed(number)
        with pytest.raises(KeyboardInterrupt, match=str(number)):
            check()
    assert signal.getsignal(number) is before


def test_what_is_told_while_the_verb_ends_for_it_goes_through() -> None:
    """Events of a clean-up are shown; a second exception would cut it short."""

    def ending(check: Callable[[], None]) -> None:
        try:
            raise KeyboardInterrupt("first")
        finally:
            check()

    with interrupts() as check:
        swallowed()
        with pytest.raises(KeyboardInterrupt, match="first"):
            ending(check)
