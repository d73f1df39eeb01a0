"""Whether a certificate holds: its own arithmetic, and its rows against those of a second run."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from mecharule_ops import confidence, errors, types
from mecharule_ops.certificates.certificate import (
    KINDS,
    Certificate,
    Completion,
    ExampleRow,
    SliceTotal,
    ablated,
)

_Key = tuple[str | None, str | None, int]
_BOUND_TOLERANCE = 1e-9


class VerificationStatus(StrEnum):
    """The word that `mecharule verify` prints."""

    MATCH = "match"
    DIFFERS = "differs"
    CANNOT = "cannot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What a second run said about a certificate."""

    status: VerificationStatus
    differing: tuple[int, ...] = ()
    """Examples that differ with no near tie to explain it."""
    sentence: str


def totals_of(rows: Sequence[ExampleRow], alpha: float) -> tuple[SliceTotal, ...]:
    """Flips, n and bounds of each (unit, held units, slice), in order of appearance."""
    counts: dict[tuple[str | None, str | None, str], list[bool]] = {}
    for row in rows:
        counts.setdefault((row.unit, row.held, row.slice), []).append(row.flipped)
    return tuple(
        SliceTotal(
            slice=name,
            unit=unit,
            held=held,
            flips=sum(flips),
            n=len(flips),
            lower=confidence.lower_bound(sum(flips), len(flips), alpha / 2),
            upper=confidence.upper_bound(sum(flips), len(flips), alpha / 2),
        )
        for (unit, held, name), flips in counts.items()
    )


def inconsistencies(certificate: Certificate) -> tuple[str, ...]:
    """Sentences, one for each thing in a certificate that contradicts its own rows; none when it adds up."""
    if not 0 < certificate.alpha < 1:
        return (f"alpha {certificate.alpha} is not between 0 and 1",)
    return (*_header_faults(certificate), *_row_faults(certificate), *_total_faults(certificate))


def compare_rows(
    certificate: Certificate, rerun: Sequence[ExampleRow], *, tie_margin: float = 1e-3
) -> Verification:
    """A certificate's rows against those of a second run, matched by unit and example.

    An example differs when a completion's tokens or label differ, before or after the ablation. Where one run led by
    less than `tie_margin` logits and the other by less than ten times that, it is a near tie: rounding may decide it,
    so it is no mismatch. In the phase `decode` the first token is the unablated model's on both sides: a near tie
    before the ablation that gave another first token explains what followed on it.
    """
    inherits = certificate.intervention.phase == types.Phase.DECODE
    again = {_key(row): row for row in rerun}
    missing = sorted({row.example for row in certificate.rows if _key(row) not in again})
    if missing:
        return cannot(f"the second run has no result for {_some(missing)}")
    changed = [
        (row.example, _is_near_tie(row, new, tie_margin, inherits))
        for row, new in ((row, again[_key(row)]) for row in certificate.rows)
        if _differs(row, new)
    ]
    differing = tuple(sorted({example for example, near in changed if not near}))
    ties = tuple(sorted({example for example, near in changed if near} - set(differing)))
    status = VerificationStatus.DIFFERS if differing else VerificationStatus.MATCH
    sentence = _sentence(len(certificate.example_ids), differing, ties)
    return Verification(status=status, differing=differing, sentence=sentence)


def cannot(reason: str) -> Verification:
    """The answer when a certificate could not be re-run."""
    return Verification(status=VerificationStatus.CANNOT, sentence=f"cannot verify: {reason}")


def verify(
    certificate: Certificate,
    rerun: Callable[[Certificate], Sequence[ExampleRow]],
    *,
    numbers: str | None = None,
) -> Verification:
    """Checks the arithmetic, then re-runs the ablations by `rerun`, which is all the cost, and compares.

    `numbers` says in what type and where that is done; None as the certificate's own.
    """
    faults = inconsistencies(certificate)
    if faults:
        sentence = "differs: it contradicts its own rows: " + "; ".join(faults)
        return Verification(status=VerificationStatus.DIFFERS, sentence=sentence)
    try:
        rows = rerun(certificate)
    except errors.ModelUnavailable as error:
        return cannot(str(error))
    found = compare_rows(certificate, rows)
    if numbers is None or numbers == certificate.numbers:
        return found
    return _unlike(found, f"made in {certificate.numbers}, run again in {numbers}")


def _unlike(found: Verification, how: str) -> Verification:
    """What a second run in other numbers says: what matches matches, but a difference refutes nothing."""
    if found.status is VerificationStatus.MATCH:
        return replace(found, sentence=f"{found.sentence} ({how}, so not an exact comparison)")
    sentence = f"cannot verify exactly: {how}, where it {found.sentence}; verify where it was made"
    return replace(found, status=VerificationStatus.CANNOT, sentence=sentence)


def _header_faults(certificate: Certificate) -> Iterator[str]:
    if certificate.kind not in KINDS:
        yield f"kind {certificate.kind!r} is none of {', '.join(KINDS)}"
    if not certificate.rows:
        yield "there are no rows"
    if not certificate.units:
        yield "there are no units"
    if len(set(certificate.units)) < len(certificate.units):
        yield "a unit is named twice"
    named = (*certificate.units, *certificate.given)
    yield from (f"{unit!r} is not how a unit prints" for unit in named if not _prints(unit))
    if certificate.regime not in (0, 1):
        yield f"regime {certificate.regime} is neither 0 nor 1"
    rule = certificate.rule
    if rule and not (-1 <= rule.mcc <= 1 and 0 <= rule.coverage <= 1 and 0 <= rule.positives <= rule.n):
        yield "the rule's score is out of range"


def _prints(unit: str) -> bool:
    try:
        return str(types.Neuron.parse(unit)) == unit
    except errors.UsageError:
        return False


def _row_faults(certificate: Certificate) -> Iterator[str]:
    if len({_key(row) for row in certificate.rows}) < len(certificate.rows):
        yield "an example appears twice for the same units"
    if len({row.unit is None for row in certificate.rows}) > 1:
        yield "some rows ablate all units together, others one"
    labels: dict[tuple[int, tuple[int, ...]], bool] = {}
    prompts: dict[int, str] = {}
    for row in certificate.rows:
        units = ablated(certificate.units, row.unit)
        if not set(units) <= set(certificate.units):
            yield f"example {row.example}: {row.unit} is not among the units"
        if row.held is not None and set(units) & set(row.held.split("+")):
            yield f"example {row.example}: {row.held} is held and ablated at once"
        if row.before.label != bool(certificate.regime):
            yield f"example {row.example}: its label before is not the regime's"
        if prompts.setdefault(row.example, row.prompt) != row.prompt:
            yield f"example {row.example}: it has two prompts"
        for side in (row.before, row.after):
            if labels.setdefault((row.example, side.tokens), side.label) != side.label:
                yield f"example {row.example}: the same completion has two labels"


def _total_faults(certificate: Certificate) -> Iterator[str]:
    stated = {(total.unit, total.held, total.slice): total for total in certificate.totals}
    derived = {(t.unit, t.held, t.slice): t for t in totals_of(certificate.rows, certificate.alpha)}
    if len(stated) < len(certificate.totals) or stated.keys() != derived.keys():
        yield "the totals are not of the slices that the rows have"
    for key in stated.keys() & derived.keys():
        total, true = stated[key], derived[key]
        name = f"{total.slice} of {total.unit}" if total.unit else total.slice
        if (total.flips, total.n) != (true.flips, true.n):
            yield f"{name}: {total.flips}/{total.n} flips stated, the rows have {true.flips}/{true.n}"
        # Not equality: another SciPy may round the bounds' last digits differently.
        gaps = (abs(total.lower - true.lower), abs(total.upper - true.upper))
        if not all(gap <= _BOUND_TOLERANCE for gap in gaps):
            yield f"{name}: the bounds are not those of {true.flips}/{true.n} at alpha {certificate.alpha}"


def _key(row: ExampleRow) -> _Key:
    return row.unit, row.held, row.example


def _differs(row: ExampleRow, new: ExampleRow) -> bool:
    same_sides = not (_changed(row.before, new.before) or _changed(row.after, new.after))
    return row.prompt != new.prompt or not same_sides


def _changed(side: Completion, new: Completion) -> bool:
    return side.tokens != new.tokens or side.label != new.label


def _is_near_tie(row: ExampleRow, new: ExampleRow, tie_margin: float, inherits: bool) -> bool:
    """Every side that changed was a near tie, or `inherits` its first token of one."""
    before, after = (
        any(abs(side.margin) < tie_margin for side in sides)
        and all(abs(side.margin) < 10 * tie_margin for side in sides)
        for sides in ((row.before, new.before), (row.after, new.after))
    )
    first_differs = row.before.tokens[:1] != new.before.tokens[:1]
    its_own = all(each.after.tokens[:1] == each.before.tokens[:1] for each in (row, new))
    after = after or (inherits and before and first_differs and its_own)
    explained = (before or not _changed(row.before, new.before)) and (
        after or not _changed(row.after, new.after)
    )
    return row.prompt == new.prompt and explained


def _sentence(count: int, differing: Sequence[int], ties: Sequence[int]) -> str:
    head = (
        f"differs: {len(differing)} of {count} examples differ" if differing else f"match: {count} examples"
    )
    names = f" ({_some(differing)})" if differing else ""
    return head + names + (f"; {len(ties)} more differ at a near tie ({_some(ties)})" if ties else "")


def _some(examples: Sequence[int], limit: int = 5) -> str:
    shown = ", ".join(str(example) for example in examples[:limit])
    rest = len(examples) - limit
    return f"examples {shown}" + (f" and {rest} more" if rest > 0 else "")
