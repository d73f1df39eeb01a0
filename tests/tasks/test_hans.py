"""HANS: sentences of our own and the published file's form, labels, early decision."""

import json
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from mecharule_ops.errors import UsageError
from mecharule_ops.tasks.hans import Hans
from mecharule_ops.tasks.task_names import make_task, settings_for, task_from
from mecharule_ops.types import Example, Phase

HEADER = ("gold_label", "sentence1", "sentence2", "pairID", "heuristic", "subcase", "template")
ITEMS = [
    line.split("|")
    for line in (
        "non-entailment|The cook saw the king .|The king saw the cook .|ex0|lexical_overlap|ln_s|t1",
        "entailment|The cook who sang saw the king .|The cook saw the king .|ex1|subsequence|se_r|t2",
    )
]


def words(sentence: object) -> list[str]:
    return str(sentence).lower().strip(".").replace(",", "").split()


def is_subsequence_side_by_side(part: list[str], whole: list[str]) -> bool:
    return any(whole[i : i + len(part)] == part for i in range(len(whole)))


def test_the_default_set_is_balanced() -> None:
    """900 distinct pairs, half of them entailed, a third a heuristic."""
    rows = [example.fields for example in Hans().examples(2000, np.random.default_rng(0))]
    assert len({(row["premise"], row["hypothesis"]) for row in rows}) == len(rows) == 900
    cells = Counter((row["heuristic"], row["entailed"]) for row in rows)
    assert len(cells) == 6
    assert all(abs(count - 150) < 15 for count in cells.values())
    assert len({row["construction"] for row in rows}) == 18
    task = make_task("hans", **settings_for("hans", "smollm2-135m"))
    assert (task.phase, task_from(task.describe())) == (Phase.WHOLE, task)


def test_each_heuristic_holds_of_its_sentences() -> None:
    """Its definition (McCoy et al., table 1): every word of the hypothesis in the premise, or its stretch of words."""
    for row in Hans().rows():
        premise, hypothesis = words(row["premise"]), words(row["hypothesis"])
        assert not Counter(hypothesis) - Counter([*premise, "the"])
        side_by_side = is_subsequence_side_by_side(hypothesis, premise)
        assert side_by_side is (row["heuristic"] != "lexical_overlap")


def test_published_files_are_read_in_both_forms(tmp_path: Path) -> None:
    """TSV with a header, and JSONL: the same items, with their gold labels."""
    (tmp_path / "set.txt").write_text("\n".join("\t".join(row) for row in (HEADER, *ITEMS)) + "\n")
    (tmp_path / "set.jsonl").write_text(
        "\n".join(json.dumps(dict(zip(HEADER, row, strict=True))) for row in ITEMS) + "\n"
    )
    read = [Hans(file=str(tmp_path / name)) for name in ("set.txt", "set.jsonl")]
    fields = [[dict(e.fields) for e in task.examples(9, np.random.default_rng(0))] for task in read]
    assert fields[0] == fields[1]
    assert fields[0][1] == {
        "premise": "The cook who sang saw the king .",
        "hypothesis": "The cook saw the king .",
        "heuristic": "subsequence",
        "construction": "se_r",
        "entailed": True,
    }
    assert [row["entailed"] for row in fields[0]] == [False, True]
    assert "generated, not the published items" not in " ".join(read[0].notes)
    assert "generated, not the published items" in " ".join(Hans().notes)


def test_what_is_wrong_is_one_clear_line(tmp_path: Path) -> None:
    """Settings, columns, labels."""
    for settings, said in (
        ({"answers": ("yes", "Yes")}, "two different answers"),
        ({"template": "{premise}"}, "a template with"),
        ({"file": 1}, "task.file of type str"),
    ):
        with pytest.raises(UsageError, match=said):
            Hans(**settings)
    path = tmp_path / "other.txt"
    path.write_text("a\tb\n1\t2\n")
    with pytest.raises(UsageError, match="gold_label, sentence1, sentence2, heuristic, subcase"):
        Hans(file=str(path)).describe()
    path.write_text("\t".join(HEADER) + "\nneutral\ta\tb\tex0\tconstituent\tx\ty\n")
    with pytest.raises(UsageError, match=r"entailment and non-entailment in .*, got 'neutral'"):
        Hans(file=str(path)).describe()


def example(task: Hans, entailed: bool) -> Example:
    return next(e for e in task.examples(9, np.random.default_rng(0)) if e.fields["entailed"] is entailed)


def test_the_first_word_is_graded_as_soon_as_it_has_ended() -> None:
    """By hand, and against brute force over continuations; a word under way is never decided."""
    task = Hans()
    for said, right in (("Yes, it is", True), ("no.", False), ("maybe", None), ("", None)):
        labels = [task.label(example(task, entailed), said) for entailed in (True, False)]
        assert labels == [right is True, right is False]
    pieces = (" ", "yes", "no", "\n", "s", ".", " not")
    for one in (example(task, True), example(task, False)):
        for begun in map("".join, product(pieces, repeat=2)):
            decided = task.decide(one, begun)
            assert decided is None or {task.label(one, begun + end) for end in (*pieces, "")} == {decided}
        assert task.decide(one, " yes") is None
        assert task.decide(one, " yes\n") is (one.fields["entailed"] is True)
