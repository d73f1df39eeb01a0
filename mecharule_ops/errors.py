"""Every error a caller may meet, in one tree.

    MechaRuleError            exit code 1: the run failed
    ├─ UsageError             2: wrong call, wrong config, a predicate that does not parse
    ├─ ModelUnavailable       3: no such model, a directory that is no model, a provider out of reach
    ├─ ClaimNotSupported      4: a certificate does not verify, a claim has no evidence
    ├─ BudgetSpent            5: the budget ended first; a partial result is kept
    ├─ DegenerateBehaviour    1: all right, all wrong or empty, so there is nothing to explain
    ├─ StoreError             1: a corrupt run file, a full disk, a run that another process holds
    ├─ AblationStopped        130: told to stop between two batches; what was stored is kept
    └─ GuardFailed            1: an intervention does not act as declared (`engine.guard`)

    UsageError has PredicateRefused (`predicates`) below it.

A message is one line: what was expected, what came, what to do.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


class MechaRuleError(Exception):
    """Root of the tree. It prints as one line, whatever text from outside it quotes."""

    exit_code = 1

    def __str__(self) -> str:
        return "".join(map(_shown, super().__str__()))


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """`; did you mean 'attn_head'?`, or nothing where none of the known names is like it."""
    near = get_close_matches(wrong, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def misfit(error: ValidationError, whole: str) -> str:
    """The first thing that does not fit, in a line: its place, or the name of the whole, and what is wrong."""
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or whole}: {first['msg']}"


def _shown(character: str) -> str:
    """A character as it is, or escaped where a terminal would act on it or begin a line."""
    if character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    return ascii(character)[1:-1]


class UsageError(MechaRuleError):
    """What was asked cannot be done as asked: a wrong call, config, predicate or name."""

    exit_code = 2


class ModelUnavailable(MechaRuleError):
    """No subject or language model can be had under that name."""

    exit_code = 3


class ClaimNotSupported(MechaRuleError):
    """A claim has no evidence, or its certificate came out otherwise when recomputed."""

    exit_code = 4


class BudgetSpent(MechaRuleError):
    """A limit that the user set ended the work first; what was found until then is kept."""

    exit_code = 5


class DegenerateBehaviour(MechaRuleError):
    """The model is right everywhere, wrong everywhere or was asked nothing, so no flip can be told from it."""


class AblationStopped(MechaRuleError):
    """`should_stop` said so between two batches; what earlier calls returned stays valid."""

    exit_code = 130


class StoreError(MechaRuleError):
    """A run file cannot be read, written or locked."""


@contextmanager
def system_errors(what: str) -> Iterator[None]:
    """Turns what the system refuses inside into a `StoreError`; `what` was to be done, such as `to write FILE`."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"expected {what}, the system says: {error.strerror}") from error
