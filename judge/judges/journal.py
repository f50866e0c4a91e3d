"""The journal: every paid completion, by the digest of its request, so that no call is paid for twice.

A completion counts only after its commit has reached the disk; commits are grouped, so that many completions share one
wait for the disk. A journal is a file that one process writes, or a database that several processes share.

`Calls` of the loop use five methods: `get` a completion, `lease` a question, `write` its completion, `release` it, and
`close`.
"""

import asyncio
import contextlib
import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from judge.errors import InputError, JudgeError, OperationalError
from judge.io.files import StrPath
from judge.judges.journal_store import NAMES, Recorded, Row, completion_of, new_row, open_store, paged, recorded
from judge.judges.records import Completion, Request

_TOGETHER = 1000
"""Completions that are taken over in one transaction, and items whose answers are fetched from a database at once."""
_HURRY = 10.0
"""Seconds for which a server that is away is waited for at the end of a command."""

_Item = TypeVar("_Item")
_Content = TypeVar("_Content")


class HeldElsewhere(Exception):
    """Another process is asking this question."""


class JournalView:
    """The completions of several journals, only read, as if they were in one; the first one with a digest answers."""

    _known: set[int] | None = None
    """Hashes of all digests, a third of the memory of these; None where they were not read."""

    def __init__(self, places: Iterable[StrPath]) -> None:
        with contextlib.ExitStack() as opened:
            stores = [opened.enter_context(contextlib.closing(open_store(place))) for place in places]
            # Without a version, nothing was recorded there yet.
            self._stores = [store for store in stores if store.version is not None]
            self._some = any(store.query("SELECT 1 FROM completion LIMIT 1") for store in self._stores)
            self.close = opened.pop_all().close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __bool__(self) -> bool:
        """Whether they held any completion when they were opened."""
        return self._some

    def meta(self, key: str) -> str | None:
        """A fact kept beside the completions; None if it is in no journal."""
        values = (store.meta(key) for store in self._stores)
        return next((value for value in values if value is not None), None)

    def get(self, digest: str) -> Completion | None:
        """The completion recorded under a digest, or None; an InputError if a journal is damaged there."""
        return self._find(digest, completion_of)

    def find(self, digest: str) -> Recorded | None:
        """The completion with the request that it answers. Errors are those of `get`."""
        return self._find(digest, recorded)

    def _find(self, digest: str, content: Callable[[Row], _Content]) -> _Content | None:
        # The writer has the store while it waits for the disk, and most questions are new.
        found = (store.find(digest, content) for store in self._stores if self._may_hold(digest))
        return next((one for one in found if one is not None), None)

    def _may_hold(self, digest: str) -> bool:
        return self._known is None or hash(digest) in self._known

    def times(self, digests: Iterable[str]) -> dict[str, str]:
        """When completions were recorded, by digest: UTC, as `2025-01-31T12:00:00.000Z`; absent ones are left out."""
        wanted = list(digests)
        rows = (store.rows(wanted, "digest, recorded") for store in reversed(self._stores))
        return {digest: str(row[1]) for found in rows for digest, row in found.items()}

    def ahead(self, items: Iterable[_Item], digests: Callable[[_Item], Iterable[str]]) -> Iterator[_Item]:
        """The items as they come, each after what databases hold of its `digests` was fetched for a `get`.

        Files are quick to read: for them, `digests` is not called.
        """
        shared = [store for store in self._stores if store.shared]
        for page in paged(items, _TOGETHER):
            wanted = [digest for item in page for digest in digests(item) if self._may_hold(digest)] if shared else []
            for store in shared:
                store.fetched = dict.fromkeys(wanted) | store.rows(wanted)
            yield from page
        for store in shared:
            store.fetched = {}

    def sample(self, judge: str, most: int) -> list[Recorded]:
        """What a judge was asked and what came back, of at most `most` calls; the same ones each time."""
        # Digests are as good as random, so the first ones are a fair sample.
        query = f"SELECT {NAMES} FROM completion WHERE judge = ? ORDER BY digest LIMIT ?"  # noqa: S608 - names of columns only
        drawn: dict[str, Recorded] = {}
        for store in reversed(self._stores):
            # What is damaged is said where its completion is wanted.
            with contextlib.suppress(InputError):
                for row in store.query(query, (judge, most)):
                    with contextlib.suppress(InputError):
                        drawn[row[0]] = store.sound(row, recorded)
        return [drawn[digest] for digest in sorted(drawn)[:most]]


class _Job(NamedTuple):
    """A completion that is to be written, else a question that is to be leased, and the future of whoever waits."""

    future: "asyncio.Future[Any]"
    digests: tuple[str, ...]
    call: tuple[str, Mapping[str, Any], Request, Completion] | None = None
    """Judge, parameters and request, with the completion."""


class Journal(JournalView):
    """A journal that this process writes; a thread writes completions as they come, and takes leases.

    The place is a file, which is made if it is not there, or the address of a database; None is a journal in memory.
    A database that is away is waited for `max_wait` seconds at most. Errors are those of `open_store`.
    """

    _known: set[int]

    def __init__(self, place: StrPath | None, max_wait: float = 300.0) -> None:
        self.store = open_store(place, "write", max_wait)
        self._stores = [self.store]
        try:
            # A question that only seems known is looked up.
            self._known = set(map(hash, self.store.digests()))
        except BaseException:
            self.store.close()
            raise
        # Jobs, questions to let go of by their first digests, and None at the end.
        self._queue: queue.SimpleQueue[_Job | str | None] = queue.SimpleQueue()
        self._failure: JudgeError | None = None
        """The first thing that went wrong; later completions are written where that is possible, and told this."""
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    @property
    def shared(self) -> bool:
        """Whether other processes may write it too, so that a question is to be leased before it is asked."""
        return self.store.shared

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
        """Write the queued completions, let go of every question and release the place."""
        self.store.max_wait = min(self.store.max_wait, _HURRY)
        self._queue.put(None)
        self._thread.join()
        self.store.close()

    def check_there(self) -> None:
        """Raise an OperationalError if the file is not at its place any more."""
        self.store.tick()

    def set_meta(self, key: str, value: str) -> None:
        """Record a fact beside the completions, on the disk; an OperationalError if that cannot be written."""
        self.store.set_meta([(key, value)])

    def record(self, rows: Iterable[Row], *, own: bool = False) -> int:
        """Record completions, all or none of them, and give how many were new; one that is here stays as it is.

        Those that are `own` were leased. Errors are those of `Store.insert`.
        """
        known = rows = list(rows)
        try:
            return self.store.insert(rows, own=own) if rows else 0
        except BaseException:
            # In a database, another process's answers may be there.
            known = rows if self.shared else []
            raise
        finally:
            self._known.update(hash(row[0]) for row in known)

    def adopt(self, path: StrPath) -> None:
        """Copy the completions of a journal's file into this one, so that no call is paid for again.

        What is copied before an error stays; the same call goes on from there. An InputError if the other journal
        cannot be read, an OperationalError if this one cannot be written.
        """
        with contextlib.closing(open_store(path)) as source:
            for page in paged(source.pages(), _TOGETHER):
                self.record(source.sound(row, tuple) for row in page)
            self.store.add_facts(source)

    def write(
        self, digest: str, judge: str, parameters: Mapping[str, Any], request: Request, completion: Completion
    ) -> "asyncio.Future[None]":
        """Begin to record a completion; the future is done when it is on the disk, or raises a JudgeError.

        `parameters` are everything that was sent beside the messages.
        """
        future = asyncio.get_running_loop().create_future()
        self._queue.put(_Job(future, (digest,), (judge, parameters, request, completion)))
        return future

    def lease(self, *digests: str) -> "asyncio.Future[tuple[str, Completion] | None]":
        """Lease a question before it is asked; needed only where several processes share the journal.

        `digests` are the requests with which it can be asked, one for each answer form, in the order that every process
        gives them. The lease is on the first one, whichever is sent. The future gives the first that the journal
        answers by now, with its completion; None if the question is ours, until the completion of the first request is
        written or until `release`. It raises HeldElsewhere where another process is asking.
        """
        job = _Job(asyncio.get_running_loop().create_future(), digests)
        self._queue.put(job)
        return job.future

    def release(self, digest: str) -> None:
        """Let go of a question, named by its first digest."""
        if self.shared:
            self._queue.put(digest)

    # ---------------------------------------------------------------- the thread

    def _work(self) -> None:
        due, group = time.monotonic() + self.store.period, list[_Job | str | None]()
        while None not in group:
            group = self._gathered(max(0.0, due - time.monotonic()))
            jobs = [item for item in group if isinstance(item, _Job)]
            # Made here, many in a row, which takes half the CPU.
            rows = [(job, self._row(*job.digests, *job.call)) for job in jobs if job.call]
            try:
                self.record((row for _, row in rows if isinstance(row, tuple)), own=True)
                if time.monotonic() >= due:
                    due = time.monotonic() + self.store.period
                    self.store.tick()
            except Exception as error:  # noqa: BLE001 - a thread that dies leaves everyone waiting forever
                self._failure = self._failure or self._in_words(error)
            self._tell([(job, self._failure if isinstance(row, tuple) else row) for job, row in rows])
            if released := {item for item in group if isinstance(item, str)}:
                # A server that is away for so long ends the run, and with it every lease.
                with contextlib.suppress(JudgeError):
                    self.store.release(sorted(released))
            if leases := [job for job in jobs if not job.call]:
                self._tell(self._leased(leases))

    def _row(self, *call: Any) -> Row | JudgeError:
        try:
            return new_row(*call)
        except Exception as error:  # noqa: BLE001 - as in `_work`
            return self._in_words(error)

    def _gathered(self, timeout: float) -> list[_Job | str | None]:
        """What came, after a wait for it."""
        group: list[_Job | str | None] = []
        with contextlib.suppress(queue.Empty):
            group.append(self._queue.get(timeout=timeout))
            if group != [None]:
                # What comes meanwhile shares the commit, which waits for the disk and costs as much as ten rows.
                time.sleep(self.store.pause)
            while True:
                group.append(self._queue.get_nowait())
        return group

    def _in_words(self, error: Exception) -> JudgeError:
        if isinstance(error, JudgeError):
            return error
        return OperationalError(f"{self.store.name}: cannot be written: {error}")

    def _leased(self, leases: Sequence[_Job]) -> list[tuple[_Job, object]]:
        """Leases, each with what it ends with."""
        try:
            granted = self.store.take(sorted({job.digests[0] for job in leases}))
            # Only now: a completion may have been committed, and its lease removed, while the statement before began.
            rows = self.store.rows({digest for job in leases for digest in job.digests})
            self._known.update(map(hash, rows))
            return [(job, self._answer(job.digests, granted, rows)) for job in leases]
        except Exception as error:  # noqa: BLE001 - as in `_work`
            return [(job, self._in_words(error)) for job in leases]

    def _answer(self, digests: Sequence[str], granted: set[str], rows: Mapping[str, Row]) -> object:
        """What a lease ends with; an exception is raised where it is waited for."""
        digest = next((digest for digest in digests if digest in rows), None)
        if digest is None:
            return None if digests[0] in granted else HeldElsewhere(digests[0])
        if digests[0] in granted:
            self.release(digests[0])
        try:
            return digest, self.store.sound(rows[digest], completion_of)
        except InputError as error:
            return error

    def _tell(self, answers: Sequence[tuple[_Job, object]]) -> None:
        """Hand answers to those who wait for them, in their loops."""
        for loop, group in itertools.groupby(answers, lambda pair: pair[0].future.get_loop()):
            told = list(group)
            try:
                loop.call_soon_threadsafe(self._settle, told)
            except RuntimeError:
                # Of a canceled run, the loop is closed; what it paid for is written all the same.
                self._settle(told, waited=False)

    def _settle(self, answers: Sequence[tuple[_Job, object]], *, waited: bool = True) -> None:
        for job, answer in answers:
            if not waited or job.future.done():
                # A lease that nobody waits for any more would keep other processes waiting.
                if not job.call and answer is None:
                    self.release(job.digests[0])
            elif isinstance(answer, Exception):
                job.future.set_exception(answer)
            else:
                job.future.set_result(answer)


def open_journal(file: StrPath, shared: str | None = None, max_wait: float = 300.0) -> Journal:
    """Open the journal that a job writes: its file, or the database of this address, which takes over the file's."""
    with contextlib.ExitStack() as opened:
        journal = opened.enter_context(Journal(shared or file, max_wait))
        if shared and Path(file).exists():
            journal.adopt(file)
        opened.pop_all()
    return journal
