"""One search of a run as rows, and as its section of the report with the picture of its tree."""

from __future__ import annotations

from mecharule_ops.errors import UsageError
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.front.pictures import Part, Picture, pictures
from mecharule_ops.front.rows import TreeRow, tree_rows
from mecharule_ops.report.content import search_section
from mecharule_ops.report.plots import search_figures
from mecharule_ops.saying.searches import search_names


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
    def part(self) -> Part:
        """What a notebook shows."""
        section = search_section(self._findings, self._index)
        return Part(
            title=f"Run {self._findings.run}", sections=(section,), pictures=self.drawn("tree", "layers")
        )

    def drawn(self, *kinds: str) -> tuple[Picture, ...]:
        """Its figures of these kinds: `layers`, `tree`, `recall`, `predicted`; one without data is left out."""
        return pictures(search_figures(self._index, self._outcome), kinds)

    @property
    def _outcome(self) -> SearchOutcome:
        return self._findings.searches[self._index]

    def _repr_html_(self) -> str:
        return self.part._repr_html_()

    def __repr__(self) -> str:
        return str(self.part)
