"""Who suggests what might explain a unit's flips: a language model, or offline the fixed grammar.

Both see the train part of D_b and nothing else, and both only suggest: predicates are judged and a hypothesis is
tested by the nodes of the refinement loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from agent.llm.protocol import OnText, Request, unheard
from agent.llm.retrying import Asker
from agent.proposing import showing
from agent.proposing.power import held_back
from agent.refining.refinement_state import Idea, Refinement, Tried, UnitCase
from mecharule_ops.errors import BudgetSpent, DegenerateBehaviour, StoreError
from mecharule_ops.predicates.cuts import PredicateColumns
from mecharule_ops.predicates.language import evaluate, parse_predicate, schema_of, vocabulary
from mecharule_ops.predicates.proposer import OfflineProposer, ProposalContext
from mecharule_ops.predicates.table import PredicateTable, Refusal, build_table, is_one_sided
from mecharule_ops.rules.algebra import lookup_in, mcc
from mecharule_ops.rules.ruleshap import LearnedRule, learn_rule
from mecharule_ops.run.refinement import LEAST, known_scores

PROMPT = "refine_unit"


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmSuggester:
    """A language model, shown contrasting train records, the vocabulary with scores and the refusals."""

    asker: Asker
    seed: int
    examples: int = 8
    """Flipped and unflipped records that it is shown a round, each."""
    on_text: OnText = unheard

    @property
    def name(self) -> str:
        return self.asker.model.name

    def suggest(self, case: UnitCase, tried: Tried) -> Refinement:
        """Costs one request, retries aside."""
        return cast(Refinement, self.asker.ask(self._request(case, tried), self.on_text).parsed)

    def _request(self, case: UnitCase, tried: Tried) -> Request:
        table, _ = table_of(case, tried.accepted)
        flipped, unflipped = showing.contrast(
            case.flips, case.train, self.examples, (self.seed, tried.rounds)
        )
        learned = learned_on(case, tried.accepted, self.seed)
        validated = validated_mcc(case, tried.accepted, self.seed)
        fit = (
            ""
            if learned.train is None
            else f"MCC {learned.train.mcc:.3f} on train, {validated:.3f} on unseen"
        )
        rule = f"{learned.rule}  ({fit} train records)" if fit else "(none)"
        filled = {
            "unit": case.unit,
            "direction": case.arrow,
            "columns": showing.columns(schema_of(case.columns), case.prompt_columns, case.meanings),
            "language": vocabulary(),
            "rule": rule,
            "vocabulary": showing.vocabulary(table),
            "refusals": showing.refusals(tried.refused),
            "dropped": showing.refusals(tried.dropped),
            "flipped": showing.records(case.columns, flipped),
            "unflipped": showing.records(case.columns, unflipped),
        }
        return Request.of(PROMPT, filled, schema=Refinement, purpose=f"refinement of {case.unit}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSuggester:
    """What was said in an earlier refinement, said again word for word; no model is asked."""

    name: str
    """Of who said it."""
    said: Mapping[str, Sequence[Mapping[str, object]]]
    """Suggestions in order, by unit and direction."""

    def suggest(self, case: UnitCase, tried: Tried) -> Refinement:
        """The stored words of the round. Raises `StoreError` where there are none."""
        words = self.said.get(f"{case.unit} {case.arrow}", ())
        if tried.rounds >= len(words):
            raise StoreError(f"nothing more was said about {case.unit}")
        return Refinement.model_validate(words[tried.rounds])


@dataclass(slots=True, kw_only=True)
class OfflineSuggester:
    """The next best predicates of the offline grammar by their train score against the unit's flips."""

    most_suggestions: int | None = None
    """Rounds in all, over every unit; None for no limit."""
    limit: int = 12
    """Predicates a round."""
    made: int = 0
    """Rounds suggested."""

    name = "offline"

    def suggest(self, case: UnitCase, tried: Tried) -> Refinement:
        """No request and no model; its hypothesis is the single predicate that fits the train flips best."""
        if self.most_suggestions is not None and self.made >= self.most_suggestions:
            raise BudgetSpent(f"the budget is spent: {self.made} rounds; what was found is kept")
        self.made += 1
        flips = case.flips[case.train]
        if min(np.count_nonzero(flips), np.count_nonzero(~flips)) < LEAST:
            return Refinement(predicates=[], hypothesis=None)
        table = vocabulary_of(case, tried.accepted).on(case.train)
        context = ProposalContext(
            columns={name: column[case.train] for name, column in case.columns.items()},
            labels=flips,
            schema=schema_of(case.columns),
            prompt_columns=case.prompt_columns,
            known=known_scores(table.texts, table.matrix, flips),
            refusals=tuple(Refusal(text=row["text"], reason=row["reason"]) for row in tried.refused),
        )
        fresh = OfflineProposer(limit=self.limit).propose(context)
        return Refinement(predicates=list(fresh), hypothesis=_best(case, [*tried.accepted, *fresh]))


def _best(case: UnitCase, texts: Sequence[str]) -> Idea | None:
    """The predicate of largest train MCC against the flips, as a hypothesis."""
    table = vocabulary_of(case, texts).on(case.train)
    if not table.texts:
        return None
    fits = [mcc(column, case.flips[case.train]) for column in table.matrix.T]
    best = table.texts[int(np.argmax(fits))]
    return Idea(statement=f"{case.unit} flips exactly where {best}.", condition=best, refuted_by="")


def table_of(case: UnitCase, accepted: Sequence[str]) -> tuple[PredicateTable, tuple[Refusal, ...]]:
    """The unit's vocabulary with accepted predicates, scored on train, and who was refused.

    Raises `DegenerateBehaviour` where all train records flip, or none.
    """
    if is_one_sided(flipped := case.flips[case.train]):
        raise DegenerateBehaviour(
            f"expected some train records to flip, got {flipped.sum()} of {len(flipped)}"
        )
    return build_table(
        (*case.vocabulary, *accepted),
        case.columns,
        case.flips,
        case.train,
        prompt_columns=case.prompt_columns,
    )


def vocabulary_of(case: UnitCase, accepted: Sequence[str]) -> PredicateColumns:
    """What the unit's rule is learned over, on D_b: what anchoring had, and what was accepted."""
    schema = schema_of(case.columns)
    texts = list(dict.fromkeys([*case.vocabulary, *accepted]))
    fires = [evaluate(parse_predicate(text, schema), case.columns) for text in texts]
    matrix = np.column_stack(fires) if fires else np.zeros((len(case.flips), 0), bool)
    return PredicateColumns(texts=tuple(texts), matrix=matrix)


def learned_on(case: UnitCase, accepted: Sequence[str], seed: int) -> LearnedRule:
    """The rule of the unit's train flips, learned as anchoring does; with nothing accepted it is anchoring's."""
    table = vocabulary_of(case, accepted)
    return learn_rule(table.on(case.train), case.flips[case.train], seed=seed)


def validated_mcc(case: UnitCase, accepted: Sequence[str], seed: int) -> float:
    """How such a rule predicts train flips that it did not see: learned on a part of train, scored on the rest.

    It says whether a unit has a good rule, and when to stop, without a look at the held-out records. 0.0 without a
    rule. Slightly high, since the vocabulary was chosen on all of train.
    """
    table, flips = vocabulary_of(case, accepted).on(case.train), case.flips[case.train]
    back = held_back(flips, seed)
    learned = learn_rule(table.on(~back), flips[~back], seed=seed)
    if learned.rule is None:
        return 0.0
    return mcc(learned.rule.fires(lookup_in(table.matrix[back], table.texts)), flips[back])
