"""What the controls beside a unit show, in words: its effect and whether it is selective, never one for the other."""

from __future__ import annotations

from collections.abc import Sequence

from mecharule_ops.findings.controls import AgonistControls, Effect, Selective
from mecharule_ops.report.document import k_of_n, plural, signed
from mecharule_ops.report.phrases.flips import both_slices

NOT_RUN = "not run"
CONTROLS_KEY = (
    "Effect: the unit flips more than random units of its layer, each ablated alone on the same slices; p is of "
    "Fisher's exact test, one-sided, against their pooled flips on the slice where the unit stands out most, corrected "
    "for the two slices and for every unit searched. Selective: its flips follow the split – the slices differ by ε or "
    "more, Fisher's exact test tells them apart, and the difference lies above that on the split of a fake rule, one "
    "learned from permuted targets; undecided where these examples cannot tell. The two are independent claims."
)


def effect_words(controls: AgonistControls) -> str:
    """`effect beyond random units (p < 0.001)`, or that none was told apart, or that it was not tested."""
    if controls.effect is Effect.UNTESTED:
        return f"effect not tested, since {controls.effect.value}"
    no = "" if controls.effect is Effect.BEYOND_RANDOM else "no "
    return f"{no}effect {effect_value(controls).removeprefix('not ')}"


def effect_value(controls: AgonistControls) -> str:
    """The same where `effect` stands before it: `beyond random units (p < 0.001)`."""
    p = "" if controls.effect_p is None else f" ({p_words(controls.effect_p)})"
    return f"{controls.effect.value}{p}"


def selective_words(controls: AgonistControls) -> str:
    """`selective`, `not selective` or `selectivity undecided`."""
    undecided = controls.selective is Selective.UNDECIDED
    return "selectivity undecided" if undecided else controls.selective.value


def claims_words(controls: AgonistControls | None) -> str:
    """Both claims: `effect beyond random units (p < 0.001); not selective`."""
    if controls is None:
        return "no control run"
    return f"{effect_words(controls)}; {selective_words(controls)}"


def brief_claims(controls: AgonistControls | None) -> str:
    """`beyond random, not selective`: both claims where there is room for little."""
    if controls is None:
        return "no control run"
    effects = {Effect.BEYOND_RANDOM: "beyond random", Effect.NOT_TOLD_APART: "like random"}
    return f"{effects.get(controls.effect, 'no random unit run')}, {selective_words(controls)}"


def effect_cell(controls: AgonistControls | None) -> str:
    """A table's cell: `yes, p < 0.001`, `no, p 0.31` or `not run`."""
    if controls is None or controls.effect_p is None:
        return NOT_RUN
    said = "yes" if controls.effect is Effect.BEYOND_RANDOM else "no"
    return f"{said}, {p_words(controls.effect_p)}"


def selective_cell(controls: AgonistControls | None) -> str:
    """A table's cell: `yes`, `no`, `undecided` or `not run`."""
    if controls is None:
        return NOT_RUN
    return {Selective.SELECTIVE: "yes", Selective.NOT_SELECTIVE: "no"}.get(controls.selective, "undecided")


def random_words(controls: AgonistControls, tau: float) -> str:
    """`8 random units of layer 20, each ablated alone, flip 6/512 (1.2 %) of D+ and 5/512 (0.98 %) of D-`."""
    if controls.random is None:
        return "no random unit was ablated"
    fragile = ", so this layer is fragile: they reach τ themselves" if controls.layer_is_fragile(tau) else ""
    units = plural(controls.random_units, "random unit")
    flips = "flips" if controls.random_units == 1 else "each ablated alone, flip"
    return f"{units} of layer {controls.neuron.layer}, {flips} {both_slices(controls.random)}{fragile}"


def fake_words(controls: AgonistControls) -> str:
    """`a fake rule's split gives selectivity +0.03`."""
    if controls.fake_split is None:
        return "no fake rule's split was at hand"
    return f"a fake rule's split gives selectivity {signed(controls.fake_split.signed_selectivity)}"


def baseline_words(controls: AgonistControls, tau: float) -> str:
    """`with baseline zero it flips …`, and that the effect depends on the baseline where it does; empty if not run."""
    if controls.second is None:
        return ""
    below = ", below τ: its strength depends on the baseline" if controls.depends_on_baseline(tau) else ""
    return f"with baseline {controls.second_baseline} it flips {both_slices(controls.second)}{below}"


def control_parts(controls: AgonistControls, tau: float) -> list[str]:
    """What each control that ran gave, in a phrase each."""
    parts = [random_words(controls, tau), fake_words(controls), baseline_words(controls, tau)]
    if controls.out_of_range is not None:
        parts.append(f"{k_of_n(controls.out_of_range)} of its replaced values are out of range")
    return [part for part in parts if part]


def counted_claims(units: Sequence[AgonistControls | None]) -> str:
    """`3 of 3 have an effect beyond random units, 1 of 3 is selective` over τ-agonists; None where no control ran."""
    ran = [controls for controls in units if controls is not None and controls.effect is not Effect.UNTESTED]
    if not ran:
        return "no control was run beside " + ("it" if len(units) == 1 else "them")
    effects = sum(controls.effect is Effect.BEYOND_RANDOM for controls in ran)
    selective = sum(controls.selective is Selective.SELECTIVE for controls in ran)
    if len(units) == 1:
        return f"{effect_words(ran[0])}; {selective_words(ran[0])}"
    of = f"{len(ran)}" if len(ran) == len(units) else f"the {len(ran)} with controls"
    return (
        f"{effects} of {of} {_have(effects)} an effect beyond random units, "
        f"{selective} of {of} {'is' if selective == 1 else 'are'} selective"
    )


def p_words(p: float) -> str:
    """`p < 0.001`, or p with two decimals, three below .01: `p 0.004`."""
    if p < 0.001:
        return "p < 0.001"
    return f"p {p:.3f}" if p < 0.01 else f"p {p:.2f}"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"
