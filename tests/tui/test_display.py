"""What a person sees of a run at work, and of agents on it: the same sentences on every display, nothing on stdout."""

import io

import pytest
from events_told import run_started

from mecharule_ops import errors, events, nodes
from mecharule_ops.events import Event, LlmMessage, Notice, RuleAnchored
from tui.display import LineDisplay, RichDisplay, make_display
from tui.session import narrate, narrated

HOSTILE = "x == '\x1b[31m' and [red]\u202eop in [/,*]\nsecond line"


def rule(
    mcc: float | None, text: str = "a > 9", adjusted_p: float | None = 0.01, failed: bool = False
) -> RuleAnchored:
    scores = {"held_out_mcc": mcc, "held_out_low": None if mcc is None else mcc - 0.1, "full_mcc": 0.9}
    of_unit = {"regime": 1, "neuron": "m4.7", "prompt_only": True}
    return RuleAnchored(rule=text, adjusted_p=adjusted_p, failed=failed, **of_unit, **scores)


_COUNTED = {"strength": 0.44, "ucb": 0.57, "signed_selectivity": 0.1, "is_tau_agonist": True}
FOUND = events.AgonistFound(search="cha:1:m4", regime=1, neuron="m4.7", **_COUNTED)
STORY: tuple[tuple[float, Event], ...] = (
    (0, run_started(model="tiny", regimes=(1,))),
    (0, events.StageStarted(stage="behaviour", total=100)),
    (1, events.StageProgress(stage="behaviour", done=10, total=100)),
    (5, events.StageProgress(stage="behaviour", done=50, total=100)),
    (1, events.StageFinished(stage="behaviour", summary="80 of 100 answers right", seconds=7.0, reused=True)),
    (0, events.Price(evaluations=1840, example_forwards=235_520, seconds=370.0)),
    (0, events.TimeLeft(least=130.0, most=290.0, spent=7.0)),
    (0, events.SearchStarted(search="cha:1:m4", units=128)),
    (0, events.NodeAsked(search="cha:1:m4", node=nodes.Node(id=0, layer=4, channels=(7,)))),
    (6, events.CostChanged(group_evaluations=1204, example_forwards=9000, reused=3)),
    (0, FOUND),
    (0, events.SearchFinished(search="cha:1:m4", status="…", queries=9, example_forwards=90, localized=1)),
    (0, rule(0.78)),
    (0, rule(0.3)),
    (0, rule(None)),
    (0, events.CertificateWritten(certificate="7f3a", claim="ablating m4.7 flips 28/64", units=("m4.7",))),
    (0, Notice(text="both slices are large enough")),
    (0, Notice(text="the replacement lies outside", level="warning")),
    (0, events.RunFinished(run="0c1f", status="finished: 1 τ-agonists")),
)
LINES = [
    "run 0c1f: arithmetic on tiny, mlp_out, mean-positional, decode, τ 0.2, ε 0.2, α 0.05, n 64 a slice",
    "behaviour 50/100 · 0:06 · time left: not known yet",
    "behaviour: 80 of 100 answers right (from the run file)",
    "price: at most 1,840 group ablations (235,520 example-forwards), at most 7 min",
    "1,204 ablations (3 reused) · 0:13 · 2 to 5 min left",
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


@pytest.mark.parametrize("display", [LineDisplay, RichDisplay])
def test_a_display_prints_one_line_a_change(display: type[LineDisplay]) -> None:
    """Sentences at once, low rules not at all; on lines progress at most every five seconds, with cost and time left.

    On a stream that is no terminal nothing is redrawn, so that there are no control sequences.
    """
    now, stream = [100.0], io.StringIO()
    shown = display(stream)
    shown.session.clock = lambda: now[0]
    shown.session.began = shown._last_line = now[0]
    for seconds, event in STORY:
        now[0] += seconds
        shown.show(event)
    shown.close()
    lines = LINES if display is LineDisplay else [line for line in LINES if " · " not in line]
    assert " ".join(stream.getvalue().split()) == " ".join(lines)
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize("name", ["plain", "none", "rich"])
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
    with pytest.raises(errors.UsageError, match="expected a display of rich, plain, none, got 'loud'"):
        make_display("loud")


@pytest.mark.parametrize(
    "event",
    [
        rule(0.9, HOSTILE),
        Notice(text=HOSTILE),
        events.CertificateWritten(certificate="c", claim=HOSTILE, units=()),
        events.StageFinished(stage="s", summary=HOSTILE, seconds=0.0),
        LlmMessage(model="m", purpose="p", text=HOSTILE, ok=False, input_tokens=0, output_tokens=0),
    ],
)
def test_no_text_can_paint_the_terminal(event: Event) -> None:
    """Control sequences and line breaks of a rule, a claim or a reply are disarmed, markup is as it was written."""
    for display in (LineDisplay, RichDisplay):
        stream = io.StringIO()
        shown = display(stream)
        shown.show(event)
        shown.close()
        text = stream.getvalue()
        assert not {"\x1b", "\u202e"} & set(text)
        assert "[red]" in text
    assert "\n" not in str(narrate(event))


AGENTS = {
    LlmMessage(
        model="mock:s", purpose="question", text="It flips.", ok=True, input_tokens=1200, output_tokens=3
    ): "mock:s (question; 1,200 + 3 tokens): It flips.",
    events.ToolCalled(tool="why", arguments='{"neuron":"m1.14"}', ok=False, result="no such unit"): (
        'tool why {"neuron":"m1.14"}: failed: no such unit'
    ),
}


@pytest.mark.parametrize("event", AGENTS)
def test_what_agents_do_is_one_line_in_every_display_and_one_turn_of_the_chat(event: Event) -> None:
    """The same sentence for the plain display and the screens."""
    turn = narrated(event)
    assert turn is not None
    assert narrate(event) == turn.text == AGENTS[event]
