"""The loop: pooled responses × criteria × one judge → a Judgment or a Failure for each.

It settles tasks: which one is next, what becomes of each, and when all ends. `calls` asks. A result counts only once
the completion behind it is on the disk.
"""

import asyncio
import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from judge.ask.account import Account
from judge.ask.attempts import Attempts
from judge.ask.budget import Budget, price_of
from judge.ask.calls import AnsweredInForm, Calls
from judge.ask.cashier import Cashier
from judge.ask.inquiry import inquiry
from judge.ask.line import TaskLine
from judge.ask.outcome import failure, outcome
from judge.ask.own_loop import finish
from judge.ask.pace import Pacer
from judge.ask.progress import Progress, Reporter
from judge.ask.questions import Questions
from judge.ask.records import Failure, Judgment
from judge.ask.settings import Settings
from judge.ask.silence import Silence
from judge.ask.stored_results import StoredResults
from judge.ask.tally import Tally
from judge.ask.tasks import Task
from judge.errors import CallError, MissingKeyError, StructureUnsupported, TransientError
from judge.files.paths import StrPath
from judge.models.journal import HeldElsewhere, Journal
from judge.models.model import Model
from judge.models.records import AnswerForm, Completion, Request
from judge.pool.records import Pool
from judge.runs.records import Turn
from judge.text.table import sequence

_LOOK_AGAIN = 0.5
"""Seconds after which a question that another process asks is looked at again."""


class Loop:
    """Settles tasks about one pool by one judge, with one journal; `assess` explains the arguments.

    Where the tasks are a part of others, the `pacer` is that of all parts, and `silence` may know of the other parts.
    """

    def __init__(
        self,
        model: Model,
        journal: Journal,
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
        self._journal = journal
        self._account = account or Account()
        self._questions = Questions(model, journal, pool, turns, self._account, journal.set_meta)
        self._silence = silence or Silence(model.name, journal, settings.concurrency, settings.attempts)
        self._settings = settings
        self._budget = Budget(model, settings.max_cost, settings.known_prices)
        self._account.open(model.name, price_of(model, settings.known_prices), self._questions.rates())
        self._report = report or (lambda progress: None)
        self._folder = folder
        self._tally = Tally()
        self._line = TaskLine((), (), self._is_suspect)
        self._stop: BaseException | None = None
        self._stopped = asyncio.Event()
        self._attempts = Attempts(
            model,
            pacer or Pacer(settings.rpm, settings.tpm),
            settings.attempts,
            settings.max_wait,
            self._stopped,
            self._check,
            self._tell,
        )
        cashier = Cashier(model, journal, self._questions, self._budget, self._account, self._silence)
        self._calls = Calls(
            *(model, journal, cashier, self._attempts, self._silence), self._given_up, self._check, self._end
        )

    async def run(self, wanted: Sequence[Task]) -> StoredResults:
        """Make a judgment or a failure of every task, in the order of the tasks.

        Raises:
            OperationalError: No further call can succeed, or the user stopped the run; the paid completions are safe.
        """
        self._tally = Tally(len(wanted), self._folder)
        open_tasks = self._tally.recall(wanted, self._questions, self._silence, self._tell)
        most = self._model.max_concurrency or self._settings.concurrency
        workers = min(self._settings.concurrency, most, len(open_tasks))
        if workers:
            self._calls.at_once = workers
            self._line = TaskLine(wanted, open_tasks, self._is_suspect)
            # One of the first calls has another neighborhood, so that it speaks for the judge where theirs are in vain.
            far = [False] * (workers - 1) + [workers > 1]
            await asyncio.gather(*(self._work(wanted, far=each) for each in far))
        await self._calls.written()
        silent = self._silence.at_the_end()
        if silent is not None:
            self._end(silent)
        if self._stop is not None:
            raise self._stop
        self._calls.forget_parts()
        self._journal.check_there()
        return self._tally.results()

    async def _work(self, wanted: Sequence[Task], *, far: bool) -> None:
        while self._line:
            if self._line.only_elsewhere and not await self._others():
                return
            index, far = self._line.take(far=far or self._silence.doubted)
            try:
                settled = await self._judge(wanted[index], far=far)
                write = self._calls.write_of(settled.request_digest)
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
        self._tally.settle(index, settled)
        self._tell()

    def _tell(self) -> None:
        tally, budget = self._tally, self._budget
        servers = tuple(self._model.servers)
        self._report(
            Progress(
                len(tally),
                tally.total,
                tally.recalled,
                tally.failures,
                budget.spent,
                budget.estimated,
                servers,
                self._attempts.limited() or ("waiting for other processes" if self._line.only_elsewhere else ""),
            )
        )

    def drain(self) -> None:
        """Start no new call, because the user stopped the run; calls in flight are finished and kept."""
        self._end(self._tally.interrupted(len(self._tally)))

    def _given_up(self, error: TransientError, digest: str, request: Request, far: bool) -> None:
        total, waiting = self._tally.total, len(self._line)
        silent = self._silence.given_up(error, digest, request, far=far, total=total, waiting=waiting)
        if silent is not None:
            self._end(silent)

    def _end(self, error: BaseException) -> None:
        """Start no new call and raise the first such error at the end; calls in flight are finished and kept."""
        self._stop = self._stop or error
        self._stopped.set()
        self._calls.stop(error)

    def _check(self) -> None:
        if self._stop is not None:
            raise self._stop

    async def _judge(self, task: Task, *, far: bool) -> Judgment | Failure:
        """Ask until there is an outcome; if an answer form is of no use, go on with the next."""
        judge, digest = self._model.name, None
        refusal: CallError | None = None
        lost: Failure | None = None
        completions: dict[str, Completion] = {}
        # Another task, or another process, may ask the same in another form.
        firsts = self._questions.first_digests(task)
        forms = self._questions.forms(task.criterion)
        while forms:
            form, *forms = forms
            talk = inquiry(task.criterion, self._questions.request(task, form))
            before = dict(completions)
            try:
                request = next(talk)
                while True:
                    digest = self._questions.digest(request)
                    completions[digest] = await self._calls.completion(digest, request, tuple(firsts), far=far)
                    request = talk.send(completions[digest])
            except AnsweredInForm as other:
                forms = [firsts[other.digest], form, *(each for each in forms if each != firsts[other.digest])]
            except StopIteration as stop:
                settled = outcome(task, stop.value, judge, digest or "")
                if not self._questions.is_lost(stop.value):
                    self._account.rest(judge, completions)
                    return settled
                lost = settled if isinstance(settled, Failure) else None
                firsts = _without(firsts, form)
            except StructureUnsupported as error:
                refusal = error
                if completions.keys() != before.keys():
                    # The repair was refused; the answer to the first request would only come back.
                    firsts = _without(firsts, form)
                # The outcome rests on no inquiry that was cut short, and a later run does not find it.
                completions = before
                if form == "json" and error.lasting:
                    self._questions.refuse_json()
            except CallError as error:
                self._account.rest(judge, completions)
                return failure(task, judge, error.reason, str(error), digest=digest)
        self._account.rest(judge, completions)
        return lost or failure(task, judge, "provider_error", str(refusal), digest=digest)


def _without(firsts: Mapping[str, AnswerForm], form: AnswerForm) -> dict[str, AnswerForm]:
    """The first requests in other forms."""
    return {digest: each for digest, each in firsts.items() if each != form}


def assess(
    wanted: Iterable[Task],
    model: Model,
    journal: Journal,
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
    with contextlib.suppress(MissingKeyError):
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
                account.unfinished(model.name, model.unfinished)
                await model.aclose()

        return finish(run, loop.drain)
