"""Which learned rules of a run are shown: held-out records decide that, once, over all of the run's rules together.

Held-out records select nothing that is fitted. They do decide which rules are shown, so that decision is corrected:
every learned rule of the run, be it anchored or of an account's family, has one p (`rules.interval`), and
Holm's correction runs over all of them. Where no rule of a run knows anything, the chance that one is shown is at most
the level. A rule whose interval reaches 0 is not shown either.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mecharule_ops.findings import controls, records
from mecharule_ops.rules.families import UnitRule


def shown_over(searches: Sequence[records.SearchOutcome], level: float) -> list[records.SearchOutcome]:
    """The searches of a run with the test of every learned rule corrected over all of them."""
    ps = ps_of(rule for search in searches for rule in search.rules)
    return [
        replace(
            search,
            anchored=_corrected(search.anchored, ps, level),
            accounts=tuple(
                replace(account, families=_corrected(account.families, ps, level))
                for account in search.accounts
            ),
        )
        for search in searches
    ]


def corrected_beside(
    rules: Sequence[UnitRule], others: Sequence[float], level: float
) -> tuple[UnitRule, ...]:
    """Rules made after the run, corrected together with those of p `others`, which keep theirs."""
    return _corrected(rules, [*ps_of(rules), *others], level)


def ps_of(rules: Iterable[UnitRule]) -> list[float]:
    """P of each that was learned."""
    return [rule.chance.p for rule in rules if rule.chance is not None]


def _corrected(rules: Iterable[UnitRule], ps: Sequence[float], level: float) -> tuple[UnitRule, ...]:
    """The rules with their corrected p; equal p have equal ones."""
    corrected = dict(zip(ps, controls.holm(ps), strict=True))
    return tuple(
        rule
        if (test := rule.chance) is None
        else replace(rule, chance=replace(test, adjusted=corrected[test.p], rules=len(ps), level=level))
        for rule in rules
    )
