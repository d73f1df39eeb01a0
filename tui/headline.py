"""The lines above and below a run: what runs, how it goes, what it cost, what can be done."""

from __future__ import annotations

from rich.text import Text

from mecharule_ops.plain_text import plain
from mecharule_ops.state.run_state import RunState
from tui.session import Activity
from tui.words import arrow, clock, rate, threshold


def headline(state: RunState, activity: str, pace: str) -> Text:
    """` MechaRule  model · task · 1→0 · τ .20 ε .20 α .05 n 64   run 0c1f LIVE 6/s`."""
    header = state.header
    if header is None:
        return Text(f" MechaRule  {activity}", "bold", no_wrap=True)
    regimes = " and ".join(map(arrow, header.regimes))
    settings = f"τ {threshold(header.thresholds)} ε {rate(header.epsilon)} α {rate(header.alpha)} n {header.slice_size}"
    text = Text(no_wrap=True).append(f" run {plain(header.run)} ", "bold")
    text.append(f"{activity}{pace}", "bold reverse")
    text.append(f"  {plain(header.model)} · {plain(header.task)} · {regimes} · {settings}")
    return text.append(f" · {plain(header.basis)} {plain(header.baseline)} {plain(header.phase)}", "dim")


def progress(state: RunState, elapsed: float) -> str:
    """`search 12/30 · 412/~1,840 ablations · .9% of brute · 3:10`."""
    parts = []
    if state.stage is not None:
        total = f" {state.stage.done:,}/{state.stage.total:,}" if state.stage.total else ""
        parts.append(f"{plain(state.stage.stage)}{total}")
    cost = state.cost
    if cost is not None:
        of = f"/~{state.price.evaluations:,}" if state.price else ""
        parts.append(f"{cost.group_evaluations:,}{of} ablations")
        if cost.reused:
            parts.append(f"{cost.reused:,} reused")
        if cost.speculative:
            parts.append(f"{cost.speculative:,} forwards ahead")
    units = sum(view.units for view in state.searches.values())
    if units:
        parts.append(f"{_percent(state.counts.tested / units)} of brute")
    return " · ".join([*parts, clock(elapsed)])


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.1 else f"{100 * share:.1f}%"


def activity_word(activity: Activity, state: RunState) -> str:
    """The word in the header; a stored run may have ended before its end."""
    if activity in (Activity.ENDED, Activity.READ):
        return "DONE" if state.finished else "UNFINISHED"
    return activity.value


def status_line(state: RunState, activity: Activity, failure: str) -> str:
    """How the run stands, in a sentence."""
    if activity is Activity.FAILED:
        return f"failed: {plain(failure)}"
    if activity is Activity.STOPPED:
        return "stopped, checkpoint kept; ^R resumes"
    if activity is Activity.STOPPING:
        return "stopping after this batch; the checkpoint is kept"
    if state.finished:
        return plain(state.status)
    if activity in (Activity.ENDED, Activity.READ):
        return "not finished; ^R continues it"
    if state.header is None and activity is Activity.WORKING:
        return "loading the engine, which takes longest the first time"
    strong = sum(agonist.is_tau_agonist for agonist in state.agonists.values())
    rules = sum(rule.predicts for rule in state.rules.values())
    return f"{strong} agonists, {len(state.agonists)} localized, {rules} rules so far"
