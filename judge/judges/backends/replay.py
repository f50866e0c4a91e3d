"""`replay/FILE`: completions from a recorded journal, under the name of the recorded judge; nothing is sent.

Request digests are those of the recording, so replayed judgments equal the recorded ones. If the file holds several
judges, the name says which one: `replay/FILE::backend/model`. The completions stay on the disk, so that a million of
them need some 300 MB of memory.
"""

import contextlib
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import msgspec

from judge.errors import InputError, StructureUnsupported, UsageError
from judge.judges.journal_store import DamagedRow, Recorded, Store, recorded
from judge.judges.journal_tools import LONGEST, placed_rows, read_line
from judge.judges.model import Model, ModelOptions
from judge.judges.records import LIMITS, AnswerForm, Completion, Request

_FORMS: tuple[AnswerForm, ...] = ("label", "json", "text", "decision")
_KEY = 16
"""Bytes of the digest of what was asked: of a billion questions, two are alike with a probability of 10⁻²¹."""


class Replay(Model):
    """A judge that repeats the completions of one judge in a file: a journal that no process writes, or an export.

    `judge` names it; empty for the only one of the file. A recording that is damaged or does not say what to replay is
    an InputError or a UsageError.
    """

    max_concurrency = 1
    free = True
    recorded = True

    def __init__(self, path: Path, judge: str = "") -> None:
        self._path = path
        self._opened: Store | IO[bytes] | None = None
        self._parameters: list[Mapping[str, Any]] = []
        """Judges are asked under a few sets of parameters; each is kept once."""
        self._places: dict[bytes, tuple[int, str | int]] = {}
        """The number of the parameters, and where the answer is, by what was asked."""
        takes_system = False
        judges: dict[str, None] = {}
        forms: set[AnswerForm] = set()
        for place, row in placed_rows(path):
            judges[row[1]] = None
            if row[1] == (judge or next(iter(judges))):
                entry = recorded(row)
                forms.add(entry.form)
                takes_system |= any(message.role == "system" for message in entry.messages)
                self._note(place, entry)
        names = ", ".join(sorted(judges))
        if not judges:
            raise UsageError(f"{path}: the recording is empty")
        if not judge and len(judges) > 1:
            raise UsageError(f"{path}: holds several judges, name one as replay/{path}::JUDGE: {names}")
        self.name = judge or names
        if self.name not in judges:
            raise UsageError(f"{path}: holds no judge {judge!r}, but {names}")
        self.forms = tuple(form for form in _FORMS if form in forms)
        self.omitted = () if takes_system else ("system",)

    def _note(self, place: str | int, entry: Recorded) -> None:
        if entry.parameters not in self._parameters:
            self._parameters.append(entry.parameters)
        number = self._parameters.index(entry.parameters)
        # Of two answers to the same request, the first counts.
        first, earlier = self._places.setdefault(_key(entry), (number, place))
        if first != number and _without_limit(self._parameters[first]) == _without_limit(entry.parameters):
            kept = self._at(earlier)
            self._close()
            if _counts_more(entry, kept):
                self._places[_key(entry)] = number, place
        elif first != number:
            digest = self._at(earlier).digest
            self._close()
            raise UsageError(
                f"{self._path}: {entry.judge} was asked the same thing under different parameters "
                f"({digest[:12]}, {entry.digest[:12]}): the recording does not say which to replay"
            )

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """The recorded parameters of this request; empty if it is not in the recording."""
        found = self._places.get(_key(request))
        return {} if found is None else self._parameters[found[0]]

    async def complete(self, request: Request) -> Completion:
        """The recorded completion; StructureUnsupported where the recording may have it in another form."""
        found = self._places.get(_key(request))
        if found is None:
            # In the middle of the recorded run, the judge may have been asked in another form.
            raise StructureUnsupported(f"{self._path} holds no completion for this request", lasting=False)
        entry = self._at(found[1])
        asked = self.name, self._parameters[found[0]], request.messages, request.sample
        if (entry.judge, entry.parameters, entry.messages, entry.sample) != asked:
            raise self._changed()
        return entry.completion

    async def aclose(self) -> None:
        """Release the file; the next completion opens it again."""
        self._close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._close()

    def _close(self) -> None:
        opened = self._opened
        self._opened = None
        if opened is not None:
            opened.close()

    def _at(self, place: str | int) -> Recorded:
        # It is open only while completions are read, so that it can be the journal of the same run.
        try:
            if self._opened is None:
                self._opened = self._path.open("rb") if isinstance(place, int) else Store(self._path)
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


def _counts_more(entry: Recorded, kept: Recorded) -> bool:
    """Whether one of two replies under different token limits counts more than another.

    As in a journal, it is the first one that did not end at its limit, else the last.
    """
    if entry.completion.is_cut != kept.completion.is_cut:
        return kept.completion.is_cut
    has_less = _limit(entry.parameters) < _limit(kept.parameters)
    return has_less != entry.completion.is_cut


def _limit(parameters: Mapping[str, Any]) -> int:
    """The most tokens of a reply; 0 where none is named."""
    limits = (parameters.get(name) for name in LIMITS)
    return max((limit for limit in limits if isinstance(limit, int)), default=0)


def _without_limit(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name not in LIMITS}


def _key(asked: Request | Recorded) -> bytes:
    return hashlib.sha256(msgspec.json.encode((asked.messages, asked.sample))).digest()[:_KEY]


def open_model(model: str, options: ModelOptions) -> Replay:
    """The judge recorded in `FILE`, or in `FILE::JUDGE` the one of that name; the errors are those of `Replay`."""
    file, _, judge = model.partition("::")
    return Replay(Path(file), judge)
