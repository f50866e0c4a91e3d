"""The process that is connected to Ray, and the driver's end of it.

Ray ends its process where the head is lost, prints on it, takes its signals and reads its environment once. So the
driver does not import Ray: it starts this module as a program, and calls it over standard input and output. The process
ends with its input, and the workers end with the process.
"""

import asyncio
import contextlib
import itertools
import logging
import os
import pickle
import secrets
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from judge.ask.ray.worker import RayWorker
from judge.errors import OperationalError, UsageError
from judge.text.safe import printable

_STORE = 200_000_000
"""Bytes of shared memory of a cluster that is started here: little is kept there."""
_SIZE = 8
"""Bytes of the length before each message."""
_SHORT = 20
"""Characters of a path below which the paths of Ray's sockets, of up to 103 characters, find room."""
_LOOK = 2.0
"""Seconds between two looks at the cluster."""
_PATIENCE = 20.0
"""Seconds for which its head may not answer: it may be started again in the meantime."""
_LAST = 10.0
"""Seconds for Ray to end."""


class LostWorker(Exception):
    """A worker died, or its node did."""


def address_of(address: str | None) -> str | None:
    """The address of a cluster's head, `HOST:PORT`; None where a cluster is to be started here.

    Args:
        address: What the user said; None for what the variable RAY_ADDRESS says.

    Raises:
        UsageError: It is no such address.
    """
    address = address or os.environ.get("RAY_ADDRESS") or None
    if address is None or address == "local":
        return None
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise UsageError(
            f"{printable(address)}: expected HOST:PORT of a Ray cluster's head; judge has to run on one of its nodes"
        )
    return address


class RayClient:
    """The driver's end of the process that is connected to Ray."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._numbers = itertools.count()
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._ended: OperationalError | None = None
        self._reader = asyncio.ensure_future(self._read())

    async def call(self, method: str, *arguments: object) -> Any:
        """Call one of the process's methods; `_Client` has them.

        Raises:
            LostWorker: The worker is gone.
            OperationalError: Ray cannot be used, or the process has ended.
        """
        if self._ended is not None:
            raise self._ended
        number = next(self._numbers)
        reply = self._calls[number] = asyncio.get_running_loop().create_future()
        data = pickle.dumps((number, method, arguments))
        assert self._process.stdin is not None  # noqa: S101 - for the type checker
        self._process.stdin.write(len(data).to_bytes(_SIZE, "big") + data)
        return await reply

    async def lost(self) -> None:
        """Wait until the head of the cluster, or this node, does not answer any more."""
        alive = True
        while alive:
            await asyncio.sleep(_LOOK)
            with contextlib.suppress(LostWorker, OperationalError, TimeoutError):
                alive = False
                alive = await asyncio.wait_for(self.call("alive"), _PATIENCE)

    async def close(self) -> None:
        """Disconnect, and end a cluster that was started here."""
        assert self._process.stdin is not None  # noqa: S101 - for the type checker
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _LAST)
        except TimeoutError:
            # Without its head, Ray waits for it whenever it is told to end.
            self._process.kill()
            await self._process.wait()
        self._reader.cancel()

    async def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None  # noqa: S101 - for the type checker
        try:
            while True:
                size = int.from_bytes(await stream.readexactly(_SIZE), "big")
                number, error, value = pickle.loads(await stream.readexactly(size))  # noqa: S301 - our own process
                reply = self._calls.pop(number)
                if reply.cancelled():
                    continue
                if error is None:
                    reply.set_result(value)
                else:
                    reply.set_exception(LostWorker(error))
        except (asyncio.IncompleteReadError, OSError):
            self._ended = OperationalError("the Ray cluster is lost; the same command goes on from here")
            for reply in self._calls.values():
                if not reply.done():
                    reply.set_exception(self._ended)


@contextlib.asynccontextmanager
async def connected(address: str | None, workers: int | None) -> AsyncIterator[tuple[RayClient, list[float]]]:
    """A process that is connected to a cluster, and the CPUs of each of the cluster's nodes, until the block ends.

    Args:
        address: From `address_of`.
        workers: The CPUs of a cluster that is started here; None for all.

    Raises:
        OperationalError: The cluster cannot be reached, or started.
    """
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    if address is None:
        # Otherwise, Ray would write a token into the user's home.
        environment["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    else:
        _reach(address)
        environment["RAY_NUM_REDIS_GET_RETRIES"] = "1"
    with _folder() as folder:
        client = RayClient(
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", __name__),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=environment,
                # The signals of a terminal are for the driver.
                start_new_session=True,
            )
        )
        try:
            try:
                cpus: list[float] = await client.call("connect", address, workers, folder)
            except LostWorker as error:
                where = f"the Ray cluster at {address}" if address else "a Ray cluster on this machine"
                raise OperationalError(f"{where} cannot be used: {error}") from error
            yield client, cpus
        finally:
            await client.close()


def _reach(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _LAST).close()
    except OSError as error:
        raise OperationalError(f"no Ray cluster can be reached at {address}: {error.strerror or error}") from error


@contextlib.contextmanager
def _folder() -> Iterator[str]:
    """A folder for the files of a cluster, until the block ends."""
    home = tempfile.gettempdir()
    folder = tempfile.mkdtemp(prefix="judge-ray-", dir=home if len(home) <= _SHORT or os.name == "nt" else "/tmp")  # noqa: S108
    try:
        yield folder
    finally:
        deadline = time.monotonic() + _LAST
        while Path(folder).exists() and time.monotonic() < deadline:
            # Processes of the cluster that end may write there a little longer.
            shutil.rmtree(folder, ignore_errors=True)
            time.sleep(0.1)


class _Client:
    """What the process does for the driver."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._workers: dict[int, Any] = {}

    async def connect(self, address: str | None, workers: int | None, folder: str) -> list[float]:
        """Connect to a cluster or start one, and give the CPUs of each node that has any."""
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        if address is None:
            options |= {"include_dashboard": False, "object_store_memory": _STORE, "num_cpus": workers}
            options |= {"_temp_dir": folder}
        self._ray.init(address=address or "local", **options)
        cpus = [node["Resources"].get("CPU", 0.0) for node in self._ray.nodes() if node["Alive"]]
        return [number for number in cpus if number >= 1]

    async def alive(self) -> bool:
        """Whether the head counts this node among those that are alive."""
        here = self._ray.get_runtime_context().get_node_id()
        nodes = await asyncio.to_thread(self._ray.nodes)
        return any(node["Alive"] and node["NodeID"] == here for node in nodes)

    async def start(self, number: int, cores: int, *arguments: object) -> None:
        """Start a worker, and wait until it runs; Ray chooses its node."""
        actor = self._ray.remote(RayWorker).options(
            num_cpus=cores, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )
        self._workers[number] = actor.remote(*arguments)
        await self._workers[number].news.remote(0, False)

    async def ask(self, number: int, method: str, *arguments: object) -> Any:
        """Call a method of a worker."""
        return await getattr(self._workers[number], method).remote(*arguments)

    async def kill(self, number: int) -> None:
        """End a worker, in whatever state it is."""
        self._ray.kill(self._workers.pop(number))


async def _serve(requests: BinaryIO, replies: BinaryIO) -> None:
    import ray

    client = _Client(ray)
    running = set()

    async def answer(number: int, method: str, arguments: tuple[Any, ...]) -> None:
        reply: tuple[int, str | None, Any]
        try:
            reply = number, None, await getattr(client, method)(*arguments)
        except Exception as error:  # noqa: BLE001 - Ray's errors have no common base, and the driver may not import them
            reply = number, last_line(error), None
        data = pickle.dumps(reply)
        replies.write(len(data).to_bytes(_SIZE, "big") + data)
        replies.flush()

    while size := await asyncio.to_thread(requests.read, _SIZE):
        data = await asyncio.to_thread(requests.read, int.from_bytes(size, "big"))
        task = asyncio.ensure_future(answer(*pickle.loads(data)))  # noqa: S301 - from the driver
        running.add(task)
        task.add_done_callback(running.discard)
    ray.shutdown()


def last_line(error: BaseException) -> str:
    """What an error of Ray says in the end, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return printable(lines[-1]) if lines else type(error).__name__


def _main() -> None:
    replies = os.fdopen(os.dup(1), "wb")
    # What Ray prints is no reply.
    os.dup2(2, 1)
    asyncio.run(_serve(sys.stdin.buffer, replies))


if __name__ == "__main__":
    _main()
