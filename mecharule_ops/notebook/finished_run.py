"""A finished run as one object: what was found as rows, pictures and page parts, and its claims run again.

What the run file holds is answered from it; the model is loaded where something is made or verified now. The file is
opened for each of these and closed again, so that other processes may use the run in between.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mecharule_ops.errors import UsageError
from mecharule_ops.events import Event
from mecharule_ops.findings.records import Findings
from mecharule_ops.notebook.pictures import (
    Checked,
    Plots,
    ReportPart,
    Tree,
    checked,
    pictures,
    search_index,
    unit_pictures,
)
from mecharule_ops.notebook.rows import (
    CertificateRow,
    PredictionRow,
    RuleRow,
    TreeRow,
    UnitRow,
    certificate_rows,
    frame_of,
    prediction_rows,
    rule_rows,
    unit_rows,
)
from mecharule_ops.pages import render_html, render_screen
from mecharule_ops.pages.content import account_section, opening_sections
from mecharule_ops.pages.document import Section
from mecharule_ops.pages.model_map import model_map
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import (
    check_direction,
    check_unit,
    findings_of,
    keep,
    opened,
    strongest_regime,
)
from mecharule_ops.types import Neuron, Regime

if TYPE_CHECKING:
    import pandas

    from mecharule_ops.findings.accounts import Account
    from mecharule_ops.findings.chain import Chain
    from mecharule_ops.gates.outcome import LearnedGates
    from mecharule_ops.loading.model import Subject

Kind = Literal["units", "rules", "predictions", "tree", "certificates"]


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
            return certificate_rows(run.store.certificates())

    @property
    def plot(self) -> Plots:
        """Its figures."""
        return Plots(self.findings, partial(self._account, make=False))

    def tree(self, basis: str | None = None, regime: int | None = None) -> Tree:
        """One search: of a basis, in a regime (1 is 1→0, 0 is 0→1); the first that fits. Raises `UsageError`."""
        return Tree(self.findings, search_index(self.findings, basis, regime))

    def account(self, unit: str, regime: int | None = None, *, make: bool = False) -> ReportPart:
        """When and why a unit flips, with its figures; in the regime where it is strongest unless one is named.

        `make` computes an account that the run does not hold, and keeps it; without it that is a `UsageError` that
        says what it costs. A chain is shown where the run holds one: `chain` makes it.
        """
        account, chain = self._account(unit, regime, make=make)
        return ReportPart(
            title=f"{account.neuron} in run {self.id}",
            sections=(account_section(self.id, account, chain),),
            pictures=unit_pictures(account, chain),
        )

    def chain(self, unit: str, regime: int | None = None, *, make: bool = False) -> ReportPart:
        """How a unit's flips come about, link by link; `make` measures and certifies it, as `account` does."""
        from mecharule_ops.facts.chain_lines import chain_links
        from mecharule_ops.pages.document import Bullets
        from mecharule_ops.run.chains import kept_chain, plan

        with self._opened(write=make) as run:
            neuron, chosen = self._named(run, unit, regime)
            known = run.chain(neuron, chosen)
            if known is None:
                asked = plan(run, self.findings, neuron, chosen)
                _check_wish(make, "chain", neuron, asked.example_forwards)
                known = kept_chain(run, asked, partial(keep, run))
        sections = tuple(Section(title=name, blocks=(Bullets(lines),)) for name, lines in chain_links(known))
        return ReportPart(
            title=f"How the flips of {neuron} ({chosen.arrow}) come about",
            sections=sections,
            pictures=unit_pictures(None, known),
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
            check_direction(run.id, chosen, hidden=run.config.suppress_only)
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
        tables: dict[str, tuple[type, Callable[[], Sequence[Any]]]] = {
            "units": (UnitRow, lambda: self.units),
            "rules": (RuleRow, lambda: self.rules),
            "predictions": (PredictionRow, lambda: self.predictions),
            "tree": (TreeRow, lambda: [row for tree in self._trees for row in tree.rows]),
            "certificates": (CertificateRow, lambda: self.certificates),
        }
        if kind not in tables:
            raise UsageError(f"expected a table of {', '.join(tables)}, got {kind!r}")
        row, rows = tables[kind]
        return frame_of(row, rows())

    def verify(self, certificates: Sequence[str] | None = None) -> Checked:
        """Certificates run again on the reference path: all of the run's, or those of these ids.

        Cost: the model is loaded anew; two completions an example and certificate, one group at a time.
        """
        with self._opened() as run:
            if self._subject is not None:
                # The reference path changes how the model that it is given computes attention.
                run.subject = copy.deepcopy(self._subject)
            wanted = (
                run.store.certificates()
                if certificates is None
                else tuple(run.store.certificate(one.removeprefix("c:")) for one in certificates)
            )
            return checked(run, wanted)

    def report(self) -> str:
        """The whole report as one self-contained HTML page."""
        return render_html(self.findings)

    def _repr_html_(self) -> str:
        title = f"Run {self.id}: {self.findings.task} on {self.findings.model}"
        drawn = pictures(model_map(self.findings))
        return ReportPart(title=title, sections=opening_sections(self.findings), pictures=drawn)._repr_html_()

    def __repr__(self) -> str:
        return render_screen(self.findings).rstrip()

    @property
    def _trees(self) -> list[Tree]:
        return [Tree(self.findings, index) for index in range(len(self.findings.searches))]

    @property
    def _bases(self) -> frozenset[str]:
        return frozenset(outcome.intervention.basis for outcome in self.findings.searches)

    @contextmanager
    def _opened(self, *, write: bool = False) -> Iterator[Run]:
        with opened(str(self.path), write=write) as run:
            if self._subject is not None:
                run.subject = self._subject
            yield run

    def _account(self, unit: str, regime: int | None, *, make: bool) -> tuple[Account, Chain | None]:
        from mecharule_ops.run.accounting import account_forwards, kept_accounts, observe_further

        with self._opened(write=make) as run:
            neuron, chosen = self._named(run, unit, regime)
            known = run.account(neuron, chosen)
            if known is None:
                _check_wish(make, "account", neuron, account_forwards(run, chosen))
                observe_further(run)
                (known,) = kept_accounts(run, [neuron], chosen, partial(_kept_event, run))
            return known, run.chain(neuron, chosen)

    def _named(self, run: Run, unit: str, regime: int | None) -> tuple[Neuron, Regime]:
        """The unit, and the regime asked or the one where it is strongest. Raises `UsageError`."""
        neuron = Neuron.parse(unit)
        check_unit(run, neuron)
        chosen = strongest_regime(run, neuron) if regime is None else Regime(regime)
        check_direction(run.id, chosen, hidden=run.config.suppress_only)
        return neuron, chosen


def _check_wish(make: bool, what: str, unit: Neuron, forwards: int) -> None:
    """Raises `UsageError` unless it is to be made now."""
    if not make:
        raise UsageError(
            f"expected a run with the {what} of {unit}, it has none; {what}({str(unit)!r}, make=True) makes it "
            f"for about {forwards:,} example-forwards"
        )


def _kept_event(run: Run, event: Event) -> None:
    run.store.append([event])
