"""A ledger of the looks at gold: a hash chain with a line for each new question that was put to the grades.

Nobody can secretly ask until a result pleases: a line that is changed or cut out breaks the chain. The chain cannot
show that its last lines were removed, or that a copy of it goes on elsewhere. So a certificate holds the number of
lines and the digest of the last one.
"""

import contextlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import msgspec

from judge.errors import InputError, OperationalError
from judge.io.files import read_stored, sha256
from judge.records import Problem

BEGINNING = "0" * 64
"""What the first line of a ledger without a seal follows."""


class Look(msgspec.Struct, frozen=True):
    """One question to the grades, before it is on record."""

    question: str
    """Digest of all that is asked: judgments, options, and the responses that are compared."""
    compared: dict[str, int]
    """By criterion, the fewest responses that a number of the result rests on."""
    candidates: dict[str, tuple[str, ...]]
    """By criterion, a digest of the labels of each judge that is compared, tried bounds of a cascade among them."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a ledger."""

    number: int
    time: str
    question: str
    """As in the look, like the two fields that follow."""
    compared: dict[str, int]
    candidates: dict[str, tuple[str, ...]]
    previous: str
    """SHA-256 of the line before, without its line break; for the first, what the ledger begins with."""


class Opening(msgspec.Struct, frozen=True):
    """One look at the grades, on record."""

    entries: tuple[Entry, ...]
    """All lines of the ledger, this question's included."""
    head: str
    repeated: bool

    @property
    def number(self) -> int:
        """How many different questions have been put to the grades, this one included."""
        return len(self.entries)

    def candidates(self, criterion: str) -> int:
        """How many different candidates were compared under a criterion in all of them."""
        return len({candidate for entry in self.entries for candidate in entry.candidates.get(criterion, ())})


def record_look(ledger: Path, beginning: str, look: Look, now: str) -> Opening:
    """Put a look on record, unless its question is there already.

    An InputError if the ledger is damaged, or is a link. An OperationalError if the ledger cannot be written.
    """
    if ledger.is_symlink():
        raise InputError(f"{ledger}: a link where the record of looks has to be; move it away")
    content = read_stored(ledger) if ledger.exists() else b""
    # Not opened for writing yet: a recorded question may be repeated in a read-only folder.
    if opening := _on_record(content, beginning, look, str(ledger)):
        return opening
    try:
        with ledger.open("a+b") as file:
            _lock(file)
            file.seek(0)
            content = file.read()
            if opening := _on_record(content, beginning, look, str(ledger)):
                return opening
            entries, sound = parse_ledger(content, beginning, str(ledger))
            file.truncate(sound)
            previous = _head(content[:sound]) if entries else beginning
            entry = Entry(len(entries) + 1, now, look.question, look.compared, look.candidates, previous)
            line = msgspec.json.encode(entry)
            line_break = b"" if content[:sound].endswith(b"\n") or not sound else b"\n"
            file.write(line_break + line + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OperationalError(f"{ledger}: cannot be written: {error.strerror}") from error
    return Opening((*entries, entry), sha256(line), repeated=False)


def parse_ledger(content: bytes, beginning: str, name: str) -> tuple[tuple[Entry, ...], int]:
    """The lines of a ledger, and how many bytes its whole lines take; an unfinished last line is skipped.

    An InputError if a line is damaged, missing or was added by hand.
    """
    entries: list[Entry] = []
    previous, sound = beginning, 0
    lines = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        last = number == len(lines)
        if last and not line:
            break
        try:
            entry = msgspec.json.decode(line, type=Entry)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            if last and _torn(line, number):
                break
            entry = None
        if entry is None or entry.number != number or entry.previous != previous:
            message = "not the line that followed the one before it: the ledger was changed, or a line is damaged"
            problem = Problem("ledger_damaged", "error", name, None, f"line {number}", message)
            raise InputError(f"{name}: the record of looks is damaged; restore it from a copy", [problem])
        entries.append(entry)
        previous = sha256(line)
        sound += len(line) + (not last)
    return tuple(entries), sound


def fewest(compared: Iterable[int]) -> int:
    """The fewest responses behind numbers that rest on any."""
    return min((n for n in compared if n), default=0)


def _on_record(content: bytes, beginning: str, look: Look, name: str) -> Opening | None:
    entries, sound = parse_ledger(content, beginning, name)
    if any(entry.question == look.question for entry in entries):
        # All entries count, the later ones included: what they showed is known by now.
        return Opening(entries, _head(content[:sound]), repeated=True)
    return None


def _head(content: bytes) -> str:
    """The digest of the last line."""
    return sha256(content.removesuffix(b"\n").rpartition(b"\n")[2])


def _lock(file: BinaryIO) -> None:
    """Keep a second command from appending at the same time; released when the file is closed."""
    if sys.platform != "win32":
        import fcntl

        # Some network file systems have no locks; the chain then shows a collision as damage.
        with contextlib.suppress(OSError):
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)


def _torn(line: bytes, number: int) -> bool:
    """Whether a last line is an unfinished entry of an interrupted command, whose grades nobody was shown."""
    start = f'{{"number":{number},"time":"'.encode()
    return line.startswith(start) or start.startswith(line)
