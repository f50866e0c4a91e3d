"""A reply that ends at its token limit is asked for once more with twice the room, and more room is no other judge."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from judge.ask.account import Settings
from judge.ask.endpoint import remembered_rooms
from judge.ask.loop import assess
from judge.ask.questions import Questions
from judge.ask.records import Failure, Judgment, tasks
from judge.errors import RejectedError
from judge.judges.backends import open_model
from judge.judges.journal import Journal
from judge.judges.journal_tools import export_journal, merge_journals, read_journal
from judge.judges.model import ModelOptions
from judge.judges.records import Completion, Request
from tests.ask.test_loop import Scripted, criterion, pool
from tests.mock import Mock


class Thinker(Scripted):
    """Needs as many tokens as each text says, and has `room` for them."""

    def __init__(self, room: int | None, forms: Any = ("text",)) -> None:
        super().__init__(forms=forms)
        self.room = room

    def parameters(self, request: Request) -> Mapping[str, Any]:
        limit = request.room or self.room
        return {"form": request.form, **({} if limit is None else {"max_tokens": limit})}

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request)
        limit = request.room or self.room or 0
        needed = int(request.response)
        if needed > limit:
            return Completion(text="Let me think", finish_reason="length", model="m", completion_tokens=limit)
        return Completion(text="2" if request.form == "label" else "Grade: 2", finish_reason="stop", model="m")


TEXTS = ("50", "150", "250", "900")


def asked(path: Path, room: int | None, texts: tuple[str, ...] = TEXTS) -> tuple[list[str], list[int]]:
    """The outcomes, and the room of each call that was made."""
    model = Thinker(room)
    one = pool(texts)
    with Journal(path) as journal:
        results = assess(tasks(one, [criterion()]), model, journal, one, settings=Settings(concurrency=2))
        words = [str(result.grade) if isinstance(result, Judgment) else result.reason for result in results]
    return words, sorted(request.room or model.room or 0 for request in model.asked)


def test_a_reply_that_was_cut_off_is_asked_for_once_more(tmp_path: Path) -> None:
    outcomes = ["2", "2", "truncated", "truncated"]
    assert asked(tmp_path / "j", 100) == (outcomes, [100, 100, 100, 100, 200, 200, 200])
    # Both replies are kept, and the same command asks nothing again.
    assert len(list(read_journal(tmp_path / "j"))) == 7
    assert asked(tmp_path / "j", 100) == (outcomes, [])


@pytest.mark.parametrize(
    ("room", "outcomes", "rooms"),
    [
        # With 200 to 400 tokens, the reply of 250 has enough, and that of 900 was cut off at 200 before.
        (200, ["2", "2", "2", "truncated"], [400, 400]),
        (300, ["2", "2", "2", "truncated"], [300, 300, 600]),
        (1000, ["2", "2", "2", "2"], [1000, 1000]),
        # Less room than before: 200 was not enough.
        (60, ["2", "2", "truncated", "truncated"], []),
    ],
)
def test_more_room_asks_again_only_what_was_cut_off(tmp_path: Path, room: int, outcomes, rooms) -> None:
    asked(tmp_path / "j", 100)
    assert asked(tmp_path / "j", room) == (outcomes, rooms)
    assert asked(tmp_path / "j", room) == (outcomes, [])
    # Whichever room is given later, what has an answer keeps it.
    assert asked(tmp_path / "j", 100)[1] == []


def test_a_run_that_was_killed_between_the_two_goes_on_with_more_room(tmp_path: Path) -> None:
    one = pool(["150"])
    with Journal(tmp_path / "whole") as journal:
        assess(tasks(one, [criterion()]), Thinker(100), journal, one)
    first, *_ = [entry for entry in read_journal(tmp_path / "whole") if entry.completion.finish_reason == "length"]
    with Journal(tmp_path / "part") as journal:
        # The limit is remembered before it is used.
        model = Thinker(100)
        questions = Questions(model, journal, one, None)
        questions.endpoint.add_room(100)
        (task,) = tasks(one, [criterion()])
        digest, request = questions.first(task)
        assert digest == first.digest

        async def written() -> None:
            await journal.write(digest, model.name, model.parameters(request), request, first.completion)

        asyncio.run(written())
    assert asked(tmp_path / "part", 100, ("150",)) == (["2"], [200])


@pytest.mark.parametrize(("room", "form"), [(None, "text"), (1, "label")])
def test_without_room_and_for_a_label_nothing_is_asked_twice(room: int | None, form: str) -> None:
    model = Thinker(room, forms=(form,))
    one = pool(["150"])
    with Journal(None) as journal:
        (result,) = assess(tasks(one, [criterion()]), model, journal, one)
    assert isinstance(result, Failure)
    assert len(model.asked) == 1


class Cramped(Thinker):
    """Refuses a token limit above 120."""

    async def complete(self, request: Request) -> Completion:
        if request.room is not None and request.room > 120:
            self.asked.append(request)
            raise RejectedError("status 400: max_tokens is too large: at most 120")
        return await super().complete(request)


def test_an_endpoint_without_more_room_leaves_what_was_cut_off(tmp_path: Path) -> None:
    one = pool(TEXTS)
    with Journal(tmp_path / "j") as journal:
        model = Cramped(100)
        results = list(assess(tasks(one, [criterion()]), model, journal, one))
        assert [result.reason for result in results if isinstance(result, Failure)] == ["truncated"] * 3
        assert [request.room for request in model.asked].count(200) == 3
        # It is not asked for again.
        later = Cramped(100)
        assert list(assess(tasks(one, [criterion()]), later, journal, one)) == results
        assert later.asked == []


def test_a_journal_that_is_taken_over_brings_its_limits(tmp_path: Path) -> None:
    asked(tmp_path / "own", 100)
    asked(tmp_path / "other", 1000)
    with Journal(tmp_path / "own") as journal:
        journal.adopt(tmp_path / "other")
    assert asked(tmp_path / "own", 100) == (["2", "2", "2", "2"], [])


def test_exports_merges_and_replays_hold_both_replies(tmp_path: Path) -> None:
    outcomes, _ = asked(tmp_path / "j", 100)
    export_journal(tmp_path / "j", tmp_path / "calls.jsonl")
    merge_journals([tmp_path / "calls.jsonl"], tmp_path / "merged")
    assert asked(tmp_path / "merged", 100) == (outcomes, [])
    one = pool(TEXTS)
    with Journal(tmp_path / "j") as journal:
        recorded = list(assess(tasks(one, [criterion()]), Thinker(100), journal, one))
    with Journal(None) as journal:
        replay = open_model(f"replay/{tmp_path / 'calls.jsonl'}")
        assert list(assess(tasks(one, [criterion()]), replay, journal, one)) == recorded


@pytest.mark.parametrize(("omit", "rooms"), [((), (300, 600)), (("max_tokens",), ())])
def test_what_a_server_is_sent(mock: Mock, tmp_path: Path, omit: tuple[str, ...], rooms: tuple[int, ...]) -> None:
    mock.config(faults={"length": 1.0}, faulty="poison")
    one = pool(["poison"])
    model = open_model("server/mock", ModelOptions(base_url=mock.base_url, max_tokens=300, omit=omit))
    with Journal(tmp_path / "j") as journal:
        (result,) = assess(tasks(one, [criterion()]), model, journal, one)
        assert remembered_rooms(journal, "server/mock") == set(rooms)
    assert isinstance(result, Failure)
    assert result.reason == "truncated"
    sent = [entry.parameters.get("max_tokens") for entry in read_journal(tmp_path / "j")]
    assert sorted(map(str, sent)) == [str(room) for room in rooms or (None,)]
