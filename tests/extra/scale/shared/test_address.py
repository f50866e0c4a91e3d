import pytest

from judge.errors import UsageError
from judge.judges.journal_store import check_database, is_database


def test_a_place_is_a_database_by_its_beginning() -> None:
    assert is_database("postgresql://h/d")
    assert is_database("postgres://h/d")
    assert not is_database("out/journal.sqlite")
    assert not is_database("mysql://h/d")


def test_the_name_of_a_database_has_no_credentials() -> None:
    read_database = pytest.importorskip("judge.extra.scale.postgres", exc_type=ImportError).read_database
    name, parameters = read_database("postgresql://ann:s%40fe-word@db.example.org:5433/judge?sslmode=require")
    assert name == "postgresql://db.example.org:5433/judge"
    assert parameters["password"] == "s@fe-word"
    assert parameters["sslmode"] == "require"


@pytest.mark.parametrize(("url", "why"), [
    ("postgresql://ann:fo/rest1@h/d", "%2F"),
    ("postgresql://ann@h:65536/d", "from 1 to 65535"),
    ("postgresql://ann@h:zero/d", "from 1 to 65535"),
    ("postgresql://ann@h", "names no database"),
    ("postgresql://h/d?no_such=1", "cannot be read"),
    ("postgresql://ann:a@forest@h/d", "an @ after its host"),
    ("postgresql://ann:5432/forest@h/d", "an @ after its host"),
    ("postgresql://h/d?password=forest", "behind the ?"),
    ("postgresql://h/d?p%61ssword=forest", "behind the ?"),
    ("postgresql://h/d?sslmode=require&sslpassword=forest", "behind the ?"),
])  # fmt: skip
def test_an_address_that_cannot_be_used_is_refused_without_its_password(url: str, why: str) -> None:
    read_database = pytest.importorskip("judge.extra.scale.postgres", exc_type=ImportError).read_database
    with pytest.raises(UsageError, match=why.replace("?", r"\?")) as caught:
        read_database(url)
    assert "fo/rest1" not in str(caught.value)
    assert "forest" not in str(caught.value)


def test_the_driver_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.io.installed.has_extra", lambda name: False)
    with pytest.raises(UsageError, match=r"pip install 'trec-judge\[postgres\]'"):
        check_database("postgresql://h/d")


def test_a_shared_journal_is_no_file() -> None:
    with pytest.raises(UsageError, match="must begin with postgresql://"):
        check_database("other.sqlite")
