"""The loop: pooled responses × criteria × one judge → a Judgment or a Failure for each.

The only concurrent code beside `models/`. Nothing is asked twice: every completion goes through the journal, and
identical requests in flight share one call. A completion counts only once it is on the disk.
"""

import asyncio
import contextlib
import functools
import sys
import time
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from judge.ask.account import Account
from judge.ask.attempts import Attempts
from judge.ask.budget import Budget, price_of
from judge.ask.inquiry import inquiry
from judge.ask.line import TaskLine
from judge.ask.outcome import failure, outcome
from judge.ask.own_loop import finish
from judge.ask.pace import Pacer
from judge.ask.progress import Progress, Reporter
from judge.ask.questions import Questions
from judge.ask.records import Failure, Judgment
from judge.ask.silence import Silence
from judge.ask.stored_results import ResultWriter, StoredResults
from judge.ask.tasks import Task
from judge.errors import (
    AuthenticationError,
    CallError,
    Interrupted,
    StructureUnsupported,
    TransientError,
)
from judge.files.paths import StrPath
from judge.models.call_parts import CallParts, Resumable
from judge.models.model import FREE, Divided, Model, Price, Replicated
from judge.models.open_journal import HeldElsewhere, OpenJournal, QuestionClaims
from judge.models.records import Completion, Request
from judge.models.storable import storable
from judge.pool.records import Pool
from judge.runs.records import Turn
from judge.text.table import sequence

_LOOK_AGAIN = 0.5
"""Seconds after which a question that another process asks is looked at again."""
_FREE_UNWRITTEN = 64
"""Replies of a judge that nobody bills which may wait for the disk together."""


class _AnsweredInForm(Exception):
    """The journal has an answer to the question in another form than the one that was to be asked."""

    def __init__(self, digest: str) -> None:
        super().__init__(digest)
        self.digest = digest


class Settings(msgspec.Struct, frozen=True):
    """How many calls and how much money the loop may use."""

    concurrency: int = 16
    """Calls in flight at most."""
    attempts: int = 6
    """Most attempts of one call; only failures that may pass are tried again, and rate limits do not count."""
    max_cost: float | None = None
    """US dollars that this process may spend; judgments left over fail for `budget`."""
    prices: Mapping[str, Price] = {}
    """Prices by the model's name, in place of what is known of it; `*` names every other model."""
    price_table: Mapping[str, Price] = {}
    """Prices as in `prices`, which wins over it; it may name models that are not asked."""
    rpm: int | None = None
    """Requests a minute that one judge is sent at most."""
    tpm: int | None = None
    """Tokens a minute, likewise, by our own estimate."""
    max_wait: float = 300.0
    """Seconds for which a provider may make the loop wait; one that asks for more ends it."""

    @property
    def known_prices(self) -> Mapping[str, Price]:
        """The prices of both."""
        return {**self.price_table, **self.prices}


class Loop:
    """Asks one judge about one pool, with one journal; `assess` explains the arguments.

    Where the tasks are a part of others, the `pacer` is that of all parts, and `silence` may know of the other parts.
    """

    def __init__(
        self,
        model: Model,
        journal: OpenJournal,
        pool: Pool,
        turns: Mapping[str, Turn] | None,
        settings: Settings,
        report: Callable[[Progress], None] | None = None,
        account: Account | None = None,
        folder: Path | None = None,
        *,
        pacer: Pacer | None = None,
        silence: Silence | None = None,
    ) -> None:
        self._model = model
        self._replicated = model if isinstance(model, Replicated) else None
        self._journal = journal
        self._claims = journal.claims
        self._account = account or Account()
        self._questions = Questions(model, journal, pool, turns, self._account, journal.set_meta)
        self._silence = silence or Silence(model.name, journal, settings.concurrency, settings.attempts)
        self._settings = settings
        self._budget = Budget(model, settings.max_cost, settings.known_prices)
        self._account.open(model.name, price_of(model, settings.known_prices), self._questions.rates())
        self._parts = CallParts(journal)
        if isinstance(model, Resumable):
            model.keep(self._parts)
        self._report = report or (lambda progress: None)
        self._in_flight: dict[str, asyncio.Task[Completion]] = {}
        self._unwritten: dict[str, asyncio.Future[None]] = {}
        self._free = _FREE_UNWRITTEN if model.price() == FREE else 0
        self._workers = 0
        self._folder = folder
        self._results = ResultWriter()
        self._total = 0
        self._line = TaskLine((), (), self._is_suspect)
        self._recalled = 0
        self._failures = 0
        self._stop: BaseException | None = None
        self._stopped = asyncio.Event()
        self._released = asyncio.Event()
        self._attempts = Attempts(
            model,
            pacer or Pacer(settings.rpm, settings.tpm),
            settings.attempts,
            settings.max_wait,
            self._stopped,
            self._check,
            self._tell,
        )

    async def run(self, wanted: Sequence[Task]) -> StoredResults:
        """Make a judgment or a failure of every task, in the order of the tasks.

        Raises:
            OperationalError: No further call can succeed, or the user stopped the run; the paid completions are safe.
        """
        self._total = len(wanted)
        self._results = ResultWriter(len(wanted), self._folder)
        open_tasks = array("q")
        for index, settled in enumerate(self._questions.settled(wanted, self._silence.remembered)):
            if settled is None:
                open_tasks.append(index)
            else:
                self._recalled += 1
                self._settle(index, settled)
        most = self._model.max_concurrency or self._settings.concurrency
        self._workers = min(self._settings.concurrency, most, len(open_tasks))
        if self._workers:
            self._line = TaskLine(wanted, open_tasks, self._is_suspect)
            # One of the first calls has another neighborhood, so that it speaks for the judge where theirs are in vain.
            far = [False] * (self._workers - 1) + [self._workers > 1]
            await asyncio.gather(*(self._work(wanted, far=each) for each in far))
        if self._unwritten:
            await asyncio.wait(list(self._unwritten.values()))
        silent = self._silence.at_the_end()
        if silent is not None:
            self._end(silent)
        if self._stop is not None:
            raise self._stop
        self._parts.forget()
        self._journal.check_there()
        return self._results.results()

    async def _work(self, wanted: Sequence[Task], *, far: bool) -> None:
        while self._line:
            if self._line.only_elsewhere and not await self._others():
                return
            index, far = self._line.take(far=far or self._silence.doubted)
            try:
                settled = await self._judge(wanted[index], far=far)
                write = self._unwritten.get(settled.request_digest or "")
                if write is None:
                    self._settle(index, settled)
                else:
                    # The disk is slower than the next call is begun, so nobody waits for it here.
                    write.add_done_callback(functools.partial(self._settle_written, index, settled))
            except HeldElsewhere:
                self._line.leave(index)
            except BaseException as error:  # noqa: BLE001 - after any error, the paid calls of other workers must be kept
                self._end(error)
            if self._stop is not None:
                return
            far = False

    async def _others(self) -> bool:
        """Give other processes time for what they ask; False if nothing is left to do for this worker."""
        self._tell()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), _LOOK_AGAIN)
        return self._stop is None and bool(self._line)

    def _is_suspect(self, task: Task) -> bool:
        if not self._silence.suspects:
            return False
        requests = (self._questions.request(task, form) for form in self._questions.forms(task.criterion))
        return any(self._questions.digest(request) in self._silence.suspects for request in requests)

    def _settle_written(self, index: int, settled: Judgment | Failure, write: "asyncio.Future[None]") -> None:
        if write.exception() is None:
            try:
                self._settle(index, settled)
            except BaseException as error:  # noqa: BLE001 - as in `_work`
                self._end(error)

    def _settle(self, index: int, settled: Judgment | Failure) -> None:
        self._results.put(index, settled)
        self._failures += isinstance(settled, Failure)
        self._tell()

    def _tell(self) -> None:
        budget = self._budget
        servers = () if self._replicated is None else tuple(self._replicated.servers)
        self._report(
            Progress(
                len(self._results),
                self._total,
                self._recalled,
                self._failures,
                budget.spent,
                budget.estimated,
                servers,
                self._attempts.limited() or ("waiting for other processes" if self._line.only_elsewhere else ""),
            )
        )

    def drain(self) -> None:
        """Start no new call, because the user stopped the run; calls in flight are finished and kept."""
        self._end(
            Interrupted(
                f"stopped with {len(self._results)} of {self._total} judgments made; the same command goes on from here"
            )
        )

    def _end(self, error: BaseException) -> None:
        """Start no new call and raise the first such error at the end; calls in flight are finished and kept."""
        self._stop = self._stop or error
        self._stopped.set()
        self._attempts.wake()
        if self._claims is not None:
            self._claims.give_up(error)

    def _check(self) -> None:
        if self._stop is not None:
            raise self._stop

    async def _judge(self, task: Task, *, far: bool) -> Judgment | Failure:
        """Ask until there is an outcome; if an answer form is of no use, go on with the next."""
        judge, digest = self._model.name, None
        refusal: CallError | None = None
        lost: Failure | None = None
        completions: dict[str, Completion] = {}
        # Another process may ask the same in another form.
        firsts = {} if self._claims is None else self._questions.first_digests(task)
        forms = self._questions.forms(task.criterion)
        while forms:
            form, *forms = forms
            talk = inquiry(task.criterion, self._questions.request(task, form))
            before = dict(completions)
            try:
                request = next(talk)
                while True:
                    digest = self._questions.digest(request)
                    completions[digest] = await self._complete(digest, request, tuple(firsts), far=far)
                    request = talk.send(completions[digest])
            except _AnsweredInForm as other:
                forms = [firsts[other.digest], form, *(each for each in forms if each != firsts[other.digest])]
            except StopIteration as stop:
                settled = outcome(task, stop.value, judge, digest or "")
                if not self._questions.is_lost(stop.value):
                    self._account.rest(judge, completions)
                    return settled
                lost = settled if isinstance(settled, Failure) else None
                firsts = {first: each for first, each in firsts.items() if each != form}
            except StructureUnsupported as error:
                refusal = error
                # The outcome rests on no inquiry that was cut short, and a later run does not find it.
                completions = before
                if form == "json" and error.lasting:
                    self._questions.refuse_json()
            except CallError as error:
                self._account.rest(judge, completions)
                return failure(task, judge, error.reason, str(error), digest=digest)
        self._account.rest(judge, completions)
        return lost or failure(task, judge, "provider_error", str(refusal), digest=digest)

    async def _complete(self, digest: str, request: Request, firsts: tuple[str, ...], *, far: bool) -> Completion:
        """The completion of a request: from the journal, from an identical call in flight, or from the model.

        Args:
            digest: The digest of the request.
            request: The request.
            firsts: Digests of the first requests with which its task can be asked, where several processes ask.
            far: Whether it has least to do with what was asked before it.

        Raises:
            _AnsweredInForm: The journal has an answer to another one of `firsts`.
        """
        recorded = self._journal.get(digest) if self._claims is None else None
        if recorded is not None:
            return recorded
        call = self._in_flight.get(digest)
        if call is not None:
            return await asyncio.shield(call)
        if self._claims is None:
            call = asyncio.ensure_future(self._ask(digest, request, far=far))
        else:
            digests = firsts if digest in firsts else (digest,)
            call = asyncio.ensure_future(self._claim(self._claims, digests, digest, request, far=far))
        self._in_flight[digest] = call
        try:
            return await call
        finally:
            # Until it is on the disk, the journal does not answer for it.
            if digest not in self._unwritten:
                self._in_flight.pop(digest, None)

    async def _claim(
        self, claims: QuestionClaims, digests: tuple[str, ...], digest: str, request: Request, *, far: bool
    ) -> Completion:
        """The completion of a request in a journal that other processes write too.

        Raises:
            HeldElsewhere: One of them is asking it.
            _AnsweredInForm: One of them has an answer in another form.
        """
        self._check()
        recorded = await claims.claim(*digests, request=request)
        if recorded is not None:
            self._silence.remembered()
            if recorded.digest != digest:
                raise _AnsweredInForm(recorded.digest)
            return recorded.completion
        try:
            completion = await self._ask(digest, request, far=far)
        except BaseException:
            claims.release(digests[0])
            raise
        if digest != digests[0]:
            # Once its answer is written, whoever claims the first request finds it.
            if (write := self._unwritten.get(digest)) is None:
                claims.release(digests[0])
            else:
                write.add_done_callback(lambda _: claims.release(digests[0]))
        return completion

    async def _ask(self, digest: str, request: Request, *, far: bool) -> Completion:
        reserved = await self._afford(request)
        try:
            completion = await self._attempts.complete(request)
            self._silence.answered()
            completion = self._budget.charge(request, storable(completion))
        except TransientError as error:
            total, waiting = self._total, len(self._line)
            silent = self._silence.given_up(error, digest, request, far=far, total=total, waiting=waiting)
            if silent is not None:
                self._end(silent)
            raise
        except AuthenticationError as error:
            # A gateway may block a text as it refuses a key; without its name, one response would stop every run.
            raise AuthenticationError(f"{error}{self._silence.about(request)}") from error
        except CallError:
            self._silence.refused()
            raise
        finally:
            self._budget.release(reserved)
            self._released.set()
        parameters = self._model.parameters(request)
        write = self._journal.write(digest, self._model.name, parameters, request, completion)
        self._account.ask(self._model.name, digest, request, completion, self._questions.sent(request))
        self._unwritten[digest] = write
        write.add_done_callback(functools.partial(self._written, digest))
        if len(self._unwritten) > max(self._workers, self._free):
            # A crash must not cost more paid replies than calls in flight, however slow the disk is.
            await asyncio.wait([write])
        return completion

    def _written(self, digest: str, write: "asyncio.Future[None]") -> None:
        """A completion is on the disk; one that cannot be written stays among the unwritten, and settles nothing."""
        error = write.exception()
        if error is not None:
            self._end(error)
            return
        del self._unwritten[digest]
        self._parts.finished(digest)
        self._in_flight.pop(digest, None)

    async def _afford(self, request: Request) -> float:
        """Wait until the budget can pay for a call beside those in flight, and give what is set aside for it.

        Raises:
            BudgetError: The money is spent.
        """
        while True:
            self._check()
            self._budget.check()
            reserved = self._budget.reserve(request)
            if reserved is not None:
                return reserved
            self._released.clear()
            await self._released.wait()


def assess(
    wanted: Iterable[Task],
    model: Model,
    journal: OpenJournal,
    pool: Pool,
    *,
    turns: Mapping[str, Turn] | None = None,
    settings: Settings | None = None,
    report: Callable[[Progress], None] | None = None,
    progress: bool = False,
    account: Account | None = None,
    folder: StrPath | None = None,
) -> StoredResults:
    """Run the loop to its end from synchronous code, even inside a running event loop.

    Args:
        wanted: The judgments to make, from `tasks`.
        model: The judge; it is closed at the end.
        journal: Holds every paid completion.
        pool: The pool of the responses.
        turns: The turns by id, for criteria that show the conversation.
        settings: Limits on calls and cost.
        report: Called after each judgment, and when a rate limit holds the calls back.
        progress: Show a bar in a notebook or on a terminal, elsewhere a line now and then.
        account: Where calls and completions are entered.
        folder: Where a file without a name lies that holds many results; by default where the system keeps temporary
            files.

    Returns:
        A judgment or a failure for each task, in the order of the tasks.

    Raises:
        UsageError: The judge cannot answer one of the criteria.
        OperationalError: The run stopped early; every paid completion is in the journal.
    """
    wanted, account = sequence(wanted), account or Account()
    model.check(tuple({task.criterion.digest: task.criterion for task in wanted}.values()))
    with contextlib.ExitStack() as shown:
        if progress:
            report = shown.enter_context(Reporter(model.name, sys.stderr, report))
        loop = Loop(
            model,
            journal,
            pool,
            turns,
            settings or Settings(),
            report,
            account,
            None if folder is None else Path(folder),
        )

        async def run() -> StoredResults:
            started = time.perf_counter()
            try:
                return await loop.run(wanted)
            finally:
                account.last(model.name, time.perf_counter() - started)
                if isinstance(model, Divided):
                    account.unfinished(model.name, model.unfinished)
                await model.aclose()

        return finish(run, loop.drain)
