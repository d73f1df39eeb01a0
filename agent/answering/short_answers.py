"""Answer templates for questions about one side of a unit: when it flips, its rule, its controls; and for checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agent.answering import answers
from agent.answering.answers import Answer, Data


def when(data: Data) -> Answer:
    """The rules of its account beside free-form trees, and first order; without an account its anchored rule."""
    parts = data["parts"]
    said = (answers.rule_sentence(data),) if data["account"] is None else (parts["when"], parts["prediction"])
    return Answer(sentences=(*said, answers.flips_sentence(data)), certificates=(data["certificate"],))


def part(name: str) -> Callable[[Data], Answer]:
    """One sentence of the explanation."""

    def told(data: Data) -> Answer:
        return Answer(sentences=(data["parts"][name],), certificates=(data["certificate"],))

    return told


def sure(data: Data) -> Answer:
    """Bounds, then everything that the controls counted."""
    return Answer(
        sentences=(answers.bounds_sentence(data), answers.controls_sentence(data)),
        certificates=(data["certificate"],),
    )


def rule(data: Data) -> Answer:
    """A unit's rule with its score; the text of one that does not predict is named as such."""
    sentences = [answers.rule_sentence(data)]
    known = data["rule"]
    if known is not None and not data["hq_t"]:
        sentences.append(f"That rule reads {known['text']} [run:{data['run']}].")
    return Answer(sentences=tuple(sentences), certificates=(data["certificate"],))


def controls(data: Data) -> Answer:
    """What random units do beside a unit."""
    return Answer(
        sentences=(answers.flips_sentence(data), answers.controls_sentence(data)),
        certificates=(data["certificate"],),
    )


def ablate(data: Data) -> Answer:
    """What several units flip together."""
    cited, units = f"[c:{data['certificate']}]", " and ".join(data["units"])
    sentences = [f"Ablating {units} together flips {answers.slices_words(data)} {cited}."]
    if data["flipped"]:
        sentences.append(f"For example: {answers.change_words(data['flipped'][0])} {cited}.")
    return Answer(sentences=tuple(sentences), certificates=(data["certificate"],))


def verify(data: Data) -> Answer:
    """What running certificates again gave, each with its claim."""
    rows = data["certificates"]
    sentences = [f"{row['sentence'].rstrip('.')}: {row['claim']} [c:{row['certificate']}]." for row in rows]
    if len(rows) > 1:
        sentences.append(f"{data['matched']} of {data['of']} certificates match.")
    return Answer(sentences=tuple(sentences), certificates=tuple(row["certificate"] for row in rows))


SHORT_ANSWERS: Mapping[str, tuple[str, Callable[[Data], Answer]]] = {
    "when": ("why", when),
    "prediction": ("why", part("prediction")),
    "responds": ("why", part("responds")),
    "reads": ("why", part("reads")),
    "writes": ("why", part("reads")),
    "through": ("why", part("through")),
    "sure": ("why", sure),
    "rule": ("why", rule),
    "controls": ("why", controls),
    "ablate": ("ablate", ablate),
    "verify": ("verify", verify),
}
"""As `answers.ANSWERS`."""
