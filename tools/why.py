"""Why a unit counts as an agonist: its account, with the certificate that every number rests on."""

from __future__ import annotations

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.codec import encode
from mecharule_ops.errors import ClaimNotSupported
from mecharule_ops.pipeline.opening import check_unit, findings_of, keep, opened, outcome_for, regime_of
from mecharule_ops.questions.unit_account import UnitAccount, account
from mecharule_ops.saying.accounts import explained, explanation
from mecharule_ops.saying.searches import search_name
from mecharule_ops.types import Neuron
from tools._accounts import account_data, account_lines
from tools.arguments import Why
from tools.registry import Tell
from tools.result import ToolResult


def why(given: Why, tell: Tell) -> ToolResult:
    """The account of a localized unit. Its certificate is made now, by one ablation, if the run has none.

    Raises `ClaimNotSupported` for a unit that the search did not localize.
    """
    neuron = Neuron.parse(given.neuron)
    with opened(given.run) as run:
        findings = findings_of(run)
        check_unit(run, neuron)
        outcome = outcome_for(findings, neuron, regime_of(given.regime))
        known = account(findings, outcome, neuron)
        if known is None:
            raise ClaimNotSupported(
                f"{neuron} was not localized in run {findings.run} ({search_name(outcome)}), so there is nothing to "
                f"explain; ask `mecharule why-not {findings.run} {neuron}`"
            )
        chain = run.chain(neuron, known.regime)
        account_of_unit = run.account(neuron, known.regime)
        certificate = _stored(run.store.certificates(), known)
    if certificate is None:
        tell(f"{neuron} has no certificate yet: one ablation on both slices")
        certificate = _made(given.run, known, tell)
    parts = explained(neuron, account_of_unit, chain, findings.run)
    sentences = explanation(parts)
    data = {
        "run": findings.run,
        "explanation": list(sentences),
        "parts": parts,
        "account": None if account_of_unit is None else encode(account_of_unit),
        "chain": None if chain is None else encode(chain),
        "search": search_name(outcome),
        **account_data(findings, known, certificate, given.show_text),
    }
    lines = [
        f"run {findings.run} · {search_name(outcome)}",
        *(f"  {sentence}" for sentence in sentences),
        *account_lines(findings.run, known, certificate, given.show_text),
    ]
    return ToolResult(data=data, text="\n".join(lines))


def _stored(certificates: tuple[Certificate, ...], known: UnitAccount) -> Certificate | None:
    """The certificate whose counts are those of the account."""
    estimate = known.agonist.estimate
    counts = {
        "associated": (estimate.associated.flips, estimate.associated.n),
        "unrelated": (estimate.unrelated.flips, estimate.unrelated.n),
    }
    wanted = {name: pair for name, pair in counts.items() if pair[1]}
    for certificate in certificates:
        totals = {total.slice: (total.flips, total.n) for total in certificate.totals}
        same_units = certificate.units == (str(known.neuron),) and certificate.regime == known.regime.value
        if same_units and certificate.kind in ("ablate", "why") and totals == wanted:
            return certificate
    return None


def _made(name: str, known: UnitAccount, tell: Tell) -> Certificate:
    from mecharule_ops.pipeline.certify import certify

    with opened(name, write=True, tell=tell) as run:
        made = certify(run, (known.neuron,), known.regime, kind="why", rule=known.rule)
        return keep(run, made)
