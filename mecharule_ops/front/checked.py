"""Certificates of a run after a second run on the reference path: how many match, and what each said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.certificates.verification import Verification, VerificationStatus, verify
from mecharule_ops.front.pictures import Part
from mecharule_ops.pipeline.run import Run
from mecharule_ops.report.document import Section, Table


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
    def part(self) -> Part:
        """What a notebook shows: a line a certificate."""
        rows = tuple(
            (f"c:{certificate.id}", found.sentence, certificate.claim)
            for certificate, found in zip(self.certificates, self.verifications, strict=True)
        )
        table = Table(header=("certificate", "second run", "claim"), rows=rows, align="lll")
        counts = f"{self.match} of {len(rows)} certificates match"
        return Part(
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
    from mecharule_ops.pipeline.second_run import bench_of_run, rerun

    if not certificates:
        return Checked(run=run.id, certificates=(), verifications=())
    bench = bench_of_run(run)
    found = tuple(verify(one, lambda each: rerun(bench, each)) for one in certificates)
    return Checked(run=run.id, certificates=tuple(certificates), verifications=found)
