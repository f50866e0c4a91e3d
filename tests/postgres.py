"""A PostgreSQL server on this machine, of Debian's packages, that belongs to the tests alone."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.time_limit import PATIENCE

psycopg: Any = None
with contextlib.suppress(ImportError):
    import psycopg

_PACKAGED = Path("/usr/lib/postgresql")
_USER = "postgres"
"""Who runs the server where the tests run as root, which PostgreSQL refuses."""


class Postgres:
    """A running server; `database` makes a new database in it."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self._made = 0
        self._as_user: dict[str, Any] = {"cwd": folder}
        if os.geteuid() == 0:
            shutil.chown(folder, _USER)
            self._as_user |= {"user": _USER, "extra_groups": []}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        # The tests kill the server, so it has to write to the disk as it does anywhere else.
        command = [programs / "initdb", "-D", folder / "data", "-A", "trust", "-U", "judge", "-E", "UTF8"]
        subprocess.run(
            [*command, "--locale", "C"], check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE, **self._as_user
        )

    def start(self) -> None:
        """Start the server, again where it was killed."""
        deadline = time.monotonic() + PATIENCE
        while True:
            options = ["-c", "listen_addresses=127.0.0.1", "-p", str(self._port), "-k", str(self._folder)]
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._folder / "data", *options],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self._as_user,
            )  # fmt: skip
            # Until the processes of a server that was killed are gone, its memory is still in use.
            while self._process.poll() is None:
                with contextlib.suppress(psycopg.OperationalError):
                    self.execute("SELECT 1")
                    return
                time.sleep(0.05)
            assert time.monotonic() < deadline, "PostgreSQL does not start"
            time.sleep(0.1)

    def kill(self) -> None:
        """Kill the server as a machine that loses its power does."""
        children = []
        for status in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                if status.read_text().rpartition(")")[2].split()[1] == str(self._process.pid):
                    children.append(int(status.parent.name))
        self._process.kill()
        # Without it, a child may still answer what it is asked for a while.
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """End the server."""
        self._process.send_signal(2)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=20)
        self.kill()

    def url(self, name: str = "postgres", user: str = "judge") -> str:
        """The address of a database."""
        return f"postgresql://{user}@127.0.0.1:{self._port}/{name}"

    def execute(self, statement: str, *values: object, url: str | None = None) -> list[tuple[Any, ...]]:
        """The rows that a statement gives."""
        with psycopg.connect(url or self.url(), autocommit=True, connect_timeout=5) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def database(self, options: str = "") -> str:
        """The address of a new database."""
        self._made += 1
        self.execute(f"CREATE DATABASE judge_{self._made} {options}")
        return self.url(f"judge_{self._made}")


def _programs() -> Path | None:
    """The folder of the newest server that is installed."""
    versions = {int(path.parent.parent.name): path.parent for path in _PACKAGED.glob("*/bin/initdb")
                if re.fullmatch("[0-9]+", path.parent.parent.name)}  # fmt: skip
    return versions[max(versions)] if versions else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A server for all tests of this process; skipped where none is installed."""
    programs = _programs()
    if programs is None:
        pytest.skip(f"no PostgreSQL server is installed ({_PACKAGED}/*/bin; Debian's package `postgresql`)")
    if psycopg is None:
        pytest.skip("psycopg is not installed: pip install 'trec-judge[postgres]'")
    folder = Path(tempfile.mkdtemp(prefix="judge-postgres-", dir="/tmp"))
    try:
        server = Postgres(programs, folder)
        server.start()
        yield server
        server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
