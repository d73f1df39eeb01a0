"""Certificates run again on the reference path: match, k examples differ, or why it cannot be said."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from mecharule_ops import codec, errors, events, numbers, types
from mecharule_ops.certificates.bundles import read_bundle
from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.certificates.verification import VerificationStatus as Status
from mecharule_ops.certificates.verification import verify as verification_of
from mecharule_ops.facts.fact import fact
from mecharule_ops.loading import model_names, placement
from mecharule_ops.replacement import baselines, table_files
from mecharule_ops.run import live_run, opening
from mecharule_ops.run.second_run import Bench, CannotRepeat, bench_of_run, rerun
from mecharule_ops.store import keys, run_directory
from mecharule_ops.store.run_log import RunLog
from tools.arguments import VerifyArguments
from tools.result import About, Priced, Quoted, Tell, of_facts, price_words

CERTIFICATES, TABLES, CONFIG = "certificates", "replacement", "config.json"
"""Names inside an exported folder."""
EXIT_CODES = {Status.MATCH: 0, Status.CANNOT: 3, Status.DIFFERS: 4}


Docket = tuple[tuple[Certificate, ...], Callable[[], Bench], live_run.Run | None]
"""What is to be verified, what loads the model that it is verified on, and their run; None for those of a folder."""


def verify(given: VerifyArguments, tell: Tell) -> Priced:
    """How each certificate came out. Exit code 4 when any differs, else 3 when any cannot be run.

    Cost: two completions an example and certificate, one group at a time on TransformerLens.
    """
    with _docket(given, tell) as (certificates, make_bench, run):
        n, count = len(certificates), sum(2 * len(one.example_ids) for one in certificates)
        # No run timed the reference path.
        seconds = None if run is None else price_words(run, count).seconds
        took = "" if seconds is None else f"; the run's own path would take ~{seconds:.0f} s"
        beside = f"with and without the units of {numbers.plural(n, 'certificate')}{took}"
        said = f"{numbers.plural(count, 'completion')} on the reference path, {beside}"
        yield Quoted(example_forwards=count, seconds=seconds, said=said)
        bench, facts, statuses = make_bench(), [], []
        for index, one in enumerate(certificates, 1):
            examples = f"{numbers.plural(len(one.example_ids), 'example')} again on the reference path"
            tell(f"certificate {one.id} ({index} of {n}): {examples}")
            came = verification_of(one, lambda certificate: rerun(bench, certificate), numbers=bench.numbers)
            source = f"c:{one.id}" if run else given.what
            of = About(f"certificate.{one.id}", source, one.units[0] if len(one.units) == 1 else None)
            facts.append(
                of("verified", f"{came.sentence.rstrip('.')}: {one.plain_claim}", codec.encode(came))
            )
            statuses.append(came.status)
        where, matched = f"run {run.id}" if run else given.what, statuses.count(Status.MATCH)
        held = len(run.store.certificates()) if run else n
    said = f"{matched} of {n} certificates of {where} match"
    said += f"; it has {held}, which `mecharule verify {run.id} --all` runs" if run and n < held else ""
    said = said if n else f"{where}: there is no certificate, so nothing was claimed and nothing verified"
    if n != 1 or not (given.what.endswith(".json") or certificates[0].id.startswith(_bare(given.what))):
        facts.append(fact(said, key="certificates.match", value={"matched": matched, "of": n}))
    return of_facts(facts, exit_code=max(map(EXIT_CODES.__getitem__, statuses), default=0))


@contextmanager
def _docket(given: VerifyArguments, tell: Tell) -> Iterator[Docket]:
    """The certificates asked for: of a folder, a file, the last answer, a run, or by their ids."""
    path, one = Path(given.what), None
    if path.is_file() and path.suffix == ".json":
        with errors.system_errors(f"a certificate at {path}"):
            one = Certificate.from_json(path.read_text(encoding="utf-8"))
    if path.is_dir() or (one and path.parent.name == CERTIFICATES and given.run is None):
        folder = path.parent.parent if one else path
        several = (one,) if one else read_bundle(folder / CERTIFICATES)
        yield several, partial(bench_of_folder, folder, several, given, tell), None
        return
    given = given if one or given.run else _placed(given)
    with opening.opened(given.run or "last") as run:
        several = (one,) if one else _of_run(run, given)
        yield several, partial(bench_as_asked, run, given, tell), run


def _of_run(run: live_run.Run, given: VerifyArguments) -> tuple[Certificate, ...]:
    """All of a run's certificates, those of its last answer, or some by their ids."""
    if given.all or (given.what == "last" and not run.store.has(keys.LAST_ANSWER)):
        return run.store.certificates()
    ids = run.store.get(keys.LAST_ANSWER) if given.what == "last" else (given.what, *given.more)
    return tuple(run.store.certificate(_bare(id)) for id in ids)


def _placed(given: VerifyArguments) -> VerifyArguments:
    """The same in its run: the newest that holds the certificate, for `last` that finished last, or has a later answer.

    A run's own name stands for its last answer.
    """
    folder, what = run_directory.runs_directory(), given.what
    if what == "last" and not given.all:
        named = max(run_directory.written_last_first(folder), key=_told_at, default=what)
        return given.model_copy(update={"run": str(named)})
    its_own = given.all or run_directory.run_path(what, folder).is_file()
    damaged: errors.StoreError | None = None
    for summary in () if its_own else run_directory.list_runs(folder):
        if summary.when is not None:
            try:
                with suppress(errors.ClaimNotSupported), opening.opened(str(summary.path)) as run:
                    run.store.certificate(_bare(what))
                    return given.model_copy(update={"run": str(summary.path)})
            except errors.StoreError as error:
                damaged = error
    with suppress(errors.UsageError):
        return given.model_copy(update={"run": str(run_directory.find_run(what, folder)), "what": "last"})
    raise damaged or errors.UsageError(
        f"expected a run, a certificate of one, a file or an exported folder, got {what!r}; `mecharule runs` lists runs"
    )


def _told_at(path: Path) -> float:
    """Unix time at which a run finished, or an answer about it named certificates; less than 0 if unread."""
    with suppress(errors.StoreError), RunLog.read(path) as log:
        answered = [moment for moment, one in log.every(events.QuestionAnswered) if one.certificates]
        return max(answered + [moment for moment, _ in log.every(events.RunFinished)], default=0.0)
    return -1.0


def _bare(identifier: str) -> str:
    """An id as typed or as cited: `7f3a`, `c:7f3a` or `[c:7f3a]`."""
    return identifier.strip("[]").removeprefix("c:")


def bench_as_asked(run: live_run.Run, given: VerifyArguments, tell: Tell) -> Bench:
    """The run's model, by its recorded name or from elsewhere, on its own device and type or on those asked for."""
    tell(f"run {run.id}: loading {given.model or run.config.model}")
    device, dtype = given.device or run.device_here(), given.dtype or run.dtype
    return bench_of_run(run, model_names.load(given.model or run.config.model, device, dtype, tell))


def bench_of_folder(
    folder: Path, certificates: Sequence[Certificate], given: VerifyArguments, tell: Tell
) -> Bench:
    """The model that an exported folder names, as its certificates say, and the replacement values in it.

    Raises `StoreError`.
    """

    def table(intervention: types.Intervention, wanted: str) -> baselines.ReplacementTable:
        path = folder / TABLES / f"{wanted}.npz"
        if not path.is_file():
            raise CannotRepeat(f"expected replacement values {wanted} at {path}, got none; export again")
        return table_files.read_table(path, intervention)

    try:
        named = given.model or str(codec.parse_json((folder / CONFIG).read_text(encoding="utf-8"))["model"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise errors.StoreError(
            f"expected settings with a model in {folder / CONFIG}: {error}; export again"
        ) from error
    device, dtype = min(((one.device, one.dtype) for one in certificates), default=("cpu", "float32"))
    where = given.device or placement.kept(placement.this_machine(), placement.AUTO, device)
    return Bench(subject=model_names.load(named, where, given.dtype or dtype, tell), table=table)
