"""What is known of a unit beyond the search: when it flips, how its flips come about, and what stands beside it.

Read from the run; what is missing is measured at one price, certified and kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.codec import encode
from mecharule_ops.errors import UsageError
from mecharule_ops.events import Event
from mecharule_ops.facts.account_facts import account_verdict, chain_verdict
from mecharule_ops.facts.chain_lines import Link, chain_links
from mecharule_ops.facts.fact import Fact, FactValue, fact
from mecharule_ops.findings.accounts import Account, PredictionKind
from mecharule_ops.findings.chain import Chain
from mecharule_ops.findings.controls import AgonistControls, decided
from mecharule_ops.pages.unit_account import account_figures, account_links
from mecharule_ops.plain_text import write_file
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import check_unit, findings_of, keep, regime_for
from mecharule_ops.store import keys
from mecharule_ops.thresholds import RANDOM_UNITS
from mecharule_ops.types import Neuron, Regime
from tools._accounts import controls_data, controls_facts
from tools.arguments import ExplainArguments, Explained
from tools.result import Tell, ToolResult, of_facts

if TYPE_CHECKING:
    from mecharule_ops.run.chains import ChainPlan

DRIVE, CHAIN, CONTROLS = get_args(Explained)
CERTIFIED = 4
"""Random units whose ablations are certified, those drawn first."""


def explain_price(run: Run, given: ExplainArguments) -> int:
    """Of every part that is asked for and missing, about how many ablated completions it takes."""
    from mecharule_ops.run.accounting import account_forwards
    from mecharule_ops.run.controlling import OF_LAYER, control_records

    unit, regime = _asked(run, given)
    parts, price = _parts(given), 0
    if DRIVE in parts and run.account(unit, regime) is None:
        price += account_forwards(run, regime)
    if CHAIN in parts and _chain(run, given, unit, regime) is None:
        price += _plan(run, given, unit, regime).example_forwards
    if CONTROLS in parts and run.controls(unit, regime) is None:
        units = CERTIFIED + _drawn(run) + OF_LAYER + 1
        price += units * len(control_records(run, regime)) + 2 * len(run.slices(regime).positions)
    return price


def explain(run: Run, given: ExplainArguments, tell: Tell) -> ToolResult:
    """The verdict of each part, then its numbers link by link; figures as files where a folder is named."""
    unit, regime = _asked(run, given)
    parts = _parts(given)
    facts: list[Fact] = []
    drawn: list[Account | Chain] = []
    if DRIVE in parts:
        drive = run.account(unit, regime)
        if drive is None:
            from mecharule_ops.run.accounting import kept_accounts, observe_further

            def told(event: Event) -> None:
                run.store.append([event])

            observe_further(run)
            (drive,) = kept_accounts(run, [unit], regime, told)
        facts += _drive_facts(drive, run.id)
        drawn.append(drive)
    if CHAIN in parts:
        chain = _chain(run, given, unit, regime)
        if chain is None:
            from mecharule_ops.run.chains import kept_chain

            chain = kept_chain(run, _plan(run, given, unit, regime), partial(keep, run))
        facts += _chain_facts(chain, run.id)
        drawn.append(chain)
    if CONTROLS in parts:
        facts += _controls_facts(run, unit, regime)
    if given.svg is not None:
        files: list[FactValue] = [file for one in drawn for file in _written(one, Path(given.svg))]
        facts.append(
            fact(f"Figures: {', '.join(map(str, files))}", f"run:{run.id}", key="figures", value=files)
        )
    return of_facts(facts)


def _asked(run: Run, given: ExplainArguments) -> tuple[Neuron, Regime]:
    unit = Neuron.parse(given.neuron)
    check_unit(run, unit)
    return unit, regime_for(run, unit, given.regime)


def _parts(given: ExplainArguments) -> tuple[str, ...]:
    every = get_args(Explained)
    parts = every if given.parts is None else tuple(part.strip() for part in given.parts.split(","))
    if unknown := [part for part in parts if part not in every]:
        raise UsageError(f"expected parts of {', '.join(every)}; got {unknown[0]!r}")
    return parts


def _held(run: Run, given: ExplainArguments, unit: Neuron) -> tuple[Neuron, ...] | None:
    """The units that are to be held; None where none is named."""
    if given.hold is None:
        return None
    held = tuple(dict.fromkeys(map(Neuron.parse, given.hold.split(","))))
    for one in held:
        check_unit(run, one)
        if one == unit:
            raise UsageError(f"expected other units than {unit} to hold, got it itself")
    return held


def _chain(run: Run, given: ExplainArguments, unit: Neuron, regime: Regime) -> Chain | None:
    """The stored chain; None without one, or where it holds or pairs not all that are named."""
    known, held = run.chain(unit, regime), _held(run, given, unit)
    if known is None or held is None:
        return known
    measured = {one.held for one in known.mediation.through} | {pair.other for pair in known.pairs}
    return known if {str(one) for one in held} <= measured else None


def _plan(run: Run, given: ExplainArguments, unit: Neuron, regime: Regime) -> ChainPlan:
    from mecharule_ops.run.chains import plan

    return plan(run, findings_of(run), unit, regime, held=_held(run, given, unit))


def _drive_facts(drive: Account, run: str) -> Iterator[Fact]:
    """When it flips, and whether first order told it beforehand."""
    key = f"unit.{drive.neuron}.drive"
    yield from _verdict(account_verdict(drive, run), key, ("turned", "when", "registered"))
    values: Mapping[str, object] = {
        "flips": {"flips": drive.flips, "n": drive.records, "held_out": drive.held_out},
        "predicted": {
            "predictions": list(map(encode, drive.predictions)),
            "becomes_right": _encoded(drive.becomes_right),
            "bands": list(map(encode, drive.bands)),
        },
        "drop": _encoded(drive.drop_error),
        "linear": _encoded(drive.prediction(PredictionKind.INTEGRATED)),
        "rules": list(map(encode, drive.families)),
        **{rule.family.value: encode(rule) for rule in drive.families},
    }
    yield from _links(account_links(drive), key, values, {}, f"run:{run}", drive.neuron)


def _chain_facts(chain: Chain, run: str) -> Iterator[Fact]:
    """What breaks, what it writes and reads, what its flips go through, who else; ablations by their certificate."""
    key = f"unit.{chain.unit}.chain"
    yield from _verdict(
        chain_verdict(chain, run), key, ("turned", "first", "reading", "writing", "way", "carriers")
    )
    whole = encode(chain)
    values = {**whole, "through": whole["mediation"]}
    proofs = dict.fromkeys(("breaks", "through"), f"c:{chain.mediation_certificate}")
    if chain.pairs_certificate is not None:
        proofs["pairs"] = f"c:{chain.pairs_certificate}"
    yield from _links(chain_links(chain), key, values, proofs, f"run:{run}", chain.unit)


def _encoded(value: object) -> object:
    return None if value is None else encode(value)


def _verdict(said: Sequence[Fact], key: str, names: Sequence[str]) -> Iterator[Fact]:
    for one, name in zip(said, names, strict=False):
        yield replace(one, key=f"{key}.{name}", value=one.sentence)


def _links(
    links: Iterable[Link],
    key: str,
    values: Mapping[str, object],
    proofs: Mapping[str, str],
    source: str,
    unit: Neuron,
) -> Iterator[Fact]:
    """A fact a link, its lines one sentence."""
    for name, said in links:
        value: FactValue = values[name]  # type: ignore[assignment]
        sentence = "; ".join(said)
        yield fact(
            sentence[:1].upper() + sentence[1:],
            proofs.get(name, source),
            unit=unit,
            part=name.capitalize(),
            key=f"{key}.{name.replace(' ', '_')}",
            value=value,
        )


def _controls_facts(run: Run, unit: Neuron, regime: Regime) -> Iterator[Fact]:
    """What the run's report says of units beside it, or the same made now, corrected for no other unit."""
    from mecharule_ops.run.localise import slice_estimates

    key, source, tau = f"unit.{unit}.controls", f"run:{run.id}", run.config.tau
    controls = run.controls(unit, regime)
    if controls is None:
        controls, certificate = _beside(run, unit, regime)
        said = f"Certified: the first {len(certificate.units)} random units"
        yield fact(said, f"c:{certificate.id}", unit=unit, key=f"{key}.certificate", value=certificate.id)
    (main,) = slice_estimates(run, run.slices(regime), run.intervention(unit.basis), [(unit,)])
    data: Any = controls_data(controls, main, tau)
    claims = data.pop("claims")
    told = controls_facts(controls, main, tau, source)
    for one, name, value in zip(told, ("claims", "counts"), (claims, data), strict=True):
        yield replace(one, unit=str(unit), key=f"{key}.{name}", value=value)


def _beside(run: Run, unit: Neuron, regime: Regime) -> tuple[AgonistControls, Certificate]:
    """Controls made now and kept, with the certificate of the first random units; the run is open for writing."""
    from mecharule_ops.run.certify import ablation_rows, certified
    from mecharule_ops.run.controlling import beside, control_records, units_beside

    most, main = _drawn(run), run.intervention(unit.basis)
    fresh = beside(run, [unit], regime, most=most)
    (controls,) = decided(fresh, alpha=run.config.alpha, epsilon=run.config.epsilon)
    run.keep_of_unit(keys.controls(unit, regime), controls)
    records = {"held-out": control_records(run, regime).tolist()}
    others = units_beside(run, unit, most)[0][:CERTIFIED]
    each = ablation_rows(run, main, [(one,) for one in others], records)
    rows = tuple(
        replace(row, unit=str(one)) for one, of_one in zip(others, each, strict=True) for row in of_one
    )
    claim = (
        f"{len(others)} random units beside {unit}, the first of {most}, each ablated alone, flip "
        f"{sum(row.flipped for row in rows)}/{len(rows)} held-out examples ({regime.arrow})"
    )
    return controls, keep(run, certified(run, main, others, rows, regime=regime, kind="control", claim=claim))


def _drawn(run: Run) -> int:
    """Random units to draw: enough for a p, whatever fewer the run asked for."""
    return max(run.config.controls, RANDOM_UNITS)


def _written(known: Account | Chain, folder: Path) -> list[str]:
    """The SVG files written, one a figure. Raises `StoreError` when the folder cannot be written."""
    from mecharule_ops.pages.chain_plots import chain_figures
    from mecharule_ops.pages.drawing import standalone

    figures = chain_figures(known) if isinstance(known, Chain) else account_figures(known)
    return [str(write_file(folder / f"{name}.svg", standalone(svg))) for name, (svg, _) in figures.items()]
