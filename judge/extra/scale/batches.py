"""Requests handed to a provider's batch service: what `judge batch` does, for use from Python.

The state of every batch is in `batches.json` beside the requests. It is written before a batch is begun and after, so
that a submission that was cut short is searched for at the provider and never made twice.
"""

import contextlib
import fcntl
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from judge.errors import CallError, InputError, OperationalError
from judge.extra.scale.completions import CompletionsPlan, TakenCompletions, import_completions
from judge.extra.scale.requests import REQUESTS, QuestionFile, Shard
from judge.extra.scale.service import BatchService, SubmittedBatch, open_service
from judge.io.folder import write_atomic
from judge.io.line_stream import json_bytes
from judge.io.paths import StrPath
from judge.io.steps import Step, Steps, quiet
from judge.io.stored import read_stored
from judge.judges.connection import longest_reply
from judge.judges.journal_store import check_database

BATCHES, LOCK = "batches.json", ".batches.lock"
_OWN = re.compile(r"requests-\d{5,}(\.output-\d+)?\.jsonl")
"""The names of the files of a folder that are handed over, and that come back."""

Say = Callable[[str], None]
Services = Mapping[str, BatchService]


class CollectedBatches(msgspec.Struct, frozen=True):
    """What was fetched and taken; None where nothing has come back yet."""

    batches: tuple[SubmittedBatch, ...]
    taken: TakenCompletions | None


def submit_batches(folder: StrPath, steps: Steps = quiet, say: Say = lambda line: None) -> tuple[SubmittedBatch, ...]:
    """Hand every file of requests in a folder of `judge requests` that is not yet at its provider to it.

    `say` is called with a line for each address, before anything is sent there.

    Raises:
        JudgeError: The folder is not one of requests, a judge has no batch service or its key is missing, the provider
            refuses, or no batch service answers; the same call goes on from there.
    """
    folder = Path(folder)
    with _opened(folder) as (batches, services):
        for address in dict.fromkeys(batch.address for batch in batches if batch.batch_id is None):
            say(f"submitting to {address}")
        for number, batch in enumerate(batches):
            steps(Step(f"submitting to {batch.address}", number, len(batches)))
            if batch.batch_id is None:
                _submit(folder, batches, batch, services[batch.judge])
    return tuple(batches)


def poll_batches(folder: StrPath, say: Say = lambda line: None) -> tuple[SubmittedBatch, ...]:
    """Ask the providers how far the batches of a folder are; `say` and the errors are those of `submit_batches`."""
    folder = Path(folder)
    with _opened(folder) as (batches, services):
        _poll(folder, batches, services, say)
    return tuple(batches)


def collect_batches(
    folder: StrPath,
    out: StrPath,
    answered_by: str | Sequence[str] = (),
    steps: Steps = quiet,
    say: Say = lambda line: None,
    *,
    journal: str | None = None,
) -> CollectedBatches:
    """Fetch what batches that have ended brought, and take it into the journal of an output folder.

    `answered_by` and `journal` are those of `CompletionsPlan`, `say` and the errors those of `submit_batches`.
    """
    check_database(journal)
    folder = Path(folder)
    taken = None
    with _opened(folder) as (batches, services):
        _poll(folder, batches, services, say)
        for batch in batches:
            for number, output in enumerate(batch.outputs, 1):
                name = f"{Path(batch.file).stem}.output-{number}.jsonl"
                if name not in batch.fetched:
                    steps(Step(f"fetching {name}"))
                    services[batch.judge].fetch(batch, output, folder / name)
                    batch.fetched = (*batch.fetched, name)
                    _write(folder, batches)
        if files := [folder / name for batch in batches for name in batch.fetched]:
            plan = CompletionsPlan(files=files, requests=folder, out=out, answered_by=answered_by, journal=journal)
            taken = import_completions(plan, steps)
    return CollectedBatches(tuple(batches), taken)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[tuple[list[SubmittedBatch], Services]]:
    """The batches of a folder and the service of each judge; no other process submits or writes meanwhile."""
    with contextlib.ExitStack() as opened:
        try:
            # The file stays: a lock on a file that was removed would keep nobody out. Nothing is written: whoever sent
            # the folder may have made it a link.
            lock = opened.enter_context((folder / LOCK).open("ab"))
            fcntl.flock(lock.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise InputError(f"{folder}: no such folder; expected that of `judge requests`") from error
        except BlockingIOError:
            raise OperationalError(f"{folder}: another `judge batch` works on it; give the command again") from None
        questions = opened.enter_context(QuestionFile(folder))
        batches, services = _read(folder, questions.number), dict[str, BatchService]()
        judges = {batch.judge for batch in batches}
        for question in questions:
            if question.judge in judges - services.keys():
                longest = longest_reply(question.max_tokens)
                services[question.judge] = open_service(question.judge, question.address, longest)
                opened.callback(services[question.judge].close)
            if judges == services.keys():
                break
        else:
            raise InputError(f"{folder}: holds no question to {', '.join(sorted(judges - services.keys()))}")
        for batch in batches:
            batch.address = services[batch.judge].address
        try:
            yield batches, services
        except CallError as error:
            raise OperationalError(str(error)) from error


def _submit(folder: Path, batches: Sequence[SubmittedBatch], batch: SubmittedBatch, service: BatchService) -> None:
    path = folder / batch.file
    # A link would lead to what is not of this folder.
    if path.is_symlink() or not path.is_file():
        raise InputError(f"{path}: no such file; expected what `judge requests` wrote")
    if batch.began is not None:
        # An earlier submission was cut short: the provider may have taken it.
        known = {each.batch_id for each in batches}
        found = sorted(set(service.find(batch)) - known)
        if len(found) > 1:
            raise OperationalError(
                f"{path}: its submission was cut short, and the provider has several batches that may be it "
                f"({', '.join(found)}); cancel all but one of them there, or write its id as `batch_id` into "
                f"{folder / BATCHES}"
            )
        batch.batch_id = found[0] if found else None
    if batch.batch_id is None:
        if batch.file_id is None:
            batch.file_id = service.upload(path)
        batch.began = datetime.now(UTC)
        _write(folder, batches)
        batch.batch_id = service.submit(path, batch.file_id)
    batch.status = "submitted"
    _write(folder, batches)


def _poll(folder: Path, batches: Sequence[SubmittedBatch], services: Services, say: Say) -> None:
    submitted = [batch for batch in batches if batch.batch_id is not None]
    for address in dict.fromkeys(batch.address for batch in submitted):
        say(f"asking {address}")
    for batch in submitted:
        # A provider may say that a batch has ended before it names what came of it.
        if not batch.ended or batch.lacks_output:
            services[batch.judge].poll(batch)
            _write(folder, batches)


def _read(folder: Path, number: int) -> list[SubmittedBatch]:
    """The batches of a folder with so many questions: as they were left, or none submitted yet."""
    path = folder / BATCHES
    try:
        parts = msgspec.json.decode(read_stored(folder / REQUESTS), type=dict[str, msgspec.Raw])
        files = msgspec.json.decode(parts["files"], type=list[Shard])
        batches = [SubmittedBatch(shard.name, shard.judge, shard.lines) for shard in files]
        left = msgspec.json.decode(read_stored(path), type=list[SubmittedBatch]) if path.exists() else batches
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError) as error:
        raise InputError(f"{folder}: not a folder that `judge requests` wrote: {error}") from error
    written, named = ([(batch.file, batch.judge, batch.requests) for batch in each] for each in (batches, left))
    names = [name for batch in left for name in (batch.file, *batch.fetched)]
    if named != written or sum(batch.requests for batch in left) != number or not all(map(_OWN.fullmatch, names)):
        raise InputError(f"{path}: names other files or requests than those that `judge requests` wrote here")
    return left


def _write(folder: Path, batches: Sequence[SubmittedBatch]) -> None:
    write_atomic(folder / BATCHES, json_bytes(batches))
