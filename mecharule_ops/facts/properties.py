"""Properties of a record that people have words for, each with the predicate that tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One property and how records with and without it are called."""

    name: str
    predicate: str
    where: str
    elsewhere: str
    said: tuple[str, ...] = ()
    """Words that mean it."""
    within: str = ""
    """The property that all such records have too."""

    @classmethod
    def of(cls, predicate: str, words: str) -> Property:
        """A predicate that people have no short word for, with the words in which rules say it."""
        return cls(name=predicate, predicate=predicate, where=f"records where {words}", elsewhere="elsewhere")


def _property(
    name: str, predicate: str, where: str, elsewhere: str, said: str, *, within: str = ""
) -> Property:
    words = tuple(said.split("|"))
    return Property(
        name=name, predicate=predicate, where=where, elsewhere=elsewhere, said=words, within=within
    )


PROPERTIES: Mapping[str, Property] = {
    one.name: one
    for one in (
        _property(
            "carry",
            "holds(op == '+' and carry(a, b))",
            "records where an addition has a carry",
            "records without",
            "carry|carries|carrying|carried|carry over|carrying over",
            within="addition",
        ),
        _property(
            "borrow",
            "holds(op == '-' and borrow(a, b))",
            "records where a subtraction has a borrow",
            "records without",
            "borrow|borrows|borrowing|borrowed",
            within="subtraction",
        ),
        _property(
            "subtraction",
            "op == '-'",
            "subtractions",
            "other records, the additions",
            "subtraction|subtractions|subtract|subtracting|minus|minus problems|minus sums|take-aways|"
            "take-away problems|take-away sums|takeaways",
        ),
        _property(
            "addition",
            "op == '+'",
            "additions",
            "other records, the subtractions",
            "addition|additions|adding|plus|plus problems|plus sums|pluses",
        ),
        _property(
            "negative",
            "expected < 0",
            "records with a negative result",
            "other records",
            "negative|negative results|negative answers|negative result|negative answer|negative numbers",
        ),
        _property(
            "even",
            "divisible(expected, 2)",
            "records with an even result",
            "records with an odd one",
            "even|odd|even numbers|odd numbers|parity of the result",
        ),
        _property(
            "large",
            "expected >= 100",
            "records with a result of 100 or more",
            "other records",
            "large numbers|big numbers|larger numbers|three-digit|large results|big results|three digit numbers",
        ),
    )
}
"""By name."""
