"""The arithmetic task: what it enumerates, what counts as right, and when an answer is decided."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mecharule_ops.errors import UsageError
from mecharule_ops.predicates.language import evaluate, parse_predicate, schema_of
from mecharule_ops.tasks.arithmetic import Arithmetic, result
from mecharule_ops.tasks.task_names import PRESETS, make_task, settings_for
from mecharule_ops.types import BehaviourRecord

ALL = Arithmetic(operators=("+", "-", "*", "/"), low=0, high=299)


def _record(task, example, completion):
    return BehaviourRecord(
        example=example,
        tokens=(),
        completion=completion,
        parsed=task.parse(example, completion),
        label=task.label(example, completion),
    )


@pytest.mark.parametrize(
    ("question", "completion", "label"),
    [
        (("+", 3, 4), " 7\n", True),
        (("+", 3, 4), "7", True),
        (("+", 3, 4), " 7.0 is it", True),
        (("+", 3, 4), " 7.", True),
        (("+", 3, 4), " 7.5", False),
        (("+", 3, 4), " 71", False),
        (("+", 3, 4), " 07", False),
        (("+", 3, 4), " +7", False),
        (("+", 3, 4), " seven", False),
        (("+", 3, 4), "\n7", False),
        (("+", 3, 4), "", False),
        (("+", 3, 4), " 7,000", False),
        (("-", 3, 10), " -7\n", True),
        (("-", 3, 10), " - 7\n", False),
        (("-", 3, 3), " -0", False),
        (("*", 299, 299), " 89401", True),
        (("*", 299, 299), " 8940", False),
        (("/", 7, 2), " 3", True),
        (("/", 7, 2), " 3.5", True),
        (("/", 7, 2), " 3.50", True),
        (("/", 7, 2), " 3.4", False),
        (("/", 7, 2), " 4", False),
        (("/", 2, 3), " 0", True),
        (("/", 2, 3), " 0.66", True),
        (("/", 2, 3), " 0.67", False),
        (("/", 2, 3), " .66", False),
        (("/", 1, 32), " 0.0312", True),
        (("/", 1, 32), " 0.312", False),
        (("/", 240, 2), " 1", False),
        (("/", 240, 2), " 12", False),
        (("/", 240, 2), " 120", True),
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
        a, b, n = (
            int(generator.integers(1, 300)),
            int(generator.integers(1, 300)),
            int(generator.integers(0, 5)),
        )
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


def _wrong_decide(task, example, partial):
    """Decides right as soon as the answer has been read, though more digits may follow."""
    return task.decide(example, partial) if not task.label(example, partial) else True


def _contradictions(decide, example, partials):
    """Partials whose decided label some continuation of up to two characters does not get."""
    endings = ["".join(ending) for size in range(3) for ending in product(ALPHABET, repeat=size)]
    found = []
    for partial in partials:
        decided = decide(example, partial)
        labels = {ALL.label(example, partial + ending) for ending in endings}
        if decided is not None and labels != {decided}:
            found.append(partial)
        if decided is None and labels != {True, False}:
            found.append(partial)
    return found


@pytest.mark.parametrize("question", [("+", 3, 4), ("-", 3, 10), ("/", 7, 2), ("/", 10, 3), ("-", 5, 5)])
def test_decide_is_exact_against_every_continuation(question):
    """Decided means every continuation has that label; undecided means both labels are still reachable."""
    example = ALL.example(*question)
    starts = ["".join(start) for size in range(3) for start in product(ALPHABET, repeat=size)]
    assert _contradictions(ALL.decide, example, starts) == []
    wrong = lambda example, partial: _wrong_decide(ALL, example, partial)  # noqa: E731
    assert _contradictions(wrong, example, starts) != []


def test_decide_agrees_with_the_label_on_every_prefix_of_random_completions():
    """Once decided, the label never changes along a completion, and the full completion has it."""
    generator = np.random.default_rng(3)
    decided_early = 0
    for example in ALL.examples(150, generator):
        answer = ALL.example(*(example.fields[name] for name in ("op", "a", "b")))
        assert answer == example
        for _ in range(6):
            body = "".join(generator.choice(list(ALPHABET + "12468.,"), generator.integers(0, 8)))
            truth = str(result(*example.fields.values())[0])
            completion = str(generator.choice(["", " "])) + str(generator.choice(["", truth])) + body
            states = [ALL.decide(example, completion[:end]) for end in range(len(completion) + 1)]
            label = ALL.label(example, completion)
            assert all(state in (None, label) for state in states)
            first = next((place for place, state in enumerate(states) if state is not None), len(states))
            assert all(state is not None for state in states[first:])
            decided_early += first < len(completion)
    assert decided_early > 300


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
    drawn = huge.examples(500, np.random.default_rng(5))
    assert (
        drawn == huge.examples(500, np.random.default_rng(5)) != huge.examples(500, np.random.default_rng(6))
    )
    assert len({example.id for example in drawn}) == 500
    small = Arithmetic(operators=("+", "*"), low=2, high=9)
    assert small.example("*", 3, 4).id == huge.example("*", 3, 4).id != small.example("+", 3, 4).id


def test_columns_are_typed_and_split_into_prompt_and_output():
    """Columns by hand on two records; only answer, parsed and completion read the output."""
    task = Arithmetic(operators=("-", "/"), low=0, high=9, prefix="1 - 1 = 0\n", symbols={"-": "−", "/": "÷"})
    records = [_record(task, task.example("-", 3, 5), " -2\n"), _record(task, task.example("/", 7, 2), " x")]
    columns = task.columns(records)
    assert records[0].example.prompt == "1 - 1 = 0\n3 − 5 ="
    rows = {name: column.tolist() for name, column in columns.items()}
    assert rows == {
        **{"op": ["-", "/"], "a": [3, 7], "b": [5, 2], "expected": [-2, 3], "remainder": [0, 1]},
        **{
            "prompt": ["3 − 5 =", "7 ÷ 2 ="],
            "answer": [-2, 0],
            "parsed": [True, False],
            "completion": [" -2\n", " x"],
        },
    }
    assert set(columns) - task.prompt_columns == {"answer", "parsed", "completion"}
    assert schema_of(task.columns([])) == schema_of(columns)


def test_parse_never_leaves_64_bits_and_right_answers_parse():
    """A completion of forty digits is unparsed; every right completion has the integer result as answer."""
    assert ALL.parse(ALL.example("+", 1, 1), " " + "9" * 40) == {"answer": 0, "parsed": False}
    for example in ALL.examples(300, np.random.default_rng(2)):
        expected = int(ALL.columns([_record(ALL, example, "")])["expected"][0])
        assert ALL.parse(example, f" {expected}.0")["answer"] == expected
        assert ALL.label(example, f" {expected}")


@pytest.mark.parametrize("name", [model for task, model in PRESETS if task == "arithmetic"])
def test_seed_predicates_of_every_preset_parse_and_most_split_the_data(name):
    """Seeds fit the columns; on 600 records four in five prompt predicates take both values."""
    task = make_task("arithmetic", **settings_for("arithmetic", name))
    records = [_record(task, example, " 5\n") for example in task.examples(600, np.random.default_rng(0))]
    columns = task.columns(records)
    seeds = [parse_predicate(text, schema_of(columns)) for text in task.seed_predicates()]
    prompt = [predicate for predicate in seeds if predicate.reads <= task.prompt_columns]
    both = [0 < evaluate(predicate, columns).sum() < len(records) for predicate in prompt]
    assert len(seeds) >= 40
    assert np.mean(both) >= 0.8


def test_carry_and_borrow_seeds_fire():
    """17 + 5 carries and 21 − 9 borrows; 12 + 5 and 29 − 1 do not."""
    task = Arithmetic(operators=("+", "-"), low=0, high=99)
    questions = [("+", 17, 5), ("+", 12, 5), ("-", 21, 9), ("-", 29, 1)]
    columns = task.columns([_record(task, task.example(*question), "") for question in questions])
    found = {
        text: evaluate(parse_predicate(text, schema_of(columns)), columns) for text in task.seed_predicates()
    }
    assert found["holds(op == '+' and carry(a, b))"].tolist() == [True, False, False, False]
    assert found["holds(op == '-' and borrow(a, b))"].tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"operators": ()}, "expected distinct operators"),
        ({"operators": ("^",)}, "expected distinct operators"),
        ({"operators": ("+", "+")}, "expected distinct operators"),
        ({"low": -1}, "expected 0 <= low <= high"),
        ({"low": 5, "high": 4}, "expected 0 <= low <= high"),
        ({"high": 10**6}, "expected 0 <= low <= high"),
        ({"operators": ("/",), "high": 0}, "for division"),
        ({"template": "{a} {b}"}, "template"),
        ({"symbols": {"-": "-"}}, "symbol for each operator"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
        ({"colour": "red"}, "expected settings of"),
    ],
)
def test_wrong_settings_are_usage_errors(settings, message):
    """Every refused setting names what was expected."""
    with pytest.raises(UsageError, match=message):
        make_task("arithmetic", **settings)


def test_unknown_names_list_the_known_ones():
    """A task or preset that does not exist is answered with those that do."""
    with pytest.raises(
        UsageError,
        match=r"arithmetic, .*greater-than, a table \(\.csv, .*\), or FILE\.py:CLASS; got 'poetry'",
    ):
        make_task("poetry")
    assert settings_for("arithmetic", "nope") == settings_for("poetry", "paper") == {}
    with pytest.raises(UsageError, match=r"got 3 \+ 400"):
        Arithmetic().example("+", 3, 400)


def test_presets_and_description():
    """The issue's presets, and a description that changes with every setting."""
    presets = settings_for("arithmetic", "smollm2-135m")
    smollm = make_task("arithmetic", **presets)
    assert smollm.describe()["prefix"] == "1 + 1 = 2\n3 + 4 = 7\n12 + 5 = 17\n30 + 41 = 71\n"
    assert (
        make_task("arithmetic", **settings_for("arithmetic", "arith-tiny")).describe()["operators"] == "+ -"
    )
    assert make_task("arithmetic", **settings_for("arithmetic", "paper")).describe()["high"] == 299
    others = (
        *({"high": 19}, {"prefix": ""}, {"template": "{a}{op}{b}="}, {"max_new_tokens": 5}),
        *({"symbols": {"+": "plus"}}, {"stop": (";",)}),
    )
    variants = [smollm, *(make_task("arithmetic", **{**presets, **other}) for other in others)]
    assert len({tuple(task.describe().items()) for task in variants}) == len(variants)
