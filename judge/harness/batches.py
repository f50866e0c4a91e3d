"""Requests handed to a provider's batch API: what `judge batch` does, for use from Python.

The state of every batch is in `batches.json` in the folder of the requests, so that another process on another day goes
on. It is written before a batch is begun and after, so that a submission that was cut short is looked for at the
provider and never made twice.
"""

import contextlib
import fcntl
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from judge.errors import InputError, OperationalError
from judge.files.folder import temporary_name, write_atomic
from judge.files.jsonl import json_bytes
from judge.files.paths import StrPath
from judge.files.stored import read_stored
from judge.harness.requests import REQUESTS, CompletionsPlan, import_completions
from judge.models.batch.providers import open_for
from judge.models.batch.providers.provider import Provider
from judge.models.batch.questions import QUESTIONS, QuestionFile
from judge.models.batch.records import OpenQuestion
from judge.models.batch.shards import Shard
from judge.models.batch.taking import TakenCompletions
from judge.models.journals import check_database
from judge.text.steps import Step, Steps, quiet

BATCHES = "batches.json"
LOCK = ".batches.lock"
_SLACK = timedelta(minutes=5)
"""By how much the clocks of this machine and the provider may differ."""


class SubmittedBatch(msgspec.Struct):
    """One file of requests at its provider."""

    file: str
    judge: str
    requests: int
    file_id: str | None = None
    """What the provider calls the file; None where it is not uploaded."""
    began: datetime | None = None
    """When its submission began."""
    batch_id: str | None = None
    """None where it is not submitted, as far as this folder knows."""
    status: str = "not submitted"
    """In the words of the provider."""
    ended: bool = False
    completed: int = 0
    failed: int = 0
    outputs: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    fetched: tuple[str, ...] = ()
    """Files of the folder with the lines that came back."""

    @property
    def lacks_output(self) -> bool:
        """Whether requests are counted as done and nothing that came of them can be fetched."""
        return self.ended and not self.outputs and self.completed + self.failed > 0


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
        UsageError: No batch API is known for a judge, or its key is missing.
        InputError: The folder is not one of requests.
        OperationalError: The provider refuses; the same call goes on from there.
    """
    folder = Path(folder)
    with _alone(folder), _batches(folder) as (batches, providers):
        for number, batch in enumerate(batches):
            steps(Step("submitting", number, len(batches)))
            if batch.batch_id is None:
                _submit(folder, batches, batch, providers[batch.judge])
    return tuple(batches)


def look_at_batches(folder: StrPath) -> tuple[SubmittedBatch, ...]:
    """Ask the providers how far the batches of a folder are.

    Raises:
        UsageError: No batch API is known for a judge, or its key is missing.
        InputError: The folder is not one of requests.
        OperationalError: The provider refuses.
    """
    folder = Path(folder)
    with _alone(folder), _batches(folder) as (batches, providers):
        _look(folder, batches, providers)
    return tuple(batches)


def _look(folder: Path, batches: Sequence[SubmittedBatch], providers: Mapping[str, Provider]) -> None:
    """Ask how far the batches are that have not ended."""
    for batch in batches:
        # A provider may say that a batch has ended before it names what came of it.
        if batch.batch_id is not None and (not batch.ended or batch.lacks_output):
            found = providers[batch.judge].look(batch.batch_id)
            batch.status, batch.ended = found.status, found.ended
            batch.completed, batch.failed = found.completed, found.failed
            batch.outputs, batch.problems = found.outputs, found.problems
            _write(folder, batches)


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
        UsageError: No batch API is known for a judge, its key is missing, or the address of the shared journal is none.
        InputError: The folder is not one of requests.
        OperationalError: The provider refuses, or the disk cannot be written; the same call goes on from there.
    """
    check_database(journal)
    folder = Path(folder)
    taken = None
    with _alone(folder), _batches(folder) as (batches, providers):
        _look(folder, batches, providers)
        for batch in batches:
            for number, output in enumerate(batch.outputs, 1):
                name = f"{Path(batch.file).stem}.output-{number}.jsonl"
                if name not in batch.fetched:
                    steps(Step(f"fetching {name}"))
                    _fetch(providers[batch.judge], output, folder / name)
                    batch.fetched = (*batch.fetched, name)
                    _write(folder, batches)
        files = [folder / name for batch in batches for name in batch.fetched]
        if files:
            plan = CompletionsPlan(files=files, requests=folder, out=out, answered_by=answered_by, journal=journal)
            taken = import_completions(plan, steps)
    return CollectedBatches(tuple(batches), taken)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder, so that no other process submits the same files or writes over what this one has learned.

    Raises:
        InputError: The folder is not there.
        OperationalError: Another process holds it.
    """
    try:
        # The file stays: a lock on a file that was removed would keep nobody out.
        with (folder / LOCK).open("wb") as file:
            try:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OperationalError(f"{folder}: another `judge batch` works on it; give the command again") from None
            yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"{folder}: no such folder; expected that of `judge requests`") from error


def _submit(folder: Path, batches: Sequence[SubmittedBatch], batch: SubmittedBatch, provider: Provider) -> None:
    path = folder / batch.file
    if batch.began is not None:
        # An earlier submission was cut short: the provider may have taken it.
        known = {other.batch_id for other in batches if other.batch_id is not None}
        found = provider.find(batch.file_id, batch.requests, batch.began - _SLACK, known)
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
        batch.file_id = provider.upload(path)
        _write(folder, batches)
    batch.began = datetime.now(UTC)
    _write(folder, batches)
    batch.batch_id = provider.submit(path, batch.file_id)
    batch.status = "submitted"
    _write(folder, batches)


def _fetch(provider: Provider, output: str, path: Path) -> None:
    temporary = path.with_name(temporary_name(path.name))
    try:
        provider.fetch(output, temporary)
        temporary.replace(path)
    except OSError as error:
        raise OperationalError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _batches(folder: Path) -> Iterator[tuple[list[SubmittedBatch], dict[str, Provider]]]:
    """The batches of a folder, and the API of each judge, open while the context lasts."""
    batches = _read(folder)
    wanted = {batch.judge for batch in batches}
    first: dict[str, OpenQuestion] = {}
    with QuestionFile(folder / QUESTIONS) as questions, contextlib.ExitStack() as closing:
        for question in questions:
            first.setdefault(question.judge, question)
            if len(first) == len(wanted):
                break
        providers = {}
        for judge, question in first.items():
            providers[judge] = open_for(question)
            closing.callback(providers[judge].close)
        yield batches, providers


def _read(folder: Path) -> list[SubmittedBatch]:
    """The batches of a folder: as they were left, or none submitted yet."""
    path = folder / BATCHES
    try:
        if path.exists():
            return msgspec.json.decode(read_stored(path), type=list[SubmittedBatch])
        about = msgspec.json.decode(read_stored(folder / REQUESTS), type=_Requests)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"{folder}: not a folder that `judge requests` wrote: {error}") from error
    return [SubmittedBatch(shard.name, shard.judge, shard.lines) for shard in about.files]


def _write(folder: Path, batches: Sequence[SubmittedBatch]) -> None:
    write_atomic(folder / BATCHES, json_bytes(batches))
