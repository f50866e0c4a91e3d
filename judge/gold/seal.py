"""Gold split by topic or theme: a dev part to choose a judge on, and a test part under a seal, which opens it.

The seal commits to the test file without revealing it: SHA-256 over a secret salt and the file's bytes. Beside the seal
lies a ledger with a line for each new question put to the test grades.

A ledger is a hash chain. Nobody can secretly ask until a result pleases: a line that is changed or cut out breaks the
chain. The chain cannot show that its last lines were removed, or that a copy of it goes on elsewhere. So a certificate
holds the number of lines and the digest of the last one.
"""

import contextlib
import os
import re
import secrets
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Literal

import msgspec

from judge.errors import InputError, OperationalError, UsageError
from judge.gold.rows import GoldRow, gold_jsonl, parse_gold, read_gold, row_order
from judge.io.files import StrPath, json_bytes, json_of, read_stored, sha256
from judge.io.folder import make_folder, write_atomic
from judge.io.ids import Cluster, cluster_of, natural_key
from judge.records import file_problem


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One line of a ledger."""

    number: int
    time: str
    question: str
    """Digest of all that is asked: judgments, options, and the responses that are compared."""
    compared: dict[str, int]
    """By criterion, the fewest responses that a number of the result rests on."""
    candidates: dict[str, tuple[str, ...]]
    """By criterion, a digest of the labels of each judge that is compared."""
    previous: str
    """SHA-256 of the line before, without its line break; for the first, the commitment of the seal."""
    margins: dict[str, float] = {}
    """By digest of a certificate, the margin by which its agreement is said to carry to these grades."""


Look = tuple[str, dict[str, int], dict[str, tuple[str, ...]]]
"""One question to the grades, before it is on record: `question`, `compared` and `candidates` of an entry."""


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


def record_look(
    ledger: Path, commitment: str, look: Look, now: str, margins: Mapping[str, float] = MappingProxyType({})
) -> Opening:
    """Put a look on record, unless its question is there already.

    An InputError if the ledger is damaged, or is a link. A UsageError if it has another margin for a certificate. An
    OperationalError if the ledger cannot be written.
    """
    if ledger.is_symlink():
        raise InputError(f"{ledger}: a link where the record of looks has to be; move it away")
    content = read_stored(ledger) if ledger.exists() else b""
    _check_margins(parse_ledger(content, commitment, str(ledger))[0], margins, str(ledger))
    # Not opened for writing yet: a recorded question may be repeated in a read-only folder.
    if opening := _on_record(content, commitment, look[0], str(ledger)):
        return opening
    try:
        with ledger.open("a+b") as file:
            _lock(file)
            file.seek(0)
            content = file.read()
            if opening := _on_record(content, commitment, look[0], str(ledger)):
                return opening
            entries, sound = parse_ledger(content, commitment, str(ledger))
            _check_margins(entries, margins, str(ledger))
            file.truncate(sound)
            previous = _head(content[:sound]) if entries else commitment
            question, compared, candidates = look
            entry = Entry(
                number=len(entries) + 1,
                time=now,
                question=question,
                compared=compared,
                candidates=candidates,
                previous=previous,
                margins=dict(margins),
            )
            line = msgspec.json.encode(entry)
            line_break = b"" if content[:sound].endswith(b"\n") or not sound else b"\n"
            file.write(line_break + line + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OperationalError(f"{ledger}: cannot be written: {error.strerror}") from error
    return Opening((*entries, entry), sha256(line), repeated=False)


def parse_ledger(content: bytes, commitment: str, name: str) -> tuple[tuple[Entry, ...], int]:
    """The lines of a ledger, and how many bytes its whole lines take; an unfinished last line is skipped.

    An InputError if a line is damaged, missing or was added by hand.
    """
    entries: list[Entry] = []
    previous = commitment
    sound = 0
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
            problem = file_problem("ledger_damaged", name, message, f"line {number}")
            raise InputError(f"{name}: the record of looks is damaged; restore it from a copy", [problem])
        entries.append(entry)
        previous = sha256(line)
        sound += len(line) + (not last)
    return tuple(entries), sound


def _check_margins(entries: Iterable[Entry], margins: Mapping[str, float], name: str) -> None:
    """Refuse a margin that was another one when these grades were first set against the certificate."""
    for entry in entries:
        for certificate, margin in entry.margins.items():
            if margins.get(certificate, margin) != margin:
                raise UsageError(
                    f"{name}: line {entry.number} sets the margin of certificate {certificate[:16]} at {margin:g}: "
                    f"it cannot be {margins[certificate]:g} now that the grades have been looked at"
                )


def fewest(compared: Iterable[int]) -> int:
    """The fewest responses behind numbers that rest on any."""
    return min((n for n in compared if n), default=0)


def _on_record(content: bytes, commitment: str, question: str, name: str) -> Opening | None:
    entries, sound = parse_ledger(content, commitment, name)
    if any(entry.question == question for entry in entries):
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
    """The digest of content that cannot be guessed without the salt; its fixed length, 64 digits, keeps both apart."""
    return sha256(salt + b"\n" + content)


def read_salt(path: Path) -> bytes:
    """Read the salt in a file; an InputError if the file is missing or holds none."""
    matched = _SALT.fullmatch(read_stored(path))
    if not matched:
        raise InputError(f"{path}: damaged: expected the 64 hexadecimal digits that `judge gold split` wrote")
    return matched[1]


def read_seal(path: Path) -> Seal:
    """Read the seal in a file; an InputError if the file cannot be read or is none."""
    return json_of(path, Seal, "not a seal as `judge gold split` writes it")


def seal_of(test: StrPath | None, seal: StrPath | None) -> Path | None:
    """The seal of test grades: the one that is named, else `seal.json` beside them; None without test grades.

    A UsageError if a seal is named without test grades.
    """
    if test is None:
        if seal is not None:
            raise UsageError("--seal names the seal of the grades in --test: give both")
        return None
    return Path(test).with_name(SEAL) if seal is None else Path(seal)


def read_sealed(test: Path, seal: Path) -> tuple[Seal, bytes]:
    """A seal, and the content of the test file that it was made for, unread; beside `test.jsonl` lies `test.salt`.

    An InputError if test file, salt or seal are missing, or were changed.
    """
    record = read_seal(seal)
    stored = read_stored(test)
    salt = test.with_suffix(".salt")
    if salted(read_salt(salt), stored) != record.commitment:
        raise InputError(
            f"{test}: not the test grades that {seal} was made for: the file or its salt ({salt.name}) has been "
            "changed or belongs to another split"
        )
    return record, stored


def open_sealed(
    test: Path,
    seal: Path,
    now: str,
    look: Callable[[tuple[GoldRow, ...]], Look],
    margins: Mapping[str, float] = MappingProxyType({}),
) -> tuple[tuple[GoldRow, ...], Opening]:
    """Open the test grades: verify that they are the sealed ones, and put the look at them on record.

    `look` says what is asked of the rows, and about how many of them. It raises an error, without naming a grade, if
    the rows cannot be used. Then nothing is put on record. The ledger lies beside the seal. An InputError if test file,
    salt or seal were changed, the ledger is damaged, or so few responses are compared that the result would show single
    grades. An OperationalError if the ledger cannot be written; the grades stay closed.
    """
    seal_record, stored = read_sealed(test, seal)
    rows = parse_gold(stored, str(test))
    if side(rows) != seal_record.test:
        raise InputError(f"{seal}: changed by hand: its list of test items differs from the sealed grades")
    _, compared, _ = asked = look(rows)
    if 0 < (n := fewest(compared.values())) < FEWEST_OPENED:
        raise InputError(
            f"{test}: this look compares {n} of the sealed grades, and so few could be read off its result: "
            f"expected {FEWEST_OPENED} or more; the seal was not opened"
        )
    try:
        return rows, record_look(seal.with_name(LEDGER), seal_record.commitment, asked, now, margins)
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
    """The rows of gold files, none of which is under seal; `advice` says what to do with sealed grades instead.

    An InputError if a file cannot be read or has problems. A UsageError if a file holds sealed test grades.
    """
    gold: list[GoldRow] = []
    for path in map(Path, paths):
        rows = read_gold(path)
        if sealed_beside(path, rows):
            raise UsageError(f"{path}: sealed test grades: {advice}")
        gold += rows
    return tuple(gold)


def item_of(row: GoldRow) -> SealedItem:
    """The graded response that a row is about."""
    return SealedItem(
        turn_id=row.turn_id,
        response=row.text_sha256 or row.response_id or "",
        run_id=row.run_id,
    )


def side(rows: tuple[GoldRow, ...]) -> Side:
    """What a seal says about the rows of a part, in their order."""
    topics = dict.fromkeys(row.topic_id for row in rows)
    items = dict.fromkeys(map(item_of, rows))
    return Side(rows=len(rows), topics=tuple(topics), items=tuple(items))


DRAWS = 500
"""Random splits to try; the best balanced one is taken (rerandomization: Morgan & Rubin 2012)."""

_Counts = Counter[tuple[str, int] | None]
"""(criterion, grade) to the number of rows; None to the number of items."""


def split_topics(rows: Iterable[GoldRow], share: float, seed: int, cluster: Cluster = "topic") -> frozenset[str]:
    """Choose the topics of the test part: about `share` of the items, with similar grades under each criterion.

    Many random orders of the topics are tried. Each is cut where the test part is nearest to its share of items. The
    split is taken whose counts of items and grades differ least from their expectation, as chi-square measures it. The
    orders come from SHA-256 of seed and topic, so neither the order of rows nor a library's version changes them. An
    InputError if there are fewer than two topics, or themes. A UsageError if the share is not between 0 and 1.
    """
    if not 0 < share < 1:
        raise UsageError(f"the share of the test part must lie between 0 and 1, not {share:g}")
    rows = tuple(rows)
    counts = _counts(rows, cluster)
    if len(counts) < 2:
        raise InputError(
            f"expected two {cluster}s or more, since a split never cuts a {cluster}; found {', '.join(counts)}"
        )
    topics = sorted(counts, key=natural_key)
    total: _Counts = sum(counts.values(), Counter())
    orders = (sorted(topics, key=lambda topic: sha256(f"{seed}:{draw}:{topic}".encode())) for draw in range(DRAWS))
    splits = [_cut(order, counts, share * total[None]) for order in orders]
    test = min(splits, key=lambda test: _imbalance(test, counts, total, share))
    return frozenset(row.topic_id for row in rows if cluster_of(row.topic_id, cluster) in test)


def write_split(rows: Sequence[GoldRow], share: float, seed: int, out: Path, cluster: Cluster = "topic") -> Seal:
    """Split gold and write `dev.jsonl`, `test.jsonl`, `test.salt` and `seal.json`; a second call writes the same bytes.

    An InputError if rows are split already, there is only one topic or theme, or the folder holds another split. A
    UsageError if the share is not between 0 and 1. An OperationalError if the disk is full or the folder cannot be
    written.
    """
    if any(row.split for row in rows):
        raise InputError("some rows have a `split` already: leave the field out to split them anew")
    test_topics = split_topics(rows, share, seed, cluster)
    ordered = sorted(rows, key=row_order)
    dev = _part(ordered, "dev", {row.topic_id for row in rows} - test_topics)
    test = _part(ordered, "test", test_topics)
    make_folder(out)
    salt_path = out / "test.salt"
    salt = read_salt(salt_path) if salt_path.exists() else secrets.token_hex(32).encode()
    test_bytes = gold_jsonl(test)
    seal = Seal(
        schema="judge-seal/1",
        # Salted too: who has the dev rows could guess a few test grades by a plain digest of all rows.
        source=salted(salt, gold_jsonl(ordered)),
        seed=seed,
        share=share,
        dev=side(dev),
        test=side(test),
        commitment=salted(salt, test_bytes),
        cluster=cluster,
    )
    # The seal is written last, so that every file it describes exists once it does.
    other = (
        "belongs to another split, and a sealed split is not replaced: choose another folder, or the gold, share, seed "
        "and cluster that it was made with"
    )
    contents = {
        "test.salt": salt + b"\n",
        "dev.jsonl": gold_jsonl(dev),
        "test.jsonl": test_bytes,
        "seal.json": json_bytes(seal),
    }
    for name, content in contents.items():
        refuse_other(out / name, content, other)
    for name, content in contents.items():
        write_atomic(out / name, content)
    return seal


def _counts(rows: Iterable[GoldRow], cluster: Cluster) -> dict[str, _Counts]:
    """By topic or theme, the number of its items, and of its rows with each criterion and grade."""
    counts: dict[str, _Counts] = defaultdict(Counter)
    items: dict[str, set[SealedItem]] = defaultdict(set)
    for row in rows:
        unit = cluster_of(row.topic_id, cluster)
        counts[unit][row.criterion, row.grade] += 1
        items[unit].add(item_of(row))
    for topic, graded in items.items():
        counts[topic][None] = len(graded)
    return counts


def _cut(topics: Sequence[str], counts: Mapping[str, _Counts], wanted: float) -> frozenset[str]:
    """The first topics, as many as come nearest to the wanted number of items; at least one, and not all."""
    items = accumulate(counts[topic][None] for topic in topics[:-1])
    return frozenset(topics[: min((abs(n - wanted), number) for number, n in enumerate(items, 1))[1]])


def _imbalance(test: Set[str], counts: Mapping[str, _Counts], total: _Counts, share: float) -> tuple[float, list[str]]:
    """Chi-square distance of the test part's counts from their share of all counts; the topics break ties."""
    test_counts: _Counts = Counter()
    # In a fixed order: rounding must not depend on the order of a set.
    for topic in sorted(test):
        test_counts.update(counts[topic])
    keys = sorted(total, key=lambda key: key or ("", 0))
    distance = sum((test_counts[key] - share * total[key]) ** 2 / total[key] for key in keys)
    return round(distance, 9), sorted(test, key=natural_key)


def _part(rows: Iterable[GoldRow], name: Literal["dev", "test"], topics: Set[str]) -> tuple[GoldRow, ...]:
    return tuple(msgspec.structs.replace(row, split=name) for row in rows if row.topic_id in topics)


def refuse_other(path: Path, content: bytes, message: str) -> None:
    """Refuse to replace a file that has other content, as an InputError with the message."""
    if path.exists() and read_stored(path) != content:
        raise InputError(f"{path}: {message}")
