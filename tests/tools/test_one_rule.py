"""One rule is told of a unit everywhere, and no push is named that is next to none."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from mecharule_ops import errors, numbers, types
from mecharule_ops.facts import rules, unit_facts
from mecharule_ops.facts.run_setting import settings
from mecharule_ops.mechanism.links import TokenPush
from mecharule_ops.rules.families import Family
from mecharule_ops.run.opening import findings_of, opened
from tools.registry import call


def test_why_and_flip_tell_the_same_rule(copied_run: Path, unit: str) -> None:
    """The account's over the prompt, in all that `why` says of it; once it said another one, with another MCC."""
    with opened(str(copied_run)) as run:
        known = findings_of(run).units()[0]
    asked, anchored = known.account.family(Family.INPUT), known.rule
    assert asked.rule not in (None, anchored.rule)
    given = {"run": str(copied_run), "neuron": unit}
    why = call("why", {**given, "full": True})
    flip = call("flip", {**given, "prompt": "120 - 7 ="})
    told: Any = why.as_json
    assert told[f"unit.{unit}.rule"]["rule"] == told[f"unit.{unit}.rule.disguise"]["rule"] == str(asked.rule)
    rule: Any = flip.as_json[f"unit.{unit}.flip.rule"]
    assert rule is None or rule["text"] == " or ".join(map(str, rules.told_where(known.account, known.rule)))
    for text in (call("why", given).text, flip.text):
        assert str(anchored.rule) not in text
    assert why.text.count("– input rule") + why.text.count("– rule over") == 1


def test_conditions_are_counted_of_a_drive_that_is_told_alone(
    copied_run: Path, unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for told, count in (("drive AUC .78", 2), (rules.OPEN, 0)):
        monkeypatch.setattr(rules, "when_in_short", lambda account, told=told: told)
        found = call("why", {"run": str(copied_run), "neuron": unit, "full": True}).as_json
        assert sum(f"unit.{unit}.{name}" in found for name in ("where", "finer")) == count


@pytest.mark.parametrize("phase", [None, types.Phase.WHOLE])
def test_the_phase_that_is_told_is_the_one_in_which_units_are_set(
    copied_run: Path, monkeypatch: pytest.MonkeyPatch, phase: types.Phase | None
) -> None:
    """It was the task's own, also under `--phase whole`."""
    with opened(str(copied_run)) as run:
        monkeypatch.setattr(run, "config", run.config.model_copy(update={"phase": phase}))
        (told,) = [value for key, value, *_ in settings(run, findings_of(run)) if key == "settings.phase"]
        assert told == str(run.config.intervention(types.Basis.MLP_OUT, run.task.phase).phase)


@pytest.mark.parametrize("made", [("explain", {"parts": "drive"}), ("anchor", {})], ids=lambda made: made[0])
def test_a_rule_that_is_made_later_is_told_everywhere(copied_run: Path, made: tuple[str, Any]) -> None:
    """By `why`, in the table, on the page and in `flip`: `why` had a new one where all others kept the old."""
    name, asked = made
    with opened(str(copied_run)) as run:
        before = findings_of(run)
        unit = next(one.neuron for one in before.units() if one.account is None and one.rule is None)
    given = {"run": str(copied_run), "neuron": str(unit)}
    call(name, {**given, **asked, "yes": True})
    with opened(str(copied_run)) as run:
        after = findings_of(run)
    known = after.unit(unit, types.Regime.BASELINE_POSITIVE)
    chances = [rule.chance.rules for rule in after.searches[0].rules if rule.chance]
    told = rules.told_rule(known.account, known.rule)
    assert rules.when_told(known.account, known.rule, known.neuron, "b00d") in call("why", given).text
    rows = call("show", {"run": str(copied_run), "table": "rules", "limit": 500}).as_json["rows"]
    (row,) = (row for row in rows if (row["unit"], row["family"]) == (str(unit), told.family))
    assert (row["learned"] or row["absent"]) == str(told.rule or told.absent)
    assert max(chances) > min(chances), "corrected together with those that were there before"
    assert f"corrected for {min(chances)}, later ones for {max(chances)}" in rules.shown_of_all(after)


def test_tokens_that_hardly_move_are_not_named(copied_run: Path, unit: str) -> None:
    """Pushes of .04 and .01 logits were named as what a unit writes; the threshold is said."""
    with opened(str(copied_run)) as run:
        chain = findings_of(run).units()[0].chain
    first = chain.writes.groups[0]
    small, large = unit_facts.NAMED_FROM / 2, unit_facts.NAMED_FROM * 2
    pushes = (TokenPush(token="7", push=large), TokenPush(token="8", push=small))
    moved = dataclasses.replace(first, answer=dataclasses.replace(first.answer, raised=pushes, lowered=()))
    writes = dataclasses.replace(chain.writes, groups=(moved, *chain.writes.groups[1:]))
    said = unit_facts.writes_words(dataclasses.replace(chain, writes=writes))
    assert "raises '7' (0.1 logits or more)" in said
    assert "'8'" not in said


def test_a_comparison_is_printed_with_the_digits_that_make_it_true() -> None:
    """`0.200 < τ = 0.2` was not."""
    rates = (0.1998, 0.195, 0.2, 0.04, 0.20004)
    assert [numbers.told_apart(rate, 0.2) for rate in rates] == ["0.1998", "0.195", "0.20", "0.04", "0.20004"]
    assert numbers.told_apart(0.19999999999999998, 0.2) == "just below 0.2"
    assert [numbers.told_apart(0.3612, 0.2, way) for way in (-1, 0, 1)] == ["0.36", "0.36", "0.37"]
    assert {numbers.told_apart(place / 100, 1.0, way) for place in (5, 6, 7, 10) for way in (-1, 1)} == {
        *("0.05", "0.06", "0.07", "0.10")
    }


@pytest.mark.parametrize(
    ("tool", "wrong", "said"),
    [
        *(("explain", each, "expected a unit of 2 layers of") for each in ("m9.0", "a77.h0", "n0.99999")),
        *(("why-not", "m0.128", "128"), ("why-not", "a0.h0", "mlp_out"), ("why-not", "x1", "a unit such as")),
    ],
)
def test_a_wrong_unit_is_told_before_anything_is_loaded(
    copied_run: Path, tool: str, wrong: str, said: str
) -> None:
    """Of a basis that was searched, and of one that was not: from the sizes alone, with the units that there are."""
    with pytest.raises(errors.UsageError, match=said):
        call(tool, {"run": str(copied_run), "neuron": wrong})


def test_a_refuted_prediction_stands_in_the_answer(copied_run: Path) -> None:
    """With what was needed; of a unit with nothing above it is arithmetic, and nothing is claimed."""
    with opened(str(copied_run)) as run:
        account = findings_of(run).units()[0].account
    assert account.nothing_above
    assert unit_facts.registered_words(account) == ""
    above = dataclasses.replace(account, nothing_above=False)
    assert "is supported: MCC" in unit_facts.registered_words(above)
    score: Any = above.first_order
    held_out = dataclasses.replace(score.held_out, mcc=0.5, low=0.3, high=0.6)
    weak = dataclasses.replace(above, predictions=(dataclasses.replace(score, held_out=held_out),))
    told = {fact.key: fact.sentence for fact in unit_facts.comparison_facts(weak, "b00d")}
    assert told[f"unit.{account.neuron}.comparison.registered"].endswith(
        "is refuted: MCC .50 [.30, .60] on the 147 held-out answers of its account, .70 was registered"
    )
