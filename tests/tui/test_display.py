"""What a person sees of a run at work: the same sentences on every display, nothing on stdout."""

from __future__ import annotations

import io

import pytest
from events_told import run_started

from mecharule_ops.errors import UsageError
from mecharule_ops.events import (
    AgonistFound,
    CertificateWritten,
    CostChanged,
    Event,
    NodeAsked,
    Notice,
    Price,
    RuleAnchored,
    RunFinished,
    SearchFinished,
    SearchStarted,
    StageFinished,
    StageProgress,
    StageStarted,
)
from tui.display import LineDisplay, RichDisplay, make_display, narrate
from tui.words import clock

HOSTILE = "x == '\x1b[31m' and [red]\u202eop in [/,*]\nsecond line"


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def rule(
    mcc: float | None, text: str = "a > 9", adjusted_p: float | None = 0.01, failed: bool = False
) -> RuleAnchored:
    return RuleAnchored(
        regime=1,
        neuron="m4.7",
        rule=text,
        held_out_mcc=mcc,
        full_mcc=0.9,
        prompt_only=True,
        held_out_low=None if mcc is None else mcc - 0.1,
        adjusted_p=adjusted_p,
        failed=failed,
    )


STORY: tuple[tuple[float, Event], ...] = (
    (
        0,
        run_started(model="tiny", regimes=(1,)),
    ),
    (0, StageStarted(stage="behaviour", total=100)),
    (1, StageProgress(stage="behaviour", done=10, total=100)),
    (5, StageProgress(stage="behaviour", done=50, total=100)),
    (1, StageFinished(stage="behaviour", summary="80 of 100 answers right", seconds=7.0, reused=True)),
    (0, Price(evaluations=1840, example_forwards=235_520, seconds=370.0)),
    (0, SearchStarted(search="cha:1:m4", regime=1, layer=4, units=128)),
    (0, NodeAsked(search="cha:1:m4", node=0, size=16, associated=8, unrelated=8)),
    (6, CostChanged(group_evaluations=1204, example_forwards=9000, reused=3)),
    (
        0,
        AgonistFound(
            search="cha:1:m4",
            regime=1,
            neuron="m4.7",
            strength=0.44,
            ucb=0.57,
            signed_selectivity=0.1,
            is_tau_agonist=True,
        ),
    ),
    (0, SearchFinished(search="cha:1:m4", status="…", queries=9, example_forwards=90, localized=1)),
    (0, rule(0.78)),
    (0, rule(0.3)),
    (0, rule(None)),
    (0, CertificateWritten(certificate="7f3a", claim="ablating m4.7 flips 28/64")),
    (0, Notice(text="both slices are large enough")),
    (0, Notice(text="the replacement lies outside", level="warning")),
    (0, RunFinished(run="0c1f", status="finished: 1 τ-agonists")),
)
LINES = [
    "run 0c1f: arithmetic on tiny, mlp_out, mean-positional, decode, τ 0.2, ε 0.2, α 0.05, n 64 a slice",
    "behaviour 50/100 · 0:06 · ~0:06 left in this stage",
    "behaviour: 80 of 100 answers right (from the run file)",
    "price: at most 1,840 group ablations (235,520 example-forwards), about 6:10 at most",
    "behaviour 50/100 · 1,204 ablations (3 reused) · 0:13 · ~0:13 left in this stage",
    "m4.7 reaches τ: flips 44% of a slice, UCB 0.57",
    "cha:1:m4: 1 localized with 9 group ablations",
    "rule m4.7: a > 9 (held-out MCC 0.78)",
    "certificate [c:7f3a] ablating m4.7 flips 28/64",
    "both slices are large enough",
    "warning: the replacement lies outside",
    "run 0c1f: finished: 1 τ-agonists",
]


def test_a_rule_is_told_once_and_only_after_the_correction_over_the_run() -> None:
    """When it is anchored nothing is decided; one that then fails is never told."""
    assert narrate(rule(0.9, adjusted_p=None)) is None
    assert narrate(rule(0.9, adjusted_p=0.01)) == "rule m4.7: a > 9 (held-out MCC 0.90)"
    assert narrate(rule(0.9, adjusted_p=0.5, failed=True)) is None


def told(display: LineDisplay, clock: Clock) -> None:
    for seconds, event in STORY:
        clock.now += seconds
        display.show(event)
    display.close()


def test_plain_prints_one_line_a_change() -> None:
    """Sentences at once; progress at most every five seconds, with cost and time left; low rules not at all."""
    clock, stream = Clock(), io.StringIO()
    told(LineDisplay(stream, "plain", clock), clock)
    assert stream.getvalue().splitlines() == LINES


def test_log_adds_the_seconds() -> None:
    """The same lines after the seconds since the start."""
    clock, stream = Clock(), io.StringIO()
    told(LineDisplay(stream, "log", clock), clock)
    lines = stream.getvalue().splitlines()
    assert [line[9:] for line in lines] == LINES
    assert [float(line[:8]) for line in lines] == [0.0, 6.0, 7.0, 7.0, *[13.0] * 8]


def test_none_is_silent() -> None:
    """Not a byte."""
    clock, stream = Clock(), io.StringIO()
    told(LineDisplay(stream, "none", clock), clock)
    assert stream.getvalue() == ""


def test_rich_says_the_same_sentences() -> None:
    """On a stream that is no terminal the sentences scroll, each once, without control sequences."""
    clock, stream = Clock(), io.StringIO()
    told(RichDisplay(stream), clock)
    text = " ".join(stream.getvalue().split())
    for line in LINES:
        if "left in this stage" not in line:
            assert text.count(line) == 1, line
    assert "\x1b" not in text


@pytest.mark.parametrize("name", ["plain", "log", "none", "rich"])
def test_nothing_reaches_stdout(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """stdout is data; narration goes to stderr, as it is when the display is made."""
    display = make_display(name)
    for _, event in STORY:
        display.show(event)
    display.close()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert ("0c1f" in captured.err) == (name != "none")


def test_the_display_fits_the_stream() -> None:
    """Without a name: rich on a terminal, plain elsewhere; an unknown name is refused."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    rich = make_display(None, Terminal())
    rich.close()
    assert isinstance(rich, RichDisplay)
    assert isinstance(make_display(None, io.StringIO()), LineDisplay)
    with pytest.raises(UsageError, match="expected a display of rich, plain, log, none, got 'loud'"):
        make_display("loud")


@pytest.mark.parametrize(
    "event",
    [
        rule(0.9, HOSTILE),
        Notice(text=HOSTILE),
        CertificateWritten(certificate="c", claim=HOSTILE),
        StageFinished(stage="s", summary=HOSTILE, seconds=0.0),
        RunFinished(run="r", status=HOSTILE),
    ],
)
def test_no_text_can_paint_the_terminal(event: Event) -> None:
    """Control sequences and line breaks of a rule or a claim are disarmed, markup is shown as it is written."""
    clock = Clock()
    for display, stream in ((LineDisplay, io.StringIO()), (RichDisplay, io.StringIO())):
        shown = display(stream, "plain", clock) if display is LineDisplay else display(stream)
        shown.show(event)
        shown.close()
        text = stream.getvalue()
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "[red]" in text
    assert "\n" not in str(narrate(event))


def test_time_left_is_known_once_something_is_done() -> None:
    """A quarter done in 10 s leaves 30 s; nothing is known at zero, without a total, or in a new stage."""
    clock = Clock()
    progress = LineDisplay(io.StringIO(), "none", clock)
    progress.show(StageStarted(stage="s", total=40))
    assert progress.left is None
    clock.now += 10
    progress.show(StageProgress(stage="s", done=10, total=40))
    assert progress.left == 30.0
    progress.show(StageProgress(stage="s", done=10))
    assert progress.left is None
    progress.show(StageStarted(stage="t", total=5))
    assert progress.left is None
    assert progress.line() == "t 0/5 · 0:10"


def test_clock() -> None:
    """Minutes and seconds, and hours where there are any."""
    assert [clock(seconds) for seconds in (0, 59.9, 60, 187, 3661)] == [
        "0:00",
        "0:59",
        "1:00",
        "3:07",
        "1:01:01",
    ]
