"""What a language model's predicates came to in a run, beside random predicates and beside the offline grammar's.

The grammar proposes first and the model adds, so a predicate that fires like one of the grammar's is refused as a
double, and a copy of one of the task's own is nobody's. What it kept, what entered rules, and what these gained on
held-out records stand each beside 20 draws of random predicates of the same grammar and size through the same filters;
an interval is that of the draws, over the same units and records.
Held-out records are looked at after everything was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from agent.proposing.random_null import DRAWS, Chance, kept_of, random_texts, size_of
from agent.refining.loop import case_of
from agent.refining.refinement_nodes import held_out_score
from agent.refining.refinement_state import UnitCase
from agent.refining.suggesting import learned_on
from mecharule_ops.predicates.language import parse_predicate, schema_of
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.run.live_run import Run
from mecharule_ops.store.keys import CONTRIBUTION, PROPOSALS

UNITS = 3
"""Strongest anchored units whose rules are learned with and without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """What became of one proposer's predicates."""

    proposer: str
    proposed: int
    parsed: int
    kept: int
    """Pass the filters, so that rules may use them."""
    in_rules: int
    """Of the splitter or of an anchored rule."""

    def __str__(self) -> str:
        return (
            f"{self.proposer} proposed {self.proposed} predicates: {self.parsed} parse, {self.kept} pass the filters, "
            f"{self.in_rules} are in a rule"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """A model beside random predicates and the offline grammar."""

    model: Proposed
    """Without what the task's own predicates say already."""
    offline: Proposed
    units: int
    """Strongest anchored units over which the rules are learned once more."""
    kept: Chance
    """Predicates that pass the filters."""
    in_rules: Chance
    """Of these, predicates in a rule of those units, learned with them."""
    gain: Chance
    """Mean difference of the held-out MCC of those rules to the rules learned without them."""

    def lines(self) -> list[str]:
        """What the report says."""
        name = self.model.proposer
        if not self.model.kept:
            return [f"{self.model}; {name} added nothing to this run.", f"{self.offline}."]
        beside = (
            f"Random predicates of the same grammar and size, {len(self.kept.draws)} draws: "
            f"{_range(self.kept)} pass the filters, {_range(self.in_rules)} are in a rule of the {self.units} "
            f"strongest units ({name}: {self.in_rules.measured:g})."
        )
        worth, low, high = self.gain.worth
        told = (
            f"On held-out records the rules of these units gain {self.gain.measured:+.3f} MCC in the mean with "
            f"{name}'s predicates and {self.gain.mean:+.3f} with random ones"
        )
        verdict = "" if self.gain.is_more else ", no more than chance"
        return [
            f"{self.model}.",
            beside,
            f"{told}: worth {worth:+.3f} ({low:+.3f} to {high:+.3f}){verdict}.",
            f"{self.offline}.",
        ]


def _range(figure: Chance) -> str:
    low, high = figure.ends
    return f"{figure.mean:.1f} ({low:.0f} to {high:.0f})"


def contribution_of(run: Run) -> Contribution:
    """Counted from the run's records; kept in the run file.

    Costs two rules and one a draw for each of at most three units, where a predicate of the model passed the filters.
    """
    stored = run.store.get(PROPOSALS)
    said = [*stored["accepted"], *(entry["text"] for entry in stored["refused"])]
    vocabulary, schema = run.vocabulary, schema_of(run.columns)
    texts = [*vocabulary["kept"], *(refusal["text"] for refusal in vocabulary["refusals"])]
    seeds = {_spelt(text, schema) for text in run.task.seed_predicates()}
    models = {_spelt(text, schema) for text in said} - seeds
    grammar = {_spelt(text, schema) for text in texts} - seeds - models
    kept, named = set(vocabulary["kept"]), _named(run)
    model = _counted(str(stored["model"]), models, schema, kept, named)
    made = _beside_chance(
        run, model, _counted("the offline grammar", grammar, schema, kept, named), models, schema
    )
    run.store.put(CONTRIBUTION, {**asdict(made), "lines": made.lines()})
    return made


def _beside_chance(
    run: Run, model: Proposed, offline: Proposed, models: set[str], schema: dict[str, type]
) -> Contribution:
    """The model's figures beside those of draws; without any of its predicates kept there is nothing to draw for."""
    others = [text for text in run.vocabulary["kept"] if text not in models]
    mine = tuple(text for text in run.vocabulary["kept"] if text in models)
    sizes = [size_of(text) for text in sorted(models) if _parses(text, schema)]
    cases = _strongest(run, models) if mine else []
    draws = []
    for draw in range(DRAWS if mine else 0):
        random = random_texts(run, sizes, {*others, *models}, (run.config.seed, draw))
        draws.append(kept_of(run, random, others))
    alone = [_learned(run, case, ()) for case in cases]
    scored = [_figures(run, cases, alone, texts) for texts in (mine, *draws)]
    (in_rules, gain), *random_figures = scored
    return Contribution(
        model=model,
        offline=offline,
        units=len(cases),
        kept=Chance(measured=len(mine), draws=tuple(float(len(texts)) for texts in draws)),
        in_rules=Chance(measured=in_rules, draws=tuple(count for count, _ in random_figures)),
        gain=Chance(measured=gain, draws=tuple(gained for _, gained in random_figures)),
    )


def _strongest(run: Run, models: set[str]) -> list[UnitCase]:
    """The strongest anchored units with rules and held-out records, each without what the model proposed."""
    anchored = [
        (search, rule)
        for search in run.findings.searches
        for rule in search.anchored
        if not search.suppressed and rule.rule and rule.held_out is not None
    ]
    anchored.sort(key=lambda pair: -run.findings.strength(pair[1].neuron, pair[0].regime))
    return [case_of(run, search, rule, without=models) for search, rule in anchored[:UNITS]]


def _figures(
    run: Run, cases: Sequence[UnitCase], alone: Sequence[tuple[frozenset[str], float]], texts: Sequence[str]
) -> tuple[float, float]:
    """(texts in a rule learned with them, mean gain of the held-out MCC over the rules learned alone)."""
    if not texts or not cases:
        return 0.0, 0.0
    learned = [_learned(run, case, texts) for case in cases]
    named = {text for rule, _ in learned for text in rule} & set(texts)
    gains = [scored - before for (_, scored), (_, before) in zip(learned, alone, strict=True)]
    return float(len(named)), sum(gains) / len(gains)


def _learned(run: Run, case: UnitCase, texts: Sequence[str]) -> tuple[frozenset[str], float]:
    """(predicates of the unit's rule learned with further texts, its held-out MCC)."""
    rule = learned_on(case, texts, run.config.seed).rule
    return (frozenset(), 0.0) if rule is None else (rule.predicates, held_out_score(case, str(rule)).mcc)


def _counted(
    proposer: str, texts: set[str], schema: dict[str, type], kept: set[str], named: set[str]
) -> Proposed:
    return Proposed(
        proposer=proposer,
        proposed=len(texts),
        parsed=sum(_parses(text, schema) for text in texts),
        kept=len(texts & kept),
        in_rules=len(texts & named),
    )


def _named(run: Run) -> set[str]:
    """Predicates of the splitter and of every anchored rule."""
    texts = [rule.rule for search in run.findings.searches for rule in search.anchored]
    rules = [run.splitter.rule, *(Rule.parse(text) for text in texts if text)]
    return {text for rule in rules if rule is not None for text in rule.predicates}


def _parses(text: str, schema: dict[str, type]) -> bool:
    try:
        parse_predicate(text, schema)
    except PredicateRefused:
        return False
    return True


def _spelt(text: str, schema: dict[str, type]) -> str:
    """The canonical text, or the text itself when it is no predicate."""
    return parse_predicate(text, schema).text if _parses(text, schema) else text
