"""The journal: every paid completion, by the digest of its request, so that no call is paid for twice.

A completion counts only after its commit has reached the disk; commits are grouped, so that many completions share one
wait for the disk. A journal is a file that only one process writes.
"""

import asyncio
import contextlib
import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self, TypeVar

from judge.errors import InputError, JudgeError, OperationalError
from judge.io.files import StrPath
from judge.judges.journal_store import NAMES, Fact, Recorded, Row, Store, completion_of, new_row, paged, recorded
from judge.judges.records import Completion, Request

_TOGETHER = 1000
"""Completions that are taken over in one transaction."""
_PAUSE, _PERIOD = 0.02, 1.0
"""Seconds for which completions are gathered into one commit, and after which they are brought into the file."""

_Content = TypeVar("_Content")


class JournalView:
    """The completions of several journals, only read, as if they were in one; the first one with a digest answers."""

    _known: set[int] | None = None
    """Hashes of all digests, a third of the memory of these; None where they were not read."""

    def __init__(self, places: Iterable[StrPath]) -> None:
        with contextlib.ExitStack() as opened:
            self._stores = [opened.enter_context(contextlib.closing(Store(place))) for place in places]
            self._some = any(store.file.query("SELECT 1 FROM completion LIMIT 1") for store in self._stores)
            self.close = opened.pop_all().close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __bool__(self) -> bool:
        """Whether they held any completion when they were opened."""
        return self._some

    def facts(self, judge: str) -> set[tuple[str, str]]:
        """What is known of a judge beside its completions: each kind of fact with a value."""
        known = (fact for store in self._stores for fact in store.facts())
        return {(fact.kind, fact.value) for fact in known if fact.judge == judge}

    def get(self, digest: str) -> Completion | None:
        """The completion recorded under a digest, or None; an InputError if a journal is damaged there."""
        return self._find(digest, completion_of)

    def find(self, digest: str) -> Recorded | None:
        """The completion with the request that it answers. Errors are those of `get`."""
        return self._find(digest, recorded)

    def _find(self, digest: str, content: Callable[[Row], _Content]) -> _Content | None:
        # The writer has the store while it waits for the disk, and most questions are new.
        if not self._may_hold(digest):
            return None
        found = (store.find(digest, content) for store in self._stores)
        return next((one for one in found if one is not None), None)

    def _may_hold(self, digest: str) -> bool:
        return self._known is None or hash(digest) in self._known

    def times(self, digests: Iterable[str]) -> dict[str, str]:
        """When completions were recorded, by digest: UTC, as `2025-01-31T12:00:00.000Z`; absent ones are left out."""
        wanted = list(digests)
        rows = (store.rows(wanted, "digest, recorded") for store in reversed(self._stores))
        times: dict[str, str] = {}
        for found in rows:
            for digest, row in found.items():
                times[digest] = str(row[1])
        return times

    def sample(self, judge: str, most: int) -> list[Recorded]:
        """What a judge was asked and what came back, of at most `most` calls; the same ones each time."""
        # Digests are as good as random, so the first ones are a fair sample.
        query = f"SELECT {NAMES} FROM completion WHERE judge = ? ORDER BY digest LIMIT ?"  # noqa: S608 - names of columns only
        drawn: dict[str, Recorded] = {}
        for store in reversed(self._stores):
            # What is damaged is said where its completion is wanted.
            with contextlib.suppress(InputError):
                for row in store.file.query(query, (judge, most)):
                    with contextlib.suppress(InputError):
                        drawn[row[0]] = store.sound(row, recorded)
        return [drawn[digest] for digest in sorted(drawn)[:most]]


class _Job(NamedTuple):
    """A completion that is to be written, and the future of whoever waits for it."""

    future: "asyncio.Future[None]"
    digest: str
    judge: str
    parameters: Mapping[str, Any]
    request: Request
    completion: Completion


class Journal(JournalView):
    """A journal that this process writes; a thread writes completions as they come.

    The file is made if it is not there; None is a journal in memory. Errors are those of `Store`.
    """

    _known: set[int]

    def __init__(self, path: StrPath | None) -> None:
        self.store = Store(path, "write")
        self._stores = [self.store]
        try:
            # A question that only seems known is looked up.
            self._known = {hash(digest) for (digest,) in self.store.pages("digest")}
        except BaseException:
            self.store.close()
            raise
        # None at the end.
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._failure: JudgeError | None = None
        """The first thing that went wrong; later completions are written where that is possible, and told this."""
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def __bool__(self) -> bool:
        """Whether it holds any completion."""
        return bool(self._known)

    def __len__(self) -> int:
        """How many completions it holds, as far as this process knows."""
        return len(self._known)

    def __contains__(self, digest: str) -> bool:
        """Whether a completion is recorded under a digest."""
        return self._may_hold(digest) and digest in self.times([digest])

    def close(self) -> None:
        """Write the queued completions and release the file."""
        self._queue.put(None)
        self._thread.join()
        self.store.close()

    def check_there(self) -> None:
        """Raise an OperationalError if the file is not at its place any more."""
        self.store.file.tick()

    def shrink(self) -> None:
        """Give back the memory that only asking needs."""
        self.store.file.shrink()

    def add_fact(self, kind: str, value: str, judge: str) -> None:
        """Record a fact about a judge, on the disk; an OperationalError if that cannot be written."""
        self.store.add_facts([Fact(kind, value, judge)])

    def record(self, rows: Iterable[Row]) -> int:
        """Record completions, all or none of them, and give how many were new; one that is here stays as it is.

        Errors are those of `Store.insert`.
        """
        rows = list(rows)
        new = self.store.insert(rows) if rows else 0
        self._known.update(hash(row[0]) for row in rows)
        return new

    def forget(self, digests: Iterable[str]) -> None:
        """Remove completions that nobody paid for; an OperationalError if that cannot be written."""
        self.store.remove(list(digests))

    def adopt(self, path: StrPath) -> None:
        """Copy the completions of a journal's file into this one, so that no call is paid for again.

        What is copied before an error stays; the same call goes on from there. An InputError if the other journal
        cannot be read, an OperationalError if this one cannot be written.
        """
        with contextlib.closing(Store(path)) as source:
            for page in paged(source.pages(), _TOGETHER):
                self.record(source.sound(row, tuple) for row in page)
            self.store.add_facts(source.facts())

    def write(
        self, digest: str, judge: str, parameters: Mapping[str, Any], request: Request, completion: Completion
    ) -> "asyncio.Future[None]":
        """Begin to record a completion; the future is done when it is on the disk, or raises a JudgeError.

        `parameters` are everything that was sent beside the messages.
        """
        future = asyncio.get_running_loop().create_future()
        self._queue.put(
            _Job(
                future=future, digest=digest, judge=judge, parameters=parameters, request=request, completion=completion
            )
        )
        return future

    # ---------------------------------------------------------------- the thread

    def _work(self) -> None:
        due = time.monotonic() + _PERIOD
        ended = False
        while not ended:
            group: list[_Job | None] = []
            try:
                self._gather(group, max(0.0, due - time.monotonic()))
            except Exception as error:  # noqa: BLE001 - a thread that dies leaves everyone waiting forever
                self._failure = self._failure or self._in_words(error)
            jobs = [job for job in group if job is not None]
            ended = len(jobs) < len(group)
            # Made here, many in a row, which takes half the CPU.
            rows = [self._row(job) for job in jobs]
            try:
                self.record(row for row in rows if isinstance(row, tuple))
                if time.monotonic() >= due:
                    due = time.monotonic() + _PERIOD
                    self.store.file.tick()
            except Exception as error:  # noqa: BLE001 - as above
                self._failure = self._failure or self._in_words(error)
            answers = [row if isinstance(row, JudgeError) else self._failure for row in rows]
            self._tell(list(zip(jobs, answers, strict=True)))

    def _row(self, job: _Job) -> Row | JudgeError:
        try:
            return new_row(job.digest, job.judge, job.parameters, job.request, job.completion)
        except Exception as error:  # noqa: BLE001 - as in `_work`
            return self._in_words(error)

    def _gather(self, group: list[_Job | None], timeout: float) -> None:
        """Put what came into a group, after a wait for it."""
        with contextlib.suppress(queue.Empty):
            group.append(self._queue.get(timeout=timeout))
            if group != [None]:
                # What comes meanwhile shares the commit, which waits for the disk and costs as much as ten rows.
                time.sleep(_PAUSE)
            while True:
                group.append(self._queue.get_nowait())

    def _in_words(self, error: Exception) -> JudgeError:
        if isinstance(error, JudgeError):
            return error
        return OperationalError(f"{self.store.file.name}: cannot be written: {error}")

    def _tell(self, answers: Sequence[tuple[_Job, JudgeError | None]]) -> None:
        """Tell those who wait that their completions are on the disk, or why not, in their loops."""
        for loop, group in itertools.groupby(answers, lambda pair: pair[0].future.get_loop()):
            # Of a canceled run, the loop is closed; what it paid for is written all the same.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, list(group))


def _settle(answers: Sequence[tuple[_Job, JudgeError | None]]) -> None:
    for job, error in answers:
        if job.future.done():
            continue
        if error is None:
            job.future.set_result(None)
        else:
            job.future.set_exception(error)
