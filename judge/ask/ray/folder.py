"""The folder of a cluster that a run starts for itself.

Whoever starts the cluster holds a lock on a file of the folder as long as it lives. So the next run can tell the folder
of a driver that was killed from that of one that runs, and remove it.
"""

import contextlib
import os
import shutil
import stat
import sys
import tempfile
import time
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_PREFIX = "judge-ray-"
_LOCK = "driver.lock"
_MARK = b"The folder of a Ray cluster that judge has started.\n"
"""What the lock file says, so that no folder of somebody else is taken for one of judge."""
_HOME = 20
"""Characters that the path of the folder for temporary files may have; Ray adds up to 64 and judge 19."""
_LAST = 5.0
"""Seconds for the processes of a cluster to end."""


class OwnFolder:
    """A new folder, and none of those that drivers left behind that were killed."""

    def __init__(self) -> None:
        home = _home()
        _remove_abandoned(home)
        # `mkdtemp` makes a folder that nobody else can enter.
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=home))
        self._lock: int | None = None
        if sys.platform != "win32":
            try:
                self._mark()
            except OSError:
                self.remove()
                raise

    def _mark(self) -> None:
        new = self.path / f"{_LOCK}.new"
        self._lock = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        if _taken(self._lock):
            os.write(self._lock, _MARK)
            # Under its name, nobody ever finds the file without its lock.
            new.rename(self.path / _LOCK)

    def remove(self) -> None:
        """Remove the folder; the processes of a cluster that ends write there a little longer."""
        deadline = time.monotonic() + _LAST
        while self.path.exists() and time.monotonic() < deadline:
            _remove(self.path)
            time.sleep(0.1)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _home() -> Path:
    """A folder with a path so short that Ray's sockets fit below it: a system takes 103 characters of a socket."""
    home = tempfile.gettempdir()
    return Path(home if len(home) <= _HOME or os.name == "nt" else "/tmp")  # noqa: S108


def _remove_abandoned(home: Path) -> None:
    """Remove this user's folders whose driver is dead; what cannot be removed stays."""
    if sys.platform == "win32":
        return
    # Another run may remove the same, and another program may keep what it likes here.
    with contextlib.suppress(OSError):
        for folder in sorted(home.glob(f"{_PREFIX}*")):
            if _is_abandoned(folder):
                _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder, and its lock only once the rest is gone: without it, no later run removes what is left."""
    lock, beside = folder / _LOCK, folder.with_name(f"{folder.name}.lock")
    # A process of the cluster may still write here.
    with contextlib.suppress(OSError):
        for inside in folder.iterdir():
            if inside != lock:
                shutil.rmtree(inside, ignore_errors=True)
                with contextlib.suppress(OSError):
                    inside.unlink()
        if lock.exists():
            if any(inside != lock for inside in folder.iterdir()):
                return
            lock.rename(beside)
        try:
            folder.rmdir()
        except OSError:
            beside.rename(lock)
        else:
            beside.unlink(missing_ok=True)


def _is_abandoned(folder: Path) -> bool:
    try:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            return False
        # Whatever has this name, a pipe too, is opened without waiting.
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return _taken(lock) and os.read(lock, len(_MARK) + 1) == _MARK
    except OSError:
        return False
    finally:
        os.close(lock)


def _taken(file: int) -> bool:
    """Take the lock on an open file; False where another process has it, or the file system has none."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
