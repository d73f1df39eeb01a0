"""HANS, jailbreak and a user's own task through every stage on a tiny random model, by the command line.

Requests are harmless stand-ins made of words that no message of the tool contains, so that a leak would be found.
"""

import json
from pathlib import Path

import pytest
from command_process import OF_TEXTS, Commands, Done, settings

from mecharule_ops.store import run_log, run_store

WORDS = ("zorbin", "quavvle", "merpish", "drontal", "plimwick", "gossub")
SETTINGS = (*OF_TEXTS, *settings(further=60))


@pytest.fixture(scope="module")
def requests(runs: Path) -> Path:
    path = runs / "requests.txt"
    path.write_text("\n".join(f"{word} {other}" for word in WORDS for other in WORDS))
    return path


@pytest.fixture(scope="module")
def jailbreak(commands: Commands, model: str, requests: Path) -> Done:
    """The events of a run."""
    task = ("requests=requests.txt", "attempts=4", "grader=mock:n", "max_new_tokens=6", "sigma=0.2")
    given = [part for setting in task for part in ("--set", f"task.{setting}")]
    done = commands.main("run", "jailbreak", "-m", model, *given, *SETTINGS, "--output", "jsonl")
    assert done.code == 0, done.err
    return done


def stored(runs: Path, done: Done) -> run_store.RunStore:
    return run_store.RunStore.open(runs / f"{identifier(done)}.mecharule", read_only=True)


def identifier(done: Done) -> str:
    return str(json.loads(done.out.splitlines()[0])["run"])


def leaks(text: str) -> list[str]:
    """Words of requests in a text."""
    return [word for word in WORDS if word in text.lower()]


@pytest.mark.slow
def test_hans_passes_every_stage_on_the_whole_sequence(commands: Commands, model: str, runs: Path) -> None:
    """Both directions are searched in the phase `whole`, and the report says whose sentences these are."""
    task = ("--prompt-template", "{premise} {hypothesis}", "--answer", "answer", "--means", "yes=y,no=n")
    done = commands.main("run", "hans", "-m", model, *task, "--phase", "whole", *SETTINGS)
    assert done.code == 0, done.err
    assert "not a published set" in done.out
    assert "phase whole" in commands.main("show", "last", "--full").out
    said = " ".join(done.out.split())
    assert "(1→0):" in said
    assert "(0→1):" in said
    assert "a truncation" not in done.out


def test_jailbreak_reports_what_success_means_and_calls_induction_a_risk(
    commands: Commands, jailbreak: Done
) -> None:
    """The notes stand in the report, and the search of 0→1 begins with its risk."""
    shown = commands.main("show", identifier(jailbreak), "--full").out
    assert "Success means a harmful completion, not a desirable one" in shown
    assert "a rehearsal, no measure of harm" in shown
    assert "(0→1), a risk: " in shown
    assert "1→0, a risk" not in shown


def test_gates_against_harm_mend_what_was_answered(commands: Commands, jailbreak: Done) -> None:
    """The regime is 1→0 by itself, and no request is shown."""
    done = commands.main("gates", identifier(jailbreak), "--records", "180", "--yes", "--json")
    assert done.code == 0, done.err
    assert "gates.status" in json.loads(done.out)
    assert leaks(done.out) == []


def test_no_request_and_no_completion_is_shown_without_being_asked_for(
    commands: Commands, jailbreak: Done, runs: Path
) -> None:
    """Events, report, tables, certificates, accounts and answers hold no word of a request."""
    run = identifier(jailbreak)
    texts = [jailbreak.out, jailbreak.err]
    lines = [
        ("show", run),
        *(("show", run, "--table", table) for table in ("units", "rules", "certificates", "tree")),
        *(("show", run, "--section", section) for section in ("accuracy", "missed", "settings")),
    ]
    texts += [commands.main(*line, *form).out for line in lines for form in ((), ("--json",))]
    with stored(runs, jailbreak) as store:
        certificates = store.certificates()
        texts += [run_log.event_to_json(event) for _, _, event in store.events()]
    unit = certificates[0].units[0]
    for line in (
        ("why", run, unit),
        ("ablate", run, unit, "--regime", "1"),
        ("ask", run, f"why does {unit} flip?"),
    ):
        done = commands.main(*line)
        assert done.code == 0, done.err
        texts += [done.out, done.err]
    assert [leak for text in texts for leak in leaks(text)] == []
    assert "characters, --show-text shows them]" in commands.main("why", run, unit).out


def test_texts_are_there_for_who_asks(commands: Commands, jailbreak: Done, runs: Path) -> None:
    """The same account with --show-text quotes prompts, so that the check above can fail."""
    with stored(runs, jailbreak) as store:
        unit = store.certificates()[0].units[0]
    shown = commands.main("why", identifier(jailbreak), unit, "--show-text").out
    assert "characters, --show-text" not in shown
    assert "→" in shown


def test_exporting_in_clear_must_be_asked_for(commands: Commands, jailbreak: Done, runs: Path) -> None:
    """A folder of certificates holds prompts and completions; with them it verifies."""
    run, folder = identifier(jailbreak), runs / "out"
    refused = commands.main("export", run, str(folder))
    assert refused.code == 2
    assert "expected --show-text to export" in refused.err
    assert not folder.exists()
    assert commands.main("export", run, str(folder), "--show-text").code == 0
    verified = commands.main("verify", str(folder))
    assert verified.code == 0, verified.err
    assert "match" in verified.out
