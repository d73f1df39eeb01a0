"""The page in Chromium: nothing is wider than its window, at the widths of a telephone and of a desk."""

import re
import subprocess
from pathlib import Path

import pytest
from findings_fixture import FINDINGS

from mecharule_ops.pages.content import report_page

pytestmark = pytest.mark.slow
MEASURE = """<script>addEventListener("load", () => {
  document.querySelectorAll("details").forEach(one => one.open = OPEN);
  const over = [...document.body.querySelectorAll("*")].filter(one => !one.closest("svg svg, pre, .scroll"))
    .filter(one => one.getBoundingClientRect().right > innerWidth + 1).map(one => one.tagName + "." + one.className);
  document.title = `measured ${innerWidth} ${document.documentElement.scrollWidth} ${over.join(" ")} end`;
})</script>"""
"""Measures after loading and says it in the title: the window, the document, and what reaches out of the window."""


def reaching_out(page: Path, width: int, opened: bool) -> tuple[int, str]:
    """How wide the document is in a window so wide, and the elements that reach out of it.

    A window of Chromium is never narrower than 500 px, so the page stands in a frame of the width.
    """
    inner = page.read_text(encoding="utf-8").replace(
        "</head>", MEASURE.replace("OPEN", str(opened).lower()) + "</head>"
    )
    (page.parent / "inner.html").write_text(inner, encoding="utf-8")
    frame = f'<iframe src="inner.html" style="width:{width}px;height:900px;border:0"></iframe>'
    says = "<script>addEventListener('load', () => document.title = frames[0].document.title)</script>"
    (page.parent / "outer.html").write_text(
        f"<html><head>{says}</head><body>{frame}</body></html>", encoding="utf-8"
    )
    settings = (
        "--headless --no-sandbox --hide-scrollbars --allow-file-access-from-files --virtual-time-budget=5000"
    )
    ours = f"--user-data-dir={page.parent / 'profile'}", "--dump-dom", (page.parent / "outer.html").as_uri()
    command = ["chromium", *settings.split(), "--window-size=1400,1000", *ours]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    measured = re.search(r"measured (\d+) (\d+) (.*?) ?end", told)
    assert measured, told[:500]
    assert int(measured[1]) == width
    return int(measured[2]), measured[3]


@pytest.mark.parametrize("opened", [False, True], ids=["folded", "open"])
@pytest.mark.parametrize("width", [390, 1280])
def test_no_element_is_wider_than_the_window(width: int, opened: bool, tmp_path: Path) -> None:
    """Neither folded nor with every card open; and the check sees a box that is."""
    page = tmp_path / "page.html"
    page.write_text(report_page(FINDINGS), encoding="utf-8")
    assert reaching_out(page, width, opened) == (width, "")
    box = '<body><div class="wide" style="width:2000px">x</div>'
    page.write_text(page.read_text(encoding="utf-8").replace("<body>", box, 1), encoding="utf-8")
    assert "DIV.wide" in reaching_out(page, width, opened)[1]
