"""A worker: an actor that runs the loop on shards. It imports nothing of Ray."""

import asyncio
import contextlib
import platform
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from judge.ask.loop import Loop
from judge.ask.progress import Progress
from judge.ask.questions import Questions
from judge.ask.records import Failure
from judge.ask.settings import Settings
from judge.ask.tasks import Task
from judge.errors import JudgeError, OperationalError, UsageError
from judge.files.bundle import __version__
from judge.models.backends import open_model
from judge.models.journal import Journal
from judge.models.journal_rows import new_row
from judge.models.model import Model, ModelOptions, Unfinished
from judge.models.records import Completion, Request
from judge.pool.records import Pool
from judge.runs.records import Turn

VERSIONS = f"judge {__version__} and Python {platform.python_version()}"
_WAIT = 0.5
"""Most seconds for which `news` waits for something new."""
_ENTRIES = 64
"""Most entries in one reply."""


class PaidCall(NamedTuple):
    """A row for the journal, without the name of the judge."""

    digest: str
    parameters: Mapping[str, Any]
    request: Request
    completion: Completion


class Fact(NamedTuple):
    """A fact for the journal; None where it is to be removed."""

    key: str
    value: str | None


class ShardTasks(NamedTuple):
    """The tasks that a worker is given at once, with everything that the loop needs for them."""

    tasks: tuple[Task, ...]
    pool: Pool
    turns: Mapping[str, Turn]
    rows: tuple[PaidCall, ...]
    """What the run's journal holds of the tasks."""
    facts: Mapping[str, str]
    max_cost: float | None
    """US dollars that may be spent on this shard."""
    versions: str = VERSIONS


class ShardEnd(NamedTuple):
    """What became of a shard."""

    failures: Mapping[int, Failure]
    """By the place of the task in the shard; all other tasks are answered by the journal."""
    error: JudgeError | None
    """What ended the loop early."""
    progress: Progress | None


class News(NamedTuple):
    """What is new at a worker."""

    entries: tuple[PaidCall | Fact, ...]
    progress: Progress | None
    unfinished: Unfinished
    """What the worker has paid for without a completion."""


class WorkerJournal(Journal):
    """The journal of one shard, in memory. A write is done once the driver has the row on its disk.

    Args:
        say: Hands an entry to the driver; the future, if any, is done once the driver has it.
        judge: The name of the judge.
        shard: The shard, which brings what the run's journal holds already.
    """

    def __init__(
        self, say: Callable[[PaidCall | Fact, asyncio.Future[None] | None], None], judge: str, shard: ShardTasks
    ) -> None:
        super().__init__(None)
        self.record(new_row(row.digest, judge, row.parameters, row.request, row.completion) for row in shard.rows)
        for key, value in shard.facts.items():
            super().set_meta(key, value)
        self._say = say

    def write(
        self, digest: str, judge: str, parameters: Mapping[str, Any], request: Request, completion: Completion
    ) -> "asyncio.Future[None]":
        """Record a completion here, and hand it to the driver."""
        super().write(digest, judge, parameters, request, completion)
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._say(PaidCall(digest, dict(parameters), request, completion), written)
        return written

    def set_meta(self, key: str, value: str) -> None:
        """Record a fact here, and hand it to the driver."""
        super().set_meta(key, value)
        self._say(Fact(key, value), None)

    def drop_meta(self, keys: Sequence[str]) -> None:
        """Remove facts here, and with the driver."""
        super().drop_meta(keys)
        for key in keys:
            self._say(Fact(key, None), None)


class RayWorker:
    """An actor with one judge.

    Args:
        name: `backend/model`, as the user gave it.
        options: How the judge is called.
        settings: This worker's part of the limits.
    """

    def __init__(self, name: str, options: ModelOptions, settings: Settings) -> None:
        self._name, self._options, self._settings = name, options, settings
        self._model: Model | None = None
        self._loop: Loop | None = None
        self._home: asyncio.AbstractEventLoop | None = None
        self._entries: list[tuple[PaidCall | Fact, asyncio.Future[None] | None]] = []
        """What the driver does not have yet."""
        self._new = asyncio.Event()
        self._progress: Progress | None = None

    async def judge(self, shard: ShardTasks) -> ShardEnd:
        """Run the loop on a shard."""
        failures: dict[int, Failure] = {}
        error: JudgeError | None = None
        try:
            if shard.versions != VERSIONS:
                raise OperationalError(f"the driver has {shard.versions}, a Ray node {VERSIONS}: install the same")
            self._home = asyncio.get_running_loop()
            model = await self._opened(shard)
            with WorkerJournal(self._say, model.name, shard) as journal:
                questions = Questions(model, journal, shard.pool, shard.turns, None, journal.set_meta)
                settings = msgspec.structs.replace(self._settings, max_cost=shard.max_cost)
                self._loop = Loop(questions, journal, settings, report=self._note)
                results = await self._loop.run(shard.tasks)
            failures = {place: result for place, result in enumerate(results) if isinstance(result, Failure)}
        except JudgeError as raised:
            error = raised
        except Exception as raised:  # noqa: BLE001 - whatever it is, the driver has to say it in words
            error = OperationalError(f"a Ray worker on {socket.gethostname()} failed: {raised!r}")
        end, self._loop, self._progress = ShardEnd(failures, error, self._progress), None, None
        self._new.set()
        return end

    async def news(self, kept: int, stopped: bool) -> News:
        """What is new; waits for it a while.

        Args:
            kept: How many entries of the last reply the driver has on its disk.
            stopped: Whether no further call may begin.
        """
        for _, written in self._entries[:kept]:
            if written is not None:
                written.set_result(None)
        del self._entries[:kept]
        if stopped and self._loop is not None:
            self._loop.drain()
        if not self._entries:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._new.wait(), _WAIT)
        self._new.clear()
        unfinished = Unfinished() if self._model is None else self._model.unfinished
        return News(tuple(entry for entry, _ in self._entries[:_ENTRIES]), self._progress, unfinished)

    async def _opened(self, shard: ShardTasks) -> Model:
        """The judge, opened once and checked for each shard.

        Raises:
            OperationalError: It cannot be used on this node.
        """
        try:
            model = self._model or open_model(self._name, self._options)
            model.check(tuple({task.criterion.digest: task.criterion for task in shard.tasks}.values()))
        except UsageError as error:
            # The command is right, but this node lacks something.
            where = f"a Ray worker on {socket.gethostname()} cannot ask {self._name}"
            raise OperationalError(f"{where}: {error}") from error
        if self._model is None:
            await asyncio.to_thread(model.prepare, lambda step, done, total: None)
            self._model = model
        return model

    def _say(self, entry: PaidCall | Fact, written: "asyncio.Future[None] | None") -> None:
        self._entries.append((entry, written))
        if self._home is not None:
            # A thread may have recorded a fact.
            self._home.call_soon_threadsafe(self._new.set)

    def _note(self, progress: Progress) -> None:
        self._progress = progress._replace(servers=())
