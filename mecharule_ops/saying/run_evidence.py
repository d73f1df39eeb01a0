"""What stands behind a run, a question a function: chance, corrections, rules, groups, layers, cost, limits."""

from __future__ import annotations

from collections.abc import Iterator

from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.numbers import k_of_n, percent, plural
from mecharule_ops.run.live_run import Run
from mecharule_ops.saying.control_facts import brief_rank, selective_words
from mecharule_ops.saying.flips import both_slices
from mecharule_ops.saying.searches import predicted_words, recall_sentence, search_titles
from mecharule_ops.saying.shown_units import (
    NOT_TOLD_APART,
    evidence_words,
    measures,
    reached_words,
    unshowable,
)
from mecharule_ops.saying.unit_rules import ANCHORED, learned_rules, shown_of_all, shown_words
from mecharule_ops.state.search_id import OF_A_RUN, SearchId
from mecharule_ops.types import Basis, Regime, SearchStatus

_MOST = 6


def count(run: Run, findings: Findings) -> Iterator[str]:
    """How many units are shown, how many reach τ beside them, how many are not ruled out, of how many."""
    for search in findings.searches:
        shown, rest = findings.shown_of(search), len(search.agonists) - len(search.tau_agonists)
        names = "" if search.suppressed else ", ".join(str(unit.neuron) for unit in shown)
        others = len(search.tau_agonists) - len(shown)
        yield (
            f"{len(shown) or 'None'} of {_units(search)} {'are' if len(shown) > 1 else 'is'} shown"
            f"{f': {names}' if names else ''}"
        )
        if others:
            why = unshowable(findings, search) or NOT_TOLD_APART
            yield f"{reached_words(findings, search, others, 'more ' if shown else '')}, {why}"
        left = search.cost.candidates - len(search.agonists)
        more = f"{rest} more {'is' if rest == 1 else 'are'} not ruled out; " if rest else ""
        if set(search.status) <= {SearchStatus.COMPLETE.value}:
            if rest:
                yield f"{more}the other {left:,} are"
        else:
            yield (
                f"{more}of the other {left:,} not all were asked ({'; '.join(sorted(set(search.status)))}), so not "
                "each of them is ruled out"
            )


def open_units(run: Run, findings: Findings) -> Iterator[str]:
    """The units that are localized and no τ-agonists."""
    for search in findings.searches:
        weak = [one for one in _ranked(findings, search) if not one.is_tau_agonist]
        names = ", ".join(f"{one.neuron} (strength {one.estimate.strength:.2f})" for one in weak)
        yield (
            f"Not ruled out of the {_units(search)}, though below τ = {findings.tau:g} by their counts: "
            f"{names or 'none'}"
        )
        strong = ", ".join(str(one.neuron) for one in _ranked(findings, search) if one.is_tau_agonist)
        yield f"Beside them the τ-agonists, the shown first: {strong or 'none'}"


def _units(search: SearchOutcome) -> str:
    """`270 heads (1→0)`: what tells the searches of a run apart in a sentence."""
    return f"{plural(search.cost.candidates, search.intervention.basis.row.noun)} ({search.regime.arrow})"


def _ranked(findings: Findings, search: SearchOutcome) -> tuple[Unit, ...]:
    return () if search.suppressed else findings.units_of(search)


def chance(run: Run, findings: Findings) -> Iterator[str]:
    """Each τ-agonist on answers kept aside beside random units, its rank, and the lower bound of its strength."""
    for unit in findings.units():
        if unit.is_tau_agonist and not unit.search.suppressed:
            ran = unit.controls
            beside = "" if ran is None else f"; it stands {brief_rank(ran)}, {selective_words(ran)}"
            under = "" if unit.lower >= findings.tau else f", below τ = {findings.tau:g}"
            yield (
                f"{evidence_words(findings, unit)}{beside}; its strength {unit.estimate.strength:.2f} has a lower "
                f"bound of {unit.lower:.2f} over all {unit.search.cost.candidates:,} units{under}"
            )
    if not any(unit.is_tau_agonist for unit in findings.units()):
        yield "No unit reaches τ, so nothing has to be told from chance"


def corrected(run: Run, findings: Findings) -> Iterator[str]:
    """What was corrected for how many comparisons."""
    rules = [rule for search in findings.searches for rule in learned_rules(search)]
    shown = sum(rule.shown for rule in rules)
    yield (
        f"Yes: the p of every learned rule is corrected for all {plural(len(rules), 'rule')} (Holm); "
        f"{shown or 'none'} of them {'is' if shown < 2 else 'are'} shown after that"
    )
    for search in findings.searches:
        yield (
            f"Lower bounds of strength hold over both slices of all {search.cost.candidates:,} units at once "
            "(Bonferroni), also of those that were never asked"
        )
    yield "The lower bound by which a unit is shown holds over the units that its search found (Holm)"
    yield "p of units among random units, and of selectivity, are corrected over the units of the run (Holm)"


def tests(run: Run, findings: Findings) -> Iterator[str]:
    """Which bounds and tests stand behind what is claimed."""
    alpha = f"α = {findings.alpha:g}"
    yield (
        "Bounds on a flip rate are one-sided and exact (Clopper–Pearson), without a normal approximation: the lower "
        "one of a unit holds over all units searched and both slices (Bonferroni), the upper ones of a search share "
        f"α over its looks; {alpha}"
    )
    yield (
        "A learned rule is shown where Fisher's exact test on held-out records, one-sided and corrected over all "
        "learned rules (Holm), has p ≤ α, and where the interval of its MCC, a parametric bootstrap, lies above 0; "
        f"{alpha}"
    )
    yield (
        "A unit is shown where the exact lower bound of its rate on held-out records, corrected over the units that "
        "its search found (Holm), lies above the upper 95 % point of random units; selectivity is tested on held-out "
        "records by all permutations of the split, corrected over the units (Holm); that a unit is not "
        "selective is said by Newcombe's interval, which holds its level nearly"
    )
    yield "Two units are compared by an exact paired test on the records that only one of them flips"


def rules_shown(run: Run, findings: Findings) -> Iterator[str]:
    """How many rules were learned, how many are shown, and why each other is not."""
    yield (shown_of_all(findings) or "No rule was learned").replace(
        "are shown", "are shown: they predict held-out flips"
    )
    for search in findings.searches:
        for rule in learned_rules(search):
            if not rule.shown:
                kind = "rule over the output" if rule.family == ANCHORED else f"{rule.family} rule"
                held = rule.held_out
                score = (
                    ""
                    if held is None
                    else f" (held-out MCC {held.mcc:.2f} [{held.low:.2f}, {held.high:.2f}])"
                )
                yield f"Not shown: the {kind} of {rule.neuron}: {shown_words(rule).removeprefix('no, ')}{score}"


def layers(run: Run, findings: Findings) -> Iterator[str]:
    """The layer that flips most as a whole, the others, and where the units are."""
    for search in findings.searches:
        best = search.strongest_layer
        if best is None:
            yield f"Of {_units(search)} no layer was ablated as a whole"
            continue
        strong = search.tau_agonists
        here = sum(one.neuron.layer == best.layer for one in strong)
        yield (
            f"Of {_units(search)} those of layer {best.layer} matter most: ablated together they flip "
            f"{both_slices(best.estimate)}; {here} of {plural(len(strong), 'τ-agonist')} "
            f"{'lies' if here == 1 else 'lie'} in it"
        )
        for layer in search.layer_union:
            start = findings.words.of(bool(search.regime.value))
            yield (
                f"{k_of_n(layer.flipped)} of all answers that are {start} are flipped by at least one localized unit "
                f"of layer {layer.layer}"
            )
        others = [other for other in search.whole_layers if other.layer != best.layer]
        others.sort(key=lambda other: -other.estimate.strength)
        for other in others[:_MOST]:
            yield f"Layer {other.layer} as a whole flips {both_slices(other.estimate)}"
        if more := others[_MOST:]:
            yield f"Each of {plural(len(more), 'other layer')} ablated as a whole flips no more than these"


def groups(run: Run, findings: Findings) -> Iterator[str]:
    """The groups that the recorded searches pruned, largest first."""
    nodes = [
        node
        for view in run.told.searches.values()
        if SearchId.parse(view.search).kind in OF_A_RUN
        for node in view.nodes.values()
        if "prune" in str(node.verdict)
    ]
    pruned = sorted((node for node in nodes if node.size > 1), key=lambda node: -node.size)
    alone = len(nodes) - len(pruned)
    if not nodes:
        yield "No unit was pruned: each that was asked was tested alone"
        return
    yield f"Pruned: {plural(len(pruned), 'group')} of units and {plural(alone, 'single unit')}"
    for node in pruned[:_MOST]:
        flips, asked = node.associated_flips + node.unrelated_flips, node.associated_n + node.unrelated_n
        yield (
            f"Pruned: a group of {node.size} units ({node.units}), which together flip {flips} of {asked}; "
            "upper bound "
            f"{node.ucb or 0:.3f}, below τ = {findings.tau:g}"
        )


def order(run: Run, findings: Findings) -> Iterator[str]:
    """Which kind of search it was, what ordered it, and which units attribution and first order rank first."""
    yield f"It was a {run.config.search} search, the setting search={run.config.search}"
    for search in findings.searches:
        if said := predicted_words(search):
            yield f"{_units(search)}: {said[:1].lower()}{said[1:].removesuffix('.')}"
    for basis in run.config.bases:
        for regime in run.regimes:
            if run.attribution(basis, regime) is None:
                of = f"{basis.value} {regime.arrow}"
                yield f"Attribution (EAP-IG, {of}) was not asked: {_ordered(run, basis, regime)}"
                continue
            kept = run.candidates(basis, regime)
            scored = [
                (abs(float(score)), f"{basis.letter}{layer.layer}{basis.row.mark}{channel}")
                for layer in kept.layers
                for channel, score in zip(layer.channels, layer.scored, strict=True)
                if score is not None
            ]
            best = [name for _, name in sorted(scored, reverse=True)[:5]]
            yield (
                f"By attribution (EAP-IG, {regime.arrow}) the top unit is {best[0]}, then {', '.join(best[1:])}; "
                "attribution orders tests and is no evidence of causation"
            )


def _ordered(run: Run, basis: Basis, regime: Regime) -> str:
    """What ordered a search that asked no attribution."""
    if not run.predictions(basis, regime):
        return "units were taken in the order of channels"
    views = [run.search_view(basis, regime, layer) for layer in range(run.sizes(basis, regime)[0])]
    layers = [layer for layer, view in enumerate(views) if view is not None and view.dropped]
    if not layers:
        return "first order ordered the search"
    named = ", ".join(map(str, layers))
    return (
        f"first order ordered the search, but it failed in {plural(len(layers), 'layer')} ({named}), where the units "
        "left were grouped in the order of channels"
    )


def cost(run: Run, findings: Findings) -> Iterator[str]:
    """What the searches took, beside what testing every unit alone takes."""
    for search in findings.searches:
        spent = search.cost
        yield (
            f"The search of {_units(search)} took {plural(spent.queries, 'group ablation')} and "
            f"{spent.all_forwards:,} example-forwards, {percent(spent.share_of_exhaustive_forwards)} of the "
            f"{spent.exhaustive_example_forwards:,} that testing every unit alone takes"
        )
        if search.exhaustive is not None:
            yield f"Every one of the {spent.candidates:,} units was also tested alone, to know what the search missed"
    yield from time(run, findings)


def time(run: Run, findings: Findings) -> Iterator[str]:
    """The wall clock of the stages, as recorded."""
    seconds = sum(stage.seconds for stage in findings.stages)
    yield f"The wall clock recorded in this run is {seconds:.1f} s in {plural(len(findings.stages), 'stage')}"
    longest = max(findings.stages, key=lambda stage: stage.seconds, default=None)
    if longest is not None and longest.seconds:
        yield f"The longest stage is {longest.stage}, {longest.seconds:.1f} s"


def limits(run: Run, findings: Findings) -> Iterator[str]:
    """What the run cannot show, in a few sentences."""
    yield from cause(run, findings)
    yield (
        f"Everything holds for this task ({findings.task}), this model ({findings.model}), these settings and seed "
        f"{findings.seed}; no other was tested, so nothing is known of whether it generalises"
    )
    yield "Strengths are measured on the records that chose the units, so the largest are biased upwards"
    yield f"The whole list: `mecharule show {findings.run} --full`, Limits"


def recall(run: Run, findings: Findings) -> Iterator[str]:
    """What share of what testing every unit alone finds the search found, and what groups hid."""
    yield from missed(run, findings)
    for search in findings.searches:
        for row in search.recall:
            if row.whole and row.criterion == "ucb":
                yield (
                    f"Of the units whose upper bound reaches τ when each is tested alone the search localized "
                    f"{k_of_n(row.found)}"
                )
        if search.dominance:
            over = sum(one.ratio > 1 for one in search.dominance)
            yield (
                f"In {over} of {plural(len(search.dominance), 'opened group')} a unit measured stronger than its group "
                "(Dom above 1), where pruning is not safe"
            )


def choices(run: Run, findings: Findings) -> Iterator[str]:
    """Where this run does other than the paper, or the paper leaves a choice."""
    for choice in findings.choices:
        yield f"{choice.setting}: {choice.sentence.removesuffix('.')}"
    if not findings.choices:
        yield "This run keeps no list of choices"


def rounding(run: Run, findings: Findings) -> Iterator[str]:
    """How many completions rounding may decide."""
    close = findings.close_completions
    if close is None:
        yield "How far rounding moves the leads was not measured in this run"
        return
    if not close.lead:
        yield "Where it was measured rounding moved no lead, so no completion is known to hang on it"
        return
    yield (
        f"{k_of_n(close.close)} of the completions have a lead below {close.lead:.2g} logits, so that "
        "another processor "
        "may write another token there"
    )


def cause(run: Run, findings: Findings) -> Iterator[str]:
    """What an ablation shows and what it does not."""
    yield (
        "Ablation shows that a unit is needed for the behaviour under this replacement; it does not show that the unit "
        "suffices, is unique, or computes what a rule says"
    )


def check(run: Run, findings: Findings) -> Iterator[str]:
    """How somebody else runs the evidence again."""
    stored = len(run.store.certificates())
    yield (
        "Every claim has a certificate that anybody can run again: `mecharule verify CERTIFICATE` does it "
        "on a second, "
        f"slower path; `mecharule verify --run {findings.run} --all` does all {stored}"
    )
    yield (
        f"`mecharule export {findings.run} FOLDER` writes a folder that verifies on another machine; the same settings "
        f"and seed {findings.seed} make the same run again"
    )


def in_range(run: Run, findings: Findings) -> Iterator[str]:
    """Whether replaced values leave the range that units take in the data."""
    said = False
    for unit in findings.units():
        if unit.controls is not None and unit.controls.out_of_range is not None:
            said = True
            yield (
                f"{k_of_n(unit.controls.out_of_range)} of the replaced values of {unit.neuron} are out of "
                "the range that "
                "it takes at that position in the data"
            )
    if not said:
        yield "Whether replaced values are out of range was not measured in this run"


def other_baseline(run: Run, findings: Findings) -> Iterator[str]:
    """The τ-agonists under a second replacement."""
    for unit in findings.units():
        controls = unit.controls
        if controls is not None and controls.second is not None and controls.second_baseline is not None:
            holds = "reaches" if controls.second.reaches(findings.tau) else "stays below"
            yield (
                f"With baseline {controls.second_baseline.value} {unit.neuron} flips "
                f"{both_slices(controls.second)}: it "
                f"{holds} τ = {findings.tau:g} there too"
            )


def selective(run: Run, findings: Findings) -> Iterator[str]:
    """Which τ-agonists flip one side of the split more, on held-out records."""
    for unit in findings.units():
        controls = unit.controls
        if controls is not None:
            counts = ""
            if controls.split is not None:
                inside, outside = controls.split.associated, controls.split.unrelated
                counts = (
                    f": held-out flips {inside.flips} of {inside.n} where the splitter rule fires, {outside.flips} of "
                    f"{outside.n} elsewhere"
                )
            p = "" if controls.selective_p is None else f" (p = {controls.selective_p:.2f})"
            yield f"{unit.neuron}: {controls.selective.value}{counts}{p}"


def overlap(run: Run, findings: Findings) -> Iterator[str]:
    """How far τ-agonists flip the same records, and how many all localized units flip together."""
    for search in findings.searches:
        for pair in search.overlaps[:_MOST]:
            yield (
                f"Of every record observed, {pair.first} and {pair.second} both flip {pair.shared.count} of the "
                f"{pair.shared.n} that either flips (Jaccard {pair.shared.rate:.2f})"
            )
        if search.union is not None:
            beside = (
                search.drawn_union
                and f", {k_of_n(search.drawn_union)} by at least one of as many random units"
            )
            yield (
                f"{k_of_n(search.union)} of the records outside the slices are flipped by at least one localized unit "
                f"of the {_units(search)}{beside or ''}"
            )


def missed(run: Run, findings: Findings) -> Iterator[str]:
    """What each search left untested."""
    for name, search in zip(search_titles(findings), findings.searches, strict=True):
        yield f"{name}: {recall_sentence(findings, search).removesuffix('.')}"


def next_steps(run: Run, findings: Findings) -> Iterator[str]:
    """What would settle what is open, each with its command."""
    found = [unit for unit in findings.units() if unit.is_tau_agonist and not unit.search.suppressed]
    id = findings.run
    if any(unit.lower < findings.tau for unit in found):
        rows = getattr(run.task, "questions", None)
        is_spent = rows is not None and len(rows) <= run.config.records
        more = (
            "the same run on a table of more rows" if is_spent else "the same run with a larger `--records`"
        )
        yield f"More records would narrow the bounds: {more}"
    if any(unshowable(findings, search) for search in findings.searches if search.tau_agonists):
        yield f"Whether a unit flips more than random units: {measures(findings)}"
    if any(search.exhaustive is None for search in findings.searches):
        yield (
            f"Weaker units would be looked for at a lower τ, here {findings.tau:g}: "
            f"`mecharule fork {id} --tau {findings.tau / 2:g}`"
        )
    if found:
        yield f"Whether gates on these units mend answers can be tried: `mecharule gates {id}`"
    yield "Other seeds, tasks and models would show whether it generalises: start another `mecharule run`"
