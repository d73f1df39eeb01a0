"""Writes the sets that ship with the package: IOI, subject-verb agreement, greater-than, and sentences like HANS'.

`python benchmarks/example_sets.py` writes them where the package looks for them. Sentences, names and templates are
made here and nobody else's; what each set asks is the published behaviour (Wang et al. 2022; Linzen et al. 2016; Hanna
et al. 2023; McCoy et al. 2019, in the columns of their file). The same seed gives the same bytes: every draw is a hash,
so that no library's generator stands behind it.
"""

import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from itertools import count, product
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "mecharule_ops" / "tasks" / "example_sets"
ROWS, HANS_ROWS = 300, 900
HANS = tomllib.loads(Path(__file__).with_name("hans.toml").read_text("utf-8"))
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


def hans(number: int) -> Row:
    """A premise and a hypothesis of its words, of each construction in turn."""
    premise, hypothesis, heuristic, name, entailed = HANS["constructions"][
        number % len(HANS["constructions"])
    ]
    words: dict[str, object] = {}
    for hole, kind in zip("abcvijp", "aaaviip", strict=True):
        left = [word for word in HANS[kind] if word not in words.values()]
        words[hole] = draw(left, "hans", hole, number)
    return {
        "prompt": f"Premise: {premise}\nHypothesis: {hypothesis}\nEntailed, yes or no?".format(**words),
        "answer": "yes" if entailed else "no",
        "premise": premise.format(**words),
        "hypothesis": hypothesis.format(**words),
        "heuristic": heuristic,
        "construction": name,
    }


SETS: Mapping[str, Callable[[int], Row]] = {
    "ioi": ioi,
    "agreement": agreement,
    "greater-than": greater_than,
    "hans": hans,
}


def text_of(name: str) -> str:
    """The set's file, a JSON object a line, no two of them alike."""
    lines: dict[str, None] = {}
    for number in count():
        lines[json.dumps(SETS[name](number)) + "\n"] = None
        if len(lines) == (HANS_ROWS if name == "hans" else ROWS):
            return "".join(lines)
    raise AssertionError("numbers do not end")


if __name__ == "__main__":
    for name in SETS:
        (FOLDER / f"{name}.jsonl").write_text(text_of(name), encoding="utf-8")
