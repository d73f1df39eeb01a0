"""Tasks over texts: rows of a file, typed columns, predicates on them, and a task that a user wrote."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from answered import all_answered

from mecharule_ops import errors, types
from mecharule_ops.predicates.language import parse_predicate, schema_of
from mecharule_ops.tasks import base, from_file
from mecharule_ops.tasks.task_names import make_task, task_from
from mecharule_ops.tasks.text import Row, first_word
from tools.ablate import typed_example

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_task.py"


@dataclass(frozen=True, kw_only=True)
class Moods(from_file.TableTask):
    name = "moods"
    needs = ("text", "mood")

    def question(self, row: Row) -> str:
        return f"{row['text']} ->"

    def success(self, row: Row, completion: str) -> bool:
        return first_word(completion) == row["mood"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "moods.csv"
    path.write_text(
        'text,mood,stars,class\nso good,up,5,a\nso bad,down,1,b\nso good,down,2,a\n"good, or not",up,3,b\n'
    )
    return path


def test_a_table_becomes_examples_labels_and_typed_columns(table: Path) -> None:
    """By hand: three distinct questions, the label function decides, whole columns of digits are numbers."""
    task = Moods(file=str(table), prefix="few -> up\n")
    assert isinstance(task, base.Task)
    made = all_answered(task, " Up.", "down it goes", "no")
    assert [record.example.prompt for record in made] == [
        *("few -> up\nso good ->", "few -> up\nso bad ->", "few -> up\ngood, or not ->")
    ]
    assert [record.label for record in made] == [True, True, False]
    columns = task.columns(made)
    assert schema_of(columns) == {
        **{"text": str, "mood": str, "stars": int, "class_": str},
        **{"prompt": str, "first_word": str, "reply_words": int, "completion": str},
    }
    assert columns["prompt"].tolist() == ["so good ->", "so bad ->", "good, or not ->"]
    with pytest.raises(errors.UsageError, match="expected True or False"):
        type("Odd", (Moods,), {"success": lambda *_: "no"})(file=str(table)).label(made[0].example, "")
    with pytest.raises(errors.UsageError, match="a text as the question of moods, got 5"):
        type("Odd", (Moods,), {"question": lambda *_: 5})(file=str(table)).describe()
    rows = lambda _: [{"text": "a", "mood": "b", "stars": np.int64(2), "short": np.bool_(True)}]  # noqa: E731
    odd = type("Odd", (Moods,), {"rows": rows})()
    fields = all_answered(odd, "b")[0].example.fields
    assert (type(fields["stars"]), type(fields["short"]), odd.describe()["items"]) == (int, bool, 1)
    assert columns["reply_words"].tolist() == [1, 3, 1]
    assert task.prompt_columns == {"text", "mood", "stars", "class_", "prompt"}
    for seed in task.seed_predicates():
        assert parse_predicate(seed, schema_of(columns)).reads <= task.prompt_columns
    assert task.decide(made[0].example, "up and") is None
    drawn = [task.examples(2, np.random.default_rng(5)) for _ in range(2)]
    assert drawn[0] == drawn[1]
    with pytest.raises(errors.UsageError, match="0 or more"):
        task.examples(-1, np.random.default_rng(0))


def test_words_that_one_prompt_alone_has_find_it(table: Path) -> None:
    """For a person who types them; `read` takes whole prompts only, and others hear of the one most like theirs."""
    task = Moods(file=str(table), prefix="few -> up\n")
    for example in task.examples(9, np.random.default_rng(0)):
        assert task.read(example.prompt) == task.read(example.prompt.removeprefix(task.prefix)) == example
        assert task.edits(example) == ()
    for text in ("BAD", "so what ->"):
        with pytest.raises(errors.UsageError, match="one of the 3 prompts of moods, got another"):
            task.read(text)
    assert typed_example(task, "BAD") == task.holding("BAD") == task.read("so bad ->")
    assert typed_example(task, "so bad ->") == task.read("so bad ->")
    for words in ("goo", "->"):
        own = typed_example(task, words)
        assert (own.id, own.prompt) == (base.OWN, f"few -> up\n{words}")
    with pytest.raises(errors.UsageError, match="got another"):
        typed_example(task, "")


def test_a_description_names_every_setting_and_the_items(table: Path) -> None:
    """A changed setting or a changed row changes it."""
    task = Moods(file=str(table))
    told = [dict(task.describe()), dict(replace(task, max_new_tokens=3).describe())]
    table.write_text(table.read_text().replace("so bad", "so sad"))
    told.append(dict(replace(task).describe()))
    assert told[0]["max_new_tokens"] != told[1]["max_new_tokens"]
    assert told[0]["content"] != told[2]["content"]
    assert {key for key in told[0] if told[0][key] != told[2][key]} == {"content"}
    with pytest.raises(errors.ClaimNotSupported, match="moods"):
        task_from(told[0])


def test_wrong_settings_and_columns_are_one_clear_line(table: Path) -> None:
    """No file, a type that does not fit, a phase that does not exist, a column that the rows lack."""
    for settings, said in (
        ({"file": ""}, "got no file; text, mood is missing; name a file with task.file"),
        ({"file": "absent.csv"}, "'absent.csv', which is none"),
        ({"file": str(table), "max_new_tokens": "many"}, "task.max_new_tokens of type int, got 'many'"),
        ({"file": str(table), "max_new_tokens": 0}, "1 or more"),
        ({"file": str(table), "phase": "later"}, "task.phase of decode, last-prompt, whole, got 'later'"),
    ):
        with pytest.raises(errors.UsageError, match=said):
            Moods(**settings).describe()
    assert Moods(file=str(table)).phase is types.Phase.LAST_PROMPT
    assert Moods(file=str(table), phase="whole").phase is types.Phase.WHOLE

    class Wordy(Moods):
        def question(self, row: Row) -> str:
            return str(row["words"])

    with pytest.raises(errors.UsageError, match="a column 'words', the items have text, mood"):
        Wordy(file=str(table)).describe()


def test_a_task_of_ones_own_is_named_by_file_and_class() -> None:
    """The documented example: under 60 lines, its table beside it, its source hashed into its description."""
    task = make_task(f"{EXAMPLE}:SentimentTask", max_new_tokens=2)
    assert len(EXAMPLE.read_text().splitlines()) < 60
    assert (task.name, task.max_new_tokens) == ("sentiment", 2)
    assert len(task.examples(1000, np.random.default_rng(0))) == 160
    assert len(str(task.describe()["code"])) == 16
    assert make_task(f"{EXAMPLE}:SentimentTask") == make_task(f"{EXAMPLE}:SentimentTask")


def test_a_task_of_another_distribution_goes_by_the_name_that_it_gave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pip installs it: a module, and a folder that names its entry point; certificates find it again."""
    (tmp_path / "offered.py").write_text(EXAMPLE.read_text())
    told = tmp_path / "offered-1.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Name: offered\nVersion: 1\n")
    (told / "entry_points.txt").write_text("[mecharule.tasks]\nsentiment = offered:SentimentTask\n")
    with pytest.raises(errors.UsageError, match="expected a task of: arithmetic"):
        make_task("sentiment")
    monkeypatch.syspath_prepend(tmp_path)
    task = make_task("sentiment", file=str(EXAMPLE.with_name("reviews.csv")))
    assert len(task.examples(1000, np.random.default_rng(0))) == 160
    assert task_from(task.describe()) == task
    (told / "entry_points.txt").write_text("[mecharule.tasks]\nsentiment = not_there:SentimentTask\n")
    with pytest.raises(errors.UsageError, match="of another package, importing it gave ModuleNotFoundError"):
        make_task("sentiment")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("own.py:Absent", "", "class Absent"),
        ("own.py:X", "X = 3", "class X"),
        ("own.py:X", "class X(", "running it gave SyntaxError"),
        ("absent.py:X", None, "No such file"),
        ("own.txt:X", "", "or FILE.py:CLASS"),
    ],
)
def test_a_file_without_a_task_is_said(name: str, content: str | None, said: str, tmp_path: Path) -> None:
    """No such file or class, a class that is no task, a file that does not run."""
    if content is not None:
        (tmp_path / name.split(":")[0]).write_text(content)
    with pytest.raises(errors.UsageError, match=said) as caught:
        make_task(f"{tmp_path}/{name}")
    assert "\n" not in str(caught.value)
