"""What journals hold, read where they lie: for counts and estimates, without a copy and without a change."""

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from judge.errors import InputError, JudgeError
from judge.files.extras import need_extra
from judge.files.paths import StrPath
from judge.models.journal_rows import (
    SCHEMA,
    DamagedRow,
    check_row,
    columns_of,
    completion_of,
    open_to_read,
    salvage_hint,
    unreadable,
)
from judge.models.records import Completion, Message
from judge.models.shared.address import SHARED, is_database
from judge.models.spending import CallFacts, call_sample

if TYPE_CHECKING:
    from judge.models.shared.reader import SharedReader

_Found = TypeVar("_Found")


class JournalView:
    """The completions of several journals as if they were in one; the first one that holds a digest answers.

    A journal that another process is writing is read too. What came in its last second or two may be missing.

    Args:
        places: The journals: files, or addresses of the databases of shared ones.

    Raises:
        UsageError: A database cannot be used as its address says.
        InputError: One of them is no journal.
        OperationalError: A database cannot be reached.
    """

    def __init__(self, places: Iterable[StrPath]) -> None:
        self._files: list[_File | SharedReader] = []
        try:
            self._files.extend(map(_opened, places))
        except JudgeError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __bool__(self) -> bool:
        """Whether they hold any completion."""
        return any(file.holds_some() for file in self._files)

    def close(self) -> None:
        """Release the files."""
        for file in self._files:
            file.close()

    def meta(self, key: str) -> str | None:
        """A fact kept beside the completions; None if it is in no journal."""
        values = (file.meta(key) for file in self._files)
        return next((value for value in values if value is not None), None)

    def get(self, digest: str) -> Completion | None:
        """The completion recorded under a digest, or None.

        Raises:
            InputError: A journal is damaged at this completion.
        """
        completions = (file.get(digest) for file in self._files)
        return next((completion for completion in completions if completion is not None), None)

    def ahead(self, digests: Iterable[str]) -> None:
        """Fetch what databases hold under some digests, for the `get` of each that follows; files fetch nothing."""
        distant = [file for file in self._files if not isinstance(file, _File)]
        wanted = list(digests) if distant else []
        for database in distant:
            database.ahead(wanted)

    def sample(self, judge: str, most: int) -> list[tuple[tuple[Message, ...], CallFacts]]:
        """What a judge was asked and what the calls took, of at most `most` calls; the same ones each time."""
        drawn: dict[str, tuple[tuple[Message, ...], CallFacts]] = {}
        for file in self._files:
            for digest, messages, facts in file.sample(judge, most):
                drawn.setdefault(digest, (messages, facts))
        return [drawn[digest] for digest in sorted(drawn)[:most]]


def _opened(place: StrPath) -> "_File | SharedReader":
    if not is_database(place):
        return _File(Path(place))
    need_extra("postgres", SHARED)
    from judge.models.shared.reader import SharedReader  # needs the extra

    return SharedReader(place)


class _File:
    """One journal in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._live = False
        """Whether another process is writing it."""
        try:
            self._connection = self._open()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._unreadable(error) from error

    def holds_some(self) -> bool:
        """Whether it holds any completion."""
        return self.read(_holds_some)

    def meta(self, key: str) -> str | None:
        """A fact kept beside the completions; None if not set."""
        return self.read(lambda connection: _meta(connection, key))

    def sample(self, judge: str, most: int) -> list[tuple[str, tuple[Message, ...], CallFacts]]:
        """Digest, messages and facts of at most `most` calls to a judge."""
        return self.read(lambda connection: call_sample(connection, judge, most))

    def get(self, digest: str) -> Completion | None:
        """The completion recorded under a digest, or None."""

        def look(connection: sqlite3.Connection) -> Completion | None:
            row = connection.execute(self._select, (digest,)).fetchone()
            if row is None:
                return None
            check_row(row)
            return completion_of(row)

        try:
            return self.read(look)
        except DamagedRow as error:
            raise InputError(
                f"{self._path}: damaged at the completion {digest}: {error}; {salvage_hint(self._path)}"
            ) from error

    def read(self, look: Callable[[sqlite3.Connection], _Found]) -> _Found:
        """What a look at the journal finds.

        Raises:
            InputError: The journal cannot be read.
            DamagedRow: The look says so.
        """
        try:
            try:
                return look(self._connection)
            except (sqlite3.Error, DamagedRow) as error:
                if not self._live and "locked" not in str(error):
                    raise
                # A page may be written while it is read, so a second look decides.
                self.close()
                self._connection = self._open()
                return look(self._connection)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._unreadable(error) from error

    def close(self) -> None:
        """Release the file."""
        self._connection.close()

    def _open(self) -> sqlite3.Connection:
        connection = open_to_read(self._path)
        try:
            try:
                columns = columns_of(connection)
            except sqlite3.Error as error:
                if "locked" not in str(error):
                    raise
                self._live = True
                connection.close()
                # No lock is asked for, which the other process would not give.
                connection = sqlite3.connect(f"{self._path.absolute().as_uri()}?immutable=1", uri=True)
                if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'completion'").fetchone():
                    # Its tables have not reached the file yet.
                    connection.close()
                    connection = sqlite3.connect(":memory:")
                    connection.executescript(SCHEMA)
                columns = columns_of(connection)
            connection.execute("SELECT 1 FROM completion LIMIT 1").fetchone()
        except BaseException:
            connection.close()
            raise
        self._select = f"SELECT {columns} FROM completion WHERE digest = ?"  # noqa: S608 - names of columns only
        return connection

    def _unreadable(self, error: Exception) -> InputError:
        return InputError(f"{self._path}: cannot be read as a journal: {unreadable(self._path, error)}")


def _holds_some(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM completion LIMIT 1").fetchone() is not None


def _meta(connection: sqlite3.Connection, key: str) -> str | None:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])
