"""A person's claims: entered before their test, decided once on held-out records, together where they are of a unit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundled_run import Ask, opened

from mecharule_ops.errors import UsageError
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.interval import difference
from mecharule_ops.run.tabulating import Part, drawn, fires
from mecharule_ops.types import Neuron
from tools.registry import ToolResult

WHERE = "digit(expected, 0) == 1"


def _entered(ask: Ask, unit: str, predicate: str, **more: object) -> dict[str, object]:
    told = ask("register", neuron=unit, where=predicate, **more)
    entered: Any = told.facts[0].value
    looked = told.as_json.get(f"claim.{entered['claim']}.looked_at_before_by")
    return {**entered, "looked_at_before_by": looked}


def _held_out(path: Path, unit: str, rule: str) -> tuple[np.ndarray, np.ndarray]:
    """(whether it flips each held-out record, where the rule holds)."""
    with opened(path, read_only=True) as run:
        (regime,) = run.regimes
        places = drawn(run, regime, Part.HELD_OUT)
        return run.flips([(Neuron.parse(unit),)], places, regime)[0], fires(run, Rule.parse(rule))[places]


def _verdicts(told: ToolResult) -> list[Any]:
    return [one.value for one in told.facts if one.key.endswith(".verdict")]


def test_a_claim_is_registered_then_decided_with_its_counts(copied_run: Path, ask: Ask, unit: str) -> None:
    """Entered twice it is one claim. The counts are those of the held-out flips."""
    first = _entered(ask, unit, WHERE)
    assert (first["state"], first["rule"]) == ("open", WHERE)
    assert _entered(ask, unit, WHERE)["claim"] == first["claim"]
    told = ask("decide", claims=first["claim"])
    (decided,) = _verdicts(told)
    flips, holds = _held_out(copied_run, unit, WHERE)
    counts = [flips[holds].sum(), holds.sum(), flips[~holds].sum(), (~holds).sum()]
    assert decided["outcome"]["counts"] == counts
    assert decided["state"] in ("supported", "refuted", "undecided")
    assert f"{counts[0]} of {counts[1]} held-out records" in told.text
    with pytest.raises(UsageError, match="holds on some record"):
        ask("register", neuron=unit, where="a > 999")
    assert "so far, by decide" in told.text


def test_compound_claims_are_entered_in_canonical_spelling(ask: Ask, unit: str) -> None:
    """Nested ones too; one that does not read is refused alone."""
    rules = {
        "(a>50)and(b<30)": "a > 50 and b < 30",
        "not(a>b or(op=='-' and b<30))": "holds(not (a > b or (op == '-' and b < 30)))",
    }
    for text, rule in rules.items():
        assert _entered(ask, unit, text)["rule"] == rule
    with pytest.raises(UsageError, match="expected"):
        _entered(ask, unit, "a > 50 and (b")
    told = ask("score", predicates="; ".join([*rules, "a > 50 and (b"]))
    assert told.exit_code == 2
    assert (told.text.count("Of success, "), told.text.count(" is refused: ")) == (2, 1)


def test_what_was_decided_stands_whatever_the_threshold(copied_run: Path, ask: Ask, unit: str) -> None:
    """A second claim of the same with another threshold is the first."""
    first = _entered(ask, unit, "op == '-'")
    before = _verdicts(ask("decide", claims=first["claim"]))
    again = _entered(ask, unit, "op == '-'", threshold=0.5)
    assert again["claim"] == first["claim"]
    assert _verdicts(ask("decide", claims=again["claim"])) == before


def test_claims_that_are_decided_together_share_the_error(copied_run: Path, ask: Ask, unit: str) -> None:
    """Of one unit alone; a price is said first."""
    ids = [str(_entered(ask, unit, text)["claim"]) for text in ("a > 50", "b > 50")]
    assert "price" in ask("decide", claims=",".join(ids), estimate=True).as_json
    assert len(_verdicts(ask("decide", claims=",".join(ids)))) == 2
    with opened(copied_run, read_only=True) as run:
        other = str(run.findings.units()[1].neuron)
    third = str(_entered(ask, other, "a > 50")["claim"])
    with pytest.raises(UsageError, match="of one unit and direction"):
        ask("decide", claims=f"{ids[0]},{third}")
    with pytest.raises(UsageError, match="expected a hypothesis of the ledger"):
        ask("decide", claims="00000000")


def test_a_claim_that_is_chosen_pays_for_those_left_open(copied_run: Path, ask: Ask, unit: str) -> None:
    """Looking at many and deciding one is no way around the correction: p is that of all that are open."""
    texts = ("a > 50", "b > 50", "a > 100", "b > 100", "op == '-'")
    ids = [str(_entered(ask, unit, text)["claim"]) for text in texts]
    (chosen,) = _verdicts(ask("decide", claims=ids[-1]))
    flips, holds = _held_out(copied_run, unit, "op == '-'")
    p = difference(holds, flips, 0.05).p
    assert chosen["outcome"]["p"] == pytest.approx(min(1.0, len(texts) * p * 2))


def test_claims_entered_after_a_verdict_pay_for_those_decided_before(
    copied_run: Path, ask: Ask, unit: str
) -> None:
    """One after another is no way around the correction either."""
    ps = []
    for place, text in enumerate(("a > 50", "b > 50", "op == '-'"), 1):
        (decided,) = _verdicts(ask("decide", claims=str(_entered(ask, unit, text)["claim"])))
        flips, holds = _held_out(copied_run, unit, text)
        ps.append((decided["outcome"]["p"], min(1.0, 2 * place * difference(holds, flips, 0.05).p)))
    assert [told for told, _ in ps] == pytest.approx([p for _, p in ps])


@pytest.mark.parametrize(
    "given", [{"where": "op == '-'"}, {"among": "a > 50", "where": "op == '-'"}, {"by": "op"}]
)
def test_a_condition_looked_at_as_a_column_or_among_some_is_said_to_be(
    ask: Ask, unit: str, given: dict[str, str]
) -> None:
    ask("tabulate", units=unit, records="held-out", **given)
    told = _entered(ask, unit, "op == '-'")
    assert told["looked_at_before_by"] == ["tabulate"]
    ask("decide", claims=str(told["claim"]))
    assert _entered(ask, unit, "op == '-'")["looked_at_before_by"] == ["tabulate"]


def test_why_tells_what_was_registered_and_shown_of_how_many(copied_run: Path, ask: Ask, unit: str) -> None:
    """With the counts of the ledger, in the order of registration, the open one too; nothing where none was shown."""
    assert not [key for key in ask("why", neuron=unit).as_json if key.startswith("claim.")]
    claims = [str(_entered(ask, unit, text)["claim"]) for text in (WHERE, "a % 7 == 3", "digit(a, 2) == 1")]
    ask("decide", claims=",".join(claims[:2]))
    answer, every = ask("why", neuron=unit), ask("why", neuron=unit, full=True).as_json
    states = [every[f"claim.{claim}.verdict"]["state"] for claim in claims]
    assert states[2] == "open"
    verdicts = _verdicts(ask("decide", claims=",".join(claims[:2])))
    shown = [one for one in verdicts if one["state"] == "supported"]
    assert [one["state"] for one in verdicts] == states[:2]
    for one in shown:
        flips, n, other, all_ = one["outcome"]["counts"]
        assert f"flips {flips} of {n} held-out records; elsewhere {other} of {all_}: supp" in answer.text
    said = f"Of 3 registered predictions of when it flips: {len(shown)} supported"
    assert (said in answer.text) == bool(shown)
