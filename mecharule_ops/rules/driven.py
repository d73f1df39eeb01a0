"""Where a unit's drive is high, as a value; `drive` finds it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from mecharule_ops.rules.interval import MccInterval
from mecharule_ops.types import ChanceTest


class DriveStatus(StrEnum):
    """What became of a drive rule; the value is the sentence a person reads."""

    SHOWN = "the rule says where the drive is high, better than every rule learned from shuffled drives"
    NO_BETTER = "no rule says where the drive is high better than rules learned from shuffled drives"
    NOT_APART = "over all learned rules of the run none for where the drive is high is told apart from chance"
    NO_RULE = "no rule for where the drive is high was found"
    CONSTANT = "the drive is the same on all train records, or there is none"
    TOO_FEW_HELD_OUT = (
        "one side of the drive has too few held-out records for an interval, so no rule is shown"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveRule:
    """Where one unit's drive is high."""

    status: DriveStatus
    threshold: float | None = None
    """The drive is high from here on; in logits."""
    learned: str | None = None
    """What train chose, whether or not it may be shown."""
    held_out: MccInterval | None = None
    """Of that rule, scored once."""
    chance: ChanceTest | None = None
    """Of that rule on the same records; None without a rule and in runs that did not keep it."""
    control: tuple[float, ...] = ()
    """Held-out MCC of the rules learned from shuffled targets; 0.0 where none was."""
    words: str = ""
    """What train chose in the words of the task; empty without a rule, and in runs that did not keep it."""

    def decided(self, chance: ChanceTest | None) -> DriveRule:
        """The same with its test corrected over the run."""
        status = self.status
        if chance is not None and status in (DriveStatus.SHOWN, DriveStatus.NOT_APART):
            status = DriveStatus.NOT_APART if chance.failed else DriveStatus.SHOWN
        return replace(self, chance=chance, status=status)

    @property
    def rule(self) -> str | None:
        """The rule to show; None unless the status is SHOWN."""
        return self.learned if self.status is DriveStatus.SHOWN else None
