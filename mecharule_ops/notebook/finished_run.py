"""A finished run as one object: what was found as rows, pictures and page parts, and its claims run again.

What the run file holds is answered from it; the model is loaded where something is made or verified now. The file is
opened for each of these and closed again, so that other processes may use the run in between.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mecharule_ops.certificates.verification import VerificationStatus, verify
from mecharule_ops.errors import UsageError
from mecharule_ops.facts.searches import search_names
from mecharule_ops.findings.records import Findings
from mecharule_ops.pages import render_html
from mecharule_ops.pages.as_text import text_of
from mecharule_ops.pages.chain_plots import chain_figures
from mecharule_ops.pages.content import account_section, opening_sections, search_section
from mecharule_ops.pages.document import Figures, Section, Table
from mecharule_ops.pages.drawing import standalone
from mecharule_ops.pages.html import figure_of, fragment_of
from mecharule_ops.pages.plots import MAP, account_figures, model_map, tree_figure
from mecharule_ops.pages.rows import (
    KINDS,
    CertificateRow,
    PredictionRow,
    RuleRow,
    TreeRow,
    UnitRow,
    certificate_rows,
    prediction_rows,
    rule_rows,
    tree_rows,
    unit_rows,
)
from mecharule_ops.pages.screen import screen
from mecharule_ops.plain_text import write_file
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import (
    check_unit,
    findings_of,
    keep,
    opened,
    strongest_regime,
)
from mecharule_ops.state.search_id import SearchId
from mecharule_ops.types import Neuron, Regime

if TYPE_CHECKING:
    import pandas

    from mecharule_ops.gates.outcome import LearnedGates
    from mecharule_ops.loading.model import Subject

Kind = Literal["units", "rules", "predictions", "tree", "certificates", "claims", "candidates", "slices"]
WIDTH = 100
"""Columns of a part printed as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One figure of the report; a notebook draws it."""

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
        return f"<{self.caption}>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReportPart:
    """Sections of the report with their figures: a notebook shows them, `str` gives their text."""

    title: str
    sections: tuple[Section, ...]
    draw: Callable[[], Figures] = dict
    """Gives (SVG, caption) by the name that a section has for a figure; called when a notebook shows the part."""
    rows: tuple[TreeRow, ...] = ()
    """Of a search a row a tested group, children under their parent."""

    def _repr_html_(self) -> str:
        return fragment_of(self.title, [replace(one, folded=False) for one in self.sections], self.draw())

    def __repr__(self) -> str:
        return text_of(self.title, self.sections, WIDTH)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Checked(ReportPart):
    """How certificates came out: a line each."""

    match: int
    """Certificates that came out the same."""
    differs: int
    """Those that came out otherwise: their claims are not supported."""
    cannot: int
    """Those that could not be run again here."""


class Plots:
    """The figures of a run, each as the report draws it. Each raises `UsageError` where there is nothing to draw."""

    def __init__(self, run: FinishedRun) -> None:
        self._run = run

    def map(self) -> Picture:
        """The model layer by layer with its units."""
        return self._drawn(model_map(self._run.findings), MAP)

    def tree(self, basis: str | None = None, regime: int | None = None) -> Picture:
        """The groups that a search ablated."""
        index = _search_index(self._run.findings, basis, regime)
        return self._drawn(tree_figure(self._run.findings, index), f"tree-{index}")

    def account(self, unit: str, regime: int | None = None) -> ReportPart:
        """Every figure of a unit's account and chain."""
        part = self._run.account(unit, regime)
        return replace(part, sections=tuple(replace(one, blocks=()) for one in part.sections))

    def _drawn(self, figures: Figures, name: str) -> Picture:
        if name not in figures:
            raise UsageError(f"expected {name} to draw, run {self._run.id} has none; see run.tree()")
        drawing, caption = figures[name]
        return Picture(drawing=drawing, caption=caption)


class FinishedRun:
    """One finished run; `analyse` and `open_run` give it. A notebook shows its summary and its τ-agonists."""

    def __init__(self, path: Path, subject: Subject | None = None) -> None:
        """`subject` is a model that is loaded already; None loads the run's own where one is needed.

        Raises `StoreError` where the file cannot be read or the run has not finished.
        """
        self.path = path
        self._subject = subject
        self.findings: Findings
        """Everything that was found, with its counts."""
        with self._opened() as run:
            self.findings = findings_of(run)

    @property
    def id(self) -> str:
        """The run's id: what verbs and `open_run` take."""
        return self.findings.run

    @property
    def units(self) -> tuple[UnitRow, ...]:
        """Every localized unit, search by search: the shown by rank, then the others by name."""
        return unit_rows(self.findings)

    @property
    def rules(self) -> tuple[RuleRow, ...]:
        """When the units flip: a row a family of rules and the rule of the paper."""
        return rule_rows(self.findings)

    @property
    def predictions(self) -> tuple[PredictionRow, ...]:
        """How well first order says which records flip, beside one threshold on the lead and one on the drop."""
        return prediction_rows(self.findings)

    @property
    def certificates(self) -> tuple[CertificateRow, ...]:
        """Every claim of the run that can be run again."""
        with self._opened() as run:
            return certificate_rows(run)

    @property
    def plot(self) -> Plots:
        """Its figures."""
        return Plots(self)

    def tree(self, basis: str | None = None, regime: int | None = None) -> ReportPart:
        """One search: of a basis, in a regime (1 is 1→0, 0 is 0→1); the first that fits. Raises `UsageError`."""
        index = _search_index(self.findings, basis, regime)
        chosen = self.findings.searches[index]
        asked = (chosen.regime.value, chosen.intervention.basis.letter)

        def place(row: TreeRow) -> tuple[int, str]:
            named = SearchId.parse(row.search)
            return named.regime, named.place[0]

        with self._opened() as run:
            rows = tuple(row for row in tree_rows(run) if place(row) == asked)
        return ReportPart(
            title=f"Run {self.id}",
            sections=(search_section(self.findings, index),),
            draw=partial(tree_figure, self.findings, index),
            rows=rows,
        )

    def account(self, unit: str, regime: int | None = None, *, make: bool = False) -> ReportPart:
        """When and why a unit flips, with its figures; in the regime where it is strongest unless one is named.

        `make` computes an account that the run does not hold, and keeps it; without it that is a `UsageError` that
        says what it costs. A chain is shown where the run holds one: `chain` makes it.
        """
        from mecharule_ops.run.accounting import account_forwards, kept_accounts, observe_further

        with self._opened(write=make) as run:
            neuron, chosen = self._named(run, unit, regime)
            known, chain = run.account(neuron, chosen), run.chain(neuron, chosen)
            if known is None:
                _check_wish(make, "account", neuron, account_forwards(run, chosen))
                observe_further(run)
                (known,) = kept_accounts(run, [neuron], chosen, lambda event: run.store.append([event]))
        return ReportPart(
            title=f"{neuron} in run {self.id}",
            sections=(account_section(self.id, known, chain),),
            draw=lambda: {**account_figures(known), **(chain_figures(chain) if chain else {})},
        )

    def chain(self, unit: str, regime: int | None = None, *, make: bool = False) -> ReportPart:
        """How a unit's flips come about, link by link; `make` measures and certifies it, as `account` does."""
        from mecharule_ops.facts.answer_text import lines
        from mecharule_ops.facts.chain_facts import chain_facts
        from mecharule_ops.run.chains import chain_plan, kept_chain

        with self._opened(write=make) as run:
            neuron, chosen = self._named(run, unit, regime)
            known = run.chain(neuron, chosen)
            if known is None:
                asked = chain_plan(run, self.findings, neuron, chosen)
                _check_wish(make, "chain", neuron, asked.example_forwards)
                known = kept_chain(run, asked, partial(keep, run))
        return ReportPart(
            title=f"How the flips of {neuron} ({chosen.arrow}) come about",
            sections=(Section(title="", blocks=tuple(lines(chain_facts(known, self.id)))),),
            draw=partial(chain_figures, known),
        )

    def gates(self, unit: str | None = None, *, regime: int | None = None, **asked: Any) -> LearnedGates:
        """When to switch a unit off, or those that the run found, with the one test; made now, or read where held.

        `asked` are fields of `GatesAsked`, such as `records=900`. That the gates help nothing is a result.
        Cost: `records` completions, and each unit and a random one on two thirds of them.
        """
        from mecharule_ops.gates.outcome import GatesAsked
        from mecharule_ops.gates.testing import learn_gates, stored

        with self._opened(write=True) as run:
            chosen = Regime(int(run.task.words.success_is_harm)) if regime is None else Regime(regime)
            named = None if unit is None else Neuron.parse(unit)
            basis = run.config.bases[0] if named is None else named.basis
            try:
                wanted = GatesAsked(regime=chosen, unit=named, **{"basis": basis, **asked})
            except TypeError as error:
                raise UsageError(f"expected fields of GatesAsked, got others: {error}") from error
            held = [one for one in stored(run) if one.asked == wanted]
            return held[-1] if held else learn_gates(run, wanted)

    def to_dataframe(self, kind: Kind = "units") -> pandas.DataFrame:
        """The rows of a kind; columns are documented on their classes, such as `UnitRow`.

        Raises `UsageError` where pandas is not installed, or for another kind.
        """
        if kind not in KINDS:
            raise UsageError(f"expected a table of {', '.join(KINDS)}, got {kind!r}")
        try:
            import pandas
        except ImportError as error:
            raise UsageError(
                "expected pandas for a data frame, it is not installed; `pip install pandas`"
            ) from error
        of, rows = KINDS[kind]
        with self._opened() as run:
            return pandas.DataFrame(map(asdict, rows(run)), columns=[each.name for each in fields(of)])

    def verify(self, certificates: Sequence[str] | None = None) -> Checked:
        """Certificates run again on the reference path: all of the run's, or those of these ids.

        Cost: the model is loaded anew; two completions an example and certificate, one group at a time.
        """
        from mecharule_ops.run.second_run import bench_of_run, rerun

        with self._opened() as run:
            if self._subject is not None:
                # The reference path changes how the model that it is given computes attention.
                run.subject = copy.deepcopy(self._subject)
            wanted = (
                run.store.certificates()
                if certificates is None
                else tuple(run.store.certificate(one.removeprefix("c:")) for one in certificates)
            )
            again = partial(rerun, bench_of_run(run)) if wanted else None
            found = [verify(one, again) for one in wanted if again]
        rows = tuple(
            (f"c:{one.id}", each.sentence, one.claim) for one, each in zip(wanted, found, strict=True)
        )
        table = Table(header=("certificate", "second run", "claim"), rows=rows, align="lll")
        match, differs, cannot = (
            sum(each.status is status for each in found) for status in VerificationStatus
        )
        counts = f"{match} of {len(rows)} certificates match"
        return Checked(
            title=f"Run {self.id}, verified",
            sections=(Section(title=counts, blocks=(table,) if rows else ()),),
            match=match,
            differs=differs,
            cannot=cannot,
        )

    def report(self) -> str:
        """The whole report as one self-contained HTML page."""
        return render_html(self.findings)

    def _repr_html_(self) -> str:
        title = f"Run {self.id}: {self.findings.task} on {self.findings.model}"
        part = ReportPart(
            title=title, sections=(*opening_sections(self.findings),), draw=partial(model_map, self.findings)
        )
        return part._repr_html_()

    def __repr__(self) -> str:
        return screen(self.findings).rstrip()

    @contextmanager
    def _opened(self, *, write: bool = False) -> Iterator[Run]:
        with opened(str(self.path), write=write) as run:
            if self._subject is not None:
                run.subject = self._subject
            yield run

    def _named(self, run: Run, unit: str, regime: int | None) -> tuple[Neuron, Regime]:
        """The unit, and the regime asked or the one where it is strongest. Raises `UsageError`."""
        neuron = Neuron.parse(unit)
        check_unit(run, neuron)
        return neuron, strongest_regime(run, neuron) if regime is None else Regime(regime)


def _check_wish(make: bool, what: str, unit: Neuron, forwards: int) -> None:
    """Raises `UsageError` unless it is to be made now."""
    if not make:
        raise UsageError(
            f"expected a run with the {what} of {unit}, it has none; {what}({str(unit)!r}, make=True) makes it "
            f"for about {forwards:,} example-forwards"
        )


def _search_index(findings: Findings, basis: str | None, regime: int | None) -> int:
    """The place of the first search of this basis and regime. Raises `UsageError` where there is none."""
    for index, outcome in enumerate(findings.searches):
        if basis in (None, outcome.intervention.basis) and regime in (None, outcome.regime.value):
            return index
    searched = ", ".join(search_names(findings)) or "none"
    raise UsageError(
        f"expected a search of run {findings.run} ({searched}), got basis {basis!r}, regime {regime!r}"
    )
