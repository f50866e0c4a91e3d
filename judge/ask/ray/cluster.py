"""The process that is connected to Ray, and the workers that it keeps running: each call goes to one of them.

Ray ends its process where the head is lost, prints on it, takes its signals and reads its environment once, so the
driver starts a process for it. That one reads pickles, first where to connect, then numbered calls of the methods of
`Workers`, and writes the pickled results with the numbers. It ends with its input, and the workers end with it.
"""

import asyncio
import contextlib
import importlib
import logging
import math
import os
import pickle
import platform
import socket
import sys
import threading
import time
from typing import Any

import msgspec

from judge.errors import InputError, JudgeError, OperationalError, TransientError, UsageError
from judge.files.bundle import __version__
from judge.models.backends import open_model
from judge.models.call_parts import CallParts
from judge.models.journal import Journal
from judge.models.model import Model, ModelOptions, Unfinished
from judge.models.records import Completion
from judge.text.safe import printable

VERSIONS = f"judge {__version__} and Python {platform.python_version()}"
_STORE = 200_000_000
"""Bytes of shared memory of a cluster that is started here: little is kept there."""
_POLL = 2.0
"""Seconds between two polls of the cluster's head."""
_LOSSES = 5
"""Workers lost one after the other without a completion, after which no call is made any more."""


class RayWorker:
    """An actor with one judge.

    Args:
        name: `backend/model`, as the user gave it.
        options: How the judge is called.
        versions: Those of the driver.
    """

    def __init__(self, name: str, options: ModelOptions, versions: str) -> None:
        self._name, self._options, self._versions = name, options, versions
        self._model, self._parts, self._reported = Model(), CallParts(Journal(None)), Unfinished()

    async def open(self) -> int | JudgeError | None:
        """Open the judge, and give its most calls at once; or the error because of which it cannot be used here."""
        if self._versions != VERSIONS:
            return OperationalError(f"the driver has {self._versions}, a Ray node {VERSIONS}: install the same")
        try:
            self._model = open_model(self._name, self._options)
            self._model.check(())
            await asyncio.to_thread(self._model.prepare, lambda step, done, total: None)
        except Exception as error:  # noqa: BLE001 - the driver has to say it in words, whatever it is
            return self._explained(error)
        self._model.keep(self._parts)
        return self._model.max_concurrency

    async def complete(self, call: bytes) -> bytes:
        """Make a call; the process between only passes both pickles on.

        Args:
            call: The request, its digest, and the parts that came back before; the last two where the judge divides.

        Returns:
            The completion or the error; the answer forms and limits of the judge after the call; what is paid for
            without a completion since the last reply; and the parts of the call.
        """
        request, digest, parts = pickle.loads(call)  # noqa: S301 - from the driver
        if parts is not None:
            self._parts.write(digest, parts)
        result: Completion | JudgeError
        try:
            result = await self._model.complete(request)
        except Exception as error:  # noqa: BLE001 - as above
            result = self._explained(error)
        before, self._reported = self._reported, self._model.unfinished
        parts = self._parts.read(digest) if digest else None
        self._parts.finished(digest)
        self._parts.forget()
        return pickle.dumps((result, self._model.forms, self._model.limits, self._reported.less(before), parts))

    def _explained(self, error: Exception) -> JudgeError:
        where = f"a Ray worker on {socket.gethostname()}"
        if isinstance(error, (UsageError, InputError)):
            # The command is right, but this node lacks something.
            return OperationalError(f"{where} cannot ask {self._name}: {error}")
        return error if isinstance(error, JudgeError) else OperationalError(f"{where} failed: {error!r}")


class _Running:
    """A worker that runs, with the most calls at once that it takes."""

    def __init__(self, actor: Any, most: int) -> None:
        self.actor, self.most = actor, most
        self.calls, self.prompt = 0, ""
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()


class Workers:
    """The workers of one judge at a time; `ray` is the module, connected."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._running: list[_Running] = []
        self._places: list[asyncio.Task[None]] = []
        self._losses, self._share = 0, 1
        self._error: OperationalError | None = None
        """Why no call is made any more."""
        self._change = asyncio.Condition()

    async def open(self, name: str, options: ModelOptions, uses_cores: bool, workers: int | None, calls: int) -> None:
        """Begin to start the workers of a judge, for so many calls at once; other arguments as of `RayEngine`."""
        nodes = [int(node["Resources"].get("CPU", 0)) for node in self._ray.nodes() if node["Alive"]]
        cores, room = fitting([cpus for cpus in nodes if cpus], options.threads, workers, uses_cores=uses_cores)
        if cores > 1:
            options = msgspec.structs.replace(options, threads=options.threads or cores)
        places = min(room, calls)
        # What a lost worker had waits for another one, so that no loss costs more than a share.
        self._share = math.ceil(calls / places)
        self._losses, self._error = 0, None
        self._places = [asyncio.ensure_future(self._keep(cores, name, options)) for _ in range(places)]

    async def complete(self, prompt: str, call: bytes) -> bytes:
        """Have a worker make a call, preferably the one that was asked the same prompt last, else the least loaded.

        Raises:
            TransientError: The worker is lost.
            OperationalError: No call is made any more.
        """
        async with self._change:
            await self._change.wait_for(lambda: self._error or self._free())
            if self._error is not None:
                raise self._error
            worker = min(self._free(), key=lambda each: (each.prompt != prompt, each.calls))
            worker.calls, worker.prompt = worker.calls + 1, prompt
        try:
            reply: bytes = await worker.actor.complete.remote(call)
            self._losses = 0
            return reply
        except self._ray.exceptions.RayError as error:
            if worker in self._running:
                self._running.remove(worker)
                worker.lost.set_result(_last_line(error))
            raise TransientError(f"a Ray worker is lost: {_last_line(error)}") from error
        finally:
            async with self._change:
                worker.calls -= 1
                self._change.notify()

    async def stop(self, message: str = "no call is made any more") -> None:
        """Let the calls that wait for a worker fail; those in flight go on."""
        async with self._change:
            self._error = self._error or OperationalError(message)
            self._change.notify_all()

    async def close(self) -> None:
        """End the workers."""
        for place in self._places:
            place.cancel()
        await asyncio.gather(*self._places, return_exceptions=True)
        self._running.clear()

    def _free(self) -> list[_Running]:
        return [worker for worker in self._running if worker.calls < worker.most]

    async def _keep(self, cores: int, name: str, options: ModelOptions) -> None:
        """Keep a worker at one place: another one comes in place of a lost one; Ray chooses the node."""
        settings = {"num_cpus": cores, "max_restarts": 0, "max_task_retries": 0, "max_concurrency": self._share + 1}
        start = self._ray.remote(RayWorker).options(scheduling_strategy="SPREAD", **settings).remote
        while self._error is None:
            actor = start(name, options, VERSIONS)
            try:
                most = await actor.open.remote()
                if isinstance(most, JudgeError):
                    await self.stop(str(most))
                    break
                async with self._change:
                    self._running.append(worker := _Running(actor, min(most or self._share, self._share)))
                    self._change.notify_all()
                error = await worker.lost
            except self._ray.exceptions.RayError as raised:
                error = _last_line(raised)
            finally:
                self._ray.kill(actor)
            self._losses += 1
            if self._losses >= _LOSSES:
                lost = f"{_LOSSES} Ray workers were lost one after the other without a completion, the last: {error}"
                await self.stop(f"{lost}; the same command goes on from here")


def fitting(cpus: list[int], threads: int | None, workers: int | None, *, uses_cores: bool) -> tuple[int, int]:
    """The cores of a worker, and how many workers fit; `cpus` are those of each node."""
    smallest = min(cpus, default=1)
    if workers is not None and threads is not None:
        smallest = min(smallest, sum(cpus) // workers)
    cores = max(1, min(threads or (smallest if uses_cores else 1), smallest))
    return cores, workers or max(1, sum(number // cores for number in cpus))


def _last_line(error: BaseException) -> str:
    """What an error of Ray says in the end, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return printable(lines[-1]) if lines else type(error).__name__


def _connect(ray: Any, address: str | None, workers: int | None, folder: str) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address is None:
        options |= {"include_dashboard": False, "object_store_memory": _STORE, "num_cpus": workers}
        options |= {"_temp_dir": folder}
    ray.init(address=address or "local", **options)


def serve() -> None:
    """Be the process."""
    replies = os.fdopen(os.dup(1), "wb")
    # What Ray prints is no reply.
    os.dup2(2, 1)
    ray: Any = importlib.import_module("ray")

    def send(reply: object) -> None:
        replies.write(pickle.dumps(reply))
        replies.flush()

    def watch() -> None:
        here, alive = ray.get_runtime_context().get_node_id(), True
        while alive:
            time.sleep(_POLL)
            alive = any(node["Alive"] and node["NodeID"] == here for node in ray.nodes())
        # The end of the replies tells the driver; where the head does not answer, Ray ends this process.
        replies.close()

    async def answer(number: int, method: str, arguments: tuple[Any, ...]) -> None:
        try:
            value = await getattr(workers, method)(*arguments)
        except Exception as error:  # noqa: BLE001 - Ray's errors have no common base
            value = error if isinstance(error, JudgeError) else OperationalError(f"Ray failed: {_last_line(error)}")
        send((number, value))

    try:
        _connect(ray, *pickle.load(sys.stdin.buffer))  # noqa: S301 - from the driver
    except Exception as error:  # noqa: BLE001 - as above
        send(_last_line(error))
        return
    send("")
    workers, loop = Workers(ray), asyncio.new_event_loop()
    for job in (loop.run_forever, watch):
        threading.Thread(target=job, daemon=True).start()
    with contextlib.suppress(EOFError):
        while True:
            asyncio.run_coroutine_threadsafe(answer(*pickle.load(sys.stdin.buffer)), loop)  # noqa: S301 - as above
    ray.shutdown()
