"""What was sent to a judge and what came back, from the journal; a text that many requests quote stays one text."""

import contextlib
import re
from pathlib import Path
from types import TracebackType
from typing import Self

from judge.errors import InputError
from judge.judges.journal import JournalView
from judge.judges.journal_rows import Recorded

# A fenced text holds no `<`, so every such line is ours, and what stands between two of them is one text.
_TAG = re.compile(r"(<[a-z_]+(?: n=\"[0-9]+\")?>\n|\n</[a-z_]+>\n?)")


class Sent:
    """The requests and completions of a journal, by digest; the journal is only read.

    Args:
        path: The journal; None if there is none.
    """

    def __init__(self, path: Path | None) -> None:
        self.problem: str | None = None
        self._view: JournalView | None = None
        try:
            self._view = None if path is None else JournalView([path])
        except InputError as error:
            why = str(error).removeprefix(f"{path}: ")
            self.problem = f"{path.parent.name}/{path.name}: {why}" if path else why

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the journal."""
        if self._view is not None:
            self._view.close()
            self._view = None

    def find(self, digest: str | None) -> Recorded | None:
        """The completion of a request; None if the journal does not hold it, or holds it damaged."""
        if self._view is None or digest is None:
            return None
        with contextlib.suppress(InputError):
            return self._view.find(digest)
        return None


def pieces(message: str) -> list[str]:
    r"""A message cut at the lines of its tags; joined, the pieces are the message.

    >>> pieces('<passage n="1">\nA ferry.\n</passage>\nGrade:')
    ['<passage n="1">\n', 'A ferry.', '\n</passage>\n', 'Grade:']
    """
    return [piece for piece in _TAG.split(message) if piece]
