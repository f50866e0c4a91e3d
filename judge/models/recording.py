"""A recording to look things up in by what was asked: a journal, or a file exported from one.

The completions stay on the disk, so that millions of them need little memory.
"""

import contextlib
import hashlib
import sqlite3
import weakref
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from judge.errors import InputError, UsageError
from judge.models.digests import leading_bits
from judge.models.journal_export import is_exported, line_at, placed_recorded
from judge.models.journal_rows import DamagedRow, Recorded, open_to_read, row_at, unreadable
from judge.models.records import AnswerForm, Completion, Message

_KEY = 16
"""Bytes of the digest of what was asked: of a billion questions, two are alike with a probability of 10⁻²¹."""


class Recording:
    """The completions of one judge in a file.

    Args:
        path: A journal that no process is writing, or a file exported from one.
        judge: The judge; empty for the only one of the file.

    Raises:
        InputError: The file is missing, is neither of the two, or is damaged.
        UsageError: The recording is empty, lacks the judge, holds several and none is named, or the judge was asked
            the same thing under different parameters.
    """

    def __init__(self, path: Path, judge: str = "") -> None:
        self._path, self._exported = path, is_exported(path)
        self._connection: sqlite3.Connection | None = None
        self._lines: IO[bytes] | None = None
        self._left: weakref.finalize[..., Recording] | None = None
        """Closes the file of a recording that nobody closed."""
        self._parameters: list[Mapping[str, Any]] = []
        self.forms: set[AnswerForm] = set()
        """The answer forms of the completions."""
        held: Counter[str] = Counter()
        numbers: dict[bytes, int] = {}
        asked = _Asked()
        for place, _, entry in placed_recorded(path):
            held[entry.judge] += 1
            if entry.judge != (judge or next(iter(held))):
                continue
            self.forms.add(entry.form)
            # Judges are asked under a few sets of parameters; each is kept once.
            number = numbers.setdefault(msgspec.json.encode(entry.parameters), len(numbers))
            if number == len(self._parameters):
                self._parameters.append(entry.parameters)
            asked.add(_key(entry.messages, entry.sample), entry.digest, place, number)
        names = ", ".join(sorted(held))
        if not held:
            raise UsageError(f"{path}: the recording is empty")
        if not judge and len(held) > 1:
            raise UsageError(f"{path}: holds several judges, name one as replay/{path}::JUDGE: {names}")
        self.judge = judge or names
        """The name of the judge."""
        if self.judge not in held:
            raise UsageError(f"{path}: holds no judge {judge!r}, but {names}")
        twice = asked.sort()
        self._asked = asked
        if twice is not None:
            earlier, later = (self._at(place).digest for place in twice)
            self.close()
            raise UsageError(
                f"{path}: {self.judge} was asked the same thing under different parameters "
                f"({earlier[:12]}, {later[:12]}): the recording does not say which to replay"
            )

    def parameters(self, messages: Sequence[Message], sample: int) -> Mapping[str, Any] | None:
        """The parameters under which something was asked; None if it was not."""
        found = self._asked.find(_key(messages, sample))
        return None if found is None else self._parameters[found.parameters]

    def completion(self, messages: Sequence[Message], sample: int) -> Completion | None:
        """What came back for something; None if it was not asked.

        Raises:
            InputError: The file cannot be read any more, or has changed.
        """
        key = _key(messages, sample)
        found = self._asked.find(key)
        if found is None:
            return None
        entry = self._at(found.place)
        here = _key(entry.messages, entry.sample), entry.judge, entry.parameters
        if here != (key, self.judge, self._parameters[found.parameters]):
            raise self._changed()
        return entry.completion

    def close(self) -> None:
        """Release the file; the next completion opens it again."""
        for opened in (self._connection, self._lines):
            if opened is not None:
                opened.close()
        self._connection = self._lines = None
        if self._left is not None:
            self._left.detach()

    def _at(self, place: int) -> Recorded:
        # It is open only while completions are read, so that it can be the journal of the same run.
        try:
            if self._exported:
                if self._lines is None:
                    self._lines = self._path.open("rb")
                    self._left = weakref.finalize(self, _leave, self._lines)
                entry: Recorded | None = line_at(self._lines, place)
            else:
                if self._connection is None:
                    self._connection = open_to_read(self._path)
                    self._left = weakref.finalize(self, _leave, self._connection)
                entry = row_at(self._connection, place)
        except DamagedRow as error:
            raise self._changed() from error
        except sqlite3.Error as error:
            raise InputError(f"{self._path}: cannot be read as a journal: {unreadable(self._path, error)}") from error
        except OSError as error:
            raise InputError(f"{self._path}: cannot be read: {error.strerror}") from error
        if entry is None:
            raise self._changed()
        return entry

    def _changed(self) -> InputError:
        return InputError(f"{self._path}: has changed since it was read: run the command again")


class _Found(NamedTuple):
    place: int
    """Where the completion is in the file."""
    parameters: int
    """The number of the parameters."""


class _Asked:
    """Where the answers of a recording are, by the digest of what was asked, in about 30 bytes each."""

    def __init__(self) -> None:
        self._high, self._low, self._digests = array("Q"), array("Q"), array("Q")
        self._places, self._parameters = array("q"), array("L")

    def add(self, key: bytes, digest: str, place: int, parameters: int) -> None:
        """Note an answer."""
        self._high.append(int.from_bytes(key[:8]))
        self._low.append(int.from_bytes(key[8:]))
        self._digests.append(leading_bits(digest))
        self._places.append(place)
        self._parameters.append(parameters)

    def sort(self) -> tuple[int, int] | None:
        """Make what was noted fit to be searched; of two answers to the same request, the first counts.

        Returns:
            The places of the first two answers to different requests that asked the same; None if there are none.
        """
        import numpy as np  # only here: a short command need not wait for it

        high, low, digests = (np.asarray(column) for column in (self._high, self._low, self._digests))
        order = np.lexsort((low, high))
        high, low, digests = high[order], low[order], digests[order]
        apart = (high[1:] == high[:-1]) & (low[1:] == low[:-1]) & (digests[1:] != digests[:-1])
        twice: tuple[int, int] | None = None
        if apart.any():
            later = order[1:][apart]
            first = int(later.argmin())
            twice = self._places[int(order[:-1][apart][first])], self._places[int(later[first])]
        self._high, self._low, self._digests = array("Q", high.tobytes()), array("Q", low.tobytes()), array("Q")
        self._places = array("q", np.asarray(self._places)[order].tobytes())
        self._parameters = array("L", np.asarray(self._parameters)[order].tobytes())
        return twice

    def find(self, key: bytes) -> _Found | None:
        """Where the first answer is; None if there is none."""
        high, low = int.from_bytes(key[:8]), int.from_bytes(key[8:])
        number = bisect_left(self._high, high)
        while number < len(self._high) and self._high[number] == high:
            if self._low[number] == low:
                return _Found(self._places[number], self._parameters[number])
            number += 1
        return None


def _leave(opened: sqlite3.Connection | IO[bytes]) -> None:
    # SQLite closes a connection in its own thread alone, and this may be another.
    with contextlib.suppress(sqlite3.ProgrammingError):
        opened.close()


def _key(messages: Sequence[Message], sample: int) -> bytes:
    return hashlib.sha256(msgspec.json.encode((messages, sample))).digest()[:_KEY]
