"""A worker: runs the loop over one shard after the other, and asks the driver before each call.

It imports nothing of Ray. The driver calls `tell` whenever it has something to say, and has one call of `hear` open.
"""

import asyncio
import contextlib
import platform
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from judge.ask.account import Account
from judge.ask.loop import Loop
from judge.ask.pace import Pacer
from judge.ask.progress import Progress
from judge.ask.ray.messages import (
    Denied,
    Fact,
    Forgotten,
    FromWorker,
    Granted,
    Kept,
    Known,
    News,
    SentCompletion,
    ShardDone,
    ShardEnded,
    ShardTasks,
    Stop,
    ToWorker,
    Unanswered,
    Unkept,
    Versions,
    WantedQuestion,
)
from judge.ask.ray.spread_silence import WorkerSilence
from judge.ask.settings import Settings
from judge.errors import JudgeError, OperationalError, UsageError
from judge.files.bundle import __version__
from judge.models.backends import open_model
from judge.models.endpoints import Endpoint
from judge.models.journal import Journal, RecordedAnswer
from judge.models.model import Model, ModelOptions, Unfinished
from judge.models.records import Completion, Request
from judge.models.spending import CallFacts
from judge.records import Criterion

_LISTEN = 1.0
"""Most seconds until the driver hears how a worker does."""
_AT_ONCE = 8
"""Most things said at once: what is sent together is lost together, and Ray sends less than 100 kB by itself."""


class RayWorker:
    """An actor with one judge.

    Args:
        name: `backend/model`, as the user gave it.
        options: How the judge is called.
        settings: This worker's part of the limits, without a budget.
    """

    def __init__(self, name: str, options: ModelOptions, settings: Settings) -> None:
        self._name = name
        self._options = options
        self._settings = settings
        self._pacer = Pacer(settings.rpm, settings.tpm)
        self._model: Model | None = None
        self._loop: Loop | None = None
        self._journal: WorkerJournal | None = None
        self._said: list[FromWorker] = []
        self._news = asyncio.Event()
        self._progress: Progress | None = None
        self._job: asyncio.Task[None] | None = None
        self._home: asyncio.AbstractEventLoop | None = None
        """The loop in which the driver is heard."""

    async def versions(self) -> Versions:
        """The versions of judge and Python here."""
        return Versions(__version__, platform.python_version())

    async def tell(self, told: Sequence[ToWorker]) -> None:
        """Take note of what the driver says."""
        self._home = asyncio.get_running_loop()
        for message in told:
            if isinstance(message, ShardTasks):
                self._job = asyncio.ensure_future(self._judge(message))
            elif isinstance(message, Stop):
                if self._loop is not None:
                    self._loop.drain()
            elif self._journal is not None:
                self._journal.told(message)

    async def hear(self) -> News:
        """What is new; waits for it a while."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), _LISTEN)
        said, self._said = tuple(self._said[:_AT_ONCE]), self._said[_AT_ONCE:]
        if not self._said:
            self._news.clear()
        model, progress = self._model, self._progress
        servers: Sequence[Endpoint] = () if model is None else model.servers
        return News(
            said,
            None if progress is None else progress._replace(servers=()),
            tuple((server.url, server.answered, server.trouble) for server in servers),
            Unfinished() if model is None else model.unfinished,
        )

    def say(self, message: FromWorker) -> None:
        """Keep something for the driver to hear; any thread may call it."""
        if self._home is not None:
            # One that journals parts of a call is not the loop's.
            self._home.call_soon_threadsafe(self._say, message)

    def _say(self, message: FromWorker) -> None:
        self._said.append(message)
        self._news.set()

    async def _judge(self, shard: ShardTasks) -> None:
        try:
            model = await self._opened(tuple({task.criterion.digest: task.criterion for task in shard.tasks}.values()))
            account = ShardAccount()
            with WorkerJournal(self.say, shard.facts) as journal:
                self._journal = journal
                self._loop = Loop(
                    *(model, journal, shard.pool, shard.turns, self._settings, self._note, account),
                    pacer=self._pacer,
                    silence=WorkerSilence(model.name, journal, shard.heard, self.say),
                )
                results = await self._loop.run(shard.tasks)
            self._progress = None
            self.say(ShardDone(tuple(results), account.rested))
        except JudgeError as error:
            self.say(ShardEnded(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the driver has to hear of it in words
            self.say(ShardEnded(OperationalError(f"a Ray worker on {socket.gethostname()} failed: {error!r}")))
        finally:
            self._loop = self._journal = None

    async def _opened(self, criteria: tuple[Criterion, ...]) -> Model:
        """The judge, opened and checked once.

        Raises:
            OperationalError: It cannot be used on this node.
        """
        try:
            model = self._model or open_model(self._name, self._options)
            model.check(criteria)
        except UsageError as error:
            node = socket.gethostname()
            raise OperationalError(f"a Ray worker on {node} cannot ask {self._name}: {error}") from error
        if self._model is None:
            # In a thread, because the driver waits for news meanwhile.
            await asyncio.to_thread(model.prepare, lambda step, done, total: None)
            self._model = model
        return model

    def _note(self, progress: Progress) -> None:
        self._progress = progress


class ShardAccount(Account):
    """The account of a shard, which notes what the results rest on, for the driver's account."""

    def __init__(self) -> None:
        super().__init__()
        self.rested: dict[str, CallFacts] = {}
        """By digest."""

    def rest_too(self, judge: str, facts: Mapping[str, CallFacts]) -> None:
        """Enter it here, and note it."""
        self.rested.update(facts)
        super().rest_too(judge, facts)


class WorkerJournal(Journal):
    """The driver's journal as the loop of a worker sees it: each question is claimed, each completion is sent.

    Args:
        say: Gives something to the driver.
        facts: What the driver's journal knows of the judge.
    """

    def __init__(self, say: Callable[[FromWorker], None], facts: Mapping[str, str]) -> None:
        # What a new journal notes of itself is no news.
        self._say: Callable[[FromWorker], None] = lambda message: None
        super().__init__(None)
        for key, value in facts.items():
            super().set_meta(key, value)
        self._say = say
        self._claimed: dict[str, tuple[str, asyncio.Future[RecordedAnswer | None]]] = {}
        """By the name of what is wanted: the first digest, and the future."""
        self._sent: dict[str, asyncio.Future[None]] = {}
        self.claims = self

    def claim(self, *digests: str, request: Request) -> "asyncio.Future[RecordedAnswer | None]":
        """Ask the driver for a question."""
        wanted = WantedQuestion(digests, request)
        answer = asyncio.get_running_loop().create_future()
        self._claimed[wanted.name] = digests[0], answer
        self._say(wanted)
        return answer

    def release(self, digest: str) -> None:
        """Tell the driver that a question brought no completion."""
        self._say(Unanswered(digest))

    def give_up(self, error: BaseException) -> None:
        """End every wait for the driver's leave."""
        for digest, answer in self._claimed.values():
            if not answer.done():
                answer.set_exception(error)
                # The driver may have given leave by now.
                self._say(Unanswered(digest))
        self._claimed.clear()

    def set_meta(self, key: str, value: str) -> None:
        """Record a fact here and with the driver."""
        super().set_meta(key, value)
        self._say(Fact(key, value))

    def drop_meta(self, keys: Sequence[str]) -> None:
        """Remove facts here and with the driver."""
        super().drop_meta(keys)
        self._say(Forgotten(tuple(keys)))

    def write(
        self, digest: str, judge: str, parameters: Mapping[str, Any], request: Request, completion: Completion
    ) -> "asyncio.Future[None]":
        """Send a completion; the future is done when the driver has it on its disk."""
        written = self._sent[digest] = asyncio.get_running_loop().create_future()
        self._say(SentCompletion(digest, dict(parameters), request, completion))
        return written

    def told(self, message: Granted | Known | Denied | Kept | Unkept) -> None:
        """Settle what the driver's answer is for."""
        if isinstance(message, Kept | Unkept):
            written = self._sent.pop(message.digest, None)
            if written is None or written.done():
                return
            if isinstance(message, Unkept):
                written.set_exception(message.error)
            else:
                written.set_result(None)
            return
        _, answer = self._claimed.pop(message.name, (None, None))
        if answer is None or answer.done():
            return
        if isinstance(message, Denied):
            answer.set_exception(message.error)
        else:
            answer.set_result(message.answer if isinstance(message, Known) else None)
