"""Writes the three example sets that ship with the package: IOI, subject-verb agreement, greater-than.

`python benchmarks/example_sets.py` writes them where the package looks for them; `--check` says whether they are
there as written. Sentences, names and templates are made here and nobody else's; what each set asks is the published
behaviour (Wang et al. 2022; Linzen et al. 2016; Hanna et al. 2023). The same seed gives the same bytes: every draw is
a hash, so that no library's generator stands behind it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, product
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "mecharule_ops" / "tasks" / "example_sets"
ROWS = 300
Row = Mapping[str, object]

NAMES = (
    *("Mary", "John", "Tom", "Anna", "James", "Sarah", "Paul", "Emma", "David", "Laura"),
    *("Peter", "Alice", "Mark", "Kate", "Simon", "Julia"),
)
PLACES = ("store", "park", "school", "office", "station", "garden")
THINGS = ("book", "ring", "drink", "letter", "ball", "map")
OPENINGS = {
    "when": "When {one} and {two} went to the {place}, {subject} gave a {thing} to",
    "then": "Then {one} and {two} were at the {place}, and {subject} handed a {thing} to",
    "after": "After {one} and {two} met near the {place}, {subject} gave a {thing} to",
}
NOUNS = {
    **{"key": "keys", "cup": "cups", "picture": "pictures", "car": "cars", "letter": "letters"},
    **{"tree": "trees", "box": "boxes", "chair": "chairs", "bridge": "bridges", "statue": "statues"},
}
PREPOSITIONS = ("near", "behind", "next to", "on the other side of")
EVENTS = ("war", "siege", "drought", "project", "voyage", "strike", "reign", "feud")


def draw(choices: Sequence[object], *key: object) -> object:
    """One of the choices, by a hash of the key."""
    digest = hashlib.sha256("/".join(map(str, key)).encode()).digest()
    return choices[int.from_bytes(digest[:8]) % len(choices)]


def distinct(made: Callable[[int], Row]) -> Iterator[Row]:
    """The first `ROWS` rows whose prompts differ."""
    seen: set[object] = set()
    for number in count():
        row = made(number)
        if row["prompt"] not in seen:
            seen.add(row["prompt"])
            yield row
        if len(seen) == ROWS:
            return


def ioi(number: int) -> Row:
    """Two people, one of whom gives: whom to? The target is the one who was named once."""
    subject = draw(NAMES, "ioi subject", number)
    other = draw([name for name in NAMES if name != subject], "ioi other", number)
    opening = draw(list(OPENINGS), "ioi opening", number)
    place, thing = draw(PLACES, "ioi place", number), draw(THINGS, "ioi thing", number)
    subject_first = bool(number % 2)
    one, two = (subject, other) if subject_first else (other, subject)
    prompt = OPENINGS[str(opening)].format(one=one, two=two, place=place, subject=subject, thing=thing)
    return {
        "prompt": prompt,
        "target": other,
        "foil": subject,
        "order": "BABA" if subject_first else "ABBA",
        "opening": opening,
        "indirect_object": other,
        "subject": subject,
        "place": place,
        "thing": thing,
        "distance": _distance(prompt, str(other)),
    }


def _distance(prompt: str, name: str) -> int:
    """Words from the name to the end of the prompt."""
    words = prompt.split()
    return len(words) - 1 - words.index(name)


def agreement(number: int) -> Row:
    """A subject, something of the same or the other number in between, and the verb."""
    nouns = list(NOUNS)
    subject = str(draw(nouns, "agreement subject", number))
    attractor = str(draw([noun for noun in nouns if noun != subject], "agreement attractor", number))
    preposition = draw(PREPOSITIONS, "agreement preposition", number)
    plural, attractor_plural = list(product((False, True), repeat=2))[number % 4]
    first = NOUNS[subject] if plural else subject
    second = NOUNS[attractor] if attractor_plural else attractor
    return {
        "prompt": f"The {first} {preposition} the {second}",
        "target": "are" if plural else "is",
        "foil": "is" if plural else "are",
        "subject": subject,
        "plural": plural,
        "attractor": attractor,
        "attractor_plural": attractor_plural,
        "same_number": plural == attractor_plural,
        "preposition": preposition,
        "distance": len(str(preposition).split()) + 2,
    }


def greater_than(number: int) -> Row:
    """An interval of years whose end must lie behind its beginning."""
    event = draw(EVENTS, "greater event", number)
    century = int(str(draw((13, 14, 15, 16, 17, 18), "greater century", number)))
    year = int(str(draw(range(2, 98), "greater year", number)))
    return {
        "prompt": f"The {event} lasted from the year {century}{year:02} to the year {century}",
        "answers": [f"{end:02}" for end in range(year + 1, 100)],
        "event": event,
        "century": century,
        "year": year,
        "tens": year // 10,
        "units": year % 10,
        "late": year >= 50,
    }


SETS: Mapping[str, Callable[[int], Row]] = {
    "ioi": ioi,
    "agreement": agreement,
    "greater-than": greater_than,
}


def text_of(name: str) -> str:
    """The set's file, a JSON object a line."""
    return "".join(json.dumps(row) + "\n" for row in distinct(SETS[name]))


def main() -> int:
    """Writes the sets, or with `--check` compares them: 0 where all are as written, else 1."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true")
    check = options.parse_args().check
    FOLDER.mkdir(exist_ok=True)
    wrong = 0
    for name in SETS:
        file = FOLDER / f"{name}.jsonl"
        if not check:
            file.write_text(text_of(name), encoding="utf-8")
        elif not file.is_file() or file.read_text(encoding="utf-8") != text_of(name):
            print(f"{file} is not as this script writes it")
            wrong = 1
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
