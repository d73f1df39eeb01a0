"""Certificates: the id covers every field, the arithmetic is checked, a second run is compared by example."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forgeries import forgeries, leaves, put
from made_certificates import certificate_of, completion_of, row_of

from mecharule_ops import codec, errors
from mecharule_ops.certificates.bundles import read_bundle, write_bundle
from mecharule_ops.certificates.certificate import Certificate, CertifiedScore, ExampleRow
from mecharule_ops.certificates.verification import (
    VerificationStatus,
    compare_rows,
    inconsistencies,
    totals_of,
    verify,
)
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.types import FlipCount, FlipEstimate


def test_a_certificate_round_trips_with_its_id() -> None:
    """The text reads back equal, with the same id, twelve hex digits of its hash."""
    certificate = certificate_of()
    again = Certificate.from_json(certificate.to_json())
    assert (again, again.id, certificate.id) == (certificate, certificate.id, certificate.sha256[:12])
    assert certificate.example_ids == tuple(range(8))
    assert inconsistencies(certificate) == ()
    older = replace(certificate)  # As a version wrote it that named no device.
    vars(older)["content"] = {name: value for name, value in certificate.content.items() if name != "device"}
    read = Certificate.from_json(older.to_json())
    assert (read, read.to_json()) == (certificate, older.to_json())


def test_tampering_with_any_field_is_detected() -> None:
    """Each value at each depth is changed in several ways; only the untouched text is accepted."""
    certificate = certificate_of(rows=(row_of(1, "associated", True),))
    certificate = replace(certificate, given={"m1.2": certificate.intervention})
    document = json.loads(certificate.to_json())
    places = [path for path in leaves(document) if path]
    tried = 0
    for path in places:
        value = document
        for key in path:
            value = value[key]
        for forged in forgeries(value):
            with pytest.raises(errors.ClaimNotSupported):
                Certificate.from_json(json.dumps(put(document, path, forged)))
            tried += 1
    fields = {path[1] for path in places if path[0] == "certificate" and len(path) > 1}
    assert fields == set(codec.encode(certificate))
    assert tried > 100
    assert Certificate.from_json(json.dumps(document)) == certificate


def test_the_id_does_not_depend_on_how_equal_content_is_held() -> None:
    """NumPy scalars, key order and −0.0 give the id of the plain values; 1 and 1.0 differ in a task."""
    plain = certificate_of(task={"a": 1, "b": 2}, alpha=0.5)
    assert certificate_of(task={"b": 2, "a": 1}, alpha=np.float64(0.5)).id == plain.id
    zero, negative = (
        certificate_of(rows=(replace(row_of(1, "s", False), after=completion_of((1, 1), True, margin)),))
        for margin in (0.0, -0.0)
    )
    assert zero.id == negative.id
    assert certificate_of(task={"a": 1}).id != certificate_of(task={"a": 1.0}).id


def test_malformed_texts_are_claims_without_support() -> None:
    """Broken JSON, other JSON and extra fields beside the certificate have one named error."""
    for text in (
        "{",
        "[" * 100_000,
        "[]",
        "{}",
        json.dumps({**json.loads(certificate_of().to_json()), "note": 1}),
        '{"certificate": 1, "sha256": ""}',
    ):
        with pytest.raises(errors.ClaimNotSupported):
            Certificate.from_json(text)


def test_totals_by_hand_and_by_the_paper_estimate() -> None:
    """2 of 4 and 0 of 4 flips; the larger upper bound is the Û_E of the search at the same α."""
    associated, unrelated = certificate_of().totals
    assert (associated.slice, associated.flips, associated.n) == ("associated", 2, 4)
    assert (unrelated.slice, unrelated.flips, unrelated.n, unrelated.lower) == ("unrelated", 0, 4, 0.0)
    assert unrelated.upper == pytest.approx(1 - 0.025 ** (1 / 4))
    estimate = FlipEstimate(associated=FlipCount(flips=2, n=4), unrelated=FlipCount(flips=0, n=4))
    assert max(associated.upper, unrelated.upper) == estimate.ucb(0.025)
    assert max(associated.lower, unrelated.lower) == estimate.lcb(0.05)


def _forged_totals(**changes: Any) -> Certificate:
    certificate = certificate_of()
    return replace(certificate, totals=(replace(certificate.totals[0], **changes), certificate.totals[1]))


def _forged_row(**changes: Any) -> Certificate:
    certificate = certificate_of()
    rows = (replace(certificate.rows[0], **changes), *certificate.rows[1:])
    return replace(certificate, rows=rows, totals=totals_of(rows, 0.05))


@pytest.mark.parametrize(
    ("forged", "sentence"),
    [
        (_forged_totals(flips=3), "associated: 3/4 flips stated, the rows have 2/4"),
        (_forged_totals(n=5), "2/5 flips stated"),
        (_forged_totals(lower=0.3), "the bounds are not those of 2/4"),
        (_forged_totals(upper=float("nan")), "the bounds are not those of 2/4"),
        (_forged_totals(slice="other"), "not of the slices"),
        (certificate_of(alpha=0.01), "the bounds are not those"),
        (certificate_of(alpha=0.0), "alpha 0.0 is not between"),
        (certificate_of(regime=0), "its label before is not the regime's"),
        (certificate_of(regime=2), "neither 0 nor 1"),
        (certificate_of(kind="guess"), "kind 'guess'"),
        (certificate_of(units=()), "there are no units"),
        (certificate_of(units=("m4.1234", "m4.1234")), "a unit is named twice"),
        (replace(certificate_of(), rows=(), totals=()), "there are no rows"),
        (certificate_of(rows=(row_of(1, "s", True), row_of(1, "s", True))), "appears twice"),
        (certificate_of(rows=(row_of(1, "s", True), row_of(2, "s", True, "m4.1234"))), "others one"),
        (certificate_of(rows=(row_of(1, "s", True, "m4.9"),)), "m4.9 is not among the units"),
        (_forged_row(after=completion_of((1, 0), False)), "the same completion has two labels"),
        (
            certificate_of(
                rows=(row_of(1, "s", True, "m4.1234"), replace(row_of(1, "s", True, "m4.2"), prompt="other")),
                units=("m4.1234", "m4.2"),
            ),
            "two prompts",
        ),
        (
            certificate_of(
                rule=CertifiedScore(text="r", scope="full", mcc=1.5, coverage=0.1, n=1, positives=1)
            ),
            "score is out of range",
        ),
    ],
)
def test_a_forgery_with_a_fresh_id_is_caught_by_its_own_rows(forged: Certificate, sentence: str) -> None:
    """The hash is right, as a forger would make it; the rows contradict the statement."""
    assert Certificate.from_json(forged.to_json()).id == forged.id
    assert sentence in "; ".join(inconsistencies(forged))
    checked = verify(forged, lambda certificate: certificate.rows)
    assert checked.status is VerificationStatus.DIFFERS
    assert sentence in checked.sentence


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_changed_token_or_label_differs(side: str) -> None:
    """Either completion, by its tokens or its label, names its example; rewording a prompt does too."""
    certificate = certificate_of()
    for change in ({"tokens": (9, 9)}, {"label": getattr(certificate.rows[5], side).label is False}):
        rows = list(certificate.rows)
        rows[5] = replace(rows[5], **{side: replace(getattr(rows[5], side), **change)})
        checked = compare_rows(certificate, rows)
        assert (checked.status, checked.differing) == (VerificationStatus.DIFFERS, (5,))
        assert checked.sentence == "differs: 1 of 8 examples differ (examples 5)"
    reworded = [replace(row, prompt=row.prompt + " ") for row in certificate.rows]
    assert compare_rows(certificate, reworded).differing == tuple(range(8))


def test_a_near_tie_is_named_apart_from_a_difference() -> None:
    """A difference where one run led by under the margin and the other hardly more is a near tie.

    A clear lead on both is not, nor one that the certificate alone says was none: whoever made it up could.
    """
    rows, stated = list(certificate_of().rows), list(certificate_of().rows)
    for example, told, margin in ((4, 0.0, 2.5), (5, 2e-3, 5e-4), (6, 2e-3, 2e-3)):
        stated[example] = replace(rows[example], after=replace(rows[example].after, margin=told))
        rows[example] = replace(rows[example], after=completion_of((9,), True, margin))
    certificate = replace(certificate_of(), rows=tuple(stated))
    checked = compare_rows(certificate, rows)
    assert checked.differing == (4, 6)
    assert "1 more differ at a near tie (examples 5)" in checked.sentence
    assert compare_rows(certificate, rows, tie_margin=1e-2).differing == (4,)
    assert compare_rows(certificate, rows, tie_margin=1e-5).differing == (4, 5, 6)
    unmeasured = [replace(row, after=completion_of((9,), True, float("nan"))) for row in certificate.rows]
    assert compare_rows(certificate, unmeasured).differing == tuple(range(8))


def test_a_near_tie_at_the_token_before_any_ablation_explains_both_sides() -> None:
    """In `decode` both completions begin with the unablated model's token, which no margin `after` counts."""
    certificate = certificate_of()
    rows = list(certificate.rows)

    def begun(example: int, margin: float, after: int = 8, before: int = 8) -> None:
        row = rows[example]
        first = replace(row.before, tokens=(before, *row.before.tokens[1:]), margin=margin)
        rows[example] = replace(row, before=first, after=completion_of((after, 9), row.after.label, 2.0))

    begun(4, 5e-4)
    begun(5, 2e-3)
    begun(6, 5e-4, after=7)
    begun(7, 5e-4, before=certificate.rows[7].before.tokens[0])
    again = [replace(row, after=replace(row.after, margin=2.0)) for row in rows]
    stated = replace(certificate, rows=tuple(_begins_alike(row) for row in certificate.rows))
    checked = compare_rows(stated, again)
    assert checked.differing == (5, 6, 7)
    assert "1 more differ at a near tie (examples 4)" in checked.sentence
    elsewhere = replace(stated, intervention=replace(stated.intervention, phase="whole"))
    assert compare_rows(elsewhere, again).differing == (4, 5, 6, 7)


def _begins_alike(row: ExampleRow) -> ExampleRow:
    """The row with the first token of `before`, which led by little, on both sides."""
    after = replace(row.after, tokens=(row.before.tokens[0], *row.after.tokens[1:]))
    return replace(row, before=replace(row.before, margin=2e-3), after=after)


def test_what_cannot_be_re_run_says_why() -> None:
    """A model out of reach and a result that lacks examples are neither a match nor a mismatch."""

    def unreachable(_: Certificate) -> tuple[ExampleRow, ...]:
        raise errors.ModelUnavailable("expected model smollm2-135m, it is not on this machine")

    certificate = certificate_of()
    assert verify(certificate, unreachable).sentence.startswith("cannot verify: expected model smollm2-135m")
    partial = compare_rows(certificate, certificate.rows[:1])
    assert partial.status is VerificationStatus.CANNOT
    assert (
        partial.sentence
        == "cannot verify: the second run has no result for examples 1, 2, 3, 4, 5 and 2 more"
    )


def test_the_store_finds_certificates_by_prefix_and_detects_edits(tmp_path: Path) -> None:
    """Stored twice is stored once; a unique prefix finds it; an edit inside the file is refused."""
    first, second = certificate_of(), certificate_of(seed=8)
    with RunStore.create(tmp_path / "r.mecharule", {}) as store:
        assert [store.put_certificate(each) for each in (first, first, second)] == [True, False, True]
        assert store.certificates() == (first, second)
        assert store.certificate(first.id[:6]) == first
        assert store.certificate(second.sha256) == second
        store._connection.execute("UPDATE certificate SET body = replace(body, 'arith-tiny', 'gpt-j')")
        with pytest.raises(errors.ClaimNotSupported, match="changed"):
            store.certificate(first.id)
        store._connection.execute("UPDATE certificate SET body = substr(body, 2)")
        with pytest.raises(
            errors.StoreError, match=f"certificate {first.sha256} of .*; restore it from a copy"
        ):
            store.certificate(first.id)


def test_a_bundle_reads_back_and_every_change_of_it_is_found(tmp_path: Path) -> None:
    """All certificates return by id; an edited, added or missing file and a broken index are refused."""
    certificates = (certificate_of(), certificate_of(seed=8))
    folder = write_bundle(tmp_path / "bundle", certificates)
    assert read_bundle(folder) == tuple(sorted(certificates, key=lambda certificate: certificate.id))
    whole = {path: path.read_text() for path in folder.iterdir()}
    one, index = folder / f"{certificates[0].id}.json", folder / "index.json"
    other = certificate_of(seed=9).to_json()
    index.write_text(json.dumps({"certificates": dict.fromkeys([each.id for each in certificates], "")}))
    assert len(read_bundle(folder)) == 2  # As earlier versions wrote the index.
    for path, text in (
        *((one, text) for text in (other, whole[one][:-40], "")),
        *(
            (index, text)
            for text in ('[[1], "../../etc/hostname"]', "[]", "{", "{}", '{"certificates": [[]]}', "5")
        ),
    ):
        path.write_text(text)
        with pytest.raises(errors.ClaimNotSupported):
            read_bundle(folder)
        path.write_text(whole[path])
    for path in (index, one):
        path.write_bytes(b"\xff\xfe")
        with pytest.raises(errors.ClaimNotSupported, match="expected ASCII text"):
            read_bundle(folder)
        path.write_text(whole[path])
    (folder / "extra.json").write_text(other)
    with pytest.raises(errors.ClaimNotSupported, match="extra"):
        read_bundle(folder)
    (folder / "extra.json").unlink()
    one.unlink()
    with pytest.raises(errors.ClaimNotSupported, match=certificates[0].id):
        read_bundle(folder)
    one.mkdir()
    with pytest.raises(errors.StoreError, match=certificates[0].id):
        read_bundle(folder)


def test_a_bundle_needs_an_empty_folder_and_an_index(tmp_path: Path) -> None:
    """Nothing of an older bundle is mixed in; a folder that holds none is a named error."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(errors.UsageError, match="empty folder"):
        write_bundle(tmp_path, [certificate_of()])
    with pytest.raises(errors.StoreError, match="the system says"):
        write_bundle(tmp_path / "file", [certificate_of()])
    with pytest.raises(errors.StoreError, match=r"index\.json"):
        read_bundle(tmp_path)


def test_what_is_held_is_said_of_rows_and_totals() -> None:
    plain = certificate_of()
    rows = tuple(replace(row, held="a5.h1") for row in plain.rows)
    held = certificate_of(rows=rows, kind="mediation")
    assert held.to_json().count('"held": "a5.h1"') == len(rows) + len(held.totals)
    assert Certificate.from_json(held.to_json()) == held
    assert inconsistencies(held) == ()
    both = certificate_of(rows=(*plain.rows, *rows), kind="mediation")
    assert inconsistencies(both) == ()
    assert [(total.held, total.flips) for total in both.totals] == [
        (None, 2),
        (None, 0),
        ("a5.h1", 2),
        ("a5.h1", 0),
    ]


def test_another_device_is_named_and_a_difference_there_refutes_nothing() -> None:
    """A match stays one and says how it was compared; a difference cannot be told from rounding."""
    certificate = certificate_of()
    assert "made in" not in verify(certificate, lambda one: one.rows, numbers=certificate.numbers).sentence
    there = verify(certificate, lambda one: one.rows, numbers="float32 on cuda")
    assert there.status is VerificationStatus.MATCH
    assert there.sentence.endswith(
        "(made in float32 on cpu, run again in float32 on cuda, so not an exact comparison)"
    )
    first, *others = certificate.rows
    turned = replace(first, after=replace(first.after, tokens=(*first.after.tokens, 1), margin=3.0))
    assert verify(certificate, lambda one: (turned, *others)).status is VerificationStatus.DIFFERS
    off = verify(certificate, lambda one: (turned, *others), numbers="float32 on cuda")
    assert off.status is VerificationStatus.CANNOT
    assert "made in float32 on cpu, run again in float32 on cuda, where it differs: 1 of" in off.sentence
