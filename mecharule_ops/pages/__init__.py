"""The report of a run: one set of findings as terminal text, JSON or one HTML page (paper, §5–6).

`content` says what is in it, once, for all of them; only the page has plots. No model, no disk. What makes a report is
imported when one is made, since every verb that prints a table comes through this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mecharule_ops.findings.records import Findings

PAGE_ROWS = 200
"""Units not ruled out on the page, which scrolls; text lists fewer."""


def render_text(findings: Findings) -> str:
    """Plain text with aligned tables, never wider than 100 columns."""
    from mecharule_ops.pages.as_text import text_of
    from mecharule_ops.pages.content import WIDEST, report_sections, report_title

    return text_of(report_title(findings), report_sections(findings), WIDEST)


def render_html(findings: Findings) -> str:
    """One self-contained page with its plots inlined as SVG; no script and no external address."""
    from mecharule_ops.pages.content import report_sections, report_title
    from mecharule_ops.pages.html import html_of
    from mecharule_ops.pages.plots import figures

    return html_of(report_title(findings), report_sections(findings, PAGE_ROWS), figures(findings))
