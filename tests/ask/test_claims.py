"""The loop where several processes share a journal: the others are played by claims that follow a script."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from judge.ask import loop
from judge.ask.loop import assess, tasks
from judge.ask.records import Failure, Judgment
from judge.errors import OperationalError, RejectedError
from judge.models.journal import Journal
from judge.models.open_journal import HeldElsewhere
from judge.models.records import Completion, Request
from tests.ask.test_loop import QUICK, Scripted, criterion, pool, reason

ELSEWHERE = Completion(text="Grade: 3", finish_reason="stop", model="m-1")
ONE = msgspec.structs.replace(QUICK, concurrency=1)


class PlayedClaims:
    """The n-th claim ends as the n-th word says; later claims are granted."""

    def __init__(self, *script: Completion | Exception | None) -> None:
        self.script = list(script)
        self.claimed: list[str] = []
        self.released: list[str] = []

    def claim(self, digest: str, request: Request) -> "asyncio.Future[Completion | None]":
        self.claimed.append(digest)
        answer: asyncio.Future[Completion | None] = asyncio.get_running_loop().create_future()
        outcome = self.script.pop(0) if self.script else None
        if isinstance(outcome, Exception):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)
        return answer

    def release(self, digest: str) -> None:
        self.released.append(digest)

    def give_up(self, error: BaseException) -> None:
        pass


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_LOOK_AGAIN", 0.001)


def asked(model: Scripted, claims: PlayedClaims, texts: Sequence[str]) -> list[Judgment | Failure]:
    one = pool(texts)
    with Journal(None) as journal:
        journal.claims = claims
        return list(assess(tasks(one, [criterion()]), model, journal, one, settings=ONE))


def test_what_another_process_asks_is_left_for_later_and_taken_from_it() -> None:
    model = Scripted()
    claims = PlayedClaims(HeldElsewhere(), None, None, HeldElsewhere(), ELSEWHERE)
    results = asked(model, claims, ["a", "b", "c"])
    assert [result.grade for result in results if isinstance(result, Judgment)] == [3, 2, 2]
    assert [request.response for request in model.asked] == ["b", "c"]
    assert claims.claimed[0] == claims.claimed[3] == claims.claimed[4]
    assert claims.released == []


def test_what_another_process_left_is_asked_here() -> None:
    model = Scripted()
    asked(model, PlayedClaims(HeldElsewhere(), HeldElsewhere()), ["a", "b"])
    assert sorted(request.response for request in model.asked) == ["a", "b"]


def test_a_question_that_brought_no_completion_is_free_again() -> None:
    claims = PlayedClaims()
    results = asked(Scripted({"a": [RejectedError("no")]}), claims, ["a", "b"])
    assert reason(results[0]) == "provider_error"
    assert claims.released == claims.claimed[:1]


def test_a_journal_that_cannot_be_reached_stops_the_loop() -> None:
    model = Scripted()
    with pytest.raises(OperationalError, match="away"):
        asked(model, PlayedClaims(OperationalError("the server is away")), ["a", "b"])
    assert model.asked == []
