"""Journals that are damaged, copied or cut off, and views of several: what a check says, what a salvage keeps."""

import asyncio
import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from judge.errors import InputError, OperationalError, UsageError
from judge.judges import journal_tools as tools
from judge.judges.journal import Journal, JournalView
from judge.judges.journal_store import DamagedRow, check_row, new_row, request_digest
from judge.judges.records import Completion
from tests.conftest import put
from tests.judges.test_journal import completion, put_texts, request
from tests.mock import ask

PAGE = 4096
TEXTS = [f"Grade: {index % 4}{' and so on' * (index * 37)}" for index in range(12)]
DIGESTS = [request_digest("b/m", {"t": 0}, request(f"question {index}")) for index in range(12)]


def fill(journal: Journal, numbers: range = range(12)) -> None:
    async def run() -> None:
        for index in numbers:
            asked = request(f"question {index}")
            await journal.write(DIGESTS[index], "b/m", {"t": 0}, asked, completion(TEXTS[index]))

    asyncio.run(run())


@pytest.fixture
def path(tmp_path: Path, no_pause: None) -> Path:
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
    return {entry.digest: entry.completion for entry in tools.read_journal(path)}


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
    with Journal(None) as journal, pytest.raises(InputError, match=r"damaged at the completion \w+: its cont"):
        journal.adopt(path)
    assert (DIGESTS[0], "its content is not what was recorded") in tools.verify_journal(path).problems


def test_every_column_is_under_the_checksum(path: Path) -> None:
    connection = sqlite3.connect(path)
    row = connection.execute("SELECT * FROM completion").fetchone()
    connection.close()
    check_row(row)
    for place, value in enumerate(row):
        changed = (*row[:place], f"{value}x", *row[place + 1 :])
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
            # A digest of the index that is another one leads to nothing.
            assert all(one in (None, recorded[digest]) for digest, one in found.items())
            assert found == recorded or tools.verify_journal(broken).problems
    assert refused > 10


def test_a_damaged_index_is_named_and_costs_a_salvage_nothing(path: Path) -> None:
    data = bytearray(path.read_bytes())
    # The digest stands twice: in the table and in its index.
    places = [place for place in range(len(data)) if data.startswith(DIGESTS[5].encode(), place)]
    assert len(places) == 2
    kept = []
    for place in places:
        broken = bytearray(data)
        broken[place] ^= 1
        path.write_bytes(broken)
        assert ("", "SQLite: row 6 missing from index sqlite_autoindex_completion_1") in tools.verify_journal(
            path
        ).problems
        new = path.with_name(f"new-{place}.sqlite")
        tools.salvage_journal(path, new)
        kept.append(held(new).keys())
    assert set(DIGESTS) in kept
    assert set(DIGESTS) - {DIGESTS[5]} in kept


def test_what_another_program_does_to_table_and_index_alike_is_its_own_affair(path: Path, tmp_path: Path) -> None:
    with Journal(tmp_path / "taken") as journal:
        fill(journal, range(3))
        # Three of the twelve are there, and asking again adds nothing.
        journal.adopt(path)
        fill(journal, range(12))
    change(path, f"DELETE FROM completion WHERE digest = '{DIGESTS[0]}'")
    for at, number in ((tmp_path / "taken", 12), (path, 11)):
        with Journal(at) as journal:
            assert len(journal) == number
            assert (journal.get(DIGESTS[0]) is None) == (number == 11)
            assert DIGESTS[1] in journal


def test_a_row_without_a_checksum_is_damage(path: Path) -> None:
    """Whoever takes the rule out of the schema and the checksum out of the row has forged no grade."""
    change(
        path,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, 'checksum TEXT NOT NULL', 'checksum TEXT') WHERE type = 'table'",
    )
    change(path, "UPDATE completion SET checksum = NULL, completion = replace(completion, 'Grade: 0', 'Grade: 3')")
    with Journal(path) as journal, pytest.raises(InputError, match=r"damaged at the completion .*: it has no checksum"):
        journal.get(DIGESTS[0])
    assert {why for _, why in tools.verify_journal(path).problems} == {"it has no checksum"}
    with pytest.raises(InputError, match="holds no completion that is sound"):
        tools.salvage_journal(path, path.with_name("new"))


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
    assert tools.verify_journal(path) == tools.JournalReport(12, ())
    assert path.read_bytes() == before


def test_any_damaged_page_costs_only_what_is_on_it_and_that_is_named(tmp_path: Path) -> None:
    """With 150 rows the index has pages above its leaves, and each of them holds a digest that no leaf has."""
    path, broken = tmp_path / "journal.sqlite", tmp_path / "broken.sqlite"
    asked = {request_digest("b/m", {}, request(str(number))): request(str(number)) for number in range(150)}

    async def run(journal: Journal) -> None:
        await asyncio.gather(*(journal.write(it, "b/m", {}, one, completion(it)) for it, one in asked.items()))

    with Journal(path) as journal:
        asyncio.run(run(journal))
    data, recorded, lost_in_all, hopeless = path.read_bytes(), held(path), set(), 0
    for number in range(len(data) // PAGE):
        broken.write_bytes(data[: number * PAGE] + bytes(PAGE) + data[(number + 1) * PAGE :])
        new = tmp_path / f"new-{number}.sqlite"
        try:
            report = tools.salvage_journal(broken, new)
        except InputError as error:
            # The first page, and the one by which all others of the table are found.
            assert "holds no completion that is sound" in str(error) or "cannot be read as a journal" in str(error)
            hopeless += 1
            continue
        kept = held(new)
        assert kept.items() <= recorded.items()
        assert {digest for digest, _ in report.problems} == asked.keys() - kept.keys()
        assert report.sound == len(kept) >= 150 - 10
        # A run goes on with what was kept.
        with Journal(new) as journal:
            asyncio.run(run(journal))
        assert held(new) == recorded and tools.verify_journal(new) == tools.JournalReport(150, ())
        lost_in_all |= recorded.keys() - kept.keys()
    assert lost_in_all == recorded.keys() == asked.keys()
    assert hopeless == 2


def test_salvage_writes_over_nothing(path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(UsageError, match="is there already"):
        tools.salvage_journal(path, path)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="is there already"):
        tools.salvage_journal(path, tmp_path / "link")
    assert path.read_bytes() == before
    text = put(tmp_path / "text", "no journal at all" * 1000)
    with pytest.raises(InputError, match="holds no completion that is sound"):
        tools.salvage_journal(text, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    for check in (tools.verify_journal, lambda at: tools.salvage_journal(at, tmp_path / "new")):
        with pytest.raises(InputError, match="no such journal"):
            check(tmp_path / "absent")
    with pytest.raises(InputError, match="cannot be read as a journal"):
        tools.verify_journal(text)


def test_a_place_that_cannot_be_written_is_named(path: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OperationalError, match="file/new: cannot be written"):
        tools.salvage_journal(path, tmp_path / "file" / "new")


def test_a_journal_of_another_version_is_refused(path: Path, tmp_path: Path) -> None:
    change(path, "UPDATE meta SET value = '2' WHERE key = 'schema'")
    for use in (
        lambda: Journal(path),
        lambda: JournalView([path]),
        lambda: Journal(None).adopt(path),
        lambda: tools.verify_journal(path),
        lambda: tools.salvage_journal(path, tmp_path / "new"),
        lambda: tools.merge_journals([path], tmp_path / "new"),
        lambda: tools.export_journal(path, tmp_path / "new"),
        lambda: tools.read_spending(path),
    ):
        with pytest.raises(
            InputError, match=r"journal\.sqlite: journal of schema version 2, this version of judge reads"
        ):
            use()
    assert not (tmp_path / "new").exists()


# ---------------------------------------------------------------- copies


def test_a_copy_of_the_file_alone_has_what_was_committed_before(tmp_path: Path) -> None:
    path, copied = tmp_path / "journal.sqlite", tmp_path / "copy.sqlite"
    with Journal(path) as journal:
        fill(journal)
        journal.store.file.tick()
        shutil.copy(path, copied)
    assert tools.verify_journal(copied) == tools.JournalReport(12, ())
    # To read it left nothing beside it.
    assert {one.name for one in tmp_path.iterdir()} == {path.name, copied.name}
    with Journal(copied) as journal:
        assert len(journal) == 12


def copy_with_log(tmp_path: Path, damage: Callable[[bytes], bytes]) -> Path:
    """A journal as a kill leaves it: twelve commits are in the `-wal` file only."""
    with Journal(tmp_path / "journal.sqlite") as journal:
        fill(journal, range(3))
        journal.store.file.tick()
        fill(journal, range(3, 12))
        for name in ("journal.sqlite", "journal.sqlite-wal"):
            data = (tmp_path / name).read_bytes()
            put(tmp_path / "killed" / name, damage(data) if name.endswith("-wal") else data)
    return tmp_path / "killed" / "journal.sqlite"


def test_what_a_kill_leaves_in_the_log_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.judges.journal._PERIOD", 3600.0)
    killed = copy_with_log(tmp_path, lambda data: data)
    assert tools.verify_journal(killed) == tools.JournalReport(12, ())
    assert tools.salvage_journal(killed, tmp_path / "new.sqlite") == tools.JournalReport(12, ())
    with Journal(killed) as journal:
        assert len(journal) == 12


def test_however_much_of_a_journal_is_only_in_the_log_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.judges.journal._PERIOD", 3600.0)
    with Journal(tmp_path / "journal.sqlite") as journal:
        journal.record(new_row(str(number), "b/m", {}, request(), completion()) for number in range(600))
        for name in ("journal.sqlite", "journal.sqlite-wal"):
            shutil.copy(tmp_path / name, tmp_path / f"killed-{name}")
    (tmp_path / "killed-journal.sqlite-wal").rename(tmp_path / "killed.sqlite-wal")
    killed = (tmp_path / "killed-journal.sqlite").rename(tmp_path / "killed.sqlite")
    assert tools.verify_journal(killed) == tools.JournalReport(600, ())
    assert tools.salvage_journal(killed, tmp_path / "new.sqlite") == tools.JournalReport(600, ())


def test_after_a_damaged_log_what_is_in_the_file_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite forgets whatever follows a damaged frame: as after a loss of power, that is asked again."""
    monkeypatch.setattr("judge.judges.journal._PERIOD", 3600.0)
    killed = copy_with_log(tmp_path, lambda data: data[:48] + bytes([data[48] ^ 1]) + data[49:])
    assert tools.verify_journal(killed) == tools.JournalReport(3, ())
    assert tools.salvage_journal(killed, tmp_path / "new.sqlite") == tools.JournalReport(3, ())


def test_a_full_disk_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite wants a file beside a journal that was not closed; a limit on files stands in for the disk."""
    resource = pytest.importorskip("resource", reason="this system has no limits on files")
    monkeypatch.setattr("judge.judges.journal._PERIOD", 3600.0)
    killed = copy_with_log(tmp_path, lambda data: data)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        for read in (tools.verify_journal, lambda path: list(tools.read_journal(path))):
            with pytest.raises(InputError, match=r"its disk is full, and SQLite needs a little room") as caught:
                read(killed)
            assert "salvage" not in str(caught.value)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert tools.verify_journal(killed) == tools.JournalReport(12, ())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Two journals that share a digest, of which each has another completion, and a fact."""
    paths = tmp_path / "one.sqlite", tmp_path / "two.sqlite"
    for path, own in zip(paths, "ab", strict=True):
        with Journal(path) as journal:
            put_texts(journal, own, f"own of {path.stem}")
            put_texts(journal, "shared", f"shared of {path.stem}")
            journal.add_fact("both", "here", "b/m")
            journal.add_fact("only", path.stem, "b/m")
    return paths


def test_several_journals_are_one(two: tuple[Path, Path]) -> None:
    with JournalView(two) as view:
        assert view
        assert view.get("a0") == completion("own of one")
        assert view.get("b0") == completion("own of two")
        assert view.get("shared0") == completion("shared of one")
        assert view.get("absent") is None
        assert view.facts("b/m") == {("both", "here"), ("only", "one"), ("only", "two")}
        # Three calls: each digest counts once.
        assert [len(view.sample("b/m", most)) for most in (9, 3, 2)] == [3, 3, 2]
        assert view.sample("b/other", 9) == []
        with Journal(None) as copied:
            for path in two:
                copied.adopt(path)
            assert view.sample("b/m", 2) == copied.sample("b/m", 2)


def test_nothing_and_an_empty_journal_hold_nothing(tmp_path: Path) -> None:
    with Journal(tmp_path / "empty"):
        pass
    for paths in ([], [tmp_path / "empty"]):
        with JournalView(paths) as view:
            assert not view
            assert view.get("a0") is None
            assert view.facts("b/m") == set()
            assert view.sample("b/m", 9) == []


def test_nothing_is_changed_and_a_journal_in_use_is_refused(two: tuple[Path, Path], tmp_path: Path) -> None:
    before = contents(tmp_path)
    with JournalView(two) as view:
        assert view.get("a0") == completion("own of one")
        assert len(view.sample("b/m", 9)) == 3
        assert contents(tmp_path) == before
    with Journal(two[0]), pytest.raises(InputError, match="another judge process is using it"):
        JournalView(two)


def test_a_damaged_completion_is_named(two: tuple[Path, Path]) -> None:
    with contextlib.closing(sqlite3.connect(two[1])) as connection, connection:
        connection.execute("UPDATE completion SET completion = replace(completion, 'own', 'none')")
    with JournalView(two) as view:
        assert view.get("a0") == completion("own of one")
        with pytest.raises(InputError, match=r"two\.sqlite: damaged at the completion b0: its content is not what was"):
            view.get("b0")


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough to be looked at" * 50])
def test_what_is_no_journal_is_refused(tmp_path: Path, content: bytes) -> None:
    path = put(tmp_path / "j", content)
    with pytest.raises(InputError, match=r"j: cannot be read as a journal: .*; `judge journal verify"):
        JournalView([path])
    with pytest.raises(InputError, match=r"absent: no such journal$"):
        JournalView([tmp_path / "absent"])


def test_a_process_that_begins_to_write_costs_a_view_no_completion(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    rows = [new_row(f"{n:064}", "b/m", {}, ask(text="x" * 500), completion("Grade: 2")) for n in range(2000)]
    with Journal(path) as journal:
        journal.record(rows)
    with JournalView([path]) as view:
        assert view.get(f"{7:064}") == completion("Grade: 2")
        # The owner's rows move pages of the file that the view has not read yet.
        with Journal(path) as journal:
            journal.record(
                [new_row(f"{n:063}x", "b/m", {}, ask(text="y" * 500), completion("Grade: 1")) for n in range(4000)]
            )
            journal.check_there()
            with pytest.raises(InputError, match="another judge process is using it"):
                view.get(f"{1999:064}")
        assert all(view.get(f"{n:064}") == completion("Grade: 2") for n in range(2000))
