"""The account of a unit as lines for a person: what predicts its flips, and what that is worth."""

from __future__ import annotations

from mecharule_ops.findings.accounts import Account, Band, DropError, PredictionKind, PredictionScore
from mecharule_ops.numbers import k_of_n, percent, signed
from mecharule_ops.rules.driven import DriveRule
from mecharule_ops.rules.families import FamilyRule
from mecharule_ops.rules.trees import Push, Pushes
from mecharule_ops.saying.account_facts import beside_words, caveats
from mecharule_ops.saying.chain_lines import Link
from mecharule_ops.saying.rules import family_words, short, worded
from mecharule_ops.types import FlipCount

EXPLAINS_THE_PREDICTOR = "it explains the predictor, not the network"
_PUSHES = 5


def account_links(account: Account) -> tuple[Link, ...]:
    """Every part in order; a part that was not measured is left out."""
    links = (
        ("flips", _flips(account)),
        ("predicted", _predicted(account)),
        *_families(account),
        ("responds", _drive(account.drive)),
        ("drop", _drop(account.drop_error)),
        ("linear", _linearity(account.prediction(PredictionKind.INTEGRATED))),
        ("trees", push_lines(account.pushes)),
    )
    return tuple((name, lines) for name, lines in links if lines)


def push_lines(pushes: Pushes | None, most: int = _PUSHES) -> tuple[str, ...]:
    """What the free-form model of the prompt's columns goes by."""
    if pushes is None or not pushes.predicates:
        return ()
    head = f"towards a flip, in log-odds, says the free-form model of the prompt ({EXPLAINS_THE_PREDICTOR}):"
    return (head, *(_push(push) for push in pushes.predicates[:most]))


def _push(push: Push) -> str:
    where, elsewhere = push.mean(holds=True), push.mean(holds=False)
    parts = [f"{signed(where)} where it holds"] if where is not None else []
    parts += [f"{signed(elsewhere)} elsewhere"] if elsewhere is not None else []
    return f"  {push.predicate}: {', '.join(parts)}"


def _flips(account: Account) -> tuple[str, ...]:
    count = FlipCount(flips=account.flips, n=account.records)
    return (f"{k_of_n(count)} of the records; {account.held_out:,} of them, held out, score what follows",)


def _predicted(account: Account) -> tuple[str, ...]:
    """The first-order prediction beside what is simpler, then what happened by how far the drop lies from the lead."""
    score, right = account.first_order, account.becomes_right
    if score is None:
        return ("no held-out record could be asked",)
    if score.held_out is None:
        return ("too few held-out records of one side for an interval", *caveats(account))
    what = "it flips" if right is None else "the answer changes"
    said = f"{what} where its drop exceeds the lead (logit difference), nothing fitted:"
    lines = [f"{said} {beside_words(score, account.predictions)}"]
    if right is not None and right.held_out is not None:
        lines.append(f"that the new answer is right: {beside_words(right, account.beside_right)}")
    if account.bands:
        lines.append(f"it happens in {', '.join(map(_band, account.bands))}")
    return (*lines, *caveats(account))


def _band(band: Band) -> str:
    count = k_of_n(FlipCount(flips=band.happened, n=band.records))
    mcc = f", MCC {band.held_out}" if band.name == "between" and band.held_out is not None else ""
    return f"{count} where {band.name}{mcc}"


def _linearity(score: PredictionScore | None) -> tuple[str, ...]:
    if score is None or score.held_out is None:
        return ()
    return (
        f"integrated over two points, at the price of an ablation, the drop says MCC {score.held_out}: a check, no "
        "prediction",
    )


def _families(account: Account) -> tuple[Link, ...]:
    """A link a family; one for all where all have no rule for the same reason."""
    statuses = {rule.status for rule in account.families}
    if (
        len(statuses) == 1
        and account.families[0].rule is None
        and not any(rule.free_form for rule in account.families)
    ):
        return (("rules", (f"none: {account.families[0].status.value}",)),)
    return tuple((rule.family.value, (_family(rule),)) for rule in account.families)


def _family(rule: FamilyRule) -> str:
    share = rule.share_of_free_form
    return family_words(rule) + ("" if share is None or share > 1 else f", {percent(share)} of it")


def _drive(drive: DriveRule | None) -> tuple[str, ...]:
    if drive is None:
        return ()
    if drive.rule is None:
        return (drive.status.value,)
    rule = worded(drive.rule, drive.words)
    return (f"its drop is {drive.threshold:.3g} logits or more where {rule} – MCC {drive.held_out}",)


def _drop(error: DropError | None) -> tuple[str, ...]:
    if error is None:
        return ()
    return (
        f"the lead falls by {error.measured:.2f} logits (median of {error.records}), first order says "
        f"{round(error.first_order, 2) + 0.0:.2f}; the two differ by {error.error:.2f} (median)"
        + ("" if error.spearman is None else f", rank correlation {short(error.spearman)}"),
    )
