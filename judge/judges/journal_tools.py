"""What is done with journals that nobody is writing: check, rescue, export, join, and add up.

The released form of a journal has a line of JSON for each completion. Parameters, messages and completion stand in a
line as the journal holds them, so that its checksum still proves them.
"""

import contextlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from judge.errors import InputError, OperationalError, UsageError
from judge.io.files import StrPath
from judge.io.folder import Pieces, temporary_name, write_atomic
from judge.io.ids import natural_key
from judge.judges import journal_store
from judge.judges.chat import without_secrets
from judge.judges.credentials import known_secrets
from judge.judges.journal import Journal
from judge.judges.prices import CallSum, Spending
from judge.records import Record

LONGEST = 1 << 26
"""Bytes of a line; a completion is at most a few MiB."""
_TOGETHER = 1000
"""Completions of one transaction."""
_SHOWN = 10
"""Most problems of structure that SQLite is asked for."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(journal_store.RowLine).decode


class _ExportedFacts(msgspec.Struct):
    """The line of an exported file that is about judges."""

    facts: list[str]


_FACTS = b'{"facts":'
"""What this line begins with."""


def read_journal(place: StrPath) -> Iterator[journal_store.Recorded]:
    """The completions of a journal or of a file exported from one, each checked. Errors are those of `placed_rows`."""
    return (journal_store.recorded(row) for _, row in placed_rows(place))


def placed_rows(place: StrPath) -> Iterator[tuple[str | int, journal_store.Row]]:
    """The rows of a journal that no process is writing, in the order of their digests, or of an exported file.

    Each is checked, and comes after what it is found by: its digest, or the byte at which its line begins. An
    InputError if a row is damaged; other errors are those of `Store`.
    """
    if not is_exported(place):
        with contextlib.closing(journal_store.Store(place)) as store:
            for row in store.pages():
                yield row[0], store.sound(row, tuple)
        return
    number = begin = 0
    try:
        with Path(place).open("rb") as file:
            while text := file.readline(LONGEST):
                number += 1
                if not text.startswith(_FACTS):
                    yield begin, read_line(text)
                begin += len(text)
    except journal_store.DamagedRow as error:
        why = f"no completion as `judge journal export` writes it: {error}"
        raise InputError(f"{place}: line {number}: {why}") from error
    except OSError as error:
        raise InputError(f"{place}: cannot be read: {error.strerror}") from error


def is_exported(place: StrPath) -> bool:
    """Whether a journal is a file that begins as an exported one does."""
    with contextlib.suppress(OSError):
        if Path(place).is_file():
            with Path(place).open("rb") as file:
                return file.read(1) == b"{"
    return False


def read_line(text: bytes) -> journal_store.Row:
    """The row in a line of an exported file; a DamagedRow if it is none, or not what was recorded."""
    try:
        values = msgspec.structs.astuple(_decode(text))
        row = tuple(bytes(value).decode() if isinstance(value, msgspec.Raw) else value for value in values)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise journal_store.DamagedRow(str(error)) from error
    journal_store.check_row(row)
    journal_store.recorded(row)
    return row


class JournalReport(NamedTuple):
    """How many completions of a journal are what was recorded; digests of the others, or "" for the file, and why."""

    sound: int
    problems: tuple[tuple[str, str], ...]


def _check(store: journal_store.Store, take: Callable[[list[journal_store.Row]], object]) -> JournalReport:
    """Hand over the sound completions of a journal, and report on all of them."""
    # By hashes of the digests: a journal may hold millions.
    sound = set[int]()
    problems = dict[str, str]()
    for page in journal_store.paged(store.scan(), _TOGETHER):
        kept: list[journal_store.Row] = []
        for row in page:
            try:
                journal_store.check_row(row)
                journal_store.recorded(row)
            except journal_store.DamagedRow as error:
                problems.setdefault(str(row[0]), str(error))
            else:
                kept.append(row)
                sound.add(hash(row[0]))
        take(kept)
    with contextlib.suppress(InputError):
        for (digest,) in store.pages("digest"):
            if hash(digest) not in sound:
                problems.setdefault(str(digest), "its page cannot be read")
    return JournalReport(len(sound), tuple(sorted(problems.items())))


def verify_journal(place: StrPath) -> JournalReport:
    """Check every completion of a journal that no process is writing; an InputError if nothing of it can be read."""
    with contextlib.closing(journal_store.Store(place, "salvage")) as store:
        report = _check(store, lambda rows: None)
        problems = [*(("", f"SQLite: {line}") for line in store.problems(_SHOWN)), *report.problems]
    if problems and not report.sound and not report.problems:
        raise InputError(f"{place}: cannot be read as a journal: {problems[0][1]}")
    return report._replace(problems=tuple(problems))


def salvage_journal(path: StrPath, new: StrPath) -> JournalReport:
    """Write what is sound in a damaged journal into a new one; the old one is not changed.

    A UsageError if there is something at `new`. An InputError if nothing in the journal is sound; other errors are
    those of `Store`. An OperationalError if the new journal cannot be written.
    """
    with contextlib.closing(journal_store.Store(path, "salvage")) as store, _new_journal(new) as target:
        report = _check(store, target.record)
        if not report.sound:
            raise InputError(f"{store.file.name}: holds no completion that is sound")
        with contextlib.suppress(InputError):
            target.store.add_facts(store.facts())
        return report


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


def _facts_of(place: StrPath) -> list[journal_store.Fact]:
    """What a journal, or a file exported from one, says of judges beside their completions."""
    if not is_exported(place):
        with contextlib.closing(journal_store.Store(place)) as store:
            return store.facts()
    facts: list[journal_store.Fact | None] = []
    with Path(place).open("rb") as file:
        while text := file.readline(LONGEST):
            if text.startswith(_FACTS):
                with contextlib.suppress(msgspec.MsgspecError):
                    facts += map(journal_store.read_fact, msgspec.json.decode(text, type=_ExportedFacts).facts)
    return [fact for fact in facts if fact is not None]


def exported_lines(place: StrPath) -> Iterator[bytes]:
    """The completions of a journal by their digests, a line each, without keys.

    A last line has what the journal says of judges, if it says something. Errors are those of `placed_rows`.
    """
    secrets = known_secrets()
    for _, row in placed_rows(place):
        completion = journal_store.completion_of(row)
        # A row that held a key gets the checksum of the rest.
        if (clean := without_secrets(completion, secrets)) != completion:
            row = journal_store.sealed((*row[:9], msgspec.json.encode(clean).decode(), row[10]))
        values = dict(zip(journal_store.COLUMNS, row, strict=True))
        for name in ("parameters", "messages", "completion"):
            values[name] = msgspec.Raw(values[name])
        yield _encode(journal_store.RowLine(**values)) + b"\n"
    facts = _facts_of(place)
    if facts:
        yield _encode(_ExportedFacts([" ".join(fact) for fact in facts])) + b"\n"


def export_journal(place: StrPath, out: StrPath) -> int:
    """Write the completions of a journal into a new file, as `exported_lines` gives them, and give their number.

    A UsageError if there is something at `out` or it is named as a Parquet file, an OperationalError if it cannot be
    written.
    """
    if Path(out).suffix.lower() == ".parquet":
        raise UsageError(f"{out}: a journal is exported as JSON lines, which polars, pandas and DuckDB make Parquet of")
    written = 0

    def lines() -> Iterator[bytes]:
        nonlocal written
        written = 0
        for line in exported_lines(place):
            written += not line.startswith(_FACTS)
            yield line

    write_atomic(_new(out), Pieces(lines))
    return written


def merge_journals(places: Sequence[StrPath], new: StrPath) -> tuple[int, int, list[dict[str, str]]]:
    """Write the completions of journals and exported files into a new journal; the first one named wins.

    The number of its completions comes back, and that of the completions left out because an earlier journal has the
    question. So do the questions among these that two journals answer differently, with digest, path of the later one,
    criterion, turn_id and response_id.

    A UsageError if there is something at `new`; other errors are those of `placed_rows` and of `Journal.record`.
    """
    repeated = 0
    conflicts: list[dict[str, str]] = []
    with _new_journal(new) as target:
        for place in places:
            for page in journal_store.paged((row for _, row in placed_rows(place)), _TOGETHER):
                earlier = target.store.rows(row[0] for row in page)
                for row in page:
                    first = earlier.setdefault(row[0], row)
                    repeated += first is not row
                    if _answer(first) != _answer(row):
                        about = dict(zip(journal_store.COLUMNS[6:9], row[6:9], strict=True))
                        conflicts.append({"digest": row[0], "path": str(place), **about})
                target.record(page)
            target.store.add_facts(_facts_of(place))
        return len(target), repeated, conflicts


def _answer(row: journal_store.Row) -> tuple[object, ...]:
    """What a verdict is read from; time and tokens differ whenever the same is asked twice."""
    completion = journal_store.completion_of(row)
    return completion.text, completion.finish_reason, completion.probabilities


class JournalSpending(Record, frozen=True, kw_only=True):
    """What all completions of a judge in a journal took."""

    judge: str
    spending: Spending
    first: str
    """When the first completion was recorded, and when the last was: UTC, as `2025-01-31T12:00:00.000Z`."""
    last: str
    seconds_p50: float | None
    """Half of the timed calls took this long or less; None if no call is timed."""
    seconds_p95: float | None


def read_spending(place: StrPath) -> tuple[JournalSpending, ...]:
    """What each judge's completions in a journal took, in natural order of the judges' names.

    An InputError if a completion is damaged; other errors are those of `Store`.
    """
    sums: dict[str, CallSum] = defaultdict(CallSum)
    times: dict[str, tuple[str, str]] = {}
    with contextlib.closing(journal_store.Store(place)) as store:
        for row in store.pages():
            judge = row[1]
            moment = row[10]
            sums[judge].add(store.sound(row, journal_store.completion_of))
            first, last = times.get(judge, (moment, moment))
            times[judge] = min(first, moment), max(last, moment)
    return tuple(_spending(judge, sums[judge], *times[judge]) for judge in sorted(sums, key=natural_key))


def _spending(judge: str, calls: CallSum, first: str, last: str) -> JournalSpending:
    seconds = sorted(calls.seconds)
    p50, p95 = (seconds[-(-len(seconds) * percent // 100) - 1] if seconds else None for percent in (50, 95))
    return JournalSpending(
        judge=judge, spending=calls.spending, first=first, last=last, seconds_p50=p50, seconds_p95=p95
    )
