"""`mecharule tasks`: the list with its prompts, and what is said of a table, with a model and without."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from command_process import Commands
from text_models import TOKENS, save_text_model, text_tokenizer
from tokenizers import processors

from agent.verbs.options import called
from mecharule_ops.errors import UsageError
from mecharule_ops.tasks.task_names import BUNDLED

FOILS = "negative", "neither"
ROWS = [
    {"prompt": f"{n} is", "target": "positive", "foil": FOILS[n % 2], "odd": bool(n % 2)} for n in range(60)
]


@pytest.fixture(scope="module")
def table(runs: Path) -> Path:
    return written(runs / "moods.jsonl", ROWS)


def written(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_every_task_is_listed_with_a_prompt() -> None:
    """Each name that the program knows, with a prompt of it; requests of a concealed task are not shown."""
    found = called("tasks", {})
    rows = {row["task"]: row["a prompt"] for row in found.data["rows"]}
    assert rows.keys() == BUNDLED.keys()
    assert rows["arithmetic"].endswith("=")
    assert rows["jailbreak"].startswith("concealed")
    assert "prompts.jsonl" in found.text
    for wrong in ({"action": "check"}, {"table": "x.jsonl"}, {"action": "check", "table": "arithmetic"}):
        with pytest.raises(UsageError, match="expected"):
            called("tasks", {"action": "list", **wrong})


def test_a_table_is_understood_without_a_model(table: Path, tmp_path: Path) -> None:
    """Columns, roles and types, how success is decided, five prompts with the lines before them, what may go wrong."""
    shots = tmp_path / "shots.txt"
    shots.write_text("7 is positive")
    found = called("tasks", {"action": "check", "table": str(table), "few_shot": str(shots)})
    assert found.exit_code == 0
    assert [(each["name"], each["kind"]) for each in found.data["columns"]] == [
        *(("prompt", "text"), ("target", "category"), ("foil", "category"), ("odd", "bool"))
    ]
    assert len(found.data["prompts"]) == 5
    assert all(prompt.startswith("7 is positive\n") for prompt in found.data["prompts"])
    assert "begins with the target" in found.text
    assert "every row has the answer 'positive'" in found.text
    assert "60 records are few" in found.text
    assert "right" not in found.data


def test_a_model_is_tried_on_fifty_rows(commands: Commands, table: Path, runs: Path) -> None:
    """Counts add up, the share that is neither is said, and how many are wrong for their capitals alone."""
    model = str(save_text_model(runs / "moody", (" positive", " negative", "\n"), seed=0))
    done = commands.main("tasks", "check", str(table), "-m", model, "--json")
    assert done.code == 0, done.err
    assert (done.data["of"], done.data["max_new_tokens"]) == (50, 3)
    assert 0 <= done.data["right"] <= 50 - done.data["neither"]
    loud = written(runs / "loud.jsonl", [{"prompt": row["prompt"], "answer": "POSITIVE"} for row in ROWS])
    pairs = written(runs / "pairs.jsonl", [{**row, "target": "POSITIVE"} for row in ROWS])
    told = [commands.main("tasks", "check", str(each), "-m", model).out for each in (table, loud, pairs)]
    assert told[0].count(", wanted 'positive' (") == 5
    alone = f"{done.data['right']} differ from what is right in capitals alone"
    means = "--means 'POSITIVE=WORD'"
    assert [(alone in out, means in out) for out in told] == [(False, False), (True, True), (True, False)]
    options = "-m", model, "--means", "POSITIVE=positive", "--json"
    assert commands.main("tasks", "check", str(loud), *options).data["right"] == done.data["right"] > 0
    wrong = commands.main("tasks", "check", str(runs / "absent.jsonl"))
    assert (wrong.code, wrong.out) == (2, "")
    assert "expected a CSV" in wrong.err


def test_answers_that_can_never_be_written_are_named(commands: Commands, runs: Path, tmp_path: Path) -> None:
    """Each kind with its count and the first of its kind."""
    model = str(save_text_model(runs / "quoting", ("'", "\n"), seed=0))
    answers = ("b\nc", "['b', 'c']", "b" * 90, "é", "b", "‘")
    rows = [{"prompt": str(n), "answer": answers[n % len(answers)], "n": n} for n in range(60)]
    kinds = str(written(tmp_path / "kinds.jsonl", rows))
    done = commands.main("tasks", "check", kinds, "-m", model)
    assert done.code == 0, done.err
    for part in (
        "10 answers, such as 'b\\nc', can never be right: the text ends at '\\n'",
        f"10 answers, such as '{'b' * 90}', can never be right: they take more than the 64 tokens",
        "10 answers, such as 'é', can never be right: their characters are not in the model's vocabulary",
    ):
        assert part in done.out, part
    planned = commands.main("run", kinds, "-m", model, "--dry-run")
    assert "could go wrong: 10 answers, such as 'é', can never be right" in planned.out


def test_a_check_says_how_the_tokenizer_would_change_the_text(table: Path, runs: Path) -> None:
    """A beginning token that is typed and added, and an end token that is appended; neither is read twice or at all."""
    model = save_text_model(runs / "twice", (" positive", "\n"), seed=0)
    tokenizer = text_tokenizer()
    tokenizer.bos_token = "~"
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="~ $A \n", special_tokens=[("~", TOKENS.index("~")), ("\n", 1)]
    )
    tokenizer.save_pretrained(model)
    typed = written(runs / "typed.jsonl", [{**row, "prompt": f"~{row['prompt']}"} for row in ROWS])
    told: list[str] = []
    found, plain = (
        called("tasks", {"action": "check", "table": str(path), "model": str(model)}, told.append)
        for path in (typed, table)
    )
    assert sum(line.startswith(r"the tokenizer appends '\n' to a text") for line in told) == 2
    assert found.data["right"] == plain.data["right"]
    begun = [warning for warning in found.data["warnings"] if warning not in plain.data["warnings"]]
    assert [warning[:23] for warning in begun] == ["50 prompts begin with t"]
