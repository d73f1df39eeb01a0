"""The board: what is known so far, a sentence each with its numbers, its source and the rivals that it touches."""

from __future__ import annotations

from collections.abc import Sequence

from agent.investigating.investigation import AskedUnits, BoardFact, Rival
from mecharule_ops.mechanism.pairs import Interaction
from mecharule_ops.saying.claims import counts_words


def of_looking(
    board: Sequence[BoardFact], run: str, asked: AskedUnits, flips: int, n: int
) -> list[BoardFact]:
    """How often the unit flips train records."""
    sentence = f"{asked['units'][0]} flips {flips:,} of {n:,} train records"
    return _with(board, sentence, [flips, n], f"run:{run}", [])


def too_rare(board: Sequence[BoardFact], run: str, asked: AskedUnits, flips: int, n: int) -> list[BoardFact]:
    """That its flips do not say when."""
    how = "few" if 2 * flips < n else "many"
    sentence = f"{flips:,} of {n:,} are too {how} to ask what the flips of {asked['units'][0]} go with"
    return _with(board, sentence, [flips, n], f"run:{run}", [])


def of_verdicts(board: Sequence[BoardFact], rivals: Sequence[Rival], run: str) -> list[BoardFact]:
    """The counts of each rival that was decided."""
    known = list(board)
    for rival in rivals:
        if rival["held_out"]:
            values = [float(count) for count in rival["held_out"]]
            known = _with(known, counted(rival), values, f"h:{rival['hypothesis']}", [rival["id"]])
    return known


def counted(rival: Rival, *, of_less: bool = False) -> str:
    """`where a carry leaves the units, m1.37 flips 84 of 98 held-out records; elsewhere 8 of 24`.

    `of_less`: of a condition that is a contrary, where it flips less first.
    """
    first, n, other, all_ = rival["held_out"]
    if "+" not in rival["unit"]:
        if of_less and rival["less"]:
            return counts_words(
                rival["unit"], rival["less"], (*rival["held_out"][2:], *rival["held_out"][:2])
            )
        return counts_words(rival["unit"], rival["words"], rival["held_out"])
    one, two = rival["unit"].split("+")
    if rival["condition"] == Interaction.BACKUP.value:
        what = f"of {n:,} held-out records that neither {one} nor {two} flips, both together flip {first:,}"
    else:
        what = f"of {n:,} held-out records that {one} or {two} flips alone, both together leave {first:,}"
    return f"{what}; in all they flip {other:,} of {all_:,}"


def _with(
    board: Sequence[BoardFact], sentence: str, values: Sequence[float], source: str, rivals: list[str]
) -> list[BoardFact]:
    """One fact more; the same sentence is one fact."""
    if any(fact["sentence"] == sentence for fact in board):
        return list(board)
    fact = BoardFact(
        id=f"f{len(board) + 1}", sentence=sentence, value=list(values), source=source, rivals=rivals
    )
    return [*board, fact]
