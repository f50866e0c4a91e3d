"""Test grades under seal: what may be published about them, and how they are opened.

The seal commits to the test file without revealing it: SHA-256 over a secret salt and the file's bytes. Beside the seal
lies a ledger with a line for each new question put to the test grades.
"""

import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

import msgspec

from judge.errors import InputError, OperationalError, UsageError
from judge.gold.ledger import Entry, Look, Opening, fewest, parse_ledger, record_look
from judge.gold.rows import GoldRow, parse_gold, read_gold
from judge.io.ids import Cluster
from judge.io.paths import StrPath
from judge.io.stored import read_stored, sha256

SEAL = "seal.json"
LEDGER = "openings.jsonl"
GOLD_FILES = ("dev.jsonl", "gold.jsonl")
"""Names of gold in the folders of `judge gold split` and `judge crowd`."""
TEST_FILES = ("test.jsonl",)
FEWEST_OPENED = 10
"""Fewest responses that a look at sealed grades may compare: with one, each number shows its grade."""
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


class Seal(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
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
    cluster: Cluster = "topic"
    """What the split never cuts."""


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


def seal_of(test: StrPath | None, seal: StrPath | None) -> Path | None:
    """The seal of test grades: the one that is named, else `seal.json` beside them; None without test grades.

    Raises:
        UsageError: A seal is named without test grades.
    """
    if test is None:
        if seal is not None:
            raise UsageError("--seal names the seal of the grades in --test: give both")
        return None
    return Path(test).with_name(SEAL) if seal is None else Path(seal)


def read_sealed(test: Path, seal: Path) -> tuple[Seal, bytes]:
    """A seal, and the content of the test file that it was made for, unread.

    Args:
        test: The test file, with its salt beside it (`test.jsonl` and `test.salt`).
        seal: The seal.

    Raises:
        InputError: Test file, salt or seal are missing, or were changed.
    """
    record, stored = read_seal(seal), read_stored(test)
    salt = test.with_suffix(".salt")
    if salted(read_salt(salt), stored) != record.commitment:
        raise InputError(
            f"{test}: not the test grades that {seal} was made for: the file or its salt ({salt.name}) has been "
            "changed or belongs to another split"
        )
    return record, stored


def open_sealed(
    test: Path, seal: Path, now: str, look: Callable[[tuple[GoldRow, ...]], Look]
) -> tuple[tuple[GoldRow, ...], Opening]:
    """Open the test grades: verify that they are the sealed ones, and put the look at them on record.

    Args:
        test: The test file, with its salt beside it (`test.jsonl` and `test.salt`).
        seal: The seal; the ledger lies beside it.
        now: The time for the record.
        look: What is asked of the rows, and about how many of them. It raises an error, without naming a grade, if the
            rows cannot be used. Then nothing is put on record.

    Returns:
        The rows, and the look.

    Raises:
        InputError: Test file, salt or seal were changed, the ledger is damaged, or so few responses are compared that
            the result would show single grades.
        OperationalError: The ledger cannot be written; the grades stay closed.
    """
    seal_record, stored = read_sealed(test, seal)
    rows = parse_gold(stored, str(test))
    if side(rows) != seal_record.test:
        raise InputError(f"{seal}: changed by hand: its list of test items differs from the sealed grades")
    asked = look(rows)
    if 0 < (n := fewest(asked.compared.values())) < FEWEST_OPENED:
        raise InputError(
            f"{test}: this look compares {n} of the sealed grades, and so few could be read off its result: "
            f"expected {FEWEST_OPENED} or more; the seal was not opened"
        )
    try:
        return rows, record_look(seal.with_name(LEDGER), seal_record.commitment, asked, now)
    except OperationalError as error:
        raise OperationalError(f"{error}; the test grades stay closed") from error


def responses_digest(seal: Seal) -> str:
    """SHA-256 of the graded responses of both parts, without their grades: the same however the gold was split."""
    items = sorted(msgspec.to_builtins({*seal.dev.items, *seal.test.items}), key=str)
    return sha256(msgspec.json.encode(items, order="sorted"))


def sealed_beside(path: Path, rows: Iterable[GoldRow]) -> bool:
    """Whether rows of a file are about sealed test items, according to a seal in the same folder."""
    seal = path.with_name(SEAL)
    if not seal.exists():
        return False
    held_out = set(read_seal(seal).test.items)
    return any(item_of(row) in held_out for row in rows)


def read_unsealed(paths: Iterable[StrPath], advice: str) -> tuple[GoldRow, ...]:
    """The rows of gold files, none of which is under seal.

    Args:
        paths: The files.
        advice: What to do with sealed grades instead, for the message.

    Raises:
        InputError: A file cannot be read or has problems.
        UsageError: A file holds sealed test grades.
    """
    gold: list[GoldRow] = []
    for path in map(Path, paths):
        rows = read_gold(path)
        if sealed_beside(path, rows):
            raise UsageError(f"{path}: sealed test grades: {advice}")
        gold += rows
    return tuple(gold)


def read_ledger(seal: Path) -> tuple[Entry, ...]:
    """Read every question that was put to the sealed grades, in order; an unfinished last line is skipped.

    Raises:
        InputError: The seal cannot be read, or the ledger is damaged.
    """
    ledger = seal.with_name(LEDGER)
    content = read_stored(ledger) if ledger.exists() else b""
    return parse_ledger(content, read_seal(seal).commitment, str(ledger))[0]


def item_of(row: GoldRow) -> SealedItem:
    """The graded response that a row is about."""
    return SealedItem(row.turn_id, row.text_sha256 or row.response_id or "", row.run_id)


def side(rows: tuple[GoldRow, ...]) -> Side:
    """What a seal says about the rows of a part, in their order."""
    topics, items = dict.fromkeys(row.topic_id for row in rows), dict.fromkeys(map(item_of, rows))
    return Side(len(rows), tuple(topics), tuple(items))
