"""What was sent to a judge and what came back, from the journal; a text that many requests quote stays one text."""

import re
import sqlite3
from pathlib import Path
from types import TracebackType
from typing import Self

from judge.models.journal_rows import DamagedRow, Recorded, columns_of, open_to_read, read_row, unreadable

# A fenced text holds no `<`, so every such line is ours, and what stands between two of them is one text.
_TAG = re.compile(r"(<[a-z_]+(?: n=\"[0-9]+\")?>\n|\n</[a-z_]+>\n?)")


class Sent:
    """The requests and completions of a journal, by digest; the journal is only read.

    Args:
        path: The journal; None if there is none.
    """

    def __init__(self, path: Path | None) -> None:
        self.problem: str | None = None
        self._connection: sqlite3.Connection | None = None
        self._query = ""
        if path is None:
            return
        try:
            self._connection = open_to_read(path)
            columns = columns_of(self._connection)
            self._query = f"SELECT {columns} FROM completion WHERE digest = ?"  # noqa: S608 - names of columns only
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self.problem = f"{path.parent.name}/{path.name} cannot be read: {unreadable(path, error)}"
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the journal."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def find(self, digest: str | None) -> Recorded | None:
        """The completion of a request; None if the journal does not hold it, or holds it damaged."""
        if self._connection is None or digest is None:
            return None
        try:
            row = self._connection.execute(self._query, (digest,)).fetchone()
            return read_row(row) if row else None
        except (sqlite3.Error, DamagedRow, UnicodeDecodeError):
            return None


def pieces(message: str) -> list[str]:
    r"""A message cut at the lines of its tags; joined, the pieces are the message.

    >>> pieces('<passage n="1">\nA ferry.\n</passage>\nGrade:')
    ['<passage n="1">\n', 'A ferry.', '\n</passage>\n', 'Grade:']
    """
    return [piece for piece in _TAG.split(message) if piece]
