"""What a language model's predicates came to in a run, in numbers, beside the offline grammar's in the same run.

The grammar proposes first and the model adds, so a predicate that fires like one of the grammar's is refused as a
double: what is counted here is what the model alone brought. Held-out records are looked at to say what it was worth,
after everything was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from agent.refining.loop import case_of
from agent.refining.refinement_nodes import held_out_score
from agent.refining.suggesting import learned_on
from mecharule_ops.predicates.language import parse_predicate, schema_of
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.run.live_run import Run
from mecharule_ops.store.keys import CONTRIBUTION, PROPOSALS


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
    """A model beside the offline grammar."""

    model: Proposed
    offline: Proposed
    units: int
    """Units whose anchored rule names a predicate of the model."""
    raised: int
    """Of them, those whose rule predicts held-out flips better than the rule learned without the model's predicates."""
    gain: float
    """Mean difference of the held-out MCC over those units; 0.0 without any."""

    def lines(self) -> list[str]:
        """What the report says."""
        worth = (
            f"with them {self.raised} of {self.units} anchored rules predict held-out flips better than without, by "
            f"{self.gain:+.3f} MCC in the mean"
        )
        added = (
            worth if self.units else f"{self.model.proposer} added nothing to any anchored rule of this run"
        )
        return [f"{self.model}; {added}.", f"{self.offline}."]


def contribution_of(run: Run) -> Contribution:
    """Counted from the run's records; kept in the run file. Costs one rule for every unit that `units` counts."""
    stored = run.store.get(PROPOSALS)
    said = [*stored["accepted"], *(entry["text"] for entry in stored["refused"])]
    vocabulary, schema = run.vocabulary, schema_of(run.columns)
    texts = [*vocabulary["kept"], *(refusal["text"] for refusal in vocabulary["refusals"])]
    seeds = {_spelt(text, schema) for text in run.task.seed_predicates()}
    models = {_spelt(text, schema) for text in said}
    grammar = {_spelt(text, schema) for text in texts} - seeds - models
    kept, named = set(vocabulary["kept"]), _named(run)
    gains = [] if not models & named else list(_gains(run, models))
    made = Contribution(
        model=_counted(str(stored["model"]), models, schema, kept, named),
        offline=_counted("the offline grammar", grammar, schema, kept, named),
        units=len(gains),
        raised=sum(gain > 0 for gain in gains),
        gain=sum(gains) / len(gains) if gains else 0.0,
    )
    run.store.put(CONTRIBUTION, {**asdict(made), "lines": made.lines()})
    return made


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


def _gains(run: Run, models: set[str]) -> Sequence[float]:
    """Held-out MCC with the model's predicates less that without, of the units whose rule names one."""
    gains = []
    for search in run.findings.searches:
        for anchored in search.anchored:
            if search.suppressed or not anchored.rule or anchored.held_out is None:
                continue
            if not models & Rule.parse(anchored.rule).predicates:
                continue
            case = case_of(run, search, anchored, without=models)
            learned = learned_on(case, (), run.config.seed)
            alone = 0.0 if learned.rule is None else held_out_score(case, str(learned.rule)).mcc
            gains.append(anchored.held_out.mcc - alone)
    return gains


def _parses(text: str, schema: dict[str, type]) -> bool:
    try:
        parse_predicate(text, schema)
    except PredicateRefused:
        return False
    return True


def _spelt(text: str, schema: dict[str, type]) -> str:
    """The canonical text, or the text itself when it is no predicate."""
    return parse_predicate(text, schema).text if _parses(text, schema) else text
