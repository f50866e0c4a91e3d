"""A journal in a PostgreSQL database, which several processes on several machines write at once.

No message from here holds the password. Every time of a lease is the server's, so that the clocks of the machines do
not matter.
"""

import contextlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import psycopg
import psycopg.conninfo
from psycopg.rows import TupleRow

from judge.errors import InputError, JudgeError, OperationalError, UsageError
from judge.judges.credentials import scrub
from judge.judges.journal_store import INSERT, SCHEMA, SCHEMA_VERSION, SET_META, Row, Store

LEASE = 60
"""Seconds after which the lease of a process that is not heard of any more ends."""
_TABLES = ("meta", "completion", "lease")
_SETTING_UP = 7_215_068_121_914_103
"""Number of the advisory lock under which the tables are made."""
_CREATE = (
    SCHEMA[0],
    # Digests are compared by their bytes, so that their order is that of a journal's file.
    SCHEMA[1].replace("digest TEXT", 'digest TEXT COLLATE "C"'),
    'CREATE TABLE lease (digest TEXT COLLATE "C" PRIMARY KEY, holder TEXT NOT NULL, expires TIMESTAMPTZ NOT NULL)',
)
_MANY = "json_array_elements_text(%(digests)s::json)"
_ENDS = "clock_timestamp() + %(lease)s * interval '1 s'"
# While the server is away, nobody can extend a lease: after its start, every holder has the time of one.
_ALIVE = """
(lease.expires > clock_timestamp() OR clock_timestamp() BETWEEN pg_postmaster_start_time()
AND pg_postmaster_start_time() + %(lease)s * interval '1 s')
"""
_TAKE = f"""
INSERT INTO lease (digest, holder, expires)
SELECT value, %(holder)s, {_ENDS} FROM {_MANY}
WHERE NOT EXISTS (SELECT 1 FROM completion WHERE digest = value)
AND NOT EXISTS (SELECT 1 FROM lease WHERE digest = value AND holder <> %(holder)s AND {_ALIVE})
ORDER BY value COLLATE "C"
ON CONFLICT (digest) DO UPDATE SET holder = EXCLUDED.holder, expires = EXCLUDED.expires
WHERE lease.holder = EXCLUDED.holder OR NOT {_ALIVE}
RETURNING digest
"""  # noqa: S608 - nothing from outside
"""Takes the leases that are free, ended or our own; they are locked in their order, so that no two processes wait for
each other."""
_EXTEND = f"""
UPDATE lease SET expires = {_ENDS}
WHERE digest IN (
    SELECT digest FROM lease WHERE holder = %(holder)s OR expires > {_ENDS} ORDER BY digest COLLATE "C" FOR UPDATE
)
"""  # noqa: S608 - likewise
"""Extends our leases. One that ends later than a lease from now was taken before the server's clock was set back: it is
cut, else the question of a dead process would wait for the clock."""
_RELEASE = f"""
DELETE FROM lease
WHERE digest IN (
    SELECT digest FROM lease
    WHERE holder = %(holder)s AND (%(all)s OR digest IN (SELECT value FROM {_MANY}))
    OR %(all)s AND EXISTS (SELECT 1 FROM completion WHERE completion.digest = lease.digest)
    ORDER BY digest COLLATE "C" FOR UPDATE
)
"""  # noqa: S608 - likewise
"""Lets go of some leases, or of all of ours and those that a killed process left on answered questions."""
_SUMS = f"SELECT digest, checksum FROM completion WHERE digest IN (SELECT value FROM {_MANY})"  # noqa: S608 - likewise
# A machine that is gone says nothing, and a wait for its answer would have no end.
_ALIVE_TCP = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
_DEFAULTS: dict[str, Any] = {"application_name": "judge", "connect_timeout": 10, **_ALIVE_TCP}
"""What the address leaves open."""
# A completion counts only once it is on the disk; whose machine is gone or stands still must hold up nobody.
_SETTINGS = {"synchronous_commit": "on", "statement_timeout": "60s", "idle_in_transaction_session_timeout": "20s"}
"""Of every session."""
_WORDS_OF_REFUSAL = ("does not exist", "authentication failed", "no pg_hba.conf entry", "permission denied",
                     "no password supplied", "not permitted")  # fmt: skip
"""What a server says that will not take this user; libpq gives no code for it."""
_ENCODE = "; in a password, / ? # and @ are written %2F %3F %23 and %40"

DatabaseConnection = psycopg.Connection[TupleRow]
_Result = TypeVar("_Result")


def read_database(url: str) -> tuple[str, dict[str, str]]:
    """The name of a database for messages, without credentials, and what libpq connects with, from its address.

    A UsageError if the address cannot be read, or may show its password.
    """
    try:
        query = urlsplit(url).query
        parameters = {key: str(value) for key, value in psycopg.conninfo.conninfo_to_dict(url).items()}
    except (ValueError, psycopg.Error):
        # What the library says of it may quote a part of the password.
        raise UsageError(
            f"the address of the journal cannot be read: expected postgresql://HOST:PORT/DATABASE, with USER:PASSWORD@ "
            f"before the host where it needs them{_ENCODE}"
        ) from None
    host, port, database = parameters.get("host", ""), parameters.get("port"), parameters.get("dbname", "")
    if any(unquote(part.partition("=")[0]) in ("password", "sslpassword") for part in query.split("&")):
        wrong = (
            "has a password behind the ?, which every record would show: give it before the host, in PGPASSWORD or in "
            "~/.pgpass"
        )
    elif "@" in host or "@" in database:
        # What follows the first @ may be a part of the password, and would be shown.
        wrong = f"has an @ after its host{_ENCODE}"
    elif not all(number.isdigit() and 0 < int(number) < 1 << 16 for number in (port or "5432").split(",")):
        wrong = f"has a port that is no number from 1 to 65535{_ENCODE}"
    elif not database:
        wrong = "names no database: expected postgresql://…/DATABASE"
    else:
        return f"postgresql://{host}{f':{port}' if port else ''}/{database}", parameters
    raise UsageError(f"the address of the journal {wrong}")


class DatabaseStore(Store):
    """The tables in a database, by one connection that is made again where it breaks; `Store` describes the methods.

    Only one that is writing makes the tables where they are missing, takes leases, and may change anything. Errors are
    those of `open_store`.
    """

    mark, many = "%s", "json_array_elements_text(?::json)"
    shared = True
    pause = 0.0

    def __init__(self, url: str, max_wait: float = 30.0, *, writing: bool = False) -> None:
        super().__init__()
        self.name, self._parameters = read_database(url)
        self.period, self.max_wait = LEASE / 3, max_wait
        self._writing = writing
        self._holder = secrets.token_hex(16)
        self._lock = threading.Lock()
        self._away: float | None = None
        """Since when the server has been away; None while it is there."""
        self._connection: DatabaseConnection | None = None
        try:
            self._connection = self._connect()
        except psycopg.Error as error:
            refused = any(words in str(error) for words in _WORDS_OF_REFUSAL)
            raise (UsageError if refused else OperationalError)(
                f"{self.name}: the journal's database cannot be reached: {_in_words(error)}"
            ) from error
        try:
            self.version = self.run(self._settled)
        except BaseException:
            self._drop()
            raise

    def _settled(self, connection: DatabaseConnection) -> str | None:
        """The schema version; a writer makes the tables where they are missing, one process for all."""
        # Before the first look, because the server may remember for a while that a table was missing.
        lock = "pg_advisory_xact_lock" if self._writing else "pg_advisory_xact_lock_shared"
        connection.execute(f"SELECT {lock}(%s)", (_SETTING_UP,))
        found = connection.execute("SELECT to_regclass(n) IS NOT NULL FROM unnest(%s::text[]) AS n", (list(_TABLES),))
        there = {row[0] for row in found}
        if there == {False}:
            if not self._writing:
                return None
            for statement in _CREATE:
                connection.execute(statement)
            connection.execute(SET_META.replace("?", self.mark), ("schema", SCHEMA_VERSION))
        rows = [] if len(there) > 1 else connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchall()
        if not rows:
            raise InputError(
                f"{self.name}: the database has tables of another program under a name of the journal's "
                f"({', '.join(_TABLES)}); give the journal a database of its own"
            )
        return str(rows[0][0])

    def insert(self, rows: Sequence[Row], *, own: bool = False) -> int:
        """Add the rows whose digests are new, let go of our leases on them, and give how many were new."""
        values = self._values([row[0] for row in rows])

        def work(connection: DatabaseConnection) -> int:
            cursor = connection.cursor()
            # In their order, so that no two processes wait for each other.
            cursor.executemany(INSERT.replace("?", self.mark), sorted(rows))
            new = cursor.rowcount
            if own:
                cursor.execute(_RELEASE, values)
            return new

        new = self.run(work, OperationalError)
        # After the commit, at which a trigger may be fired, too.
        found: dict[str, str] = dict(self._execute(_SUMS, [row[0] for row in rows]).fetchall())
        if lost := [row[0] for row in rows if row[0] not in found]:
            raise OperationalError(
                f"{self.name}: cannot be written: of {len(rows)} completions, {len(lost)} are not in the table after "
                f"they were inserted, {lost[0]} for one; a trigger or another program removes them"
            )
        # Where the connection broke as the transaction ended, the rows that are there may be ours.
        if own and (others := sum(found[row[0]] != row[-1] for row in rows)):
            raise OperationalError(
                f"{self.name}: this process was not heard of for longer than a lease, and another one asked {others} "
                "of its questions again; the same command takes these answers"
            )
        return new

    def take(self, digests: Sequence[str]) -> set[str]:
        """Lease questions that have no completion, and give those that are ours now."""
        return {row[0] for row in self._execute(_TAKE, digests)}

    def release(self, digests: Sequence[str]) -> None:
        """Let go of questions."""
        self._execute(_RELEASE, digests)

    def tick(self) -> None:
        """Extend our leases."""
        # Where this fails, the leases and completions that fail too say so.
        with contextlib.suppress(JudgeError):
            self._execute(_EXTEND)

    def close(self) -> None:
        """Let go of every question and of the server."""
        if self._writing:
            with contextlib.suppress(JudgeError):
                self._execute(_RELEASE, everything=True)
        with self._lock:
            self._drop()

    def _execute(
        self, statement: str, digests: Sequence[str] = (), *, everything: bool = False
    ) -> psycopg.Cursor[TupleRow]:
        """Carry out a statement about leases, or about completions."""
        values = self._values(digests, everything=everything)
        return self.run(lambda one: one.execute(statement, values), OperationalError)

    def _values(self, digests: Sequence[str], *, everything: bool = False) -> dict[str, object]:
        return {"holder": self._holder, "lease": LEASE, "all": everything, "digests": json.dumps(list(digests))}

    def run(self, work: Callable[[DatabaseConnection], _Result], wrong: type[JudgeError] = InputError) -> _Result:
        """Do work in a transaction, again where the connection breaks, until the server was away for too long."""
        pause = 0.1
        with self._lock:
            while True:
                try:
                    self._connection = self._connection or self._connect()
                    with self._connection.transaction():
                        done = work(self._connection)
                except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                    self._drop()
                    self._away = self._away or time.monotonic()
                    if time.monotonic() >= self._away + self.max_wait:
                        raise OperationalError(
                            f"{self.name}: the journal's database was away for longer than {self.max_wait:g} seconds; "
                            f"the same command goes on once it is back; the last error: {_in_words(error)}"
                        ) from error
                except psycopg.Error as error:
                    none = not self._writing and isinstance(error, psycopg.errors.UndefinedTable)
                    why = f"cannot be used as a journal: {_in_words(error)}"
                    raise wrong(f"{self.name}: {'no journal is in this database' if none else why}") from error
                else:
                    self._away = None
                    return done
                time.sleep(pause)
                pause = min(2 * pause, 2.0)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()

    def _connect(self) -> DatabaseConnection:
        parameters = {**_DEFAULTS, **self._parameters, "client_encoding": "utf8"}
        connection = psycopg.connect(**parameters, autocommit=True, prepare_threshold=None)
        try:
            # A lease is sound only where each statement sees what was committed before it.
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            settings = json.dumps(_SETTINGS)
            connection.execute("SELECT set_config(key, value, false) FROM json_each_text(%s::json)", (settings,))
            connection.read_only = None if self._writing else True
            if connection.execute("SELECT current_setting('server_encoding')").fetchone() != ("UTF8",):
                raise InputError(f"{self.name}: the database's encoding must be UTF8, so that it holds every text")
        except BaseException:
            connection.close()
            raise
        return connection


def _in_words(error: psycopg.Error) -> str:
    """What the server or its library says, on one line."""
    return scrub(" ".join(str(error).split()))
