"""Requests handed to a provider's batch service: what `judge batch` does, for use from Python.

The state of every batch is in `batches.json` in the folder of the requests, so that another process on another day goes
on. It is written before a batch is begun and after, so that a submission that was cut short is searched for at the
provider and never made twice.
"""

import contextlib
import fcntl
import functools
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from judge.errors import InputError, OperationalError
from judge.files.content import Pieces
from judge.files.folder import write_atomic
from judge.files.jsonl import json_bytes
from judge.files.paths import StrPath
from judge.files.stored import read_stored
from judge.harness.requests import REQUESTS, CompletionsPlan, import_completions
from judge.models.batch.completions import TakenCompletions
from judge.models.batch.requests import QuestionFile, Shard
from judge.models.batch.service import BatchService, SubmittedBatch, open_service
from judge.models.journal import check_database
from judge.text.steps import Step, Steps, quiet

BATCHES = "batches.json"
LOCK = ".batches.lock"


class _Requests(msgspec.Struct):
    files: list[Shard]


class CollectedBatches(msgspec.Struct, frozen=True):
    """What was fetched and taken."""

    batches: tuple[SubmittedBatch, ...]
    taken: TakenCompletions | None
    """None where nothing has come back yet."""


def submit_batches(folder: StrPath, steps: Steps = quiet) -> tuple[SubmittedBatch, ...]:
    """Hand every file of requests that is not yet at its provider to it.

    Args:
        folder: The folder of `judge requests`.
        steps: Called as files are submitted.

    Raises:
        UsageError: No batch service is known for a judge, or its key is missing.
        InputError: The folder is not one of requests.
        OperationalError: The provider refuses; the same call goes on from there.
    """
    folder = Path(folder)
    with _opened(folder) as (batches, services):
        for number, batch in enumerate(batches):
            steps(Step("submitting", number, len(batches)))
            if batch.batch_id is None:
                _submit(folder, batches, batch, services[batch.judge])
    return tuple(batches)


def poll_batches(folder: StrPath) -> tuple[SubmittedBatch, ...]:
    """Ask the providers how far the batches of a folder are; the errors are those of `submit_batches`."""
    folder = Path(folder)
    with _opened(folder) as (batches, services):
        _poll(folder, batches, services)
    return tuple(batches)


def collect_batches(
    folder: StrPath,
    out: StrPath,
    answered_by: str | Sequence[str] = (),
    steps: Steps = quiet,
    *,
    journal: str | None = None,
) -> CollectedBatches:
    """Fetch what batches that have ended brought, and take it into the journal of an output folder.

    Args:
        folder: The folder of `judge requests`.
        out: The output folder of `judge run`.
        answered_by: Further names under which the model that was asked may answer.
        steps: Called as files are fetched and completions are taken.
        journal: Address of the database of a shared journal, which then takes the completions.

    Raises:
        UsageError: As `submit_batches`, or the address of the shared journal is none.
        InputError: The folder is not one of requests.
        OperationalError: The provider refuses, or the disk cannot be written; the same call goes on from there.
    """
    check_database(journal)
    folder = Path(folder)
    taken = None
    with _opened(folder) as (batches, services):
        _poll(folder, batches, services)
        for batch in batches:
            for number, output in enumerate(batch.outputs, 1):
                name = f"{Path(batch.file).stem}.output-{number}.jsonl"
                if name not in batch.fetched:
                    steps(Step(f"fetching {name}"))
                    write_atomic(folder / name, Pieces(functools.partial(services[batch.judge].fetch, output)))
                    batch.fetched = (*batch.fetched, name)
                    _write(folder, batches)
        files = [folder / name for batch in batches for name in batch.fetched]
        if files:
            plan = CompletionsPlan(files=files, requests=folder, out=out, answered_by=answered_by, journal=journal)
            taken = import_completions(plan, steps)
    return CollectedBatches(tuple(batches), taken)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[tuple[list[SubmittedBatch], dict[str, BatchService]]]:
    """The batches of a folder and the service of each judge; no other process submits or writes meanwhile.

    Raises:
        UsageError: No batch service is known for a judge, or its key is missing.
        InputError: The folder is not one of requests.
        OperationalError: Another process holds the folder.
    """
    with contextlib.ExitStack() as opened:
        try:
            # The file stays: a lock on a file that was removed would keep nobody out.
            lock = opened.enter_context((folder / LOCK).open("wb"))
            fcntl.flock(lock.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise InputError(f"{folder}: no such folder; expected that of `judge requests`") from error
        except BlockingIOError:
            raise OperationalError(f"{folder}: another `judge batch` works on it; give the command again") from None
        batches = _read(folder)
        services: dict[str, BatchService] = {}
        for question in opened.enter_context(QuestionFile(folder)):
            if question.judge not in services:
                services[question.judge] = open_service(question.judge, question.address)
                opened.callback(services[question.judge].close)
            if len(services) == len({batch.judge for batch in batches}):
                break
        yield batches, services


def _submit(folder: Path, batches: Sequence[SubmittedBatch], batch: SubmittedBatch, service: BatchService) -> None:
    path = folder / batch.file
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected what `judge requests` wrote")
    if batch.began is not None:
        # An earlier submission was cut short: the provider may have taken it.
        found = service.find(batch, {each.batch_id for each in batches if each.batch_id is not None})
        if len(found) > 1:
            raise OperationalError(
                f"{path}: its submission was cut short, and the provider has several batches that may be it "
                f"({', '.join(found)}); cancel all but one of them there, or write its id as `batch_id` into "
                f"{folder / BATCHES}"
            )
        if found:
            batch.batch_id, batch.status = found[0], "submitted"
            _write(folder, batches)
            return
    if batch.file_id is None:
        batch.file_id = service.upload(path)
    batch.began = datetime.now(UTC)
    _write(folder, batches)
    batch.batch_id, batch.status = service.submit(path, batch.file_id), "submitted"
    _write(folder, batches)


def _poll(folder: Path, batches: Sequence[SubmittedBatch], services: Mapping[str, BatchService]) -> None:
    for batch in batches:
        # A provider may say that a batch has ended before it names what came of it.
        if batch.batch_id is not None and (not batch.ended or batch.lacks_output):
            services[batch.judge].poll(batch)
            _write(folder, batches)


def _read(folder: Path) -> list[SubmittedBatch]:
    """The batches of a folder: as they were left, or none submitted yet."""
    path = folder / BATCHES
    try:
        if path.exists():
            return msgspec.json.decode(read_stored(path), type=list[SubmittedBatch])
        files = msgspec.json.decode(read_stored(folder / REQUESTS), type=_Requests).files
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"{folder}: not a folder that `judge requests` wrote: {error}") from error
    return [SubmittedBatch(shard.name, shard.judge, shard.lines) for shard in files]


def _write(folder: Path, batches: Sequence[SubmittedBatch]) -> None:
    write_atomic(folder / BATCHES, json_bytes(batches))
