"""Certificates run again on the reference path: match, k examples differ, or why it cannot be said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mecharule_ops.certificates.bundles import read_bundle
from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.certificates.verification import Verification, VerificationStatus
from mecharule_ops.certificates.verification import verify as verification_of
from mecharule_ops.codec import encode, parse_json
from mecharule_ops.errors import ClaimNotSupported, StoreError, UsageError
from mecharule_ops.facts.fact import fact
from mecharule_ops.loading.model_names import load
from mecharule_ops.loading.placement import AUTO, kept, this_machine
from mecharule_ops.numbers import plural
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.replacement.table_files import read_table
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import opened
from mecharule_ops.run.second_run import Bench, CannotRepeat, bench_of_run, rerun
from mecharule_ops.store.keys import LAST_ANSWER
from mecharule_ops.store.run_directory import list_runs, runs_directory, written_last_first
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.types import Intervention
from tools._ablations import price_words
from tools.arguments import VerifyArguments
from tools.result import Tell, ToolResult, of_facts

CERTIFICATES, TABLES, CONFIG = "certificates", "replacement", "config.json"
"""Names inside an exported folder."""
EXIT_CODES = {VerificationStatus.MATCH: 0, VerificationStatus.CANNOT: 3, VerificationStatus.DIFFERS: 4}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Docket:
    """What is to be verified, and on what."""

    where: str
    certificates: tuple[Certificate, ...]
    make_bench: Callable[[], Bench]
    """Loads the model."""
    run: Run | None = None
    """None for certificates of a folder."""


def verify(given: VerifyArguments, tell: Tell) -> ToolResult:
    """How each certificate came out; or only the price. Exit code 4 when any differs, else 3 when any cannot be run.

    Cost: two completions an example and certificate, one group at a time on TransformerLens.
    """
    with _docket(given, tell) as docket:
        if given.estimate:
            return _price(docket)
        bench, verifications = docket.make_bench(), []
        for index, certificate in enumerate(docket.certificates):
            tell(
                f"certificate {certificate.id} ({index + 1} of {len(docket.certificates)}): "
                f"{len(certificate.example_ids)} examples again on the reference path"
            )
            verifications.append(
                verification_of(certificate, lambda one: rerun(bench, one), numbers=bench.numbers)
            )
    return _result(docket, verifications)


def _price(docket: Docket) -> ToolResult:
    """How many completions, and what they would take on the run's own path, since no run timed the reference path."""
    count = sum(2 * len(certificate.example_ids) for certificate in docket.certificates)
    of = plural(len(docket.certificates), "certificate")
    seconds = None if docket.run is None else price_words(docket.run, count).seconds
    took = "" if seconds is None else f"; the run's own path would take ~{seconds:.0f} s"
    said = f"price: {plural(count, 'completion')} on the reference path, with and without the units of {of}{took}"
    value = {"example_forwards": count, "certificates": len(docket.certificates), "seconds": seconds}
    return ToolResult(text=said, facts=(fact(said, key="price", value=value),))


def _result(docket: Docket, verifications: Sequence[Verification]) -> ToolResult:
    pairs = list(zip(docket.certificates, verifications, strict=True))
    facts = [
        fact(
            f"{verification.sentence.rstrip('.')}: {certificate.claim}",
            f"c:{certificate.id}",
            unit=certificate.units[0] if len(certificate.units) == 1 else None,
            key=f"certificate.{certificate.id}.verified",
            value=encode(verification),
        )
        for certificate, verification in pairs
    ]
    matched = sum(verification.status is VerificationStatus.MATCH for verification in verifications)
    said = f"{matched} of {len(pairs)} certificates match"
    said = (
        said
        if pairs
        else f"{docket.where}: there is no certificate, so nothing was claimed and nothing verified"
    )
    if len(pairs) != 1:
        facts.append(fact(said, key="certificates.match", value={"matched": matched, "of": len(pairs)}))
    worst = max((EXIT_CODES[verification.status] for verification in verifications), default=0)
    return of_facts(facts, exit_code=worst)


@contextmanager
def _docket(given: VerifyArguments, tell: Tell) -> Iterator[Docket]:
    """The certificates asked for: of a folder, a file, the last answer, a whole run, or one by its id."""
    path = Path(given.what)
    if path.is_dir():
        folder = path.parent if path.name == CERTIFICATES else path
        bundle = read_bundle(folder / CERTIFICATES)
        bench = partial(bench_of_folder, folder, bundle, given, tell)
        yield Docket(where=str(folder), certificates=bundle, make_bench=bench)
        return
    if path.is_file() and path.suffix == ".json":
        certificate = Certificate.from_json(_read(path))
        home = path.parent.parent
        if path.parent.name == CERTIFICATES and given.run is None:
            bench = partial(bench_of_folder, home, (certificate,), given, tell)
            yield Docket(where=str(path), certificates=(certificate,), make_bench=bench)
            return
        with opened(given.run or "last") as run:
            bench = partial(bench_as_asked, run, given, tell)
            yield Docket(where=str(path), certificates=(certificate,), make_bench=bench)
        return
    with opened(given.run or _run_with(given)) as run:
        chosen = _of_run(run, given)
        bench = partial(bench_as_asked, run, given, tell)
        yield Docket(where=f"run {run.id}", certificates=chosen, make_bench=bench, run=run)


def _of_run(run: Run, given: VerifyArguments) -> tuple[Certificate, ...]:
    """All of a run's certificates, those of its last answer, or one."""
    if given.what != "last" and not given.all:
        return tuple(run.store.certificate(_bare(one)) for one in (given.what, *given.more))
    if given.all or not run.store.has(LAST_ANSWER):
        return run.store.certificates()
    cited = run.store.get(LAST_ANSWER)["certificates"]
    return tuple(run.store.certificate(identifier) for identifier in cited)


def _run_with(given: VerifyArguments) -> str:
    """The newest run that holds the certificate asked for; for `last` the one with the last answer."""
    if given.what == "last" and not given.all:
        return _asked_last()
    if given.what == "last" or given.all:
        return given.what
    for summary in list_runs(runs_directory()):
        if summary.when is None:
            continue
        with opened(str(summary.path)) as run:
            try:
                run.store.certificate(_bare(given.what))
            except ClaimNotSupported:
                continue
            return str(summary.path)
    if any(summary.id == given.what for summary in list_runs(runs_directory())):
        raise UsageError(
            f"expected a certificate, {given.what} is a run; `mecharule verify {given.what} --all` runs them all"
        )
    raise UsageError(
        f"expected a certificate of some run, a file or an exported folder, got {given.what!r}; "
        "list them with `mecharule show RUN --table certificates`"
    )


def _asked_last() -> str:
    """The run written to last of those that hold an answer; the one that finished last where none does."""
    return str(next(filter(_has_answer, written_last_first(runs_directory())), "last"))


def _has_answer(path: Path) -> bool:
    try:
        with RunStore.open(path, read_only=True, whole=False) as store:
            return store.has(LAST_ANSWER)
    except StoreError:
        return False


def _bare(identifier: str) -> str:
    """An id as typed or as cited: `7f3a`, `c:7f3a` or `[c:7f3a]`."""
    return identifier.strip("[]").removeprefix("c:")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"expected a certificate at {path}, it does not read: {error}") from error


def bench_as_asked(run: Run, given: VerifyArguments, tell: Tell) -> Bench:
    """The run's model, by its recorded name or from elsewhere, on its own device and type or on those asked for."""
    tell(f"run {run.id}: loading {given.model or run.config.model}")
    device, dtype = given.device or run.device_here(), given.dtype or run.dtype
    return bench_of_run(run, load(given.model or run.config.model, device, dtype, tell))


def bench_of_folder(
    folder: Path, certificates: Sequence[Certificate], given: VerifyArguments, tell: Tell
) -> Bench:
    """The model that an exported folder names, as its certificates say, and the replacement values in it.

    Raises `StoreError`.
    """

    def table(intervention: Intervention, wanted: str) -> ReplacementTable:
        path = folder / TABLES / f"{wanted}.npz"
        if not path.is_file():
            raise CannotRepeat(
                f"expected replacement values {wanted} at {path}, there are none; export again"
            )
        return read_table(path, intervention)

    made = {(one.device, one.dtype) for one in certificates} or {("cpu", "float32")}
    device, dtype = min(made)
    where = given.device or kept(this_machine(), AUTO, device)
    subject = load(given.model or model_named(folder), where, given.dtype or dtype, tell)
    return Bench(subject=subject, table=table)


def model_named(folder: Path) -> str:
    """The model of an exported folder's config."""
    try:
        return str(parse_json((folder / CONFIG).read_text(encoding="utf-8"))["model"])
    except OSError as error:
        raise StoreError(f"expected an exported folder with {CONFIG}, {folder} has none") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ClaimNotSupported(
            f"expected settings in {folder / CONFIG}, they do not read: {error}"
        ) from error
