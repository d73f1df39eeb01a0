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
from mecharule_ops.saying.account_facts import account_verdict, chain_verdict
from mecharule_ops.saying.answer_text import ending, lines
from mecharule_ops.saying.chain_lines import chain_links
from mecharule_ops.saying.fact import Fact, fact
from mecharule_ops.types import Neuron, Regime
from tools import arguments
from tools._ablations import accepted, price_words
from tools.registry import Tell, ToolResult


def account(given: arguments.AccountArguments, tell: Tell) -> ToolResult:
    """Flips, first-order predictions, three families beside free-form trees, and what first order misses.

    Cost: nothing where the run holds the account; otherwise what `--estimate` says, and it is kept.
    """
    with opened(given.run) as run:
        unit, regime = _asked(run, given)
        # Torch loads here, after a wrong unit was refused.
        from mecharule_ops.run.accounting import account_forwards, kept_accounts, observe_further

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
    return _shown(identifier, known, account_verdict(known, identifier), account_links(known), given.svg)


def path(given: arguments.PathArguments, tell: Tell) -> ToolResult:
    """Every link with its certificate or run; ablations are certified and the chain is kept in the run.

    Cost: the plan's ablated completions, said before they are run; nothing where the run holds the chain.
    """
    with opened(given.run) as run:
        unit, regime = _asked(run, given)
        from mecharule_ops.run.chains import kept_chain, plan

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
    return _shown(identifier, known, chain_verdict(known, identifier), chain_links(known), given.svg)


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
    run: str,
    known: Account | Chain,
    verdict: Sequence[Fact],
    links: Iterable[tuple[str, Sequence[str]]],
    svg: str | None,
) -> ToolResult:
    """The verdict, all numbers under their names, the proof; the figures as files where a folder is named."""
    files = [] if svg is None else _written(known, Path(svg))
    said = [*lines(verdict), "", "All its numbers:"]
    for name, of_link in links:
        said += [f"  {name if index == 0 else '':9} {line}" for index, line in enumerate(of_link)]
    said += [f"  figure    {file}" for file in files]
    text = "\n".join([*said, *ending(said, [*verdict, *_proofs(known)])])
    return ToolResult(data={"run": run, **encode(known), "figures": files}, text=text)


def _proofs(known: Account | Chain) -> tuple[Fact, ...]:
    """What cites the certificates of a chain that no sentence of the verdict does."""
    if isinstance(known, Account) or known.pairs_certificate is None:
        return ()
    return (fact("", f"c:{known.pairs_certificate}"),)


def _written(known: Account | Chain, folder: Path) -> list[str]:
    """The SVG files written, one a figure. Raises `StoreError` when the folder cannot be written."""
    from mecharule_ops.report.chain_plots import chain_figures
    from mecharule_ops.report.drawing import standalone

    figures = chain_figures(known) if isinstance(known, Chain) else account_figures(known)
    return [str(write_file(folder / f"{name}.svg", standalone(svg))) for name, (svg, _) in figures.items()]
