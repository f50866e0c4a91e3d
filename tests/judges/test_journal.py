import asyncio
import contextlib
import hashlib
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from judge.errors import InputError, OperationalError
from judge.judges.journal import Journal
from judge.judges.journal_store import Row, request_digest
from judge.judges.journal_tools import read_journal
from judge.judges.records import Completion, Message, Request
from judge.records import Level, Scale
from tests.conftest import ask, put
from tests.time_limit import PATIENCE, wait_until

FULL = 2
"""What SQLite calls this level of `PRAGMA synchronous`."""
SCALE = Scale((Level(0, "0", "no"), Level(1, "1", "yes")), "higher", (1,), None)


def request(content: str = "q", sample: int = 0) -> Request:
    scale = {"scale": SCALE, "labels": SCALE.labels}
    messages = (Message("user", content),)
    return ask(response_id="R00000", criterion="naturalness", messages=messages, response="r", sample=sample, **scale)


def completion(text: str = "Grade: 1") -> Completion:
    return Completion(text=text, finish_reason="stop", model="m")


def put_texts(journal: Journal, digest: str, *texts: str) -> None:
    put_all(journal, {f"{digest}{i}": text for i, text in enumerate(texts)})


def put_all(journal: Journal, texts: Mapping[str, str]) -> None:
    """Completions with these texts, by digest."""

    async def run() -> None:
        await asyncio.gather(
            *(journal.write(key, "b/m", {"t": 0}, request(), completion(text)) for key, text in texts.items())
        )

    asyncio.run(run())


def test_a_completion_is_there_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with Journal(path) as journal:
        put_texts(journal, "d", "Grade: 1", "Grade: 0")
        assert journal.get("d0") == completion("Grade: 1")
    with Journal(path) as journal:
        assert len(journal) == 2
        assert "d1" in journal
        assert journal.get("d1") == completion("Grade: 0")
        assert journal.get("absent") is None


@pytest.mark.slow
def test_a_put_has_reached_another_process_s_view_before_it_returns(tmp_path: Path) -> None:
    """The row is in the file as the operating system sees it, not only in this process's memory."""
    script = (
        "import asyncio, os, sys; from pathlib import Path; sys.path.insert(0, '.')\n"
        "from judge.judges.journal import Journal; from tests.judges.test_journal import request, completion\n"
        "async def run():\n"
        "    journal = Journal(Path(sys.argv[1]))\n"
        "    await journal.write('d', 'b/m', {}, request(), completion())\n"
        "    os._exit(9)\n"
        "asyncio.run(run())\n"
    )
    path = tmp_path / "journal.sqlite"
    assert subprocess.run([sys.executable, "-c", script, str(path)], check=False).returncode == 9
    with Journal(path) as journal:
        assert journal.get("d") == completion()


def test_a_put_outlives_a_loss_of_power_whatever_the_library_s_default(tmp_path, monkeypatch) -> None:
    """In WAL mode only FULL writes through to the disk at each commit; a build of SQLite may have another default."""
    connect, opened = sqlite3.connect, []

    def careless(*arguments: object, **options: object) -> sqlite3.Connection:
        opened.append(connect(*arguments, **options))
        opened[-1].execute("PRAGMA synchronous = NORMAL")
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", careless)
    with Journal(tmp_path / "journal.sqlite") as journal:
        put_texts(journal, "d", "Grade: 1")
        assert [connection.execute("PRAGMA synchronous").fetchone() for connection in opened] == [(FULL,)]


def test_the_first_completion_of_a_digest_stays(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        put_texts(journal, "d", "first")
        put_texts(journal, "d", "second")
        assert journal.get("d0") == completion("first")


def test_facts_survive(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        assert journal.facts("b/m of us") == set()
        journal.add_fact("refused", "json/grade", "b/m of us")
        journal.add_fact("refused", "json/grade", "b/m of us")
        journal.add_fact("refused", "json/grade", "b/other")
    with Journal(tmp_path / "j") as journal:
        assert journal.facts("b/m of us") == {("refused", "json/grade")}


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path):
        for use in (lambda: Journal(path), lambda: list(read_journal(path)), lambda: Journal(None).adopt(path)):
            with pytest.raises(InputError, match=r"another judge process is using it$"):
                use()


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "j", "not a database, but long enough to be looked at" * 50)
    with pytest.raises(InputError, match="cannot be used as a journal"):
        Journal(path)
    for use in (lambda path: Journal(None).adopt(path), lambda path: list(read_journal(path))):
        with pytest.raises(InputError, match=r"absent: no such journal$"):
            use(tmp_path / "absent")
    with pytest.raises(InputError, match="cannot be read as a journal"):
        list(read_journal(path))


def test_read_journal_gives_back_what_was_asked(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        put_texts(journal, "d", "Grade: 1")
    (entry,) = read_journal(path)
    assert entry.digest == "d0"
    assert entry.judge == "b/m"
    assert entry.parameters == {"t": 0}
    assert entry.messages == (Message("user", "q"),)
    assert entry.form == "text"
    assert entry.completion == completion()


def test_a_full_disk_ends_in_an_operational_error(tmp_path: Path) -> None:
    """max_page_count stands in for the disk: SQLite answers 'database or disk is full' either way."""
    with Journal(tmp_path / "j") as journal:
        journal.store.file.connection.execute("PRAGMA max_page_count = 12")
        with pytest.raises(OperationalError, match="full"):
            for i in range(50):
                put_texts(journal, f"d{i}-", "x" * 4000)


@pytest.mark.parametrize(
    ("judge", "parameters", "asked"),
    [
        ("b/other", {"t": 0}, request()),
        ("b/m", {"t": 1}, request()),
        ("b/m", {"t": 0, "seed": 1}, request()),
        ("b/m", {"t": 0}, request("another question")),
        ("b/m", {"t": 0}, request(sample=1)),
    ],
)
def test_everything_sent_changes_the_digest(judge: str, parameters: dict[str, int], asked: Request) -> None:
    assert request_digest(judge, parameters, asked) != request_digest("b/m", {"t": 0}, request())


def test_the_digest_does_not_depend_on_the_order_of_parameters() -> None:
    assert request_digest("b/m", {"a": 1, "b": 2}, request()) == request_digest("b/m", {"b": 2, "a": 1}, request())


def test_the_digest_is_this_one() -> None:
    """Journals outlive versions: a change of this value makes every recorded completion unfindable."""
    sent = b'["b/m",{"t":0},[{"role":"user","content":"q"}],0]'
    assert request_digest("b/m", {"t": 0}, request()) == hashlib.sha256(sent).hexdigest()


def test_the_file_can_be_queried_with_sql(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        put_texts(journal, "d", "Grade: 1")
    connection = sqlite3.connect(tmp_path / "j")
    assert connection.execute("SELECT turn_id, response_id, criterion FROM completion").fetchall() == [
        ("1-1_1", "R00000", "naturalness")
    ]
    connection.close()


def test_a_journal_takes_over_what_another_paid_for(tmp_path: Path) -> None:
    with Journal(tmp_path / "a") as journal:
        put_texts(journal, "d", "from a")
        journal.add_fact("room", "100", "x/y")
    with Journal(tmp_path / "b") as journal:
        put_texts(journal, "d", "from b", "only b")
        journal.add_fact("room", "200", "x/y")
        journal.adopt(tmp_path / "a")
        assert journal.get("d0") == completion("from b")
        assert journal.facts("x/y") == {("room", "100"), ("room", "200")}
    with Journal(tmp_path / "c") as journal:
        journal.adopt(tmp_path / "a")
        assert journal.get("d0") == completion("from a")
    with Journal(tmp_path / "d") as journal, pytest.raises(InputError, match="no such journal"):
        journal.adopt(tmp_path / "absent")


def test_a_journal_is_taken_over_in_transactions_of_a_bounded_size(tmp_path, monkeypatch) -> None:
    """What stands before the damage stays, and is not taken twice."""
    monkeypatch.setattr("judge.judges.journal._TOGETHER", 2)
    with Journal(tmp_path / "a") as journal:
        put_texts(journal, "d", *"01234")
    with contextlib.closing(sqlite3.connect(tmp_path / "a")) as connection, connection:
        kept = connection.execute("SELECT completion FROM completion WHERE digest = 'd3'").fetchone()
        connection.execute("UPDATE completion SET completion = '{}' WHERE digest = 'd3'")
    with Journal(tmp_path / "b") as journal:
        with pytest.raises(InputError, match="damaged at the completion d3"):
            journal.adopt(tmp_path / "a")
        assert [f"d{i}" in journal for i in range(5)] == [True, True, False, False, False]
        assert len(journal) == 2
        with contextlib.closing(sqlite3.connect(tmp_path / "a")) as connection, connection:
            connection.execute("UPDATE completion SET completion = ? WHERE digest = 'd3'", kept)
        journal.adopt(tmp_path / "a")
        assert len(journal) == 5
        assert journal.get("d3") == completion("3")
    with Journal(tmp_path / "b") as journal:
        assert len(journal) == 5


def test_a_journal_that_cannot_be_read_says_so_in_one_line(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        put_texts(journal, "d", "Grade: 1")
        journal.store.file.connection.execute("ALTER TABLE completion RENAME TO elsewhere")
        for look in (lambda: "d0" in journal, lambda: journal.get("d0")):
            with pytest.raises(InputError, match=r"j: cannot be read as a journal: no such table: .*journal salvage"):
                look()
        assert "absent" not in journal


def test_a_put_that_cannot_be_written_fails_and_does_not_hang(tmp_path: Path) -> None:
    async def run(journal: Journal) -> None:
        broken = msgspec.structs.replace(request(), turn_id="\ud800")
        await asyncio.wait_for(journal.write("d", "b/m", {}, broken, completion()), 10)

    with Journal(tmp_path / "j") as journal, pytest.raises(OperationalError, match="cannot be written"):
        asyncio.run(run(journal))


def test_a_journal_that_was_moved_away_ends_the_work(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with Journal(tmp_path / "out" / "j") as journal:
        put_texts(journal, "d", "Grade: 1")
        journal.check_there()
        (tmp_path / "out").rename(tmp_path / "elsewhere")
        with pytest.raises(OperationalError, match=r"out/j: was moved, removed or replaced"):
            journal.check_there()
        with pytest.raises(OperationalError, match="was moved, removed or replaced"):
            put_texts(journal, "e", "Grade: 2")
        with pytest.raises(OperationalError, match="was moved, removed or replaced"):
            put_texts(journal, "f", "Grade: 3")
    # Calls in flight are kept where the file went.
    with Journal(tmp_path / "elsewhere" / "j") as journal:
        assert [journal.get(f"{name}0") for name in "def"] == [completion(f"Grade: {grade}") for grade in (1, 2, 3)]


def test_what_is_recorded_reaches_the_file_itself_while_nothing_more_comes(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("judge.judges.journal._PERIOD", 0.05)
    with Journal(tmp_path / "j") as journal:
        put_texts(journal, "d", "Grade: 1")
        wait_until(lambda: b"d0" in (tmp_path / "j").read_bytes())


@pytest.mark.parametrize("there", [True, False])
def test_a_journal_is_not_written_through_a_link(tmp_path: Path, there: bool) -> None:
    target, link = tmp_path / "other.sqlite", tmp_path / "journal.sqlite"
    if there:
        with contextlib.closing(sqlite3.connect(target)) as other:
            other.execute("CREATE TABLE own (a)")
    before = target.read_bytes() if there else None
    link.symlink_to(target)
    with pytest.raises(InputError, match=r"journal\.sqlite: a link where the journal has to be"):
        Journal(link)
    assert (target.read_bytes() if target.exists() else None) == before


def test_a_pipe_in_its_place_is_refused_and_nobody_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "j")
    with pytest.raises(InputError, match=r"j: a link where the journal has to be, or a pipe"):
        Journal(tmp_path / "j")
    with pytest.raises(InputError, match="no such journal"):
        list(read_journal(tmp_path / "j"))


def test_what_is_being_written_counts_once_it_is_on_the_disk(tmp_path: Path) -> None:
    async def run(journal: Journal) -> None:
        with journal.store.file._lock:
            # The writer waits for the lock.
            write = journal.write("d", "b/m", {}, request(), completion())
            await asyncio.sleep(0.05)
            assert not write.done()
            assert "d" not in journal
            assert journal.get("d") is None
        await write
        assert journal.get("d") == completion()

    with Journal(tmp_path / "j") as journal:
        asyncio.run(run(journal))


def test_a_damaged_row_spoils_no_sample(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with Journal(path):
        pass
    with contextlib.closing(sqlite3.connect(path)) as other, other:
        row = {"digest": "d", "judge": "fake/j", "messages": b"\xff", "completion": "{}"}
        columns = [name for _, name, *_ in other.execute("PRAGMA table_info(completion)")]
        values = [row.get(name, "") for name in columns]
        marks = ", ".join("CAST(? AS TEXT)" for _ in columns)
        other.execute(f"INSERT INTO completion ({', '.join(columns)}) VALUES ({marks})", values)
    with Journal(path) as journal:
        assert journal.sample("fake/j", 10) == []


def test_what_comes_after_a_failure_is_not_lost_and_hears_of_it(tmp_path, monkeypatch) -> None:
    begun, ready = threading.Event(), threading.Event()

    async def run(journal: Journal) -> None:
        insert = journal.store.insert

        def failing(rows: Sequence[Row]) -> int:
            monkeypatch.setattr(journal.store, "insert", insert)
            begun.set()
            ready.wait(30)
            raise ValueError("no room")

        monkeypatch.setattr(journal.store, "insert", failing)
        large = journal.write("large", "b/m", {}, request(), completion())
        await asyncio.to_thread(begun.wait, 30)
        small = journal.write("small", "b/m", {}, request(), completion())
        ready.set()
        with pytest.raises(OperationalError, match=r"j: cannot be written: no room$"):
            await large
        for write in (small, journal.write("later", "b/m", {}, request(), completion())):
            with pytest.raises(OperationalError, match="no room"):
                await write
        assert [digest in journal for digest in ("large", "small", "later")] == [False, True, True]

    with Journal(tmp_path / "j") as journal:
        asyncio.run(run(journal))


def test_a_checkpoint_that_fails_is_heard_by_the_next_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.judges.journal._PERIOD", 0.05)
    failed = threading.Event()

    def checkpoint() -> None:
        failed.set()
        raise RuntimeError("no checkpoint")

    with Journal(tmp_path / "j") as journal:
        monkeypatch.setattr(journal.store.file, "tick", checkpoint)
        assert failed.wait(PATIENCE)
        with pytest.raises(OperationalError, match=r"j: cannot be written: no checkpoint$"):
            put_texts(journal, "d", "Grade: 1")


def test_writes_that_come_together_share_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal(tmp_path / "j") as journal:
        insert, groups = journal.store.insert, []

        def counted(rows: Sequence[Row]) -> int:
            groups.append(len(rows))
            return insert(rows)

        monkeypatch.setattr(journal.store, "insert", counted)
        put_texts(journal, "d", *map(str, range(200)))
        assert sum(groups) == 200
        assert len(groups) < 20


def test_a_completion_that_cannot_be_written_is_an_error_and_its_neighbor_is_written() -> None:
    with Journal(None) as journal:

        async def write() -> None:
            broken = journal.write("d", "b/m", {}, request(), msgspec.structs.replace(completion(), model=object()))
            sound = journal.write("e", "b/m", {}, request(), completion())
            with pytest.raises(OperationalError, match="object"):
                await broken
            await sound

        asyncio.run(write())
        assert (journal.get("d"), journal.get("e")) == (None, completion())
