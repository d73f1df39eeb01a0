"""An audit of a run file from outside: every stored ablation outcome, read straight from its tables."""

import sqlite3
from collections import Counter
from pathlib import Path

import numpy as np


def cells(path: Path) -> Counter[tuple[str, bytes, int]]:
    """How many stored blocks hold each (context, group, example)."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        blocks = connection.execute(
            "SELECT context.name, outcome.unit_group, example_set.ids FROM outcome"
            " JOIN context ON context.id = outcome.context"
            " JOIN example_set ON example_set.id = outcome.example_set"
        ).fetchall()
    finally:
        connection.close()
    counted: Counter[tuple[str, bytes, int]] = Counter()
    for context, group, ids in blocks:
        counted.update((context, group, int(example)) for example in np.frombuffer(ids, "<i8"))
    return counted
