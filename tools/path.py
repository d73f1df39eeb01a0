"""The chain of a unit: measured now and certified, or read where the run holds it already."""

from __future__ import annotations

import pathlib
from functools import partial

from mecharule_ops.codec import encode
from mecharule_ops.findings.chain import Chain
from mecharule_ops.pipeline.chains import kept_chain, plan
from mecharule_ops.pipeline.opening import (
    check_direction,
    check_unit,
    findings_of,
    keep,
    opened,
    regime_of,
    strongest_regime,
)
from mecharule_ops.saying.chain_lines import chain_links
from mecharule_ops.types import Neuron
from tools._ablations import accepted, price_words
from tools._figures import written
from tools.arguments import Path
from tools.registry import Tell
from tools.result import ToolResult


def path(given: Path, tell: Tell) -> ToolResult:
    """Every link with its certificate or run; ablations are certified and the chain is kept in the run.

    Cost: the plan's ablated completions, said before they are run; nothing where the run holds the chain.
    """
    unit = Neuron.parse(given.neuron)
    with opened(given.run) as run:
        check_unit(run, unit)
        regime = regime_of(given.regime) or strongest_regime(run, unit)
        check_direction(run.id, regime, hidden=run.config.suppress_only)
        known = None if given.again else run.chain(unit, regime)
        asked = (
            None
            if known
            else plan(run, findings_of(run), unit, regime, most=given.units, layers=not given.no_layers)
        )
        price = price_words(run, asked.example_forwards if asked else 0)
        identifier = run.id
    if given.estimate:
        return ToolResult(data={"run": identifier, "price": price.data}, text=f"price: {price.words}")
    if asked is not None:
        accepted(price, given.yes, tell)
        with opened(given.run, write=True, tell=tell) as run:
            known = kept_chain(run, asked, partial(keep, run))
    assert known is not None
    written = [] if given.svg is None else _figures(known, pathlib.Path(given.svg))
    lines = [f"{unit} ({regime.arrow}) in run {identifier}: how its flips come about"]
    for name, said in chain_links(known, identifier):
        lines += [f"  {name if index == 0 else '':9} {line}" for index, line in enumerate(said)]
    lines += [f"  figure    {file}" for file in written]
    data = {"run": identifier, **encode(known), "figures": written}
    return ToolResult(data=data, text="\n".join(lines))


def _figures(chain: Chain, folder: pathlib.Path) -> list[str]:
    from mecharule_ops.report.chain_plots import chain_figures

    return written(chain_figures(chain), folder)
