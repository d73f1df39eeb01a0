"""What a run found as flat rows: the columns of its data frames. Every number is one of the findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.errors import UsageError
from mecharule_ops.facts.control_facts import NOT_RUN
from mecharule_ops.facts.searches import search_names
from mecharule_ops.facts.shown_units import unit_status
from mecharule_ops.facts.unit_rules import UnitRule, rules_of, shown_words
from mecharule_ops.findings.accounts import Account, PredictionScore
from mecharule_ops.findings.counts import TreeNode
from mecharule_ops.findings.records import Findings, Unit
from mecharule_ops.types import Regime

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRow:
    """One localized unit of one search."""

    search: str
    """As the report names it, such as `mlp_out 1→0`."""
    unit: str
    basis: str
    layer: int
    regime: str
    """`1→0` or `0→1`."""
    strength: float
    """Ê: the larger of the two flip rates."""
    lower: float
    upper: float
    """One-sided Clopper–Pearson bounds on the strength, as the search used them."""
    certainty: str
    """`shown`, `suggestive` or `open` of a τ-agonist; `not measured`; `not ruled out` of what stays below τ."""
    rank: int | None
    """Among the shown units of its search; None where it is not shown."""
    kept_aside_flips: int | None
    """Flips of `kept_aside_n` held-out answers, which chose no unit; None where it was not ablated on them."""
    kept_aside_n: int | None
    kept_aside_lower: float | None
    """Lower bound of that rate, over the units that its search found."""
    is_tau_agonist: bool
    """Whether the strength itself reaches τ; every row's upper bound does."""
    associated_flips: int
    associated_n: int
    """Flips on D+, and its examples."""
    unrelated_flips: int
    unrelated_n: int
    selectivity: float
    """Flip rate on D+ less that on D-."""
    random_below: int | None
    """Of so many `random_units` of the basis those that flip fewer held-out records; None where none was ablated."""
    random_units: int | None
    effect_p: float | None
    """p of that rank, after Holm over the run's units."""
    selective: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """When one unit flips, by one family of rules."""

    search: str
    unit: str
    regime: str
    family: str
    """`input`, `clean run`, `mechanism`, or `anchored` for the rule of the paper."""
    rule: str | None
    """The rule that is shown; None where none predicts: the interval of its held-out MCC reaches 0, or chance may
    explain it over all learned rules of the run."""
    learned: str | None
    """What train chose, shown or not."""
    in_words: str
    """The same in the words of the task; empty without one, and in runs that did not keep it."""
    shown: str
    """`yes` or `no`, and why; `–` where none was learned."""
    p: float | None
    """Fisher's exact test on the held-out records, one-sided; None where it was not made or kept."""
    adjusted_p: float | None
    """The same after Holm over all learned rules of the run."""
    mcc: float | None
    """On held-out records, scored once; of what train chose, whether or not it is shown. None without one."""
    low: float | None
    high: float | None
    """Ends of the 95 % bootstrap interval; None on too few records."""
    free_form_trees: float | None
    """MCC of trees of any form over the same columns, on the same records."""
    prompt_only: bool
    """Whether the shown rule can be checked before the model answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionRow:
    """How well one number or two say which held-out records flip, with the unit's other rows to set it beside."""

    search: str
    unit: str
    regime: str
    target: str
    """What is predicted: `flips`, in 0→1 `changes` and `becomes right`."""
    kind: str
    """`steady drop` is the first-order prediction, `integrated drop` a check; `direct push`,
    `lead only` and `drop only` are beside it."""
    mcc: float | None
    """None, with its interval, where one side has too few records."""
    low: float | None
    high: float | None
    predicted: int
    """Held-out records on which it says yes."""
    happened: int | None
    """Those on which it happens: over `records` the base rate; always and never saying so have MCC 0."""
    records: int
    threshold: float | None
    """Fitted on train, in logits; None where nothing is fitted."""
    nothing_above: bool
    """Whether the prediction is arithmetic, since no later part of the model reads the unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRow:
    """One group that a search ablated together."""

    search: str
    layer: int
    node: int
    """Unique within its layer."""
    parent: int | None
    depth: int
    size: int
    """Units in the group."""
    associated_flips: int
    associated_n: int
    unrelated_flips: int
    unrelated_n: int
    strength: float
    upper: float
    verdict: str
    """`pruned`, `split`, `kept` or `dropped`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRow:
    """One claim that can be run again."""

    certificate: str
    kind: str
    units: str
    regime: str
    """`1→0` or `0→1`."""
    examples: int
    claim: str


def unit_rows(findings: Findings) -> tuple[UnitRow, ...]:
    """Every localized unit, search by search: the shown by rank, then the others by name."""
    return tuple(_unit(name, unit) for name, unit in _named(findings))


def rule_rows(findings: Findings) -> tuple[RuleRow, ...]:
    """Families of its account, then the anchored rule, of every unit that has any; in the order of `unit_rows`."""
    return tuple(_rule(name, unit, rule) for name, unit in _named(findings) for rule in rules_of(unit))


def _named(findings: Findings) -> Iterator[tuple[str, Unit]]:
    """(the name of its search, unit)."""
    for name, outcome in zip(search_names(findings), findings.searches, strict=True):
        yield from ((name, unit) for unit in findings.units_of(outcome))


def prediction_rows(findings: Findings) -> tuple[PredictionRow, ...]:
    """Every score of every account; in the order of the accounts."""
    return tuple(
        _prediction(name, account, target, score)
        for name, outcome in zip(search_names(findings), findings.searches, strict=True)
        for account in outcome.accounts
        for target, score in _scored(account)
    )


def tree_rows(search: str, nodes: Iterable[TreeNode]) -> tuple[TreeRow, ...]:
    """A row a tested group, in the order of the tests."""
    return tuple(
        TreeRow(
            search=search,
            layer=node.layer,
            node=node.node,
            parent=node.parent,
            depth=node.depth,
            size=node.size,
            associated_flips=node.estimate.associated.flips,
            associated_n=node.estimate.associated.n,
            unrelated_flips=node.estimate.unrelated.flips,
            unrelated_n=node.estimate.unrelated.n,
            strength=node.estimate.strength,
            upper=node.ucb,
            verdict=node.verdict.value,
        )
        for node in nodes
    )


def certificate_rows(certificates: Iterable[Certificate]) -> tuple[CertificateRow, ...]:
    """A row a certificate, oldest first."""
    return tuple(
        CertificateRow(
            certificate=one.id,
            kind=one.kind,
            units=", ".join(one.units),
            regime=Regime(one.regime).arrow,
            examples=len(one.example_ids),
            claim=one.claim,
        )
        for one in certificates
    )


def frame_of(kind: type, rows: Sequence[Any]) -> pandas.DataFrame:
    """Rows of one kind as a data frame with that kind's columns. Raises `UsageError` where pandas is not installed."""
    try:
        import pandas
    except ImportError as error:
        raise UsageError(
            "expected pandas for a data frame, it is not installed; `pip install pandas`"
        ) from error
    names = [field.name for field in fields(kind)]
    return pandas.DataFrame([asdict(row) for row in rows], columns=names)


def _unit(search: str, unit: Unit) -> UnitRow:
    agonist, estimate, controls = unit.agonist, unit.estimate, unit.controls
    basis, evidence = None if controls is None else controls.basis, unit.evidence
    return UnitRow(
        search=search,
        unit=str(agonist.neuron),
        basis=agonist.neuron.basis.value,
        layer=agonist.neuron.layer,
        regime=agonist.regime.arrow,
        strength=estimate.strength,
        lower=unit.lower,
        upper=agonist.ucb,
        certainty=unit_status(unit),
        rank=evidence.rank if evidence else None,
        kept_aside_flips=evidence.flips.flips if evidence else None,
        kept_aside_n=evidence.flips.n if evidence else None,
        kept_aside_lower=evidence.lower if evidence else None,
        is_tau_agonist=agonist.is_tau_agonist,
        associated_flips=estimate.associated.flips,
        associated_n=estimate.associated.n,
        unrelated_flips=estimate.unrelated.flips,
        unrelated_n=estimate.unrelated.n,
        selectivity=estimate.signed_selectivity,
        random_below=None if basis is None else basis.n - basis.count,
        random_units=None if basis is None else basis.n,
        effect_p=None if controls is None else controls.effect_p,
        selective=NOT_RUN if controls is None else controls.selective.value,
    )


def _rule(search: str, unit: Unit, rule: UnitRule) -> RuleRow:
    test, interval, paper = rule.chance, rule.held_out, rule.anchored
    scored = interval if paper is None or rule.learned is None else paper.held_out
    learned = None if rule.learned is None else str(rule.learned)
    return RuleRow(
        search=search,
        unit=str(unit.neuron),
        regime=unit.agonist.regime.arrow,
        family=rule.family,
        rule=learned if rule.shown else None,
        learned=learned,
        in_words=rule.words,
        shown=shown_words(rule),
        p=None if test is None else test.p,
        adjusted_p=None if test is None else test.adjusted,
        mcc=None if scored is None else scored.mcc,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        free_form_trees=None if rule.trees is None else rule.trees.mcc,
        prompt_only=rule.shown and rule.prompt_only,
    )


def _scored(account: Account) -> Iterator[tuple[str, PredictionScore]]:
    """(what is predicted, score)."""
    right = account.becomes_right
    for score in account.predictions:
        yield "flips" if right is None else "changes", score
    for score in (*filter(None, (right,)), *account.beside_right):
        yield "becomes right", score


def _prediction(search: str, account: Account, target: str, score: PredictionScore) -> PredictionRow:
    found = score.held_out
    return PredictionRow(
        search=search,
        unit=str(account.neuron),
        regime=account.regime.arrow,
        target=target,
        kind=score.kind.value,
        mcc=None if found is None else found.mcc,
        low=None if found is None else found.low,
        high=None if found is None else found.high,
        predicted=score.predicted,
        happened=score.happened,
        records=score.records,
        threshold=score.threshold,
        nothing_above=account.nothing_above,
    )
