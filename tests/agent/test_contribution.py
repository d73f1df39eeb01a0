"""What a model's predicates came to in a run: counted, weighed against the rule without them, and said when nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from llm_scripted import Recorder, asker

from agent.proposing import contribution
from agent.proposing.contribution import contribution_of
from agent.proposing.model_proposer import LlmProposer
from agent.proposing.random_null import Chance, random_texts, size_of
from agent.refining.loop import Refined
from agent.verbs.refine import Tally, compared
from mecharule_ops.predicates.language import parse_predicate, schema_of
from mecharule_ops.predicates.proposer import OfflineProposer
from mecharule_ops.store.keys import PROPOSALS
from tools.registry import call


def _said(*accepted: str, refused: tuple[str, ...] = ()) -> dict[str, object]:
    return {
        "model": "openai/x",
        "accepted": list(accepted),
        "refused": [{"text": text, "reason": "refused"} for text in refused],
    }


def test_predicates_of_a_model_stand_beside_random_ones(
    copied_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of the run's own are taken for the model's; each figure has a draw for each of 20 beside it."""
    from bundled_run import opened

    monkeypatch.setattr(contribution, "UNITS", 1)
    with opened(copied_run) as run:
        seeds = set(run.task.seed_predicates())
        mine = [text for text in run.vocabulary["kept"] if text not in seeds][:3]
        run.store.put(PROPOSALS, _said(*mine, refused=("a +", "nosuch > 3")))
        made = contribution_of(run)
        assert (made.model.proposed, made.model.parsed, made.model.kept) == (5, 3, 3)
        assert (made.kept.measured, made.units) == (3, 1)
        assert [len(figure.draws) for figure in (made.kept, made.in_rules, made.gain)] == [20, 20, 20]
        assert all(0 <= count <= 3 for count in made.kept.draws)
        assert len(set(made.gain.draws)) > 1
        assert run.cost.group_evaluations == 0
    beside, worth = made.lines()[1:3]
    assert beside.startswith("Random predicates of the same grammar and size, 20 draws: ")
    assert worth.endswith(", no more than chance.") != made.gain.is_more
    shown = call("show", {"run": str(copied_run)})
    assert shown.text.endswith("\n".join(made.lines()))
    assert shown.data["language_model"]["units"] == 1  # type: ignore[index]


def test_a_copy_of_a_seed_predicate_is_not_the_models(copied_run: Path) -> None:
    """However it is spelt, and although it stands in rules; nothing else said is nothing added."""
    from bundled_run import opened

    with opened(copied_run) as run:
        seed = next(text for text in run.vocabulary["kept"] if text in set(run.task.seed_predicates()))
        run.store.put(PROPOSALS, _said(f"({seed})", seed))
        made = contribution_of(run)
    assert (made.model.proposed, made.model.kept, made.model.in_rules) == (0, 0, 0)
    assert "added nothing" in made.lines()[0]


def test_more_than_chance_is_said_only_of_what_lies_above_the_draws() -> None:
    """The interval of the difference is that of the draws; it can say either."""
    draws = tuple(step / 1000 for step in range(20))
    above, within = Chance(measured=0.05, draws=draws), Chance(measured=0.012, draws=draws)
    assert (above.is_more, within.is_more) == (True, False)
    assert above.worth == pytest.approx((0.0405, 0.031475, 0.049525))


def test_random_predicates_have_the_sizes_asked_for_and_are_new(copied_run: Path) -> None:
    """Distinct, in the language, none of the run's; another draw is another."""
    from bundled_run import opened

    with opened(copied_run, read_only=True) as run:
        known = set(run.vocabulary["kept"])
        texts = random_texts(run, [1, 1, 2, 3], known, (0, 1))
        assert [size_of(text) for text in texts] == [1, 1, 2, 3]
        assert len(set(texts) - known) == 4
        assert texts != random_texts(run, [1, 1, 2, 3], known, (0, 2))
        schema = schema_of(run.columns)
        assert all(parse_predicate(text, schema).text == text for text in texts)


def test_a_model_that_added_nothing_is_said_so(copied_run: Path) -> None:
    """Nothing of it is kept: the line says so, beside what the grammar proposed; without a model there is no line."""
    from bundled_run import opened

    before = call("show", {"run": str(copied_run)})
    assert "language_model" not in before.data
    with opened(copied_run) as run:
        run.store.put(PROPOSALS, _said(refused=("a +",)))
        made = contribution_of(run)
    first, second = made.lines()
    assert first == (
        "openai/x proposed 1 predicates: 0 parse, 0 pass the filters, 0 are in a rule; "
        "openai/x added nothing to this run."
    )
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
