"""What flipped answers have in common is said, and their questions are told without the words that all share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bundled_run import opened

from mecharule_ops.certificates.certificate import Certificate, Completion
from mecharule_ops.plain_text import what_differs
from tools._counts import flipped_fact, instead_fact


@pytest.fixture
def certificate(finished_run: Path) -> Certificate:
    with opened(finished_run, read_only=True) as run:
        return next(one for one in run.store.certificates() if any(row.flipped for row in one.rows))


def flipping(certificate: Certificate, pairs: list[tuple[str, str, str]]) -> Certificate:
    """A certificate of these prompts, each with its answer before and after, all flipped."""
    row = certificate.rows[0]
    rows = tuple(
        replace(
            row,
            example=place,
            prompt=prompt,
            before=replace(row.before, text=before, label=True),
            after=replace(row.after, text=after, label=False),
        )
        for place, (prompt, before, after) in enumerate(pairs)
    )
    return replace(certificate, rows=rows)


def test_answers_that_copy_their_prompt_are_counted(certificate: Certificate) -> None:
    """And one word that most begin with; nothing is said where a few do."""
    words = ["north", "mother", "old", "high"]
    copied = flipping(certificate, [(f"The opposite of {one} is", "x", f" {one}. And") for one in words])
    fact = instead_fact(copied)
    assert fact is not None
    said = "in 4 of the 4 flips what it writes begins with a word of the prompt itself (before in 0)"
    assert fact.sentence == f"Instead, {said}"
    assert "north: x → north · mother: x → mother" in flipped_fact(copied, True).sentence
    same = flipping(certificate, [(f"The opposite of {one} is", "x", " up") for one in words])
    assert instead_fact(same) is not None
    assert "most often with 'up' (4×)" in str(instead_fact(same))
    always = flipping(certificate, [(f"Is {one} up or down?", f" {one}", f" {one}") for one in words])
    assert "begins with" not in str(instead_fact(always))
    other = flipping(certificate, [(f"The opposite of {one} is", "x", f" {one}er") for one in words])
    assert instead_fact(other) is None
    assert isinstance(copied.rows[0].before, Completion)


def test_short_or_bare_questions_stay_whole() -> None:
    """A sum has no long words in common, one question alone has none, and nothing is left of equal ones."""
    assert what_differs(["2 + 3 =", "2 + 40 ="]) == ("2 + 3 =", "2 + 40 =")
    assert what_differs(["The capital of Peru is"]) == ("The capital of Peru is",)
    assert what_differs(["The capital of Peru is"] * 2) == ("The capital of Peru is",) * 2
    assert what_differs(["shot\\nThe capital of 12 is", "shot\\nThe capital of 13 is"])[0].endswith("12 is")
    assert what_differs([]) == ()
