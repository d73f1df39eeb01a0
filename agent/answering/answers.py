"""Answers from templates: every number comes from a tool's result and carries where it can be checked.

`[c:ID]` names a certificate that can be run again, `[run:ID]` what the run's own report states. A clause cites
one source; the words between numbers are fixed here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Sentences with citations, and the certificates that they cite."""

    sentences: tuple[str, ...]
    certificates: tuple[str, ...] = ()


def why(data: Data) -> Answer:
    """What breaks, when, what it reads and writes, through which units; then how sure that is."""
    cited, chain = f"[c:{data['certificate']}]", data["chain"]
    sentences = [] if chain else [flips_sentence(data)]
    if not chain and data["flipped"]:
        sentences.append(f"For example: {change_words(data['flipped'][0])} {cited}.")
    sentences += data["explanation"]
    if data["account"] is None:
        sentences.append(rule_sentence(data))
    sentences += [bounds_sentence(data), *_held_out(data)]
    sentences.append(_claims_sentence(data))
    certificates = dict.fromkeys((data["certificate"], *([chain["mediation_certificate"]] if chain else [])))
    return Answer(sentences=tuple(sentences), certificates=tuple(certificates))


def mind(data: Data) -> Answer:
    """What would refute the claim about a unit, with the thresholds in its own counts."""
    cited, run = f"[c:{data['certificate']}]", f"[run:{data['run']}]"
    stronger = "associated" if data["stronger_slice"] == "D+" else "unrelated"
    part, slice_name = data["slices"][stronger], data["stronger_slice"]
    needed = data["flips_needed"] and data["flips_needed"][stronger]
    threshold = (
        f"fewer than {needed} flips on the slice of {slice_name} in a second run, for which it is named beforehand, "
        f"since below that its lower bound no longer reaches τ {run}; "
        f"it was {part['flips']} of these {part['n']} of {slice_name} {cited}"
        if needed is not None
        else f"nothing on these {part['n']} examples, since even all of them flipping would not bound it above τ {run}"
    )
    sentences = [
        f"Any of these would: {threshold}.",
        "So would random units that flip as many held-out records as it does.",
        *_against_selective(data),
        controls_sentence(data),
    ]
    if data["rule"] is not None:
        sentences.append(
            f"For its rule: a held-out MCC below {data['mcc_floor']:.2f} {run}. {rule_sentence(data)}"
        )
    return Answer(sentences=tuple(sentences), certificates=(data["certificate"],))


def why_not(data: Data) -> Answer:
    """Where a unit fell out of the search."""
    run, rank = f"[run:{data['run']}]", data["attribution"]
    sentences = [
        f"{data['neuron']} ({'1→0' if data['regime'] else '0→1'}): {data['sentence']} {run}.",
        f"Attribution, which is no evidence of causation, ranked it {rank['rank']:,} of {rank['of']:,} {run}.",
    ]
    certificates: tuple[str, ...] = ()
    if "test" in data:
        certificates = (data["certificate"],)
        sentences.append(f"Tested alone now it flips {slices_words(data['test'])} [c:{data['certificate']}].")
    elif not data["path"] or data["path"][-1]["size"] > 1:
        sentences.append(f"`mecharule why-not {data['run']} {data['neuron']} --test` tests it alone now.")
    return Answer(sentences=tuple(sentences), certificates=certificates)


def how(data: Data) -> Answer:
    """The groups that the search opened on its way to a unit."""
    run, rank = f"[run:{data['run']}]", data["attribution"]
    sentences = [
        f"Attribution ranked {data['neuron']} {rank['rank']:,} of {rank['of']:,}; that chose the order of tests and "
        f"proves nothing {run}."
    ]
    for step in data["path"]:
        plus, minus = step["associated"], step["unrelated"]
        what = "the unit alone" if step["size"] == 1 else f"a group of {step['size']} units"
        sentences.append(
            f"Node {step['node']}, {what}, flipped {plus['flips']} of these {plus['n']} of D+ and {minus['flips']} of "
            f"these {minus['n']} of D- (search bound {step['upper_bound']:.3f}): {step['verdict']} {run}."
        )
    if not data["path"]:
        sentences.append(f"The recorded search never settled it {run}.")
    return Answer(sentences=tuple(sentences))


def flip(data: Data) -> Answer:
    """What one ablation does to a typed prompt."""
    cited = f"[c:{data['certificate']}]"
    verb = "Yes" if data["flipped"] else "No"
    sentences = [f"{verb}: with {data['neuron']} ablated, {change_words(data)} {cited}."]
    rule, near = data["rule"], data["neighbours"]
    if rule is None:
        sentences.append(f"The run has no rule that predicts this unit's flips [run:{data['run']}].")
    else:
        fires = "fires" if rule["fires"] else "does not fire"
        word = "agrees" if rule["agrees"] else "is wrong here"
        sentences.append(f"Its rule {rule['text']} {fires} on this prompt, so it {word} [run:{data['run']}].")
    for edit in data["edits"]:
        does = "flips" if edit["flipped"] else "does not flip"
        sentences.append(
            f"The edit {edit['prompt']!r}, on which the rule answers differently, {does} {cited}."
        )
    if near["n"]:
        sentences.append(
            f"Of the {near['n']} most similar records {near['flips']} flip, interval [{near['lower']:.2f}, "
            f"{near['upper']:.2f}] [run:{data['run']}]."
        )
    return Answer(sentences=tuple(sentences), certificates=(data["certificate"],))


def covers(data: Data) -> Answer:
    """The records and units that a rule covers."""
    run, same = f"[run:{data['run']}]", ", ".join(data["same_rule"])
    shared = (
        f"The same rule is anchored to {same} {run}." if same else f"No other unit has the same rule {run}."
    )
    return Answer(
        sentences=(
            f"The rule of {data['neuron']}, {data['rule']}, fires on {data['fires']}/{data['eligible']} records that "
            f"start from the same outcome, {data['held_out_fires']}/{data['held_out']} of those held out {run}.",
            f"Among them: {'; '.join(data['prompts']) or 'none'} {run}.",
            shared,
        )
    )


def shared(data: Data) -> Answer:
    """Units whose certificates flip the same examples."""
    if not data["units"]:
        text = f"None of the {data['compared']} other certified units flips any example that {data['neuron']} flips"
        return Answer(sentences=(f"{text} [run:{data['run']}].",), certificates=(data["certificate"],))
    sentences = [
        f"{row['unit']} flips {row['both']} of the {row['either']} examples that it or {data['neuron']} flips "
        f"[c:{data['certificate']}] [c:{row['certificate']}] [run:{data['run']}]."
        for row in data["units"]
    ]
    sentences.append(f"Only units with a certificate were compared: {data['compared']} [run:{data['run']}].")
    cited = (data["certificate"], *(row["certificate"] for row in data["units"]))
    return Answer(sentences=tuple(sentences), certificates=cited)


def missed(data: Data) -> Answer:
    """What the searches may have missed."""
    sentences = tuple(f"{row['search']}: {row['sentence']} [run:{data['run']}]." for row in data["searches"])
    return Answer(sentences=sentences or (f"No search was run [run:{data['run']}].",))


def compare(data: Data) -> Answer:
    """Two runs beside each other."""
    cited = " ".join(f"[run:{run}]" for run in dict.fromkeys(data["runs"]))
    sentences = [f"{arrow}: {row['sentence']} {cited}." for arrow, row in data["overlap"].items()]
    if data["different_settings"]:
        sentences.append(
            f"They differ in {', '.join(data['different_settings'])}, so read that with care {cited}."
        )
    for row in data["shared"][:3]:
        sentences.append(
            f"{row['unit']}: strength {row['first']:.2f} in one, {row['second']:.2f} in the other {cited}."
        )
    return Answer(sentences=tuple(sentences) or (f"Neither run has a τ-agonist {cited}.",))


ANSWERS: Mapping[str, tuple[str, Callable[[Data], Answer]]] = {
    "why": ("why", why),
    "mind": ("why", mind),
    "strongest": ("why", why),
    "why-not": ("why-not", why_not),
    "how": ("why-not", how),
    "flip": ("flip", flip),
    "covers": ("covers", covers),
    "shared": ("shared", shared),
    "missed": ("missed", missed),
    "compare": ("compare", compare),
}
"""For each kind of question the tool that is asked and the template that says what it found."""


def flips_sentence(data: Data) -> str:
    """What a unit flips, with its certificate."""
    return f"Ablating {data['neuron']} alone flips {slices_words(data)} [c:{data['certificate']}]."


def slices_words(data: Data) -> str:
    """`28 of these 64 of D+ and 3 of these 64 of D-`."""
    names = {"associated": "D+", "unrelated": "D-"}
    return " and ".join(
        f"{part['flips']} of these {part['n']} of {names.get(name, name)}"
        for name, part in data["slices"].items()
    )


def bounds_sentence(data: Data) -> str:
    """The lower bounds of its flips on both sides, against τ; none where the slices were not drawn at random."""
    if not data["at_random"]:
        return (
            "How sure: the slices are covers that keep what is rare, so the counts speak of these examples alone "
            f"[run:{data['run']}]."
        )
    return (
        f"How sure: its lower bounds are {_bounds(data)}, against τ = {data['tau']:g}; they hold over both slices "
        f"of all {data['searched']:,} units searched at once ({100 * data['confidence']:g} % confidence) "
        f"[run:{data['run']}]."
    )


def _held_out(data: Data) -> tuple[str, ...]:
    """Its flips on records that chose nothing, where controls ran."""
    counted = data["controls"] and data["controls"]["flips"]
    if not counted:
        return ()
    return (
        f"On {counted['n']} held-out records, which chose nothing, it flips {counted['flips']} [run:{data['run']}].",
    )


def _bounds(data: Data) -> str:
    names = {"associated": "D+", "unrelated": "D-"}
    return " and ".join(
        f"{part['lower']:.2f} on all of {names.get(name, name)}" for name, part in data["slices"].items()
    )


def rule_sentence(data: Data) -> str:
    """When a unit flips by its anchored rule, or that none predicts."""
    cited = f"[c:{data['certificate']}] " if data["rule_certified"] else ""
    return f"When it flips: {data['rule_words']} {cited}[run:{data['run']}]."


def _against_selective(data: Data) -> tuple[str, ...]:
    """What would refute that a unit is selective, where it is said to be."""
    if data["controls"] is None or data["controls"]["selective"] != "selective":
        return ()
    return (
        "That it is selective would be refuted by held-out records on which its flips do not follow the split "
        f"[run:{data['run']}].",
    )


def controls_sentence(data: Data) -> str:
    """Where a unit ranks among random units, and the verdict."""
    controls, run = data["controls"], f"[run:{data['run']}]"
    if controls is None:
        return f"No control was run beside it, so the claim stands alone {run}."
    parts = [controls["claims"], *controls["parts"]]
    return f"Beside controls: {'; '.join(f'{part} {run}' for part in parts)}."


def _claims_sentence(data: Data) -> str:
    """The two claims that the controls decide; their counts are told by `mind`."""
    if data["controls"] is None:
        return controls_sentence(data)
    return f"Beside controls: {data['controls']['claims']} [run:{data['run']}]."


def change_words(row: Data) -> str:
    """`217 - 3 = 214 → 241`."""
    return f"{row['prompt']} {row['before'].strip()} → {row['after'].strip()}"
