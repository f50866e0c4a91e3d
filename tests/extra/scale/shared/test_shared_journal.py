"""A journal in a real PostgreSQL: the same rows as in a file, and leases between several holders."""

import asyncio
import contextlib
import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judge.ask.account import Settings
from judge.ask.asking import forecast
from judge.ask.loop import assess
from judge.ask.questions import Questions
from judge.ask.records import tasks
from judge.errors import InputError, OperationalError, UsageError
from judge.judges.journal import HeldElsewhere, Journal, JournalView, open_journal
from judge.judges.journal_store import new_row
from judge.judges.journal_tools import exported_lines, merge_journals, read_spending, salvage_journal, verify_journal
from judge.judges.records import Completion
from tests.ask.test_loop import Scripted, criterion, pool
from tests.judges.test_journal import completion, put_all, request
from tests.judges.test_journal_check import DIGESTS as OLD_DIGESTS
from tests.judges.test_journal_check import old_row
from tests.postgres import Postgres

pytestmark = pytest.mark.slow

DIGESTS = tuple(f"{number:064x}" for number in range(1, 10))


@pytest.fixture
def url(postgres: Postgres) -> str:
    return postgres.database()


@pytest.fixture
def two(url: str) -> Iterator[tuple[Journal, Journal]]:
    """The journal, as two processes have it open."""
    with opened(url) as first, opened(url) as second:
        yield first, second


def opened(url: str, max_wait: float = 60.0) -> Journal:
    return Journal(url, max_wait)


def put(journal: Journal, *digests: str, text: str = "Grade: 1") -> None:
    put_all(journal, dict.fromkeys(digests, text))


def leased(journal: Journal, *digests: str) -> list[Any]:
    """What becomes of leases: True for ours, False for another process's, or the completion."""
    return leased_in_forms(journal, *((digest,) for digest in digests))


def leased_in_forms(journal: Journal, *questions: tuple[str, ...]) -> list[Any]:
    """The same of questions that can be asked with several requests."""

    async def run() -> list[Any]:
        leases = (journal.lease(*digests) for digests in questions)
        return await asyncio.gather(*leases, return_exceptions=True)

    found = {type(None): lambda _: True, HeldElsewhere: lambda _: False, tuple: lambda answer: answer[1]}
    return [found.get(type(one), lambda other: other)(one) for one in asyncio.run(run())]


def test_a_completion_is_there_after_reopening(url: str) -> None:
    with opened(url) as journal:
        assert not journal
        put(journal, *DIGESTS[:2])
        assert journal
        assert journal.get(DIGESTS[0]) == completion()
        journal.set_meta("form:b/m", "text")
    with opened(url) as journal:
        assert journal
        assert DIGESTS[1] in journal
        assert DIGESTS[2] not in journal
        assert journal.get(DIGESTS[2]) is None
        assert journal.meta("form:b/m") == "text"
        assert list(journal.times(DIGESTS)) == list(DIGESTS[:2])
        assert [entry.messages for entry in journal.sample("b/m", 5)] == [request().messages] * 2
        journal.check_there()


def test_the_rows_are_those_of_a_file(url: str, tmp_path: Path) -> None:
    hostile = Completion(text='\x00 "; DROP TABLE completion; -- %s €', finish_reason=None, model="\ud7ff")
    rows = [new_row(digest, "b/m", {"t": 0}, request(), hostile) for digest in DIGESTS]
    with Journal(tmp_path / "own.sqlite") as journal:
        journal.record(rows)
        journal.set_meta("form:b/m", "text")
    with open_journal(tmp_path / "own.sqlite", url) as journal:
        # What the file holds is taken over, so that it is not paid for again.
        assert journal.get(DIGESTS[0]) == hostile
        assert journal.record(rows) == 0
        assert journal.meta("form:b/m") == "text"
    assert merge_journals([url], tmp_path / "merged.sqlite")[0] == len(DIGESTS)
    lines = list(exported_lines(url))
    assert lines == list(exported_lines(tmp_path / "own.sqlite"))
    assert lines == list(exported_lines(tmp_path / "merged.sqlite"))
    assert verify_journal(url)[:2] == (len(DIGESTS), ())
    assert read_spending(url) == read_spending(tmp_path / "own.sqlite")
    with JournalView([url]) as view, JournalView([tmp_path / "own.sqlite"]) as own:
        assert view
        assert view.get(DIGESTS[3]) == hostile
        assert view.meta("form:b/m") == "text"
        assert view.sample("b/m", 4) == own.sample("b/m", 4)


def test_a_view_of_a_new_database_is_empty_and_changes_nothing(postgres: Postgres, url: str) -> None:
    with JournalView([url]) as view:
        assert not view
        assert (view.get(DIGESTS[0]), view.meta("form:b/m"), view.sample("b/m", 4)) == (None, None, [])
    with pytest.raises(InputError, match="no journal is in this database"):
        list(exported_lines(url))
    assert postgres.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", url=url) == [(0,)]


def test_a_question_belongs_to_one_process_at_a_time(two: tuple[Journal, Journal]) -> None:
    first, second = two
    assert leased(first, *DIGESTS[:3]) == [True, True, True]
    assert leased(second, *DIGESTS[:4]) == [False, False, False, True]
    # Another call of the same process may go on with it.
    assert leased(first, DIGESTS[0]) == [True]
    put(first, DIGESTS[0], text="Grade: 0")
    first.release(DIGESTS[1])
    assert leased(first, DIGESTS[2]) == [True]
    assert leased(second, *DIGESTS[:3]) == [completion("Grade: 0"), True, False]
    assert second.get(DIGESTS[0]) == completion("Grade: 0")


def test_a_question_that_can_be_asked_in_two_forms_belongs_to_one_process(two: tuple[Journal, Journal]) -> None:
    first, second = two
    forms = DIGESTS[:2]
    assert leased_in_forms(first, forms) == [True]
    assert leased_in_forms(second, forms) == [False]
    # The answer in the second form is there for whoever would have asked in the first.
    put(first, forms[1], text="Grade: 0")
    assert leased_in_forms(second, forms) == [completion("Grade: 0")]
    assert leased(second, forms[0]) == [False]
    first.release(forms[0])
    # The order of the forms counts, whatever was written first.
    put(first, forms[0], text="Grade: 3")
    assert leased_in_forms(second, forms) == [completion("Grade: 3")]
    assert leased_in_forms(first, (DIGESTS[2], forms[1]), DIGESTS[3:5]) == [completion("Grade: 0"), True]


def test_many_leases_at_once_give_each_question_to_one(url: str) -> None:
    digests = [f"{number:064x}" for number in range(600)]
    results: list[list[Any]] = []
    with opened(url) as first, opened(url) as second, opened(url) as third:

        def claim(journal: Journal, wanted: list[str]) -> None:
            results.append([wanted[place] for place, ours in enumerate(leased(journal, *wanted)) if ours is True])

        orders = (digests, digests[::-1], digests[300:] + digests[:300])
        threads = [
            threading.Thread(target=claim, args=pair) for pair in zip((first, second, third), orders, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(digest for given in results for digest in given) == digests


def test_a_process_that_ends_lets_go_of_its_questions(postgres: Postgres, url: str) -> None:
    with opened(url) as first, opened(url) as second:
        assert leased(first, DIGESTS[0]) == [True]
        first.close()
        assert leased(second, DIGESTS[0]) == [True]
    assert postgres.execute("SELECT count(*) FROM lease", url=url) == [(0,)]


def test_the_lease_of_a_dead_process_expires_and_that_of_a_living_one_is_extended(postgres, url, monkeypatch) -> None:
    monkeypatch.setattr("judge.extra.scale.postgres.LEASE", 1)
    with opened(url) as first, opened(url) as second:
        assert leased(first, DIGESTS[0]) == [True]
        dead = "INSERT INTO lease VALUES (%s, 'dead', clock_timestamp() + %s * interval '1 s')"
        postgres.execute(dead, DIGESTS[1], -0.1, url=url)
        # A third of the lease is the time between two signs of life; a server's start gives every holder one more.
        threading.Event().wait(1.5)
        assert leased(second, *DIGESTS[:2]) == [False, True]


def test_a_lease_ends_one_lease_after_the_server_s_now_though_its_clock_was_set_back(
    postgres: Postgres, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.extra.scale.postgres.LEASE", 1)
    with opened(url) as first, opened(url) as second:
        assert leased(first, DIGESTS[0]) == [True]
        # As they stand after the clock has lost a day.
        postgres.execute("INSERT INTO lease VALUES (%s, 'dead', now())", DIGESTS[1], url=url)
        postgres.execute("UPDATE lease SET expires = now() + interval '1 day'", url=url)
        threading.Event().wait(1.5)
        # A living process extends its own.
        assert leased(second, *DIGESTS[:2]) == [False, True]


def test_after_a_start_of_the_server_every_holder_has_the_time_of_a_lease(postgres, url, monkeypatch) -> None:
    monkeypatch.setattr("judge.extra.scale.postgres.LEASE", 3600)
    with opened(url) as journal:
        postgres.execute("INSERT INTO lease VALUES (%s, 'away', now() - interval '1 s')", DIGESTS[0], url=url)
        assert leased(journal, DIGESTS[0]) == [False]


def test_results_on_an_answer_that_another_process_gave_again_are_refused(postgres, two, url, monkeypatch) -> None:
    first, second = two
    leased(first, DIGESTS[0])
    postgres.execute("UPDATE lease SET holder = 'another'", url=url)
    row = new_row(DIGESTS[0], "b/m", {"t": 0}, request(), completion("Grade: 0"))
    with monkeypatch.context() as patch:
        # The same answer again, as after a connection that broke while its transaction ended, is no contradiction.
        patch.setattr("judge.judges.journal.new_row", lambda *told: row)
        put(second, DIGESTS[0], DIGESTS[0])
    with pytest.raises(OperationalError, match="asked 1 of its questions again"):
        put(first, DIGESTS[0], text="Grade: 1")
    assert first.get(DIGESTS[0]) == completion("Grade: 0")


def test_completions_that_do_not_arrive_are_an_error(postgres: Postgres, url: str) -> None:
    drop = "CREATE FUNCTION drop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
    with opened(url) as journal:
        postgres.execute(drop, url=url)
        postgres.execute("CREATE TRIGGER t BEFORE INSERT ON completion FOR EACH ROW EXECUTE FUNCTION drop()", url=url)
        with pytest.raises(OperationalError, match="of 1 completions, 1 are not in the table after they were inserted"):
            put(journal, DIGESTS[0])


def test_several_processes_make_the_tables_once(url: str) -> None:
    errors: list[BaseException] = []

    def open_and_close() -> None:
        try:
            opened(url).close()
        except BaseException as error:  # noqa: BLE001 - shown below
            errors.append(error)

    threads = [threading.Thread(target=open_and_close) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_damaged_row_is_never_an_answer(postgres: Postgres, url: str) -> None:
    with opened(url) as journal:
        put(journal, *DIGESTS[:2])
        changed = "UPDATE completion SET completion = replace(completion, 'Grade: 1', 'Grade: 0') WHERE digest = %s"
        postgres.execute(changed, DIGESTS[0], url=url)
        with pytest.raises(InputError, match=f"damaged at the completion {DIGESTS[0]}"):
            journal.get(DIGESTS[0])
        (error,) = leased(journal, DIGESTS[0])
        assert isinstance(error, InputError)
    with pytest.raises(InputError, match="damaged"):
        list(exported_lines(url))
    assert verify_journal(url)[:2] == (1, ((DIGESTS[0], "its content is not what was recorded"),))


def test_a_database_of_something_else_is_refused_and_left_as_it_is(postgres: Postgres, url: str) -> None:
    postgres.execute("CREATE TABLE completion (name TEXT)", url=url)
    with pytest.raises(InputError, match="tables of another program"):
        opened(url)
    assert postgres.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'", url=url) == [("completion",)]


def test_another_version_and_another_encoding_are_refused(postgres: Postgres, url: str) -> None:
    opened(url).close()
    postgres.execute("UPDATE meta SET value = '99'", url=url)
    with pytest.raises(InputError, match="schema version 99"):
        opened(url)
    with pytest.raises(InputError, match="encoding must be UTF8"):
        opened(postgres.database("ENCODING 'SQL_ASCII' TEMPLATE template0"))


def test_a_shared_journal_of_an_older_version_is_converted_by_a_salvage(postgres: Postgres, url: str, tmp_path) -> None:
    opened(url).close()
    with pytest.raises(InputError, match=r"^postgresql://127.0.0.1:\d+/\w+: holds no completion that is sound$"):
        salvage_journal(url.replace("judge@", "judge:forest@"), tmp_path / "new")
    marks = ", ".join(["%s"] * 12)
    for index in range(3):
        row = old_row(index, "http://localhost:8000/v1", f"Grade: {index}")
        postgres.execute(f"INSERT INTO completion VALUES ({marks})", *row, url=url)
    postgres.execute("UPDATE meta SET value = '2'", url=url)
    with pytest.raises(
        InputError, match=r"schema version 2, .*`judge journal salvage postgresql://.* -o NEW` converts it"
    ):
        opened(url)
    with pytest.raises(InputError, match="schema version 2"):
        JournalView([url])
    assert verify_journal(url)[:2] == (3, ())
    assert salvage_journal(url, tmp_path / "new").sound == 3
    with Journal(tmp_path / "new") as journal:
        assert [journal.get(digest) is not None for digest in OLD_DIGESTS[:4]] == [True, True, True, False]


def test_a_user_without_rights_and_one_who_is_not_there_are_refused(postgres: Postgres, url: str) -> None:
    postgres.execute("CREATE ROLE guest LOGIN")
    guest = url.replace("judge@", "guest@")
    with pytest.raises(InputError, match="permission denied"):
        opened(guest)
    with pytest.raises(UsageError, match='role "nobody_here" does not exist'):
        opened(url.replace("judge@", "nobody_here@"))
    with pytest.raises(UsageError, match='database "not_there" does not exist'):
        opened(postgres.url("not_there"))
    with pytest.raises(OperationalError, match="cannot be reached"):
        opened("postgresql://judge@127.0.0.1:1/judge")


def test_a_completion_waits_in_memory_until_the_server_is_back(postgres: Postgres, url: str) -> None:
    with opened(url) as journal:
        assert leased(journal, DIGESTS[0]) == [True]
        postgres.kill()
        back = threading.Timer(0.5, postgres.start)
        back.start()
        put(journal, DIGESTS[0])
        back.join()
        assert leased(journal, *DIGESTS[:2]) == [completion(), True]


def test_a_server_that_stays_away_ends_the_wait(postgres: Postgres, url: str) -> None:
    with opened(url, max_wait=0.5) as journal:
        postgres.kill()
        try:
            with pytest.raises(OperationalError, match=r"was away for longer than 0\.5 seconds"):
                put(journal, DIGESTS[0])
            (error,) = leased(journal, DIGESTS[1])
            assert isinstance(error, OperationalError)
            journal.close()
        finally:
            postgres.start()
    with opened(url) as journal:
        assert DIGESTS[0] not in journal


def test_a_process_that_stands_still_in_a_claim_blocks_nobody_for_long(url: str, monkeypatch) -> None:
    from judge.extra.scale import postgres

    # As if its machine had gone between the claim and its commit.
    monkeypatch.setitem(postgres._SETTINGS, "idle_in_transaction_session_timeout", "1s")
    other = postgres.DatabaseStore(url, 5.0, writing=True)
    with opened(url) as journal, contextlib.closing(other), contextlib.closing(other._connect()) as still:
        still.autocommit = False
        still.execute(postgres._TAKE, {"holder": "still", "lease": 60, "digests": f'["{DIGESTS[0]}"]'})
        assert leased(journal, DIGESTS[0], DIGESTS[1]) == [True, True]


# ---------------------------------------------------------------- many looks in one


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """An item for each transaction, so for each wait for a server that is far away."""
    from judge.extra.scale.postgres import DatabaseStore

    made: list[None] = []
    run = DatabaseStore.run

    def counted(self: Any, *arguments: Any) -> Any:
        made.append(None)
        return run(self, *arguments)

    monkeypatch.setattr(DatabaseStore, "run", counted)
    return made


def test_what_is_wanted_soon_is_fetched_with_one_look(url: str, looks: list[None], monkeypatch) -> None:
    monkeypatch.setattr("judge.judges.journal._TOGETHER", 250)
    digests = [hashlib.sha256(bytes([number // 256, number % 256])).hexdigest() for number in range(600)]
    with opened(url) as journal:
        put(journal, *digests[::2])
    for open_one in (opened, lambda url: JournalView([url])):
        with open_one(url) as journal:
            looks.clear()
            for place, digest in enumerate(journal.ahead(digests, lambda digest: [digest])):
                assert (journal.get(digest) is not None) == (place % 2 == 0)
                if place == 10:
                    # What nobody foresaw takes a look of its own, and what was fetched stays.
                    assert journal.get(digests[598]) == completion()
            # 600 in pages of 250, and the one in between.
            assert len(looks) == 3 + 1


def test_a_damaged_row_is_no_answer_when_it_was_fetched_ahead(postgres: Postgres, url: str) -> None:
    with opened(url) as journal:
        put(journal, *DIGESTS[:2])
        postgres.execute("UPDATE completion SET judge = 'b/other' WHERE digest = %s", DIGESTS[1], url=url)
        fetched = journal.ahead(DIGESTS[:2], lambda digest: [digest])
        assert journal.get(next(fetched)) == completion()
        with pytest.raises(InputError, match=f"damaged at the completion {DIGESTS[1]}"):
            journal.get(next(fetched))


def test_a_dry_run_and_a_run_from_the_journal_take_few_looks(url: str, looks: list[None]) -> None:
    one = pool([f"response {number}" for number in range(300)])
    wanted = tasks(one, [criterion()])
    with opened(url) as journal:
        first = assess(wanted, Scripted(forms=("json", "text")), journal, one)
    with JournalView([url]) as view:
        looks.clear()
        questions = Questions(Scripted(forms=("json", "text")), view, one, None)
        assert forecast(questions, wanted, Settings(), 1000).recalled == 300
        # Facts about the judge and samples for the estimate come on top of two pages.
        assert len(looks) < 10
    model = Scripted(forms=("json", "text"))
    with opened(url) as journal:
        looks.clear()
        assert list(assess(wanted, model, journal, one)) == list(first)
        assert len(looks) < 10
    assert model.asked == []
