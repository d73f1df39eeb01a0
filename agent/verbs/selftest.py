"""Whether the whole product says of models with a known circuit exactly what is so: a table and one sentence."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from agent.verbs.options import SelftestOptions
from mecharule_ops import errors, numbers
from mecharule_ops.facts.fact import fact, said
from mecharule_ops.known_answers.calibration import CASES, Calibration, Exactly, run_case
from mecharule_ops.known_answers.known_model import KnownModel, changed_files
from mecharule_ops.loading.model_names import KNOWN_DIRECTORY
from mecharule_ops.pages import as_text, document
from tools.result import WIDTH, Tell, ToolResult


def selftest(given: SelftestOptions, tell: Tell, models: Path = KNOWN_DIRECTORY) -> ToolResult:
    """Exit code 0 only if every figure is the oracle's and the files of `models` are those of the package.

    Cost: a whole run on each of six small models, under a minute on two cores; nothing is downloaded or kept.
    """
    cases = [case for case in CASES if given.case in (None, case.program)]
    if not cases:
        names = ", ".join(case.program for case in CASES)
        raise errors.UsageError(f"expected a case of: {names}; got {given.case!r}")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for place, case in enumerate(cases, 1):
            tell(f"case {place} of {len(cases)}: {case}")
            rows.append(run_case(case, Path(folder), KnownModel(case.program, models)))
    faults = [f"{row.case}: {fault}" for row in rows for fault in row.faults]
    faults += [f"{name} is not the package's" for name in changed_files(models)]
    told = _all_is_so(rows) if not faults else "NOT exact. " + "; ".join(faults) + "."
    cells = list(map(_cells, rows))
    printed = tuple(tuple(row.values()) for row in cells)
    table = document.Table(header=tuple(cells[0]), rows=printed, align="l" + "r" * (len(cells[0]) - 1))
    lines = [*as_text.block_lines(table, WIDTH), "", *as_text.block_lines(told, WIDTH)]
    facts = [fact(f"{row['case']}: {row}", key=f"case.{row['case']}", value=row) for row in cells]
    facts.append(fact(told.removesuffix("."), key="exact", value=not faults))
    facts.append(fact("; ".join(faults) or "No fault", key="faults", value=[*faults]))
    return ToolResult(text="\n".join(lines), facts=tuple(facts), exit_code=1 if faults else 0)


def _cells(row: Calibration) -> dict[str, str]:
    counts = {name: str(len(getattr(row, name))) for name in ("planted", "found", "missed", "wrong")}
    exact = {"counts": row.counts, "rules": row.rules, "chains": row.chain, "mended": row.mended}
    told = {name: str(each) for name, each in {**exact, "verified": row.certificates}.items()}
    return {"case": str(row.case), **counts, **told, "groups/units": f"{row.queries}/{row.units}"}


def _all_is_so(rows: Sequence[Calibration]) -> str:
    units = numbers.plural(sum(len(row.found) for row in rows), "unit")
    parts = {name: _summed(rows, name) for name in ("rules", "chain", "mended", "certificates")}
    return said("selftest.exact", models=numbers.plural(len(rows), "model"), units=units, **parts)


def _summed(rows: Sequence[Calibration], part: str) -> Exactly:
    parts = [getattr(row, part) for row in rows]
    return Exactly(sum(one.k for one in parts), sum(one.n for one in parts))
