"""A finished run as one object: what was found as rows, pictures and page parts, and its claims run again.

What the run file holds is answered from it; the model is loaded where claims are verified. The file is opened for each
of these and closed again, so that other processes may use the run in between.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mecharule_ops import errors, plain_text
from mecharule_ops.certificates.verification import VerificationStatus, verify
from mecharule_ops.facts import answer_text, examples, searches
from mecharule_ops.facts.unit_facts import chain_facts
from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.chain import Chain
from mecharule_ops.findings.records import Findings
from mecharule_ops.pages import as_text, chain_plots, content, document, plots
from mecharule_ops.pages.drawing import Plot, saved, standalone
from mecharule_ops.pages.html import figure_of, fragment_of
from mecharule_ops.pages.rows import KINDS, RuleRow, UnitRow, rule_rows, unit_rows
from mecharule_ops.pages.screen import screen
from mecharule_ops.run.opening import check_unit, findings_of, opened, strongest_regime
from mecharule_ops.types import Neuron, Regime

if TYPE_CHECKING:
    import pandas

    from mecharule_ops.loading.model import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One figure of the report; a notebook draws it."""

    drawing: str
    """The SVG as a page holds it."""
    caption: str
    plot: Plot
    """What draws it on a matplotlib figure, and its size in inches."""

    def savefig(self, file: str | Path) -> Path:
        """Write it as the ending says: an SVG of its own, dark ink on white, a PDF or a PNG. Raises `StoreError`."""
        if (kind := Path(file).suffix[1:].lower()) not in ("svg", "pdf", "png"):
            raise errors.UsageError(f"expected a file that ends in .svg, .pdf or .png, got {file}")
        drawn = standalone(self.drawing) if kind == "svg" else saved(plots.MAP, *self.plot, kind)
        return plain_text.write_file(file, drawn)

    def _repr_html_(self) -> str:
        return figure_of(self.drawing, self.caption)

    def __repr__(self) -> str:
        return f"<{self.caption}>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReportPart:
    """Sections of the report with their figures: a notebook shows them, `str` gives their text."""

    title: str
    sections: Sequence[document.Section]
    draw: Callable[[], document.Figures] = dict
    """Gives (SVG, caption) by the name that a section has for a figure; called when a notebook shows the part."""

    def _repr_html_(self) -> str:
        return fragment_of(self.title, [replace(one, folded=False) for one in self.sections], self.draw())

    def __repr__(self) -> str:
        return as_text.text_of(self.title, self.sections, content.WIDEST)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Checked(ReportPart):
    """How certificates came out: a line each, and how many match, differ and cannot be run again here."""

    match: int
    differs: int
    cannot: int


class Plots:
    """The figures of a run, each as the report draws it. Each raises `UsageError` where there is nothing to draw."""

    def __init__(self, run: FinishedRun) -> None:
        self._run = run

    def map(self) -> Picture:
        """The model layer by layer with its units."""
        of = self._run.findings, self._run._example
        if not (drawn := plots.finding_plots(*of)):
            raise errors.UsageError(
                f"expected a unit or a layer to draw, run {self._run.id} has none; see run.tree()"
            )
        svg, caption = plots.finding_figure(*of)[plots.MAP]
        return Picture(drawing=svg, caption=caption, plot=drawn[plots.MAP])


class FinishedRun:
    """One finished run; `analyse` and `open_run` give it. A notebook shows its summary and its τ-agonists.

    `findings`, and what is drawn of them, are of when it was opened; `account`, `chain`, `to_dataframe` and `verify`
    read the file anew: open the run again after `mecharule explain`.
    """

    def __init__(self, path: Path, subject: Subject | None = None) -> None:
        """`subject` is a model that is loaded already; None loads the run's own where one is needed.

        Raises `StoreError` where the file cannot be read or the run has not finished.
        """
        self.path = path
        self._subject = subject
        self.findings: Findings
        """Everything that was found, with its counts."""
        with opened(str(path)) as run:
            self.findings = findings_of(run)
            self._examples = examples.examples_of(run)
            self._example = examples.of_strongest(self.findings, self._examples)

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
    def plot(self) -> Plots:
        """Its figures."""
        return Plots(self)

    def tree(self, basis: str | None = None, regime: int | str | None = None) -> ReportPart:
        """One search: of a basis, in a regime (1 or `1→0`, 0 or `0→1`); the first that fits. Raises `UsageError`."""
        wanted = None if regime is None else Regime(regime)
        for index, outcome in enumerate(self.findings.searches):
            if basis in (None, outcome.intervention.basis) and wanted in (None, outcome.regime):
                section = content.search_section(self.findings, index)
                return ReportPart(title=f"Run {self.id}", sections=[section])
        searched = ", ".join(searches.search_names(self.findings)) or "none"
        asked = f"basis {basis!r}, regime {regime!r}"
        raise errors.UsageError(f"expected a search of run {self.id} ({searched}), got {asked}")

    def account(self, unit: str, regime: int | str | None = None) -> ReportPart:
        """When and why a unit flips, with its figures; in the regime where it is strongest unless one is named.

        A regime is 1 or `1→0`, 0 or `0→1`.
        Raises `UsageError` where the run holds no account of it.
        """
        neuron, chosen, known, chain = self._known(unit, regime)
        if known is None:
            raise _not_made(self.id, "account", neuron, "drive")
        return ReportPart(
            title=f"{neuron} in run {self.id}",
            sections=[content.account_section(self.id, neuron, chosen, known, chain)],
            draw=lambda: {
                **plots.account_figures(known),
                **(chain_plots.chain_figures(chain) if chain else {}),
            },
        )

    def chain(self, unit: str, regime: int | str | None = None) -> ReportPart:
        """How a unit's flips come about, link by link, with all numbers; as `account`."""
        neuron, chosen, _, known = self._known(unit, regime)
        if known is None:
            raise _not_made(self.id, "chain", neuron, "chain")
        blocks = tuple(answer_text.lines(chain_facts(known, self.id)))
        return ReportPart(
            title=f"How the flips of {neuron} ({chosen.arrow}) come about",
            sections=[document.Section(title="", blocks=blocks)],
            draw=partial(chain_plots.chain_figures, known),
        )

    def _known(
        self, unit: str, regime: int | str | None
    ) -> tuple[Neuron, Regime, Account | None, Chain | None]:
        """The unit with what is stored of it, in the regime asked or where it is strongest. Raises `UsageError`."""
        with opened(str(self.path)) as run:
            neuron = Neuron.parse(str(unit))
            check_unit(run, neuron)
            chosen = strongest_regime(run, neuron) if regime is None else Regime(regime)
            return neuron, chosen, run.account(neuron, chosen), run.chain(neuron, chosen)

    def to_dataframe(self, kind: str = "units") -> pandas.DataFrame:
        """The rows of a kind; columns are documented on their classes, such as `UnitRow`.

        Raises `UsageError` for another kind.
        """
        import pandas

        if str(kind) not in KINDS:
            raise errors.UsageError(f"expected a table of {', '.join(KINDS)}, got {kind!r}")
        of, rows = KINDS[kind]
        with opened(str(self.path)) as run:
            return pandas.DataFrame(map(asdict, rows(run)), columns=[each.name for each in fields(of)])

    def verify(self, certificates: str | Sequence[str] | None = None) -> Checked:
        """Certificates run again on the reference path: all of the run's, or those of these ids, or this one.

        Cost: the model is loaded anew; two completions an example and certificate, one group at a time.
        """
        from mecharule_ops.run.second_run import bench_of_run, rerun

        with opened(str(self.path)) as run:
            if self._subject is not None:
                # The reference path changes how the model that it is given computes attention.
                run.loaded = copy.deepcopy(self._subject)
            wanted = run.store.certificates()
            if certificates is not None:
                asked = [certificates] if isinstance(certificates, str) else certificates
                wanted = tuple(run.store.certificate(str(one).removeprefix("c:")) for one in asked)
            again = partial(rerun, bench_of_run(run)) if wanted else None
            found = [(one, verify(one, again)) for one in wanted if again]
        rows = tuple((one.id, each.sentence, one.plain_claim) for one, each in found)
        table = document.Table(header=("certificate", "second run", "claim"), rows=rows, align="lll")
        came = [each.status for _, each in found]
        counts: dict[str, Any] = {status.name.lower(): came.count(status) for status in VerificationStatus}
        said = f"{counts['match']} of {len(rows)} certificates match"
        section = document.Section(title=said, blocks=(table,) if rows else ())
        return Checked(title=f"Run {self.id}, verified", sections=[section], **counts)

    def report(self) -> str:
        """The whole report as one self-contained HTML page."""
        return content.report_page(self.findings, self._examples)

    def _repr_html_(self) -> str:
        title = f"Run {self.id}: {self.findings.task} on {self.findings.model}"
        sections = content.opening_sections(self.findings, self._examples)
        return fragment_of(title, sections, plots.finding_figure(self.findings, self._example))

    def __repr__(self) -> str:
        return screen(self.findings, self._example).rstrip()


def _not_made(run: str, what: str, unit: Neuron, parts: str) -> errors.UsageError:
    makes = f"`mecharule explain {run} {unit} --parts {parts}` makes it"
    return errors.UsageError(f"expected a run with the {what} of {unit}, it has none; {makes}")
