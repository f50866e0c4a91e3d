"""One connection to the database of a shared journal, made again where it breaks."""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from psycopg.rows import TupleRow

from judge.errors import InputError, JudgeError, OperationalError, UsageError
from judge.models.secrets import scrub
from judge.models.shared.address import DatabaseAddress

DatabaseConnection = psycopg.Connection[TupleRow]
_Result = TypeVar("_Result")

_DEFAULTS: dict[str, Any] = {
    "application_name": "judge",
    "connect_timeout": 10,
    # A machine that is gone says nothing, and a wait for its answer would have no end.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""What the address leaves open."""
_SETTINGS = {"statement_timeout": "60s"}
"""Of every session: a page of completions takes a part of a second."""
_WRITING = {
    "idle_in_transaction_session_timeout": "20s",
    "tcp_keepalives_idle": "15",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
"""Of a session that writes: one whose machine is gone or stands still must not hold rows that others wait for."""
_LONGEST_PAUSE = 2.0
"""Most seconds between two attempts to reach the server."""
_HURRY = 10.0
"""Seconds for which a server that is away is waited for at the end of a command."""
_WORDS_OF_REFUSAL = ("does not exist", "authentication failed", "no pg_hba.conf entry", "permission denied",
                     "no password supplied", "not permitted")  # fmt: skip
"""What a server says that will not take this user; libpq gives no code for it."""


class SharedConnection:
    """A connection that several threads may use, one at a time.

    Args:
        address: The database.
        max_wait: Most seconds for which a server that is away is waited for.
        reading: Refuse every change.

    Raises:
        UsageError: The server refuses the user or the database.
        OperationalError: The server cannot be reached.
    """

    def __init__(self, address: DatabaseAddress, max_wait: float, *, reading: bool = False) -> None:
        self.name = address.name
        self._address = address
        self._reading = reading
        self._max_wait = max_wait
        self._lock = threading.Lock()
        self._hurried = threading.Event()
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

    def run(self, work: Callable[[DatabaseConnection], _Result], wrong: type[JudgeError] = OperationalError) -> _Result:
        """Do work in a transaction; where the connection breaks, all of the work is done again.

        Args:
            work: Gets the connection. To do it twice must be to do it once.
            wrong: The error where the server refuses the work.

        Raises:
            OperationalError: The server was away for too long.
        """
        pause = 0.1
        with self._lock:
            while True:
                try:
                    if self._connection is None:
                        self._connection = self._connect()
                    with self._connection.transaction():
                        done = work(self._connection)
                except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                    self._drop()
                    self._wait(pause, error)
                    pause = min(2 * pause, _LONGEST_PAUSE)
                except psycopg.Error as error:
                    raise wrong(f"{self.name}: cannot be used as a journal: {_in_words(error)}") from error
                else:
                    self._away = None
                    return done

    def _wait(self, pause: float, error: psycopg.Error) -> None:
        """Wait before the next attempt to reach the server, or give up."""
        now = time.monotonic()
        self._away = now if self._away is None else self._away
        hurried = self._hurried.is_set()
        longest = min(self._max_wait, _HURRY) if hurried else self._max_wait
        left = self._away + longest - now
        if left <= 0:
            raise OperationalError(
                f"{self.name}: the journal's database was away for longer than {longest:g} seconds; the same command "
                f"goes on once it is back; the last error: {_in_words(error)}"
            ) from error
        if hurried:
            time.sleep(min(pause, left))
        else:
            self._hurried.wait(min(pause, left))

    def hurry(self) -> None:
        """From now on, wait only a short time for a server that is away."""
        self._hurried.set()

    def close(self) -> None:
        """Let go of the server."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()

    def _connect(self) -> DatabaseConnection:
        connection = psycopg.connect(
            **{**_DEFAULTS, **self._address.parameters, "client_encoding": "utf8"},
            autocommit=True,
            prepare_threshold=None,
        )
        try:
            # A claim is sound only where each statement sees what was committed before it.
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            for name, value in (_SETTINGS if self._reading else _SETTINGS | _WRITING).items():
                connection.execute("SELECT set_config(%s, %s, false)", (name, value))
            if self._reading:
                connection.read_only = True
            elif _setting(connection, "synchronous_commit") == "off":
                # A completion counts only once it is on the disk.
                connection.execute("SET synchronous_commit = on")
            if _setting(connection, "server_encoding") != "UTF8":
                raise InputError(f"{self.name}: the database's encoding must be UTF8, so that it holds every text")
        except BaseException:
            connection.close()
            raise
        return connection


def _setting(connection: DatabaseConnection, name: str) -> str:
    row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
    return str(row[0]) if row else ""


def _in_words(error: psycopg.Error) -> str:
    """What the server or its library says, on one line."""
    return scrub(" ".join(str(error).split()))
