"""The labels of a desk: one SQLite file, to which rows are added and in which none is changed or removed.

A label is on the disk before anybody is told that it was saved. Of several labels by one assessor for one response and
criterion the last one counts; an undone one does not.
"""

import contextlib
import itertools
import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import filelock

from judge.ask.results import Label
from judge.errors import InputError, OperationalError
from judge.extra.desk.app import Busy, Seat, checked_token, new_token
from judge.gold import UNABLE
from judge.gold.plan import PlanRow
from judge.gold.sources import STORE_SCHEMA, STORE_SCHEMAS


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other desks off a store; the lock ends with its process, however that ends."""
    # In a file of its own, so that others can read the labels meanwhile.
    lock = filelock.FileLock(path.with_name(f".{path.name}.lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be used as a store of labels: {error}") from error
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout as error:
        raise OperationalError(f"{path}: another desk serves it") from error
    except OSError as error:
        raise OperationalError(f"{path}: {lock.lock_file} cannot be written: {error}") from error
    try:
        yield
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE item (
    item INTEGER PRIMARY KEY, turn_id TEXT NOT NULL, topic_id TEXT NOT NULL, response_id TEXT NOT NULL,
    text_sha256 TEXT NOT NULL, run_id TEXT, inclusion_probability REAL NOT NULL, stratum TEXT NOT NULL,
    shared INTEGER NOT NULL
);
"""
_ROUND = """
CREATE TABLE {people} (assessor INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, token TEXT NOT NULL);
CREATE TABLE {tasks} (
    assessor INTEGER NOT NULL, place INTEGER NOT NULL, item INTEGER NOT NULL, criterion TEXT NOT NULL,
    PRIMARY KEY (assessor, place)
);
CREATE TABLE {labels} (
    number INTEGER PRIMARY KEY AUTOINCREMENT, assessor INTEGER NOT NULL, item INTEGER, criterion TEXT, grade INTEGER,
    unable INTEGER, comment TEXT, made TEXT, at TEXT NOT NULL, undoes INTEGER
);
CREATE VIEW {view} AS
    SELECT item, {people}.name AS assessor, turn_id, topic_id, response_id, text_sha256, run_id, criterion, grade,
        unable, comment, made, inclusion_probability, stratum, shared, at
    FROM {labels} JOIN {people} USING (assessor) JOIN item USING (item)
    WHERE number IN (
        SELECT max(number) FROM {labels}
        WHERE undoes IS NULL AND number NOT IN (SELECT undoes FROM {labels} WHERE undoes IS NOT NULL)
        GROUP BY {labels}.assessor, item, criterion
    );
"""


class StoreTables(NamedTuple):
    """The names of the tables that hold one round of labels: who labels what, and the labels."""

    people: str
    tasks: str
    labels: str
    view: str
    """The labels that count."""

    def create(self, write: sqlite3.Connection) -> None:
        """Make the tables."""
        for statement in filter(str.strip, self.sql(_ROUND).split(";\n")):
            write.execute(statement)

    def sql(self, statement: str) -> str:
        """A statement about the tables, in which their roles stand in braces."""
        return statement.format(**self._asdict())


_SHARED = "SELECT CAST(assessor AS TEXT), sum(shared) FROM task JOIN item USING (item) GROUP BY assessor"
_PEOPLE = "SELECT assessor, name, token FROM {people} ORDER BY assessor"
_TASKS = "SELECT * FROM {tasks} ORDER BY assessor, place"
_GIVEN = "SELECT number, assessor, item, criterion, grade, comment, undoes FROM {labels} ORDER BY number"
_ADD = (
    "INSERT INTO {labels} (assessor, item, criterion, grade, unable, comment, made, undoes, at) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
ASSESSING = StoreTables(people="assessor", tasks="task", labels="label", view="labels")
STORE = "labels.sqlite"
"""Name of a store in a folder."""
PATIENCE = 5
"""Seconds that a label waits for a store that another program has locked."""


Prepare = Callable[[sqlite3.Connection], Callable[[sqlite3.Connection], None] | None]
"""Looks at a store, changes nothing, and returns what is to be written before it is used, if anything is."""


class DeskTask(NamedTuple):
    """One label to give."""

    place: int
    """Its number in the assessor's own order, from 1."""
    item: int
    """The place of the item in the list of all items, from 0."""
    criterion: str


class LabelStore(contextlib.AbstractContextManager["LabelStore"]):
    """A store of labels, open in one process at a time.

    Labels may be kept from any thread, one at a time. A new store is made where there is none; one that was made with
    other `settings`, by names of options, is refused. `dealt` has for each assessor the places of the items, in order.
    """

    _names = ASSESSING
    adjudicates = False
    """Whether what is kept are adjudications."""
    notes: tuple[str, ...] = ()
    """What is to be known of the deal, a sentence each."""

    def __init__(
        self,
        path: Path,
        settings: Mapping[str, str],
        items: Sequence[PlanRow],
        shared: Collection[int],
        assessors: Sequence[str],
        dealt: Sequence[Sequence[int]],
    ) -> None:
        def prepare(connection: sqlite3.Connection) -> Callable[[sqlite3.Connection], None] | None:
            # Before anything is changed: the file may be somebody else's.
            if connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                check_settings(connection, self.path, settings)
                return None
            return lambda write: _create(write, settings, items, shared, assessors, dealt)

        self._open_file(path, prepare)

    def _open_file(self, path: Path, prepare: Prepare) -> None:
        self.path = store_file(path)
        with contextlib.ExitStack() as held:
            try:
                self._connection = held.enter_context(_opened(self.path, prepare))
                self._read()
            except (sqlite3.Error, LookupError, TypeError, ValueError) as error:
                raise InputError(f"{self.path}: cannot be used as a store of labels: {error}") from error
            self._identity = _identity(self.path)
            self._turn = threading.Lock()
            self._held = held.pop_all()

    def _read(self) -> None:
        read = self._connection.execute
        self.seats = tuple(
            Seat(str(int(number)), name, checked_token(token)) for number, name, token in read(self._names.sql(_PEOPLE))
        )
        self._tasks: dict[str, list[DeskTask]] = {seat.path: [] for seat in self.seats}
        for assessor, place, item, criterion in read(self._names.sql(_TASKS)):
            self._tasks[str(assessor)].append(DeskTask(place, item - 1, criterion))
        self.shared = dict.fromkeys(self._tasks, 0) | ({} if self.adjudicates else dict(read(_SHARED)))
        """How many tasks of each seat are of items that every assessor labels; an item is adjudicated once."""
        self._named = {
            item - 1: (turn_id, response_id)
            for item, turn_id, response_id in read("SELECT item, turn_id, response_id FROM item")
        }
        """Turn and response of each item."""
        self._saved: dict[str, list[tuple[int, DeskTask, Label]]] = {path: [] for path in self._tasks}
        """The labels of each seat that were not undone, the last one last, with their numbers."""
        self._current: dict[str, dict[int, Label]] = {path: {} for path in self._tasks}
        places: dict[tuple[str, int, str], DeskTask] = {}
        for seat, tasks in self._tasks.items():
            for task in tasks:
                places[seat, task.item, task.criterion] = task
        for number, assessor, item, criterion, grade, comment, undoes in read(self._names.sql(_GIVEN)):
            path = str(assessor)
            if undoes is not None:
                self._take_back(path)
            else:
                task = places[path, item - 1, criterion]
                self._keep(path, number, task, self._label(task, grade, comment))

    def _label(self, task: DeskTask, grade: int | None, comment: str) -> Label:
        """What an assessor chose for a task; the comment is its rationale."""
        turn_id, response_id = self._named[task.item]
        reason = UNABLE if grade is None else None
        return Label(turn_id=turn_id, response_id=response_id, grade=grade, reason=reason, rationale=comment or None)

    def _keep(self, path: str, number: int, task: DeskTask, label: Label) -> None:
        self._saved[path].append((number, task, label))
        self._current[path][task.place] = label

    def _take_back(self, path: str) -> DeskTask:
        _, task, _ = self._saved[path].pop()
        del self._current[path][task.place]
        for _, earlier, label in self._saved[path]:
            if earlier == task:
                self._current[path][task.place] = label
        return task

    def __exit__(self, *error: object) -> None:
        # Back to a single plain file, which can be copied.
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA journal_mode = DELETE")
        self._held.close()

    def earlier(self, task: DeskTask) -> Sequence[Any]:
        """What others gave the item of a task, as far as an assessor may see it: nothing."""
        return ()

    def tasks(self, path: str) -> Sequence[DeskTask]:
        """The tasks of the assessor with this seat, in order; the first has place 1."""
        return self._tasks[path]

    def labeled(self, path: str) -> Mapping[int, Label]:
        """The last labels of this assessor by the place of the task; a comment is the rationale."""
        return self._current[path]

    def last(self, path: str) -> tuple[DeskTask, Label] | None:
        """The last label of this assessor that was not undone."""
        return self._saved[path][-1][1:] if self._saved[path] else None

    def following(self, path: str, place: int) -> DeskTask | None:
        """The first task after a place without a label, or else from the beginning; None if every task has one."""
        tasks = self._tasks[path]
        labeled = self._current[path]
        if len(labeled) == len(tasks):
            return None
        order = itertools.chain(range(place, len(tasks)), range(min(place, len(tasks))))
        return next((tasks[i] for i in order if i + 1 not in labeled), None)

    def save(self, path: str, task: DeskTask, grade: int | None, comment: str, made: str) -> None:
        """Keep a label; returns when it is on the disk. The same label as before is not kept again.

        `grade`: None if the assessor was unable to judge.
        """
        label = self._label(task, grade, comment)
        row = (int(path), task.item + 1, task.criterion, grade, grade is None, comment, made, None)
        with self._alone():
            if self._current[path].get(task.place) != label:
                self._keep(path, self._add(row), task, label)

    def undo(self, path: str) -> DeskTask | None:
        """Take the last label of this assessor back, and return its task; None if there is none."""
        with self._alone():
            if not self._saved[path]:
                return None
            self._add((int(path), None, None, None, None, None, None, self._saved[path][-1][0]))
            return self._take_back(path)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._turn.acquire(timeout=PATIENCE):
            raise Busy(f"{self.path}: cannot be written: an earlier label still waits for it")
        try:
            yield
        finally:
            self._turn.release()

    def _add(self, row: tuple[Any, ...]) -> int:
        if _identity(self.path) != self._identity:
            raise OperationalError(f"{self.path}: was moved, removed or replaced while it was in use")
        with _writing(self._connection, self.path) as write:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            added = write.execute(self._names.sql(_ADD), (*row, now))
        return int(added.lastrowid or 0)


@contextlib.contextmanager
def _opened(path: Path, prepare: Prepare) -> Iterator[sqlite3.Connection]:
    """A store that no other desk has open, with all in it that `prepare` finds lacking."""
    with locked(path), contextlib.closing(_connected(path)) as connection:
        lacking = prepare(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if lacking is not None:
            with _writing(connection, path) as write:
                lacking(write)
        yield connection


def _connected(path: Path) -> sqlite3.Connection:
    """A connection to the store, which is made if there is none."""
    try:
        if not path.exists():
            # Only for the owner: it holds the tokens of the links.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        address = path.absolute().as_uri()
        return sqlite3.connect(address, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise InputError(f"{path}: cannot be opened as a store of labels: {error}") from error


def _create(
    write: sqlite3.Connection,
    settings: Mapping[str, str],
    items: Sequence[PlanRow],
    shared: Collection[int],
    assessors: Sequence[str],
    dealt: Sequence[Sequence[int]],
) -> None:
    """Make the tables of a new store, and write what is to be labeled."""
    tasks: list[tuple[int, int, int, str]] = []
    for number, order in enumerate(dealt, 1):
        place = 0
        for index in order:
            for criterion in items[index].criteria:
                place += 1
                tasks.append((number, place, index + 1, criterion))
    for statement in filter(str.strip, TABLES.split(";\n")):
        write.execute(statement)
    ASSESSING.create(write)
    write.executemany("INSERT INTO meta VALUES (?, ?)", [("schema", STORE_SCHEMA), *settings.items()])
    write.executemany(
        "INSERT INTO assessor VALUES (?, ?, ?)",
        [(number, name, new_token()) for number, name in enumerate(assessors, 1)],
    )
    write.executemany(
        "INSERT INTO item VALUES (:item, :turn_id, :topic_id, :response_id, :text_sha256, :run_id, "
        ":inclusion_probability, :stratum, :shared)",
        (
            {
                "item": index + 1,
                "turn_id": item.turn_id,
                "topic_id": item.topic_id,
                "response_id": item.response_id,
                "text_sha256": item.text_sha256,
                "run_id": next(iter(item.runs), None),
                "inclusion_probability": item.inclusion_probability,
                "stratum": item.stratum,
                "shared": index in shared,
            }
            for index, item in enumerate(items)
        ),
    )
    write.executemany("INSERT INTO task VALUES (?, ?, ?, ?)", tasks)


def check_settings(connection: sqlite3.Connection, path: Path, settings: Mapping[str, str]) -> None:
    """Refuse a store that was made with other settings."""
    stored = dict(connection.execute("SELECT key, value FROM meta"))
    if stored.pop("schema", None) not in STORE_SCHEMAS:
        raise InputError(f"{path}: no store of labels that this version of judge knows")
    if differ := [name for name in settings if settings[name] != stored.get(name)]:
        told = "; ".join(f"{name}: {stored.get(name)} there, {settings[name]} here" for name in differ)
        raise InputError(
            f"{path}: made with other settings: {told}; give those that it was made with, or another --store"
        )


@contextlib.contextmanager
def _writing(connection: sqlite3.Connection, path: Path) -> Iterator[sqlite3.Connection]:
    """One transaction, on the disk at its end."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        told = f"{path}: cannot be written: {error}"
        raise (Busy if "locked" in str(error) else OperationalError)(told) from error


def _identity(path: Path) -> tuple[int, int] | None:
    """What the file system calls the file; None if it is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def store_file(path: Path) -> Path:
    """The file of a store that is named, or is in the folder that is: under two names it would have two locks."""
    path = path / STORE if path.is_dir() else path
    real = Path(os.path.realpath(path)) if path.is_symlink() else path
    if real.is_file() and real.stat().st_nlink > 1:
        raise InputError(f"{path}: has another name too (a hard link), and labels could get lost: use a copy of it")
    return real
