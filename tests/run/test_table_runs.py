"""A table of prompts through every stage on a tiny random model: kept settings, resume, verify, a moved file."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from bundled_run import opened
from command_process import OF_TEXTS, Commands, settings
from lead_oracles import effects
from toy_behaviour import forward

from mecharule_ops import errors, plain_text, types
from mecharule_ops.config import make_config
from mecharule_ops.engine.settling import until_settled
from mecharule_ops.run.outlook import settled
from mecharule_ops.tasks.task_names import task_of
from tools.ablate import typed_example, unobserved

SETTINGS = (*OF_TEXTS, *settings(further=0))
ROWS = [
    {
        **{"prompt": f"{a}{b}", "answer": "y", "a": a, "late": b > "m"},
        **{"essay": b * 220 if b < "c" else "none", "serial": 2**70 + ord(b), "ms": 1.7e12 + ord(a)},
    }
    for a in "abcdefghijkl"
    for b in "abcdefghijklmnopqrst"
]


@pytest.fixture(scope="module")
def table(runs: Path) -> Path:
    path = runs / "letters.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_a_run_keeps_what_the_answers_take_and_the_rows_hash(model: str, table: Path, tmp_path: Path) -> None:
    """Tokens as the tokenizer counts, two more behind a word or number, which show that it has ended; what was said
    stays; a changed row is refused."""
    assert settled(make_config(task=str(table), model=model)).task_settings["max_new_tokens"] == 4
    said = settled(make_config(task=str(table), model=model, task_settings={"max_new_tokens": 5}))
    assert said.task_settings["max_new_tokens"] == 5
    digits = tmp_path / "digits.jsonl"
    digits.write_text('{"prompt": "1+1=", "answers": [2, "12"]}\n')
    assert settled(make_config(task=str(digits), model=model)).task_settings["max_new_tokens"] == 5
    kept = settled(make_config(task=str(digits), model=model))
    digits.write_text('{"prompt": "1+1=", "answers": [3]}\n')
    with pytest.raises(errors.UsageError, match="begin a new run"):
        task_of(kept).describe()
    other = make_config(task="arithmetic", model=model)
    assert settled(other) is other


def test_a_table_goes_through_every_stage_and_verifies(
    commands: Commands, model: str, table: Path, runs: Path
) -> None:
    """Certificates match; another is made from it; a lost file is one line."""
    planned = commands.main("run", str(table), "-m", model, "--dry-run")
    assert planned.code == 0, planned.err
    assert "too few" not in planned.out
    shots = runs / "shots.txt"
    shots.write_text("zz: y")
    prompting = ("--few-shot", str(shots), "--prompt-template", "{a}\\n{prompt}:", "--json")
    data = commands.main("run", str(table), "-m", model, *prompting, "--dry-run").data
    assert data["settings"]["task_settings"]["prefix"] == "zz: y\n"
    assert data["settings"]["task_settings"]["template"] == "{a}\n{prompt}:"
    priced = commands.main("run", str(table), "-m", model, *prompting[:-1], "--dry-run").out
    assert f"at most {len('zz: y') + len(' a ab:')} tokens" in priced
    done = commands.main("run", str(table), "-m", model, *SETTINGS)
    assert done.code == 0, done.err
    assert "letters on" in done.out
    assert "begins with the right answer" in done.out
    assert "nothing is left to do" in commands.main("resume", "last").out
    evidence = _all_match(commands)
    own = commands.main("flip", "last", "a0.h1", "--prompt", "zq?", "--json")
    assert own.code == 0, own.err
    told = own.data["unit.a0.h1.flip.unlabelled"]
    assert (told["before"], told["after"], told["flipped"]) == (*_completions(runs, "zq?"), None)
    assert "is none of the prompts of" in own.data["facts"][0]["said"]
    assert commands.main("show", "last", "--table", "certificates", "--json").data["rows_in_all"] == evidence
    forked = commands.main("run", "--from", "last", "--tau", "0.4", "--yes", "--display", "plain")
    assert forked.code == 0, forked.err
    away = shutil.move(table, runs / "gone.jsonl")
    lost = commands.main("verify", "last", "--all")
    assert lost.code in (2, 4)
    assert "put it there, a run's own into this folder" in lost.err
    shutil.move(away, table)


def test_pairs_by_their_logits_go_through_every_stage(commands: Commands, model: str, runs: Path) -> None:
    """Right is where the target's logit is above the foil's, whatever the model would write; certificates hold.

    What is refused once its model has loaded leaves no run.
    """
    path, words = runs / "pairs.jsonl", ("no", "yes")
    rows = [{**row, "target": words[row["late"]], "foil": words[not row["late"]]} for row in ROWS]
    rows.append({**rows[0], "prompt": "zz", "target": "y", "foil": "yes"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ("run", str(path), "-m", model, *SETTINGS, "--score", "logits", "--drop", "answer")
    before = {*runs.iterdir()}
    short = commands.main(*asked, "--skip-bad", "--set", "task.max_new_tokens=1").err
    assert "expected 2 tokens or more" in short
    assert "' y', which begins the other; leave one out; 1 of 241 rows" in commands.main(*asked).err
    assert {*runs.iterdir()} == before
    checked = commands.main("tasks", "check", str(path), "-m", model, *asked[-4:], "--skip-bad").out
    assert "' → ' yes' against ' no'" in checked
    done = commands.main(*asked, "--skip-bad", *settings(further=9))
    assert done.code == 0, done.err
    assert "prefers a target to all foils" in done.out
    assert "1 of 241 rows are left out" in done.out + done.err
    with opened(max(runs.glob("*.mecharule"), key=lambda one: one.stat().st_mtime_ns), read_only=True) as run:
        assert len(run.records) == len(ROWS)
        (yes, *_), (no, *_) = run.subject.encode(["yes", "no"])
        for record in run.records:
            (begun,) = run.subject.encode([f"{record.example.prompt} "])
            logits = forward(run.subject, begun)[-1]
            assert record.label == (bool(logits[yes] > logits[no]) == record.example.fields["late"])
    _all_match(commands)


def _all_match(commands: Commands) -> int:
    """How many certificates the last run has, which is some."""
    verified = commands.main("verify", "last", "--all", "--json")
    evidence = commands.main("show", "last", "--table", "certificates", "--json").data["rows_in_all"]
    assert verified.code == 0, verified.err
    assert verified.data["certificates.match"] == {"matched": evidence, "of": evidence}
    assert evidence > 0
    return int(evidence)


def _completions(runs: Path, text: str) -> tuple[str, str]:
    """What the model writes on the reference path, unablated and without `a0.h1`."""
    (path,) = runs.glob("*.mecharule")
    with opened(path, read_only=True) as run:
        records = [unobserved(typed_example(run.task, text), run.task)]
        run.config = run.config.model_copy(update={"engine": "plain"})
        engine = run.completer(run.intervention(types.Basis.ATTN_HEAD), records=records)
        made = [engine.completions([group], [0]) for group in ((), (types.Neuron.parse("a0.h1"),))]
        return tuple(plain_text.plain(run.subject.decode(one.tokens[0][0])) for one in made)


def test_text_behind_the_answer_is_no_part_of_what_first_order_says(
    commands: Commands, model: str, table: Path, runs: Path
) -> None:
    """Leads and drops stop at the token that settles a success, and the scores of an account are of those alone."""
    ran = commands.main(
        *("run", str(table), "-m", model, *SETTINGS, "--regime", "1", "--phase", "whole"),
        *settings(**{"task.max_new_tokens": 8, "accounts_for": 3}),
    )
    assert ran.code == 0, ran.err
    newest = max(runs.glob("*.mecharule"), key=lambda path: path.stat().st_mtime_ns)
    with opened(newest, read_only=True) as run:
        subject, task, positive = run.subject, run.task, types.Regime.BASELINE_POSITIVE
        records = [run.observed.records[place] for place in run.observed.eligible(positive)]
        cut = until_settled(subject, task, records)
        for record, whole in zip(cut, records, strict=True):
            texts = [subject.decode(record.tokens[:count]) for count in range(1, len(record.tokens) + 1)]
            assert [task.decide(record.example, text) for text in texts[:-1]] == [None] * (len(texts) - 1)
            assert record.tokens == whole.tokens or task.decide(record.example, texts[-1])
        accounts = [unit.account for unit in run.findings.units() if unit.account]
        replaced = run.replacement(run.intervention(types.Basis.ATTN_HEAD))
        units = [account.neuron for account in accounts]
        short, full = (effects(subject, some, replaced, units) for some in (cut, records))
        for row, record in enumerate(cut):
            kept = len(record.tokens)
            assert np.allclose(short.effect[row, :kept], full.effect[row, :kept], atol=1e-4, equal_nan=True)
            assert np.isnan(short.effect[row, kept:]).all()
        held_out = ~run.observed.train[run.observed.eligible(positive)]
        said = [account.first_order.predicted for account in accounts if account.first_order]
        assert said == (short.excess > 0)[held_out].sum(0).tolist()
        assert said != (full.excess > 0)[held_out].sum(0).tolist()
