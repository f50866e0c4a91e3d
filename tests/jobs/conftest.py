"""A judge without a server, whose answers a test can change."""

import msgspec
import pytest

from judge.errors import OperationalError
from judge.judges.backends.baseline import Overlap
from judge.judges.model import Price
from judge.judges.records import Completion, Request


class Asked:
    """What the overlap judge was asked, with ways to make it answer otherwise."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.fail_after: int | None = None
        self.cost = 0.0
        self.wrong: set[str] = set()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    seen, honest = Asked(), Overlap.complete

    async def complete(self: Overlap, request: Request) -> Completion:
        if seen.fail_after is not None and len(seen.requests) >= seen.fail_after:
            raise OperationalError("the world has failed")
        seen.requests.append(request)
        found = await honest(self, request)
        if set(request.labels) & seen.wrong:
            label = request.labels[(len(seen.requests) * 7) % len(request.labels)]
            found = msgspec.structs.replace(found, text=label, probabilities=None)
        return msgspec.structs.replace(found, cost=seen.cost)

    monkeypatch.setattr(Overlap, "complete", complete)
    monkeypatch.setattr(Overlap, "price", lambda self: Price(0.0, 0.0))
    return seen
