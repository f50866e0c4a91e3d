"""No label is lost, none is changed, and a store belongs to one desk."""

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from judge.ask.results import Label
from judge.errors import InputError, OperationalError
from judge.extra.desk.store import LabelStore
from judge.gold.plan import PlanRow
from tests.crowd.world import problems_of, warned
from tests.crowd.world import rows as crowd_rows

ITEMS = tuple(
    PlanRow(
        turn_id=f"1-1_{n}",
        topic_id="1-1",
        response_id=f"R{n:05}",
        text_sha256=f"{n:064}",
        runs=("run-2",),
        criteria=("groundedness", "relevance"),
        inclusion_probability=0.25,
        stratum="drawn",
    )
    for n in (1, 2, 3)
)
SETTINGS = {"assessors": "ann, bob", "seed": "1"}


def store(path: Path, **settings: str) -> LabelStore:
    return LabelStore(path, SETTINGS | settings, ITEMS, {0}, ["ann", "bob"], [[2, 0], [0, 1]])


def rows(path: Path, query: str = "SELECT * FROM label") -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def labels(path: Path) -> list[tuple[object, ...]]:
    return rows(path, "SELECT assessor, response_id, criterion, grade, unable, comment FROM labels ORDER BY 1, 2, 3")


def grades(opened: LabelStore, path: str) -> dict[int, int | None]:
    return {place: label.grade for place, label in opened.labeled(path).items()}


def test_each_assessor_has_tasks_in_order_and_a_seat(tmp_path: Path) -> None:
    with store(tmp_path / "labels.sqlite") as opened:
        assert [(seat.path, seat.name) for seat in opened.seats] == [("1", "ann"), ("2", "bob")]
        assert opened.seats[0].token != opened.seats[1].token
        dealt = [(item, criterion) for item in (2, 0) for criterion in ("groundedness", "relevance")]
        assert opened.tasks("1") == [(place, *task) for place, task in enumerate(dealt, 1)]
        assert opened.shared == {"1": 2, "2": 2}


def test_a_label_is_there_after_the_store_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "labels.sqlite"
    with store(path) as opened:
        seats, task = opened.seats, opened.tasks("1")[0]
        opened.save("1", task, 2, "why", "blind")
        # On the disk before `save` returns.
        assert labels(path) == [("ann", "R00003", "groundedness", 2, 0, "why")]
    with store(path) as again:
        assert again.seats == seats
        assert again.labeled("1") == {1: Label("1-1_3", "R00003", 2, rationale="why")}
        assert again.labeled("2") == {}
        assert again.last("1") == (task, Label("1-1_3", "R00003", 2, rationale="why"))
        ask = again._connection.execute
        # FULL: with less, a power cut may take the last labels.
        assert (ask("PRAGMA journal_mode").fetchone(), ask("PRAGMA synchronous").fetchone()) == (("wal",), (2,))


def test_the_last_label_counts_and_the_earlier_ones_stay(tmp_path: Path) -> None:
    path = tmp_path / "labels.sqlite"
    with store(path) as opened:
        task = opened.tasks("1")[0]
        for grade, comment in ((2, ""), (2, ""), (None, "?"), (0, "")):
            opened.save("1", task, grade, comment, "blind")
    assert labels(path) == [("ann", "R00003", "groundedness", 0, 0, "")]
    # The same label twice is one row.
    assert [row[4:7] for row in rows(path)] == [(2, 0, ""), (None, 1, "?"), (0, 0, "")]


def test_a_store_is_a_table_of_labels_for_a_crowd_too(tmp_path: Path) -> None:
    path = tmp_path / "labels.sqlite"
    with store(path) as opened:
        assert [(one.code, one.message) for one in problems_of(path)] == [("empty_file", "the store holds no label")]
        for seat, place, grade in (("1", 0, 2), ("1", 2, 1), ("2", 0, 3), ("2", 1, None)):
            opened.save(seat, opened.tasks(seat)[place], grade, "", "blind")
        labels, warnings = warned(path)
    assert labels.keys() == {"groundedness"}
    assert crowd_rows(labels["groundedness"]) == [
        ("ann", "1-1_1", "R00001", 1),
        ("bob", "1-1_1", "R00001", 3),
        ("ann", "1-1_3", "R00003", 2),
    ]
    assert [(one.code, one.path) for one in warnings] == [("unable_to_judge", "label 3")]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP VIEW labels")
    (problem,) = problems_of(path)
    assert (problem.code, "not a store of labels" in problem.message) == ("unreadable", True)


def test_undo_goes_back_step_by_step_and_removes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "labels.sqlite"
    with store(path) as opened:
        first, second = opened.tasks("1")[:2]
        opened.save("1", first, 2, "", "blind")
        opened.save("1", second, 1, "", "blind")
        opened.save("1", first, 3, "", "blind")
        opened.save("2", opened.tasks("2")[0], 0, "", "blind")
        assert opened.undo("1") == first
        assert grades(opened, "1") == {1: 2, 2: 1}
        assert opened.undo("1") == second
    with store(path) as again:
        assert grades(again, "1") == {1: 2}
        assert again.undo("1") == first
        assert again.undo("1") is None
        assert grades(again, "2") == {1: 0}
    assert labels(path) == [("bob", "R00001", "groundedness", 0, 0, "")]
    # Four labels, and the numbers of the three that were taken back.
    assert [row[-1] for row in rows(path)] == [None, None, None, None, 3, 2, 1]


def test_what_is_next_is_the_first_task_without_a_label_from_here_on(tmp_path: Path) -> None:
    with store(tmp_path / "labels.sqlite") as opened:
        tasks = opened.tasks("1")
        assert opened.following("1", 0) == tasks[0]
        assert opened.following("1", 2) == tasks[2]
        opened.save("1", tasks[2], 1, "", "blind")
        assert opened.following("1", 2) == tasks[3]
        opened.save("1", tasks[3], 1, "", "blind")
        assert opened.following("1", 3) == opened.following("1", 10**8) == tasks[0]
        for task in tasks[:2]:
            opened.save("1", task, 1, "", "blind")
        assert opened.following("1", 0) is None


def test_a_store_is_of_one_process_and_one_desk(tmp_path: Path) -> None:
    path = tmp_path / "labels.sqlite"
    with store(path):
        with pytest.raises(OperationalError, match="another desk serves it"):
            store(path)
        # Whoever only reads is not kept off.
        assert labels(path) == []
    with pytest.raises(InputError, match="made with other settings: seed: 1 there, 2 here; give those"):
        store(path, seed="2")
    with store(path):
        pass


def test_a_store_is_of_one_desk_under_every_name(tmp_path: Path) -> None:
    path, link, name = tmp_path / "labels.sqlite", tmp_path / "link.sqlite", tmp_path / "name.sqlite"
    link.symlink_to(path)
    with store(link) as opened:
        with pytest.raises(OperationalError, match="another desk serves it"):
            store(path)
        opened.save("1", opened.tasks("1")[0], 2, "", "blind")
    assert labels(path) == [("ann", "R00003", "groundedness", 2, 0, "")]
    # SQLite keeps the latest labels of each name in a file of its own.
    name.hardlink_to(path)
    for one in (path, name):
        with pytest.raises(InputError, match=r"has another name too \(a hard link\)"):
            store(one)
    link.unlink()
    link.symlink_to(link)
    with pytest.raises(InputError, match="as a store of labels: "):
        store(link)


def test_only_the_owner_may_read_it_and_one_file_is_left(tmp_path: Path) -> None:
    with store(tmp_path):
        pass
    (file,) = tmp_path.iterdir()
    assert file.name == "labels.sqlite"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_of_somebody_else_is_left_as_it_is(tmp_path: Path) -> None:
    text, other = tmp_path / "notes.txt", tmp_path / "other.sqlite"
    text.write_text("These are notes, of more than a hundred bytes. " * 4, encoding="utf-8")
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE meta (key TEXT, value TEXT)")
    for path in (text, other):
        before = path.read_bytes()
        with pytest.raises(InputError, match="store of labels"):
            store(path)
        assert path.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"notes.txt", "other.sqlite"}


@pytest.mark.parametrize("damage", [
    "UPDATE label SET criterion = 'none'",
    "UPDATE label SET undoes = 1",
    "UPDATE task SET item = 9 WHERE place = 1",
    "UPDATE assessor SET token = ''",
    "UPDATE assessor SET token = CAST(x'ff' AS TEXT)",
    "DROP TABLE task",
])  # fmt: skip
def test_a_damaged_store_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "labels.sqlite"
    with store(path) as opened:
        opened.save("1", opened.tasks("1")[0], 2, "", "blind")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(damage)
    with pytest.raises(InputError, match="cannot be used as a store of labels"):
        store(path)
