"""Truths and lies about a run, made from the values of its facts: 16 quantities, 4 falsifications, 10 forms of words.

A quantity times a falsification is a kind: 64. What is true of a quantity comes from the fact's value, not from its
sentence, so the check is measured against something that it did not read itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent.prose import Cited
from agent.toolbox import Toolbox
from mecharule_ops.numbers import percent

CALLS: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("show", {"section": "controls"}),
    ("show", {"section": "accuracy"}),
    ("tabulate", {"units": "m1.14,m1.99", "where": "op == '-'", "paired": True}),
    ("compare", {"first": "m1.14", "second": "m1.99"}),
)
"""Of stored counts alone."""
FALSIFIED = ("another number", "another's number", "another sense", "the question's number")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is said of a quantity."""

    name: str
    fact: str
    """The id that is cited."""
    unit: str = ""
    first: float
    second: float = 0
    """The total of a count, the upper end of an interval."""
    part: str = ""
    sign: str = ""
    measure: str = ""
    is_interval: bool = False


Form = Callable[[Told], str]


def facts_of(run: str) -> tuple[dict[str, Cited], dict[str, tuple[str, Any]]]:
    """The facts of the calls as a model may cite them, and the id and value of each by its key."""
    box, facts, values = Toolbox(run), {}, {}
    for name, given in CALLS:
        stated = box.result(name, given)[1]
        for one, fact in zip(stated, box.call(name, given).facts, strict=True):
            id = f"f{len(facts) + 1}"
            facts[id] = Cited(**{**one, "id": id, "sources": ()})
            values[fact.key] = (id, fact.value)
    return facts, values


def quantities(values: Mapping[str, tuple[str, Any]], facts: Mapping[str, Cited]) -> list[tuple[Told, Told]]:
    """Each quantity of one unit, or of the run, beside the like of another."""

    def count(name: str, key: str, *path: str, **more: Any) -> Told:
        id, value = values[key]
        for step in path:
            value = value[step]
        return Told(
            name=name, fact=id, first=value.get("flips", value.get("count")), second=value["n"], **more
        )

    def score(name: str, key: str, what: str, **more: Any) -> Told:
        return Told(name=name, fact=values[key][0], first=float(values[key][1][what]), **more)

    def of_unit(unit: str) -> list[Told]:
        minus, plus = f"unit.{unit}.train.op == '-'", f"unit.{unit}.train.not (op == '-')"
        control, flips = f"unit.{unit}.1", f"unit.{unit}.flips"
        kept = next(
            k
            for k in (12, 4)
            if f"{k} of 64 answers kept aside" in facts[values[f"{control}.chance"][0]].sentence
        )
        mcc = values[f"{minus}.mcc"][1]
        return [
            Told(
                name="kept aside",
                fact=values[f"{control}.chance"][0],
                unit=unit,
                first=kept,
                second=64,
                part="held-out",
            ),
            count("train, where", minus, unit=unit, part="train"),
            count("train, elsewhere", plus, unit=unit, part="train"),
            count("D+", flips, "associated", unit=unit),
            count("D-", flips, "unrelated", unit=unit),
            count("held out, D+", f"{control}.selective", "split", "associated", unit=unit, part="held-out"),
            count("held out, D-", f"{control}.selective", "split", "unrelated", unit=unit, part="held-out"),
            count("second baseline", f"{control}.second_baseline", "associated", unit=unit),
            count("second baseline, D-", f"{control}.second_baseline", "unrelated", unit=unit),
            score("MCC", f"{minus}.mcc", "mcc", unit=unit, measure="MCC"),
            Told(
                name="interval of the MCC",
                fact=values[f"{minus}.mcc"][0],
                unit=unit,
                first=float(mcc["low"]),
                second=float(mcc["high"]),
                measure="MCC",
                is_interval=True,
            ),
            score("strength", f"{control}.chance", "strength", unit=unit, measure="strength"),
            score(
                "least strength", f"{control}.chance", "lower", unit=unit, measure="strength", sign="at least"
            ),
            score("p of selectivity", f"{control}.selective", "p", unit=unit, measure="p"),
        ]

    both = values["pair.m1.14.m1.99.paired"]
    alone = [
        Told(name="alone of a pair", fact=both[0], unit=unit, first=both[1][which], second=both[1]["n"])
        for unit, which in (("m1.14", "first_only"), ("m1.99", "second_only"))
    ]
    paired = values["units.m1.14.m1.99.train.paired"]
    alone_of_train = [
        Told(
            name="alone, train",
            fact=paired[0],
            unit=unit,
            first=paired[1][which],
            second=paired[1]["n"],
            part="train",
        )
        for unit, which in (("m1.14", "first_only"), ("m1.99", "second_only"))
    ]
    return [
        *zip(of_unit("m1.14"), of_unit("m1.99"), strict=True),
        (alone[0], alone[1]),
        (alone_of_train[0], alone_of_train[1]),
    ]


def lies(truth: Told, other: Told) -> Iterator[tuple[str, Told, str]]:
    """Each falsification of a quantity, what is then told, and the question before it."""
    is_count = bool(truth.second) and not truth.is_interval
    wrong = (
        replace(truth, first=truth.first + 1)
        if is_count
        else replace(truth, first=abs(truth.first - 0.07) + 0.09)
    )
    yield FALSIFIED[0], wrong, ""
    moved = replace(truth, first=other.first, second=other.second, fact=f"{truth.fact}, {other.fact}")
    yield FALSIFIED[1], moved, ""
    if truth.part == "held-out":
        # The other half of these counts is of train records.
        turned = replace(truth, part="train")
    elif truth.measure in ("MCC", "p"):
        turned = replace(truth, measure="AUC")
    elif truth.part == "train" or truth.name in (
        "D+",
        "D-",
        "second baseline",
        "second baseline, D-",
        "alone of a pair",
    ):
        turned = replace(truth, part="held-out")
    elif truth.sign:
        turned = replace(truth, sign="at most")
    else:
        turned = replace(truth, sign="at least")
    yield FALSIFIED[2], turned, ""
    asked = replace(wrong, first=wrong.first + 2) if is_count else replace(wrong, first=wrong.first + 0.11)
    yield FALSIFIED[3], asked, f"Is it so that {english(asked).split(' [')[0]}?"


_PARTS = {
    "en": {"": "answers", "held-out": "held-out answers", "train": "train records"},
    "de": {"": "Antworten", "held-out": "zurückgehaltenen Antworten", "train": "Trainingsdaten"},
    "fr": {"": "réponses", "held-out": "réponses mises de côté", "train": "réponses d'entraînement"},
    "es": {"": "respuestas", "held-out": "respuestas apartadas", "train": "respuestas de entrenamiento"},
}
_SIGNS = {
    "en": {"": "", "at least": "at least ", "at most": "at most "},
    "de": {"": "", "at least": "mindestens ", "at most": "höchstens "},
    "fr": {"": "", "at least": "au moins ", "at most": "au plus "},
    "es": {"": "", "at least": "al menos ", "at most": "a lo sumo "},
}
_WORDS = (
    *(
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
    ),
    *("thirteen", "fourteen", "fifteen"),
)


def _number(value: float, comma: bool = False) -> str:
    text = f"{value:,.0f}" if value >= 1 or value == 0 else f"{value:.2f}"
    return text.replace(".", ",") if comma else text


def _scored(told: Told, said: str, between: str, comma: bool = False) -> str:
    low, high = (f"{value:.2f}" for value in (told.first, told.second))
    value = between.format(low, high) if told.is_interval else f"{said}{told.first:.2f}"
    return value.replace(".", ",") if comma else value


def english(told: Told) -> str:
    """As most would write it."""
    part, sign = _PARTS["en"][told.part], _SIGNS["en"][told.sign]
    if told.measure:
        return f"{told.unit} has {told.measure} {_scored(told, sign, '[{}, {}]')} [{told.fact}]."
    about = f"{told.unit} flips" if told.unit else "the model is right or wrong on"
    return f"{about} {sign}{_number(told.first)} of {_number(told.second)} {part} [{told.fact}]."


def _slashed(told: Told) -> str:
    if told.measure:
        value = _scored(told, _SIGNS["en"][told.sign], "between {} and {}")
        return f"{told.unit}: {told.measure} = {value} [{told.fact}]"
    part = f" ({_PARTS['en'][told.part]})"
    count = f"{_SIGNS['en'][told.sign]}{_number(told.first)}/{_number(told.second)}"
    return f"{told.unit or 'The model'}: {count}{part} [{told.fact}]"


def _out_of(told: Told) -> str:
    sign = _SIGNS["en"][told.sign]
    if told.measure:
        return (
            f"The {told.measure} of {told.unit} is {_scored(told, sign, 'between {} and {}')} [{told.fact}]."
        )
    what = (
        f"{_PARTS['en'][told.part]} flip without {told.unit}"
        if told.unit
        else f"{_PARTS['en'][told.part]}, it seems"
    )
    return f"{sign.capitalize()}{_number(told.first)} out of {_number(told.second)} {what} [{told.fact}]."


def _total_first(told: Told) -> str:
    sign = _SIGNS["en"][told.sign]
    if told.measure:
        return f"As a rule this gives {told.unit} a {told.measure} of {_scored(told, sign, '{} to {}')} [{told.fact}]."
    who = f"{told.unit} flips" if told.unit else "these are"
    of = _PARTS["en"][told.part]
    return f"Of {_number(told.second)} {of} {who} {sign}{_number(told.first)} [{told.fact}]."


def _german(told: Told) -> str:
    sign = _SIGNS["de"][told.sign]
    if told.measure:
        value = _scored(told, sign, "zwischen {} und {}", comma=True)
        return f"Für {told.unit} ist {told.measure.replace('strength', 'die Stärke')} {value} [{told.fact}]."
    who = f"Ohne {told.unit} kippen" if told.unit else "Es sind"
    return f"{who} {sign}{_number(told.first)} von {_number(told.second)} {_PARTS['de'][told.part]} [{told.fact}]."


def _french(told: Told) -> str:
    sign = _SIGNS["fr"][told.sign]
    if told.measure:
        value = _scored(told, sign, "entre {} et {}", comma=True)
        return f"Pour {told.unit}, {told.measure.replace('strength', 'la force')} est {value} [{told.fact}]."
    who = f"Sans {told.unit}," if told.unit else "Ce sont"
    of = _PARTS["fr"][told.part]
    return f"{who} {sign}{_number(told.first)} sur {_number(told.second)} {of} changent [{told.fact}]."


def _spanish(told: Told) -> str:
    sign = _SIGNS["es"][told.sign]
    if told.measure:
        value = _scored(told, sign, "entre {} y {}", comma=True)
        return f"Para {told.unit}, {told.measure.replace('strength', 'la fuerza')} es {value} [{told.fact}]."
    who = f"Sin {told.unit} cambian" if told.unit else "Son"
    return f"{who} {sign}{_number(told.first)} de las {_number(told.second)} {_PARTS['es'][told.part]} [{told.fact}]."


def _bold(told: Told) -> str:
    sign = _SIGNS["en"][told.sign]
    if told.measure:
        return f"- **{told.unit}**: {told.measure} **{_scored(told, sign, '[{}, {}]')}** [{told.fact}]"
    who = f"**{told.unit}** flips" if told.unit else "Of it"
    count = f"**{sign}{_number(told.first)} of the {_number(told.second)}**"
    return f"- {who} {count} {_PARTS['en'][told.part]} [{told.fact}]"


def _shared(told: Told) -> str:
    """As a percentage with its count, in words where it is small."""
    sign = _SIGNS["en"][told.sign]
    if told.measure:
        return f"Its {told.measure}, for {told.unit}, comes to {_scored(told, sign, 'from {} to {}')} [{told.fact}]."
    share = percent(told.first / told.second)
    who = f"Without {told.unit}" if told.unit else "In all"
    of, count = _PARTS["en"][told.part], f"{_number(told.first)} of {_number(told.second)}"
    return f"{who} {sign}{share} of the {of} change, {count} [{told.fact}]."


def _worded(told: Told) -> str:
    sign = _SIGNS["en"][told.sign]
    if told.measure:
        return f"You ask about {told.unit}. Its {told.measure} is {_scored(told, sign, '[{}, {}]')} [{told.fact}]."
    first = _WORDS[int(told.first)] if told.first < len(_WORDS) else _number(told.first)
    who = f"{told.unit} matters: it flips" if told.unit else "It is so for"
    return f"{who} {sign}{first} of {_number(told.second)} {_PARTS['en'][told.part]} [{told.fact}]."


FORMS: Mapping[str, Form] = {
    "plain": english,
    "slashed": _slashed,
    "out of": _out_of,
    "total first": _total_first,
    "German": _german,
    "French": _french,
    "Spanish": _spanish,
    "bold": _bold,
    "share": _shared,
    "in words": _worded,
}


def scripted(
    pairs: Sequence[tuple[Told, Told]],
) -> tuple[list[tuple[str, str]], list[tuple[str, str, str, str]]]:
    """Every truth (form, text), and every lie (kind, form, text, question)."""
    truths = [(form, say(one)) for pair in pairs for one in pair for form, say in FORMS.items()]
    false = [
        (f"{truth.name}: {how}", form, say(told), question)
        for truth, other in pairs
        for how, told, question in lies(truth, other)
        for form, say in FORMS.items()
    ]
    return truths, false
