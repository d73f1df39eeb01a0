"""A run as a folder that stands by itself: what it claims, what is needed to check it, and its report."""

import json
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory

from agent.verbs.options import ExportOptions
from mecharule_ops import errors, plain_text
from mecharule_ops.certificates import bundles, certificate
from mecharule_ops.facts.examples import examples_of
from mecharule_ops.findings.records import Findings, to_json
from mecharule_ops.pages.content import report_text, write_page
from mecharule_ops.replacement.table_files import write_table
from mecharule_ops.run import live_run, opening
from tools import registry, verify

README = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")


def export(given: ExportOptions, tell: registry.Tell) -> registry.ToolResult:
    """The folder, with every file it holds. Raises `UsageError` and `StoreError` as `make_empty`."""
    with opening.opened(given.run) as run:
        findings = opening.findings_of(run)
        if run.task.concealed and not given.show_text:
            raise errors.UsageError(
                f"expected --show-text to export run {run.id}: its certificates hold prompts and completions in clear"
            )
        certificates = run.store.certificates()
        folder = Path(given.folder or f"{run.id}-export")
        bundles.make_empty(folder)
        tell(f"writing {len(certificates)} certificates, reports and replacement values to {folder}")
        with errors.system_errors(f"to write {folder}"), TemporaryDirectory(dir=folder, prefix=".") as new:
            made = Path(new)
            bundles.write_bundle(made / verify.CERTIFICATES, certificates)
            _write_reports(made, findings, run)
            tables = _write_tables(made / verify.TABLES, run, certificates)
            for each in [*made.iterdir()]:
                each.rename(folder / each.name)
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    counts = {"certificates": len(certificates), "replacement_tables": tables, "files": len(files)}
    said = f"{folder}: {len(certificates)} certificates, {len(files)} files"
    said = f"{said}; `mecharule verify {shlex.quote(str(folder))}` runs them again"
    return registry.ToolResult(data={"run": findings.run, "folder": str(folder), **counts}, text=said)


def _write_reports(folder: Path, findings: Findings, run: live_run.Run) -> None:
    named = ("run", "model", "model_hash", "tokenizer_hash", "task")
    texts = {
        "report.txt": report_text(findings),
        "report.json": to_json(findings) + "\n",
        verify.CONFIG: json.dumps(run.config.model_dump(mode="json"), indent=1, sort_keys=True) + "\n",
        "README.md": README.format(**{name: getattr(findings, name) for name in named}),
    }
    write_page(findings, examples_of(run), folder / "report.html")
    for name, text in texts.items():
        plain_text.write_file(folder / name, text)


def _write_tables(folder: Path, run: live_run.Run, certificates: tuple[certificate.Certificate, ...]) -> int:
    """One file for each set of replacement values that a certificate names; returns how many."""
    each = (how for one in certificates for how in (one.intervention, *one.given.values()))
    stated = {how.baseline_hash: how.intervention for how in each}
    if stated:
        folder.mkdir(parents=True, exist_ok=True)
    for wanted, how in stated.items():
        table = run.replacement(how)
        if table.hash != wanted:
            raise errors.StoreError(
                f"expected values {wanted}, this machine computes {table.hash}; export where the run was made"
            )
        write_table(folder / f"{wanted}.npz", table)
    return len(stated)
