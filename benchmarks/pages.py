"""Figures in a page: what a command writes stands between two marks, the words around it are a person's."""

from __future__ import annotations

from pathlib import Path

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def put_between(page: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """Replace what stands between the marks. Raises `ValueError` where the page lacks one."""
    before, mark, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closing, after = rest.partition(end)
    if not (mark and closing):
        raise ValueError(f"expected {begin} and {end} in {page.name}")
    page.write_text(f"{before}{begin}\n{text.rstrip()}\n{end}{after}", encoding="utf-8")
