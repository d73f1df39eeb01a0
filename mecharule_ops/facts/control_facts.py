"""What the controls beside a unit show, in words: its rank and whether it is selective, never one for the other."""

from mecharule_ops import numbers, types
from mecharule_ops.facts.fact import said
from mecharule_ops.facts.flips import both_slices
from mecharule_ops.findings.controls import AgonistControls, Selective
from mecharule_ops.thresholds import ALPHA


def selective_words(controls: AgonistControls) -> str:
    """`selective`, `not selective` or `selectivity undecided`."""
    return "selectivity undecided" if controls.selective is Selective.UNDECIDED else controls.selective.value


def beside_random(controls: AgonistControls | None) -> str:
    """`12 of 64 kept aside, more than 4 of 5 random units and all 8 drawn from its layer`."""
    if controls is None or controls.basis is None or controls.flips is None:
        return "no random unit was ablated beside it"
    flips, basis, layer = controls.flips, controls.basis, controls.layer
    fewer = fewer_words(basis.n - basis.count, basis.n)
    of_layer = f" and {fewer_words(layer.n - layer.count, layer.n)} drawn from its layer" if layer else ""
    return f"{flips.flips:,} of {flips.n:,} kept aside, more than {fewer} random units{of_layer}"


def split_words(controls: AgonistControls) -> str:
    """Its flips on all held-out records where the splitter rule fires, `21/30 (70 %)`, and elsewhere, with p."""
    if controls.split is None:
        return ""
    p = "" if controls.selective_p is None else f", {p_words(controls.selective_p)}"
    here, elsewhere = numbers.k_of_n(controls.split.associated), numbers.k_of_n(controls.split.unrelated)
    n = controls.split.associated.n + controls.split.unrelated.n
    return said("controls.split", n=n, here=here, elsewhere=elsewhere, p=p)


def baseline_words(controls: AgonistControls, main: types.FlipEstimate, tau: float) -> str:
    """`with baseline zero it flips …`, and whether its counts are told apart from `main`; empty if not run."""
    if controls.second is None:
        return ""
    depends = controls.depends_on_baseline(main, tau)
    why = ": its strength depends on the baseline" if depends else " there, not told apart"
    below = f", below τ{why}" if controls.below_elsewhere(tau) else ""
    return f"with baseline {controls.second_baseline} it flips {both_slices(controls.second)}{below}"


def control_parts(controls: AgonistControls, main: types.FlipEstimate, tau: float) -> list[str]:
    """What each control that ran gave, in a phrase each; `main` are the unit's own counts on the slices."""
    parts = [
        "not ranked among random units" if controls.basis is None else f"it flips {beside_random(controls)}",
        split_words(controls),
        baseline_words(controls, main, tau),
    ]
    if controls.out_of_range is not None:
        parts.append(f"{numbers.k_of_n(controls.out_of_range)} of its replaced values are out of range")
    return [part for part in parts if part]


def p_words(p: float) -> str:
    """`p < .001`, or p with two decimals, three below .01, and more beside α: `p = .004`, `p = .0499`."""
    if p < 0.001:
        return "p < .001"
    return f"p = {f'{p:.3f}' if p < 0.01 else numbers.told_apart(p, ALPHA)}".replace("= 0.", "= .")


def fewer_words(fewer: int, n: int) -> str:
    """`254 of 255`, `all 99`: of random units those that flip fewer than a unit."""
    return f"all {n}" if fewer == n > 0 else f"{fewer} of {n}"
