"""The loop of one judge spread over the workers of a Ray cluster; journal, budget and results stay with the driver."""

import asyncio
import math
import time
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from judge.ask.account import Account
from judge.ask.budget import Budget, price_of
from judge.ask.cashier import Cashier
from judge.ask.own_loop import finish
from judge.ask.progress import Progress
from judge.ask.questions import Questions, facts_of
from judge.ask.ray.cluster import LostWorker, RayCluster, WorkerHandle
from judge.ask.ray.ledger import Ledger, SpreadJudge
from judge.ask.ray.messages import (
    Fact,
    Forgotten,
    FromWorker,
    GivenUp,
    Refused,
    SentCompletion,
    ShardDone,
    ShardEnded,
    ShardTasks,
    Stop,
    Unanswered,
    WantedQuestion,
)
from judge.ask.ray.place import WorkerPlace, servers_of, together
from judge.ask.ray.shards import ShardLine
from judge.ask.ray.spread_silence import SpreadSilence
from judge.ask.settings import Settings
from judge.ask.stored_results import StoredResults
from judge.ask.suspects import joined, suspects_key
from judge.ask.tally import Tally
from judge.ask.tasks import Task
from judge.errors import OperationalError
from judge.models.call_parts import parts_key
from judge.models.journal import Journal
from judge.models.model import Model
from judge.pool.records import Pool
from judge.runs.records import Turn
from judge.text.table import sequence

_ROUNDS = 2
"""A shard has at least so many tasks for each call that its worker may have in flight."""
_LOSSES = 5
"""Workers lost one after the other without a completion, after which the run ends."""
_WAITING = "waiting for CPUs of the cluster"
"""What holds the calls while no worker has begun."""


class RayEngine:
    """Judges on a Ray cluster; `assess` stands in for the loop's.

    Args:
        cluster: Where the workers are; it is found or started when there is something to ask.
    """

    def __init__(self, cluster: RayCluster) -> None:
        self._cluster = cluster

    def assess(
        self,
        wanted: Iterable[Task],
        model: Model,
        journal: Journal,
        pool: Pool,
        *,
        turns: Mapping[str, Turn] | None = None,
        settings: Settings | None = None,
        report: Callable[[Progress], None] | None = None,
        account: Account | None = None,
        folder: Path | None = None,
    ) -> StoredResults:
        """Make a judgment or a failure of every task; arguments, results and errors are those of the loop's `assess`.

        Raises:
            OperationalError: The run stopped early, or workers are lost again and again; every completion that came is
                in the journal.
        """
        spread = _Spread(
            *(self._cluster, model, journal, pool, turns or {}, settings or Settings(), report),
            *(account or Account(), folder),
        )
        left = spread.recall(sequence(wanted))
        # Before our event loop begins: Ray takes seconds, and Ctrl-C has to be heard.
        room = self._cluster.room(model) if left else 0
        return finish(lambda: spread.run(left, room), spread.drain)


class _Spread:
    """One judge, one list of tasks."""

    def __init__(
        self,
        cluster: RayCluster,
        model: Model,
        journal: Journal,
        pool: Pool,
        turns: Mapping[str, Turn],
        settings: Settings,
        report: Callable[[Progress], None] | None,
        account: Account,
        folder: Path | None,
    ) -> None:
        self._cluster = cluster
        self._model = model
        self._journal = journal
        self._pool = pool
        self._turns = turns
        self._settings = settings
        self._report = report or (lambda progress: None)
        self._account = account
        self._questions = Questions(model, journal, pool, turns, account, journal.set_meta)
        self._judge = SpreadJudge(model) if model.divides else None
        self._budget = Budget(model, settings.max_cost, settings.known_prices, self._judge)
        self._silence = SpreadSilence(model.name, journal, self._settings.concurrency, self._settings.attempts)
        cashier = Cashier(model, journal, self._questions, self._budget, account, self._silence)
        self._ledger = Ledger(journal, self._questions, cashier, self._silence, self._end)
        account.open(model.name, price_of(model, settings.known_prices), self._questions.rates())
        self._folder = folder
        self._wanted: Sequence[Task] = ()
        self._line = ShardLine((), (), 1, 1)
        self._places: list[WorkerPlace] = []
        self._jobs: dict[WorkerPlace, asyncio.Task[None]] = {}
        self._tally = Tally()
        self._losses = 0
        self._answered = 0
        self._stop: BaseException | None = None
        self._begun = False
        """Whether any worker has begun."""
        self._change = asyncio.Event()
        """Set when a place without a shard should look again."""

    def recall(self, wanted: Sequence[Task]) -> "array[int]":
        """Settle what needs no call, and give the numbers of the other tasks."""
        self._wanted = wanted
        self._tally = Tally(len(wanted), self._folder)
        left = self._tally.recall(wanted, self._questions, self._silence, lambda: None)
        self._tell()
        return left

    async def run(self, left: Sequence[int], room: int) -> StoredResults:
        """Settle every task, in the order of the tasks.

        Args:
            left: From `recall`.
            room: How many workers fit.
        """
        started = time.perf_counter()
        try:
            if left:
                with self._cluster.watch(self._end, self._cancel):
                    await self._spread(left, room)
                silent = self._silence.at_the_end()
                if silent is not None:
                    self._end(silent)
        finally:
            self._account.last(self._model.name, time.perf_counter() - started)
            if self._judge is not None:
                self._account.unfinished(self._model.name, self._judge.unfinished)
            await self._model.aclose()
        if self._stop is not None:
            raise self._stop
        self._journal.check_there()
        return self._tally.results()

    def drain(self) -> None:
        """Start no new call, because the user stopped the run; calls in flight are finished and kept."""
        self._end(self._tally.interrupted(self._done))

    async def _spread(self, left: Sequence[int], room: int) -> None:
        limits = (self._settings.concurrency, self._settings.rpm, self._settings.tpm)
        turns = ShardLine(self._wanted, left, 1, 1).turns
        self._silence.one_turn = turns == 1
        places = min(room, turns, *(limit for limit in limits if limit is not None))
        share = math.ceil(self._settings.concurrency / places)
        self._line = ShardLine(self._wanted, left, places, _ROUNDS * share)
        self._places = [WorkerPlace(number, places) for number in range(places)]
        jobs = {place: asyncio.ensure_future(self._serve(place)) for place in self._places}
        self._jobs = jobs
        self._tell()
        try:
            await asyncio.wait(jobs.values())
        finally:
            for job in jobs.values():
                job.cancel()
            await asyncio.wait(jobs.values())
            await self._ledger.finish()

    async def _serve(self, place: WorkerPlace) -> None:
        """Keep a worker at one place; another one comes in place of a lost one."""
        try:
            while True:
                await self._more()
                place.worker = worker = self._cluster.start(self._model, place.part(self._settings))
                try:
                    await self._talk(place, worker)
                except LostWorker as error:
                    self._lost(place, error)
                finally:
                    place.worker = None
                    worker.kill()
        except Exception as error:  # noqa: BLE001 - after any error, what other workers paid for must be kept
            self._end(error)

    async def _more(self) -> None:
        """Wait for something to ask; a worker that asks now may be lost, and leave its shard."""
        while not self._line:
            self._change.clear()
            await self._change.wait()

    async def _talk(self, place: WorkerPlace, worker: WorkerHandle) -> None:
        """Give a worker one shard after the other, and listen to it."""
        await worker.begin()
        self._begun = True
        while True:
            if not place.shard:
                await self._more()
                place.shard = self._line.take()
                place.waiting = len(place.numbers)
                worker.tell(self._shard(place))
            news = await worker.hear()
            place.note(news)
            if self._judge is not None:
                self._judge.lost = together(place.unfinished for place in self._places)
            for message in news.said:
                self._take(place, worker, message)
            self._tell()

    def _shard(self, place: WorkerPlace) -> ShardTasks:
        tasks = tuple(self._wanted[number] for number in place.numbers)
        keys = {key for task in tasks for key in task.response.passages}
        passages = {key: passage for key, passage in self._pool.passages.items() if key in keys}
        ids = {task.response.turn_id for task in tasks}
        turns = {turn_id: turn for turn_id, turn in self._turns.items() if turn_id in ids}
        facts = {key: value for key in facts_of(self._model.name) if (value := self._journal.meta(key)) is not None}
        if self._model.divides:
            digests = {digest for task in tasks for digest in self._questions.first_digests(task)}
            parts = {parts_key(digest): self._journal.meta(parts_key(digest)) for digest in sorted(digests)}
            facts |= {key: value for key, value in parts.items() if value is not None}
        return ShardTasks(tasks, Pool((), passages, ()), turns, facts, self._silence.heard)

    def _take(self, place: WorkerPlace, worker: WorkerHandle, message: FromWorker) -> None:
        match message:
            case WantedQuestion():
                self._ledger.question(place, message, worker.tell)
            case Unanswered():
                self._ledger.unanswered(place, message.digest)
            case SentCompletion():
                self._ledger.keep(message, worker.tell)
            case GivenUp():
                place.waiting = message.waiting
                waiting = len(self._line) + sum(each.unbegun for each in self._places)
                silent = self._silence.add(message, len(self._wanted), waiting)
                if silent is not None:
                    self._end(silent)
            case Refused():
                self._silence.refused()
            case Fact():
                self._learn(message)
            case Forgotten():
                self._journal.drop_meta(message.keys)
            case ShardDone():
                for number, settled in zip(place.numbers, message.results, strict=True):
                    self._tally.settle(number, settled)
                self._account.rest_too(self._model.name, message.rests)
                place.progress = None
                self._leave(place)
            case ShardEnded():
                self._end(message.error)
                self._leave(place)

    def _lost(self, place: WorkerPlace, error: LostWorker) -> None:
        """Go on without a worker.

        Raises:
            OperationalError: Too many were lost in a row.
        """
        self._losses = 1 if self._ledger.answered > self._answered else self._losses + 1
        self._answered = self._ledger.answered
        self._ledger.lose(place)
        self._line.put_back(place.shard)
        place.forget()
        self._leave(place)
        if self._losses == _LOSSES:
            raise OperationalError(
                f"{_LOSSES} Ray workers were lost one after the other without a completion, the last: {error}; the "
                "same command goes on from here"
            )

    def _learn(self, fact: Fact) -> None:
        """Record what a worker learned of the judge; each knows suspects of its own."""
        value = fact.value
        if fact.key == suspects_key(self._model.name):
            value = joined(value, self._journal.meta(fact.key))
        self._journal.set_meta(fact.key, value)

    def _leave(self, place: WorkerPlace) -> None:
        """A place has no shard any more."""
        place.waiting = 0
        place.shard = ()
        self._change.set()
        self._close()

    def _close(self) -> None:
        """End the workers that have nothing to do, once nothing can come any more."""
        if self._stop is not None or not (self._line or any(place.shard for place in self._places)):
            for place, job in self._jobs.items():
                if not place.shard:
                    job.cancel()

    def _end(self, error: BaseException) -> None:
        """Begin no further call, and raise the first such error at the end; calls in flight are finished and kept."""
        if self._stop is None:
            self._stop = error
            self._ledger.stop(error)
            for place in self._places:
                if place.shard and place.worker is not None:
                    place.worker.tell(Stop())
            self._close()

    def _cancel(self) -> None:
        """Wait for no call in flight."""
        for job in self._jobs.values():
            job.cancel()

    @property
    def _done(self) -> int:
        under_way = (place.progress.done for place in self._places if place.progress is not None)
        return len(self._tally) + sum(under_way)

    def _tell(self) -> None:
        under_way = [place.progress for place in self._places if place.progress is not None]
        limited = [progress.limited for progress in under_way if progress.limited]
        self._report(
            Progress(
                self._done,
                len(self._wanted),
                self._tally.recalled,
                self._tally.failures + sum(progress.failures for progress in under_way),
                self._budget.spent,
                self._budget.estimated,
                servers_of(place.servers for place in self._places),
                _WAITING if self._places and not self._begun else limited[0] if limited else "",
            )
        )
