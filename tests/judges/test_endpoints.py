import asyncio
from collections.abc import Sequence

import pytest

from judge import errors
from judge.judges.endpoints import Endpoints
from judge.judges.records import Completion, Request
from tests.mock import ask

pytestmark = pytest.mark.fast

A, B = "http://a/v1", "http://b/v1"
DONE = Completion(text="0", finish_reason="stop", model="m")
KEY, MOVED = errors.AuthenticationError("refused"), errors.OperationalError("moved")
FAULT = errors.TransientError("fault")
FULL = errors.RateLimitError("full")
BAD = errors.RejectedError("bad")


def full(seconds: float) -> errors.RateLimitError:
    return errors.RateLimitError("full", seconds)


class World:
    """Two servers, each with its replies, the last one repeated; and a clock."""

    def __init__(self, a: Sequence[errors.JudgeError | None], b: Sequence[errors.JudgeError | None] = (None,)) -> None:
        self.now = 1000.0
        self.asked: list[str] = []
        self.replies = {A: list(a), B: list(b)}
        self.endpoints = Endpoints({A: self.server(A), B: self.server(B)}, lambda: self.now)

    def server(self, url: str):  # type: ignore[no-untyped-def]
        async def post(body: bytes, request: Request) -> Completion:
            self.asked.append(url[7])
            replies = self.replies[url]
            await asyncio.sleep(0)
            reply = replies.pop(0) if len(replies) > 1 else replies[0]
            if reply is not None:
                raise reply
            return DONE

        return post

    def call(self, calls: int = 1) -> list[Completion | BaseException]:
        """Make calls at once; gives what became of them."""

        async def whole() -> list[Completion | BaseException]:
            posts = (self.endpoints.post(b"{}", ask()) for _ in range(calls))
            return await asyncio.gather(*posts, return_exceptions=True)

        return asyncio.run(whole())


# The failures of two servers; what the first call fails for, and what the next one fails for.
CASES: list[tuple[errors.JudgeError, errors.JudgeError, errors.JudgeError, errors.JudgeError]] = [
    (full(600), full(20), full(20), full(20)),
    (full(600), FAULT, FAULT, FAULT),
    (full(600), FULL, FULL, FULL),
    # One of them will be ready, so nothing ends the run.
    (full(20), KEY, full(20), full(20)),
    (KEY, full(20), full(20), full(20)),
    (FAULT, KEY, FAULT, FAULT),
    (FAULT, FULL, FAULT, FAULT),
    (errors.TransientError("slow", 7), full(3), errors.TransientError("slow", 3), full(3)),
    (KEY, KEY, KEY, KEY),
    (KEY, MOVED, KEY, KEY),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("turned", [False, True])
def test_what_two_servers_that_fail_come_to(case: tuple[errors.JudgeError, ...], turned: bool) -> None:
    one, two, *expected = case
    world = World([two], [one]) if turned else World([one], [two])
    for error in expected:
        (caught,) = world.call()
        if not isinstance(error, errors.OperationalError):
            assert type(caught) is type(error)
        assert isinstance(caught, errors.OperationalError) == isinstance(error, errors.OperationalError)
        assert getattr(caught, "retry_after", None) == getattr(error, "retry_after", None)
        assert A in str(caught) and B in str(caught)


@pytest.mark.parametrize(
    ("replies", "pauses", "asked"),
    [
        # Replies of a; seconds before each further call; the servers that the calls came to, in order.
        ([None], [0, 0, 0], "abab"),
        # Three failures in a row, then one call after 1, 2 and 4 seconds; each failed call goes to b.
        ([FAULT], [0, 0, 0, 0.9, 0.1, 1.9, 0.1, 3.9, 0.1], "ab" "ab" "ab" "b" "b" "ab" "b" "ab" "b" "ab"),
        ([FAULT, FAULT, None, FAULT, FAULT, None], [0, 0, 0, 0, 0, 0, 0], "ab" "ab" "a" "ab" "ab" "a" "a" "a"),
        # What will not pass leaves it at once; an answer to the trial takes it back.
        ([KEY, None], [0, 0.9, 0.1, 0, 0], "ab" "b" "b" "a" "a" "a"),
        # It is asked after the wait that it asked for, and not before.
        ([full(30), None], [0, 29, 1, 0], "ab" "b" "b" "a" "a"),
        # A refused request says that the server is well.
        ([FAULT, FAULT, BAD, FAULT, FAULT, BAD], [0, 0, 0, 0], "ab" "ab" "a" "ab" "ab"),
    ],
)  # fmt: skip
def test_a_server_that_fails_is_left_and_tried_later(replies, pauses, asked) -> None:
    world = World(replies)
    for pause in (0, *pauses):
        world.now += pause
        world.call()
    assert "".join(world.asked) == asked


def test_the_least_loaded_server_takes_the_next_call_and_a_trial_is_one_call() -> None:
    world = World([None])
    assert world.call(8) == [DONE] * 8
    assert [(each.answered, each.in_flight) for each in world.endpoints.all] == [(4, 0), (4, 0)]
    world.replies[A] = [FAULT]
    assert world.call(8) == [DONE] * 8
    # The four calls that were in flight when it was left lengthen no pause.
    assert [each.trouble for each in world.endpoints.all] == [FAULT, None]
    world.now += 1
    world.asked.clear()
    world.call(8)
    assert world.asked.count("a") == 1
    # Calls in flight when a server asked to wait take nothing back, and may ask for a longer wait.
    world = World([full(30), None, full(60), None], [KEY])
    assert getattr(world.call(8)[4], "retry_after", None) == 60
    assert (str(world.endpoints.all[0].trouble), world.endpoints.all[0].until) == ("full", 1060)


def test_a_trial_that_was_broken_off_says_nothing() -> None:
    world = World([KEY, asyncio.CancelledError()])  # type: ignore[list-item]
    world.call()
    world.now += 1
    world.call()
    assert [(each.trouble, each.in_flight) for each in world.endpoints.all] == [(KEY, 0), (None, 0)]
