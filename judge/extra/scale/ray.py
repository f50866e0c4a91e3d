"""A judge on a Ray cluster: the loop runs in this process, the driver, and only its calls are made by workers.

Ray ends its process where the head is lost, prints on it, takes its signals and reads its environment once. So the
driver starts a process for it, which reads pickled calls of the methods of `Workers`, each with a number, and writes
the pickled results. Each call of the judge goes on to a worker, an actor with the same judge. The process ends with its
input, and the workers end with it.
"""

import asyncio
import contextlib
import itertools
import logging
import math
import os
import pickle
import platform
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from typing import Any

import msgspec

from judge.errors import CallError, InputError, JudgeError, OperationalError, TransientError, UsageError
from judge.io.installed import __version__
from judge.io.text import printable
from judge.judges.backends import open_model, options_beside
from judge.judges.model import Model, ModelOptions
from judge.judges.records import Completion, Request

VERSIONS = f"judge {__version__} and Python {platform.python_version()}"
_OFF = ("RAY_USAGE_STATS_ENABLED", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "RAY_ENABLE_AUTO_CONNECT")
"""Variables of Ray that are set to 0; with the last one, what is left to do after its end would start it again."""
_PATIENCE = {"RAY_gcs_rpc_server_reconnect_timeout_s": "20"}
"""Seconds for which the head may not answer: it may be started again in the meantime."""
_STORE, _SHORT = 200_000_000, 20
"""Bytes of shared memory of a cluster that is started here, where little is kept; and characters of a path below which
the paths of Ray's sockets, of up to 103 characters, find room."""
_LAST, _POLL, _LOSSES = 10.0, 2.0, 5
"""Seconds for a head to be reached or Ray to end, and between two polls of the head; workers lost one after the other
without a completion, after which no call is made any more."""


class RayEngine:
    """Asks judges on one Ray cluster, through a process that is started with the first call.

    Args:
        address: `HOST:PORT` of the cluster's head; None to start a cluster on this machine.
        workers: Workers at once; None for one per CPU, or one per node where the judge computes on all cores.
        names: The models, `backend/model`, as the user gave them.
        options: How they are called.
    """

    def __init__(self, address: str | None, workers: int | None, names: Sequence[str], options: ModelOptions) -> None:
        self._address = address
        self._workers = workers
        called = {name: options_beside(name, options) if len(names) > 1 else options for name in names}
        self._called = {open_model(name, own).name: (name, own) for name, own in called.items()}
        self._process: Any = None
        self._folder = Path()
        self._numbers = itertools.count()
        self._calls: dict[int, Future[Any]] = {}
        self._lost: OperationalError | None = None
        self._loss = f"the Ray cluster{f' at {address}' if address else ''} cannot be used: Ray ended its process"
        """What it means if the process ends."""

    def model(self, model: Model, calls: int, waiting: Callable[[str], None]) -> "RayModel":
        """The same judge, whose calls workers make, so many at once; `waiting` is told what they wait for."""

        async def open_workers() -> None:
            if self._process is None:
                self._start()
                await asyncio.wrap_future(self.call("connect", self._address, str(self._folder), self._workers))
                self._loss = "the Ray cluster does not answer; the same command goes on from here"
            waiting("waiting for CPUs of the cluster")
            judge = self._called[model.name]
            await asyncio.wrap_future(self.call("open", *judge, model.uses_cores, self._workers, calls))

        return RayModel(model, self.call, open_workers)

    def call(self, method: str, *arguments: object) -> "Future[Any]":
        """Call a method of `Workers` in the process; the future has its result, or the JudgeError that it raised."""
        number = next(self._numbers)
        reply = Future[Any]()
        self._calls[number] = reply
        with contextlib.suppress(OSError):
            self._process.stdin.write(pickle.dumps((number, method, arguments)))
            self._process.stdin.flush()
        if self._lost is not None:
            _settle(reply, self._lost)
        return reply

    def close(self) -> None:
        """End the process, and with it a cluster that was started here."""
        if self._process is None:
            return
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_LAST)
        except subprocess.TimeoutExpired:
            # Without its head, Ray waits for it whenever it is told to end.
            self._process.kill()
            self._process.wait()
        deadline = time.monotonic() + _LAST
        while self._folder.exists() and time.monotonic() < deadline:
            # Processes of the cluster that end may write there a little longer.
            shutil.rmtree(self._folder, ignore_errors=True)
            time.sleep(0.1)

    def _start(self) -> None:
        # Without a token of ours, Ray would write one into the user's home.
        own = {"RAY_AUTH_TOKEN": secrets.token_hex(32)}
        more = _PATIENCE | ({"RAY_NUM_REDIS_GET_RETRIES": "1"} if self._address else own)
        home = tempfile.gettempdir()
        short = home if len(home) <= _SHORT or os.name == "nt" else "/tmp"  # noqa: S108
        self._folder = Path(tempfile.mkdtemp(prefix="judge-ray-", dir=short))
        command = [sys.executable, "-c", f"from {__name__} import serve; serve()"]
        environment = os.environ | dict.fromkeys(_OFF, "0") | more
        pipe = subprocess.PIPE
        # The signals of a terminal are for the driver, so the process has a session of its own.
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment, start_new_session=True
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        """Hand out the replies of the process until it ends; a thread does it."""
        with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
            while True:
                number, value = pickle.load(self._process.stdout)  # noqa: S301 - our own process
                _settle(self._calls.pop(number), value)
        self._lost = OperationalError(self._loss)
        for reply in list(self._calls.values()):
            _settle(reply, self._lost)


def _settle(reply: "Future[Any]", value: object) -> None:
    # The loop may have canceled the call.
    with contextlib.suppress(InvalidStateError):
        if isinstance(value, JudgeError):
            reply.set_exception(value)
        else:
            reply.set_result(value)


_FACTS = (
    *("name", "forms", "omitted", "required", "room", "recorded", "free", "counts_longest", "asks_together"),
    *("check", "parameters", "price", "sent", "questions_in", "parts"),
)
"""What is as of the same judge here."""


class RayModel(Model):
    """A judge whose calls workers make, by `RayEngine.call`; everything else is as of the same judge here."""

    def __init__(self, model: Model, call: Callable[..., "Future[Any]"], open_workers: Callable[[], Any]) -> None:
        for fact in _FACTS:
            setattr(self, fact, getattr(model, fact))
        self._model = model
        self._call = call
        self._open_workers = open_workers
        self._opening: asyncio.Future[None] | None = None

    def stop(self) -> None:
        """Give up the calls that wait for a worker."""
        if self._opening is not None:
            self._opening.add_done_callback(lambda _: self._call("stop"))

    async def complete(self, request: Request) -> Completion:
        """Have a worker ask once; its loss is a TransientError, that of the cluster an OperationalError."""
        (reply,) = await self.complete_together([request])
        if isinstance(reply, CallError):
            raise reply
        return reply

    async def complete_together(self, requests: Sequence[Request]) -> list[Completion | CallError]:
        """Have a worker ask all in one call."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open_workers())
        await asyncio.shield(self._opening)
        about = f"{requests[0].turn_id} {', '.join(dict.fromkeys(request.criterion for request in requests))}"
        call = self._call("complete", about, pickle.dumps(tuple(requests)))
        result, self.limits = pickle.loads(await asyncio.wrap_future(call))  # noqa: S301 - from a worker
        if isinstance(result, JudgeError):
            raise result
        replies: list[Completion | CallError] = result
        return replies

    async def aclose(self) -> None:
        """End the workers."""
        if self._opening is not None:
            with contextlib.suppress(OperationalError):
                await asyncio.wrap_future(self._call("close"))
        await self._model.aclose()


class RayWorker:
    """An actor with one judge, as the user named it; `versions` are those of the driver."""

    def __init__(self, name: str, options: ModelOptions, versions: str) -> None:
        self._name = name
        self._options = options
        self._versions = versions
        self._model = Model()

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
        return self._model.max_concurrency

    async def complete(self, call: bytes) -> bytes:
        """Make a call; both pickles are those of `RayModel.complete_together`."""
        result: list[Completion | CallError] | JudgeError
        try:
            result = await self._model.complete_together(pickle.loads(call))  # noqa: S301 - from the driver
        except Exception as error:  # noqa: BLE001 - as above
            result = self._explained(error)
        return pickle.dumps((result, self._model.limits))

    def _explained(self, error: Exception) -> JudgeError:
        where = f"a Ray worker on {socket.gethostname()}"
        if isinstance(error, (UsageError, InputError)):
            # The command is right, but this node lacks something.
            return OperationalError(f"{where} cannot ask {self._name}: {error}")
        return error if isinstance(error, JudgeError) else OperationalError(f"{where} failed: {error!r}")


class _Running:
    """A worker that runs, with the most calls at once that it takes."""

    def __init__(self, actor: Any, most: int) -> None:
        self.actor = actor
        self.most = most
        self.calls = 0
        self.prompt = ""
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()


class Workers:
    """The workers of one judge at a time; `ray` is the module."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._running: list[_Running] = []
        self._places: list[asyncio.Task[None]] = []
        self._losses = 0
        self._share = 1
        self._error: OperationalError | None = None
        """Why no call is made any more."""
        self._change = asyncio.Condition()
        self.connected = False

    async def connect(self, address: str | None, folder: str, workers: int | None) -> None:
        """Connect to a cluster, or start one of so many CPUs with its files in a folder."""
        options: dict[str, Any] = {}
        if address is None:
            options = {"include_dashboard": False, "object_store_memory": _STORE}
            options |= {"num_cpus": workers, "_temp_dir": folder}
        else:
            host, _, port = address.rpartition(":")
            try:
                socket.create_connection((host.strip("[]"), int(port)), _LAST).close()
            except OSError as error:
                why = error.strerror or error
                raise OperationalError(f"no Ray cluster can be reached at {address}: {why}") from error
        try:
            self._ray.init(address or "local", log_to_driver=False, logging_level=logging.CRITICAL, **options)
        except Exception as error:  # Ray's errors have no common base
            where = f"the Ray cluster at {address}" if address else "a Ray cluster on this machine"
            raise OperationalError(f"{where} cannot be used: {_last_line(error)}") from error
        self.connected = True

    async def open(self, name: str, options: ModelOptions, uses_cores: bool, workers: int | None, calls: int) -> None:
        """Begin to start the workers of a judge, for so many calls at once; other arguments as of `RayEngine`."""
        nodes = [int(node["Resources"].get("CPU", 0)) for node in self._ray.nodes() if node["Alive"]]
        cores, room = fitting([cpus for cpus in nodes if cpus], options.threads, workers, uses_cores=uses_cores)
        if cores > 1:
            options = msgspec.structs.replace(options, threads=options.threads or cores)
        places = min(room, calls)
        # What a lost worker had waits for another one, so that no loss costs more than a share.
        self._share = math.ceil(calls / places)
        self._places = [asyncio.ensure_future(self._keep(cores, name, options)) for _ in range(places)]

    async def complete(self, prompt: str, call: bytes) -> bytes:
        """Have a worker make a call, preferably the one that was asked the same prompt last, else the least loaded."""
        async with self._change:
            await self._change.wait_for(lambda: self._error or self._free())
            if self._error is not None:
                raise self._error
            worker = min(self._free(), key=lambda each: (each.prompt != prompt, each.calls))
            worker.calls = worker.calls + 1
            worker.prompt = prompt
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
        """End the workers; others may be opened then."""
        for place in self._places:
            place.cancel()
        await asyncio.gather(*self._places, return_exceptions=True)
        self._running = []
        self._losses = 0
        self._error = None

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
    return printable(str(error).strip().rpartition("\n")[2].strip()) or type(error).__name__


def serve() -> None:
    """Be the process that is connected to Ray."""
    replies = os.fdopen(os.dup(1), "wb")
    # What Ray prints is no reply.
    os.dup2(2, 1)
    import ray

    workers = Workers(ray)
    loop = asyncio.new_event_loop()

    def watch() -> None:
        # The end of the replies tells the driver; where the head does not answer, Ray ends this process.
        with replies:
            alive = True
            while alive:
                time.sleep(_POLL)
                if workers.connected:
                    here, nodes = ray.get_runtime_context().get_node_id(), ray.nodes()  # type: ignore[no-untyped-call]
                    alive = any(node["Alive"] and node["NodeID"] == here for node in nodes)

    async def answer(number: int, method: str, arguments: tuple[Any, ...]) -> None:
        try:
            value = await getattr(workers, method)(*arguments)
        except Exception as error:  # noqa: BLE001 - Ray's errors have no common base
            value = error if isinstance(error, JudgeError) else OperationalError(f"Ray failed: {_last_line(error)}")
        replies.write(pickle.dumps((number, value)))
        replies.flush()

    for job in (loop.run_forever, watch):
        threading.Thread(target=job, daemon=True).start()
    with contextlib.suppress(EOFError):
        while True:
            asyncio.run_coroutine_threadsafe(answer(*pickle.load(sys.stdin.buffer)), loop)  # noqa: S301 - the driver's
    ray.shutdown()
