"""What several tools say of a unit, as short JSON and as facts: flips, examples, rule, controls."""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from mecharule_ops.certificates.certificate import (
    Certificate,
    ExampleRow,
    is_concealed,
    shown_rows,
)
from mecharule_ops.codec import encode
from mecharule_ops.facts.control_facts import claims_words, control_parts
from mecharule_ops.facts.fact import Fact, FactValue, fact
from mecharule_ops.facts.flips import of_these
from mecharule_ops.facts.rules import predicts
from mecharule_ops.facts.unit_rules import UnitRule, told_rule, told_words
from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.controls import AgonistControls
from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.plain_text import beginning, last_line, plain, what_differs
from mecharule_ops.rules.families import AnchoredRule
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import (
    check_direction,
    check_unit,
    findings_of,
    outcome_for,
    regime_for,
    regime_of,
)
from mecharule_ops.tasks.text import first_word
from mecharule_ops.types import FlipCount, FlipEstimate, Neuron, Regime, Share
from tools.arguments import DirectedArguments

_MOST = 40
"""Flipped examples listed."""
_EXAMPLES = 2
_ROOM = 600
"""Characters of flipped examples that are told."""
_FEW = 2
"""Flips of which it is worth saying what is written instead."""
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The unit that a tool is asked about, and the search that speaks about it."""

    findings: Findings
    neuron: Neuron
    search: SearchOutcome
    """Of the unit's basis, in the regime asked, else where it is strongest."""
    unit: Unit | None
    """None where no search localized it in that regime."""
    account: Account | None
    """When it flips, made by the run or asked for later."""

    @classmethod
    def of(cls, run: Run, given: DirectedArguments) -> Asked:
        """Raises `UsageError` for a unit that there is not or was not searched, `StoreError` for an unfinished run."""
        neuron, findings = Neuron.parse(given.neuron), findings_of(run)
        check_unit(run, neuron)
        search = outcome_for(findings, neuron, regime_of(given.regime))
        return cls(
            findings=findings,
            neuron=neuron,
            search=search,
            unit=findings.unit(neuron, search.regime),
            account=run.account(neuron, search.regime),
        )

    @property
    def regime(self) -> Regime:
        """The direction of its flips."""
        return self.search.regime

    @property
    def rule(self) -> AnchoredRule | None:
        """The rule that is anchored to it, by the run or since."""
        return next((rule for rule in self.search.anchored if rule.neuron == self.neuron), None)

    @property
    def told(self) -> UnitRule | None:
        """The one rule that is told of it."""
        return told_rule(self.account, self.rule)

    @property
    def told_words(self) -> str:
        """That rule in a sentence, or why there is none."""
        return told_words(self.account, self.rule, self.findings.run)


def direction(run: Run, asked: str | None) -> Regime:
    """The regime asked for, else the run's first. Raises `UsageError` where the run hides who flips that way."""
    regime = regime_of(asked) or run.regimes[0]
    check_direction(run.id, regime, hidden=run.config.suppress_only)
    return regime


def unit_and_regime(run: Run, name: str, asked: str | None) -> tuple[Neuron, Regime]:
    """A unit that there is, and the regime asked for, else the one in which it was found. Raises `UsageError`."""
    unit = Neuron.parse(name)
    check_unit(run, unit)
    return unit, regime_for(run, unit, asked)


def slices_data(certificate: Certificate) -> dict[str, dict[str, FactValue]]:
    """Flips of each slice with one-sided bounds at α/2, of a unit named beforehand and a random draw of examples."""
    return {
        total.slice: {"flips": total.flips, "n": total.n, "lower": total.lower, "upper": total.upper}
        for total in certificate.totals
    }


def slices_words(certificate: Certificate) -> str:
    """`28 of these 64 of D+ (44 %) and 3 of these 64 of D- (5 %)`; any other set of records by its name."""
    names = {"associated": "D+", "unrelated": "D-"}
    return " and ".join(
        of_these(FlipCount(flips=total.flips, n=total.n), names.get(total.slice, f"the {total.slice}"))
        for total in certificate.totals
    )


def _flipped_rows(certificate: Certificate, show_text: bool) -> list[ExampleRow]:
    """The flipped examples; their texts are left out where the task conceals them, unless asked for."""
    return [row for row in shown_rows(certificate, show_text) if row.flipped]


def example_data(row: ExampleRow) -> dict[str, FactValue]:
    """One example before and after."""
    texts = {
        "prompt": last_line(row.prompt),
        "before": plain(row.before.text),
        "after": plain(row.after.text),
    }
    return {"example": row.example, **texts, "flipped": row.flipped}


def rule_data(rule: AnchoredRule | None) -> dict[str, FactValue] | None:
    """A rule that held-out records bear out, with its score; None when there is none."""
    interval = predicts(rule)
    if rule is None or rule.held_out is None or interval is None:
        return None
    named = ("mcc", "lower", "upper", "n", "positives", "coverage")
    scores = interval.mcc, interval.low, interval.high, interval.n, interval.positives, rule.held_out.coverage
    return {
        "text": str(rule.rule),
        "prompt_only": rule.prompt_only,
        **{f"held_out_{name}": score for name, score in zip(named, scores, strict=True)},
        "p": rule.chance.p if rule.chance else None,
        "adjusted_p": rule.chance.adjusted if rule.chance else None,
    }


def controls_facts(
    controls: AgonistControls | None, main: FlipEstimate, tau: float, source: str, unit: Neuron
) -> Iterator[Fact]:
    """The two claims that controls decide, then what each control counted; that none ran."""
    key = f"unit.{unit}.controls"
    if controls is None:
        said = "No control was run beside it, so the claim stands alone"
        yield fact(said, source, unit=unit, key=f"{key}.claims")
        return
    claims, parts = claims_words(controls), control_parts(controls, main, tau)
    yield fact(f"Beside controls: {claims}", source, unit=unit, key=f"{key}.claims", value=claims)
    value: dict[str, FactValue] = {
        "flips": encoded(controls.flips),
        "random_units": _below(controls.basis) if controls.basis else None,
        "random_units_of_layer": _below(controls.layer) if controls.layer else None,
        "standing": encoded(controls.standing),
        "selective": controls.selective.value,
        "selective_p": controls.selective_p,
        "split": _counts(controls.split),
        "second_baseline": controls.second_baseline.value if controls.second_baseline else None,
        "second": _counts(controls.second),
        "depends_on_baseline": controls.depends_on_baseline(main, tau),
        "out_of_range": finite(controls.out_of_range.rate) if controls.out_of_range else None,
    }
    yield fact(f"Controls: {'; '.join(parts)}", source, unit=unit, key=f"{key}.counts", value=value)


def _counts(estimate: FlipEstimate | None) -> dict[str, FactValue] | None:
    parts = {} if estimate is None else encode(estimate)
    return {f"{side}_{name}": n for side, part in parts.items() for name, n in part.items()} or None


def _below(share: Share) -> dict[str, FactValue]:
    """Of the random units those that flip fewer records."""
    return {"count": share.n - share.count, "n": share.n}


def encoded(value: object) -> Any:
    """A dataclass as JSON; None for None."""
    return None if value is None else encode(value)


def finite(value: float) -> float | None:
    """None for NaN, which JSON has not."""
    return value if value == value else None


def flips_fact(certificate: Certificate, key: str) -> Fact:
    """What the certified units flip."""
    names, alone = " and ".join(certificate.units), len(certificate.units) == 1
    said = f"Ablating {names} {'alone' if alone else 'together'} flips {slices_words(certificate)}"
    unit, value = names if alone else None, slices_data(certificate)
    return fact(said, f"c:{certificate.id}", unit=unit, key=f"{key}.flips", value=value)


def flipped_fact(certificate: Certificate, show_text: bool) -> Fact:
    """The first few flipped examples, and how many more there are."""
    asked, rows = asked_of(certificate, show_text), _flipped_rows(certificate, show_text)
    said = [f"{asked[row]} {change_words(row)}" for row in rows]
    count = max(1, min(_MOST, bisect(list(accumulate(map(len, said))), _ROOM)))
    more = f" … {len(said) - count} more" if len(said) > count else ""
    told = f"Flipped: {' · '.join(said[:count]) or 'none'}{more}"
    return fact(told, f"c:{certificate.id}", value=[example_data(row) for row in rows])


def instead_fact(certificate: Certificate) -> Fact | None:
    """How many flipped answers begin with a word of their prompt, or with one word, more than before; None for few."""
    rows = [] if is_concealed(certificate.task) else _flipped_rows(certificate, True)
    asked = asked_of(certificate, True)
    before = [first_word(row.before.text) for row in rows]
    first = [first_word(row.after.text) for row in rows]
    held, copied = (
        sum(word in _WORDS.findall(asked[row].lower()) for word, row in zip(words, rows, strict=True) if word)
        for words in (before, first)
    )
    word, often = Counter(filter(None, first)).most_common(1)[0] if any(first) else ("", 0)
    least = max(_FEW, len(rows) / 4)
    own = (
        f"in {copied} of the {len(rows)} flips what it writes begins with a word of the prompt itself (before "
        f"in {held})"
    )
    one = f"most often with {word!r} ({often}×)"
    said = [own] * (copied - held >= least) + [one] * (often - before.count(word) >= least)
    value: FactValue = {
        "copied": copied,
        "copied_before": held,
        "word": word,
        "often": often,
        "flips": len(rows),
    }
    return fact(f"Instead, {', '.join(said)}", f"c:{certificate.id}", value=value) if said else None


def asked_of(certificate: Certificate, show_text: bool) -> dict[ExampleRow, str]:
    """The question of each row as it stands before its answer, what all have in common left out."""
    rows = shown_rows(certificate, show_text)
    return dict(zip(rows, what_differs([row.prompt for row in rows]), strict=True))


def example_fact(certificate: Certificate, show_text: bool) -> Fact:
    """Two flipped answers before and after, and one that the ablation leaves alone, which is its value."""
    rows = shown_rows(certificate, show_text)
    asked = asked_of(certificate, show_text)
    flipped = [f"{asked[row]} {change_words(row)}" for row in rows if row.flipped][:_EXAMPLES]
    spared = next((row for row in rows if row.before.text == row.after.text), None)
    said = " · ".join(flipped) or "No answer flips"
    if spared is not None:
        said += f" (unharmed: {asked[spared]} {beginning(spared.before.text)})"
    return fact(said, f"c:{certificate.id}", value=example_data(spared) if spared else None)


def change_words(row: ExampleRow) -> str:
    """`214 → 241`, each to its first full stop where that tells them apart."""
    before, after = beginning(row.before.text), beginning(row.after.text)
    if before == after:
        before, after = plain(row.before.text), plain(row.after.text)
    return f"{before} → {after}"


def flips_of(first: Certificate, second: Certificate) -> tuple[set[int], set[int], int]:
    """(examples that each flips, of those that both were tested on; how many these are)."""
    tested = set(first.example_ids) & set(second.example_ids)
    left, right = ({row.example for row in one.rows if row.flipped} & tested for one in (first, second))
    return left, right, len(tested)
