"""The journal: every paid completion, by the digest of its request, so that no call is paid for twice.

SQLite in WAL mode, one writer. A completion counts only after its commit has reached the disk; commits are
grouped, so that many completions share one wait for the disk.
"""

import asyncio
import contextlib
import hashlib
import queue
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from judge.errors import InputError, OperationalError
from judge.files.paths import StrPath
from judge.models.records import AnswerForm, Completion, Message, Request

SCHEMA_VERSION = "1"
_GROUP = 256
"""Most completions in one commit."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS completion (
    digest TEXT PRIMARY KEY,
    judge TEXT NOT NULL,
    parameters TEXT NOT NULL,
    messages TEXT NOT NULL,
    sample INTEGER NOT NULL,
    form TEXT NOT NULL,
    criterion TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    response_id TEXT NOT NULL,
    completion TEXT NOT NULL,
    recorded TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
"""
_INSERT = (
    "INSERT OR IGNORE INTO completion "
    "(digest, judge, parameters, messages, sample, form, criterion, turn_id, response_id, completion) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)

_encoder = msgspec.json.Encoder(order="deterministic")


def request_digest(judge: str, parameters: Mapping[str, Any], request: Request) -> str:
    """SHA-256, in hexadecimal, over the judge, every sent parameter, the full messages and the sample index."""
    return hashlib.sha256(_encoder.encode([judge, dict(parameters), request.messages, request.sample])).hexdigest()


class _Write(NamedTuple):
    row: tuple[Any, ...]
    loop: asyncio.AbstractEventLoop
    done: "asyncio.Future[None]"


class Journal:
    """A journal file, open in one process at a time; without a path, the journal is kept in memory only.

    Raises:
        InputError: The file is no journal of this version, or another process holds it.
        OperationalError: The disk cannot be written.
    """

    def __init__(self, path: StrPath | None) -> None:
        path = None if path is None else Path(path)
        self._name = "the journal in memory" if path is None else str(path)
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._failure: OperationalError | None = None
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            address = ":memory:" if path is None else path.absolute().as_uri()
            self._connection = sqlite3.connect(address, uri=True, check_same_thread=False, timeout=0)
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"{self._name}: cannot be opened as a journal: {error}") from error
        try:
            # Exclusive: a second process on the same journal would pay for the same calls again.
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.executescript(_SCHEMA)
            version = self.meta("schema")
            if version is None:
                self.set_meta("schema", SCHEMA_VERSION)
            elif version != SCHEMA_VERSION:
                raise InputError(
                    f"{self._name}: journal of schema version {version}, this version of judge writes {SCHEMA_VERSION}"
                )
            self._digests = {row[0] for row in self._connection.execute("SELECT digest FROM completion")}
        except sqlite3.Error as error:
            self._connection.close()
            locked = "locked" in str(error)
            why = "another judge process is using it" if locked else str(error)
            raise InputError(f"{self._name}: cannot be used as a journal: {why}") from error
        except InputError:
            self._connection.close()
            raise
        self._writer = threading.Thread(target=self._write, name="journal", daemon=True)
        self._writer.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._digests)

    def __contains__(self, digest: str) -> bool:
        return digest in self._digests

    def close(self) -> None:
        """Write the queued completions and release the file."""
        self._queue.put(None)
        self._writer.join()
        # Back to a single plain file: it can be copied, and read from a folder that cannot be written to.
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()

    def meta(self, key: str) -> str | None:
        """A fact kept beside the completions, such as the answer form that an endpoint takes; None if not set."""
        with self._lock:
            row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        """Record a fact beside the completions, on the disk.

        Raises:
            OperationalError: The disk cannot be written.
        """
        try:
            with self._lock, self._connection:
                self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
        except sqlite3.Error as error:
            raise OperationalError(f"{self._name}: cannot be written: {error}") from error

    def get(self, digest: str) -> Completion | None:
        """The completion recorded under a digest, or None.

        Raises:
            InputError: The journal is damaged at this completion.
        """
        if digest not in self._digests:
            return None
        try:
            with self._lock:
                query = "SELECT completion FROM completion WHERE digest = ?"
                row = self._connection.execute(query, (digest,)).fetchone()
            return msgspec.json.decode(row[0], type=Completion)
        except (sqlite3.Error, msgspec.MsgspecError, TypeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{self._name}: damaged at the completion {digest}: {error}") from error

    def adopt(self, path: StrPath) -> None:
        """Copy the completions of another journal into this one, so that no call is paid for again.

        Raises:
            InputError: The other journal cannot be read, or this one cannot be written.
        """
        try:
            with contextlib.closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)) as source:
                completions = source.execute("SELECT * FROM completion")
                facts = source.execute("SELECT * FROM meta WHERE key != 'schema'")
                marks = ", ".join("?" for _ in completions.description)
                with self._lock, self._connection:
                    self._connection.executemany(f"INSERT OR IGNORE INTO completion VALUES ({marks})", completions)  # noqa: S608 - question marks only
                    self._connection.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", facts)
                    self._digests = {row[0] for row in self._connection.execute("SELECT digest FROM completion")}
        except sqlite3.Error as error:
            raise InputError(f"{path}: its completions cannot be taken over: {error}") from error

    async def put(
        self,
        digest: str,
        judge: str,
        parameters: Mapping[str, Any],
        request: Request,
        completion: Completion,
    ) -> None:
        """Record a completion; returns when it is on the disk.

        Args:
            digest: The digest of the request, from `request_digest`.
            judge: The name of the judge.
            parameters: Everything that was sent beside the messages.
            request: The request, of which the journal keeps messages and ids.
            completion: What came back.

        Raises:
            OperationalError: The disk cannot be written; the completion is not recorded.
        """
        if self._failure is not None:
            raise self._failure
        loop = asyncio.get_running_loop()
        row = (
            digest,
            judge,
            _encoder.encode(dict(parameters)).decode(),
            msgspec.json.encode(request.messages).decode(),
            request.sample,
            request.form,
            request.criterion,
            request.turn_id,
            request.response_id,
            msgspec.json.encode(completion).decode(),
        )
        write = _Write(row, loop, loop.create_future())
        self._queue.put(write)
        await write.done
        self._digests.add(digest)

    def _write(self) -> None:
        stopping = False
        while not stopping:
            first = self._queue.get()
            if first is None:
                return
            group = [first]
            while len(group) < _GROUP and not self._queue.empty():
                following = self._queue.get()
                if following is None:
                    stopping = True
                    break
                group.append(following)
            try:
                with self._lock, self._connection:
                    self._connection.executemany(_INSERT, [write.row for write in group])
            except Exception as error:  # noqa: BLE001 - a writer that dies leaves everyone waiting forever
                self._failure = OperationalError(f"{self._name}: cannot be written: {error}")
            for loop in {write.loop for write in group}:
                done = [write.done for write in group if write.loop is loop]
                # A canceled loop is closed and waits for nothing; its paid completions are written all the same.
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(_settle, done, self._failure)


def _settle(done: "list[asyncio.Future[None]]", failure: OperationalError | None) -> None:
    for future in done:
        if future.done():
            continue
        if failure is None:
            future.set_result(None)
        else:
            future.set_exception(failure)


class Recorded(NamedTuple):
    """One completion of a journal, with the request that it answers."""

    digest: str
    judge: str
    parameters: dict[str, Any]
    messages: tuple[Message, ...]
    sample: int
    form: AnswerForm
    completion: Completion


def read_journal(path: StrPath) -> Iterator[Recorded]:
    """The completions of a journal that no process is writing, in the order of their digests.

    Raises:
        InputError: The file is missing or is no journal.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such journal")
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            rows = connection.execute(
                "SELECT digest, judge, parameters, messages, sample, form, completion FROM completion ORDER BY digest"
            )
            for digest, judge, parameters, messages, sample, form, completion in rows:
                yield Recorded(
                    digest,
                    judge,
                    msgspec.json.decode(parameters),
                    msgspec.json.decode(messages, type=tuple[Message, ...]),
                    sample,
                    form,
                    msgspec.json.decode(completion, type=Completion),
                )
        finally:
            connection.close()
    except (sqlite3.Error, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as a journal: {error}") from error
