"""What is done with journals that nobody is writing: check, rescue and convert, export, join, and add up.

The released form of a journal has a line of JSON for each completion. Parameters, messages and completion stand in a
line as the journal holds them, so that its checksum still proves them.
"""

import contextlib
import hashlib
import itertools
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from judge.errors import InputError, OperationalError, UsageError
from judge.io.folder import Pieces, temporary_name, write_atomic
from judge.io.ids import natural_key
from judge.io.paths import StrPath
from judge.judges.address import without_credentials
from judge.judges.journal import Journal
from judge.judges.journal_rows import (
    COLUMNS,
    DamagedRow,
    Recorded,
    Row,
    RowLine,
    check_row,
    completion_of,
    encoder,
    is_database,
    recorded,
    request_digest,
    sealed,
    without_secrets,
)
from judge.judges.journal_store import FileStore, Store, lacks_log, open_store, paged
from judge.judges.prices import CallSum, Spending
from judge.judges.secrets import known_secrets

LONGEST = 1 << 26
"""Bytes of a line; a completion is at most a few MiB."""
_TOGETHER = 1000
"""Completions of one transaction."""
_SHOWN = 10
"""Most problems of structure that SQLite is asked for."""
_ADDRESS = ("base_url", "api_base", "replicas", "environment")
"""Parameters of older journals that say where a judge was asked; the others say what it was asked."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(RowLine).decode


def read_journal(place: StrPath) -> Iterator[Recorded]:
    """The completions of a journal or of a file exported from one, each checked. Errors are those of `placed_rows`."""
    return (recorded(row) for _, row in placed_rows(place))


def placed_rows(place: StrPath) -> Iterator[tuple[str | int, Row]]:
    """The rows of a journal that no process is writing, in the order of their digests, or of an exported file.

    Each is checked, and comes after what it is found by: its digest, or the byte at which its line begins.

    Raises:
        InputError: A row is damaged; other errors are those of `open_store`.
    """
    if not is_exported(place):
        with contextlib.closing(open_store(place)) as store:
            yield from ((row[0], row) for row in store.sound_rows())
        return
    number = begin = 0
    try:
        with Path(place).open("rb") as file:
            while text := file.readline(LONGEST):
                number += 1
                yield begin, read_line(text)
                begin += len(text)
    except DamagedRow as error:
        raise InputError(
            f"{place}: line {number}: no completion as `judge journal export` writes it: {error}"
        ) from error
    except OSError as error:
        raise InputError(f"{place}: cannot be read: {error.strerror}") from error


def is_exported(place: StrPath) -> bool:
    """Whether a journal is a file that begins as an exported one does."""
    try:
        with Path(place).open("rb") as file:
            return file.read(1) == b"{"
    except OSError:
        return False


def read_line(text: bytes) -> Row:
    """The row in a line of an exported file; a DamagedRow if it is none, or not what was recorded."""
    try:
        values = msgspec.structs.astuple(_decode(text))
        row = tuple(bytes(value).decode() if isinstance(value, msgspec.Raw) else value for value in values)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise DamagedRow(str(error)) from error
    check_row(row)
    recorded(row)
    return row


class JournalReport(NamedTuple):
    """What a check of a journal found."""

    sound: int
    """Completions that are what was recorded."""
    problems: tuple[tuple[str, str], ...]
    """Digest of a completion, or an empty string for the file, and what is wrong."""
    repeated: int = 0
    """Completions of an older journal that were asked for at another address too, and are left out."""


def _check(store: Store, take: Callable[[list[Row]], object]) -> JournalReport:
    """Hand over the sound completions of a journal, as this version records them, and report on all of them."""
    # By hashes of the digests: a journal may hold millions.
    sound: set[int] = set()
    problems: dict[str, str] = {}
    for page in paged(store.scan(), _TOGETHER):
        kept: list[Row] = []
        for row in page:
            try:
                kept.append(_todays_row(row))
                sound.add(hash(row[0]))
            except DamagedRow as error:
                problems.setdefault(str(row[0]), str(error))
        take(kept)
    with contextlib.suppress(InputError):
        for page in store.pages("digest"):
            for (digest,) in page:
                problems.setdefault(str(digest), "its page cannot be read")
    lost = sorted(problem for problem in problems.items() if hash(problem[0]) not in sound)
    return JournalReport(len(sound), tuple(lost))


def _todays_row(row: Row) -> Row:
    """A row, checked, as this version of judge records it: the older one had the address of the judge in the digest."""
    try:
        check_row(row)
    except DamagedRow:
        if row[-1] != hashlib.sha256(encoder.encode(row[:10])).hexdigest():
            raise
    else:
        recorded(row)
        return row
    old = recorded(row)
    parameters = {name: value for name, value in old.parameters.items() if name not in _ADDRESS}
    address = next((str(old.parameters[name]) for name in _ADDRESS if old.parameters.get(name)), None)
    completion = msgspec.structs.replace(old.completion, endpoint=old.completion.endpoint or address)
    texts = encoder.encode(parameters).decode(), msgspec.json.encode(completion).decode()
    digest = request_digest(old.judge, parameters, old)
    return sealed((digest, old.judge, texts[0], *row[3:9], texts[1], row[10]))


def verify_journal(place: StrPath) -> JournalReport:
    """Check every completion of a journal that no process is writing; nothing is changed.

    Raises:
        InputError: Nothing of it can be read; other errors are those of `open_store`.
    """
    more: list[tuple[str, str]] = []
    if not is_database(place) and lacks_log(place):
        name = Path(place).name
        more.append(("", f"its -wal file is missing: bring {name}-wal, which may hold later completions"))
    with contextlib.closing(open_store(place, "salvage")) as store:
        report = _check(store, lambda rows: None)
        if isinstance(store, FileStore):
            more += [("", f"SQLite: {line}") for line in store.problems(_SHOWN)]
    if not report.sound and more and not report.problems:
        raise InputError(f"{place}: cannot be read as a journal: {more[0][1]}")
    return report._replace(problems=tuple(sorted((*more, *report.problems))))


def salvage_journal(path: StrPath, new: StrPath) -> JournalReport:
    """Write what is sound in a journal, damaged or of an older version, into a new one; the old one is not changed.

    Raises:
        UsageError: There is something at `new`.
        InputError: Nothing in the journal is sound; other errors are those of `open_store`.
        OperationalError: The new journal cannot be written.
    """
    with contextlib.closing(open_store(path, "salvage")) as store, _new_journal(new) as target:
        report = _check(store, target.record)
        if not report.sound:
            raise InputError(f"{store.name}: holds no completion that is sound")
        with contextlib.suppress(InputError):
            target.store.add_facts(store)
        taken = len(target)
    return report._replace(sound=taken, repeated=report.sound - taken)


@contextlib.contextmanager
def _new_journal(path: StrPath) -> Iterator[Journal]:
    """A journal that is at its place once it is complete."""
    path = _new(path)
    temporary = path.with_name(temporary_name(path.name))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with Journal(temporary) as journal:
            yield journal
        temporary.replace(path)
    except OSError as error:
        raise OperationalError(f"{path}: cannot be written: {error}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _new(path: StrPath) -> Path:
    if os.path.lexists(path):
        raise UsageError(f"{path}: is there already; -o names a new file")
    return Path(path)


def exported_lines(place: StrPath) -> Iterator[bytes]:
    """The completions of a journal by their digests, a line each, without keys. Errors are those of `placed_rows`."""
    secrets = known_secrets()
    for _, row in placed_rows(place):
        completion = completion_of(row)
        # A row that held a key gets the checksum of the rest.
        if (clean := without_secrets(completion, secrets)) != completion:
            row = sealed((*row[:9], msgspec.json.encode(clean).decode(), row[10]))
        values = dict(zip(COLUMNS, row, strict=True))
        for name in ("parameters", "messages", "completion"):
            values[name] = msgspec.Raw(values[name])
        yield _encode(RowLine(**values)) + b"\n"


def export_journal(place: StrPath, out: StrPath) -> int:
    """Write the completions of a journal without keys and passwords, a line of JSON each, and give their number.

    Raises:
        UsageError: There is something at `out`, or it is named as a Parquet file.
        OperationalError: The file cannot be written; other errors are those of `placed_rows`.
    """
    if Path(out).suffix.lower() == ".parquet":
        raise UsageError(f"{out}: a journal is exported as JSON lines, which polars, pandas and DuckDB make Parquet of")
    count = 0

    def lines() -> Iterator[bytes]:
        nonlocal count
        for line in exported_lines(place):
            count += 1
            yield line

    write_atomic(_new(out), Pieces(lines))
    return count


class Conflict(NamedTuple):
    """A question that two journals answer differently."""

    digest: str
    path: str
    """The later journal, whose answer was left out."""
    criterion: str
    turn_id: str
    response_id: str


class MergeReport(NamedTuple):
    """What a merge took over."""

    taken: int
    """Completions of the new journal."""
    repeated: int
    """Completions left out because an earlier journal has the question; conflicts are among them."""
    conflicts: tuple[Conflict, ...]


def merge_journals(places: Sequence[StrPath], new: StrPath) -> MergeReport:
    """Write the completions of journals and exported files into a new journal; the first one named wins.

    Raises:
        UsageError: There is something at `new`.
        OperationalError: The new journal cannot be written; other errors are those of `placed_rows`.
    """
    repeated = 0
    conflicts: list[Conflict] = []
    with _new_journal(new) as target:
        for place in places:
            for page in paged((row for _, row in placed_rows(place)), _TOGETHER):
                earlier = target.store.rows(row[0] for row in page)
                for row in page:
                    first = earlier.setdefault(row[0], row)
                    repeated += first is not row
                    if _answer(first) != _answer(row):
                        conflicts.append(Conflict(row[0], without_credentials(str(place)), *row[6:9]))
                target.record(page)
            if not is_exported(place):
                with contextlib.closing(open_store(place)) as store:
                    target.store.add_facts(store)
        taken = len(target)
    return MergeReport(taken, repeated, tuple(conflicts))


def _answer(row: Row) -> tuple[object, ...]:
    """What a verdict is read from; time and tokens differ whenever the same is asked twice."""
    completion = completion_of(row)
    return completion.text, completion.finish_reason, completion.probabilities


class JournalSpending(Spending, frozen=True):
    """What all completions of a judge in a journal took."""

    first: str
    """When the first completion was recorded, and when the last was: UTC, as `2025-01-31T12:00:00.000Z`."""
    last: str
    seconds_p50: float | None
    """Half of the timed calls took this long or less; None if no call is timed."""
    seconds_p95: float | None
    forms: Mapping[str, int]
    """Completions by the form of the answer, and by what the provider says; an empty word where it says nothing."""
    finish_reasons: Mapping[str, int]
    models: Mapping[str, int]
    fingerprints: Mapping[str, int]


def read_spending(place: StrPath) -> tuple[JournalSpending, ...]:
    """What each judge's completions in a journal took, in natural order of the judges' names.

    Raises:
        InputError: A completion is damaged; other errors are those of `open_store`.
    """
    sums: dict[str, CallSum] = defaultdict(CallSum)
    words: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    times: dict[str, tuple[str, str]] = {}
    with contextlib.closing(open_store(place)) as store:
        for row in itertools.chain.from_iterable(store.pages()):
            judge, form, recorded_at, call = row[1], row[5], row[10], store.sound(row, completion_of)
            sums[judge].add(call)
            first, last = times.get(judge, (recorded_at, recorded_at))
            times[judge] = min(first, recorded_at), max(last, recorded_at)
            told = {"forms": form, "finish_reasons": call.finish_reason, "models": call.model}
            for name, word in {**told, "fingerprints": call.system_fingerprint}.items():
                words[judge][name][word or ""] += 1
    return tuple(_spending(judge, sums[judge], times[judge], words[judge]) for judge in sorted(sums, key=natural_key))


def _spending(
    judge: str, calls: CallSum, times: tuple[str, str], words: Mapping[str, Mapping[str, int]]
) -> JournalSpending:
    seconds = sorted(calls.seconds)
    least = {percent: seconds[-(-len(seconds) * percent // 100) - 1] if seconds else None for percent in (50, 95)}
    counts: dict[str, Any] = {name: dict(sorted(numbers.items())) for name, numbers in words.items()}
    spending = msgspec.structs.asdict(calls.spending(judge))
    return JournalSpending(
        **spending, first=times[0], last=times[1], seconds_p50=least[50], seconds_p95=least[95], **counts
    )
