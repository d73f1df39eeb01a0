"""A finished run as one object says what its findings say, and its parts are the report's own."""

from dataclasses import fields, replace
from pathlib import Path

import pandas
import pytest
from bundled_run import opened
from page_reading import page_of

import mecharule_ops as mr
from mecharule_ops import codec
from mecharule_ops.errors import UsageError
from mecharule_ops.events import RuleAnchored
from mecharule_ops.findings.controls import holm
from mecharule_ops.findings.records import Findings, to_json
from mecharule_ops.pages.rows import KINDS, prediction_rows
from mecharule_ops.plain_text import tied


@pytest.fixture(scope="module")
def run(finished_run: Path) -> mr.FinishedRun:
    return mr.open_run(finished_run)


def test_an_unclosed_tag_would_be_seen() -> None:
    """The check can fail."""
    for wrong in ("<p><b>x</p>", "<p>x"):
        with pytest.raises(AssertionError):
            page_of(wrong)


def test_units_are_those_of_the_findings(run: mr.FinishedRun, finished_run: Path) -> None:
    """Every localized unit once, the shown first, with the counts, bounds and claims that the findings hold."""
    with opened(finished_run, read_only=True) as stored:
        (search,) = stored.findings.searches
        alpha, searched = stored.findings.alpha, search.cost.candidates
    assert {row.unit for row in run.units} == {str(one.neuron) for one in search.agonists}
    assert len(run.units) == len(search.agonists)
    for row in run.units:
        one = next(one for one in search.agonists if str(one.neuron) == row.unit)
        plus, minus = one.estimate.associated, one.estimate.unrelated
        assert row.strength == max(plus.flips / plus.n, minus.flips / minus.n)
        assert (row.lower, row.upper) == (one.estimate.lcb(alpha / (2 * searched)), one.ucb)
        assert row.is_tau_agonist == (row.strength >= run.findings.tau)
        assert row.lower <= row.strength
        ran = next((ran for ran in search.controls if ran.neuron == one.neuron), None)
        assert row.random_units == (None if ran is None or ran.basis is None else ran.basis.n)
        assert row.regime == "1→0"


def test_a_rule_is_given_only_where_interval_and_corrected_p_bear_it_out(run: mr.FinishedRun) -> None:
    """For the families of an account and the anchored rule; what was learned is told either way."""
    (search,) = run.findings.searches
    assert run.rules
    for row in run.rules:
        above = row.low is not None and round(row.low, 2) > 0
        assert row.adjusted_p is None or row.p is not None
        assert (row.rule is not None) == (above and row.adjusted_p <= run.findings.alpha)
        assert row.shown.startswith("yes") == (row.rule is not None)
        assert row.rule in (None, row.learned)
    assert [row.p for row in run.rules if row.learned] == [row.p for row in run.rules if row.p is not None]
    corrected = holm([row.p for row in run.rules if row.p is not None])
    assert [row.adjusted_p for row in run.rules if row.p is not None] == corrected
    assert len([row for row in run.rules if row.family == "input"]) == len(search.accounts)
    assert len([row for row in run.rules if row.family == "anchored"]) == len(search.anchored)


def test_what_displays_are_told_of_a_rule_is_what_the_run_decided(
    run: mr.FinishedRun, finished_run: Path
) -> None:
    """The last event of each anchored rule has the corrected p of the findings, and predicts where it is shown."""
    with opened(finished_run, read_only=True) as stored:
        events = (event for _, _, event in stored.store.events())
        told = {(each.regime, each.neuron): each for each in events if isinstance(each, RuleAnchored)}
    rows = [row for row in run.rules if row.family == "anchored" and row.learned is not None]
    assert rows
    for row in rows:
        event = told[(1, row.unit)]
        assert (event.adjusted_p, event.predicts) == (row.adjusted_p, row.rule is not None)
        assert not replace(event, failed=True).predicts


def test_every_prediction_stands_beside_what_is_simpler(run: mr.FinishedRun) -> None:
    """Lead only and drop only on the same held-out records, with the same base rate; nothing is fitted but these."""
    told = list(prediction_rows(run.findings))
    for account in run.findings.searches[0].accounts:
        rows = {row.kind: row for row in told if row.unit == str(account.neuron)}
        assert {"steady drop", "lead only", "drop only"} <= set(rows)
        first = rows["steady drop"]
        for kind in ("lead only", "drop only"):
            assert (rows[kind].records, rows[kind].happened) == (first.records, first.happened)
        assert {kind for kind, row in rows.items() if row.threshold is not None} == {"lead only", "drop only"}


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"claims"}))
def test_frames_have_the_documented_columns_and_the_rows_values(
    run: mr.FinishedRun, finished_run: Path, kind: str, tmp_path: Path
) -> None:
    """A column a field of the row's class; a value that is missing stays missing. Parquet and JSON hold every row."""
    of, rows_of = KINDS[kind]
    with opened(finished_run, read_only=True) as stored:
        rows, findings = list(rows_of(stored)), stored.findings
    assert codec.decode(Findings, codec.parse_json(to_json(findings))["findings"]) == findings
    frame = run.to_dataframe(kind)
    assert list(frame.columns) == [field.name for field in fields(of)]
    assert len(frame) == len(rows) > 0
    frame.to_parquet(tmp_path / "rows.parquet")
    assert pandas.read_parquet(tmp_path / "rows.parquet").to_json() == frame.to_json()
    for name in frame.columns:
        for told, row in zip(frame[name], rows, strict=True):
            value = getattr(row, name)
            assert told == value or (value is None and told != told) or (told is value is None)


def test_the_tree_has_every_tested_group(run: mr.FinishedRun) -> None:
    (search,) = run.findings.searches
    assert str(run.tree(regime=search.regime.arrow)) == str(run.tree(regime=search.regime.value))
    nodes = {(node.layer, node.id): node for node in search.tree}
    rows = run.to_dataframe("tree").to_dict("records")
    assert sorted((row["layer"], row["node"]) for row in rows) == sorted(nodes)
    for row in rows:
        counts = nodes[row["layer"], row["node"]].estimate
        assert row["strength"] == counts.strength
        assert (row["associated_flips"], row["unrelated_n"]) == (counts.associated.flips, counts.unrelated.n)
    assert sum(row["verdict"] == "kept" for row in rows) <= len(search.agonists)


def test_parts_are_well_formed_and_say_what_the_report_says(run: mr.FinishedRun, tmp_path: Path) -> None:
    """A run, a tree, an account, a chain and pictures close what they open; no second renderer words them."""
    unit = str(run.findings.searches[0].accounts[0].neuron)
    account = run.account(unit)
    page = run.report()
    for part in (run, run.tree(), account, run.chain(unit)):
        assert "script" not in page_of(part._repr_html_()).tags
    section = account._repr_html_().partition("<p>")[2].partition("</p>")[0]
    assert f"<p>{section}</p>" in page
    assert tied(run.plot.map().caption) in page
    assert tied(run.plot.map().caption) in run._repr_html_()
    assert "For example." in repr(run)
    assert str(run.findings.run) in repr(run)
    picture = run.plot.map()
    assert picture.drawing in page
    assert picture.savefig(tmp_path / "map.PNG").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UsageError, match=r"\.svg, \.pdf or \.png"):
        picture.savefig(tmp_path / "map.doc")
    assert "<style>.mecharule {" in run._repr_html_()
    assert ".bar b {" in run._repr_html_()
    assert picture.savefig(tmp_path / "map.svg").read_text(encoding="utf-8").startswith("<svg xmlns=")
    assert unit in str(account)


def test_what_is_not_there_is_one_line(run: mr.FinishedRun) -> None:
    """An account that was not made says which command makes it."""
    made = {str(one.neuron) for one in run.findings.searches[0].accounts}
    without = next(row.unit for row in run.units if row.unit not in made)
    with pytest.raises(mr.UsageError, match=r"`mecharule explain .* --parts drive` makes it"):
        run.account(without)
    with pytest.raises(mr.UsageError, match="chain"):
        run.chain(without)
    for call in (
        lambda: run.tree(regime=0),
        lambda: run.tree("attn_head"),
        lambda: run.account("nonsense"),
        lambda: run.account("m99.1"),
        lambda: run.account(None),  # type: ignore[arg-type]
        lambda: run.tree(regime=2),
        lambda: run.to_dataframe("everything"),
        lambda: mr.open_run("feed"),
    ):
        with pytest.raises(mr.UsageError, match="expected") as told:
            call()
        assert "\n" not in str(told.value)


def test_certificates_are_run_again_and_a_changed_one_is_told(copied_run: Path) -> None:
    """Counts and lines of one certificate; with other weights none can be repeated."""
    run = mr.open_run(copied_run)
    one = run.to_dataframe("certificates").iloc[0]
    checked = run.verify([f"c:{one.certificate}"])
    assert (checked.match, checked.differs, checked.cannot) == (1, 0, 0)
    assert one.claim.split(" flips ")[0] in checked._repr_html_()
    page_of(checked._repr_html_())
    assert run.verify([]).match == 0
