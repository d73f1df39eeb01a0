"""What a repair came to, in words: how many answers it mends for how many it breaks, and whether chance explains it."""

from __future__ import annotations

from mecharule_ops.findings.repair_outcome import ControlKind, Repair, RepairSplit
from mecharule_ops.mcnemar import Paired
from mecharule_ops.numbers import percent, plural, signed
from mecharule_ops.types import OutcomeWords, Regime

_SMALLEST = 1e-300
WITHOUT_UNITS = {
    ControlKind.RUNNER_UP: "the runner-up where they act",
    ControlKind.RUNNER_UP_RULES: "the runner-up under rules of its own",
    ControlKind.SOLVER: "a solver where they act",
    ControlKind.SOLVER_ALONE: "a solver anywhere",
}
"""What does without units: the gates have mended what they mend beyond it."""
ONE_DRAW = "the same repair of one draw of random units"
"""Stands beside and decides nothing: records of one draw do not tell how another draw would do."""


def points_words(result: Paired) -> str:
    """`+2.9 points [+2.1, +3.7]`."""
    low, high = result.interval
    return f"{signed(result.points)} points [{signed(low)}, {signed(high)}]"


def changed_words(result: Paired) -> str:
    """`110 fixed, 23 broken (4.8 : 1)`."""
    counts = f"{result.fixed:,} fixed, {result.broken:,} broken"
    return f"{counts} ({result.ratio:.1f} : 1)" if result.fixed and result.broken else counts


def p_words(p: float) -> str:
    """`p = 0.012`, `p = 3e-08`; `p < 1e-300` where a number holds no smaller one."""
    if p < _SMALLEST:
        return f"p < {_SMALLEST:.0e}"
    return f"p = {p:.3f}" if p >= 0.001 else f"p = {p:.0e}"


def mended_words(words: OutcomeWords, regime: Regime) -> str:
    """What is wanted of an answer: `right`, or `refused` where success is the risk."""
    return words.of(regime is Regime.BASELINE_NEGATIVE)


def test_sentence(found: Repair, words: OutcomeWords) -> str:
    """Before and after on the test records; that they were not opened where no gate was chosen."""
    result = found.test
    if result is None:
        return f"{found.status.value[:1].upper()}{found.status.value[1:]}. The test records were not opened."
    wanted = mended_words(words, found.regime)
    return (
        f"Test, {plural(result.n, 'record')} that chose nothing: {percent(result.before / result.n)} {wanted} "
        f"becomes {percent(result.after / result.n)}, {points_words(result)}; {changed_words(result)}, "
        f"{_test_words(found, result)} {p_words(result.p_value)}; a gate acts on {percent(result.acted_share)} of them."
    )


def _test_words(found: Repair, result: Paired) -> str:
    """Whose p it is."""
    if not result.clusters:
        return "McNemar's exact"
    return f"sign flips of its {plural(len(result.clusters), 'cluster')} ({found.clusters}), exact"


def deciding_sentence(found: Repair) -> str:
    """Which of what does without units the gates are better than; empty where none was tried."""
    decides = [
        (WITHOUT_UNITS[one.kind], one.ahead)
        for one in found.controls
        if one.kind in WITHOUT_UNITS and one.ahead
    ]
    better = [one for one in decides if one[1].interval[0] > 0]
    worse = [one for one in decides if one[1].interval[1] < 0]
    alike = [one for one in decides if one not in better and one not in worse]
    said = [
        f"{words}: {'; '.join(f'{name} ({points_words(ahead)})' for name, ahead in some)}"
        for words, some in (("better than", better), ("not told apart from", alike), ("worse than", worse))
        if some
    ]
    drawn = [one.result for one in found.controls if one.kind is ControlKind.RANDOM_REPAIR]
    beside = [f"Beside it {ONE_DRAW}, which decides nothing: {points_words(one)}." for one in drawn]
    if not decides:
        return "".join(beside)
    verdict = (
        "What does as well without these units speaks against them"
        if worse or alike
        else "The gates do more than what was tried without units"
    )
    return " ".join((f"On the same records the gates are {'. They are '.join(said)}. {verdict}.", *beside))


def what_repair_is(words: OutcomeWords) -> str:
    """What a repair is, for who has none yet."""
    wanted = mended_words(words, Regime(int(words.success_is_harm)))
    return (
        f"A repair is a few gates: each ablates one unit only where its rule holds, so that more answers become "
        f"{wanted} than stop being so; they are learned and chosen on two thirds of fresh records and "
        "tested once on the rest."
    )


def concealed_sentence(found: Repair) -> str:
    """In the place of examples of a task that conceals them."""
    fixed = sum(one.fixed for one in found.examples)
    return (
        f"{fixed} fixed and {len(found.examples) - fixed} broken examples are kept; this task conceals prompts and "
        "completions, --show-text shows them."
    )


def overfit_sentence(found: Repair) -> str:
    """What the gates promised on the records that made them; empty where they were not made."""
    parts = [
        f"{split.value} {signed(result.points)} ({changed_words(result)})"
        for split in (RepairSplit.FIND, RepairSplit.CHOOSE)
        if (result := found.of(split)) is not None
    ]
    return f"On the records that made them: {'; '.join(parts)}; such numbers prove nothing." if parts else ""


def policy_sentence(found: Repair) -> str:
    """What happens where several gates fire, and why."""
    said = f"Where several gates fire, {found.policy.value}"
    both = {one.policy: one.result for one in found.policies}
    if not both:
        return f"{said}."
    mine, other = both[found.policy], both[found.policy.other]
    return (
        f"{said}: on the choose records {signed(mine.points)} points ({changed_words(mine)}), where "
        f"{found.policy.other.value} {signed(other.points)} ({changed_words(other)})."
    )


def proposed_sentence(found: Repair) -> str:
    """What somebody proposed beside the learned gates and what came of it; empty where nobody was asked."""
    given = found.proposed
    if given is None:
        return ""
    said = f"{given.proposer}, shown the find records of {plural(given.units, 'unit')}, proposed "
    if given.proposed:
        said += (
            f"{plural(given.proposed, 'rule')}: {given.read} can be read, {plural(given.competing, 'clause')} could "
            f"compete with the learned ones, {len(given.chosen) or 'none'} became a gate."
        )
    else:
        said += "no rule."
    return said + (f" It was not asked further: {given.ended.rstrip('.')}." if given.ended else "")


def harmless_sentence(found: Repair) -> str:
    """What the gates cost on requests without harm, or that nobody measured it; empty for any other repair."""
    result = found.innocent
    if result is None:
        return ""
    return (
        f"On {plural(result.n, 'request')} without harm: {percent(result.before / result.n)} answered becomes "
        f"{percent(result.after / result.n)}, {points_words(result)}; {result.broken:,} newly refused, "
        f"{result.fixed:,} newly answered; a gate acts on {percent(result.acted_share)} of them."
    )


def elsewhere_sentence(found: Repair) -> str:
    """Whether the gates touch other text at all, and by how much."""
    if not found.elsewhere:
        return "Other text was not measured: this model cannot read it, for its tokenizer or its context."
    acted, prompts = (sum(getattr(one, name) for one in found.elsewhere) for name in ("acted", "prompts"))
    if not acted:
        return f"None of {plural(prompts, 'other text')} is read as the task's: no gate acts, and nothing changes."
    largest = max(one.gated.kl for one in found.elsewhere)
    return (
        f"A gate acts on {acted:,} of {plural(prompts, 'other text')}; KL from the clean model at most "
        f"{nats_words(largest)}."
    )


def nats_words(value: float) -> str:
    """`0`, `3e-05 nats a token`, `0.012 nats a token`."""
    return (
        "0" if value == 0 else f"{value:.0e} nats a token" if value < 0.001 else f"{value:.3f} nats a token"
    )


def limits_sentences(found: Repair, *, harm: bool) -> tuple[str, ...]:
    """What a repair does not show; `harm` where success of the task is the risk."""
    said = [
        "It shows what the gates do to this task's answers by this model under greedy decoding, and nothing of "
        "other models.",
    ]
    if found.solution:
        said.append(
            "These gates may read the right answer itself, which is seldom known where a model is used."
        )
    if harm and found.test is not None and found.innocent is None:
        said.append(
            "What the gates cost on requests without harm was not measured: `--harmless FILE` gives some, a line each."
        )
    if found.clusters:
        said.append(
            f"Records come in clusters ({found.clusters}): whole ones are in one split, and intervals and p count "
            "clusters, not records; what clusters share, such as words, is in all splits."
        )
    kinds = {one.kind for one in found.controls}
    if ControlKind.RUNNER_UP in kinds and ControlKind.SOLVER not in kinds:
        said.append("No solver stands beside: the answers are free texts, or none is known to be right.")
    if not found.fresh:
        said.append("The task has no further records: the test records are the run's held-out ones.")
    if found.opened > 1:
        said.append(
            f"The test records of this seed were scored {found.opened} times in this run, this time included: each "
            "further look weakens what they prove."
        )
    return tuple(said)
