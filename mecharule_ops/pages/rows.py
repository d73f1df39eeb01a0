"""What a run found as flat rows, a class a kind: its fields are the columns of data frames, JSON and CSV.

Printed tables show the fields that have a `column` beside them. Every number is one of the run.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from operator import attrgetter
from typing import Any

from mecharule_ops.facts import control_facts, searches, shown_units
from mecharule_ops.facts.rules import short, shown_words
from mecharule_ops.findings.controls import Selective
from mecharule_ops.findings.evidence import Certainty
from mecharule_ops.findings.records import Findings, Unit
from mecharule_ops.nodes import Node
from mecharule_ops.numbers import k_of_n, percent, percent_at_least, plural, signed, told_apart
from mecharule_ops.pages.document import column, row_of
from mecharule_ops.rules.families import Family, UnitRule
from mecharule_ops.run import live_run, opening
from mecharule_ops.state.search_view import OF_A_RUN
from mecharule_ops.store.ledger import Ledger
from mecharule_ops.types import FlipCount, Neuron, Regime

RULE = "rule (learned on train)"
"""The column of a rule's text, which is long."""
WORDS = "in words"
"""Likewise of its words."""
_YES_NO = {Selective.SELECTIVE: "yes", Selective.NOT_SELECTIVE: "no"}


def _flips(half: str) -> "Callable[[UnitRow], str]":
    """`28/64 (44 %)` on a half of the split."""
    flips, n = attrgetter(f"{half}_flips"), attrgetter(f"{half}_n")
    return lambda row: k_of_n(FlipCount(flips=flips(row), n=n(row)))


def _bounds(row: "UnitRow") -> str:
    """`[0.65, 0.95]`, rounded outwards."""
    return f"[{told_apart(row.lower, math.inf, -1)}, {told_apart(row.upper, math.inf, 1)}]"


def kept_aside(row: "UnitRow") -> str:
    """`17 of 64, at least 16 %`, the bound of a shown unit alone; `not measured` where it was not ablated on them."""
    if row.kept_aside_flips is None or row.kept_aside_lower is None:
        return shown_units.NOT_MEASURED
    least = f", at least {percent_at_least(row.kept_aside_lower)}" if row.certainty == Certainty.SHOWN else ""
    return f"{row.kept_aside_flips:,} of {row.kept_aside_n:,}{least}"


def _above(row: "UnitRow") -> str:
    """`254 of 255`, `all 99` or `not run`."""
    if row.random_below is None or row.random_units is None:
        return "not run"
    return control_facts.fewer_words(row.random_below, row.random_units)


def _short(value: float | None) -> str:
    return "–" if value is None else short(value)


def _held_out(row: "RuleRow") -> str:
    """`.78 [.64, .90] (n 412, 96 flips)`; without bounds on too few records."""
    if row.mcc is None:
        return "–"
    interval = "" if row.low is None or row.high is None else f" [{short(row.low)}, {short(row.high)}]"
    return f"{short(row.mcc)}{interval} (n {row.records:,}, {plural(row.positives or 0, 'flip')})"


def _where(row: "RuleRow") -> str:
    """`84 of 98, against 8 of 24`."""
    if row.flips_where is None:
        return "–"
    return f"{row.flips_where:,} of {row.n_where:,}, against {row.flips_elsewhere:,} of {row.n_elsewhere:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRow:
    """One localized unit of one search."""

    search: str = column("search")
    """As the report names it, such as `mlp_out 1→0`."""
    unit: str = column("unit")
    basis: str = column(of="neuron.basis.value")
    layer: int = column(of="neuron.layer")
    regime: str = column(of="agonist.regime.arrow")
    """`1→0` or `0→1`."""
    certainty: str = column("status")
    """`shown`, `suggestive` or `open` of a τ-agonist; `not measured`; `not ruled out` of what stays below τ."""
    rank: int | None = column(of="evidence.rank")
    """Among the shown units of its search; None where it is not shown."""
    is_tau_agonist: bool
    """Whether the strength itself reaches τ; every row's upper bound does."""
    kept_aside_flips: int | None = column("kept aside", kept_aside, side="l", of="evidence.flips.flips")
    """Flips of `kept_aside_n` held-out answers, which chose no unit; None where it was not ablated on them."""
    kept_aside_n: int | None = column(of="evidence.flips.n")
    kept_aside_lower: float | None = column(of="evidence.lower")
    """Lower bound of that rate, over the units that its search found."""
    resamples_found: int | None = column(of="resampled.found.count")
    """Of 100 resamples of the slices' records those in which it reaches τ; None of what stays below."""
    again_shown: int | None = column(of="again.count")
    """Of `again_runs` more runs with other draws those that show it; None without any."""
    again_runs: int | None = column(of="again.n")
    associated_flips: int = column("flips D+", _flips("associated"), of="estimate.associated.flips")
    associated_n: int = column(of="estimate.associated.n")
    """Flips on D+, and its examples."""
    unrelated_flips: int = column("flips D-", _flips("unrelated"), of="estimate.unrelated.flips")
    unrelated_n: int = column(of="estimate.unrelated.n")
    strength: float = column(
        "strength", lambda row: f"{row.strength:.3f} {_bounds(row)}", of="estimate.strength"
    )
    """Ê: the larger of the two flip rates."""
    lower: float
    upper: float = column(of="agonist.ucb")
    """One-sided Clopper–Pearson bounds on the strength, as the search used them."""
    selectivity: float = column(
        "selectivity", lambda row: signed(row.selectivity), of="estimate.signed_selectivity"
    )
    """Flip rate on D+ less that on D-."""
    random_below: int | None = column("above random units", _above, side="l")
    """Of so many `random_units` of the basis those that flip fewer held-out records; None where none was ablated."""
    random_units: int | None
    selective: str = column("selective", lambda row: _YES_NO.get(row.selective, row.selective))
    """`selective`, `not selective`, `undecided` or `not run`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """When one unit flips, by one family of rules."""

    search: str = column("search")
    unit: str = column("unit")
    regime: str
    family: str = column("family")
    """`input`, `exception`, or `anchored` for the rule of the paper."""
    in_words: str = column(WORDS, of="words")
    """What train chose in the words of the task; empty without one."""
    rule: str | None
    """The rule that is shown; None where none predicts: the interval of its held-out MCC reaches 0, or chance may
    explain it over all learned rules of the run."""
    learned: str | None = column(RULE, lambda row: row.learned or row.absent)
    """What train chose, shown or not."""
    absent: str
    """Why none was learned; empty with one."""
    flips_where: int | None = column("flips where, elsewhere", _where, side="l", of="where.holds.flips")
    """Flips of the `n_where` held-out records on which it holds; None without a rule."""
    n_where: int | None = column(of="where.holds.n")
    flips_elsewhere: int | None = column(of="where.elsewhere.flips")
    n_elsewhere: int | None = column(of="where.elsewhere.n")
    shown: str = column("shown")
    """`yes` or `no`, and why; `–` where none was learned."""
    p: float | None = column(of="chance.p")
    """Fisher's exact test on the held-out records, one-sided; None where it was not made."""
    adjusted_p: float | None = column(of="chance.adjusted")
    """The same after Holm over all learned rules of the run."""
    mcc: float | None = column("held-out MCC", _held_out, side="l")
    """On held-out records, scored once; of what train chose, whether or not it is shown. None without one."""
    low: float | None = column(of="interval.low")
    high: float | None = column(of="interval.high")
    """Ends of the 95 % bootstrap interval; None on too few records."""
    records: int | None
    positives: int | None
    """The held-out records, and those of them that flip."""
    free_form_trees: float | None = column(
        "free-form trees", lambda row: _short(row.free_form_trees), of="free_form.mcc"
    )
    """MCC of trees of any form over the same columns, on the same records."""
    permuted: float | None = column("permuted flips", lambda row: _short(row.permuted))
    agreement: float | None = column("halves agree", lambda row: _short(row.agreement))
    """Of an account's rule: what its learner gets of permuted flips; below .5 another sample gives another rule."""
    coverage: float | None = column(
        "coverage", lambda row: "–" if row.coverage is None else f"{percent(row.coverage)} of {row.records:,}"
    )
    """Share of the held-out records on which an anchored rule fires; None for other families."""
    hq_t: bool = column("high quality", lambda row: "HQ-T" if row.hq_t else "–")
    """Whether an anchored rule is of high quality on held-out records."""
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
    kind: str = column(of="kind.value")
    """`steady drop` is the first-order prediction; `direct push`, `lead only` and `drop only` are beside it."""
    mcc: float | None = column(of="held_out.mcc")
    """None, with its interval, where one side has too few records."""
    low: float | None = column(of="held_out.low")
    high: float | None = column(of="held_out.high")
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

    search: str = column("search")
    """Its id, such as `guided:1:m4`."""
    layer: int
    node: int = column("node", lambda row: f"{'· ' * row.depth}{row.node}", side="l", of="id")
    """Unique within its layer."""
    parent: int | None
    depth: int
    units: str = column("units")
    """As it prints them."""
    size: int = column("size")
    """Units in the group."""
    associated_flips: int = column(
        "flips D+", lambda row: f"{row.associated_flips}/{row.associated_n}", of="estimate.associated.flips"
    )
    associated_n: int = column(of="estimate.associated.n")
    unrelated_flips: int = column(
        "flips D-", lambda row: f"{row.unrelated_flips}/{row.unrelated_n}", of="estimate.unrelated.flips"
    )
    unrelated_n: int = column(of="estimate.unrelated.n")
    strength: float = column(of="estimate.strength")
    upper: float = column("upper bound", of="ucb")
    verdict: str = column("verdict")
    """`pruned`, `split`, `kept` or `dropped`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRow:
    """One claim that can be run again."""

    certificate: str = column("certificate", of="id")
    kind: str = column("kind")
    units: str = column("units")
    regime: str
    """`1→0` or `0→1`."""
    examples: int = column("examples")
    claim: str = column("claim", of="plain_claim")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRow:
    """One claim that was registered before it was read."""

    id: str = column("id")
    unit: str = column("unit", of="prediction.subject")
    state: str = column("state")
    """`open`, `supported`, `refuted`, `undecided` or `underpowered`."""
    value: float | None = column("value", of="outcome.value")
    """What deciding it measured; None before."""
    needed: float = column("needed", of="prediction.threshold")
    n: int | None = column("n", of="outcome.n")
    flips: int | None = column("flips", of="outcome.positives")
    """Of `n` held-out records those that flip."""
    statement: str = column("statement", of="prediction.statement")


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRow:
    """One unit that a search may ask about."""

    search: str = column("search")
    layer: int
    rank: int | None = column("rank")
    """By |EAP-IG|; None where it was not asked."""
    unit: str = column("unit")
    score: float | None = column(
        "score", lambda row: "not asked" if row.score is None else f"{row.score:+.4f}"
    )
    found: str = column("found")
    """`τ-agonist` or `localized`; empty where the search found nothing of it."""


def unit_rows(findings: Findings) -> tuple[UnitRow, ...]:
    """Every localized unit, search by search: the shown by rank, then the others by name."""
    return tuple(unit_row(unit, name) for name, unit in _named(findings))


def rule_rows(findings: Findings) -> tuple[RuleRow, ...]:
    """Families of its account, then the anchored rule, of every unit that has any; in the order of `unit_rows`."""
    return tuple(_rule(findings, name, unit, rule) for name, unit in _named(findings) for rule in unit.rules)


def _named(findings: Findings) -> Iterator[tuple[str, Unit]]:
    """(the name of its search, unit)."""
    for name, outcome in zip(searches.search_names(findings), findings.searches, strict=True):
        yield from ((name, unit) for unit in findings.units_of(outcome))


def prediction_rows(findings: Findings) -> Iterator[PredictionRow]:
    """Every score of every account; in the order of the accounts."""
    named = zip(searches.search_names(findings), findings.searches, strict=True)
    for name, account in ((name, account) for name, outcome in named for account in outcome.accounts):
        about = {"unit": str(account.neuron), "regime": account.regime.arrow}
        right, beside = account.becomes_right, account.beside_right
        scored = [("flips" if right is None else "changes", score) for score in account.predictions]
        scored += [("becomes right", score) for score in (right, *beside) if score is not None]
        for target, score in scored:
            about |= {"search": name, "target": target}
            yield row_of(PredictionRow, score, nothing_above=account.nothing_above, **about)


def tree_rows(run: live_run.Run) -> Iterator[TreeRow]:
    """A row a tested group, children under their parent, as far as the run has got.

    Depth first with a stack, since a tree may be deeper than Python's own.
    """
    for view in run.told.searches.values():
        if view.at.kind in OF_A_RUN:
            children = defaultdict[int | None, list[Node]](list)
            for node in view.nodes.values():
                if node.verdict:
                    children[node.parent].insert(0, node)
            waiting = [(node, 0) for node in children[None]]
            while waiting:
                node, depth = waiting.pop()
                units = node.printed(view.at.basis)
                yield row_of(TreeRow, node, search=view.search, depth=depth, units=units)
                waiting += [(child, depth + 1) for child in children[node.id]]


def certificate_rows(run: live_run.Run) -> Iterator[CertificateRow]:
    """A row a certificate, oldest first. A changed certificate is refused by name."""
    for one in run.store.certificates():
        units, arrow = ", ".join(one.units), Regime(one.regime).arrow
        yield row_of(CertificateRow, one, examples=len(one.example_ids), units=units, regime=arrow)


def candidate_rows(run: live_run.Run, asked: Regime | None = None) -> Iterator[CandidateRow]:
    """A row a unit, the largest |EAP-IG| first; in the order of channels where nothing read the scores."""
    found = {
        (search.regime, agonist.neuron): "τ-agonist" if agonist.is_tau_agonist else "localized"
        for search in (run.findings.searches if run.finished else ())
        for agonist in search.agonists
    }
    for basis, regime in product(run.config.bases, run.regimes if asked is None else [asked]):
        kept = [
            (score, Neuron(basis, part.layer, int(channel)))
            for part in run.candidates(basis, regime).layers
            for channel, score in zip(part.channels, part.scored, strict=True)
        ]
        kept.sort(key=lambda pair: (-abs(pair[0] or 0.0), pair[1]))
        for rank, (score, unit) in enumerate(kept, 1):
            told = {"search": f"{basis.value} {regime.arrow}", "found": found.get((regime, unit), "")}
            place = None if score is None else rank
            yield CandidateRow(layer=unit.layer, rank=place, unit=str(unit), score=score, **told)


KINDS: Mapping[str, tuple[type, Callable[[live_run.Run], Iterable[Any]]]] = {
    "units": (UnitRow, lambda run: unit_rows(opening.findings_of(run))),
    "rules": (RuleRow, lambda run: rule_rows(opening.findings_of(run))),
    "predictions": (PredictionRow, lambda run: prediction_rows(opening.findings_of(run))),
    "tree": (TreeRow, tree_rows),
    "certificates": (CertificateRow, certificate_rows),
    "claims": (ClaimRow, lambda run: [row_of(ClaimRow, one) for one in Ledger(run.store).entries()]),
    "candidates": (CandidateRow, candidate_rows),
}
"""Of each kind its class, and the rows of a run."""


def unit_row(unit: Unit, search: str = "") -> UnitRow:
    """What was found of one unit."""
    selective = "not run" if unit.controls is None else unit.controls.selective.value
    told = {"unit": str(unit.neuron), "certainty": shown_units.unit_status(unit), "selective": selective}
    rank = shown_units.above(unit)
    return row_of(
        UnitRow, unit, search=search, random_below=rank and rank.count, random_units=rank and rank.n, **told
    )


def _rule(findings: Findings, search: str, unit: Unit, rule: UnitRule) -> RuleRow:
    anchored, learned = rule.family is Family.ANCHORED, None if rule.rule is None else str(rule.rule)
    scored = rule.held_out if anchored else rule.interval
    why = "none learned" if anchored else f"none: {rule.status.value}"
    return row_of(
        RuleRow,
        rule,
        **{"search": search, "unit": str(unit.neuron), "regime": unit.agonist.regime.arrow},
        **{"rule": learned if rule.shown else None, "learned": learned, "absent": "" if learned else why},
        shown=shown_words(rule),
        **{name: scored and getattr(scored, name) for name in ("mcc", "positives")},
        records=scored and scored.n,
        coverage=rule.held_out.coverage if anchored and rule.held_out else None,
        hq_t=anchored and findings.is_hq_t(rule),
        prompt_only=rule.shown and rule.prompt_only,
    )
