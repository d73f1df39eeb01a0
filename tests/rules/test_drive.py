"""Drive rules: found where the drive depends on the inputs, refused where shuffled drives do as well."""

from __future__ import annotations

import numpy as np
import pytest

from mecharule_ops.predicates.cuts import PredicateColumns
from mecharule_ops.rules.drive import SHUFFLES, DriveStatus, drive_rule

TRAIN, TEST = np.arange(500), np.arange(500, 800)
RNG = np.random.default_rng(0)
MATRIX = RNG.random((800, 15)) < 0.4
TABLE = PredicateColumns(texts=tuple(f"p{index} > 0" for index in range(15)), matrix=MATRIX)
NOISE = RNG.normal(size=800)


def test_what_the_drive_depends_on_is_named() -> None:
    """A drive that rises with one predicate; the threshold is the upper third of train, by hand a quantile."""
    drive = NOISE + 3.0 * MATRIX[:, 4]
    found = drive_rule(drive, TABLE, TRAIN, TEST, 0)
    assert (found.status, found.rule) == (DriveStatus.SHOWN, "p4 > 0")
    assert found.threshold == pytest.approx(np.quantile(drive[TRAIN], 2 / 3))
    assert found.held_out is not None
    assert found.held_out.mcc > max(found.control)
    assert len(found.control) == SHUFFLES


def test_a_drive_that_no_column_tells_is_not_shown() -> None:
    """Noise alone: either no rule, or one that is no better than its control."""
    found = drive_rule(NOISE, TABLE, TRAIN, TEST, 0)
    assert found.rule is None
    assert found.status in (DriveStatus.NO_BETTER, DriveStatus.NO_RULE)


def test_held_out_drives_choose_nothing() -> None:
    """Reversing them leaves threshold and rule as they were."""
    drive = NOISE + 3.0 * MATRIX[:, 4]
    turned = drive.copy()
    turned[TEST] = -turned[TEST]
    one, other = (drive_rule(each, TABLE, TRAIN, TEST, 0) for each in (drive, turned))
    assert (one.learned, one.threshold) == (other.learned, other.threshold)
    assert other.rule is None


def test_no_drive_and_too_few_records_have_a_status() -> None:
    """All equal, all missing, a handful held out; a missing drive is never high."""
    assert drive_rule(np.zeros(800), TABLE, TRAIN, TEST, 0).status is DriveStatus.CONSTANT
    assert drive_rule(np.full(800, np.nan), TABLE, TRAIN, TEST, 0).status is DriveStatus.CONSTANT
    drive = NOISE + 3.0 * MATRIX[:, 4]
    assert drive_rule(drive, TABLE, TRAIN, TEST[:15], 0).status is DriveStatus.TOO_FEW_HELD_OUT
    drive[:50] = np.nan
    assert drive_rule(drive, TABLE, TRAIN, TEST, 0).rule == "p4 > 0"
