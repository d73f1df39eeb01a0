"""Words of a question that name a column of the run's own table, a value of one, or a word of some prompts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bundled_run import QUICK

import mecharule_ops as mr
from agent.chat import ask, names_of
from mecharule_ops.errors import UsageError
from mecharule_ops.run import opening, tabulating
from tools.registry import call

SIZES = {"Tiny": 50, "Medium": 150, "Huge": 300}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A quick run over a table of sums with a column of three values."""
    folder = tmp_path_factory.mktemp("own")
    sums = [(a, b) for a in range(3, 300, 23) for b in range(5, 300, 23)]
    extents = [next(size for size, most in SIZES.items() if max(pair) < most) for pair in sums]
    rows = [
        {"prompt": f"{a} + {b} =", "answer": f" {a + b}", "extent": extent, "carry": a % 2 == 0}
        for (a, b), extent in zip(sums, extents, strict=True)
    ]
    of_quick = ("bases", "slice_size", "proposals", "controls", "controls_for", "anchor_for", "accounts_for")
    asked = {name: QUICK[name] for name in of_quick} | {"chains_for": 0, "tau": 0.05, "records": 160}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MECHARULE_RUNS", str(folder))
        run = mr.analyse(rows, model="arith-tiny", regimes=(1,), **asked)
        yield str(Path(folder, f"{run.id}.mecharule"))


def test_columns_of_few_values_are_named(path: str) -> None:
    with opening.opened(path) as run:
        assert tabulating.few_valued(run) == {"extent": sorted(SIZES)}
        read = names_of(run).condition
        assert read("extent is huge?") == "extent == 'Huge'"
        assert read("extent is Nowhere") is None
        assert read("carry") == read("carry?") == "carry"


def test_a_column_goes_before_the_word_for_sums(path: str) -> None:
    """Of two values, true or false, it is a condition as it stands; a word that needs other columns is no predicate."""
    with opening.opened(path) as run:
        even = [record for record in run.records if record.example.fields["carry"]]
        unit = str(run.findings.searches[0].agonists[0].neuron)
    given = {"run": path, "units": unit, "yes": True}
    asked = "carry", "carry == True"
    alone, said = (call("tabulate", {**given, "where": where}).as_json for where in asked)
    assert alone[f"unit.{unit}.train.carry"] == said[f"unit.{unit}.train.carry == True"]
    told: Any = call("show", {"run": path, "section": "accuracy", "where": "carry"}).as_json
    assert told["run.accuracy.where"]["where"]["n"] == len(even)
    call("records", {"run": path, "unit": unit, "where": "carry", "yes": True})
    with pytest.raises(UsageError, match="got 'borrow'"):
        call("tabulate", {**given, "where": "borrow"})


def test_accuracy_is_told_by_each_value_and_where_a_condition_holds(path: str) -> None:
    """The shares sum to all records, narrowed to a value to its records; a section about cost is not narrowed."""
    told: Any = call("show", {"run": path, "section": "accuracy"}).as_json
    by, every = told["run.accuracy.by.extent"].values(), told["run.accuracy"]
    assert [sum(share[name] for share in by) for name in ("n", "count")] == [every["n"], every["count"]]
    with opening.opened(path) as run:
        huge = [record for record in run.records if record.example.fields["extent"] == "Huge"]
    right = sum(record.label for record in huge)
    where = {"run": path, "where": "extent == 'Huge'"}
    told = call("show", {**where, "section": "accuracy"}).as_json
    for key, count in (("successes", right), ("failures", len(huge) - right)):
        assert (told[f"run.{key}"]["count"], told[f"run.{key}"]["n"]) == (count, len(huge))
    assert told["run.accuracy.where"]["where"] == {"count": right, "n": len(huge)}
    asked = ask(path, "how accurate is the model where extent is Huge?", environment={}).text
    assert f"{right}/{len(huge)}" in asked
    with pytest.raises(UsageError, match="leave it out"):
        call("show", {**where, "section": "cost"})
