"""What may be cited: the numbers, counts, units and texts of certificates, of a run's findings, of tool results.

Quantities are read off the sources' own JSON, so a new field needs no code here. Each keeps the unit it is
about and what it is a number of, where the source says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agent.answering.claims import ARROW, UNIT, claims_of
from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.codec import encode
from mecharule_ops.findings.as_json import to_json
from mecharule_ops.findings.chain_counts import mediation_of, pairs_of
from mecharule_ops.findings.records import Findings
from mecharule_ops.types import Regime

GROUPS: Mapping[str, re.Pattern[str]] = {
    "associated": re.compile(r"(?i)\bassociated\b|\bD[+⁺]"),
    "unrelated": re.compile(r"(?i)\bunrelated\b|\bD[-⁻−](?!\w)"),
    "mcc": re.compile(r"(?i)\bmcc\b|matthews"),
    "upper": re.compile(r"(?i)\bucb\b|\bupper\b"),
    "lower": re.compile(r"(?i)\blcb\b|\blower\b"),
    "random": re.compile(r"(?i)(?<!at )\brandom\b"),
}
"""What a number can be of, and the words that say so; `drawn at random` says it of nothing."""
_SLICES = frozenset({"associated", "unrelated"})
"""A printed line that names one of them is of it."""
_COUNTS = ("flips", "count", "k")
_UNCITED = ("tree", "answers", "choices")
"""Parts of a report that no sentence can cite: anonymous groups, earlier answers, explanations of settings."""
_SHORTEST_ID = 4
_SHORTEST_QUOTE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number of a source; a count when `of` is given."""

    value: float
    of: float | None = None
    whole: bool = False
    """An integer: it matches itself only, never by rounding."""
    groups: frozenset[str] = frozenset()
    unit: str | None = None
    """The unit it is about; None when it is about the whole source or the source does not say."""


@dataclass(slots=True, kw_only=True)
class Source:
    """Everything that one citation can stand for."""

    id: str
    """Such as `c:7f3a0c1b22d4` or `run:0c1f`."""
    quantities: list[Quantity] = field(default_factory=list)
    units: set[str] = field(default_factory=set)
    arrows: set[str] = field(default_factory=set)
    """Directions of a flip, `1→0` or `0→1`."""
    texts: set[str] = field(default_factory=set)
    """Rules, prompts, completions, claims: what may be quoted, without white space."""
    replies: dict[str, set[str]] = field(default_factory=dict)
    """Completions before and after, by question without white space: numbers only beside their question."""

    def quote(self, text: str) -> None:
        """Lets a text be quoted, and its units be named."""
        self.units.update(UNIT.findall(text))
        self.arrows.update(ARROW.findall(text))
        squeezed = "".join(text.split())
        if len(squeezed) >= _SHORTEST_QUOTE and not squeezed.isdigit():
            self.texts.add(squeezed)

    def read_text(self, text: str) -> None:
        """Takes the numbers of a sentence or table that a tool printed, line by line."""
        for line in text.splitlines():
            units = set(UNIT.findall(line))
            self.units |= units
            self.arrows.update(ARROW.findall(line))
            unit = next(iter(units)) if len(units) == 1 else None
            of = _groups((line,)) & _SLICES
            groups = of if len(of) == 1 else frozenset[str]()
            self.quantities.extend(replace(one, groups=groups) for one in _printed(line, unit))

    def read_json(self, value: Any, path: tuple[str, ...] = (), unit: str | None = None) -> None:
        """Takes every number, count and text of a JSON value."""
        if isinstance(value, dict):
            unit = next((str(value[key]) for key in ("neuron", "unit") if value.get(key)), unit)
            self.quantities.extend(_derived(value, path, unit))
            for key, item in value.items():
                if key not in _UNCITED:
                    self.read_json(item, (*path, str(key)), unit)
        elif isinstance(value, list | tuple):
            for item in value:
                self.read_json(item, path, unit)
        elif isinstance(value, str):
            self.quote(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self.quantities.append(_quantity(value, path, unit))


@dataclass(slots=True)
class Evidence:
    """Every source that an answer may cite."""

    sources: dict[str, Source] = field(default_factory=dict)

    def at(self, id: str) -> Source:
        """The source of this whole id, new when there was none."""
        return self.sources.setdefault(id, Source(id=id))

    def find(self, cited: str) -> Source | None:
        """The one source whose id begins so, from four digits on; None for a forged or ambiguous id."""
        kind, _, digits = cited.partition(":")
        if len(digits) < _SHORTEST_ID:
            return None
        found = [source for id, source in self.sources.items() if id.startswith(f"{kind}:{digits}")]
        return found[0] if len(found) == 1 else None

    def knows_unit(self, unit: str) -> bool:
        """Whether any source names the unit."""
        return any(unit in source.units for source in self.sources.values())

    def add_certificates(self, certificates: Iterable[Certificate]) -> None:
        """Each certificate under its own id."""
        for certificate in certificates:
            _read_certificate(self.at(f"c:{certificate.id}"), certificate)

    def add_findings(self, findings: Findings) -> None:
        """A run's report under `run:ID`."""
        source = self.at(f"run:{findings.run}")
        source.read_json(json.loads(to_json(findings)))
        source.arrows.update(search.regime.arrow for search in findings.searches)

    def add_result(self, run: str, data: Mapping[str, object], text: str) -> None:
        """What a tool returned about a run, under `run:ID`."""
        source = self.at(f"run:{run}")
        source.read_json(data)
        source.read_text(text)


def _read_certificate(source: Source, certificate: Certificate) -> None:
    body = encode(certificate)
    rows = body.pop("rows")
    totals = body.pop("totals")
    source.read_json(body)
    source.units.update(certificate.units)
    source.arrows.add(Regime(certificate.regime).arrow)
    source.quantities.append(Quantity(value=float(len(rows)), whole=True))
    source.quantities.append(Quantity(value=float(len(certificate.example_ids)), whole=True))
    _read_chain(source, certificate)
    # What happens with others held, or to several units at once, is no flip rate of one unit.
    totals = [total for total in totals if not total.get("held") and "+" not in (total["unit"] or "")]
    for total in totals:
        unit = total["unit"] or (certificate.units[0] if len(certificate.units) == 1 else None)
        source.read_json(
            {key: total[key] for key in ("flips", "n", "lower", "upper")}, (total["slice"],), unit
        )
    for unit in {total["unit"] for total in totals}:
        of_unit = {total["slice"]: total for total in totals if total["unit"] == unit}
        about = unit or (certificate.units[0] if len(certificate.units) == 1 else None)
        source.quantities.extend(_derived(of_unit, (), about))
    for row in rows:
        question = "".join(row["prompt"].rsplit("\n", 1)[-1].split())
        said = (row[side]["text"].strip() for side in ("before", "after"))
        source.replies.setdefault(question, set()).update(said)
        for quote in _row_quotes(row):
            source.quote(quote)


def _read_chain(source: Source, certificate: Certificate) -> None:
    """The counts that a certificate of mediation or of pairs implies."""
    unit = certificate.units[0]
    if certificate.kind == "mediation":
        source.read_json(encode(mediation_of(certificate)), unit=unit)
    if certificate.kind == "pairs":
        for pair in pairs_of(certificate):
            source.read_json(encode(pair), unit=unit)
            counts = (pair.alone, pair.other_alone, pair.both, pair.either, pair.together)
            source.quantities.extend(Quantity(value=float(k), of=float(pair.n), whole=True) for k in counts)


def _row_quotes(row: Mapping[str, Any]) -> Iterator[str]:
    """How an example may be quoted: whole, its question alone, with what came before and after."""
    before, after = row["before"]["text"].strip(), row["after"]["text"].strip()
    question = row["prompt"].rsplit("\n", 1)[-1]
    yield from (row["prompt"], question, f"{before}→{after}", f"example {row['example']}")
    yield from (f"{question}{before}", f"{question}{after}", f"{question}{before}→{after}")
    yield from (f"{question}→{before}→{after}", f"{question}→{before}", f"{question}→{after}")


def _quantity(value: float, path: tuple[str, ...], unit: str | None) -> Quantity:
    return Quantity(value=float(value), whole=isinstance(value, int), groups=_groups(path), unit=unit)


def _groups(path: tuple[str, ...]) -> frozenset[str]:
    words = " ".join(path).replace("_", " ")
    return frozenset(name for name, pattern in GROUPS.items() if pattern.search(words))


def _derived(value: Mapping[str, Any], path: tuple[str, ...], unit: str | None) -> Iterator[Quantity]:
    """Counts with their rates; strength and signed selectivity of a pair of slices."""
    groups = _groups(path)
    k = next((value[key] for key in _COUNTS if isinstance(value.get(key), int)), None)
    n = value.get("n")
    if k is not None and isinstance(n, int):
        yield Quantity(value=float(k), of=float(n), whole=True, groups=groups, unit=unit)
        if n:
            yield Quantity(value=k / n, groups=groups, unit=unit)
    rates = [_rate(value.get(name)) for name in ("associated", "unrelated")]
    if None not in rates:
        plus, minus = (rate or 0.0 for rate in rates)
        yield Quantity(value=max(plus, minus), groups=groups, unit=unit)
        yield Quantity(value=plus - minus, groups=groups, unit=unit)
        yield Quantity(value=abs(plus - minus), groups=groups, unit=unit)


def _rate(value: Any) -> float | None:
    if not isinstance(value, dict) or not isinstance(value.get("flips"), int) or not value.get("n"):
        return None
    return float(value["flips"]) / float(value["n"])


def _printed(line: str, unit: str | None) -> Iterator[Quantity]:
    """The numbers of a printed line; a printed percentage is the share it stands for."""
    for claim in claims_of(line):
        if claim.kind == "count":
            yield Quantity(value=claim.value, of=claim.of, whole=True, unit=unit)
            yield Quantity(value=claim.value, whole=True, unit=unit)
            yield Quantity(value=claim.of, whole=True, unit=unit)
        elif claim.kind == "number":
            share = claim.value / 100 if claim.percent else claim.value
            yield Quantity(value=share, whole=not claim.percent and claim.decimals == 0, unit=unit)
