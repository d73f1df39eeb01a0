"""Truths and lies about a run, made from the values of its facts: 16 quantities, 4 falsifications, 10 forms of words.

A quantity times a falsification is a kind: 64. What is true of a quantity comes from the fact's value, not from its
sentence, so the check is measured against something that it did not read itself. Quantities and forms are a table,
`lies.toml`.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

from agent import prose, toolbox
from mecharule_ops.numbers import percent
from tools.registry import call

CALLS: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("show", {"section": "controls"}),
    ("show", {"section": "accuracy"}),
    ("tabulate", {"units": "m1.14,m1.99", "where": "op == '-'", "paired": True}),
    ("tabulate", {"units": "m1.14,m1.99", "where": "a > b"}),
    ("compare", {"first": "m1.14", "second": "m1.99"}),
)
"""Of stored counts alone."""
FALSIFIED = ("another number", "another's number", "another sense", "the question's number")
WITH_A_FALSE_FIGURE = (FALSIFIED[0], FALSIFIED[3])
TABLE = tomllib.loads(Path(__file__).with_name("lies.toml").read_text(encoding="utf-8"))
FORMS: Mapping[str, Mapping[str, str]] = TABLE["form"]
NUMERALS: Sequence[str] = TABLE["numerals"]
Values = Mapping[str, tuple[str, Any]]
"""The id and value of each fact by its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is said of a quantity."""

    name: str
    fact: str
    """The id that is cited."""
    unit: str
    first: float
    second: float = 0
    """The total of a count, the upper end of an interval."""
    part: str = ""
    sign: str = ""
    measure: str = ""
    is_interval: bool = False
    sense: Mapping[str, Any] = field(default_factory=dict)
    """What is told in place of the truth where the sense is another."""


def facts_of(run: str) -> tuple[dict[str, prose.Cited], Values]:
    """The facts of the calls as a model may cite them, and their values."""
    box, facts, values = toolbox.Toolbox(run), dict[str, prose.Cited](), dict[str, tuple[str, Any]]()
    for name, given in CALLS:
        stated, told = box.result(name, given), call(name, {"run": run, **given}).facts
        for one, fact in zip(stated, told, strict=True):
            id = f"f{len(facts) + 1}"
            facts[id] = prose.Cited(**{**one, "id": id, "sources": ()})
            values[fact.key] = (id, fact.value)
    return facts, values


def quantities(values: Values, facts: Mapping[str, prose.Cited]) -> list[tuple[Told, Told]]:
    """Each quantity of one unit beside the like of the other."""

    def told(row: Mapping[str, Any], unit: str, alone: str) -> Told:
        id, value = values[row["key"].format(unit=unit)]

        def number(path: str) -> float:
            return float(reduce(getitem, path.format(alone=alone).split("."), value))

        numbers: dict[str, Any] = {name: number(row[name]) for name in ("first", "second") if name in row}
        if counted := row.get("counted"):
            assert counted["said"].format(counted[unit]) in facts[id].sentence
            numbers = {"first": counted[unit], "second": counted["of"]}
        named = {"name": row["name"], "sense": row["sense"], **row.get("told", {})}
        return Told(fact=id, unit=unit, **numbers, **named)

    return [
        (told(row, "m1.14", "first_only"), told(row, "m1.99", "second_only")) for row in TABLE["quantity"]
    ]


def lies(truth: Told, other: Told) -> Iterator[tuple[str, Told, str]]:
    """Each falsification of a quantity, what is then told, and the question before it."""
    is_count = bool(truth.second) and not truth.is_interval
    wrong = replace(truth, first=truth.first + 1 if is_count else abs(truth.first - 0.07) + 0.09)
    yield FALSIFIED[0], wrong, ""
    moved = replace(truth, first=other.first, second=other.second, fact=f"{truth.fact}, {other.fact}")
    yield FALSIFIED[1], moved, ""
    yield FALSIFIED[2], replace(truth, **truth.sense), ""
    asked = replace(wrong, first=wrong.first + (2 if is_count else 0.11))
    yield FALSIFIED[3], asked, f"Is it so that {said('plain', asked).split(' [')[0]}?"


def said(form: str, told: Told) -> str:
    """A quantity in a form of words."""
    how = FORMS[form]
    words = TABLE["words"][how.get("language", "en")]
    sign = words[told.sign] if told.sign else ""
    ends = [f"{value:.2f}" for value in (told.first, told.second)]
    score = how["between"].format(*ends) if told.is_interval else sign + ends[0]
    first = _number(told.first)
    return how["measure" if told.measure else "count"].format(
        unit=told.unit,
        fact=told.fact,
        measure=words.get(told.measure, told.measure),
        score=score.replace(".", ",") if "language" in how else score,
        sign=sign,
        Sign=sign.capitalize(),
        first=first,
        second=_number(told.second),
        part=words[told.part],
        share=percent(told.first / told.second) if told.second else "",
        word=NUMERALS[int(told.first)] if told.first < len(NUMERALS) else first,
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 or value == 0 else f"{value:.2f}"


def scripted(
    pairs: Sequence[tuple[Told, Told]],
) -> tuple[list[tuple[str, str]], list[tuple[str, str, str, str]]]:
    """Every truth (form, text), and every lie (kind, form, text, question)."""
    truths = [(form, said(form, one)) for pair in pairs for one in pair for form in FORMS]
    false = [
        (f"{truth.name}: {how}", form, said(form, told), question)
        for truth, other in pairs
        for how, told, question in lies(truth, other)
        for form in FORMS
    ]
    return truths, false
