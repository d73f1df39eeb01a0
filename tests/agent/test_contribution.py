"""What a model's predicates came to in a run: counted, weighed against the rule without them, and said when nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from llm_scripted import Recorder, asker

from agent.proposing.contribution import contribution_of
from agent.proposing.model_proposer import LlmProposer
from agent.refining.loop import Refined, case_of
from agent.refining.refinement_nodes import held_out_score
from agent.refining.suggesting import learned_on
from agent.verbs.refine import Tally, compared
from mecharule_ops.predicates.proposer import OfflineProposer
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.store.keys import PROPOSALS
from tools.registry import call


def _said(*accepted: str, refused: tuple[str, ...] = ()) -> dict[str, object]:
    return {
        "model": "openai/x",
        "accepted": list(accepted),
        "refused": [{"text": text, "reason": "refused"} for text in refused],
    }


def test_predicates_in_a_rule_are_weighed_against_the_rule_without_them(copied_run: Path) -> None:
    """Each predicate of an anchored rule is taken for the model's: the gain is what its absence costs held out."""
    from bundled_run import opened

    with opened(copied_run) as run:
        kept = set(run.vocabulary["kept"])
        search, anchored, texts = next(
            (search, rule, texts)
            for search in run.findings.searches
            for rule in search.anchored
            if rule.rule and rule.held_out and (texts := Rule.parse(rule.rule).predicates & kept)
        )
        text = sorted(texts)[0]
        run.store.put(PROPOSALS, _said(text, refused=("a +", "nosuch > 3")))
        made = contribution_of(run)
        assert (made.model.proposed, made.model.parsed, made.model.kept, made.model.in_rules) == (3, 1, 1, 1)
        named = [
            rule
            for one in run.findings.searches
            for rule in one.anchored
            if rule.rule and text in Rule.parse(rule.rule).predicates
        ]
        assert made.units == len(named) >= 1
        case = case_of(run, search, anchored, without={text})
        assert text not in case.vocabulary
        if made.units == 1:
            rule = learned_on(case, (), run.config.seed).rule
            alone = 0.0 if rule is None else held_out_score(case, str(rule)).mcc
            assert anchored.held_out is not None
            assert made.gain == pytest.approx(anchored.held_out.mcc - alone)
        assert run.cost.group_evaluations == 0
    assert "anchored rules predict held-out flips better than without, by" in made.lines()[0]
    shown = call("show", {"run": str(copied_run)})
    assert shown.text.endswith("\n".join(made.lines()))
    assert shown.data["language_model"]["units"] == made.units  # type: ignore[index]


def test_a_model_that_added_nothing_is_said_so(copied_run: Path) -> None:
    """Nothing of it in a rule: the line says so, beside what the grammar proposed; without a model there is no line."""
    from bundled_run import opened

    before = call("show", {"run": str(copied_run)})
    assert "language_model" not in before.data
    with opened(copied_run) as run:
        run.store.put(PROPOSALS, _said(refused=("a +",)))
        made = contribution_of(run)
    assert (made.units, made.gain) == (0, 0.0)
    first, second = made.lines()
    assert first.startswith(
        "openai/x proposed 1 predicates: 0 parse, 0 pass the filters, 0 are in a rule; openai/x added"
    )
    assert "added nothing to any anchored rule of this run" in first
    assert second.startswith("the offline grammar proposed ")
    assert made.offline.proposed >= made.offline.kept > 0


def test_a_model_proposes_beside_the_grammar_and_takes_nothing_away(tmp_path: Path) -> None:
    """The grammar's texts come first, whatever the model says, and the model is shown them as known."""
    from test_graph import _context

    alone = OfflineProposer(limit=5).propose(_context())
    for reply in ({"json": {"predicates": ["a +", "carry_at(a, b, 0)"]}}, {"fault": "key"}):
        model = Recorder(tmp_path, reply)
        proposer = LlmProposer(asker(model), task="sums", rounds=1, seed=3, beside=OfflineProposer(limit=5))
        proposed = proposer.propose(_context())
        assert proposed[: len(alone)] == alone
        assert alone[0] in model.sent[0]


@pytest.mark.parametrize(
    ("model", "offline", "said"),
    [
        ((2, 1, 0, 1, 0, 0), (9, 9, 2, 3, 0, 1), "m added nothing"),
        ((2, 1, 1, 1, 0, 1), (9, 9, 2, 3, 0, 1), "m found no more than the offline grammar finds"),
        ((2, 1, 1, 1, 1, 1), (9, 9, 2, 3, 0, 1), "m found what the offline grammar did not"),
    ],
)
def test_what_a_model_added_to_a_refinement_is_one_of_three_sentences(
    monkeypatch: pytest.MonkeyPatch, model: tuple[int, ...], offline: tuple[int, ...], said: str
) -> None:
    """Nothing, no more than the grammar, or more; the figures of both stand above it."""
    names = ("predicates", "accepted", "in_rules", "hypotheses", "stand", "raised")
    tallies = iter(
        Tally(proposer=who, **dict(zip(names, figures, strict=True)))
        for who, figures in (("m", model), ("offline", offline))
    )
    monkeypatch.setattr("agent.verbs.refine.tally", lambda refined: next(tallies))
    nothing = Refined(proposer="m", reports=(), anchored=0, before=0, after=0)
    lines = compared(nothing, nothing)
    assert lines[-1].startswith(said)
    assert "9 predicates, 9 pass the filters, 2 are in a rule; 3 hypotheses" in lines[2]
