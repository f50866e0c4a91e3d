import contextlib
import sqlite3
from pathlib import Path

import pytest

from judge.errors import InputError
from judge.judges.journal import Journal, JournalView
from judge.judges.journal_store import new_row
from tests.judges.test_journal import completion, put
from tests.mock import ask


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Two journals that share a digest, of which each has another completion, and a fact."""
    paths = tmp_path / "one.sqlite", tmp_path / "two.sqlite"
    for path, own in zip(paths, "ab", strict=True):
        with Journal(path) as journal:
            put(journal, own, f"own of {path.stem}")
            put(journal, "shared", f"shared of {path.stem}")
            journal.set_meta("form:b/m", path.stem)
            journal.set_meta(f"only {path.stem}", "here")
    return paths


def test_several_journals_are_one(two: tuple[Path, Path]) -> None:
    with JournalView(two) as view:
        assert view
        assert view.get("a0") == completion("own of one")
        assert view.get("b0") == completion("own of two")
        assert view.get("shared0") == completion("shared of one")
        assert view.get("absent") is None
        assert [view.meta(key) for key in ("form:b/m", "only one", "only two", "no")] == ["one", "here", "here", None]
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
            assert view.meta("form:b/m") is None
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
    path = tmp_path / "j"
    path.write_bytes(content)
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
