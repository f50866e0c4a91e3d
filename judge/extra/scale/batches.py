"""Requests handed to batch services, and the completions of any engine taken into a journal, for use from Python.

The state of every batch is in `batches.json` beside the requests. It is written before a batch is begun and after, so
that a submission that was cut short is searched for at the provider and never made twice.
"""

import codecs
import contextlib
import fcntl
import gzip
import json
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Annotated, cast

import msgspec

from judge.errors import CallError, InputError, JudgeError, OperationalError, RejectedError
from judge.extra.scale import REQUESTS, OpenQuestion, QuestionFile, Shard, note_round
from judge.extra.scale.service import BatchLine, BatchService, SubmittedBatch, offer_of
from judge.io.files import GZIP, StrPath, json_bytes, read_stored
from judge.io.folder import check_apart, make_folder, write_atomic
from judge.io.plan import Option, Options
from judge.io.steps import Step, Steps, counted, quiet
from judge.io.text import printable, shown
from judge.jobs.manifest import JOURNAL
from judge.judges.chat import longest_reply
from judge.judges.http_errors import at
from judge.judges.journal import Journal
from judge.judges.journal_store import Row, new_row
from judge.judges.journal_tools import LONGEST
from judge.judges.model import Price
from judge.judges.records import Completion

_BATCHES = "batches.json"
_LOCK = ".batches.lock"
_OWN = re.compile(r"requests-\d{5,}(\.output-\d+)?\.jsonl")
"""The names of the files of a folder that are handed over, and that come back."""
_REFUSALS = frozenset(range(400, 500)) - {408, 499}
"""Statuses of a submission that was not taken; after a timeout it may have been."""
_TOGETHER, _LONGEST_REASON, _MOST_EMPTY = 5000, 200, 1_000_000
"""Completions in one commit, characters of a reason that are counted together, and empty lines that are passed over."""
_VERSION = re.compile(r"[-@:](?:(?:preview|exp)(?:-|$))?(?:\d{3,4}|\d{8}|\d{2}-\d{2}|\d{2}-\d{4}|\d{4}-\d{2}-\d{2})?")
"""What follows the name of a model in that of one of its versions: a number or a date, and no word such as `mini`."""
_ALIAS = re.compile(r"-(?:latest|0)$")
"""The end of a name that stands for the newest version."""
_decode = msgspec.json.Decoder(BatchLine).decode

Say = Callable[[str], None]
Services = Mapping[str, BatchService]


class JournalTaker(Options, section="output"):
    """The journal that takes completions."""

    out: Annotated[Path, Option(short="o", metavar="OUT")]
    """Output folder of `judge run`, with the journal."""
    answered_by: Annotated[tuple[str, ...], Option(metavar="MODEL", repeat=True)] = ()
    """Another name under which the model that was asked may answer; may be repeated."""


class CompletionsPlan(JournalTaker):
    """Everything `judge completions import` can be told."""

    files: Annotated[tuple[Path, ...], Option(metavar="FILE", place="only")]
    """Output lines of OpenAI, vLLM or Anthropic, compressed by gzip or not."""
    requests: Annotated[Path, Option(metavar="DIR")]
    """Folder of `judge requests` with the questions."""


class TakenCompletions(msgspec.Struct):
    """What became of the lines of a batch's output."""

    lines: int = 0
    taken: int = 0
    """Completions that are new in the journal."""
    repeated: int = 0
    """Lines whose question the journal answers already."""
    failed: dict[str, int] = {}
    """Lines without a completion by reason; their questions are asked again."""
    refused: list[tuple[str, str]] = []
    """File and line of each that is no answer to what was asked, and why."""
    open: int = 0
    """Questions that still have no completion."""
    cost: float | None = None
    """US dollars of the new completions; None where no price is known."""


class _RefusedError(Exception):
    """A line is no answer to what was asked."""


def import_completions(plan: CompletionsPlan, steps: Steps = quiet) -> TakenCompletions:
    """Take what came back for requests into the journal of an output folder; doing it again changes nothing."""
    out = plan.out
    files = plan.files
    if missing := [str(path) for path in files if not path.is_file()]:
        raise InputError(f"{', '.join(missing)}: no such file")
    check_apart(out, files)
    with QuestionFile(plan.requests) as questions:
        make_folder(out)
        with Journal(out / JOURNAL) as journal:
            taken = _take(_lines(files), questions, journal, plan.answered_by, steps)
            digests = counted("counting open questions", questions.digests(), questions.number, steps)
            taken.open = sum(digest not in journal for digest in digests)
    note_round(out, plan.requests)
    return taken


def _take(
    lines: Iterable[tuple[str, bytes]], questions: QuestionFile, journal: Journal, names: Collection[str], steps: Steps
) -> TakenCompletions:
    """Record the completions in lines; `names` are further ones under which a model that was asked may answer."""
    taken = TakenCompletions()
    failed = Counter[str]()
    rows: dict[str, Row] = {}
    for place, line in lines:
        taken.lines += 1
        steps(Step("taking completions", taken.lines))
        try:
            said, question = _read_line(line, questions)
            if question.digest in rows or question.digest in journal:
                continue
            completion = _completion(said, question, questions.prices.get(question.judge), names)
        except RejectedError as error:
            failed[printable(str(error)[:_LONGEST_REASON])] += 1
            continue
        except _RefusedError as error:
            taken.refused.append((place, str(error)))
            continue
        asked = question.digest, question.judge, question.parameters, question.request
        rows[question.digest] = new_row(*asked, completion)
        if completion.cost is not None:
            taken.cost = (taken.cost or 0.0) + completion.cost
        if len(rows) == _TOGETHER:
            taken.taken += journal.record(rows.values())
            rows.clear()
    taken.taken += journal.record(rows.values())
    taken.failed = dict(sorted(failed.items()))
    taken.repeated = taken.lines - taken.taken - failed.total() - len(taken.refused)
    return taken


def _lines(files: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """The lines that are not empty, each with its place."""
    for path in files:
        try:
            with path.open("rb") as file:
                packed = file.read(2) == GZIP
            with cast("IO[bytes]", gzip.open(path)) if packed else path.open("rb") as file:
                empty = 0
                for number, line in enumerate(iter(lambda: file.readline(LONGEST), b""), 1):
                    if number == 1:
                        line = line.removeprefix(codecs.BOM_UTF8)
                    if line.strip():
                        yield f"{path}: line {number}", line
                    elif (empty := empty + 1) > _MOST_EMPTY:
                        raise InputError(f"{path}: more than {_MOST_EMPTY:,} empty lines, expected a line a request")
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _answers(path: Path) -> int:
    """How many whole lines of a fetched file answer a question."""
    answers = 0
    with contextlib.suppress(InputError):
        for _, content in _lines([path]):
            answers += b'"custom_id"' in content and content.rstrip().endswith(b"}")
    return answers


def _read_line(content: bytes, questions: QuestionFile) -> tuple[BatchLine, OpenQuestion]:
    """A line, and the question that it answers."""
    try:
        try:
            line = _decode(content)
        except (msgspec.MsgspecError, ValueError):
            # Half an emoji or NaN, which msgspec refuses and Python reads, costs no grade.
            read = json.loads(content.decode("utf-8", "replace"), parse_constant=lambda name: None)
            line = _decode(json.dumps(read, ensure_ascii=False).encode("utf-8", "replace"))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _RefusedError(f"no line of a batch: {error}") from error
    digest = at(line, str, "custom_id")
    if digest is None:
        raise _RefusedError("no `custom_id` says which question it answers")
    question = questions.get(digest)
    if question is None:
        raise _RefusedError(f"{shown(digest[:80])} is the id of no question of these requests")
    return line, question


def _completion(line: BatchLine, question: OpenQuestion, price: Price | None, names: Collection[str]) -> Completion:
    """The completion that answers a question; a RejectedError says why there is none."""
    written = msgspec.json.decode(msgspec.json.encode(question.line()))
    if "body" in written and line.get("body") not in (None, written["body"]):
        raise _RefusedError("the request that it repeats is not the one that was written")
    try:
        completion = offer_of(question.judge).read(line, question.request)
    except JudgeError as error:
        raise RejectedError(str(error)) from error
    answered = completion.model
    if answered is not None and not any(same_model(known, answered) for known in (question.model, *names)):
        raise _RefusedError(f"answered by {shown(answered)}, asked was {question.model}")
    return completion if price is None else msgspec.structs.replace(completion, cost=price.of(completion))


def same_model(asked: str, answered: str) -> bool:
    """Whether the model that answered is the one that was asked, or a version of it.

    >>> same_model("gpt-4.1-mini", "gpt-4.1-mini-2025-04-14"), same_model("gpt-4.1", "gpt-4.1-mini")
    (True, False)
    """
    asked = asked.removeprefix("models/")
    answered = answered.removeprefix("models/")
    longer, shorter = sorted((asked, answered), key=len, reverse=True)
    # A server may leave out the owner, or name the path that it loaded the model from.
    if asked == answered or longer.endswith(f"/{shorter}"):
        return True
    stem = _ALIAS.sub("", asked)
    return answered.startswith(stem) and _VERSION.fullmatch(answered[len(stem) :]) is not None


def submit_batches(folder: StrPath, steps: Steps = quiet, say: Say = lambda line: None) -> tuple[SubmittedBatch, ...]:
    """Hand every file of requests in a folder of `judge requests` that is not yet at its provider to it.

    `say` is called with a line for each address, before anything is sent there. A JudgeError if the folder is not one
    of requests, a judge has no batch service or its key is missing, the provider refuses, or no batch service answers;
    the same call goes on from there.
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
) -> tuple[tuple[SubmittedBatch, ...], TakenCompletions | None]:
    """Fetch what batches that have ended brought, and take it into the journal of an output folder.

    `answered_by` is that of `CompletionsPlan`, `say` and the errors are those of `submit_batches`.
    """
    folder = Path(folder)
    taken = None
    with _opened(folder) as (batches, services):
        _poll(folder, batches, services, say)
        for batch in batches:
            fetched: list[str] = []
            for number, output in enumerate(batch.outputs, 1):
                name = f"{Path(batch.file).stem}.output-{number}.jsonl"
                if name not in batch.fetched:
                    steps(Step(f"fetching {name}"))
                    services[batch.judge].fetch(batch, output, folder / name)
                    fetched.append(name)
            if not fetched:
                continue
            # A download may be spoilt without an error, and what it lost would be paid for again.
            came = sum(_answers(folder / name) for name in (*batch.fetched, *fetched))
            if came < batch.completed:
                for name in fetched:
                    (folder / name).unlink(missing_ok=True)
                say(f"{batch.file}: {came} of {batch.completed} answers came; the same command fetches them again")
                continue
            if batch.listed is not None and not _is_ours(folder, fetched):
                _leave(folder, batch, fetched)
                _write(folder, batches)
                say(f"{batch.file}: {batch.others[-1]} is not its batch; `judge batch submit {folder}` goes on")
                continue
            batch.listed = None
            batch.fetched = (*batch.fetched, *fetched)
            _write(folder, batches)
        if files := [folder / name for batch in batches for name in batch.fetched]:
            plan = CompletionsPlan(files=files, requests=folder, out=out, answered_by=answered_by)
            taken = import_completions(plan, steps)
    return tuple(batches), taken


def _is_ours(folder: Path, names: Sequence[str]) -> bool:
    """Whether a fetched file answers a question of the folder."""
    with QuestionFile(folder) as questions:
        for _, content in _lines([folder / name for name in names]):
            with contextlib.suppress(_RefusedError):
                _read_line(content, questions)
                return True
    return False


def _leave(folder: Path, batch: SubmittedBatch, names: Sequence[str]) -> None:
    """Forget a batch that was found by its size and answers another folder's questions."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
    batch.others = (*batch.others, batch.batch_id or "")
    batch.batch_id = None
    batch.status = "not submitted"
    batch.ended = False
    batch.completed = 0
    batch.failed = 0
    batch.outputs = ()


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[tuple[list[SubmittedBatch], Services]]:
    """The batches of a folder and the service of each judge; no other process submits or writes meanwhile."""
    with contextlib.ExitStack() as opened:
        try:
            # The file stays: a lock on a file that was removed would keep nobody out. Whoever sent the folder may have
            # made it a link, which is not followed. Opened to read and write, a pipe lets nobody wait.
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
            lock = opened.enter_context(os.fdopen(os.open(folder / _LOCK, flags, 0o666)))
            fcntl.flock(lock.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise InputError(f"{folder}: no such folder; expected that of `judge requests`") from error
        except BlockingIOError:
            raise OperationalError(f"{folder}: another `judge batch` works on it; give the command again") from None
        except OSError as error:
            raise InputError(f"{folder / _LOCK}: cannot be used as a lock: {error.strerror}; remove it") from error
        questions = opened.enter_context(QuestionFile(folder))
        batches = _read(folder, questions.number)
        services = dict[str, BatchService]()
        judges = {batch.judge for batch in batches}
        for question in questions:
            if question.judge in judges - services.keys():
                longest = longest_reply(question.max_tokens)
                service = offer_of(question.judge).service
                services[question.judge] = service(question.judge, question.address, longest)
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
    if batch.listed is not None:
        # An earlier submission was cut short: the provider may have taken it.
        known = {each.batch_id for each in batches}
        found = sorted(set(service.find(batch)) - known)
        if len(found) > 1:
            raise OperationalError(
                f"{path}: its submission was cut short, and the provider has several batches that may be it "
                f"({', '.join(found)}); cancel all but one of them there, or write its id as `batch_id` into "
                f"{folder / _BATCHES}"
            )
        batch.batch_id = found[0] if found else None
    if batch.batch_id is None:
        if batch.file_id is None:
            service.upload(path, batch)
        batch.listed = service.list_latest()
        _write(folder, batches)
        try:
            batch.batch_id = service.submit(path, batch.file_id)
        except JudgeError as error:
            if error.status in _REFUSALS:
                # Nothing was taken, so there is nothing to search for.
                batch.listed = None
                _write(folder, batches)
            raise
        batch.listed = None
    elif service.names_file:
        batch.listed = None
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
    path = folder / _BATCHES
    try:
        parts = msgspec.json.decode(read_stored(folder / REQUESTS), type=dict[str, msgspec.Raw])
        files = msgspec.json.decode(parts["files"], type=list[Shard])
        batches = [SubmittedBatch(shard.name, shard.judge, shard.lines) for shard in files]
        left = msgspec.json.decode(read_stored(path), type=list[SubmittedBatch]) if path.exists() else batches
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError) as error:
        raise InputError(f"{folder}: not a folder that `judge requests` wrote: {error}") from error
    written = [(batch.file, batch.judge, batch.requests) for batch in batches]
    named = [(batch.file, batch.judge, batch.requests) for batch in left]
    names: list[str] = []
    for batch in left:
        names.extend((batch.file, *batch.fetched))
    if named != written or sum(batch.requests for batch in left) != number or not all(map(_OWN.fullmatch, names)):
        raise InputError(f"{path}: names other files or requests than those that `judge requests` wrote here")
    return left


def _write(folder: Path, batches: Sequence[SubmittedBatch]) -> None:
    write_atomic(folder / _BATCHES, json_bytes(batches))
