"""When a unit flips and how its flips come about: read from the run, or measured now, certified and kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from mecharule_ops.codec import encode
from mecharule_ops.events import Event
from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.chain import Chain
from mecharule_ops.plain_text import write_file
from mecharule_ops.report.unit_account import account_figures, account_links
from mecharule_ops.run.accounting import account_forwards, kept_accounts, observe_further
from mecharule_ops.run.chains import kept_chain, plan
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import (
    check_direction,
    check_unit,
    findings_of,
    keep,
    opened,
    regime_of,
    strongest_regime,
)
from mecharule_ops.saying.chain_lines import chain_links
from mecharule_ops.types import Neuron, Regime
from tools import arguments
from tools._ablations import accepted, price_words
from tools.registry import Tell, ToolResult


def account(given: arguments.AccountArguments, tell: Tell) -> ToolResult:
    """Flips, first-order predictions, three families beside free-form trees, the drive, and what first order misses.

    Cost: nothing where the run holds the account; otherwise what `--estimate` says, and it is kept.
    """
    with opened(given.run) as run:
        unit, regime = _asked(run, given)
        known = run.account(unit, regime)
        price = price_words(run, 0 if known else account_forwards(run, regime))
        identifier = run.id
    if given.estimate:
        return price.stated(identifier)
    if known is None:
        accepted(price, given.yes, tell)
        with opened(given.run, write=True, tell=tell) as run:
            observe_further(run)
            (known,) = kept_accounts(run, [unit], regime, partial(_told, run))
    head = f"{unit} ({regime.arrow}) in run {identifier}: when it flips [run:{identifier}]"
    return _shown(head, identifier, known, account_links(known), given.svg)


def path(given: arguments.PathArguments, tell: Tell) -> ToolResult:
    """Every link with its certificate or run; ablations are certified and the chain is kept in the run.

    Cost: the plan's ablated completions, said before they are run; nothing where the run holds the chain.
    """
    with opened(given.run) as run:
        unit, regime = _asked(run, given)
        known = None if given.again else run.chain(unit, regime)
        asked = (
            None
            if known
            else plan(run, findings_of(run), unit, regime, most=given.units, layers=not given.no_layers)
        )
        price = price_words(run, asked.example_forwards if asked else 0)
        identifier = run.id
    if given.estimate:
        return price.stated(identifier)
    if asked is not None:
        accepted(price, given.yes, tell)
        with opened(given.run, write=True, tell=tell) as run:
            known = kept_chain(run, asked, partial(keep, run))
    assert known is not None
    head = f"{unit} ({regime.arrow}) in run {identifier}: how its flips come about"
    return _shown(head, identifier, known, chain_links(known, identifier), given.svg)


def _asked(run: Run, given: arguments.DirectedArguments) -> tuple[Neuron, Regime]:
    """The unit and the direction asked for, else that in which it is strongest."""
    unit = Neuron.parse(given.neuron)
    check_unit(run, unit)
    regime = regime_of(given.regime) or strongest_regime(run, unit)
    check_direction(run.id, regime, hidden=run.config.suppress_only)
    return unit, regime


def _told(run: Run, event: Event) -> None:
    run.store.append([event])


def _shown(
    head: str,
    run: str,
    known: Account | Chain,
    links: Iterable[tuple[str, Sequence[str]]],
    svg: str | None,
) -> ToolResult:
    """The links under their names, and the figures as files of their own where a folder is named."""
    files = [] if svg is None else _written(known, Path(svg))
    lines = [head]
    for name, said in links:
        lines += [f"  {name if index == 0 else '':9} {line}" for index, line in enumerate(said)]
    lines += [f"  figure    {file}" for file in files]
    return ToolResult(data={"run": run, **encode(known), "figures": files}, text="\n".join(lines))


def _written(known: Account | Chain, folder: Path) -> list[str]:
    """The SVG files written, one a figure. Raises `StoreError` when the folder cannot be written."""
    from mecharule_ops.report.chain_plots import chain_figures
    from mecharule_ops.report.drawing import standalone

    figures = chain_figures(known) if isinstance(known, Chain) else account_figures(known)
    return [str(write_file(folder / f"{name}.svg", standalone(svg))) for name, (svg, _) in figures.items()]
