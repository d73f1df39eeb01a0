"""The arithmetic task: what it enumerates, what counts as right and when that is decided; typed questions, edits."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from answered import all_answered, answered

from mecharule_ops.errors import ClaimNotSupported, UsageError
from mecharule_ops.predicates.language import evaluate, parse_predicate, schema_of
from mecharule_ops.tasks.arithmetic import Arithmetic
from mecharule_ops.tasks.task_names import PRESETS, make_task, settings_for, task_from

ALL = Arithmetic(operators=("+", "-", "*", "/"), low=0, high=299)


@pytest.mark.parametrize(
    ("question", "completion", "label"),
    [
        *((("+", 3, 4), text, True) for text in (" 7\n", "7", " 7.0 is it", " 7.")),
        *(
            (("+", 3, 4), text, False)
            for text in (" 7.5", " 71", " 07", " +7", " seven", "\n7", "", " 7,000")
        ),
        *((("-", 3, 10), text, text == " -7\n") for text in (" -7\n", " - 7\n")),
        (("-", 3, 3), " -0", False),
        *((("*", 299, 299), text, text == " 89401") for text in (" 89401", " 8940")),
        *((("/", 7, 2), text, True) for text in (" 3", " 3.5", " 3.50")),
        *((("/", 7, 2), text, False) for text in (" 3.4", " 4", " .5")),
        *((("/", 240, 2), text, text == " 120") for text in (" 1", " 12", " 120")),
    ],
)
def test_labels_worked_by_hand(question, completion, label):
    """Exact results and truncations of the quotient are right; prefixes and roundings are not."""
    assert ALL.label(ALL.example(*question), completion) is label


def test_division_labels_equal_exact_fractions():
    """A decimal is right exactly when it is ⌊q·10ⁿ⌋/10ⁿ for its n decimals, by rational arithmetic."""
    generator = np.random.default_rng(1)
    right = 0
    for _ in range(3000):
        a, b, n = generator.integers((1, 1, 0), (300, 300, 5)).tolist()
        scaled = a * 10**n // b + int(generator.choice([0, 0, 1, -1]))
        if scaled < 0:
            continue
        text = str(scaled).zfill(n + 1)
        word = text[: len(text) - n] + ("." + text[len(text) - n :] if n else "")
        exact = Fraction(scaled, 10**n) == Fraction(int(Fraction(a, b) * 10**n), 10**n)
        assert ALL.label(ALL.example("/", a, b), f" {word}\n") is exact
        right += exact
    assert 1000 < right < 2500


ALPHABET = " \n.0357-x"


def _contradictions(decide, example, partials):
    """Partials whose decided label some continuation of up to two characters does not get."""
    endings = ["".join(ending) for size in range(3) for ending in product(ALPHABET, repeat=size)]
    found = []
    for partial in partials:
        decided = decide(example, partial)
        labels = {ALL.label(example, partial + ending) for ending in endings}
        if labels != ({True, False} if decided is None else {decided}):
            found.append(partial)
    return found


@pytest.mark.parametrize("question", [("+", 3, 4), ("-", 3, 10), ("/", 7, 2), ("/", 10, 3), ("-", 5, 5)])
def test_decide_is_exact_against_every_continuation(question):
    """Decided means every continuation has that label; undecided means both labels are still reachable."""
    example = ALL.example(*question)
    starts = ["".join(start) for size in range(3) for start in product(ALPHABET, repeat=size)]
    assert _contradictions(ALL.decide, example, starts) == []
    # The check can fail: right as soon as the answer has been read, though more digits may follow.
    wrong = lambda example, partial: ALL.label(example, partial) or ALL.decide(example, partial)  # noqa: E731
    assert _contradictions(wrong, example, starts) != []


def test_examples_are_the_grid():
    """Asking for everything gives each (op, a, b) once, division from 1, with prompts as the paper writes."""
    task = Arithmetic(operators=("+", "/"), low=0, high=3)
    examples = task.examples(1000, np.random.default_rng(0))
    wanted = {("+", a, b) for a in range(4) for b in range(4)} | {
        ("/", a, b) for a in range(1, 4) for b in range(1, 4)
    }
    assert {tuple(example.fields.values()) for example in examples} == wanted
    assert len(examples) == len({example.id for example in examples}) == len(wanted)
    assert task.example("+", 2, 3).prompt == "2 + 3 ="


def test_samples_are_distinct_reproducible_and_do_not_need_the_grid():
    """The same generator state gives the same examples, also from a grid of 10¹²; ids ignore the range."""
    huge = Arithmetic(operators=("*",), low=0, high=999_999)
    drawn, again, other = (huge.examples(500, np.random.default_rng(seed)) for seed in (5, 5, 6))
    assert drawn == again != other
    assert len({example.id for example in drawn}) == 500
    small = Arithmetic(operators=("+", "*"), low=2, high=9)
    assert small.example("*", 3, 4).id == huge.example("*", 3, 4).id != small.example("+", 3, 4).id


def test_columns_are_typed_and_split_into_prompt_and_output():
    """Columns by hand on two records; only answer, parsed and completion read the output."""
    task = Arithmetic(operators=("-", "/"), low=0, high=9, prefix="1 - 1 = 0\n", symbols=("−", "÷"))
    asked = (task.example("-", 3, 5), " -2\n"), (task.example("/", 7, 2), " x")
    records = [answered(task, *each) for each in asked]
    columns = task.columns(records)
    assert records[0].example.prompt == "1 - 1 = 0\n3 − 5 ="
    assert {name: column.tolist() for name, column in columns.items()} == {
        **{"op": ["-", "/"], "a": [3, 7], "b": [5, 2], "expected": [-2, 3], "remainder": [0, 1]},
        **{"prompt": ["3 − 5 =", "7 ÷ 2 ="], "answer": [-2, 0], "parsed": [True, False]},
        "completion": [" -2\n", " x"],
    }
    assert set(columns) - task.prompt_columns == {"answer", "parsed", "completion"}


def test_parse_never_leaves_64_bits_and_right_answers_parse():
    """A completion of forty digits is unparsed; every right completion has the integer result as answer."""
    assert ALL.parse(ALL.example("+", 1, 1), " " + "9" * 40) == {"answer": 0, "parsed": False}
    for example in ALL.examples(300, np.random.default_rng(2)):
        expected = int(ALL.columns([answered(ALL, example, "")])["expected"][0])
        assert ALL.parse(example, f" {expected}.0")["answer"] == expected
        assert ALL.label(example, f" {expected}")


@pytest.mark.parametrize("name", PRESETS["arithmetic"])
def test_seed_predicates_of_every_preset_parse_and_most_split_the_data(name):
    """Seeds fit the columns; on 600 records four in five prompt predicates take both values."""
    task = make_task("arithmetic", **settings_for("arithmetic", name))
    columns = task.columns(all_answered(task, " 5\n", count=600))
    seeds = [parse_predicate(text, schema_of(columns)) for text in task.seed_predicates()]
    prompt = [predicate for predicate in seeds if predicate.reads <= task.prompt_columns]
    assert len(seeds) >= 40
    assert np.mean([0 < evaluate(predicate, columns).sum() < 600 for predicate in prompt]) >= 0.8


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"operators": ()}, "expected distinct operators"),
        ({"operators": ("^",)}, "expected distinct operators"),
        ({"low": 5, "high": 4}, "expected 0 <= low <= high"),
        ({"operators": ("/",), "high": 0}, "for division"),
        ({"template": "{a} {b}"}, "template"),
        ({"symbols": ("+", "-")}, "symbol for each operator"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
        ({"colour": "red"}, "expected settings of"),
    ],
)
def test_wrong_settings_are_usage_errors(settings, message):
    """Every refused setting names what was expected."""
    with pytest.raises(UsageError, match=message):
        make_task("arithmetic", **settings)


def test_every_prompt_of_a_task_reads_back_as_its_example():
    """With few-shot lines, symbols and spaces, and where a person types less; other text is refused with an example."""
    for task in (
        make_task("arithmetic", **settings_for("arithmetic", "mixed")),
        Arithmetic(operators=("+", "-", "*"), high=12, symbols=("plus", "−", "×")),
    ):
        for example in task.examples(200, np.random.default_rng(0)):
            assert task.read(example.prompt) == example
    task = make_task("arithmetic", **settings_for("arithmetic", "arith-tiny"))
    assert {task.read(text).id for text in ("120-7=", " 120-7", "120- 7  = ")} == {
        task.example("-", 120, 7).id
    }
    for text, said in (("", "a question such as"), ("7*8=", "a question such as"), ("300-7=", "0..299")):
        with pytest.raises(UsageError, match=said):
            task.read(text)


def test_a_task_comes_back_from_its_description():
    """What a certificate holds is enough to make the task again, and changes with every setting."""
    told = set()
    for more in ({}, {"high": 19}, {"prefix": ""}, {"template": "{a}{op}{b}="}, {"max_new_tokens": 5}):
        for other in ({}, {"symbols": ["plus"]}, {"stop": (";",)}):
            task = make_task("arithmetic", **{**settings_for("arithmetic", "smollm2-135m"), **more, **other})
            assert task_from(task.describe()).describe() == task.describe()
            told.add(tuple(task.describe().items()))
    assert len(told) == 15
    known = task.describe()
    for wrong in ({**known, "task": "poetry"}, {**known, "low": -1}, {"task": "arithmetic"}):
        with pytest.raises(ClaimNotSupported):
            task_from(wrong)


def test_edits_are_every_number_that_differs_in_one_digit_nearest_first():
    """Against brute force over all numbers with as many digits; another operator comes last."""
    last = Arithmetic(operators=("+", "-")).edits(Arithmetic().example("+", 1, 2))[-1]
    assert last.fields == {"op": "-", "a": 1, "b": 2}
    for number in (0, 7, 10, 99, 305):
        alike = [other for other in range(1000) if len(str(other)) == len(str(number))]
        naive = [other for other in alike if sum(map(str.__ne__, str(other), str(number))) == 1]
        task = Arithmetic(high=999)
        edited = [example.fields for example in task.edits(task.example("+", number, 0))]
        found = [int(fields["a"]) for fields in edited if fields["b"] == 0]
        assert sorted(found) == naive
        distances = [abs(value - number) for value in found]
        assert distances == sorted(distances)
