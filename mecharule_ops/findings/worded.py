"""Rules with their words, as they are stored; in an older run those that are shown get them when they are read.

A rule says its words from then on wherever a person reads it, so that no room above needs the task for it.
"""

from __future__ import annotations

from dataclasses import replace

from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.families import AnchoredRule, FamilyRule
from mecharule_ops.tasks.base import Task


def anchored_worded(rule: AnchoredRule, task: Task) -> AnchoredRule:
    """The rule with its words, where it has a rule and none of them yet."""
    if rule.rule is None or rule.words:
        return rule
    return replace(rule, words=_words(rule.rule, task))


def account_worded(account: Account, task: Task) -> Account:
    """The account with words for every rule that was learned."""
    return replace(account, families=tuple(_family(rule, task) for rule in account.families))


def findings_worded(findings: Findings, task: Task) -> Findings:
    """What was found, with words for the rules of accounts and for anchored ones that chance does not explain."""
    return replace(findings, searches=tuple(_search(search, task) for search in findings.searches))


def _search(search: SearchOutcome, task: Task) -> SearchOutcome:
    return replace(
        search,
        accounts=tuple(account_worded(account, task) for account in search.accounts),
        anchored=tuple(
            rule if rule.chance is not None and rule.chance.failed else anchored_worded(rule, task)
            for rule in search.anchored
        ),
    )


def _family(rule: FamilyRule, task: Task) -> FamilyRule:
    if rule.learned is None or rule.words:
        return rule
    return replace(rule, words=_words(rule.learned, task))


def _words(rule: Rule, task: Task) -> str:
    """Imported where a rule lacks its words: a question about a run that kept them parses no rule."""
    from mecharule_ops.rules.in_words import rule_in_words

    return rule_in_words(rule, task)
