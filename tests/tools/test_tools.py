"""Every tool on one real run of the bundled model: results with ids, errors to act on, claims that re-run."""

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bundled_run import opened
from command_process import ROOT, Commands, Result
from tiny_models import save_tiny

from agent.verbs.options import called
from mecharule_ops import bases, errors, events
from mecharule_ops.certificates.verification import totals_of
from mecharule_ops.loading import shape as wiring
from mecharule_ops.store import keys, run_store
from mecharule_ops.types import Neuron, Regime
from tools.arguments import Arguments
from tools.registry import TOOLS, call
from tools.result import Quoted, accepted

Tool = Callable[..., Result]


@pytest.fixture(scope="module")
def runs(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs with a copy of the finished run that these tests may write to."""
    folder = tmp_path_factory.mktemp("tool-runs")
    (folder / finished_run.name).write_bytes(finished_run.read_bytes())
    return folder


@pytest.fixture
def tool(commands: Commands) -> Tool:
    """Calls a tool by name, in a process of its own; data must be JSON without NaN."""
    return commands.tool


@pytest.fixture(scope="module")
def strongest(commands: Commands) -> str:
    return str(commands.tool("show", table="units", limit=1).data["rows"][0]["unit"])


@pytest.fixture(scope="module")
def tested(runs: Path) -> list[events.NodeTested]:
    """Every tested group that the run recorded."""
    with run_store.RunStore.open(runs / "b00d.mecharule", read_only=True) as store:
        return [event for _, _, event in store.events() if isinstance(event, events.NodeTested)]


@pytest.fixture(scope="module")
def pruned(tested: list[events.NodeTested]) -> str:
    """A unit that was pruned inside a group: the last one named in its event."""
    node = next(event.node for event in tested if event.node.verdict == "pruned" and event.node.size > 1)
    return node.printed(bases.Basis.MLP_OUT).split(" … ")[-1]


def test_why_gives_the_counts_of_its_own_certificate(tool: Tool, runs: Path, strongest: str) -> None:
    """Two routes to one number: the account's counts and those of the certificate's rows."""
    result, key = tool("why", run="last", neuron=strongest, full=True), f"unit.{strongest}"
    with run_store.RunStore.open(runs / "b00d.mecharule", read_only=True) as store:
        certificate = store.certificate(result.data[f"{key}.certificate"])
    for name, part in result.data[f"{key}.slices"].items():
        rows = [row for row in certificate.rows if row.slice == name]
        assert (part["flips"], part["n"]) == (sum(row.flipped for row in rows), len(rows))
    assert len(result.data[f"{key}.flipped"]["rows"]) == sum(row.flipped for row in certificate.rows)
    assert result.data[f"{key}.controls.counts"]
    assert f"`mecharule verify {certificate.id}" in result.text
    brief = tool("why", run="last", neuron=strongest)
    assert {name for name in brief.data if name != "facts"} < result.data.keys()


def test_held_out_flips_count_where_a_named_condition_holds(tool: Tool, runs: Path, strongest: str) -> None:
    """Both sides together are the held-out answers of the direction; it flips more often there than elsewhere."""
    where = tool("why", run="last", neuron=strongest, full=True).data[f"unit.{strongest}.where"]
    with opened(runs / "b00d.mecharule") as run:
        positions = run.observed.eligible(Regime(1))
        held_out = positions[~run.observed.train[positions]]
        flips = run.flips([(Neuron.parse(strongest),)], held_out, Regime(1))[0]
    there, elsewhere = where["holds"], where["elsewhere"]
    assert (there["flips"] + elsewhere["flips"], there["n"] + elsewhere["n"]) == (flips.sum(), len(flips))
    assert there["flips"] / there["n"] > elsewhere["flips"] / elsewhere["n"]


def test_why_runs_no_model_and_names_the_command_that_makes_a_certificate(tool: Tool) -> None:
    """The weakest localized unit has none: its stored counts, the price of the rest; then what `ablate` kept."""
    weakest = str(tool("show", table="units", limit=500).data["rows"][-1]["unit"])
    before = len(tool("show", table="certificates").data["rows"])
    stored, key = tool("why", run="last", neuron=weakest, full=True), f"unit.{weakest}"
    assert stored.data[f"{key}.certificate"] is None
    assert re.search(rf"`mecharule ablate \w+ {weakest}` makes one \(64 ablated completions, ", stored.text)
    assert len(tool("show", table="certificates").data["rows"]) == before
    made = tool("ablate", run="last", units=weakest).certificate
    known = tool("why", run="last", neuron=weakest, full=True)
    assert known.data[f"{key}.certificate"] == made
    assert known.data[f"{key}.slices"] == stored.data[f"{key}.slices"]
    assert f"mecharule verify {made}" in known.text


def test_why_not_names_the_pruned_group_and_tests_exactly_on_demand(tool: Tool, pruned: str) -> None:
    """The group's verdict from the record, what the audit counted, the unit's own counts; `why` points there."""
    unit = pruned
    with pytest.raises(errors.ClaimNotSupported, match="why-not"):
        tool("why", run="last", neuron=unit)
    result = tool("why-not", run="last", neuron=unit)
    settled = result.data[f"unit.{unit}.why_not.tests"][-1]
    assert result.data[f"unit.{unit}.why_not.reason"] == "audited"
    assert "tested alone as well, it flips" in result.text
    assert settled["size"] > 1
    assert settled["upper_bound"] < 0.2
    assert "--test" not in result.text, "every example was asked"
    tested = tool("why-not", run="last", neuron=unit, test=True)
    assert tested.data[f"unit.{unit}.flips"].keys() == {"associated", "unrelated"}
    assert tool("verify", what=tested.certificate).exit_code == 0


def test_flip_certifies_one_prompt(tool: Tool, strongest: str) -> None:
    """The answer's before and after are those of a certificate that re-runs."""
    result = tool("flip", run="last", neuron=strongest, prompt="120 - 7 =")
    data = result.data[f"unit.{strongest}.flip.typed"]
    assert data["prompt"] == "120 - 7 ="
    assert data["flipped"] == (data["before"] != data["after"]) or not data["flipped"]
    assert f"with {strongest} switched off, '120 - 7 =' {data['before']} (" in result.text
    assert tool("verify", what=result.certificate).exit_code == 0
    for prompt in ("999 - 7 =", "7 - 1 = 6 +"):
        told = tool("flip", run="last", neuron=strongest, prompt=prompt).data
        (own,) = [told[key] for key in told if key.endswith("flip.unlabelled")]
        assert (own["prompt"], own["flipped"]) == (prompt, None)
        assert own["changed"] == (own["before"] != own["after"])
    with pytest.raises(errors.UsageError, match="expected a question"):
        tool("flip", run="last", neuron=strongest, prompt=" ")


def test_ablate_has_a_price_then_counts_then_costs_nothing(tool: Tool, strongest: str) -> None:
    """A second time the file answers; with --estimate nothing is written."""
    units = f"{strongest},m1.5"
    before = len(tool("show", table="certificates").data["rows"])
    assert tool("ablate", run="last", units=units, estimate=True).data["price"]["example_forwards"] > 0
    assert len(tool("show", table="certificates").data["rows"]) == before
    done = tool("ablate", run="last", units=units)
    assert tool("ablate", run="last", units=units).certificate == done.certificate
    assert tool("ablate", run="last", units=units, estimate=True).data["price"]["example_forwards"] == 0
    with pytest.raises(errors.UsageError, match="one basis"):
        tool("ablate", run="last", units=f"{strongest},a0.h1")


@pytest.mark.parametrize("more", [{"where": "op == '-' and a > 60"}, {"baseline": "zero"}])
def test_ablate_on_train_records_or_by_another_baseline_is_certified(
    tool: Tool, runs: Path, strongest: str, more: dict[str, str]
) -> None:
    """The rows are the train records where it holds; what is counted is theirs, kept once, and runs again."""
    asked = {"run": "last", "units": strongest, **more}
    price = tool("ablate", **asked, estimate=True).data["price"]["example_forwards"]
    done = tool("ablate", **asked, yes=True)
    with opened(runs / "b00d.mecharule", read_only=True) as run:
        made = run.store.certificate(done.certificate)
        of_train = [one for one, train in zip(run.observed.records, run.observed.train, strict=True) if train]
    assert price == len(made.rows)
    told = done.data[f"unit.{strongest}.flips{'.zero' if 'baseline' in more else ''}"]
    rows = {name: [row.flipped for row in made.rows if row.slice == name] for name in told}
    assert sum(map(len, rows.values())) == len(made.rows)
    for name, flips in rows.items():
        assert (told[name]["flips"], told[name]["n"]) == (sum(flips), len(flips))
    if "where" in more:
        right = [one.example for one in of_train if one.label]
        such = {one.id for one in right if one.fields["op"] == "-" and one.fields["a"] > 60}
        assert set(made.example_ids) == such
    assert made.intervention.baseline == more.get("baseline", "mean-positional")
    assert tool("verify", what=made.id).exit_code == 0
    assert tool("ablate", **asked, estimate=True).data["price"]["example_forwards"] == 0
    with pytest.raises(errors.UsageError, match="expected a condition that holds on some"):
        tool("ablate", run="last", units=strongest, where="a > 999")


def test_ablate_on_typed_prompts_is_certified(tool: Tool, strongest: str) -> None:
    """Counts of what starts from the outcome; what does not is counted beside, and nothing else can be counted."""
    done = tool("ablate", run="last", units=strongest, prompts=["120-7=", "12+30=", "299+299="], yes=True)
    (told,) = done.data[f"unit.{strongest}.prompts.flips"].values()
    assert told["n"] + done.data.get(f"unit.{strongest}.prompts.left_out", 0) == 3
    assert f"flips {told['flips']} of" in done.text
    assert tool("verify", what=done.certificate).exit_code == 0
    with pytest.raises(errors.UsageError, match="hello"):
        tool("ablate", run="last", units=strongest, prompts=["hello"])


def test_flip_why_not_and_verify_have_a_price_and_write_nothing(tool: Tool, strongest: str) -> None:
    """At most so many of a prompt; those of both slices, or none that is stored; two completions an example."""
    before = len(tool("show", table="certificates").data["rows"])
    asked = {"run": "last", "neuron": strongest, "prompt": "120 - 7 ="}
    assert tool("flip", **asked, estimate=True).data["price"]["example_forwards"] == 1
    assert tool("why-not", run="last", neuron="m0.3", estimate=True).data["price"]["seconds"] == 0
    price = tool("why-not", run="last", neuron="m0.3", test=True, estimate=True).data["price"]
    assert price["example_forwards"] == 64
    certificate = tool("show", table="certificates").data["rows"][0]["certificate"]
    again = tool("verify", what=certificate, estimate=True)
    pace = price["seconds"] / price["example_forwards"]
    assert again.data["price"] == {"example_forwards": 2 * 64, "seconds": pytest.approx(2 * 64 * pace)}
    assert "the run's own path would take" in again.text
    assert len(tool("show", table="certificates").data["rows"]) == before


def test_verify_last_is_of_the_run_that_finished_or_was_asked_last(
    finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever was written last, and never one that cannot be read."""
    monkeypatch.setenv("MECHARULE_RUNS", str(tmp_path))
    for name in ("aaaa", "bbbb"):
        (tmp_path / f"{name}.mecharule").write_bytes(finished_run.read_bytes())
    (tmp_path / "cccc.mecharule").write_text("no run")
    for name in ("aaaa", "bbbb", "aaaa"):
        with run_store.RunStore.open(tmp_path / f"{name}.mecharule") as store:
            one, *others = (made.id for made in store.certificates())
            asked = events.QuestionAnswered(question="", answer="", llm="", checked="", certificates=(one,))
            store.append([asked if name == "aaaa" else events.RunFinished(run=name, status="")])
            store.put(keys.LAST_ANSWER, [one]) if name == "aaaa" else None
        os.utime(tmp_path / "bbbb.mecharule")
        said = "1 certificate;" if name == "aaaa" else f"{1 + len(others)} certificates;"
        assert f"of {said}" in call("verify", {"estimate": True}).text


def test_a_price_that_was_never_timed_is_said_to_be_unknown() -> None:
    """It is asked about like a long one."""
    unknown = Quoted(example_forwards=300, seconds=None)
    assert unknown.words == "300 ablated completions, this run timed none yet"
    with pytest.raises(errors.UsageError, match="--yes"):
        accepted(unknown, False, print)
    for price, yes in ((unknown, True), (Quoted(example_forwards=64, seconds=None), False)):
        accepted(price, yes, print)


def test_verify_finds_every_certificate_of_the_run_true(tool: Tool, strongest: str) -> None:
    """The fast engine's rows against TransformerLens, example by example."""
    result = tool("verify", all=True)
    assert result.exit_code == 0
    match = result.data["certificates.match"]
    assert match["matched"] == match["of"] > 1


def test_verify_catches_an_invented_row_under_a_new_hash(tool: Tool, runs: Path, strongest: str) -> None:
    """Whoever edits a certificate can hash it again; running it again is what shows the lie. Exit code 4."""
    identifier = tool("why", run="last", neuron=strongest).data[f"unit.{strongest}.certificate"]
    with run_store.RunStore.open(runs / "b00d.mecharule") as store:
        true = store.certificate(identifier)
        place = next(index for index, row in enumerate(true.rows) if not row.flipped)
        liar = true.rows[place]
        turned = replace(liar.after, tokens=(*liar.after.tokens, 2), label=not liar.before.label)
        rows = (*true.rows[:place], replace(liar, after=turned), *true.rows[place + 1 :])
        forged = replace(true, rows=rows, totals=totals_of(rows, true.alpha))
        store.put_certificate(forged)
    result = tool("verify", what=forged.id)
    assert result.exit_code == 4
    assert result.data[f"certificate.{forged.id}.verified"]["differing"] == [liar.example]
    with sqlite3.connect(runs / "b00d.mecharule") as connection:
        connection.execute("DELETE FROM certificate WHERE sha256 = ?", (forged.sha256,))


@pytest.mark.parametrize("field", ["model_hash", "tokenizer_hash"])
def test_verify_cannot_speak_for_another_model(
    tool: Tool, runs: Path, tmp_path: Path, strongest: str, field: str
) -> None:
    """Exit code 3 and the reason; nothing is compared."""
    with opened(runs / "b00d.mecharule", read_only=True) as run:
        true = run.store.certificates()[0]
    other = replace(true, model=replace(true.model, **{field: "0" * 16}))
    path = tmp_path / "other.json"
    path.write_text(other.to_json())
    result = tool("verify", what=str(path), run="last")
    assert result.exit_code == 3
    assert "cannot verify: expected" in result.text


def test_an_exported_folder_verifies_without_the_run(tool: Tool, commands: Commands, tmp_path: Path) -> None:
    """Certificates, replacement values and model name are all in the folder; a changed file or value is noticed."""
    folder = tmp_path / "export"
    written = tool("export", run="last", folder=str(folder))
    names = {*(f"report.{form}" for form in ("html", "svg", "pdf", "txt", "json")), "config.json"}
    assert {*names, "certificates", "replacement"} <= {path.name for path in folder.iterdir()}
    with pytest.raises(errors.UsageError, match="has files"):
        tool("export", run="last", folder=str(folder))
    alone = commands.main("verify", str(folder), "--json", MECHARULE_RUNS=str(tmp_path / "none"))
    assert alone.code == 0
    assert alone.data["certificates.match"]["matched"] == written.data["certificates"] > 0
    one = next(path for path in (folder / "certificates").glob("*.json") if path.name != "index.json")
    assert tool("verify", what=str(one)).exit_code == 0
    one.write_text(one.read_text().replace('"seed": 0', '"seed": 1'))
    with pytest.raises(errors.ClaimNotSupported, match="changed"):
        tool("verify", what=str(folder))
    one.write_text(one.read_text().replace('"seed": 1', '"seed": 0'))
    for path in (folder / "replacement").glob("*.npz"):
        arrays = dict(np.load(path))
        np.savez_compressed(path, **{**arrays, "value0": arrays["value0"] + 1})
    result = tool("verify", what=str(folder))
    assert (result.exit_code, "replacement values" in result.text) == (3, True)


@pytest.mark.parametrize("name", ["units", "rules", "certificates", "tree", "candidates"])
def test_tables_cut_what_is_asked_and_say_so(tool: Tool, name: str) -> None:
    """Text, JSON and CSV hold the same rows, and a note when some are left out."""
    whole = tool("show", table=name, limit=1000)
    assert whole.data["truncated"] is False
    assert "left out" not in whole.text
    for form in ({}, {"csv": True}):
        cut = tool("show", table=name, limit=1, **form)
        assert len(cut.data["rows"]) == 1
        assert cut.data["rows_in_all"] == whole.data["rows_in_all"]
        assert ("left out" in cut.text) == cut.data["truncated"]


def test_tree_holds_every_tested_group_once(tool: Tool, tested: list[events.NodeTested]) -> None:
    """As many rows as the record has tested nodes of the search."""
    nodes = {(event.search, event.node.id) for event in tested if event.search.startswith("guided:")}
    assert tool("show", table="tree", limit=1000).data["rows_in_all"] == len(nodes)
    layer = tool("show", table="tree", layer=1, limit=1000).data["rows"]
    assert {row["search"] for row in layer} == {"guided:1:m1"}


def test_doctor_proves_the_hook_and_never_prints_a_key(commands: Commands) -> None:
    """Presence of keys only."""
    done = commands.main("doctor", "-m", "arith-tiny", "--json", ANTHROPIC_API_KEY="canary-7f3a")
    assert done.code == 0
    assert {"contributions", "padding"} <= done.data.keys()
    assert done.data["heads"].endswith(" for the run")
    assert done.data["ok"] is True
    assert done.data["keys"]["ANTHROPIC_API_KEY"] is True
    assert "canary" not in done.out + done.err


def test_doctor_refuses_a_model_that_is_not_what_its_family_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gemma 2 read as Llama: its writes do not sum to the residual stream."""
    model = str(save_tiny(tmp_path / "model", "gemma2"))
    monkeypatch.setitem(wiring._WIRINGS, "gemma2", wiring.wiring_for("llama"))
    done = called("doctor", {"model": model})
    assert (done.exit_code, done.as_json["ok"]) == (3, False)
    assert "attention and MLP of layer 0 write to sum" in str(done.as_json["hook_check"])


def test_every_tool_refuses_unknown_arguments() -> None:
    """Arguments are frozen, and a stray one is named."""
    for name, entry in TOOLS.items():
        assert issubclass(entry.arguments, Arguments)
        with pytest.raises(errors.UsageError, match="stray"):
            call(name, {"stray": 1})
    with pytest.raises(errors.UsageError, match="expected a tool of"):
        call("sing", {})
    with pytest.raises(errors.UsageError, match=r"^tabulate: expected units, got none$"):
        call("tabulate", {"run": "/nowhere/0c1f.mecharule"})


def test_a_package_adds_a_tool_by_an_entry_point(tmp_path: Path) -> None:
    """It stands in the help and is called like every other."""
    (tmp_path / "theirs-1.dist-info").mkdir()
    points = tmp_path / "theirs-1.dist-info" / "entry_points.txt"
    points.write_text("[mecharule.tools]\nodds = theirs:TOOL\n")
    lines = (
        "from tools.arguments import Arguments",
        "from tools.registry import Tool, ToolResult",
        "class Odds(Arguments):",
        "    'tell the odds'",
        "    of: int = 2",
        "def odds(given, tell):",
        "    return ToolResult(text=f'1 to {given.of}')",
        "TOOL = Tool('odds', Odds, 'theirs', alone=True)",
    )
    (tmp_path / "theirs.py").write_text("\n".join(lines))
    there = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    for words, said in ((["odds", "--of", "7"], "1 to 7"), (["--help", "all"], "tell the odds")):
        command = [sys.executable, str(ROOT / "app.py"), *words]
        assert said in subprocess.run(command, env=there, capture_output=True, text=True, check=True).stdout
