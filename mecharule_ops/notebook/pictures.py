"""The figures and sections of a run, one by one, and its certificates run again, as a notebook shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.certificates.verification import Verification, VerificationStatus, verify
from mecharule_ops.errors import UsageError
from mecharule_ops.facts.searches import search_names
from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.chain import Chain
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.notebook.rows import TreeRow, tree_rows
from mecharule_ops.pages.as_text import text_of
from mecharule_ops.pages.chain_plots import chain_figures
from mecharule_ops.pages.content import search_section
from mecharule_ops.pages.document import Document, Section, Table
from mecharule_ops.pages.drawing import standalone
from mecharule_ops.pages.html import figure_of, fragment_of
from mecharule_ops.pages.model_map import model_map
from mecharule_ops.pages.plots import search_figures
from mecharule_ops.pages.unit_account import account_figures
from mecharule_ops.plain_text import write_file
from mecharule_ops.run.live_run import Run

WIDTH = 100
"""Columns of a part printed as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One figure of the report; a notebook draws it."""

    name: str
    """As the report names it, such as `layers-0`."""
    drawing: str
    """The SVG as a page holds it."""
    caption: str

    @property
    def svg(self) -> str:
        """The SVG as a file of its own: dark ink on white."""
        return standalone(self.drawing)

    def save(self, file: str | Path) -> Path:
        """Writes the SVG. Raises `StoreError`."""
        return write_file(file, self.svg)

    def _repr_html_(self) -> str:
        return figure_of(self.drawing, self.caption)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.caption}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPart:
    """Sections of the report with their figures: a notebook shows them, `str` gives their text."""

    title: str
    sections: tuple[Section, ...]
    pictures: tuple[Picture, ...] = ()

    def _repr_html_(self) -> str:
        drawn = {one.name: (one.drawing, one.caption) for one in self.pictures}
        return fragment_of(self.title, [replace(one, folded=False) for one in self.sections], drawn)

    def __str__(self) -> str:
        return text_of(Document(title=self.title, sections=self.sections), WIDTH)

    __repr__ = __str__


def pictures(figures: Mapping[str, tuple[str, str]], kinds: Sequence[str] = ("",)) -> tuple[Picture, ...]:
    """Figures of the report whose names begin with one of `kinds`, in their order."""
    return tuple(
        Picture(name=name, drawing=svg, caption=caption)
        for name, (svg, caption) in figures.items()
        if name.startswith(tuple(kinds))
    )


def search_index(findings: Findings, basis: str | None, regime: int | None) -> int:
    """The place of the first search of this basis and regime. Raises `UsageError` where there is none."""
    for index, outcome in enumerate(findings.searches):
        if basis in (None, outcome.intervention.basis) and regime in (None, outcome.regime.value):
            return index
    searched = ", ".join(search_names(findings)) or "none"
    raise UsageError(
        f"expected a search of run {findings.run} ({searched}), got basis {basis!r}, regime {regime!r}"
    )


class Tree:
    """One search. A notebook shows its section of the report with the picture of its tree."""

    def __init__(self, findings: Findings, index: int) -> None:
        self._findings, self._index = findings, index

    @property
    def rows(self) -> tuple[TreeRow, ...]:
        """A row a tested group, in the order of the tests."""
        return tree_rows(search_names(self._findings)[self._index], self._outcome.tree)

    @property
    def part(self) -> ReportPart:
        """What a notebook shows."""
        section = search_section(self._findings, self._index)
        return ReportPart(
            title=f"Run {self._findings.run}", sections=(section,), pictures=self.drawn("tree", "layers")
        )

    def drawn(self, *kinds: str) -> tuple[Picture, ...]:
        """Its figures of these kinds: `layers`, `tree`, `recall`, `predicted`; one without data is left out."""
        return pictures(search_figures(self._findings, self._index), kinds)

    @property
    def _outcome(self) -> SearchOutcome:
        return self._findings.searches[self._index]

    def _repr_html_(self) -> str:
        return self.part._repr_html_()

    def __repr__(self) -> str:
        return str(self.part)


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

    def account(self, unit: str, regime: int | None = None) -> ReportPart:
        """Every figure of a unit's account and chain. Raises `UsageError` where the run holds no account of it."""
        account, chain = self._account_of(unit, regime)
        drawn = unit_pictures(account, chain)
        names = tuple(one.name for one in drawn)
        section = Section(title=f"{account.neuron} ({account.regime.arrow})", blocks=(), figures=names)
        return ReportPart(title=f"Run {self._findings.run}", sections=(section,), pictures=drawn)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """How certificates came out."""

    run: str
    certificates: tuple[Certificate, ...]
    verifications: tuple[Verification, ...]
    """One a certificate, in their order."""

    @property
    def match(self) -> int:
        """Certificates that came out the same."""
        return self._count(VerificationStatus.MATCH)

    @property
    def differs(self) -> int:
        """Certificates that came out otherwise: their claims are not supported."""
        return self._count(VerificationStatus.DIFFERS)

    @property
    def cannot(self) -> int:
        """Certificates that could not be run again here."""
        return self._count(VerificationStatus.CANNOT)

    def _count(self, status: VerificationStatus) -> int:
        return sum(one.status is status for one in self.verifications)

    @property
    def part(self) -> ReportPart:
        """What a notebook shows: a line a certificate."""
        rows = tuple(
            (f"c:{certificate.id}", found.sentence, certificate.claim)
            for certificate, found in zip(self.certificates, self.verifications, strict=True)
        )
        table = Table(header=("certificate", "second run", "claim"), rows=rows, align="lll")
        counts = f"{self.match} of {len(rows)} certificates match"
        return ReportPart(
            title=f"Run {self.run}, verified",
            sections=(Section(title=counts, blocks=(table,) if rows else ()),),
        )

    def _repr_html_(self) -> str:
        return self.part._repr_html_()

    def __repr__(self) -> str:
        return str(self.part)


def checked(run: Run, certificates: Sequence[Certificate]) -> Checked:
    """Each certificate run again. Cost: two completions an example and certificate; the run's model is loaded.

    The run is of no use for further ablations: TransformerLens has changed how its model computes attention.
    """
    from mecharule_ops.run.second_run import bench_of_run, rerun

    if not certificates:
        return Checked(run=run.id, certificates=(), verifications=())
    bench = bench_of_run(run)
    found = tuple(verify(one, lambda each: rerun(bench, each)) for one in certificates)
    return Checked(run=run.id, certificates=tuple(certificates), verifications=found)
