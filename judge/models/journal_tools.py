"""What is done with journals that nobody is writing: check, rescue and convert, export, and join them.

The released form of a journal has a line of JSON for each completion. Parameters, messages and completion stand in a
line as the journal holds them, so that its checksum still proves them. A Parquet file has the same fields as columns.
"""

import contextlib
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Annotated, NamedTuple

import msgspec

from judge.errors import InputError, OperationalError, UsageError
from judge.files.extras import need_extra
from judge.files.folder import open_new, temporary_name
from judge.files.parquet import SUFFIX, Schema, is_parquet, write_parquet
from judge.files.paths import StrPath
from judge.models.address import without_credentials
from judge.models.journal import Journal
from judge.models.journal_file import FileStore, lacks_log, open_store
from judge.models.journal_rows import (
    ADD_META,
    COLUMNS,
    DamagedRow,
    Recorded,
    Row,
    completion_of,
    is_database,
    recorded,
    todays_row,
    with_completion,
)
from judge.models.journal_store import UNREADABLE, Store, out_of_reach, paged
from judge.models.secrets import Secrets, known_secrets
from judge.models.spending import CallFacts, CallSum, Spending
from judge.text.ids import natural_key

_LONGEST = 1 << 26
"""Bytes of a line; a completion is at most a few MiB."""
_BEGINNING = 4
"""Bytes by which an exported file is known."""
_TOGETHER = 1000
"""Completions of one transaction."""
_SHOWN = 10
"""Most problems of structure that SQLite is asked for."""


# ---------------------------------------------------------------- reading


class _Line(msgspec.Struct):
    """A row of COLUMNS; what is JSON in the journal is JSON in the line."""

    digest: str
    judge: str
    parameters: msgspec.Raw
    messages: msgspec.Raw
    sample: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    form: str
    criterion: str
    turn_id: str
    response_id: str
    completion: msgspec.Raw
    recorded: str
    checksum: str | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Line).decode


def read_journal(place: StrPath) -> Iterator[Recorded]:
    """The completions of a journal or of a file exported from one, each checked. Errors are those of `placed_rows`."""
    return (recorded(row) for _, row in placed_rows(place))


def placed_rows(place: StrPath) -> Iterator[tuple[str | int, Row]]:
    """The rows of a journal that no process is writing, in the order of their digests, or of an exported file.

    Each is checked, and comes as this version records it, after what it is found by: the digest under which it is
    stored, or the byte at which its line begins.

    Raises:
        UsageError: The database cannot be used as its address says.
        InputError: The place holds no journal, or a row is damaged.
        OperationalError: The database cannot be reached.
    """
    if is_exported(place):
        yield from _lines(Path(place))
        return
    with contextlib.closing(_there(place)) as store:
        yield from store.placed_rows()


def line_at(file: IO[bytes], place: int) -> Row:
    """The row in the line that begins at a place of an exported file, checked.

    Raises:
        DamagedRow: It is no completion, or not what was recorded.
        OSError: The file cannot be read.
    """
    file.seek(place)
    try:
        return _row(file.readline(_LONGEST))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise DamagedRow(f"its content is not of a journal: {error}") from error


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


def _there(place: StrPath, *, broken: bool = False) -> Store:
    """A journal that nobody is writing.

    Raises:
        InputError: The file is missing, is in use, or is no journal.
    """
    if is_database(place):
        return open_store(place)
    if not Path(place).is_file():
        raise InputError(f"{place}: no such journal")
    return FileStore(Path(place), broken=broken)


def _lines(path: Path) -> Iterator[tuple[int, Row]]:
    number = place = 0
    try:
        with path.open("rb") as file:
            while text := file.readline(_LONGEST):
                number += 1
                yield place, _row(text)
                place += len(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, DamagedRow) as error:
        raise InputError(
            f"{path}: line {number}: no completion as `judge journal export` writes it: {error}"
        ) from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _row(text: bytes) -> Row:
    line = _decode(text)
    values = (getattr(line, name) for name in COLUMNS)
    row = tuple(bytes(value).decode() if isinstance(value, msgspec.Raw) else value for value in values)
    checked = todays_row(row, None)
    recorded(checked)
    return checked


# ---------------------------------------------------------------- checking and rescuing


class JournalReport(NamedTuple):
    """What a check of a journal found."""

    sound: int
    """Completions that are what was recorded."""
    unsealed: int
    """Those of them that an older version of judge recorded without a checksum."""
    problems: tuple[tuple[str, str], ...]
    """Digest of a completion, or an empty string for the file, and what is wrong."""
    repeated: int = 0
    """Completions of an older journal that were asked for at another address too, and are left out."""


class _Check:
    """The completions of a journal, sound and damaged, as they are read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # Of a damaged file, the version may be what cannot be read; then the checksums tell.
        self._version = None if store.version is None and not store.shared else store.known_version()
        self.unsealed = 0
        self.sound: set[int] = set()
        """Hashes of the digests, as they are stored: a journal may hold millions."""
        self.problems: dict[str, str] = {}
        """What is wrong, by digest; what is wrong with the file stands under an empty one."""

    def rows(self) -> Iterator[Row]:
        """The sound rows, as this version records them.

        Raises:
            InputError: The journal cannot be read for another reason than damage.
        """
        try:
            for row in self._store.scan():
                try:
                    today = todays_row(row, self._version)
                    recorded(today)
                except DamagedRow as error:
                    self.problems.setdefault(str(row[0]), str(error))
                    continue
                if hash(row[0]) not in self.sound:
                    self.sound.add(hash(row[0]))
                    self.unsealed += row[-1] is None
                    yield today
        except UNREADABLE as error:
            raise InputError(f"{self._store.name}: {out_of_reach(error)}") from error
        with contextlib.suppress(*UNREADABLE):
            for (digest,) in self._store.query("SELECT digest FROM completion ORDER BY digest"):
                if hash(digest) not in self.sound:
                    self.problems.setdefault(str(digest), "its page cannot be read")

    def lost(self) -> tuple[tuple[str, str], ...]:
        """What is damaged and not sound elsewhere."""
        return tuple(sorted(problem for problem in self.problems.items() if hash(problem[0]) not in self.sound))


def verify_journal(place: StrPath) -> JournalReport:
    """Check every completion of a journal that no process is writing; nothing is changed.

    Raises:
        UsageError: The database cannot be used as its address says.
        InputError: The place holds no journal, the file is in use, or nothing of it can be read.
        OperationalError: The database cannot be reached.
    """
    more: list[tuple[str, str]] = []
    if not is_database(place) and lacks_log(place):
        name = Path(place).name
        more.append(("", f"its -wal file is missing: bring {name}-wal, which may hold later completions"))
    with contextlib.closing(_there(place, broken=True)) as store:
        check = _Check(store)
        for _ in check.rows():
            pass
        if not store.shared:
            try:
                lines = [line for (line,) in store.query(f"PRAGMA integrity_check({_SHOWN})") if line != "ok"]
            except UNREADABLE as error:
                lines = [str(error)]
            more += [("", f"SQLite: {line}") for line in lines]
    lost = check.lost()
    if not check.sound and more and not lost:
        raise InputError(f"{place}: cannot be read as a journal: {more[0][1]}")
    return JournalReport(len(check.sound), check.unsealed, tuple(sorted((*more, *lost))))


def salvage_journal(path: StrPath, new: StrPath) -> JournalReport:
    """Write what is sound in a journal into a new one of this version; the old one is not changed.

    Args:
        path: The journal, damaged or of an older version.
        new: Where the new one goes; nothing may be there.

    Raises:
        UsageError: There is something at `new`.
        InputError: The journal is missing or cannot be read, or nothing in it is sound.
        OperationalError: The new journal cannot be written.
    """
    with contextlib.closing(_there(path, broken=True)) as store, _new_journal(new) as target:
        check = _Check(store)
        for page in paged(check.rows(), _TOGETHER):
            target.record(page)
        if not check.sound:
            raise InputError(f"{path}: holds no completion that is sound")
        with contextlib.suppress(*UNREADABLE):
            for key, value in store.facts():
                target.set_meta(key, value)
        repeated = len(check.sound) - len(target)
    return JournalReport(len(check.sound) - repeated, check.unsealed, check.lost(), repeated)


@contextlib.contextmanager
def _new_journal(path: StrPath) -> Iterator[Journal]:
    """A journal that is at its place once it is complete.

    Raises:
        UsageError: There is something at the place.
        OperationalError: It cannot be written.
    """
    path = Path(path)
    if os.path.lexists(path):
        raise UsageError(f"{path}: is there already; -o names a new file")
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


# ---------------------------------------------------------------- exporting


def exported_lines(place: StrPath) -> Iterator[bytes]:
    """The completions of a journal in the order of their digests, a line each, without keys and passwords.

    Raises:
        InputError: The file is missing, is no journal, or is damaged.
    """
    for row in _exported_rows(place):
        values = dict(zip(COLUMNS, row, strict=True))
        for name in ("parameters", "messages", "completion"):
            values[name] = msgspec.Raw(values[name].encode())
        yield _encode(_Line(**values)) + b"\n"


def export_journal(place: StrPath, out: StrPath) -> int:
    """Write the completions of a journal without keys and passwords, and give their number.

    Args:
        place: The journal.
        out: A new file: Parquet if it ends with `.parquet` in any case, else a line of JSON for each completion.

    Raises:
        UsageError: There is something at `out`, or Parquet is asked for and polars is not installed.
        InputError: The journal is missing or damaged.
        OperationalError: The file cannot be written.
    """
    out = Path(out)
    if os.path.lexists(out):
        raise UsageError(f"{out}: is there already; -o names a new file")
    temporary = out.with_name(temporary_name(out.name))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.suffix.lower() == SUFFIX:
            return _export_parquet(place, out)
        count = 0
        with open_new(temporary) as file:
            for line in exported_lines(place):
                file.write(line)
                count += 1
        temporary.replace(out)
    except OSError as error:
        raise OperationalError(f"{out}: cannot be written: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return count


def _export_parquet(place: StrPath, out: Path) -> int:
    need_extra("crowd", f"{out}: a Parquet file")
    import polars as pl

    schema: Schema = {name: pl.Int64 if name == "sample" else pl.String for name in COLUMNS}
    return write_parquet(out, schema, _exported_rows(place))


def _exported_rows(place: StrPath) -> Iterator[Row]:
    secrets = known_secrets()
    return (_without_secrets(row, secrets) for _, row in placed_rows(place))


def _without_secrets(row: Row, secrets: Secrets) -> Row:
    """The row without secrets in what came back; a row that held one gets the checksum of what is left."""
    completion = completion_of(row)
    clean = msgspec.structs.replace(
        completion,
        text=secrets.scrub(completion.text),
        **{
            name: secrets.scrub(value)
            for name in ("finish_reason", "model", "system_fingerprint", "endpoint", "raw")
            if (value := getattr(completion, name)) is not None
        },
    )
    return row if clean == completion else with_completion(row, clean)


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
        InputError: A journal is missing or damaged.
        OperationalError: The new journal cannot be written.
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
                with contextlib.closing(_there(place)) as store:
                    target.store.change(ADD_META, store.facts())
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


class _Row(CallFacts, frozen=True):
    """The part of a completion that `judge journal stats` shows."""

    finish_reason: str | None = None
    model: str | None = None
    system_fingerprint: str | None = None


class _JournalSum(CallSum):
    """The completions of one judge in a journal, added up as they are read."""

    def __init__(self) -> None:
        super().__init__()
        self._first, self._last = "~", ""
        self._words: Counter[tuple[str | None, ...]] = Counter()

    def count(self, took: _Row, form: str, recorded: str) -> None:
        """Count a completion."""
        self.add(took)
        self._first, self._last = min(self._first, recorded), max(self._last, recorded)
        self._words[form, took.finish_reason, took.model, took.system_fingerprint] += 1

    def in_journal(self, judge: str) -> JournalSpending:
        """What they took, under the name of the judge."""
        seconds = sorted(self.seconds)
        sums = msgspec.structs.asdict(self.spending(judge))
        forms, finish_reasons, models, fingerprints = map(self._by_word, range(4))
        return JournalSpending(
            **{**sums, "cost": math.fsum(self.costs), "seconds": math.fsum(seconds)},
            first=self._first,
            last=self._last,
            seconds_p50=_percentile(seconds, 50),
            seconds_p95=_percentile(seconds, 95),
            forms=forms,
            finish_reasons=finish_reasons,
            models=models,
            fingerprints=fingerprints,
        )

    def _by_word(self, place: int) -> dict[str, int]:
        counts: Counter[str] = Counter()
        for words, count in self._words.items():
            counts[words[place] or ""] += count
        return dict(sorted(counts.items()))


def read_spending(place: StrPath) -> tuple[JournalSpending, ...]:
    """What each judge's completions took, in natural order of the judges' names.

    Args:
        place: A journal that no process is writing, or the address of a shared one.

    Raises:
        UsageError: The database cannot be used as its address says.
        InputError: The place holds no journal, or a damaged one, or another process is using it.
        OperationalError: The database cannot be reached.
    """
    by_judge: dict[str, _JournalSum] = {}
    decoder = msgspec.json.Decoder(_Row)
    with contextlib.closing(_there(place)) as store:
        store.known_version()
        try:
            for page in store.pages("digest, judge, completion, form, recorded"):
                for _, judge, completion, form, recorded_at in page:
                    by_judge.setdefault(judge, _JournalSum()).count(decoder.decode(completion), form, recorded_at)
        except (*UNREADABLE, msgspec.MsgspecError, TypeError) as error:
            raise store.unreadable(error) from error
    return tuple(by_judge[judge].in_journal(judge) for judge in sorted(by_judge, key=natural_key))


def _percentile(ordered: list[float], percent: int) -> float | None:
    """The least value that so many percent of the values do not exceed; None of no values.

    >>> _percentile([1.0, 2.0, 3.0, 4.0], 50), _percentile([1.0, 2.0, 3.0, 4.0], 95)
    (2.0, 4.0)
    """
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else None
