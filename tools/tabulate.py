"""Where a predicate holds and where not: how many records a unit flips of each, from its certificate."""

from __future__ import annotations

from collections.abc import Mapping

from mecharule_ops.errors import ClaimNotSupported
from mecharule_ops.findings.controls import permutation_p
from mecharule_ops.numbers import percent
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.run.opening import find_certificate, opened
from mecharule_ops.saying.fact import fact
from mecharule_ops.saying.properties import PROPERTIES, Property
from mecharule_ops.types import FlipCount, FlipEstimate
from tools._ablations import accepted, price_words
from tools._accounts import Asked
from tools.arguments import TabulateArguments
from tools.registry import Tell, ToolResult, stated


def tabulate(given: TabulateArguments, tell: Tell) -> ToolResult:
    """Both counts, and a permutation test of their difference, on the records of both slices.

    Cost: one completion an example of both slices for a unit that has no certificate yet. Raises `ClaimNotSupported`
    for a predicate that the run's records cannot tell.
    """
    asked_for = PROPERTIES.get(given.predicate, Property.of(given.predicate))
    with opened(given.run) as run:
        asked = Asked.of(run, given)
        try:
            fires = run.fires(asked_for.predicate)
        except PredicateRefused as refused:
            raise ClaimNotSupported(
                f"the records of this run cannot tell {given.predicate}: {refused}"
            ) from None
        places = {record.example.id: place for place, record in enumerate(run.records)}
        found = find_certificate(run, (asked.neuron,), asked.regime)
        price = price_words(run, 0 if found else len(run.slices(asked.regime).positions))
    if found is None:
        accepted(price, given.yes, tell)
        from mecharule_ops.run.certify import certificate_now

        found = certificate_now(given.run, (asked.neuron,), asked.regime, tell)
    counts = {True: [0, 0], False: [0, 0]}
    for row in found.rows:
        count = counts[bool(fires[places[row.example]])]
        count[0] += row.flipped
        count[1] += 1
    there, elsewhere = (FlipCount(flips=flips, n=n) for flips, n in (counts[True], counts[False]))
    data: Mapping[str, object] = {
        **asked.data,
        "predicate": asked_for.predicate,
        "holds": {"flips": there.flips, "n": there.n},
        "elsewhere": {"flips": elsewhere.flips, "n": elsewhere.n},
        "p": (p := permutation_p(FlipEstimate(associated=there, unrelated=elsewhere))),
        "alpha": asked.findings.alpha,
    }
    sources = (f"c:{found.id}", f"run:{asked.findings.run}")
    said = (
        f"Ablating {asked.neuron} alone flips {_of(there, asked_for.where)} and {_of(elsewhere, asked_for.elsewhere)} "
        f"({asked_for.predicate})"
    )
    return stated(
        data,
        [
            fact(sentence, *sources, unit=asked.neuron)
            for sentence in (said, _apart(there, elsewhere, p, data))
        ],
    )


def _of(count: FlipCount, what: str) -> str:
    share = f" ({percent(count.flip_rate)})" if count.n else ""
    return f"{count.flips} of {count.n} {what}{share}"


def _apart(there: FlipCount, elsewhere: FlipCount, p: float, data: Mapping[str, object]) -> str:
    """Whether the two rates are told apart."""
    if not (there.n and elsewhere.n):
        return "All records lie on one side, so nothing is compared"
    told = "told apart" if p <= float(str(data["alpha"])) else "not told apart"
    return (
        f"The two rates are {told} by these {there.n + elsewhere.n} records, which chose the unit (permutation test, "
        f"p = {p:.2g}, for this one question)"
    )
