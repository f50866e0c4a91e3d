"""Journals that are damaged, old, copied or cut off: what a check says, and what a salvage keeps."""

import asyncio
import errno
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from judge.errors import InputError, OperationalError, UsageError
from judge.models.journal import Journal
from judge.models.journal_check import JournalReport, salvage_journal, verify_journal
from judge.models.journal_rows import DamagedRow, check_row, lacks_log, read_journal, request_digest
from judge.models.journal_sum import SUM, DigestSum
from judge.models.records import Completion
from tests.models.test_journal import completion, request

PAGE = 4096
TEXTS = [f"Grade: {index % 4}{' and so on' * (index * 37)}" for index in range(12)]
DIGESTS = [request_digest("b/m", {"t": 0}, request(f"question {index}")) for index in range(12)]


def fill(journal: Journal, numbers: range = range(12)) -> None:
    async def one(index: int) -> None:
        asked = request(f"question {index}")
        await journal.put(DIGESTS[index], "b/m", {"t": 0}, asked, completion(TEXTS[index]))

    async def run() -> None:
        for index in numbers:
            await one(index)

    asyncio.run(run())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Journal(tmp_path / "journal.sqlite") as journal:
        fill(journal)
    return tmp_path / "journal.sqlite"


def change(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def held(path: Path) -> dict[str, Completion]:
    return {entry.digest: entry.completion for entry in read_journal(path)}


SWAP_COMPLETIONS = (
    "CREATE TABLE kept AS SELECT * FROM completion",
    f"UPDATE completion SET completion = (SELECT completion FROM kept WHERE digest = '{DIGESTS[1]}'), "
    f"checksum = (SELECT checksum FROM kept WHERE digest = '{DIGESTS[1]}') WHERE digest = '{DIGESTS[0]}'",
    "DROP TABLE kept",
)
SWAP_DIGESTS = (
    f"UPDATE completion SET digest = 'aside' WHERE digest = '{DIGESTS[0]}'",
    f"UPDATE completion SET digest = '{DIGESTS[0]}' WHERE digest = '{DIGESTS[1]}'",
    f"UPDATE completion SET digest = '{DIGESTS[1]}' WHERE digest = 'aside'",
)
ANOTHER_GRADE = ("UPDATE completion SET completion = replace(completion, 'Grade: 0', 'Grade: 3')",)
NO_CHECKSUM = (f"UPDATE completion SET checksum = '' WHERE digest = '{DIGESTS[0]}'",)


@pytest.mark.parametrize("statements", [ANOTHER_GRADE, SWAP_COMPLETIONS, SWAP_DIGESTS, NO_CHECKSUM])
def test_what_was_not_recorded_is_never_given_back(path: Path, statements: tuple[str, ...]) -> None:
    change(path, *statements)
    with Journal(path) as journal, pytest.raises(InputError, match=f"damaged at the completion {DIGESTS[0]}: its cont"):
        journal.get(DIGESTS[0])
    with pytest.raises(InputError, match=r"its content is not what was recorded; .*judge journal salvage"):
        held(path)
    with Journal(None) as journal, pytest.raises(InputError, match="its completions cannot be taken over"):
        journal.adopt(path)
    report = verify_journal(path)
    assert (DIGESTS[0], "its content is not what was recorded") in report.problems


def test_every_column_but_the_time_is_under_the_checksum(path: Path) -> None:
    connection = sqlite3.connect(path)
    row = connection.execute("SELECT * FROM completion").fetchone()
    connection.close()
    check_row(row)
    for place, value in enumerate(row):
        changed = (*row[:place], f"{value}x", *row[place + 1 :])
        if place == 10:
            check_row(changed)
            continue
        with pytest.raises(DamagedRow):
            check_row(changed)


def test_one_flipped_bit_anywhere_changes_no_completion(path: Path, tmp_path: Path) -> None:
    data, recorded = path.read_bytes(), held(path)
    broken = tmp_path / "broken.sqlite"
    refused = 0
    for bit in range(0, len(data) * 8, 9973):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        broken.write_bytes(flipped)
        try:
            with Journal(broken) as journal:
                found = {digest: journal.get(digest) for digest in DIGESTS}
        except InputError as error:
            assert f"judge journal salvage {broken}" in str(error) or "schema version" in str(error)
            refused += 1
        else:
            assert found == recorded
    assert refused > 10


@pytest.mark.parametrize("summed", [True, False])
def test_a_completion_that_an_index_hides_is_not_paid_for_again(path: Path, summed: bool) -> None:
    """A journal that an older version of judge wrote has no sum of its digests."""
    if not summed:
        change(path, f"DELETE FROM meta WHERE key = '{SUM}'")
    data = bytearray(path.read_bytes())
    # The digest stands twice: in the table and in its index, which is found by the second place.
    places = [place for place in range(len(data)) if data.startswith(DIGESTS[5].encode(), place)]
    assert len(places) == 2
    refused = 0
    for place in places:
        broken = bytearray(data)
        broken[place] ^= 1
        path.write_bytes(broken)
        try:
            with Journal(path) as journal:
                # Found by the index, so what stands in the table is looked at no more than any row is.
                assert journal.get(DIGESTS[5]) == completion(TEXTS[5])
        except InputError as error:
            refused += 1
            assert "its index is damaged at the completion" in str(error)
            assert f"judge journal salvage {path}" in str(error)
        new = path.with_name(f"new-{place}.sqlite")
        salvage_journal(path, new)
        assert set(DIGESTS) - held(new).keys() <= {DIGESTS[5]}
    assert refused == (1 if summed else 2)


@pytest.mark.parametrize("summed", [True, False])
def test_an_index_out_of_order_is_refused(path: Path, summed: bool) -> None:
    """A search in it would miss two completions, though it names every one."""
    if not summed:
        change(path, f"DELETE FROM meta WHERE key = '{SUM}'")
    data = path.read_bytes()
    first, second = (digest.encode() for digest in sorted(DIGESTS)[3:5])
    # In the index, each digest is followed by the number of its row; in the table, by the name of the judge.
    places = {
        digest: next(at for at in range(len(data)) if data.startswith(digest, at) and data[at + 64 : at + 67] != b"b/m")
        for digest in (first, second)
    }
    broken = bytearray(data)
    broken[places[first] : places[first] + 64], broken[places[second] : places[second] + 64] = second, first
    path.write_bytes(broken)
    with pytest.raises(InputError, match=rf"its index is damaged at the completion {first.decode()}"):
        Journal(path)


def test_the_sum_of_the_digests_follows_what_is_added(path: Path, tmp_path: Path) -> None:
    def kept(at: Path) -> str:
        connection = sqlite3.connect(at)
        value = connection.execute("SELECT value FROM meta WHERE key = ?", (SUM,)).fetchone()[0]
        connection.close()
        return str(value)

    assert kept(path) == DigestSum().plus(DIGESTS).text()
    with Journal(tmp_path / "taken") as journal:
        fill(journal, range(3))
        # Three of the twelve are there, and asking again adds nothing.
        journal.adopt(path)
        fill(journal, range(12))
    assert kept(tmp_path / "taken") == kept(path)
    # What another program does to the table and its index alike is its own affair, and the sum follows.
    change(path, f"DELETE FROM completion WHERE digest = '{DIGESTS[0]}'")
    with Journal(path) as journal:
        assert len(journal) == 11
        assert journal.get(DIGESTS[0]) is None
        assert DIGESTS[1] in journal
    assert kept(path) == DigestSum().plus(DIGESTS[1:]).text()


def test_a_completion_found_under_another_digest_is_not_given_back(path: Path) -> None:
    """The index keeps the number of a row behind its digest: two numbers change places."""
    data = bytearray(path.read_bytes())
    places = {}
    for number in (3, 4):
        text = DIGESTS[number - 1].encode()
        found = [place for place in range(len(data)) if data.startswith(text, place) and data[place + 64] == number]
        places[number] = found[0] + 64
        assert len(found) == 1
    data[places[3]], data[places[4]] = 4, 3
    path.write_bytes(data)
    with Journal(path) as journal:
        assert journal.get(DIGESTS[0]) == completion(TEXTS[0])
        for number in (3, 4):
            with pytest.raises(InputError, match="its content is not what was recorded"):
                journal.get(DIGESTS[number - 1])


def test_a_sound_journal_is_called_sound(path: Path) -> None:
    before = path.read_bytes()
    assert verify_journal(path) == JournalReport(12, 0, ())
    assert path.read_bytes() == before


def test_any_damaged_page_costs_only_what_is_on_it(path: Path, tmp_path: Path) -> None:
    data, recorded = path.read_bytes(), held(path)
    lost_in_all = set()
    for number in range(len(data) // PAGE):
        broken, new = tmp_path / "broken.sqlite", tmp_path / f"new-{number}.sqlite"
        broken.write_bytes(data[: number * PAGE] + bytes(PAGE) + data[(number + 1) * PAGE :])
        report = salvage_journal(broken, new)
        kept = held(new)
        assert kept.items() <= recorded.items()
        # What is not kept is named.
        assert {digest for digest, _ in report.problems} == recorded.keys() - kept.keys()
        assert report.sound == len(kept) >= 12 - 6
        lost_in_all |= recorded.keys() - kept.keys()
        with Journal(new) as journal:
            assert all(journal.get(digest) == kept[digest] for digest in kept)
            fill(journal)
            assert len(journal) == 12
        assert verify_journal(new) == JournalReport(12, 0, ())
    assert lost_in_all == recorded.keys()


def test_what_a_damaged_page_took_is_named_however_the_index_is_built(tmp_path: Path) -> None:
    """With 150 rows the index has pages above its leaves, and each of them holds a digest that no leaf has."""
    path, broken = tmp_path / "journal.sqlite", tmp_path / "broken.sqlite"
    asked = {request_digest("b/m", {}, request(str(number))): request(str(number)) for number in range(150)}

    async def run(journal: Journal) -> None:
        await asyncio.gather(*(journal.put(digest, "b/m", {}, one, completion()) for digest, one in asked.items()))

    with Journal(path) as journal:
        asyncio.run(run(journal))
    data = path.read_bytes()
    for number in range(len(data) // PAGE):
        broken.write_bytes(data[: number * PAGE] + bytes(PAGE) + data[(number + 1) * PAGE :])
        new = tmp_path / f"new-{number}.sqlite"
        report = salvage_journal(broken, new)
        assert {digest for digest, _ in report.problems} == asked.keys() - held(new).keys()


def test_salvage_writes_over_nothing(path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(UsageError, match="is there already"):
        salvage_journal(path, path)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="is there already"):
        salvage_journal(path, tmp_path / "link")
    assert path.read_bytes() == before
    text = tmp_path / "text"
    text.write_text("no journal at all" * 1000)
    with pytest.raises(InputError, match="holds no completion that is sound"):
        salvage_journal(text, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    for check in (verify_journal, lambda at: salvage_journal(at, tmp_path / "new")):
        with pytest.raises(InputError, match="no such journal"):
            check(tmp_path / "absent")
    with pytest.raises(InputError, match="cannot be read as a journal"):
        verify_journal(text)


@pytest.mark.parametrize("what", ["found_rows", "indexed_digests"])
@pytest.mark.parametrize("named", [True, False])
def test_a_journal_that_cannot_be_read_is_named_and_leaves_nothing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, named: bool
) -> None:
    log = f"{path}-wal"

    def broken(at: Path, known: object = ()) -> Iterator[object]:
        raise OSError(errno.EIO, os.strerror(errno.EIO), *([log] if named else []))
        yield

    monkeypatch.setattr(f"judge.models.journal_check.{what}", broken)
    for check in (verify_journal, lambda at: salvage_journal(at, tmp_path / "new")):
        with pytest.raises(InputError, match="cannot be read: Input/output error") as caught:
            check(path)
        assert str(caught.value).startswith(f"{log if named else path}: ")
    assert [one.name for one in tmp_path.iterdir()] == ["journal.sqlite"]


def test_a_place_that_cannot_be_written_is_named(path: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OperationalError, match="file/new: cannot be written"):
        salvage_journal(path, tmp_path / "file" / "new")


# ---------------------------------------------------------------- journals of an earlier version

OLD_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE completion (digest TEXT PRIMARY KEY, judge TEXT NOT NULL, parameters TEXT NOT NULL, messages TEXT NOT NULL,
sample INTEGER NOT NULL, form TEXT NOT NULL, criterion TEXT NOT NULL, turn_id TEXT NOT NULL, response_id TEXT NOT NULL,
completion TEXT NOT NULL, recorded TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')));
INSERT INTO meta VALUES ('schema', '1');
"""


@pytest.fixture
def old(path: Path, tmp_path: Path) -> Path:
    """A journal of schema version 1 with the first ten completions."""
    target = sqlite3.connect(tmp_path / "old.sqlite")
    target.executescript(OLD_SCHEMA)
    target.execute("ATTACH ? AS new", (str(path),))
    names = ", ".join(row[1] for row in target.execute("PRAGMA main.table_info(completion)"))
    target.execute(f"INSERT INTO completion SELECT {names} FROM new.completion LIMIT 10")
    target.commit()
    target.close()
    return tmp_path / "old.sqlite"


def test_a_journal_without_checksums_is_read_and_says_so(old: Path, path: Path, tmp_path: Path) -> None:
    recorded = held(old)
    assert recorded.items() < held(path).items()
    assert verify_journal(old) == JournalReport(10, 10, ())
    salvage_journal(old, tmp_path / "new.sqlite")
    assert held(tmp_path / "new.sqlite") == recorded
    with Journal(tmp_path / "taken") as journal:
        journal.adopt(old)
        assert {digest: journal.get(digest) for digest in recorded} == recorded
    with Journal(old) as journal:
        assert {digest: journal.get(digest) for digest in recorded} == recorded
        fill(journal)
    # What is recorded from now on has a checksum.
    assert verify_journal(old) == JournalReport(12, 10, ())
    change(old, "UPDATE completion SET completion = replace(completion, 'Grade', 'Score') WHERE checksum IS NOT NULL")
    assert len(verify_journal(old).problems) == 2


def test_without_a_checksum_a_row_still_has_to_answer_its_question(old: Path, tmp_path: Path) -> None:
    change(old, "UPDATE completion SET messages = replace(messages, 'question 3', 'question 4')")
    assert verify_journal(old).problems == ((DIGESTS[3], "its digest is not that of its question"),)
    report = salvage_journal(old, tmp_path / "new.sqlite")
    assert (report.sound, [digest for digest, _ in report.problems]) == (9, [DIGESTS[3]])


# ---------------------------------------------------------------- copies


def test_a_copy_of_the_file_alone_has_what_was_committed_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.models.journal_writer._CHECKPOINT", 0.0)
    path, copied = tmp_path / "journal.sqlite", tmp_path / "copy.sqlite"
    with Journal(path) as journal:
        fill(journal)
        assert not lacks_log(path)
        shutil.copy(path, copied)
    assert not lacks_log(path)
    assert lacks_log(copied)
    report = verify_journal(copied)
    assert (report.sound, [place for place, _ in report.problems]) == (12, [""])
    assert "its -wal file is missing: bring copy.sqlite-wal" in report.problems[0][1]
    with Journal(copied) as journal:
        assert len(journal) == 12
    # Whoever has opened it once knows what there is.
    assert verify_journal(copied) == JournalReport(12, 0, ())


def copy_with_log(tmp_path: Path, damage: Callable[[bytes], bytes]) -> Path:
    """A journal as a kill leaves it: twelve commits are in the `-wal` file only."""
    with Journal(tmp_path / "journal.sqlite") as journal:
        fill(journal, range(3))
        journal._checkpoint()
        fill(journal, range(3, 12))
        for name in ("journal.sqlite", "journal.sqlite-wal"):
            data = (tmp_path / name).read_bytes()
            (tmp_path / "killed").mkdir(exist_ok=True)
            (tmp_path / "killed" / name).write_bytes(damage(data) if name.endswith("-wal") else data)
    return tmp_path / "killed" / "journal.sqlite"


def test_what_a_kill_leaves_in_the_log_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.models.journal_writer._CHECKPOINT", 3600.0)
    killed = copy_with_log(tmp_path, lambda data: data)
    assert verify_journal(killed) == JournalReport(12, 0, ())
    assert salvage_journal(killed, tmp_path / "new.sqlite") == JournalReport(12, 0, ())
    with Journal(killed) as journal:
        assert len(journal) == 12


def test_a_damaged_log_hides_nothing_from_a_salvage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite forgets whatever follows a damaged frame, and says nothing."""
    monkeypatch.setattr("judge.models.journal_writer._CHECKPOINT", 3600.0)
    # The checksum of the first frame, which nothing but SQLite's own replay needs.
    killed = copy_with_log(tmp_path, lambda data: data[:48] + bytes([data[48] ^ 1]) + data[49:])
    report = verify_journal(killed)
    assert report.sound == 3
    assert {why for _, why in report.problems} == {"it is in the file, but SQLite does not reach it"}
    assert len(report.problems) == 9
    assert salvage_journal(killed, tmp_path / "new.sqlite") == JournalReport(12, 0, ())


def test_a_full_disk_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite wants a file beside a journal that was not closed; a limit on files stands in for the disk."""
    resource = pytest.importorskip("resource", reason="this system has no limits on files")
    monkeypatch.setattr("judge.models.journal_writer._CHECKPOINT", 3600.0)
    killed = copy_with_log(tmp_path, lambda data: data)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        for read in (verify_journal, lambda path: list(read_journal(path))):
            with pytest.raises(InputError, match=r"its disk is full, and SQLite needs a little room") as caught:
                read(killed)
            assert "salvage" not in str(caught.value)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert verify_journal(killed) == JournalReport(12, 0, ())


def test_a_log_page_without_its_number_is_salvaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.models.journal_writer._CHECKPOINT", 3600.0)
    killed = copy_with_log(tmp_path, lambda data: data)
    log = killed.with_name(f"{killed.name}-wal")
    data = log.read_bytes()
    # A frame has 24 bytes before its page, the first four of which are the number of the page.
    leaves = [at for at in range(32, len(data), 24 + PAGE) if data[at + 24] == 0x0D]
    assert leaves
    for at in leaves:
        log.write_bytes(data[:at] + bytes(4) + data[at + 4 :])
        new = tmp_path / f"new-{at}.sqlite"
        assert salvage_journal(killed, new) == JournalReport(12, 0, ())
        new.unlink()
