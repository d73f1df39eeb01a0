"""What a drawing keeps when it is made small, and the map that a page opens with."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from drawn import rows_of_points
from findings_fixture import FINDINGS, NEGATIVE

from mecharule_ops.facts.fact import fact
from mecharule_ops.facts.found import top_line, when_line
from mecharule_ops.pages import content, drawing, plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@pytest.mark.parametrize("count", [0, 1, 2, 3, 50])
def test_every_point_is_drawn_at_its_place(count: int) -> None:
    """As many points, as far apart as the data, a glyph for each kind."""
    x, y = np.random.default_rng(count).random((2, count + 3))
    filled = np.arange(count + 3) < count

    def plot(figure: Figure) -> None:
        drawing.glyphs(figure.subplots(), x, y, filled, ("", ""))

    rows = rows_of_points(drawing.draw("points", plot))
    assert [len(places) for _, places in rows] == ([count, 3] if count > 2 else [3])
    across = np.diff(np.array(rows[-1][1])[:, 0]) / np.diff(x[count:])
    assert across == pytest.approx(np.full(2, across[0]), rel=2e-2)
    assert len({glyph for glyph, _ in rows}) == len(rows)


EXAMPLE = "Without a20.h8: 12 + 30 = 42 → 41."


def test_the_page_opens_with_what_was_found_as_a_picture() -> None:
    """Under the finding, before any other sentence; as a slide, 16 to 9, with all that is said of it. Bars are what is
    flipped of answers kept aside, green where that is shown."""
    shown = FINDINGS.shown()
    told = fact(EXAMPLE[len("Without a20.h8: ") : -1], unit=shown[0].neuron)
    page = content.report_page(FINDINGS, {(shown[0].neuron, shown[0].search.regime): told})
    (svg, caption) = plots.finding_figure(FINDINGS, EXAMPLE)[plots.MAP]
    assert page.index(f"<h1>{top_line(FINDINGS)}</h1>") < page.index(svg) < page.index("<p>")
    slide, (width, height) = plots.finding_plots(FINDINGS, EXAMPLE)[plots.SLIDE]
    assert width / height == pytest.approx(16 / 9)
    words = " ".join(re.findall(r">([^<>]+)</t(?:ext|span)>", drawing.draw("slide", slide)))
    for told in (top_line(FINDINGS), EXAMPLE, when_line(FINDINGS), "mecharule verify 0c1f"):
        assert told in html.unescape(words)
    assert page.count('class="bar shown"') == len(FINDINGS.shown()) < page.count('class="bar')
    assert f">{shown[0].neuron}</text>" in svg
    assert all((f">{unit.neuron}</text>" in svg) is unit.is_shown for unit in FINDINGS.units())
    assert caption.startswith("The model: layers across")
    bars = re.findall(r'<b style="width:([\d.]+)%">', page)
    assert float(bars[0]) == pytest.approx(100 * shown[0].evidence.flips.flips / 64, abs=0.05)
    assert len(bars) == len(FINDINGS.searches[0].held_out.found)


def test_nothing_found_and_nothing_ablated_is_no_map() -> None:
    """Negative results with whole layers still have one."""
    bare = replace(NEGATIVE, agonists=(), whole_layers=())
    assert plots.finding_figure(replace(FINDINGS, searches=(bare,))) == {}
    assert set(plots.finding_figure(replace(FINDINGS, searches=(NEGATIVE,)))) == (
        {plots.MAP, plots.NARROW} if NEGATIVE.whole_layers else set()
    )
