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
from judge.io.paths import StrPath
from judge.judges.journal_rows import NAMES, SET_META, Recorded, Row, completion_of, new_row, recorded
from judge.judges.journal_store import check_database, open_store, paged
from judge.judges.records import Completion, Request

_TOGETHER = 1000
"""Completions that are taken over in one transaction."""
_AHEAD = 250
"""Items whose answers are fetched from a database at once, and kept in memory until the next."""
_HURRY = 10.0
"""Seconds for which a server that is away is waited for at the end of a command."""

_Item = TypeVar("_Item")
_Content = TypeVar("_Content")


class HeldElsewhere(Exception):
    """Another process is asking this question."""


class JournalView:
    """The completions of several journals, read as if they were in one; the first one that holds a digest answers.

    Nothing is changed. A journal that another process is writing is read too; what came in its last second or two may
    be missing.

    Args:
        places: The journals: files, or addresses of the databases of shared ones. Errors are those of `open_store`.
    """

    _known: set[int] | None = None
    """Hashes of all digests, a third of the memory of these; None where they were not read."""

    def __init__(self, places: Iterable[StrPath]) -> None:
        with contextlib.ExitStack() as opened:
            stores = [opened.enter_context(contextlib.closing(open_store(place, "live"))) for place in places]
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
        stores = self._stores if self._may_hold(digest) else ()
        found = (store.find(digest, content) for store in stores)
        return next((one for one in found if one is not None), None)

    def _may_hold(self, digest: str) -> bool:
        return self._known is None or hash(digest) in self._known

    def times(self, digests: Iterable[str]) -> dict[str, str]:
        """When completions were recorded, by digest: UTC, as `2025-01-31T12:00:00.000Z`; absent ones are left out."""
        wanted = list(digests)
        rows = (store.rows(wanted, "digest, recorded") for store in reversed(self._stores))
        return {digest: str(row[1]) for found in rows for digest, row in found.items()}

    def ahead(self, items: Iterable[_Item], digests: Callable[[_Item], Iterable[str]]) -> Iterator[_Item]:
        """The items as they come, each after what databases hold of it was fetched for the `get` that follows.

        Args:
            items: What the answers are wanted for.
            digests: The requests whose answers are wanted for an item; not called for files, which are quick to read.
        """
        shared = [store for store in self._stores if store.shared]
        for page in paged(items, _AHEAD):
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
    row: Row | None = None


class Journal(JournalView):
    """A journal that this process writes; a thread writes completions as they come, and takes leases.

    Args:
        place: A file, which is made if it is not there, or the address of a database; None for one in memory.
        max_wait: Most seconds for which a database that is away is waited for. Errors are those of `open_store`.
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
        self._queue: queue.SimpleQueue[_Job | str | None] = queue.SimpleQueue()
        """Jobs, questions to let go of by their first digests, and None at the end."""
        self._failure: JudgeError | None = None
        """The first thing that went wrong; later completions are written where that is possible, and told this."""
        self._replaced = 0
        """Completions of this process that came when another one's was recorded."""
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
        """Refuse results that the journal would not give again.

        Raises:
            OperationalError: The file is not there any more, or another process recorded an answer of its own because
                a lease of this one had ended.
        """
        if not self.shared:
            self.store.tick()
        if self._replaced:
            raise OperationalError(
                f"{self.store.name}: this process was not heard of for longer than a lease, and another one asked "
                f"{self._replaced} of its questions again; the same command takes these answers"
            )

    def set_meta(self, key: str, value: str) -> None:
        """Record a fact beside the completions, on the disk; an OperationalError if that cannot be written."""
        self.store.change(SET_META, [(key, value)])

    def record(self, rows: Iterable[Row]) -> int:
        """Record completions that came another way, all or none of them, and give how many were new.

        One whose digest is here stays as it is. Errors are those of `set_meta`.
        """
        return self._add(list(rows))[0]

    def adopt(self, path: StrPath) -> None:
        """Copy the completions of a journal's file into this one, so that no call is paid for again.

        What is copied before an error stays; the same call goes on from there.

        Raises:
            InputError: The other journal cannot be read.
            OperationalError: This one cannot be written.
        """
        with contextlib.closing(open_store(path)) as source:
            for page in paged(source.sound_rows(), _TOGETHER):
                self.record(page)
            self.store.add_facts(source)

    def write(
        self, digest: str, judge: str, parameters: Mapping[str, Any], request: Request, completion: Completion
    ) -> "asyncio.Future[None]":
        """Begin to record a completion; the future is done when it is on the disk, or raises a JudgeError.

        `parameters` are everything that was sent beside the messages.
        """
        job = _Job(asyncio.get_running_loop().create_future(), (digest,))
        try:
            self._queue.put(job._replace(row=new_row(digest, judge, parameters, request, completion)))
        except (TypeError, UnicodeError) as error:
            job.future.set_exception(self._in_words(error))
        return job.future

    def lease(self, *digests: str) -> "asyncio.Future[tuple[str, Completion] | None]":
        """Lease a question before it is asked; needed only where several processes share the journal.

        Args:
            digests: The requests with which the question can be asked, one for each answer form, in the order that
                every process gives them. The lease is on the first one, whichever is sent.

        Returns:
            A future with the first of the requests that the journal answers by now, and its completion; None if the
            question is ours to ask, until the completion of the first request is written or until `release`. It raises
            HeldElsewhere where another process is asking, and a JudgeError where the journal cannot be reached.
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
            rows = [job.row for job in jobs if job.row]
            try:
                if rows:
                    # Where the connection broke as the transaction ended, the rows that are there may be ours.
                    self._replaced += self._add(rows)[1]
                if time.monotonic() >= due:
                    due = time.monotonic() + self.store.period
                    self.store.tick()
            except Exception as error:  # noqa: BLE001 - a thread that dies leaves everyone waiting forever
                self._failure = self._failure or self._in_words(error)
            self._tell([(job, self._failure) for job in jobs if job.row])
            released = {item for item in group if isinstance(item, str)} | {row[0] for row in rows}
            if self.shared and released:
                # A server that is away for so long ends the run, and with it every lease.
                with contextlib.suppress(JudgeError):
                    self.store.release(sorted(released))
            if leases := [job for job in jobs if not job.row]:
                self._tell(self._leased(leases))

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

    def _add(self, rows: Sequence[Row]) -> tuple[int, int]:
        """Add rows in one transaction; gives how many were new, and in place of how many another process's is there.

        Raises:
            OperationalError: The disk cannot be written, or a row did not arrive.
        """
        new = self.store.insert(rows)
        # SQLite finds a digest in the index alone.
        found = self.store.rows((row[0] for row in rows), "digest, checksum" if self.shared else "digest")
        if lost := [row[0] for row in rows if row[0] not in found]:
            raise OperationalError(
                f"{self.store.name}: cannot be written: of {len(rows)} completions, {len(lost)} are not in the "
                f"table after their commit, {lost[0]} for one; a trigger or another program removes them"
            )
        self._known.update(hash(row[0]) for row in rows)
        return new, sum(found[row[0]][1] != row[-1] for row in rows) if self.shared else 0

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
            own = list(group)
            try:
                loop.call_soon_threadsafe(self._settle, own)
            except RuntimeError:
                # A canceled loop is closed; its paid completions are written all the same, and it asks nothing.
                self._settle(own)

    def _settle(self, answers: Sequence[tuple[_Job, object]]) -> None:
        for job, answer in answers:
            if job.future.done() or job.future.get_loop().is_closed():
                if not job.row and answer is None:
                    self.release(job.digests[0])
            elif isinstance(answer, Exception):
                job.future.set_exception(answer)
            else:
                job.future.set_result(answer)


def open_journal(file: StrPath, shared: str | None = None, max_wait: float = 300.0) -> Journal:
    """Open the journal that a job writes.

    Args:
        file: The file of the job's own journal.
        shared: The address of the database of a shared journal, which takes over what the file holds; None for none.
        max_wait: As for `Journal`.
    """
    check_database(shared)
    with contextlib.ExitStack() as opened:
        journal = opened.enter_context(Journal(shared or file, max_wait))
        if shared and Path(file).exists():
            journal.adopt(file)
        opened.pop_all()
    return journal
