"""The driver of a Ray run: it hands out shards, journals what workers send, and runs the loop on its journal."""

import asyncio
import contextlib
import dataclasses
import functools
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.account import Account
from judge.ask.budget import price_of
from judge.ask.loop import assess
from judge.ask.own_loop import finish
from judge.ask.progress import Progress
from judge.ask.questions import Questions, facts_of
from judge.ask.ray.client import LostWorker, RayClient, address_of, connected
from judge.ask.ray.worker import Fact, News, PaidCall, ShardEnd, ShardTasks
from judge.ask.settings import Settings
from judge.ask.stored_results import StoredResults
from judge.ask.tasks import Task
from judge.errors import CallError, Interrupted, OperationalError, StructureUnsupported
from judge.models.backends import open_model
from judge.models.call_parts import parts_key
from judge.models.journal import HeldElsewhere, Journal
from judge.models.journal_rows import request_digest
from judge.models.model import Model, ModelOptions, Unfinished
from judge.models.records import Completion, Request
from judge.pool.records import Pool
from judge.records import FailureReason
from judge.runs.records import Turn
from judge.text.ids import natural_key

_MOST = 10_000
"""Most tasks of a shard: a worker holds all of them in memory, with their texts and replies."""
_LOSSES = 5
"""Workers lost one after the other without a completion, after which the run ends."""
_POLL = 0.5
"""Seconds after which questions that another process asks are polled again."""
_STEP = 15.0
"""Seconds for the calls in flight of a run whose cluster is lost."""

_NOTHING = Progress(0, 0, 0, 0, 0.0)


class RayEngine:
    """Asks judges on a Ray cluster.

    Args:
        address: The address of the cluster, as `address_of` takes it.
        workers: Workers at once; None for one per CPU, or one per node where the judge computes on all cores.
        names: The models, `backend/model`, as the user gave them.
        options: How they are called.
    """

    def __init__(self, address: str | None, workers: int | None, names: Sequence[str], options: ModelOptions) -> None:
        self._address = address_of(address)
        self._workers = workers
        self._names = {open_model(name, options).name: name for name in names}
        self._options = options

    def assess(
        self,
        wanted: Sequence[Task],
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
            OperationalError: The run stopped early, or Ray cannot be used; every completion that came is journaled.
        """
        account, settings = account or Account(), settings or Settings()
        run = _Run(model, journal, pool, turns or {}, settings, report or (lambda progress: None), account)
        started = time.perf_counter()
        if run.find_open(wanted):
            finish(lambda: self._spread(run), run.drain)
        account.last(model.name, time.perf_counter() - started)
        around: Any = _Recalled(model, run.failures, run.unfinished)
        return assess(
            *(wanted, around, journal, pool),
            turns=turns,
            settings=msgspec.structs.replace(settings, max_cost=None, rpm=None, tpm=None),
            report=run.tell_end,
            account=account,
            folder=folder,
        )

    async def _spread(self, run: "_Run") -> None:
        async with connected(self._address, self._workers) as (client, cpus):
            smallest = int(min(cpus, default=1.0))
            if self._workers is not None and self._options.threads is not None:
                # So many workers have to fit.
                smallest = min(smallest, int(sum(cpus)) // self._workers)
            cores = max(1, min(self._options.threads or (smallest if run.model.uses_cores else 1), smallest))
            options = self._options
            if cores > 1 and options.threads is None:
                options = msgspec.structs.replace(options, threads=cores)
            room = self._workers or max(1, sum(int(number // cores) for number in cpus))
            await run.spread(client, room, cores, (self._names[run.model.name], options))


_Failures = dict[str, tuple[FailureReason, str]]
"""Why a call failed, as a code and in words, by the digest of its request."""


class _Recalled:
    """The judge of the last loop, which finds all replies in the journal: what failed fails as it did at a worker."""

    def __init__(self, model: Model, failures: _Failures, unfinished: Unfinished) -> None:
        self._model, self._failures = model, failures
        self.unfinished = unfinished

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def complete(self, request: Request) -> Completion:
        """Fail as before.

        Raises:
            CallError: The failure.
        """
        digest = request_digest(self._model.name, self._model.parameters(request), request)
        if digest not in self._failures:
            raise StructureUnsupported("no worker had a reply in this form", lasting=False)
        reason, detail = self._failures[digest]
        error = CallError(detail)
        error.reason = reason
        raise error


@dataclasses.dataclass(eq=False)
class _Share:
    """A shard that a worker has, with the money that is set aside for it; None without a budget."""

    numbers: list[int]
    max_cost: float | None
    leased: list[str] = dataclasses.field(default_factory=list)
    progress: Progress = _NOTHING


class _Run:
    """One judge and one sequence of tasks; the arguments are those of `RayEngine.assess`."""

    def __init__(
        self,
        model: Model,
        journal: Journal,
        pool: Pool,
        turns: Mapping[str, Turn],
        settings: Settings,
        report: Callable[[Progress], None],
        account: Account,
    ) -> None:
        self.model = model
        self.failures: _Failures = {}
        self._journal, self._pool, self._turns = journal, pool, turns
        self._settings, self._report, self._account = settings, report, account
        self._questions = Questions(model, journal, pool, turns)
        account.open(model.name, price_of(model, settings.known_prices), self._questions.rates())
        self._wanted: Sequence[Task] = ()
        self._recalled = 0
        self._left: deque[int] = deque()
        """The numbers of the tasks that no worker has, turn by turn."""
        self._shares: list[_Share] = []
        """Those that workers have."""
        self._ended = _NOTHING
        """The sum of all others."""
        self._unfinished: dict[int, Unfinished] = {}
        """What each worker paid for without a completion."""
        self._places = 0
        self._started = self._begun = 0
        self._losses = 0
        """Workers lost since the last completion."""
        self._change, self._closed = asyncio.Event(), asyncio.Event()
        self._stop: BaseException | None = None

    @property
    def unfinished(self) -> Unfinished:
        """What all workers paid for without a completion."""
        return functools.reduce(Unfinished.plus, self._unfinished.values(), Unfinished())

    def find_open(self, wanted: Sequence[Task]) -> bool:
        """Whether anything is to be asked; of several tasks with the same question, workers get one."""
        self._wanted = wanted
        seen, turns = set[str](), dict[str, list[int]]()
        for number, task in enumerate(self._questions.ahead(wanted)):
            request = None if self._questions.gap(task) else self._questions.next_request(task)
            if request is None:
                self._recalled += 1
            elif request[0] not in seen:
                seen.add(request[0])
                turns.setdefault(task.response.turn_id, []).append(number)
        self._left.extend(number for turn_id in sorted(turns, key=natural_key) for number in turns[turn_id])
        return bool(self._left)

    def tell_end(self, progress: Progress) -> None:
        """Report the end of the last loop as that of the run."""
        if progress.done == progress.total:
            ended = self._ended
            self._report(progress._replace(recalled=self._recalled, cost=ended.cost, estimated=ended.estimated))

    def drain(self) -> None:
        """Begin no further call, because the user stopped the run; calls in flight are finished and kept."""
        now = self._now()
        made = f"{now.done} of {now.total} judgments made"
        self._end(Interrupted(f"stopped with {made}; the same command goes on from here"))

    async def spread(self, client: RayClient, room: int, cores: int, judge: tuple[str, ModelOptions]) -> None:
        """Have workers ask all that is open.

        Args:
            client: Starts the workers.
            room: Most workers.
            cores: The CPUs of a worker.
            judge: The judge as the user named it, and how it is called.

        Raises:
            OperationalError: The run stopped early.
        """
        limits = {name: getattr(self._settings, name) for name in ("concurrency", "rpm", "tpm")}
        limits = {name: limit for name, limit in limits.items() if limit is not None}
        turns = len({self._wanted[number].response.turn_id for number in self._left})
        self._places = places = min(room, turns, *limits.values())
        self._report(self._now())
        jobs = []
        for place in range(places):
            part = {name: limit // places + (place < limit % places) for name, limit in limits.items()}
            settings = msgspec.structs.replace(self._settings, **part)
            jobs.append(asyncio.ensure_future(self._serve(client, cores, (*judge, settings))))
        jobs.append(asyncio.ensure_future(self._watch(client)))
        try:
            await self._closed.wait()
        finally:
            for job in jobs:
                job.cancel()
            await asyncio.wait(jobs)
        if self._stop is not None:
            raise self._stop
        for number in self._left:
            if (request := self._questions.next_request(self._wanted[number])) is not None:
                self.failures[request[0]] = "budget", f"the budget of ${self._settings.max_cost} is spent"

    async def _watch(self, client: RayClient) -> None:
        """End the run where the cluster is lost; what workers have in flight may come nevertheless."""
        await client.lost()
        self._end(OperationalError("the Ray cluster does not answer; the same command goes on from here"))
        await asyncio.sleep(_STEP)
        self._closed.set()

    async def _serve(self, client: RayClient, cores: int, arguments: tuple[Any, ...]) -> None:
        """Keep a worker at one place; another one comes in place of a lost one."""
        try:
            while await self._more():
                worker = self._started = self._started + 1
                try:
                    await client.call("start", worker, cores, *arguments)
                    self._begun += 1
                    while await self._more():
                        await self._ask(client, worker)
                except LostWorker as error:
                    self._losses += 1
                    if self._losses == _LOSSES:
                        raise OperationalError(
                            f"{_LOSSES} Ray workers were lost one after the other without a completion, the last: "
                            f"{error}; the same command goes on from here"
                        ) from error
                finally:
                    with contextlib.suppress(LostWorker, OperationalError):
                        await client.call("kill", worker)
        except Exception as error:  # noqa: BLE001 - after any error, what other workers paid for must be kept
            self._end(error)

    async def _more(self) -> bool:
        """Wait for something to ask; False once nothing can come any more."""
        while self._stop is None and not self._over():
            if self._left and self._rest() > 0:
                return True
            self._change.clear()
            await self._change.wait()
        return False

    def _over(self) -> bool:
        return not self._shares and (self._stop is not None or not self._left or self._rest() <= 0)

    def _rest(self) -> float:
        """US dollars that are neither spent nor set aside."""
        if self._settings.max_cost is None:
            return math.inf
        aside = (max(share.max_cost or 0.0, share.progress.cost) for share in self._shares)
        return self._settings.max_cost - self._ended.cost - sum(aside)

    def _take(self) -> _Share:
        """An equal part of what is left, in tasks and in money, for each place without a shard; by whole turns."""
        places = self._places - len(self._shares)
        enough = min(_MOST, math.ceil(len(self._left) / places))
        numbers: list[int] = []
        while self._left and (len(numbers) < enough or self._turn(numbers[-1]) == self._turn(self._left[0])):
            numbers.append(self._left.popleft())
        return _Share(numbers, None if self._settings.max_cost is None else self._rest() / places)

    def _turn(self, number: int) -> str:
        return self._wanted[number].response.turn_id

    async def _ask(self, client: RayClient, worker: int) -> None:
        """Give a worker a shard, and take it back when the worker has ended it or is lost."""
        share = self._take()
        self._shares.append(share)
        again, failures = share.numbers, 0
        try:
            await self._lease(share)
            again = share.numbers
            if share.numbers:
                end = await self._listen(client, worker, share)
                share.progress = end.progress or share.progress
                again = [share.numbers[place] for place, failure in end.failures.items() if failure.reason == "budget"]
                failures = len(end.failures) - len(again)
                for failure in end.failures.values():
                    if failure.request_digest is not None and failure.reason != "budget":
                        self.failures[failure.request_digest] = failure.reason, failure.detail
                if end.error is not None:
                    self._end(end.error)
        finally:
            for digest in share.leased:
                self._journal.release(digest)
            back = [number for number in again if self._questions.next_request(self._wanted[number]) is not None]
            self._left.extendleft(reversed(back))
            self._shares.remove(share)
            done = share.progress._replace(done=len(share.numbers) - len(back), failures=failures, limited="")
            self._ended = _sum([self._ended, done])
            self._wake()

    async def _lease(self, share: _Share) -> None:
        """Lease what the shard asks, where other processes share the journal; the rest of it is left for later."""
        if not self._journal.shared:
            return
        ours: list[int] = []
        waits: dict[int, tuple[str, asyncio.Future[Any]]] = {}
        for number in share.numbers:
            task = self._wanted[number]
            if (wanted := self._questions.next_request(task)) is not None:
                digests = tuple(self._questions.first_digests(task))
                digests = digests if wanted[0] in digests else wanted[:1]
                waits[number] = digests[0], self._journal.lease(*digests)
        for number, (digest, wait) in waits.items():
            try:
                if await wait is None:
                    ours.append(number)
                    share.leased.append(digest)
                    continue
            except HeldElsewhere:
                pass
            self._left.append(number)
        share.numbers = ours
        if not ours:
            await asyncio.sleep(_POLL)

    async def _listen(self, client: RayClient, worker: int, share: _Share) -> ShardEnd:
        """Journal what a worker sends while it runs the loop on a shard.

        Raises:
            LostWorker: It is gone.
            OperationalError: The journal cannot be written.
        """
        job = asyncio.ensure_future(client.call("ask", worker, "judge", self._shard(share)))
        # Where the worker is lost, `news` may say so first.
        job.add_done_callback(lambda job: job.cancelled() or job.exception())
        kept = 0
        try:
            while True:
                over = job.done()
                news: News = await client.call("ask", worker, "news", kept, self._stop is not None)
                kept = await self._keep(news)
                share.progress = news.progress or share.progress
                self._unfinished[worker] = news.unfinished
                self._report(self._now())
                if over and not kept:
                    end: ShardEnd = job.result()
                    return end
        finally:
            job.cancel()

    def _shard(self, share: _Share) -> ShardTasks:
        tasks = tuple(self._wanted[number] for number in share.numbers)
        keys = {key for task in tasks for key in task.response.passages}
        passages = {key: passage for key, passage in self._pool.passages.items() if key in keys}
        turns = {task.response.turn_id for task in tasks}
        rows, names = [], [*facts_of(self.model.name)]
        for task in tasks:
            for digest, form in self._questions.first_digests(task).items():
                completion = self._journal.get(digest)
                if completion is not None:
                    request = self._questions.request(task, form)
                    rows.append(PaidCall(digest, self.model.parameters(request), request, completion))
                elif self.model.divides:
                    names.append(parts_key(digest))
        facts = {name: value for name in names if (value := self._journal.meta(name)) is not None}
        return ShardTasks(
            tasks,
            Pool((), passages, ()),
            {turn_id: turn for turn_id, turn in self._turns.items() if turn_id in turns},
            tuple(rows),
            facts,
            share.max_cost,
        )

    async def _keep(self, news: News) -> int:
        """Journal what a worker sends, and give how much that is once it is on the disk."""
        writes = []
        for entry in news.entries:
            if isinstance(entry, Fact):
                if entry.value is None:
                    self._journal.drop_meta([entry.key])
                else:
                    self._journal.set_meta(entry.key, entry.value)
                continue
            sent = self._questions.sent(entry.request)
            self._account.ask(self.model.name, entry.digest, entry.request, entry.completion, sent)
            writes.append(self._journal.write(entry.digest, self.model.name, *entry[1:]))
        await asyncio.gather(*writes)
        self._losses = 0 if writes else self._losses
        return len(news.entries)

    def _end(self, error: BaseException) -> None:
        """Begin no further call, and raise the first such error at the end; calls in flight are finished and kept."""
        self._stop = self._stop or error
        self._wake()

    def _wake(self) -> None:
        """Let those that wait look again."""
        self._change.set()
        if self._over():
            self._closed.set()

    def _now(self) -> Progress:
        now = _sum([self._ended, *(share.progress for share in self._shares)])
        limited = now.limited if self._begun else "waiting for CPUs of the cluster"
        done, total = self._recalled + now.done, len(self._wanted)
        return now._replace(done=done, total=total, recalled=self._recalled, limited=limited)


def _sum(several: Sequence[Progress]) -> Progress:
    return Progress(
        done=sum(each.done for each in several),
        total=0,
        recalled=0,
        failures=sum(each.failures for each in several),
        cost=sum(each.cost for each in several),
        estimated=sum(each.estimated for each in several),
        limited=next((each.limited for each in several if each.limited), ""),
    )
