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
from judge.models.journal_file import FileStore
from judge.models.journal_rows import DamagedRow, Recorded, recorded, todays_row
from judge.models.journal_tools import is_exported, line_at, placed_rows
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
        self._store: FileStore | None = None
        self._lines: IO[bytes] | None = None
        self._parameters: list[Mapping[str, Any]] = []
        """Judges are asked under a few sets of parameters; each is kept once."""
        self._places: list[dict[bytes, str | int]] = []
        """For each of these, where the answers are, by what was asked."""
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
            self._places.append({})
        number = self._parameters.index(entry.parameters)
        key = _key(entry.messages, entry.sample)
        for other, places in enumerate(self._places):
            if other != number and key in places:
                earlier = self._at(places[key]).digest
                self.close()
                raise UsageError(
                    f"{self._path}: {entry.judge} was asked the same thing under different parameters "
                    f"({earlier[:12]}, {entry.digest[:12]}): the recording does not say which to replay"
                )
        # Of two answers to the same request, the first counts.
        self._places[number].setdefault(key, place)

    def _found(self, messages: Sequence[Message], sample: int) -> tuple[str | int, Mapping[str, Any]] | None:
        key = _key(messages, sample)
        pairs = zip(self._places, self._parameters, strict=True)
        return next(((places[key], parameters) for places, parameters in pairs if key in places), None)

    def parameters(self, messages: Sequence[Message], sample: int) -> Mapping[str, Any] | None:
        """The parameters under which something was asked; None if it was not."""
        found = self._found(messages, sample)
        return None if found is None else found[1]

    def completion(self, messages: Sequence[Message], sample: int) -> Completion | None:
        """What came back for something; None if it was not asked.

        Raises:
            InputError: The file cannot be read any more, or has changed.
        """
        found = self._found(messages, sample)
        if found is None:
            return None
        place, parameters = found
        entry = self._at(place)
        if (entry.judge, entry.parameters, entry.messages, entry.sample) != (
            self.judge, parameters, tuple(messages), sample
        ):  # fmt: skip
            raise self._changed()
        return entry.completion

    def close(self) -> None:
        """Release the file; the next completion opens it again."""
        for opened in (self._store, self._lines):
            if opened is not None:
                opened.close()
        self._store = self._lines = None

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _at(self, place: str | int) -> Recorded:
        # It is open only while completions are read, so that it can be the journal of the same run.
        try:
            if isinstance(place, int):
                self._lines = self._lines or self._path.open("rb")
                return recorded(line_at(self._lines, place))
            self._store = self._store or FileStore(self._path)
            row = self._store.rows([place], self._store.names).get(place)
            if row is None:
                raise self._changed()
            return recorded(todays_row(row, self._store.version))
        except DamagedRow as error:
            raise self._changed() from error
        except OSError as error:
            raise InputError(f"{self._path}: cannot be read: {error.strerror}") from error

    def _changed(self) -> InputError:
        return InputError(f"{self._path}: has changed since it was read: run the command again")


def _key(messages: Sequence[Message], sample: int) -> bytes:
    return hashlib.sha256(msgspec.json.encode((messages, sample))).digest()[:_KEY]
