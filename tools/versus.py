"""Two units on the same examples: what each flips, what both flip, and whether they are told apart."""

from __future__ import annotations

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.errors import UsageError
from mecharule_ops.findings.records import Findings
from mecharule_ops.pipeline.opening import check_unit, findings_of, opened, outcome_for, regime_of
from mecharule_ops.questions.paired import Paired
from mecharule_ops.saying.fact import Fact, fact
from mecharule_ops.types import Neuron
from tools._ablations import accepted, certificate_now, find_certificate, price_words
from tools._accounts import flips_fact, slices_data
from tools.arguments import Versus
from tools.registry import Tell
from tools.result import ToolResult, stated


def versus(given: Versus, tell: Tell) -> ToolResult:
    """Both units' certificates beside each other, example by example, with an exact paired test at α.

    Cost: one completion an example of both slices for a unit that has no certificate yet.
    """
    units = Neuron.parse(given.first), Neuron.parse(given.second)
    if units[0] == units[1]:
        raise UsageError(f"expected two units to compare, got {units[0]} twice")
    with opened(given.run) as run:
        findings = findings_of(run)
        for unit in units:
            check_unit(run, unit)
        regime = outcome_for(findings, units[0], regime_of(given.regime)).regime
        outcome_for(findings, units[1], regime)
        missing = [unit for unit in units if find_certificate(run, (unit,), regime) is None]
        slices = run.slices(regime) if missing else None
        examples = 0 if slices is None else len(slices.associated) + len(slices.unrelated)
        price = price_words(run, len(missing) * examples)
    if missing:
        accepted(price, given.yes, tell)
    first, second = (certificate_now(given.run, (unit,), regime, tell) for unit in units)
    paired = Paired.of(_flipped(first), _flipped(second), set(first.example_ids) & set(second.example_ids))
    data = {
        "run": findings.run,
        "regime": regime.value,
        "alpha": findings.alpha,
        "units": [
            {"neuron": str(unit), "slices": slices_data(one), "certificate": one.id}
            for unit, one in zip(units, (first, second), strict=True)
        ],
        "both": {"flips": paired.both, "n": paired.n},
        "first_only": {"flips": paired.first_only, "n": paired.n},
        "second_only": {"flips": paired.second_only, "n": paired.n},
        "p": paired.p,
        "certificates": [first.id, second.id],
    }
    return stated(data, _facts(findings, units, (first, second), paired))


def _flipped(certificate: Certificate) -> set[int]:
    return {row.example for row in certificate.rows if row.flipped}


def _facts(
    findings: Findings,
    units: tuple[Neuron, Neuron],
    certificates: tuple[Certificate, Certificate],
    paired: Paired,
) -> tuple[Fact, ...]:
    names = tuple(map(str, units))
    own = [flips_fact(one, findings.tau) for one in certificates]
    sources = (*(f"c:{one.id}" for one in certificates), f"run:{findings.run}")
    apart = fact(
        f"Of {paired.n} examples that both were tested on, both flip {paired.both}, "
        f"{names[0]} alone flips {paired.first_only} and {names[1]} alone {paired.second_only}",
        *sources,
    )
    return (*own, apart, _verdict(names, paired, findings.alpha, sources))


def _verdict(names: tuple[str, ...], paired: Paired, alpha: float, sources: tuple[str, ...]) -> Fact:
    if paired.p > alpha:
        words = f"These examples do not tell {names[0]} and {names[1]} apart"
    else:
        more, fewer = names if paired.first_only > paired.second_only else names[::-1]
        words = f"{more} flips more of them than {fewer}"
    return fact(f"{words} (exact paired test p = {paired.p:.3g}, α = {alpha:g})", *sources)
