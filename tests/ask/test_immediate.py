"""Judges that compute their answers here: the same outcomes as of any other judge, in one piece."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from judge import errors
from judge.ask import immediate
from judge.ask.account import Account, Settings
from judge.ask.loop import Loop
from judge.ask.questions import Questions
from judge.ask.records import Failure, Judgment, tasks
from judge.judges.journal import Journal
from judge.judges.model import FREE, Price
from tests.ask.clock import assess_at_once
from tests.ask.test_loop import Scripted, criterion, judged, pool, reason


class Here(Scripted):
    name = "fake/here"
    immediate = True
    price = staticmethod(lambda: FREE)  # type: ignore[assignment]


class Elsewhere(Here):
    immediate = False


@pytest.fixture(autouse=True)
def _few_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(immediate, "_TOGETHER", 3)


TEXTS = ["a", "same", "same", "c", "b", "lost", "d", "same", "unread", "a"]
SCRIPT = {"a": ["Grade: 1"], "lost": [errors.RejectedError("422")], "unread": ["none", "Grade: 3"]}


def kept(tmp_path: Path) -> list[tuple[str, str]]:
    """The digests of a journal with the texts of their replies."""
    with Journal(tmp_path / "journal") as journal:
        return [(row[0], row[9]) for row in journal.store.pages()]


def spent(model: Scripted, texts: Sequence[str]) -> tuple[int, int]:
    """The calls of a process, and those that its results rest on."""
    account = Account()
    one = pool(texts)
    with Journal(None) as journal:
        assess_at_once(tasks(one, [criterion()]), model, journal, one, settings=Settings(), account=account)
    (row,) = account.rows()
    return row.asked.calls, row.results.calls


def test_outcomes_journal_and_account_are_those_of_the_usual_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    here = judged(tmp_path / "here", Here(SCRIPT), TEXTS)
    elsewhere = judged(tmp_path / "elsewhere", Elsewhere(SCRIPT), TEXTS)
    assert list(here) == list(elsewhere)
    assert [getattr(result, "grade", None) for result in here] == [1, 2, 2, 2, 2, None, 2, 2, 3, 1]
    assert reason(here[5]) == "provider_error"
    assert {digest for digest, _ in kept(tmp_path / "here")} == {digest for digest, _ in kept(tmp_path / "elsewhere")}
    # a, b, same, c, d, unread, and once more unread: the same text is one question.
    assert spent(Here(SCRIPT), TEXTS) == (7, 7)
    assert spent(Elsewhere(SCRIPT), TEXTS) == (7, 7)


def test_a_second_run_asks_for_nothing(tmp_path: Path) -> None:
    once = judged(tmp_path, Here(), ["a", "b", "c", "d"])
    silent = Here(default=errors.RejectedError("must not be asked"))
    assert judged(tmp_path, silent, ["a", "b", "c", "d"]) == once
    assert silent.asked == []


def test_what_was_answered_before_an_error_is_kept(tmp_path: Path) -> None:
    broken = Here({"e": [errors.OperationalError("the file is gone")]})
    with pytest.raises(errors.OperationalError, match="the file is gone"):
        judged(tmp_path, broken, ["a", "b", "c", "d", "e", "f"])
    assert broken.closed
    assert len(kept(tmp_path)) == 4
    again = Here()
    results = judged(tmp_path, again, ["a", "b", "c", "d", "e", "f"])
    assert all(isinstance(result, Judgment) for result in results)
    assert [request.response for request in again.asked] == ["e", "f"]


def test_a_stop_is_heard_between_two_questions(tmp_path: Path) -> None:
    one = pool(["a", "b", "c", "d", "e", "f"])
    model = Here()
    with Journal(tmp_path / "journal") as journal:
        loop = Loop(Questions(model, journal, one, None), journal, Settings())
        model.hook = lambda calls: loop.drain() if calls == 5 else None
        with pytest.raises(errors.Interrupted, match="stopped with 3 of 6 judgments made"):
            loop.run_to_end(tasks(one, [criterion()]))
    assert len(kept(tmp_path)) == 5


def test_a_disk_that_is_full_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Journal, rows: object) -> int:
        raise errors.OperationalError("journal: cannot be written: disk is full")

    monkeypatch.setattr(Journal, "record", refuse)
    model = Here()
    with pytest.raises(errors.OperationalError, match="disk is full"):
        judged(tmp_path, model, ["a", "b", "c", "d", "e", "f"])
    assert len(model.asked) == 3


def test_progress_is_told_of_each(tmp_path: Path) -> None:
    told: list[int] = []
    judged(tmp_path, Here(), ["a", "b", "c", "d"], report=lambda progress: told.append(progress.done))
    assert told == [0, 1, 2, 3, 4]


def test_a_judge_with_a_price_is_asked_under_its_budget(tmp_path: Path) -> None:
    settings = Settings(concurrency=1, max_cost=0.015, prices={"fake/here": Price(1.0, 1.0)})
    results = judged(tmp_path, Here(), ["a", "b", "c", "d"], settings=settings)
    assert [result.reason for result in results if isinstance(result, Failure)] == ["budget"] * 3
