"""How long a run still takes, all its stages together: by its settings, then by what it observes, finds and measures.

Each part takes between two bounds of seconds. What is known changes them; time that passes, and a part that ends, only
narrow what is left.
"""

import math
from dataclasses import dataclass

from mecharule_ops.events import Price, TimeLeft

Span = tuple[float, float]
UNKNOWN = math.nan, math.nan
FOUND = 0, 8
"""Units that a search keeps, while nobody knows."""
RANDOM = 99 * 64
"""Example-forwards of the random units beside which a search's units stand, once it found any."""
OF_A_UNIT = 13 * 64
"""Example-forwards of a unit's controls and certificate."""
RULE, ACCOUNT = 3, 12
"""Example-forwards that the rule and the account of a unit take, for each answer that its direction starts from."""
ROUGH = 0.5, 2.0
"""How far these counts may miss: learning takes no forward, and much is ablated on a part of the answers."""


@dataclass(slots=True)
class Forecast:
    """The answers, each search and what follows it, what explains the units of each search; and which is at work."""

    parts: list[Span]
    accounts: int = FOUND[1]
    """Of how many units of a search at most accounts are made."""
    at: int = 0
    began: float = 0.0
    """When the part at work began."""
    first: float = 0.0
    """When the first part began."""

    def begin(self, part: int, now: float) -> None:
        """Go on with a part."""
        self.at, self.began, self.first = part, now, self.first if part else now

    def priced(self, told: Price) -> None:
        """The search at work takes at most twice what first order predicts, if asked; its bound is remote."""
        likely = ROUGH[1] * told.likely_seconds or math.inf
        self.parts[self.at] = told.least_seconds, min(told.seconds, likely)

    def know(self, nth: int, starting: float, pace: float, found: Span = FOUND, told: Span = FOUND) -> None:
        """What follows a search of a direction that starts from so many answers, by the units found and explained."""
        kept = [(RANDOM + units * (OF_A_UNIT + RULE * starting)) * pace if units else 0.0 for units in found]
        why = [min(units, self.accounts) * ACCOUNT * starting * pace if units else 0.0 for units in told]
        self.parts[2 + 2 * nth] = ROUGH[0] * kept[0], ROUGH[1] * kept[1]
        most = ROUGH[1] * why[1] + self.parts[0][1] * (why[1] > 0)
        self.parts[1 + 2 * len(self.parts) // 3 + nth] = ROUGH[0] * why[0], most

    def left(self, now: float = 0.0) -> TimeLeft | None:
        """How long it still takes; None where a part is not known."""
        spent, (least, most) = now - self.began, self.parts[self.at]
        parts = [(least - spent, most - spent), *self.parts[self.at + 1 :]]
        least, most = (sum(max(part[end], 0.0) for part in parts) for end in (0, 1))
        return None if math.isnan(most) else TimeLeft(least=least, most=most, spent=now - self.first)
