"""Which learned rules of a run are shown: held-out records decide that, once, over all of the run's rules together.

Held-out records select nothing that is fitted. They do decide which rules are shown, so that decision is corrected:
every learned rule of the run, be it anchored or of an account's family, has one p (`rules.interval`), and
Holm's correction runs over all of them. Where no rule of a run knows anything, the chance that one is shown is at most
the level. A rule whose interval reaches 0 is not shown either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.controls import holm
from mecharule_ops.findings.records import SearchOutcome
from mecharule_ops.rules.families import AnchoredRule
from mecharule_ops.types import ChanceTest

_Decide = Callable[[ChanceTest | None], ChanceTest | None]


def shown_over(searches: Sequence[SearchOutcome], level: float) -> list[SearchOutcome]:
    """The searches of a run with the test of every learned rule corrected over all of them."""
    decide = _deciding([p for search in searches for p in search_ps(search)], level)
    return [
        replace(
            search,
            anchored=tuple(replace(rule, chance=decide(rule.chance)) for rule in search.anchored),
            accounts=tuple(_account(account, decide) for account in search.accounts),
        )
        for search in searches
    ]


def account_beside(account: Account, others: Sequence[float], level: float) -> Account:
    """An account made after the run: its rules corrected together with those of `others`, which keep theirs."""
    return _account(account, _deciding([*account_ps(account), *others], level))


def anchored_beside(rule: AnchoredRule, others: Sequence[float], level: float) -> AnchoredRule:
    """The same for an anchored rule."""
    return replace(rule, chance=_deciding([*anchored_ps([rule]), *others], level)(rule.chance))


def search_ps(search: SearchOutcome) -> Iterator[float]:
    """P of every learned rule of a search."""
    yield from anchored_ps(search.anchored)
    for account in search.accounts:
        yield from account_ps(account)


def anchored_ps(rules: Iterable[AnchoredRule]) -> Iterator[float]:
    """P of each that was learned; 1 for one of a run that did not keep it, which it then still counts as."""
    yield from (_p(rule.chance) for rule in rules if rule.rule is not None)


def account_ps(account: Account) -> Iterator[float]:
    """The same for an account's families."""
    yield from (_p(rule.chance) for rule in account.families if rule.learned is not None)


def _p(test: ChanceTest | None) -> float:
    return 1.0 if test is None else test.p


def _deciding(ps: Sequence[float], level: float) -> _Decide:
    """What gives a test its corrected p; equal p have equal ones."""
    corrected = dict(zip(ps, holm(ps), strict=True))
    return lambda test: (
        None if test is None else replace(test, adjusted=corrected[test.p], rules=len(ps), level=level)
    )


def _account(account: Account, decide: _Decide) -> Account:
    return replace(account, families=tuple(rule.decided(decide(rule.chance)) for rule in account.families))
