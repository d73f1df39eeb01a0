"""The report: what it says, what it never says, and that hostile text stays text in every format."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from findings_fixture import FINDINGS, NEGATIVE, POSITIVE, agonist, anchored, estimate
from hypothesis import given, settings
from hypothesis import strategies as st
from page_reading import page_of

from mecharule_ops.facts.fact import fact
from mecharule_ops.facts.found import negative, suggestions
from mecharule_ops.facts.rules import LONGEST_RULE, clipped
from mecharule_ops.findings import counts, evidence, records
from mecharule_ops.findings.shown import shown_over
from mecharule_ops.numbers import bounds_apart, percent, percent_at_least, percent_at_most
from mecharule_ops.pages import as_text, document
from mecharule_ops.pages.content import report_page, report_sections, report_text, to_copy
from mecharule_ops.pages.html import html_of
from mecharule_ops.pages.rows import RuleRow, rule_rows
from mecharule_ops.plain_text import plain
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.types import Basis, Intervention
from tools.scoring import ClauseRow

GOLDEN = Path(__file__).parent / "golden" / "report.txt"


def only(outcome: records.SearchOutcome, **changes: object) -> records.Findings:
    return replace(FINDINGS, searches=tuple(shown_over([replace(outcome, **changes)], FINDINGS.alpha)))


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def html() -> str:
    return report_page(FINDINGS)


def test_the_report_of_the_fixture_is_the_golden_one() -> None:
    """A change of wording shows here; the other tests say which wording matters."""
    if os.environ.get("MECHARULE_GOLDEN") == "write":
        GOLDEN.write_text(report_text(FINDINGS), encoding="utf-8")
    assert report_text(FINDINGS) == GOLDEN.read_text(encoding="utf-8")


def test_a_paper_can_copy_its_methods_and_a_table() -> None:
    """The shown units alone, folded on a page; signs that LaTeX reads otherwise are escaped."""
    (section,) = to_copy(FINDINGS)
    methods, table = section.blocks
    assert section.folded
    assert f"verify {FINDINGS.run} --all" in str(methods)
    head, *rows = str(table).splitlines()[1:-1]
    assert head.startswith("unit & kept aside")
    assert [row.split(" & ")[0] for row in rows[1:]] == [str(unit.neuron) for unit in FINDINGS.shown()]
    assert as_text.latex_of(document.Table(header=("a_b",), rows=(("50 %",),), align="l")).splitlines()[
        1::2
    ] == [r"a\_b \\", r"50 \% \\"]


def test_a_page_of_18_shown_units_says_at_most_1500_words_before_anything_is_opened() -> None:
    """Each is a row that opens into its card; figures and folded sections count no words."""
    few = [agonist(f"a{layer}.h{head}", 50, 8) for layer in (20, 21) for head in range(9)]
    held_out = replace(
        POSITIVE.held_out, found=tuple(evidence.HeldOutFlips(neuron=one.neuron, flips=44) for one in few)
    )
    found = only(POSITIVE, agonists=tuple(few), held_out=held_out, controls=(), anchored=())
    assert len(found.shown()) == 18
    page = report_page(
        found, {(few[0].neuron, few[0].regime): fact("1 + 2 = 3 → 4 · 2 + 2 = 4 → 5", value="1 + 2 = 3 → 4")}
    )
    rows = re.findall(r'<details class="card">\n<summary>(.*?)</summary>', page)
    assert len(rows) == 18
    assert sum("1 + 2 =\u00a03 → 4" in row and "2 + 2" not in row for row in rows) == 1
    said = re.sub(r"<svg.*?</svg>|<title>.*?</title>|<style>.*?</style>", "", page, flags=re.DOTALL)
    while said != (
        said := re.sub(r"(</summary>)(?:(?!<details).)*?</details>", r"\1", said, flags=re.DOTALL)
    ):
        pass
    assert page.count("`mecharule ")
    assert "`mecharule\u00a0" not in page
    assert 250 < len(re.sub(r"<[^>]*>", " ", said).split()) <= 1500
    assert len(page.encode()) <= 400_000


def test_absence_is_claimed_for_the_basis_only_when_every_unit_of_it_was_tested() -> None:
    """Three strengths of one negative sentence; the wider claim needs the wider test."""
    everything = replace(NEGATIVE, singletons_tested=17_280)
    assert negative(FINDINGS, NEGATIVE).startswith("the search found no unit that reaches")
    assert negative(FINDINGS, everything).startswith("none of the 17,280 searched units reaches")
    whole = replace(everything, basis_units=17_280)
    assert negative(FINDINGS, whole).startswith("no unit of this basis reaches")


def test_a_search_that_missed_what_exhaustive_found_never_says_that_nothing_is_there() -> None:
    said = flat(report_text(only(NEGATIVE, exhaustive=POSITIVE.exhaustive, basis_units=17_280)))
    assert "yet testing every unit alone finds 4 of at least τ = 0.2 on the point estimate" in said
    assert "no unit of this basis" not in said


def test_a_layer_of_which_some_units_were_searched_is_not_called_whole() -> None:
    said = negative(FINDINGS, replace(NEGATIVE, basis_units=34_560))
    assert "with all their searched units, 1 of 2 layers reaches τ" in said
    assert "as a whole" not in said
    quiet = replace(NEGATIVE, whole_layers=(counts.WholeLayer(layer=3, estimate=estimate(5, 5)),))
    assert "and the strongest, layer 3, flips 5 of these 64 of D+" in negative(FINDINGS, quiet)


def test_a_long_rule_is_printed_by_its_beginning() -> None:
    """Under its unit and in the summary."""
    rule = str(Rule.parse(" or ".join(f"a >= {number}" for number in range(1, 60))))
    found = only(POSITIVE, agonists=POSITIVE.agonists[:1], anchored=(anchored("a20.h8", rule, 0.78, 84, 40),))
    text = flat(report_text(found))
    assert "– input rule, MCC .78 [.59, .88]" in text
    assert "a >= 59" not in text
    assert text.count("… (`mecharule show 0c1f --table rules`)") == text.count(rule[:30]) == 2


@settings(max_examples=40)
@given(st.text(st.characters(categories=["L", "Nd", "Zs"]), max_size=600))
def test_a_clipped_rule_is_short_and_says_that_it_is_clipped(rule: str) -> None:
    shown = clipped(rule, "0c1f")
    whole = len(rule) <= LONGEST_RULE
    assert (shown == rule) == whole
    assert whole or (
        shown.endswith("… (`mecharule show 0c1f --table rules`)") and len(shown) <= LONGEST_RULE + 40
    )


def test_a_rule_that_chance_explains_is_not_printed() -> None:
    """MCC .08 on 84 records: the interval holds 0, so every format says that none predicts; the rows mark it."""
    weak = anchored("a20.h8", "b >= 50", 0.08, 84, 40)
    found = only(POSITIVE, agonists=POSITIVE.agonists[:1], anchored=(weak,))
    for text in (report_text(found), report_page(found)):
        said = flat(text.replace("&gt;", ">"))
        assert "where it works most was not asked: `mecharule explain 0c1f a20.h8" in said.lower()
        assert "b >= 50" not in said
        assert "0 of 1 learned rule is shown (corrected for 1, α = .05)" in said
    (row,) = rule_rows(found)
    assert (row.in_words, row.rule, row.learned) == ("", None, "b >= 50")
    assert row.shown == "no, its interval reaches 0"


def test_localized_only_units_are_not_called_agonists() -> None:
    text = flat(report_text(only(POSITIVE, agonists=(agonist("a14.h2", 8, 1),), exhaustive=(), recall=None)))
    assert "on the point estimate (1 unit is not ruled out)" in text
    assert "1 τ-agonist " not in text
    assert "Found. No unit was found that, switched off alone, flips 20 % of the answers asked about." in text
    assert "is no evidence of an effect" in text


def test_every_percentage_stands_with_its_counts() -> None:
    """Each % that is no share printed `k/n (p %)`, `k of these n of D+ (p %)` or `p % of n` is a confidence level."""
    left = re.sub(r"\d(/| of these )[\d,]+ (of D[+-] )?\([^)]*%\)", "", flat(report_text(FINDINGS)))
    left = re.sub(
        r"[\d.]+ % of (N|2N|(the )?[\d,]+|(all )?heads)|(least|less than) [\d.]+ %|\(95 %|"
        r"flips more than 95 %|what 95 %|20 % on one half|95 % of random units",
        "",
        left,
    )
    left = left.replace("a % 10", "").replace("280 of 1,000 (28 %)", "")
    assert "%" not in left[: left.index("Limits")]


def test_small_held_out_samples_have_no_interval_and_show_no_rule() -> None:
    few = anchored("a20.h8", "b >= 50", 0.92, 20, 12)
    lopsided = anchored("a20.h8", "b >= 50", 0.9, 400, 398)
    many = anchored("a20.h8", "b >= 50", 0.92, 84, 40)
    for rule, said in ((few, ".92 (n 20, 12 flips)"), (many, ".92 [.78, .98] (n 84, 40 flips)")):
        rows = rule_rows(only(POSITIVE, agonists=POSITIVE.agonists[:1], anchored=(rule,)))
        assert document.Table.of_rows(RuleRow, rows, ["held-out MCC"]).rows == ((said,),)
    assert [rule.shown for rule in (few, lopsided, many)] == [False, False, True]


def test_an_answer_is_wrapped_at_the_terminal_and_a_row_of_a_table_is_not() -> None:
    *lines, row = as_text.within("How sure. " + "It is so. " * 30 + "\nrow  " + "cell " * 30, 40).splitlines()
    assert max(map(len, lines)) <= 40 < len(row)


@pytest.mark.parametrize("width", [60, 72, 80, 100])
def test_text_keeps_its_width(width: int) -> None:
    assert max(map(len, report_text(FINDINGS, width).splitlines())) <= width


CELLS = st.text(st.characters(categories=["L", "Nd", "Zs"]), max_size=30)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=5), st.integers(30, 100))
def test_columns_of_any_cells_are_aligned_and_keep_the_width(rows: list[tuple[str, ...]], width: int) -> None:
    """Under each header rule every row has blanks where the rule has; without room for words every cell is said."""
    table = document.Table(header=("one", "two", "three"), rows=tuple(rows), align="lrl")
    header, rule, *lines = [*as_text.block_lines(table, width), ""]
    assert max(map(len, (header, rule, *lines))) <= width
    if rule.startswith("---"):
        gaps = [index for index, char in enumerate(rule) if char == " "]
        assert all(row[index] == " " for row in (header, *lines[:-1]) for index in gaps)
    else:
        said = "".join((header, rule, *lines)).replace(" ", "")
        assert all("".join(plain(cell).split()) in said for row in rows for cell in row)


def test_a_table_without_room_for_its_words_names_each_cell() -> None:
    rows = (("m1.37", "0.33 [0.1, 0.5]"), ("m1.14", ""))
    table = document.Table(header=("unit", "strength"), rows=rows, align="lr")
    assert as_text.block_lines(table, 14) == [
        "unit m1.37 ·",
        "    strength",
        "    0.33 [0.1,",
        "    0.5]",
        "unit m1.14",
    ]
    assert as_text.block_lines(table, 15)[2:4] == ["m1.37      0.33", "          [0.1,"]


def test_hostile_rule_text_is_text_in_html(html: str) -> None:
    page = page_of(html)
    assert "script" not in page.tags
    assert "<script>alert(1)</script>" in "".join(page.words)
    assert "\x1b" not in html
    assert "\u202e" not in html


def test_hostile_rule_text_is_text_on_the_terminal() -> None:
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", report_text(FINDINGS))


@settings(max_examples=30)
@given(st.text(max_size=60))
def test_any_rule_text_leaves_the_page_well_formed(rule: str) -> None:
    """No text changes the page's tags; an unescaped one would (shown with `<b>` put in raw)."""
    hostile = replace(POSITIVE.anchored[0], rule=Rule.parse(f"contains(prompt, {rule!r})"))
    plain_rule = replace(hostile, rule=Rule.parse("b >= 50"))
    found = only(POSITIVE, anchored=(hostile,), splitter=rule)
    bare = only(POSITIVE, anchored=(plain_rule,), splitter="b >= 50")
    pages = [page_of(html_of("", report_sections(one), {})) for one in (bare, found)]
    assert pages[1].tags == pages[0].tags
    assert "b" in page_of("<p><b>x</b></p>").tags


def test_page_is_self_contained(html: str) -> None:
    """No address at all, no script, no link; references only to ids of the page, each defined once."""
    page = page_of(html)
    assert "://" not in html
    assert not {"script", "link", "iframe", "img", "object"} & set(page.tags)
    ids = [value for name, value in page.attributes if name == "id"]
    targets = [value[1:] for name, value in page.attributes if name == "href"]
    targets += re.findall(r"url\(#([^)]+)\)", html)
    assert targets
    assert set(targets) <= set(ids)
    assert len(ids) == len(set(ids))


def test_page_has_the_plots_that_have_data_and_is_the_same_every_time(html: str) -> None:
    labels = [value for name, value in page_of(html).attributes if name == "aria-label"]
    assert labels == ["map-narrow", "map"]
    assert "currentColor" in html
    assert "prefers-color-scheme: dark" in html
    assert report_page(FINDINGS) == html


@given(st.integers(1, 10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_nothing_but_none_and_all_prints_as_0_or_100_percent(pair: tuple[int, int]) -> None:
    k, n = pair
    assert (percent(k / n) == "0 %") == (k == 0)
    assert (percent(k / n) == "100 %") == (k == n)
    assert float(percent_at_most(k / n).removesuffix(" %")) / 100 >= k / n - 1e-9
    assert float(percent_at_least(k / n).strip("<> %")) / 100 <= k / n + 1e-9


def test_bounds_that_differ_do_not_read_alike() -> None:
    assert bounds_apart(0.1568, 0.1427) == ("15.6 %", "14.3 %")
    assert bounds_apart(0.244, 0.149) == ("24 %", "15 %")
    assert bounds_apart(0.1504, 0.1496) == ("15.040 %", "14.960 %")
    assert bounds_apart(0.0534, 0.0526) == ("5.340 %", "5.260 %")
    assert bounds_apart(0.00534, 0.00526) == ("0.534 %", "0.526 %")
    assert bounds_apart(0.0526, 0.0534) == ("5.2 %", "5.4 %")


ON_MLP = Intervention(basis=Basis.MLP_OUT)
QUIET = {"whole_layers": (counts.WholeLayer(layer=3, estimate=estimate(5, 5)),)}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "Whole layers reach τ in 1→0 (1 of 2), no unit seen alone does"),
        ({}, "or one unit has it that was pruned with its group"),
        ({"singletons_tested": 17_280}, "directions that are no single unit."),
        ({"whole_layers": ()}, "--basis attn_head,mlp_hidden`"),
        ({"unrelated_n": 11}, "14 examples a slice are needed before anything can be pruned, 11 exist"),
        (QUIET, "No layer's mlp_out units reach τ in 1→0 together"),
        (QUIET, "`mecharule run --from 0c1f --phase last-prompt`"),
    ],
)
def test_advice_follows_from_the_counts(changes: dict[str, object], said: str) -> None:
    assert said in " ".join(suggestions(FINDINGS, replace(NEGATIVE, **changes)))


def test_no_basis_is_advised_that_was_searched_and_nothing_where_a_tau_agonist_was_found() -> None:
    assert "--basis mlp_hidden`." in " ".join(suggestions(FINDINGS, NEGATIVE, {*Basis} - {Basis.MLP_HIDDEN}))
    assert "--basis" not in " ".join(suggestions(FINDINGS, NEGATIVE, set(Basis)))
    assert not [*suggestions(FINDINGS, POSITIVE)]
    assert "layer" not in " ".join(suggestions(FINDINGS, replace(NEGATIVE, basis_units=34_560)))


def test_records_of_one_cluster_are_a_limit_of_p_and_interval() -> None:
    said = "speak of further records with the same values of construction, not of other ones."
    assert said in flat(report_text(replace(FINDINGS, clusters="construction")))
    assert "not of other ones" not in flat(report_text(FINDINGS))


def test_numbers_stand_right_whether_a_modules_annotations_are_texts_or_types() -> None:
    assert all("r" in document.Table.of_rows(kind, ()).align for kind in (RuleRow, ClauseRow))
