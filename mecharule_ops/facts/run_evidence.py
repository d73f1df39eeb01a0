"""What stands behind a run, a section a function: search, cost, what was missed, layers, controls, rules, limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from mecharule_ops.codec import encode
from mecharule_ops.confidence import Spending
from mecharule_ops.facts.control_facts import baseline_words, selective_words, split_words
from mecharule_ops.facts.fact import SENTENCES, FactValue, Stated, stated
from mecharule_ops.facts.flips import both_slices
from mecharule_ops.facts.searches import recall_sentence
from mecharule_ops.facts.shown_units import (
    NOT_SHOWN,
    evidence_words,
    measures,
    rank_words,
    reached_words,
    unshowable,
)
from mecharule_ops.facts.unit_rules import shown_of_all, why_not_shown
from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.numbers import k_of_n, percent, plural, told_apart
from mecharule_ops.rules.families import Family
from mecharule_ops.run.live_run import Run
from mecharule_ops.state.search_id import OF_A_RUN, SearchId
from mecharule_ops.types import Basis, Regime, SearchStatus

_MOST = 6
"""Groups that are told one by one."""
Section = Callable[[Run, Findings], Iterator[Stated]]


def each_search(of: Callable[[Findings, SearchOutcome], Iterator[Stated]]) -> Section:
    """What is told of each search, as a section of the run."""

    def section(run: Run, findings: Findings) -> Iterator[Stated]:
        for search in findings.searches:
            yield from of(findings, search)

    return section


def _at(search: SearchOutcome) -> str:
    """`search.mlp_out.1`: what the keys of a search begin with."""
    return f"search.{search.intervention.basis.value}.{search.regime.value}"


def _units(search: SearchOutcome) -> str:
    """`270 heads (1→0)`: what tells the searches of a run apart in a sentence."""
    return f"{plural(search.cost.candidates, search.intervention.basis.row.noun)} ({search.regime.arrow})"


def _named(findings: Findings) -> list[Unit]:
    """The τ-agonists."""
    return [unit for unit in findings.units() if unit.is_tau_agonist]


def search(run: Run, findings: Findings) -> Iterator[Stated]:
    """The kind of search and what ordered it; units shown, at τ, not ruled out; the largest groups pruned."""
    yield stated("search.kind", run.config.search, kind=run.config.search)
    for each in findings.searches:
        yield from found_of(findings, each)
    for basis in run.config.bases:
        for regime in run.regimes:
            yield _attributed(run, basis, regime)
    yield from _pruned(run, findings)


def _attributed(run: Run, basis: Basis, regime: Regime) -> Stated:
    key = f"search.{basis.value}.{regime.value}.attribution"
    if run.attribution(basis, regime) is None:
        asked = {"basis": basis.value, "regime": regime, "ordered": ordered_by(run, basis, regime)}
        return stated(key, None, "search.attribution.none", **asked)
    scored = [
        (abs(float(score)), f"{basis.letter}{layer.layer}{basis.row.mark}{channel}")
        for layer in run.candidates(basis, regime).layers
        for channel, score in zip(layer.channels, layer.scored, strict=True)
        if score is not None
    ]
    best = [name for _, name in sorted(scored, reverse=True)[:5]]
    return stated(key, best, "search.attribution", regime=regime, best=best, others=", ".join(best[1:]))


def _pruned(run: Run, findings: Findings) -> Iterator[Stated]:
    nodes = [
        node
        for view in run.told.searches.values()
        if SearchId.parse(view.search).kind in OF_A_RUN
        for node in view.nodes.values()
        if "prune" in str(node.verdict)
    ]
    pruned = sorted((node for node in nodes if node.size > 1), key=lambda node: -node.size)
    alone = len(nodes) - len(pruned)
    counts = {"groups": plural(len(pruned), "group"), "alone": plural(alone, "single unit")}
    none = "" if nodes else "search.pruned.none"
    yield stated("search.pruned", {"groups": len(pruned), "single_units": alone}, none, **counts)
    for place, node in enumerate(pruned[:_MOST], 1):
        flips, asked = node.associated_flips + node.unrelated_flips, node.associated_n + node.unrelated_n
        group: dict[str, FactValue] = {"size": node.size, "units": node.units, "flips": flips, "n": asked}
        bound = {"bound": told_apart(node.ucb or 0, findings.tau), "tau": findings.tau}
        yield stated(
            f"search.pruned.{place}", {**group, "ucb": node.ucb}, "search.pruned.group", **group, **bound
        )


def found_of(findings: Findings, search: SearchOutcome) -> Iterator[Stated]:
    """How many units are shown, how many reach τ beside them, which are not ruled out, of how many."""
    shown, rest = findings.shown_of(search), len(search.agonists) - len(search.tau_agonists)
    ranked, names = findings.units_of(search), [str(unit.neuron) for unit in shown]
    yield (
        f"{_at(search)}.shown",
        {"units": names, "n": len(shown), "of": search.cost.candidates},
        f"{len(shown) or 'None'} of {_units(search)} {'are' if len(shown) > 1 else 'is'} shown"
        f"{': ' if names else ''}{', '.join(names)}",
    )
    if others := len(search.tau_agonists) - len(shown):
        why = unshowable(findings, search) or NOT_SHOWN
        strong = [str(one.neuron) for one in ranked if one.is_tau_agonist and not one.is_shown]
        said = f"{reached_words(findings, search, others, 'more ' if shown else '')}, {why}"
        value: FactValue = {"units": strong, "n": others}
        yield f"{_at(search)}.at_tau", value, f"{said}: {', '.join(strong) or 'hidden'}"
    left = f"the other {search.cost.candidates - len(search.agonists):,}"
    weak = {str(one.neuron): one.estimate.strength for one in ranked if not one.is_tau_agonist}
    named = ", ".join(f"{name} (strength {strength:.2f})" for name, strength in weak.items())
    more = f"{rest} more {'is' if rest == 1 else 'are'} not ruled out{f': {named}' if named else ''}; "
    status = sorted(set(search.status))
    complete = status in ([], [SearchStatus.COMPLETE.value])
    asked = f"of {left} not all were asked ({'; '.join(status)}), so not each of them is ruled out"
    said = f"{left} are" if complete else asked
    if rest or not complete:
        yield f"{_at(search)}.not_ruled_out", {"units": weak, "n": rest}, f"{more if rest else ''}{said}"


def ordered_by(run: Run, basis: Basis, regime: Regime) -> str:
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


def cost_of(findings: Findings, search: SearchOutcome) -> Iterator[Stated]:
    """What a search took, beside what testing every unit alone takes."""
    spent = search.cost
    shares = (spent.share_of_n, spent.share_of_2n_minus_1, spent.share_of_exhaustive_forwards)
    value = {
        "group_ablations": spent.queries,
        "example_forwards": spent.all_forwards,
        "share_of_testing_every_unit": spent.share_of_exhaustive_forwards,
        "testing_every_unit": spent.exhaustive_example_forwards,
    }
    parts = dict(zip(("of_n", "of_2n", "of_forwards"), map(percent, shares), strict=True))
    parts |= {"units": _units(search), "ablations": plural(spent.queries, "group ablation")}
    yield stated(f"{_at(search)}.cost", value, "search.cost", s=search, **parts)


def took(findings: Findings) -> Stated:
    """The wall clock and the longest stage."""
    seconds = sum(stage.seconds for stage in findings.stages)
    longest = max(findings.stages, key=lambda stage: stage.seconds, default=None)
    said = f"The wall clock is {seconds:,.1f} s in {plural(len(findings.stages), 'stage')}"
    if longest is not None and longest.seconds:
        said += f"; the longest is {longest.stage}, {longest.seconds:,.1f} s"
    return "run.seconds", {stage.stage: stage.seconds for stage in findings.stages}, said


def cost(run: Run, findings: Findings) -> Iterator[Stated]:
    """What the searches took, and the wall clock."""
    yield from each_search(cost_of)(run, findings)
    yield took(findings)


def missed_of(findings: Findings, search: SearchOutcome) -> Iterator[Stated]:
    """What a search left untested or missed, what bounds it, and what groups hid."""
    said, audit = recall_sentence(findings, search), search.audit
    known: dict[str, FactValue] = {"candidates": search.cost.candidates, "found": len(search.tau_agonists)}
    if search.exhaustive is not None:
        lost = [str(unit.neuron) for unit in search.missed(findings.tau)]
        known |= {"untested": 0, "missed": lost}
        said += f"; not {', '.join(lost)}" if lost else ""
    elif audit is not None:
        known |= {name: getattr(audit, name) for name in ("untested", "missed_at_most", "confidence")}
    else:
        known |= {"untested": (untested := max(0, search.cost.candidates - search.singletons_tested))}
        said += ". Testing every unit alone (--exhaustive-up-to) would settle it" if untested else ""
    yield f"{_at(search)}.missed", known, f"{_units(search)}: {said}"
    for row in search.recall:
        if row.whole and row.criterion == "ucb" and row.found is not None:
            key, found = f"{_at(search)}.recall_by_upper_bound", k_of_n(row.found)
            yield stated(key, encode(row.found), "search.recall", found=found)
    if search.dominance:
        over, of = sum(one.ratio > 1 for one in search.dominance), len(search.dominance)
        groups = plural(of, "opened group")
        key = f"{_at(search)}.stronger_than_its_group"
        yield stated(key, {"count": over, "n": of}, "search.dominance", over=over, groups=groups)


missed = each_search(missed_of)


def layers_of(findings: Findings, search: SearchOutcome) -> Iterator[Stated]:
    """What each layer flips as a whole, and where the units are."""
    best, at, units, strong = search.strongest_layer, _at(search), _units(search), search.tau_agonists
    if best is None:
        yield stated(f"{at}.layers", None, "search.layers.none", units=units)
    else:
        here = sum(one.neuron.layer == best.layer for one in strong)
        lie = {
            "here": here,
            "lie": "lies" if here == 1 else "lie",
            "agonists": plural(len(strong), "τ-agonist"),
        }
        flips = {"layer": best.layer, "flips": both_slices(best.estimate), "units": units}
        yield stated(
            f"{at}.layer.{best.layer}.whole", encode(best.estimate), "search.layer.best", **flips, **lie
        )
    for layer in search.layer_union:
        said = {"share": k_of_n(layer.flipped), "start": findings.words.of(bool(search.regime.value))}
        key = f"{at}.layer.{layer.layer}.flipped_by_any"
        yield stated(key, encode(layer.flipped), "search.layer.flipped", layer=layer.layer, **said)
    others = [other for other in search.whole_layers if best is not None and other.layer != best.layer]
    for other in sorted(others, key=lambda other: -other.least):
        key, flips = (
            f"{at}.layer.{other.layer}.whole",
            {"layer": other.layer, "flips": both_slices(other.estimate)},
        )
        yield stated(key, encode(other.estimate), "search.layer.whole", **flips)


def union_of(findings: Findings, search: SearchOutcome) -> Iterator[Stated]:
    """The records that any localized unit flips, beside those that as many random units do."""
    at, units = _at(search), _units(search)
    if search.union is not None:
        drawn, share = search.drawn_union, k_of_n(search.union)
        beside = f", {k_of_n(drawn)} by at least one of as many random units" if drawn else ""
        value = {"found": encode(search.union), "random": encode(drawn) if drawn else None}
        yield stated(f"{at}.flipped_by_any", value, "search.flipped", share=share, units=units, beside=beside)


layers = each_search(lambda findings, search: chain(layers_of(findings, search), union_of(findings, search)))


def control_facts(run: Run, findings: Findings) -> Iterator[Stated]:
    """Each τ-agonist beside random units, its split, replacement and a second one; which claim has least support."""
    found = _named(findings)
    if not found:
        yield stated("controls.units", 0, "controls.none")
        return
    for unit in found:
        yield from _control_facts(findings, unit)
    claims = findings.by_support()
    for unit in claims:
        if points := unit.weak_points:
            key, said = f"unit.{unit.neuron}.{unit.search.regime.value}.weak_points", "; ".join(points)
            yield stated(
                key, list(points), "controls.weak_points", unit=unit.neuron, s=unit.search, points=said
            )
    sound = sum(not unit.weak_points for unit in claims)
    said, count = plural(len(claims), "τ-agonist"), {"count": sound, "n": len(claims)}
    yield stated(
        "controls.without_weak_points", count, "controls.sound", agonists=said, sound=sound or "none"
    )


def _control_facts(findings: Findings, unit: Unit) -> Iterator[Stated]:
    name, tau, ran = unit.neuron, findings.tau, unit.controls
    key = f"unit.{name}.{unit.search.regime.value}"
    parts = {
        "evidence": evidence_words(findings, unit),
        "beside": "" if ran is None else f"; it stands {rank_words(unit)} units, {selective_words(ran)}",
        "strength": told_apart(unit.estimate.strength, tau),
        "lower": told_apart(unit.lower, tau),
        "under": "" if unit.counts_show_it else f", below τ = {tau:g}",
    }
    value: dict[str, FactValue] = {
        "strength": unit.estimate.strength,
        "lower": unit.lower,
        "shown": unit.is_shown,
    }
    yield stated(f"{key}.chance", value, "controls.chance", s=unit.search, **parts)
    if ran is None:
        return
    if ran.split is not None:
        value = {"verdict": ran.selective.value, "p": ran.selective_p, "split": encode(ran.split)}
        yield f"{key}.selective", value, f"{name}: {ran.selective.value}: {split_words(ran)}"
    if ran.out_of_range is not None:
        share = {"share": k_of_n(ran.out_of_range), "unit": name}
        yield stated(f"{key}.out_of_range", encode(ran.out_of_range), "controls.out_of_range", **share)
    if ran.second is not None and ran.second_baseline is not None:
        reaches, baseline = ran.second.reaches(tau), ran.second_baseline.value
        value = {"baseline": baseline, **encode(ran.second), "reaches": reaches}
        yield f"{key}.second_baseline", value, f"{name}: {baseline_words(ran, unit.estimate, tau)}"


def rules(run: Run, findings: Findings) -> Iterator[Stated]:
    """How many rules were learned, how many are shown, why each other is not; which tests and corrections decide."""
    yield rule_count(findings)
    learned = [(search, rule) for search in findings.searches for rule in search.rules]
    for search, rule in learned:
        if not rule.shown:
            kind = "rule over the output" if rule.family is Family.ANCHORED else f"{rule.family} rule"
            score = "" if rule.interval is None else f" (held-out MCC {rule.interval})"
            why, key = (
                why_not_shown(rule),
                f"unit.{rule.neuron}.{search.regime.value}.rule.{rule.family}.not_shown",
            )
            yield key, why, f"Not shown: the {kind} of {rule.neuron}: {why}{score}"
    yield rule_test(findings)


def rule_count(findings: Findings) -> Stated:
    """How many rules were learned and how many of them are shown."""
    learned = [rule for search in findings.searches for rule in search.rules]
    shown = sum(rule.shown for rule in learned)
    return "rules", {"shown": shown, "learned": len(learned)}, shown_of_all(findings) or "No rule was learned"


def rule_test(findings: Findings) -> Stated:
    """What decides that a learned rule is shown."""
    learned = sum(len(search.rules) for search in findings.searches)
    return stated("rules.test", findings.alpha, f=findings, rules=plural(learned, "learned rule"))


def rounding(findings: Findings) -> Stated:
    """How many completions rounding may decide."""
    close = findings.close_completions
    if close is None or not close.lead:
        why = "was not measured in this run" if close is None else "is nothing where it was measured"
        return stated("model.rounding", None, "model.rounding.none", why=why)
    return stated("model.rounding", encode(close.close), share=k_of_n(close.close), lead=close.lead)


def limits(findings: Findings) -> Iterator[Stated]:
    """What the run cannot show; which bounds and tests stand behind what it claims."""
    if (numbers := findings.numbers) is not None:
        yield stated("limits.numbers", encode(numbers), n=numbers)
    if findings.close_completions is not None:
        yield rounding(findings)
    for key in ("limits.cause", "limits.elsewhere", "limits.strengths"):
        yield stated(key, None, f=findings)
    candidates = max((search.cost.candidates for search in findings.searches), default=0)
    words = {
        "over": SENTENCES[
            f"limits.bounds.per_{'node' if findings.alpha_policy == Spending.PER_NODE else 'layer'}"
        ],
        "drawn": SENTENCES[
            f"limits.bounds.{'at_random' if all(one.at_random for one in findings.searches) else 'covers'}"
        ],
    }
    value: FactValue = {"alpha": findings.alpha, "units": candidates}
    yield stated("limits.bounds", value, f=findings, candidates=candidates, **words)
    yield stated("limits.pruning", None)
    yield stated("limits.shown", findings.alpha)
    yield stated("limits.unions", None)
    if findings.clusters:
        yield stated("limits.clusters", findings.clusters, f=findings)
    yield stated("limits.range", None)
    yield stated("limits.pairs", None)


def limits_of_run(run: Run, findings: Findings) -> Iterator[Stated]:
    """The same, and how anybody checks what it claims."""
    yield from limits(findings)
    stored = len(run.store.certificates())
    yield stated("limits.certificates", stored, f=findings, stored=stored)


def next_steps(run: Run, findings: Findings) -> Iterator[Stated]:
    """What would settle what is open, each with its command."""
    found, id = _named(findings), findings.run
    if any(unit.lower < findings.tau for unit in found):
        rows = getattr(run.task, "questions", None)
        is_spent = rows is not None and len(rows) <= run.config.records
        more = f"the same run {'on a table of more rows' if is_spent else 'with a larger `--records`'}"
        yield stated("next.records", more, more=more)
    why = [unshowable(findings, search) for search in findings.searches if search.tau_agonists]
    if any(measures(findings) in one for one in why):
        yield stated("next.controls", measures(findings), how=measures(findings))
    if any(search.exhaustive is None for search in findings.searches):
        command = f"mecharule run --from {id} --tau {findings.tau / 2:g}"
        yield stated("next.tau", command, f=findings, command=command)
    mended = Regime(int(findings.words.success_is_harm))
    if basis := next((unit.neuron.basis for unit in found if unit.search.regime is mended), None):
        command = f"mecharule gates {id}" + ("" if basis is run.config.bases[0] else f" --basis {basis}")
        yield stated("next.gates", command, command=command)
    yield stated("next.run", "mecharule run")
