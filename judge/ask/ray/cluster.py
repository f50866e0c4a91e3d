"""A Ray cluster: the one that runs at an address, or one on this machine for the time of a job."""

import asyncio
import atexit
import contextlib
import importlib
import logging
import os
import platform
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType, TracebackType
from typing import Any, Self

import msgspec

from judge.ask.ray.address import address_of
from judge.ask.ray.folder import OwnFolder
from judge.ask.ray.head import HeadWatch, leave, reach
from judge.ask.ray.messages import News, ToWorker, Versions
from judge.ask.ray.variables import AUTH_MODE, variables
from judge.ask.ray.worker import RayWorker
from judge.ask.settings import Settings
from judge.errors import OperationalError
from judge.files.bundle import __version__
from judge.models.backends import open_model
from judge.models.model import Model, ModelOptions
from judge.text.safe import printable

_STORE = 200_000_000
"""Bytes of shared memory of a cluster of our own: little is kept there."""


class LostWorker(Exception):
    """A worker died, or its node did."""


class RayCluster:
    """The workers of one job.

    Args:
        address: As `address_of` takes it.
        workers: Workers at once; None for one per CPU, or one per node where the judge computes on all cores.
        names: The models, `backend/model`, as the user gave them.
        options: How they are called.
    """

    def __init__(self, address: str | None, workers: int | None, names: Sequence[str], options: ModelOptions) -> None:
        self._address = address_of(address)
        self._workers = workers
        self._names = {open_model(name, options).name: name for name in names} if len(names) > 1 else {}
        self._name = names[0]
        self._options = options
        self._ray: ModuleType | None = None
        self._lost = False
        self._ended = False
        self._ends = contextlib.ExitStack()
        """What the end of the job takes back; nothing where the caller has Ray running."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.close()

    def watch(self, end: Callable[[OperationalError], object], cancel: Callable[[], object]) -> HeadWatch:
        """Watch head and node as long as the block runs, in the event loop that runs now.

        Args:
            end: Called in the loop where one of them does not answer.
            cancel: Called in the loop if it goes on nevertheless.
        """
        call = asyncio.get_running_loop().call_soon_threadsafe

        def lose(error: OperationalError) -> None:
            self._lost = True
            call(end, error)

        return HeadWatch(self._head(), self._node(), (lose, lambda error: call(cancel)))

    def room(self, model: Model) -> int:
        """Connect, and find out how many workers may ask a judge at once.

        Raises:
            UsageError: The address is none of a cluster.
            OperationalError: The cluster cannot be reached, or started.
        """
        self._connected()
        cores = self._cores(model)
        return self._workers or max(1, sum(int(cpus // cores) for cpus in self._cpus()))

    def start(self, model: Model, settings: Settings) -> "WorkerHandle":
        """Start a worker; Ray chooses its node."""
        ray = self._connected()
        cores = self._cores(model)
        options = self._options
        if cores > 1 and options.threads is None:
            options = msgspec.structs.replace(options, threads=cores)
        actor = ray.remote(RayWorker).options(
            num_cpus=cores, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )
        return WorkerHandle(ray, actor.remote(self._names.get(model.name, self._name), options, settings))

    def _cores(self, model: Model) -> int:
        """CPUs of a worker: one for each thread as far as there are so many, or those of the smallest node."""
        if self._options.threads is not None:
            # No node has more to give, and so many workers have to fit.
            most = min(self._cpus(), default=1.0)
            if self._workers is not None:
                most = min(most, sum(self._cpus()) // self._workers)
            return max(1, min(self._options.threads, int(most)))
        if not model.uses_cores:
            return 1
        return max(1, int(min(self._cpus(), default=1)))

    def _cpus(self) -> list[float]:
        """The CPUs of each node that has any."""
        nodes = self._connected().nodes()
        cpus = [node["Resources"].get("CPU", 0.0) for node in nodes if node["Alive"]]
        return [number for number in cpus if number >= 1]

    def _hint(self) -> str:
        """What Ray does not say where a head wants a token."""
        if self._address is None or AUTH_MODE in os.environ:
            return ""
        return f"; if the cluster has a token, set {AUTH_MODE}=token and give the token here as on its nodes"

    def _head(self) -> str:
        return str(self._connected().get_runtime_context().gcs_address)

    def _node(self) -> str:
        """The address of the node on which this process runs."""
        ray = self._connected()
        here = ray.get_runtime_context().get_node_id()
        (node,) = (node for node in ray.nodes() if node["NodeID"] == here)
        return f"{node['NodeManagerAddress']}:{node['NodeManagerPort']}"

    def _connected(self) -> ModuleType:
        if self._ray is None:
            ray = sys.modules.get("ray")
            self._ray = ray if ray is not None and ray.is_initialized() else self._begin()
        return self._ray

    def _begin(self) -> ModuleType:
        """Connect; what Ray needs for that is there until the job ends, or this fails."""
        with contextlib.ExitStack() as ends:
            ends.callback(self._forget_token)
            ends.enter_context(variables(own=self._address is None))
            ray = importlib.import_module("ray")
            _read_token()
            quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
            if self._address is not None:
                reach(self._address)
            with _same_signals(), _no_listener():
                try:
                    if self._address is None:
                        folder = OwnFolder()
                        ends.callback(folder.remove)
                        quiet |= {"include_dashboard": False, "object_store_memory": _STORE, "num_cpus": self._workers}
                        quiet |= {"_temp_dir": str(folder.path)}
                    ray.init(address=self._address or "local", **quiet)
                except Exception as error:
                    # Ray has no common base for what can go wrong here.
                    where = f"the Ray cluster at {self._address}" if self._address else "a Ray cluster on this machine"
                    raise OperationalError(f"{where} cannot be used: {last_line(error)}{self._hint()}") from error
            ends.callback(self._end, ray)
            self._ends = ends.pop_all()
        return ray

    def _end(self, ray: ModuleType) -> None:
        if self._lost:
            # Without a head, Ray waits for it whenever it is told to end, and then breaks the end of the process.
            atexit.unregister(ray.shutdown)
            atexit.register(leave)
        else:
            ray.shutdown()
            self._ended = True

    def _forget_token(self) -> None:
        """Have Ray forget the token of the job, so that it reads that of the caller."""
        # Without its token, a thread of Ray that still runs would end the process, in this mode a late one too.
        if self._ended and os.environ.get(AUTH_MODE, "").lower() != "token":
            _read_token()


class WorkerHandle:
    """The driver's end of a worker."""

    def __init__(self, ray: ModuleType, actor: Any) -> None:
        self._ray = ray
        self._actor = actor
        self._told: list[ToWorker] = []

    async def begin(self) -> None:
        """Wait until the worker runs.

        Raises:
            LostWorker: It does not.
            OperationalError: Its node has another version of judge or Python.
        """
        here = Versions(__version__, platform.python_version())
        there: Versions = await self._answer(self._actor.versions.remote())
        if there != here:
            raise OperationalError(
                f"a Ray node has judge {there.judge} and Python {there.python}, this process judge {here.judge} and "
                f"Python {here.python}: install the same versions on every node"
            )

    def tell(self, message: ToWorker) -> None:
        """Say something to the worker; what is said at once is sent at once."""
        self._told.append(message)
        if len(self._told) == 1:
            asyncio.get_running_loop().call_soon(self._send)

    async def hear(self) -> News:
        """What the worker has to say.

        Raises:
            LostWorker: It is gone.
        """
        news: News = await self._answer(self._actor.hear.remote())
        return news

    def kill(self) -> None:
        """End the worker, in whatever state it is."""
        # It may be dead, and so may Ray.
        with contextlib.suppress(Exception):
            self._ray.kill(self._actor)

    def _send(self) -> None:
        told, self._told = self._told, []
        # A worker that is gone is found out by `hear`.
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._actor.tell.remote(told)

    async def _answer(self, reference: Any) -> Any:
        try:
            return await reference
        except self._ray.exceptions.RayError as error:
            raise LostWorker(last_line(error)) from error


def last_line(error: BaseException) -> str:
    """What an error of Ray says in the end, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return printable(lines[-1]) if lines else type(error).__name__


@contextlib.contextmanager
def _same_signals() -> Iterator[None]:
    """Take back the handler that Ray sets: a job has its own way to end."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        # Outside the main thread, Ray sets none.
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _no_listener() -> Iterator[None]:
    """Keep Ray from printing on stdout what goes wrong at a node: none of its options does, and stdout is ours."""
    names: dict[str, Any] = {}
    with contextlib.suppress(ImportError):
        names = vars(importlib.import_module("ray._private.worker"))
    listener = names.get("listen_error_messages")
    # Nothing to replace where another version of Ray has another way to listen.
    if listener is None:
        yield
        return
    names["listen_error_messages"] = lambda worker, stopped: None
    try:
        yield
    finally:
        names["listen_error_messages"] = listener


def _read_token() -> None:
    """Have Ray read anew whether a cluster has a token and which: it does so once, and a process may have two jobs."""
    # A version of Ray without tokens has nothing to read.
    with contextlib.suppress(ImportError, AttributeError):
        inner = importlib.import_module("ray._raylet")
        inner.Config.initialize("")
        inner.AuthenticationTokenLoader.instance().reset_cache()
