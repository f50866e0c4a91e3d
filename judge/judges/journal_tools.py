"""What is done with journals that nobody is writing: check, rescue and convert, export, join, and add up.

The released form of a journal has a line of JSON for each completion. Parameters, messages and completion stand in a
line as the journal holds them, so that its checksum still proves them. A Parquet file has the same fields as columns.
"""

import contextlib
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from judge.errors import InputError, OperationalError, UsageError
from judge.io.folder import Pieces, temporary_name, write_atomic
from judge.io.ids import natural_key
from judge.io.installed import need_extra
from judge.io.paths import StrPath
from judge.io.tabular import SUFFIX, Schema, is_parquet, write_parquet
from judge.judges.address import without_credentials
from judge.judges.journal import Journal, open_store
from judge.judges.journal_rows import (
    COLUMNS,
    SCHEMA_VERSION,
    DamagedRow,
    Recorded,
    Row,
    RowLine,
    check_row,
    completion_of,
    decoded,
    encoder,
    is_database,
    recorded,
    request_digest,
    sealed,
)
from judge.judges.journal_store import FileStore, Store, lacks_log, paged
from judge.judges.records import Completion
from judge.judges.secrets import known_secrets
from judge.judges.spending import CallSum, Spending

LONGEST = 1 << 26
"""Bytes of a line; a completion is at most a few MiB."""
_BEGINNING = 4
"""Bytes by which an exported file is known."""
_TOGETHER = 1000
"""Completions of one transaction."""
_WORDS = ("forms", "finish_reasons", "models", "fingerprints")
"""What completions are counted by: fields of `JournalSpending`."""
_SHOWN = 10
"""Most problems of structure that SQLite is asked for."""
_ADDRESS = ("base_url", "api_base", "replicas", "environment")
"""Parameters of older journals that say where a judge was asked; the others say what it was asked."""


# ---------------------------------------------------------------- reading


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
    if is_exported(place):
        yield from _lines(Path(place))
        return
    with contextlib.closing(open_store(place)) as store:
        yield from ((row[0], row) for row in store.sound_rows())


def is_exported(place: StrPath) -> bool:
    """Whether a journal is a file that begins as an exported one does.

    Raises:
        InputError: It is a Parquet file, which is for data frames alone.
    """
    if is_database(place):
        return False
    try:
        with Path(place).open("rb") as file:
            begins = file.read(_BEGINNING)
    except OSError:
        return False
    if is_parquet(begins):
        raise InputError(
            f"{place}: a Parquet file: only journals and their JSON lines can be merged and replayed; "
            "`judge journal export PATH -o FILE.jsonl` writes these"
        )
    return begins.startswith(b"{")


def _lines(path: Path) -> Iterator[tuple[int, Row]]:
    number = place = 0
    try:
        with path.open("rb") as file:
            while text := file.readline(LONGEST):
                number += 1
                yield place, read_line(text)
                place += len(text)
    except DamagedRow as error:
        raise InputError(
            f"{path}: line {number}: no completion as `judge journal export` writes it: {error}"
        ) from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def read_line(text: bytes) -> Row:
    """The row in a line of an exported file, checked.

    Raises:
        DamagedRow: It is no completion, or not what was recorded.
    """
    try:
        values = msgspec.structs.astuple(_decode(text))
        row = tuple(bytes(value).decode() if isinstance(value, msgspec.Raw) else value for value in values)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise DamagedRow(str(error)) from error
    check_row(row)
    recorded(row)
    return row


# ---------------------------------------------------------------- checking, rescuing and converting


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
                kept.append(_todays_row(row, store.version))
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


def _todays_row(row: Row, version: str | None) -> Row:
    """A row of a journal of a schema version, checked, as this version of judge records it.

    Args:
        row: The row.
        version: None where a damaged file does not tell.

    Raises:
        DamagedRow: The row is not what was recorded.
    """
    try:
        check_row(row)
    except DamagedRow:
        if version == SCHEMA_VERSION or row[-1] != hashlib.sha256(encoder.encode(row[:10])).hexdigest():
            raise
    else:
        recorded(row)
        return row
    old = recorded(row)
    parameters = {name: value for name, value in old.parameters.items() if name not in _ADDRESS}
    address = next((old.parameters[name] for name in _ADDRESS if old.parameters.get(name)), None)
    if isinstance(address, dict):
        # Variables of the environment that moved a judge of litellm.
        address = ", ".join(f"{name}={value}" for name, value in address.items())
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
    """Write what is sound in a journal into a new one of this version; the old one is not changed.

    Args:
        path: The journal, damaged or of an older version, or the address of a shared one.
        new: Where the new one goes; nothing may be there.

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
    """A journal that is at its place once it is complete.

    Raises:
        UsageError: There is something at the place.
        OperationalError: It cannot be written.
    """
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


# ---------------------------------------------------------------- exporting


def exported_lines(place: StrPath) -> Iterator[bytes]:
    """The completions of a journal by their digests, a line each, without keys. Errors are those of `placed_rows`."""
    for row in _exported_rows(place):
        values = dict(zip(COLUMNS, row, strict=True))
        for name in ("parameters", "messages", "completion"):
            values[name] = msgspec.Raw(values[name])
        yield _encode(RowLine(**values)) + b"\n"


def export_journal(place: StrPath, out: StrPath) -> int:
    """Write the completions of a journal without keys and passwords, and give their number.

    Args:
        place: The journal.
        out: A new file: Parquet if it ends with `.parquet` in any case, else a line of JSON for each completion.

    Raises:
        UsageError: There is something at `out`, or Parquet is asked for and polars is not installed.
        OperationalError: The file cannot be written; other errors are those of `placed_rows`.
    """
    out = _new(out)
    if out.suffix.lower() == SUFFIX:
        need_extra("crowd", f"{out}: a Parquet file")
        import polars as pl

        schema: Schema = {name: pl.Int64 if name == "sample" else pl.String for name in COLUMNS}
        with contextlib.suppress(OSError):
            out.parent.mkdir(parents=True, exist_ok=True)
        return write_parquet(out, schema, _exported_rows(place))
    count = 0

    def lines() -> Iterator[bytes]:
        nonlocal count
        for line in exported_lines(place):
            count += 1
            yield line

    write_atomic(out, Pieces(lines))
    return count


def _exported_rows(place: StrPath) -> Iterator[Row]:
    """The rows without secrets in what came back; a row that held one gets the checksum of what is left."""
    scrub = known_secrets().scrub
    names = ("text", "finish_reason", "model", "system_fingerprint", "endpoint", "raw")
    for _, row in placed_rows(place):
        completion = completion_of(row)
        said = {name: scrub(value) for name in names if (value := getattr(completion, name)) is not None}
        clean = msgspec.structs.replace(completion, **said)
        yield row if clean == completion else sealed((*row[:9], msgspec.json.encode(clean).decode(), row[10]))


# ---------------------------------------------------------------- joining


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
    """Write the completions of several journals into a new one; none of them is changed.

    Args:
        places: The journals, addresses of shared ones, or files exported from journals, the one that wins first.
        new: Where the new one goes; nothing may be there.

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


# ---------------------------------------------------------------- adding up


class JournalSpending(Spending, frozen=True):
    """What all completions of a judge in a journal took."""

    first: str
    """When the first completion was recorded, and when the last was: UTC, as `2025-01-31T12:00:00.000Z`."""
    last: str
    seconds_p50: float | None = None
    """Half of the timed calls took this long or less; None if no call is timed."""
    seconds_p95: float | None = None
    forms: Mapping[str, int] = {}
    """Completions by the form in which an answer was asked for."""
    finish_reasons: Mapping[str, int] = {}
    """Completions by why their texts end, in the words of the provider; an empty word where it gave none."""
    models: Mapping[str, int] = {}
    """Completions by the model that the provider names."""
    fingerprints: Mapping[str, int] = {}
    """Completions by the provider's fingerprint of what it runs."""


class _JudgeSum(msgspec.Struct):
    """The completions of one judge in a journal, added up as they are read."""

    calls: CallSum = msgspec.field(default_factory=CallSum)
    first: str = "~"
    last: str = ""
    words: dict[str, Counter[str]] = msgspec.field(default_factory=lambda: {name: Counter() for name in _WORDS})


def read_spending(place: StrPath) -> tuple[JournalSpending, ...]:
    """What each judge's completions took, in natural order of the judges' names.

    Args:
        place: A journal that no process is writing, or the address of a shared one.

    Raises:
        InputError: A completion is damaged; other errors are those of `open_store`.
    """
    sums: dict[str, _JudgeSum] = {}
    with contextlib.closing(open_store(place)) as store:
        for page in store.pages("digest, judge, completion, form, recorded"):
            for digest, judge, text, form, recorded_at in page:
                try:
                    call = decoded(text, Completion)
                except DamagedRow as error:
                    raise store.damaged(digest, error) from error
                one = sums.setdefault(judge, _JudgeSum())
                one.calls.add(call)
                one.first, one.last = min(one.first, recorded_at), max(one.last, recorded_at)
                said = form, call.finish_reason, call.model, call.system_fingerprint
                for counts, word in zip(one.words.values(), said, strict=True):
                    counts[word or ""] += 1
    return tuple(_spending(judge, sums[judge]) for judge in sorted(sums, key=natural_key))


def _spending(judge: str, one: _JudgeSum) -> JournalSpending:
    seconds = sorted(one.calls.seconds)
    counts: dict[str, Any] = {name: dict(sorted(words.items())) for name, words in one.words.items()}
    return JournalSpending(
        **msgspec.structs.asdict(one.calls.spending(judge)),
        first=one.first,
        last=one.last,
        seconds_p50=_percentile(seconds, 50),
        seconds_p95=_percentile(seconds, 95),
        **counts,
    )


def _percentile(ordered: list[float], percent: int) -> float | None:
    """The least value that so many percent of the values do not exceed; None of no values.

    >>> _percentile([1.0, 2.0, 3.0, 4.0], 50), _percentile([1.0, 2.0, 3.0, 4.0], 95)
    (2.0, 4.0)
    """
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else None
