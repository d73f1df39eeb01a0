"""The report of a run: one set of findings as terminal text, JSON, Markdown or one HTML page (paper, §5–6).

`content` says what is in it, once, for all of them; only the page has plots. No model, no disk. What makes a report is
imported when one is made, since every verb that prints a table comes through this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mecharule_ops.findings.records import Findings

PAGE_ROWS = 200
"""Units not ruled out on the page, which scrolls; text and Markdown list fewer."""


def render_screen(findings: Findings, example: str = "") -> str:
    """What a person reads when a run has ended: at most 40 lines of 100 columns."""
    from mecharule_ops.pages.screen import screen

    return screen(findings, example)


def render_text(findings: Findings) -> str:
    """Plain text with aligned tables, never wider than 100 columns."""
    from mecharule_ops.pages.as_text import text_of
    from mecharule_ops.pages.content import WIDEST, document

    return text_of(document(findings), WIDEST)


def render_markdown(findings: Findings) -> str:
    """GitHub-flavoured Markdown; rule text cannot become markup."""
    from mecharule_ops.pages.as_text import markdown_of
    from mecharule_ops.pages.content import document

    return markdown_of(document(findings))


def render_json(findings: Findings) -> str:
    """The findings themselves, every number with its counts; `findings.records.from_json` reads it back."""
    from mecharule_ops.findings.records import to_json

    return to_json(findings) + "\n"


def render_html(findings: Findings) -> str:
    """One self-contained page with its plots inlined as SVG; no script and no external address."""
    from mecharule_ops.pages.content import document
    from mecharule_ops.pages.html import html_of
    from mecharule_ops.pages.plots import figures

    return html_of(document(findings, PAGE_ROWS), figures(findings))
