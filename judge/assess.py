"""The loop: pooled responses × criteria × one judge → a Judgment or a Failure for each.

The only concurrent code beside `models/`. Nothing is asked twice: every completion goes through the journal, and
identical requests in flight share one call. A completion counts only once it is on the disk.
"""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import tenacity

from judge.errors import CallError, Interrupted, OperationalError, StructureUnsupported, TransientError
from judge.journal import Journal, request_digest
from judge.models import Model
from judge.prompt import render, repair
from judge.records import (
    AnswerForm,
    Completion,
    Criterion,
    Failure,
    FailureReason,
    Judgment,
    Pool,
    PooledResponse,
    Request,
    Turn,
    Unreadable,
    Verdict,
)
from judge.verdict import parse, supported_forms

MAX_WAIT = 60.0
"""Seconds; a provider that asks for more patience than this is waited for this long at a time."""


class Settings(msgspec.Struct, frozen=True):
    """How hard to press a provider."""

    concurrency: int = 16
    """Calls in flight at most."""
    attempts: int = 6
    """Attempts of one call that fails for passing reasons."""
    max_cost: float | None = None
    """US dollars that this process may spend; what is left undone then fails for `budget`."""


class Progress(NamedTuple):
    """Where the loop stands."""

    done: int
    total: int
    recalled: int
    """Settled without a call: from the journal, or for want of evidence."""
    failures: int
    cost: float


class Forecast(NamedTuple):
    """What the loop would do, without doing it."""

    judgments: int
    recalled: int
    without_evidence: int
    calls: int
    """Distinct requests to be sent; repairs of unreadable replies come on top."""
    prompt_tokens: int
    """Estimated at four characters a token."""


class Task(NamedTuple):
    """One judgment to be made."""

    response: PooledResponse
    criterion: Criterion
    sample: int = 0


class _Answer(NamedTuple):
    verdict: Verdict | Unreadable
    completion: Completion
    request: Request
    repaired: bool


Dialogue = Generator[Request, Completion, _Answer]


def _dialogue(criterion: Criterion, request: Request) -> Dialogue:
    """What is asked for one judgment: the request and, after an unreadable reply, one repair."""
    completion = yield request
    verdict = parse(completion, criterion, request.form, request.sentences)
    if not isinstance(verdict, Unreadable) or verdict.reason != "unreadable" or request.form == "label":
        return _Answer(verdict, completion, request, repaired=False)
    mended = repair(request, completion, verdict)
    completion = yield mended
    return _Answer(parse(completion, criterion, request.form, request.sentences), completion, mended, repaired=True)


def tasks(pool: Pool, criteria: Sequence[Criterion]) -> tuple[Task, ...]:
    """All judgments of a pool, by criterion and then by turn, so that neighbors share the start of their prompt."""
    return tuple(Task(response, criterion) for criterion in criteria for response in pool.responses)


class Loop:
    """One judge, one pool, one journal."""

    def __init__(
        self,
        model: Model,
        journal: Journal,
        pool: Pool,
        turns: Mapping[str, Turn] | None,
        settings: Settings,
        report: Callable[[Progress], None] | None = None,
    ) -> None:
        self._model = model
        self._journal = journal
        self._pool = pool
        self._turns = turns or {}
        self._settings = settings
        self._report = report or (lambda progress: None)
        self._in_flight: dict[str, asyncio.Task[Completion]] = {}
        self._results: dict[int, Judgment | Failure] = {}
        self._total = 0
        self._recalled = 0
        self._failures = 0
        self._cost = 0.0
        self._answered = 0
        self._given_up = 0
        self._stop: OperationalError | None = None
        self._stopped = asyncio.Event()
        self._form_key = f"form:{model.name}"
        self._structured = journal.meta(self._form_key) != "text"

    def form(self, criterion: Criterion) -> AnswerForm:
        """The answer form this judge is asked in: its first that the criterion supports.

        Raises:
            OperationalError: There is none.
        """
        offered = [form for form in self._model.forms if form in supported_forms(criterion)]
        if not self._structured:
            offered = [form for form in offered if form != "json"]
        if not offered:
            raise OperationalError(f"{self._model.name} cannot be asked {criterion.prompt_id} in any answer form")
        return offered[0]

    def request(self, task: Task) -> Request:
        """The first request of a task."""
        return render(
            task.criterion,
            task.response,
            self._pool.passages,
            self._turns.get(task.response.turn_id),
            self.form(task.criterion),
            task.sample,
        )

    def evidence_failure(self, task: Task) -> Failure | None:
        """The Failure of a task whose passages are not at hand; no judge is asked to imagine them."""
        if "passages" not in task.criterion.inputs:
            return None
        keys = task.response.passages
        missing = [key for key in keys if key not in self._pool.passages]
        if keys and not missing:
            return None
        detail = (
            f"{len(missing)} of {len(keys)} used passages have no text: {', '.join(missing[:5])}"
            if keys
            else "the response names no passage"
        )
        return self._failure(task, "no_passages", detail, None, None)

    def recall(self, task: Task) -> Judgment | Failure | None:
        """The task's outcome if the journal holds every completion it needs."""
        failure = self.evidence_failure(task)
        if failure is not None:
            return failure
        dialogue = _dialogue(task.criterion, self.request(task))
        try:
            request = next(dialogue)
            while True:
                digest = self._digest(request)
                completion = self._journal.get(digest)
                if completion is None:
                    return None
                request = dialogue.send(completion)
        except StopIteration as stop:
            return self._outcome(task, stop.value)

    def forecast(self, wanted: Sequence[Task]) -> Forecast:
        """Count what `run` would send."""
        recalled = without_evidence = characters = 0
        open_digests: set[str] = set()
        for task in wanted:
            if self.evidence_failure(task) is not None:
                without_evidence += 1
            elif self.recall(task) is not None:
                recalled += 1
            else:
                request = self.request(task)
                digest = self._digest(request)
                if digest not in open_digests:
                    open_digests.add(digest)
                    characters += sum(len(message.content) for message in request.messages)
        return Forecast(len(wanted), recalled, without_evidence, len(open_digests), characters // 4)

    async def run(self, wanted: Sequence[Task]) -> list[Judgment | Failure]:
        """Settle every task; results in the order of the tasks.

        Raises:
            OperationalError: No further call can succeed, or the user stopped the run; what was paid for is safe.
        """
        self._total = len(wanted)
        open_tasks: list[int] = []
        for index, task in enumerate(wanted):
            outcome = self.recall(task) if len(self._journal) else self.evidence_failure(task)
            if outcome is None:
                open_tasks.append(index)
            else:
                self._recalled += 1
                self._settle(index, outcome)
        workers = min(
            self._settings.concurrency,
            self._model.max_concurrency or self._settings.concurrency,
            len(open_tasks),
        )
        if workers:
            with _interruptible(self._interrupt):
                remaining = iter(open_tasks)
                async with asyncio.TaskGroup() as group:
                    for _ in range(workers):
                        group.create_task(self._work(wanted, remaining))
        if self._stop is not None:
            raise self._stop
        return [self._results[index] for index in range(len(wanted))]

    def _interrupt(self) -> None:
        self._end(
            Interrupted(
                f"stopped with {len(self._results)} of {self._total} judgments made; the same command goes on from here"
            )
        )

    def _end(self, error: OperationalError) -> None:
        """Let no new call begin; the first reason is the one reported. Calls in flight are waited for and kept."""
        self._stop = self._stop or error
        self._stopped.set()

    async def _sleep(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)

    async def _work(self, wanted: Sequence[Task], remaining: Iterator[int]) -> None:
        for index in remaining:
            try:
                outcome = await self._judge(wanted[index])
            except OperationalError as error:
                self._end(error)
            else:
                self._settle(index, outcome)
            if self._stop is not None:
                return

    def _settle(self, index: int, outcome: Judgment | Failure) -> None:
        self._results[index] = outcome
        self._failures += isinstance(outcome, Failure)
        self._report(Progress(len(self._results), self._total, self._recalled, self._failures, self._cost))

    async def _judge(self, task: Task) -> Judgment | Failure:
        while True:
            dialogue = _dialogue(task.criterion, self.request(task))
            digest: str | None = None
            try:
                request = next(dialogue)
                while True:
                    if self._over_budget():
                        return self._failure(
                            task, "budget", f"the budget of ${self._settings.max_cost} is spent", None, None
                        )
                    digest = self._digest(request)
                    request = dialogue.send(await self._complete(digest, request))
            except StopIteration as stop:
                return self._outcome(task, stop.value)
            except StructureUnsupported as error:
                if not self._structured and request.form != "json":
                    return self._failure(task, error.reason, str(error), None, digest)
                self._fall_back_to_text()
            except CallError as error:
                return self._failure(task, error.reason, str(error), None, digest)

    def _fall_back_to_text(self) -> None:
        if self._structured:
            self._structured = False
            self._journal.set_meta(self._form_key, "text")

    def _over_budget(self) -> bool:
        return self._settings.max_cost is not None and self._cost >= self._settings.max_cost

    async def _complete(self, digest: str, request: Request) -> Completion:
        """The completion of a request: from the journal, from an identical call in flight, or from the model."""
        recorded = self._journal.get(digest)
        if recorded is not None:
            return recorded
        call = self._in_flight.get(digest)
        if call is not None:
            return await asyncio.shield(call)
        call = asyncio.ensure_future(self._ask(digest, request))
        self._in_flight[digest] = call
        try:
            return await call
        finally:
            del self._in_flight[digest]

    async def _ask(self, digest: str, request: Request) -> Completion:
        try:
            completion = await self._attempt(request)
        except TransientError as error:
            self._given_up += 1
            if not self._answered and self._given_up >= min(3, self._total):
                self._end(
                    OperationalError(
                        f"{self._model.name} has not answered a single call, {self._given_up} were given up "
                        f"after {self._settings.attempts} attempts each, the last: {error}"
                    )
                )
            raise
        self._answered += 1
        self._cost += completion.cost or 0.0
        await self._journal.put(digest, self._model.name, self._model.parameters(request), request, completion)
        return completion

    async def _attempt(self, request: Request) -> Completion:
        """One call, retried while its failures may pass."""
        try:
            return await self._timed(request, 1)
        except TransientError as error:
            failed: TransientError | None = error
        # Only now, because tenacity costs about as much CPU as a call; its first attempt is the one just made.
        async for trial in tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(TransientError),
            stop=tenacity.stop_after_attempt(self._settings.attempts),
            wait=_wait,
            sleep=self._sleep,
            reraise=True,
        ):
            with trial:
                if failed is not None:
                    first, failed = failed, None
                    raise first
                if self._stop is not None:
                    raise self._stop
                completion = await self._timed(request, trial.retry_state.attempt_number)
        return completion

    async def _timed(self, request: Request, attempt: int) -> Completion:
        begun = time.perf_counter()
        completion = await self._model.complete(request)
        latency = completion.latency or round(time.perf_counter() - begun, 3)
        return msgspec.structs.replace(completion, attempts=attempt, latency=latency)

    def _digest(self, request: Request) -> str:
        return request_digest(self._model.name, self._model.parameters(request), request)

    def _outcome(self, task: Task, answer: _Answer) -> Judgment | Failure:
        verdict, completion = answer.verdict, answer.completion
        digest = self._digest(answer.request)
        if isinstance(verdict, Unreadable):
            return self._failure(task, verdict.reason, verdict.detail, completion.text, digest)
        return Judgment(
            response_id=task.response.response_id,
            turn_id=task.response.turn_id,
            topic_id=task.response.topic_id,
            criterion=task.criterion.name,
            variant=task.criterion.variant,
            grade=verdict.grade,
            unable=verdict.unable,
            expected=verdict.expected,
            probabilities=completion.probabilities,
            rationale=verdict.rationale,
            sentences=verdict.sentences,
            judge=self._model.name,
            model=completion.model,
            criterion_digest=task.criterion.digest,
            request_digest=digest,
            form=answer.request.form,
            repaired=answer.repaired,
            sample=task.sample,
        )

    def _failure(self, task: Task, reason: FailureReason, detail: str, raw: str | None, digest: str | None) -> Failure:
        return Failure(
            response_id=task.response.response_id,
            turn_id=task.response.turn_id,
            topic_id=task.response.topic_id,
            criterion=task.criterion.name,
            variant=task.criterion.variant,
            reason=reason,
            detail=detail,
            raw=raw,
            judge=self._model.name,
            criterion_digest=task.criterion.digest,
            request_digest=digest,
            sample=task.sample,
        )


def _wait(state: tenacity.RetryCallState) -> float:
    """Seconds until the next attempt: the provider's wish, else random within a window that grows exponentially."""
    error = state.outcome.exception() if state.outcome else None
    backoff = float(_backoff(state))
    if isinstance(error, TransientError) and error.retry_after is not None:
        return min(error.retry_after, MAX_WAIT)
    return backoff


_backoff = tenacity.wait_random_exponential(multiplier=1, max=MAX_WAIT)


@contextlib.contextmanager
def _interruptible(interrupt: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C asks the loop to drain, the second ends the process as usual."""
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        interrupt()
        loop.remove_signal_handler(signal.SIGINT)

    try:
        loop.add_signal_handler(signal.SIGINT, on_signal)
    except (NotImplementedError, RuntimeError, ValueError):
        # Windows, or not the main thread: Ctrl-C raises KeyboardInterrupt there, and the journal is safe too.
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def assess(
    wanted: Iterable[Task],
    model: Model,
    journal: Journal,
    pool: Pool,
    *,
    turns: Mapping[str, Turn] | None = None,
    settings: Settings | None = None,
    report: Callable[[Progress], None] | None = None,
) -> list[Judgment | Failure]:
    """Run the loop to its end from synchronous code.

    Raises:
        UsageError: The judge cannot answer one of the criteria.
        OperationalError: The run stopped early; what was paid for is in the journal.
    """
    wanted = tuple(wanted)
    model.check(tuple({task.criterion.digest: task.criterion for task in wanted}.values()))

    async def run() -> list[Judgment | Failure]:
        try:
            return await Loop(model, journal, pool, turns, settings or Settings(), report).run(wanted)
        finally:
            await model.aclose()

    return asyncio.run(run())
