"""Writing a big file: one process at a time writes it beside the old file and replaces that in one step."""

import contextlib
import errno
import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from judge.errors import OperationalError

if sys.platform != "win32":
    import fcntl

_LINK = "a link, and nothing is written through links; remove it"
_TAKEN = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Write a file that replaces `path` at the end; missing folders are made.

    If the writing fails, neither the file nor a folder is left behind.

    Raises:
        OperationalError: Another process is writing this file.
        OSError: The file cannot be written.
    """
    made = [folder for folder in path.parents if not folder.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary, out = _claimed(path)
        try:
            with out:
                yield out
                out.flush()
                os.fsync(out.fileno())
                # Replaced while it is locked: otherwise another build could take it for a file that a kill left behind.
                temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except BaseException:
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def _claimed(path: Path) -> tuple[Path, IO[bytes]]:
    """The empty temporary file, which no other process may write until it is closed.

    Its name is fixed, so that the next build writes over a file that a kill left behind.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    if sys.platform != "win32":
        while True:
            try:
                place = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
            except OSError as error:
                if error.errno == errno.ELOOP:
                    raise OperationalError(f"{temporary}: {_LINK}") from error
                raise
            out = os.fdopen(place, "wb")
            if os.fstat(place).st_nlink > 1:
                out.close()
                raise OperationalError(f"{temporary}: {_LINK}")
            try:
                fcntl.flock(out.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(out, temporary):
                    out.truncate()
                    return temporary, out
                out.close()
            except OSError as error:
                out.close()
                if error.errno in _TAKEN:
                    raise OperationalError(f"{path}: another build is writing this file") from error
                # The file system has no locks.
                break
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    return temporary, temporary.open("xb")


def _is_at(file: IO[bytes], path: Path) -> bool:
    """Whether an open file is still the one of that name; a build that has just ended renames or removes it."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
