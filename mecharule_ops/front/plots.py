"""The figures of a run, one by one, as the report draws them."""

from __future__ import annotations

from collections.abc import Callable

from mecharule_ops.errors import UsageError
from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.chain import Chain
from mecharule_ops.findings.records import Findings
from mecharule_ops.front.pictures import Part, Picture, pictures
from mecharule_ops.front.tree import Tree, search_index
from mecharule_ops.report.account_plots import account_figures
from mecharule_ops.report.chain_plots import chain_figures
from mecharule_ops.report.document import Section
from mecharule_ops.report.model_map import model_map
from mecharule_ops.saying.searches import search_names

AccountOf = Callable[[str, int | None], tuple[Account, Chain | None]]
"""What is known of a unit in a regime, or where it is strongest. Raises `UsageError`."""


class Plots:
    """The figures of a run, each as the report draws it."""

    def __init__(self, findings: Findings, account_of: AccountOf) -> None:
        self._findings, self._account_of = findings, account_of

    def map(self) -> Picture:
        """The model layer by layer with its units. Raises `UsageError` where nothing was found or ablated whole."""
        drawn = pictures(model_map(self._findings))
        if not drawn:
            raise UsageError(f"expected something found to draw, run {self._findings.run} has none")
        return drawn[0]

    def layers(self, basis: str | None = None, regime: int | None = None) -> Picture:
        """Localized units, union and whole-layer flips by layer. Raises `UsageError` where there is nothing to draw."""
        return self._of_search("layers", basis, regime)

    def tree(self, basis: str | None = None, regime: int | None = None) -> Picture:
        """The groups that a search ablated. Raises `UsageError` where there is nothing to draw."""
        return self._of_search("tree", basis, regime)

    def account(self, unit: str, regime: int | None = None) -> Part:
        """Every figure of a unit's account and chain. Raises `UsageError` where the run holds no account of it."""
        account, chain = self._account_of(unit, regime)
        drawn = unit_pictures(account, chain)
        names = tuple(one.name for one in drawn)
        section = Section(title=f"{account.neuron} ({account.regime.arrow})", blocks=(), figures=names)
        return Part(title=f"Run {self._findings.run}", sections=(section,), pictures=drawn)

    def _of_search(self, kind: str, basis: str | None, regime: int | None) -> Picture:
        index = search_index(self._findings, basis, regime)
        drawn = Tree(self._findings, index).drawn(kind)
        if not drawn:
            name = search_names(self._findings)[index]
            raise UsageError(
                f"expected {kind} to draw of {name}, run {self._findings.run} has none; see run.tree()"
            )
        return drawn[0]


def unit_pictures(account: Account | None, chain: Chain | None) -> tuple[Picture, ...]:
    """The figures of a unit's account and chain; of one that was not made none."""
    of_account = {} if account is None else account_figures(account)
    return pictures({**of_account, **({} if chain is None else chain_figures(chain))})
