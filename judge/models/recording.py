"""A recording to look things up in by what was asked: a journal, or a file exported from one.

The completions stay on the disk, so that a million of them need some 300 MB of memory.
"""

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from judge.errors import InputError, UsageError
from judge.models.journal import open_store
from judge.models.journal_rows import DamagedRow, Recorded, recorded
from judge.models.journal_store import Store
from judge.models.journal_tools import LONGEST, placed_rows, read_line
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
        self._path = path
        self._opened: Store | IO[bytes] | None = None
        self._parameters: list[Mapping[str, Any]] = []
        """Judges are asked under a few sets of parameters; each is kept once."""
        self._places: dict[bytes, tuple[int, str | int]] = {}
        """The number of the parameters, and where the answer is, by what was asked."""
        self.forms: set[AnswerForm] = set()
        """The answer forms of the completions."""
        judges: dict[str, None] = {}
        for place, row in placed_rows(path):
            judges[row[1]] = None
            if row[1] == (judge or next(iter(judges))):
                self._note(place, recorded(row))
        names = ", ".join(sorted(judges))
        if not judges:
            raise UsageError(f"{path}: the recording is empty")
        if not judge and len(judges) > 1:
            raise UsageError(f"{path}: holds several judges, name one as replay/{path}::JUDGE: {names}")
        self.judge = judge or names
        """The name of the judge."""
        if self.judge not in judges:
            raise UsageError(f"{path}: holds no judge {judge!r}, but {names}")

    def _note(self, place: str | int, entry: Recorded) -> None:
        self.forms.add(entry.form)
        if entry.parameters not in self._parameters:
            self._parameters.append(entry.parameters)
        number = self._parameters.index(entry.parameters)
        # Of two answers to the same request, the first counts.
        first, earlier = self._places.setdefault(_key(entry.messages, entry.sample), (number, place))
        if first != number:
            digest = self._at(earlier).digest
            self.close()
            raise UsageError(
                f"{self._path}: {entry.judge} was asked the same thing under different parameters "
                f"({digest[:12]}, {entry.digest[:12]}): the recording does not say which to replay"
            )

    def parameters(self, messages: Sequence[Message], sample: int) -> Mapping[str, Any] | None:
        """The parameters under which something was asked; None if it was not."""
        found = self._places.get(_key(messages, sample))
        return None if found is None else self._parameters[found[0]]

    def completion(self, messages: Sequence[Message], sample: int) -> Completion | None:
        """What came back for something; None if it was not asked.

        Raises:
            InputError: The file cannot be read any more, or has changed.
        """
        found = self._places.get(_key(messages, sample))
        if found is None:
            return None
        entry = self._at(found[1])
        asked = self.judge, self._parameters[found[0]], tuple(messages), sample
        if (entry.judge, entry.parameters, entry.messages, entry.sample) != asked:
            raise self._changed()
        return entry.completion

    def close(self) -> None:
        """Release the file; the next completion opens it again."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _at(self, place: str | int) -> Recorded:
        # It is open only while completions are read, so that it can be the journal of the same run.
        try:
            if self._opened is None:
                self._opened = self._path.open("rb") if isinstance(place, int) else open_store(self._path)
            if isinstance(self._opened, Store):
                entry = self._opened.find(str(place), recorded)
            else:
                self._opened.seek(int(place))
                entry = recorded(read_line(self._opened.readline(LONGEST)))
            if entry is None:
                raise self._changed()
            return entry
        except DamagedRow as error:
            raise self._changed() from error
        except OSError as error:
            raise InputError(f"{self._path}: cannot be read: {error.strerror}") from error

    def _changed(self) -> InputError:
        return InputError(f"{self._path}: has changed since it was read: run the command again")


def _key(messages: Sequence[Message], sample: int) -> bytes:
    return hashlib.sha256(msgspec.json.encode((messages, sample))).digest()[:_KEY]
