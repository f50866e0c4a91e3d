"""Test grades under seal: what may be published about them, and a ledger of every look at them.

The seal commits to the test file without revealing it: SHA-256 over a secret salt and the file's bytes. The ledger
beside the seal is a hash chain with a line for each new question put to the test grades. So nobody can secretly ask
until a result pleases. The chain cannot show that its last lines were removed; publish the number of its lines.
"""

import contextlib
import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from judge.errors import InputError, OperationalError
from judge.files.stored import read_stored, sha256
from judge.gold.rows import GoldRow, parse_gold
from judge.records import Problem

SEAL = "seal.json"
LEDGER = "openings.jsonl"
GOLD_FILES = ("dev.jsonl", "gold.jsonl")
"""Names of gold in the folders of `judge gold split` and `judge crowd`."""
TEST_FILES = ("test.jsonl",)
_SALT = re.compile(rb"([0-9a-f]{64})\n?")


class SealedItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One graded response, named without its grades."""

    turn_id: str
    response: str
    """Digest of its text, or its id where gold has no digest."""
    run_id: str | None


class Side(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one part of a split contains, without grades."""

    rows: int
    topics: tuple[str, ...]
    items: tuple[SealedItem, ...]


class Seal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may be published about a split."""

    schema: Literal["judge-seal/1"]
    source: str
    """Salted digest of all rows in canonical order."""
    seed: int
    share: float
    """The share of the items that was requested for the test part."""
    dev: Side
    test: Side
    commitment: str
    """Salted digest of the test file's bytes."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of the ledger."""

    number: int
    time: str
    question: str
    """Digest of what was asked: judgments and options."""
    previous: str
    """SHA-256 of the line before, without its line break; the seal's commitment for the first."""


class Opening(msgspec.Struct, frozen=True):
    """One look at the test grades."""

    number: int
    """How many different questions have been put to the test grades, this one included."""
    repeated: bool
    """Whether this question was already on record."""


def salted(salt: bytes, content: bytes) -> str:
    """The digest of content that cannot be guessed without the salt.

    Args:
        salt: 64 hexadecimal digits; the fixed length keeps salt and content apart.
        content: The bytes to commit to.
    """
    return hashlib.sha256(salt + b"\n" + content).hexdigest()


def read_salt(path: Path) -> bytes:
    """Read the salt in a file.

    Raises:
        InputError: The file is missing or holds no salt.
    """
    matched = _SALT.fullmatch(read_stored(path))
    if not matched:
        raise InputError(f"{path}: damaged: expected the 64 hexadecimal digits that `judge gold split` wrote")
    return matched[1]


def read_seal(path: Path) -> Seal:
    """Read the seal in a file.

    Raises:
        InputError: The file cannot be read or is not a seal.
    """
    try:
        return msgspec.json.decode(read_stored(path), type=Seal)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not a seal as `judge gold split` writes it: {error}") from error


def open_sealed(
    test: Path,
    seal: Path,
    question: str,
    now: str,
    check: Callable[[tuple[GoldRow, ...]], None] = lambda rows: None,
) -> tuple[tuple[GoldRow, ...], Opening]:
    """Open the test grades: verify that they are the sealed ones, and put the look at them on record.

    Args:
        test: The test file, with its salt beside it (`test.jsonl` and `test.salt`).
        seal: The seal; the ledger lies beside it.
        question: Digest of what is asked: judgments and options.
        now: The time for the record.
        check: Raises an error, without naming a grade, if the rows cannot be used. Then nothing is put on record.

    Returns:
        The rows, and the look.

    Raises:
        InputError: Test file, salt or seal were changed, or the ledger is damaged.
        OperationalError: The ledger cannot be written; the grades stay closed.
    """
    seal_record = read_seal(seal)
    stored = read_stored(test)
    if salted(read_salt(test.with_suffix(".salt")), stored) != seal_record.commitment:
        raise InputError(
            f"{test}: not the test grades that {seal} was made for: the file or its salt "
            f"({test.with_suffix('.salt').name}) has been changed or belongs to another split"
        )
    rows = parse_gold(stored, str(test))
    if side(rows) != seal_record.test:
        raise InputError(f"{seal}: changed by hand: its list of test items differs from the sealed grades")
    check(rows)
    return rows, _record(seal.with_name(LEDGER), seal_record.commitment, question, now)


def sealed_beside(path: Path, rows: Iterable[GoldRow]) -> bool:
    """Whether rows of a file are about sealed test items, according to a seal in the same folder."""
    seal = path.with_name(SEAL)
    if not seal.exists():
        return False
    held_out = set(read_seal(seal).test.items)
    return any(item_of(row) in held_out for row in rows)


def read_ledger(seal: Path) -> tuple[Entry, ...]:
    """Read every question that was put to the sealed grades, in order; an unfinished last line is skipped.

    Raises:
        InputError: The seal cannot be read, or the ledger is damaged.
    """
    ledger = seal.with_name(LEDGER)
    content = read_stored(ledger) if ledger.exists() else b""
    return _entries(content, read_seal(seal).commitment, str(ledger))[0]


def item_of(row: GoldRow) -> SealedItem:
    """The graded response that a row is about."""
    return SealedItem(row.turn_id, row.text_sha256 or row.response_id or "", row.run_id)


def side(rows: tuple[GoldRow, ...]) -> Side:
    """What a seal says about the rows of a part, in their order."""
    topics, items = dict.fromkeys(row.topic_id for row in rows), dict.fromkeys(map(item_of, rows))
    return Side(len(rows), tuple(topics), tuple(items))


def _record(ledger: Path, commitment: str, question: str, now: str) -> Opening:
    """Put a question on record, unless it is there already."""
    content = read_stored(ledger) if ledger.exists() else b""
    entries, _ = _entries(content, commitment, str(ledger))
    # Not opened for writing yet: a recorded question may be repeated in a read-only folder.
    if opening := _on_record(entries, question):
        return opening
    try:
        with ledger.open("a+b") as file:
            _lock(file)
            file.seek(0)
            content = file.read()
            entries, sound = _entries(content, commitment, str(ledger))
            if opening := _on_record(entries, question):
                return opening
            previous = sha256(content[:sound].removesuffix(b"\n").rpartition(b"\n")[2]) if entries else commitment
            file.truncate(sound)
            line_break = b"" if content[:sound].endswith(b"\n") or not sound else b"\n"
            entry = Entry(len(entries) + 1, now, question, previous)
            file.write(line_break + msgspec.json.encode(entry) + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        message = f"{ledger}: cannot be written, so the test grades stay closed: {error.strerror}"
        raise OperationalError(message) from error
    return Opening(entry.number, repeated=False)


def _on_record(entries: tuple[Entry, ...], question: str) -> Opening | None:
    # The count includes later questions: what they showed is known by now.
    return Opening(len(entries), repeated=True) if any(entry.question == question for entry in entries) else None


def _lock(file: BinaryIO) -> None:
    """Keep a second command from appending at the same time; released when the file is closed."""
    if sys.platform != "win32":
        import fcntl

        # Some network file systems have no locks; the chain then shows a collision as damage.
        with contextlib.suppress(OSError):
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)


def _entries(content: bytes, commitment: str, name: str) -> tuple[tuple[Entry, ...], int]:
    """The lines of a ledger, and how many bytes its whole lines take.

    Raises:
        InputError: A line is damaged, missing or was added by hand.
    """
    entries: list[Entry] = []
    previous, sound = commitment, 0
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
            raise InputError(f"{name}: the record of openings is damaged; restore it from a copy", [problem])
        entries.append(entry)
        previous = sha256(line)
        sound += len(line) + (not last)
    return tuple(entries), sound


def _torn(line: bytes, number: int) -> bool:
    """Whether a last line is an unfinished entry of an interrupted command, whose grades nobody was shown."""
    start = f'{{"number":{number},"time":"'.encode()
    return line.startswith(start) or start.startswith(line)
