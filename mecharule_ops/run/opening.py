"""How a run is begun, also from another, and opened, and how a unit of it is named.

A run is opened for reading by default, for writing only where an ablation or a certificate is added. One made from
another searches again under other settings: records, vocabulary, replacement values and every ablation outcome are
taken over, splitter, slices and search follow anew. So another τ asks the model only what no search has asked before.
"""

import math
import secrets
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial

from mecharule_ops import codec, errors, types
from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.config import RunConfig
from mecharule_ops.events import CertificateWritten, Event
from mecharule_ops.findings.records import Again, Findings, SearchOutcome
from mecharule_ops.run.live_run import Run
from mecharule_ops.store import keys, run_directory, run_file, run_store

OBSERVED = ("model", "task", "task_settings", "records", "test_share", "seed", "dtype")
"""Settings of what is taken over: a run that has others takes nothing over."""
PROPOSED = ("proposer", "proposals")
"""Settings of the vocabulary, which is made anew where they differ."""

COMPACT = frozenset({"associated", "unrelated"})
"""The two slices that a search tests on, as certificates name them."""


@dataclass(slots=True)
class _Kept:
    """The run that is read again and again, what closes all that were opened, what tells to stop."""

    closing: ExitStack
    should_stop: Callable[[], bool]
    run: Run | None = None


_KEPT: ContextVar[_Kept | None] = ContextVar("kept", default=None)


@contextmanager
def kept_open(should_stop: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Within it, threads and tasks that it starts included, a run is opened for reading once.

    Opened for writing in between, it is read anew. `should_stop` is asked between batches of every run opened in it.
    """
    if _KEPT.get() is not None:
        yield
        return
    with ExitStack() as closing:
        closing.callback(_KEPT.reset, _KEPT.set(_Kept(closing, should_stop)))
        yield


@contextmanager
def opened(
    run: str, *, write: bool = False, tell: Callable[[str], None] = lambda line: None
) -> Iterator[Run]:
    """An open run; `tell` hears where its model goes, if it is loaded.

    Raises `UsageError` when there is none of this name, `StoreError` when it cannot be read.
    """
    path, kept = run_directory.find_run(run, run_directory.runs_directory()), _KEPT.get()
    found = None if write or kept is None else kept.run
    with ExitStack() as closing:
        if found is None or found.store.path != path:
            opener = closing if write or kept is None else kept.closing
            found = Run(opener.enter_context(run_store.RunStore.open(path, read_only=not write)))
        if kept is not None:
            kept.run, found.should_stop = None if write else found, kept.should_stop
        found.told_where = tell
        yield found


def is_kept(run: Run | None) -> bool:
    """Whether it is the run that is opened once, and nothing was written to it since."""
    kept = _KEPT.get()
    return run is not None and kept is not None and kept.run is run


@contextmanager
def written_to(run: Run) -> Iterator[None]:
    """Within it an open run may be written; it is closed then, and whoever opens it next reads it anew."""
    try:
        run.store.hold()
        yield
    finally:
        run.store.close()
        if (kept := _KEPT.get()) is not None:
            kept.run = None


@contextmanager
def begun(
    config: RunConfig,
    earlier: run_store.RunStore | None = None,
    again_of: str | None = None,
    name: str | None = None,
) -> Iterator[run_store.RunStore]:
    """The file of a new run in the runs directory, held for writing; its id is `name` or one that none has.

    From its first moment it holds what it takes over from an `earlier` run, and of which one it is another on other
    records. So wherever it is cut it can go on. One that is refused before a record was observed is gone again.
    """
    fill = (lambda _: None) if earlier is None else partial(take_over, earlier=earlier)
    folder = run_directory.runs_directory()
    run = name or run_directory.new_run_id(folder, secrets.token_hex)
    source = {} if earlier is None else {"forked_from": earlier.path.stem}
    settings = {"run": run, "settings": config.model_dump(mode="json"), "again_of": again_of, **source}
    path, kept = run_directory.run_path(run, folder), True
    try:
        with run_store.RunStore.create(path, settings, fill=fill) as store:
            try:
                yield store
            except errors.UsageError:
                kept = store.has(keys.RECORDS) or store.has(keys.WHOLE)
                raise
    finally:
        if not kept:
            run_file.remove(path)


def tell_first(run: Run, findings: Findings) -> None:
    """Put what a run shows into the one that it is another of, if it is one; each seed counts once.

    Raises `UsageError` where that one is gone, `StoreError` where it cannot be written.
    """
    if (first := run.store.config.get("again_of")) is None:
        return
    with opened(str(first), write=True) as known:
        theirs = known.findings.task_settings
        again = Again(
            run=run.id,
            seed=findings.seed,
            differs=tuple(
                name for name, value in findings.task_settings.items() if theirs.get(name) != value
            ),
            shown={
                regime.arrow: tuple(one.neuron for one in findings.shown() if one.search.regime is regime)
                for regime in run.regimes
            },
        )
        known.keep_of_unit(keys.of_units(keys.AGAIN, [f"{keys.AGAIN}{again.seed}"])[0], again)


def observed_otherwise(earlier: RunConfig, config: RunConfig) -> list[str]:
    """The settings of what was observed that differ. Raises `UsageError` when nothing differs at all."""
    if config == earlier:
        raise errors.UsageError(
            "expected another setting than those of the earlier run, got none; name one, such as --tau .3"
        )
    return [name for name in OBSERVED if getattr(config, name) != getattr(earlier, name)]


def take_over(store: run_store.RunStore, earlier: run_store.RunStore) -> None:
    """Fill a new run with what an earlier one observed and ablated, and its vocabulary where the same proposes.

    Where other units are given, with what is known of the model that has them all. Raises as `Run.check_rows`.
    """
    (source := Run(earlier)).check_rows()
    ours, theirs = Run(store).config, source.config
    anew = [] if all(getattr(ours, name) == getattr(theirs, name) for name in PROPOSED) else keys.PROPOSED
    kept = [name for name in earlier.names() if keys.is_observed(name) and name not in anew]
    if ours.given != theirs.given:
        known = bool(ours.given) and earlier.has(keys.TRAIN)
        kept = [name for name in kept if known and keys.is_of_whole_model(name)]
        if known:
            store.put(keys.WHOLE, [codec.encode(record) for record in source.whole_records])
    store.take_over(earlier, kept)


def findings_of(run: Run) -> Findings:
    """What a finished run found. Raises `StoreError` with the way out when it has not finished."""
    if not run.finished:
        how = "it is running" if run_file.is_held(run.store.path) else f"`mecharule resume {run.id}`"
        raise errors.StoreError(f"expected a finished run, {run.id} has no findings yet; {how}")
    return run.findings


def regime_of(given: str | None) -> types.Regime | None:
    """The regime that an argument names, if any."""
    return None if given is None else types.Regime(int(given))


def strongest_regime(run: Run, unit: types.Neuron) -> types.Regime:
    """The regime in which the unit was found, by the evidence where both found it, else the run's first."""
    known = next((each for each in findings_of(run).by_evidence() if each.neuron == unit), None)
    return known.search.regime if known else run.regimes[0]


def regime_for(run: Run, unit: types.Neuron, asked: str | None) -> types.Regime:
    """The regime asked for, else the one in which the unit was found strongest."""
    return regime_of(asked) or strongest_regime(run, unit)


def outcome_for(findings: Findings, neuron: types.Neuron, regime: types.Regime | None) -> SearchOutcome:
    """The search that speaks about a unit: of its basis, in the regime asked, else where it is strongest.

    Raises `UsageError` when the run never searched the unit's basis in that regime.
    """
    of_basis = (search for search in findings.searches if search.intervention.basis is neuron.basis)
    fitting = [search for search in of_basis if regime in (None, search.regime)]
    if not fitting:
        searched = ", ".join(map(short_name, findings.searches))
        raise errors.UsageError(
            f"expected a unit and a direction that run {findings.run} searched ({searched}), got {neuron}"
            f"{f' {regime.arrow}' if regime else ''}; `mecharule run --from {findings.run} --basis {neuron.basis} "
            f"--regime both` searches it"
        )
    found = next((unit.search.regime for unit in findings.by_evidence(regime) if unit.neuron == neuron), None)
    return next((search for search in fitting if search.regime is found), fitting[0])


def short_name(outcome: SearchOutcome) -> str:
    """`mlp_out 1→0`: enough to tell the searches of one run apart."""
    return f"{outcome.intervention.basis} {outcome.regime.arrow}"


def check_unit(run: Run, neuron: types.Neuron) -> None:
    """Raises `UsageError` when the model has no such unit; reads the stored attribution or the model's sizes alone."""
    layers, width = sizes_of(run, neuron) or (math.inf, math.inf)
    if neuron.layer >= layers or neuron.channel >= width:
        raise errors.UsageError(
            f"expected a unit of {layers} layers of {width} {neuron.basis} units, got {neuron}; both count from 0"
        )


def sizes_of(run: Run, neuron: types.Neuron) -> tuple[int, int] | None:
    """(layers, units of each) of the unit's basis; None where neither run nor model directory tells."""
    for regime in run.regimes:
        if run.store.has(keys.attribution(neuron.basis, regime)):
            return run.sizes(neuron.basis, regime)
    from mecharule_ops.loading.model_names import resolve
    from mecharule_ops.loading.shape import read_shape

    try:
        shape = read_shape(resolve(run.config.model, offline=True))
        return shape.n_layers, shape.width(neuron.basis)
    except errors.ModelUnavailable:
        return None


def keep(run: Run, certificate: Certificate, emit: Callable[[Event], None] | None = None) -> Certificate:
    """The certificate, after storing it and telling the run's story of it, by `emit` where a run is under way."""
    if run.store.put_certificate(certificate):
        units = certificate.units
        event = CertificateWritten(certificate=certificate.id, claim=certificate.claim, units=units)
        emit(event) if emit else run.store.append([event])
    return certificate


def find_certificate(
    run: Run,
    units: tuple[types.Neuron, ...],
    regime: types.Regime,
    baseline: types.Baseline | None = None,
    slices: Container[str] | None = None,
    among: Sequence[Certificate] | None = None,
) -> Certificate | None:
    """The newest stored certificate of ablating exactly these units on both compact slices, or on others by name.

    By the run's own baseline unless one is named; `among` those of the run that were read already.
    """
    fitting = (
        certificate
        for certificate in reversed(run.store.certificates() if among is None else among)
        if certificate.kind in ("ablate", "why", "flip")
        and (certificate.regime, {*certificate.units}) == (regime.value, {*map(str, units)})
        and certificate.intervention.baseline == (baseline or run.config.baseline).value
        and all(total.slice in (slices or COMPACT) for total in certificate.totals)
    )
    return next(fitting, None)
