"""When a unit flips, and what its flips go with: read from the run, or made now for a unit that has no account."""

from __future__ import annotations

import pathlib
from functools import partial

from mecharule_ops.codec import encode
from mecharule_ops.events import Event
from mecharule_ops.findings.accounts import Account as Made
from mecharule_ops.pipeline.accounting import account_forwards, kept_accounts, observe_further
from mecharule_ops.pipeline.opening import check_direction, check_unit, opened, regime_of, strongest_regime
from mecharule_ops.pipeline.run import Run
from mecharule_ops.report.account_lines import account_links
from mecharule_ops.types import Neuron
from tools._ablations import accepted, price_words
from tools._figures import written
from tools.arguments import Account
from tools.registry import Tell
from tools.result import ToolResult


def account(given: Account, tell: Tell) -> ToolResult:
    """Flips, first-order predictions, three families beside free-form trees, the drive, and what first order misses.

    Cost: nothing where the run holds the account; otherwise what `--estimate` says, and it is kept.
    """
    unit = Neuron.parse(given.neuron)
    with opened(given.run) as run:
        check_unit(run, unit)
        regime = regime_of(given.regime) or strongest_regime(run, unit)
        check_direction(run.id, regime, hidden=run.config.suppress_only)
        known = run.account(unit, regime)
        price = price_words(run, 0 if known else account_forwards(run, regime))
        identifier = run.id
    if given.estimate:
        return ToolResult(data={"run": identifier, "price": price.data}, text=f"price: {price.words}")
    if known is None:
        accepted(price, given.yes, tell)
        with opened(given.run, write=True, tell=tell) as run:
            observe_further(run)
            (known,) = kept_accounts(run, [unit], regime, partial(_told, run))
    files = [] if given.svg is None else _figures(known, pathlib.Path(given.svg))
    lines = [f"{unit} ({regime.arrow}) in run {identifier}: when it flips [run:{identifier}]"]
    for name, said in account_links(known):
        lines += [f"  {name if index == 0 else '':9} {line}" for index, line in enumerate(said)]
    lines += [f"  figure    {file}" for file in files]
    return ToolResult(data={"run": identifier, **encode(known), "figures": files}, text="\n".join(lines))


def _told(run: Run, event: Event) -> None:
    run.store.append([event])


def _figures(account: Made, folder: pathlib.Path) -> list[str]:
    from mecharule_ops.report.account_plots import account_figures

    return written(account_figures(account), folder)
