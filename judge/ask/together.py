"""Questions about one response on their way into the calls of a judge that takes several at once."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence

from judge.errors import CallError
from judge.judges.model import Model
from judge.judges.records import Completion, Request

Replies = list[Completion | CallError]
"""What comes back for the requests of a call; an error about one question alone stands in its place."""


def split(model: Model, requests: Sequence[Request]) -> list[list[int]]:
    """The places of the requests that go out in a call each: those that show the same, as many as the judge takes."""
    calls: list[list[int]] = []
    latest: dict[tuple[str, ...], int] = {}
    sizes: list[int] = []
    for place, request in enumerate(requests):
        material = tuple(message.content for message in request.messages if message.role == "user")
        size = model.questions_in(request)
        number = latest.get(material)
        if number is None or sizes[number] + size > model.asks_together:
            latest[material] = len(calls)
            calls.append([place])
            sizes.append(size)
        else:
            calls[number].append(place)
            sizes[number] += size
    return calls


class Together:
    """Members that ask about one response; once each of them has asked or left, the calls are made.

    A member may ask again after its reply, and then waits for the others again.
    """

    def __init__(
        self, model: Model, paid_call: Callable[[Sequence[Request]], Awaitable[Replies]], members: int
    ) -> None:
        self._model = model
        self._paid_call = paid_call
        self._members = members
        """Those that have not left."""
        self._asked: list[tuple[Request, asyncio.Future[Completion]]] = []
        """Requests that are in no call yet, with what becomes of them."""
        self._calls: asyncio.Future[None] | None = None
        self.over = asyncio.Event()
        """Set once all have left."""

    async def completion(self, request: Request) -> Completion:
        """The completion of a member's request; errors are those of a call."""
        reply: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._asked.append((request, reply))
        self._look()
        return await reply

    def leave(self) -> None:
        """Ask no more, for one of the members."""
        self._members -= 1
        self._look()

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Let the others go on without a member that waits for something else."""
        self.leave()
        try:
            yield
        finally:
            self._members += 1

    def _look(self) -> None:
        if not self._members:
            self.over.set()
        elif len(self._asked) == self._members:
            asked = self._asked
            self._asked = []
            self._calls = asyncio.ensure_future(self._call_all(asked))

    async def _call_all(self, asked: "Sequence[tuple[Request, asyncio.Future[Completion]]]") -> None:
        """Make the calls one after the other, because their members have one slot."""
        for places in split(self._model, [request for request, _ in asked]):
            replies: Sequence[Completion | BaseException]
            try:
                replies = await self._paid_call([asked[place][0] for place in places])
            except BaseException as error:  # noqa: BLE001 - it is raised where a member waits
                replies = [error for _ in places]
            for place, reply in zip(places, replies, strict=True):
                future = asked[place][1]
                if future.done():
                    continue
                if isinstance(reply, Completion):
                    future.set_result(reply)
                elif isinstance(reply, asyncio.CancelledError):
                    future.cancel()
                else:
                    future.set_exception(reply)
