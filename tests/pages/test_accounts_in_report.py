"""Accounts and predictions in a report: their own section, figures that tell by glyph, and a size fit for a page."""

import re
from dataclasses import replace

import numpy as np
import pytest
from drawn import rows_of_points
from findings_fixture import FINDINGS, POSITIVE, of_family

from mecharule_ops.findings import accounts, records
from mecharule_ops.pages import content, plots
from mecharule_ops.pages.drawing import draw, standalone
from mecharule_ops.rules.families import Family, RuleStatus, UnitRule
from mecharule_ops.rules.interval import MccInterval
from mecharule_ops.types import FlipCount, FlipsWhere

UNIT = POSITIVE.tau_agonists[0].neuron
GOOD = MccInterval(mcc=0.5, low=0.4, high=0.6, n=200, positives=60)
WHERE = FlipsWhere(holds=FlipCount(flips=50, n=80), elsewhere=FlipCount(flips=10, n=120))
_BESIDE = {"free_form": GOOD, "validated": 0.5, "agreement": 0.9, "where": WHERE}
INPUT = of_family("b >= 50", 0.5, 200, 60, words="b is 50 or more", **_BESIDE)


def account() -> accounts.Account:
    rng = np.random.default_rng(0)
    lead, drop = rng.gamma(2, 2, 200), rng.gamma(2, 2, 200)
    absent = UnitRule(neuron=UNIT, family=Family.EXCEPTION, absent=RuleStatus.CONSTANT)
    counts = {"predicted": 50, "records": 200, "happened": 60, "right": 150}
    first = accounts.PredictionScore(kind=accounts.PredictionKind.STEADY, held_out=GOOD, **counts)
    points = {"lead": lead, "drop": drop, "flipped": drop > lead}
    return accounts.Account(
        neuron=UNIT,
        regime=POSITIVE.regime,
        **{"flips": 90, "records": 300, "held_out": 200},
        families=(INPUT, absent),
        predictions=(first,),
        points=accounts.LeadsAndDrops(**{name: tuple(each.tolist()) for name, each in points.items()}),
    )


@pytest.fixture
def found() -> records.Findings:
    return replace(FINDINGS, searches=(replace(POSITIVE, accounts=(account(),)),))


def test_the_unit_has_a_section_and_says_its_rule_once_in_the_table(found: records.Findings) -> None:
    """With first order, the rule and the trees beside it; the commands that show the rest."""
    text = " ".join(content.report_text(found).split())
    assert f"● {UNIT} 44 of 64" in text
    counts = "50 of 80, against 10 of 120 elsewhere, of 200 held-out answers"
    assert f"When. Mostly when b is 50 or more: {counts}." in text
    assert f"`mecharule explain {found.run} {UNIT} --parts drive --regime 1`" in text


def test_flipped_and_unflipped_are_told_apart_by_glyph(found: records.Findings) -> None:
    """Two different marks besides two colours, and as many of each as there are records."""
    (leads, caption) = next(
        value for name, value in plots.account_figures(account()).items() if name.endswith("leads")
    )
    flipped = account().points.flipped  # type: ignore[union-attr]
    rows = rows_of_points(leads)
    assert {len(places) for _, places in rows} == {sum(flipped), len(flipped) - sum(flipped)}
    assert len({glyph for glyph, _ in rows}) == 2
    assert "200 of the 200 drawn lie on their side" in caption


def test_the_page_shows_the_figures_in_cards_and_folds_what_stands_behind(found: records.Findings) -> None:
    """Each unit is a row to open; so are statistics, searches, settings."""
    other = replace(account(), neuron=POSITIVE.agonists[-1].neuron)
    two = replace(found, searches=(replace(found.searches[0], accounts=(account(), other)),))
    page = content.report_page(two)
    assert page.count('role="img"') >= 2
    assert page.count('<details class="card">') == len(found.searches[0].tau_agonists) + 1
    folded = re.findall(r"<details><summary><h2>(.*?)</h2>", page)
    search = "Search 1: attn_head 1→0"
    assert folded == ["Statistics", search, "Task and run", "Limits", "Named choices", "Words", "To copy"]


def test_a_figure_keeps_its_places() -> None:
    """Every reference still has its definition, no place has more than two decimals."""
    svg = draw("one", lambda figure: figure.subplots().plot([0, 1, 2], [0.123456, 1.5, 1.7], "o-"))
    assert set(re.findall(r'(?:href="|url\()#([^")]+)', svg)) <= set(re.findall(r'\bid="([^"]+)"', svg))
    assert not re.search(r'\bx="[^"]*\.\d{3,}', svg)
    assert standalone(svg).startswith("<svg xmlns=")
    assert draw("one", lambda figure: figure.subplots().plot([0, 1, 2], [0.123456, 1.5, 1.7], "o-")) == svg
