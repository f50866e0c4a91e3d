"""A worker: an actor that runs the loop on shards, and hands each completion to the driver. It imports nothing of Ray.

Its methods run in threads: the driver calls `news` again and again while `judge` runs the loop.
"""

import asyncio
import platform
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from judge.ask.loop import assess
from judge.ask.progress import Progress
from judge.ask.records import Failure
from judge.ask.settings import Settings
from judge.ask.tasks import Task
from judge.errors import Interrupted, JudgeError, OperationalError, UsageError
from judge.files.bundle import __version__
from judge.models.backends import open_model
from judge.models.journal import Journal
from judge.models.journal_rows import new_row
from judge.models.model import Model, ModelOptions, Unfinished
from judge.models.records import Completion, Request
from judge.pool.records import Pool
from judge.runs.records import Turn

_WAIT = 0.5
"""Most seconds for which `news` waits for something new."""
_ROWS = 64
"""Most rows in one reply."""


class PaidCall(NamedTuple):
    """A row for the journal, without the name of the judge."""

    digest: str
    parameters: Mapping[str, Any]
    request: Request
    completion: Completion


class Fact(NamedTuple):
    """A fact about the judge for the journal."""

    key: str
    value: str | None
    """None where the fact is to be removed."""


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
    """Of the last shard."""
    unfinished: Unfinished
    """What the worker has paid for without a completion."""
    calls: int
    """Calls in flight."""


class ModelAround:
    """A judge that differs from another one only in what a subclass defines."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


class WorkerModel(ModelAround):
    """The judge of a worker: it counts the calls in flight, and refuses further calls once the driver says so."""

    stopped = False
    calls = 0
    before = Unfinished()
    """What was paid for without a completion before the judge was closed last."""

    async def complete(self, request: Request) -> Completion:
        """Ask once.

        Raises:
            Interrupted: The driver has stopped the run.
        """
        if self.stopped:
            raise Interrupted("the driver has stopped the run")
        self.calls += 1
        try:
            return await self._model.complete(request)
        finally:
            self.calls -= 1

    def paid(self) -> Unfinished:
        """What was paid for without a completion."""
        return self.before.plus(self._model.unfinished)

    async def aclose(self) -> None:
        """Close the judge; it opens itself again for the next shard."""
        self.before = self.paid()
        await self._model.aclose()


class WorkerJournal(Journal):
    """The journal of one shard, in memory. A write is done once the driver has the row on its disk.

    Args:
        say: Hands an entry to the driver, and calls back when the driver has it.
        judge: The name of the judge.
        shard: The shard, which brings what the run's journal holds already.
    """

    def __init__(
        self, say: Callable[[PaidCall | Fact, Callable[[], object]], None], judge: str, shard: ShardTasks
    ) -> None:
        self._say: Callable[[PaidCall | Fact, Callable[[], object]], None] = lambda entry, kept: None
        super().__init__(None)
        self.record(new_row(row.digest, judge, row.parameters, row.request, row.completion) for row in shard.rows)
        for key, value in shard.facts.items():
            self.set_meta(key, value)
        # Only what is new from here on is news.
        self._say = say

    def write(
        self, digest: str, judge: str, parameters: Mapping[str, Any], request: Request, completion: Completion
    ) -> "asyncio.Future[None]":
        """Record a completion here, and hand it to the driver."""
        loop = asyncio.get_running_loop()
        super().write(digest, judge, parameters, request, completion)
        written: asyncio.Future[None] = loop.create_future()
        kept = PaidCall(digest, dict(parameters), request, completion)
        self._say(kept, lambda: loop.call_soon_threadsafe(written.set_result, None))
        return written

    def set_meta(self, key: str, value: str) -> None:
        """Record a fact here, and hand it to the driver."""
        super().set_meta(key, value)
        self._say(Fact(key, value), lambda: None)

    def drop_meta(self, keys: Sequence[str]) -> None:
        """Remove facts here, and with the driver."""
        super().drop_meta(keys)
        for key in keys:
            self._say(Fact(key, None), lambda: None)


class RayWorker:
    """An actor with one judge.

    Args:
        name: `backend/model`, as the user gave it.
        options: How the judge is called.
        settings: This worker's part of the limits.
    """

    def __init__(self, name: str, options: ModelOptions, settings: Settings) -> None:
        self._name = name
        self._options = options
        self._settings = settings
        self._model: WorkerModel | None = None
        self._changed = threading.Condition()
        self._entries: list[tuple[PaidCall | Fact, Callable[[], object]]] = []
        """What the driver does not have yet, and what to call once it has."""
        self._progress: Progress | None = None
        self._busy = False

    def versions(self) -> tuple[str, str]:
        """The versions of judge and Python here."""
        return __version__, platform.python_version()

    def judge(self, shard: ShardTasks) -> ShardEnd:
        """Run the loop on a shard."""
        self._busy = True
        try:
            model: Any = self._opened()
            with WorkerJournal(self._say, model.name, shard) as journal:
                results = assess(
                    shard.tasks,
                    model,
                    journal,
                    shard.pool,
                    turns=shard.turns,
                    settings=msgspec.structs.replace(self._settings, max_cost=shard.max_cost),
                    report=self._note,
                )
                failures = {place: result for place, result in enumerate(results) if isinstance(result, Failure)}
            return self._end(failures, None)
        except UsageError as error:
            # The command is right, but this node lacks something.
            where = f"a Ray worker on {socket.gethostname()} cannot ask {self._name}"
            return self._end({}, OperationalError(f"{where}: {error}"))
        except JudgeError as error:
            return self._end({}, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the driver has to say it in words
            return self._end({}, OperationalError(f"a Ray worker on {socket.gethostname()} failed: {error!r}"))

    def news(self, kept: int) -> News:
        """What is new; waits for it a while.

        Args:
            kept: How many entries of the last reply the driver has in its journal.
        """
        with self._changed:
            for _, call in self._entries[:kept]:
                call()
            del self._entries[:kept]
            self._changed.wait_for(lambda: self._entries or not self._busy, _WAIT)
            entries = tuple(entry for entry, _ in self._entries[:_ROWS])
        model = self._model
        if model is None:
            return News(entries, None, Unfinished(), 0)
        progress = None if self._progress is None else self._progress._replace(servers=())
        return News(entries, progress, model.paid(), model.calls)

    def stop(self) -> None:
        """Begin no further call."""
        if self._model is not None:
            self._model.stopped = True

    def _end(self, failures: Mapping[int, Failure], error: JudgeError | None) -> ShardEnd:
        with self._changed:
            end, self._progress, self._busy = ShardEnd(failures, error, self._progress), None, False
            self._changed.notify_all()
        return end._replace(progress=None if end.progress is None else end.progress._replace(servers=()))

    def _opened(self) -> WorkerModel:
        if self._model is None:
            model = open_model(self._name, self._options)
            model.prepare(lambda step, done, total: None)
            self._model = WorkerModel(model)
        return self._model

    def _say(self, entry: PaidCall | Fact, kept: Callable[[], object]) -> None:
        with self._changed:
            self._entries.append((entry, kept))
            self._changed.notify_all()

    def _note(self, progress: Progress) -> None:
        self._progress = progress
