"""The driver's end of a Ray run: the ordinary loop, and a judge whose calls are made on a cluster."""

import asyncio
import contextlib
import itertools
import os
import pickle
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

from judge.ask.loop import assess
from judge.ask.progress import Progress
from judge.ask.settings import Settings
from judge.ask.stored_results import StoredResults
from judge.ask.tasks import Task
from judge.errors import JudgeError, OperationalError, StructureUnsupported
from judge.models.backends import open_model
from judge.models.call_parts import CallParts
from judge.models.journal_rows import request_digest
from judge.models.model import Model, ModelOptions, Unfinished
from judge.models.records import Completion, Request

_FACTS = ("name", "forms", "free", "counts_longest", "divides", "check", "parameters", "price", "sent")
"""What the loop reads of a judge beside what calls bring."""
_SHORT = 20
"""Characters of a path below which the paths of Ray's sockets, of up to 103 characters, find room."""
_LAST = 10
"""Seconds for a head to answer, and for Ray to end."""
_PATIENCE = 20
"""Seconds for which the head may not answer: it may be started again in the meantime."""


class RayEngine:
    """Asks judges on one Ray cluster, through a process that is started with the first call.

    Args:
        address: `HOST:PORT` of the cluster's head; None to start a cluster on this machine.
        workers: Workers at once; None for one per CPU, or one per node where the judge computes on all cores.
        names: The models, `backend/model`, as the user gave them.
        options: How they are called.
    """

    def __init__(self, address: str | None, workers: int | None, names: Sequence[str], options: ModelOptions) -> None:
        self._address, self._workers, self._options = address, workers, options
        self._names = {open_model(name, options).name: name for name in names}
        self._process: Any = None
        self._folder = Path()
        self._numbers = itertools.count()
        self._calls: dict[int, Future[Any]] = {}
        self._lost = False

    def assess(
        self, wanted: Sequence[Task], model: Model, *place: Any, settings: Settings, report: Any = None, **more: Any
    ) -> StoredResults:
        """Run the loop here; arguments, results and errors are those of the loop's `assess`."""
        last = Progress(0, len(wanted), 0, 0, 0.0)

        def noted(progress: Progress) -> None:
            nonlocal last
            last = progress
            if report is not None:
                report(progress)

        async def open_workers() -> None:
            if self._process is None:
                await asyncio.to_thread(self._start)
            noted(last._replace(limited="waiting for CPUs of the cluster"))
            judge, calls = (self._names[model.name], self._options), min(settings.concurrency, len(wanted))
            await asyncio.wrap_future(self.call("open", *judge, model.uses_cores, self._workers, calls))

        there = RayModel(model, self.call, open_workers)
        return assess(wanted, there, *place, settings=settings, report=noted, **more)

    def call(self, method: str, *arguments: object) -> "Future[Any]":
        """Call a method of `Workers` in the process; the future has its result, or the JudgeError that it raised."""
        number, reply = next(self._numbers), Future[Any]()
        self._calls[number] = reply
        with contextlib.suppress(OSError):
            self._send((number, method, arguments))
        if self._lost:
            self._fail()
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
        """Connect to the cluster, or start it.

        Raises:
            OperationalError: The cluster cannot be reached, or started.
        """
        environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
        environment["RAY_gcs_rpc_server_reconnect_timeout_s"] = str(_PATIENCE)
        # Otherwise, what is left to do after the end of Ray would start it again.
        environment["RAY_ENABLE_AUTO_CONNECT"] = "0"
        if self._address is None:
            # Otherwise, Ray would write a token into the user's home.
            environment["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        else:
            _reach(self._address)
            environment["RAY_NUM_REDIS_GET_RETRIES"] = "1"
        home = tempfile.gettempdir()
        folder = tempfile.mkdtemp(prefix="judge-ray-", dir=home if len(home) <= _SHORT or os.name == "nt" else "/tmp")  # noqa: S108
        self._folder = Path(folder)
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from judge.ask.ray.cluster import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            # The signals of a terminal are for the driver.
            start_new_session=True,
        )
        try:
            self._send((self._address, self._workers, folder))
            error = pickle.load(self._process.stdout)  # noqa: S301 - our own process
        except (EOFError, OSError):
            error = "Ray ended its process"
        if error:
            where = f"the Ray cluster at {self._address}" if self._address else "a Ray cluster on this machine"
            raise OperationalError(f"{where} cannot be used: {error}")
        threading.Thread(target=self._read, daemon=True).start()

    def _send(self, message: object) -> None:
        self._process.stdin.write(pickle.dumps(message))
        self._process.stdin.flush()

    def _read(self) -> None:
        """Hand out the replies of the process until it ends; a thread does it."""
        with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
            while True:
                number, value = pickle.load(self._process.stdout)  # noqa: S301 - our own process
                reply = self._calls.pop(number)
                with contextlib.suppress(InvalidStateError):
                    if isinstance(value, JudgeError):
                        reply.set_exception(value)
                    else:
                        reply.set_result(value)
        self._lost = True
        self._fail()

    def _fail(self) -> None:
        error = OperationalError("the Ray cluster does not answer; the same command goes on from here")
        for number in list(self._calls):
            with contextlib.suppress(InvalidStateError, KeyError):
                self._calls.pop(number).set_exception(error)


class RayModel(Model):
    """A judge whose calls workers make; everything else is as of the same judge here.

    Args:
        model: The judge here.
        call: `RayEngine.call`.
        open_workers: A coroutine function that begins to start the workers.
    """

    def __init__(self, model: Model, call: Callable[..., "Future[Any]"], open_workers: Callable[[], Any]) -> None:
        for fact in _FACTS:
            setattr(self, fact, getattr(model, fact))
        self._model, self._call, self._open_workers = model, call, open_workers
        self._opening: asyncio.Future[None] | None = None
        self._parts: CallParts | None = None
        self._unfinished = Unfinished()

    @property
    def unfinished(self) -> Unfinished:
        """What all workers paid for without a completion."""
        return self._unfinished

    def keep(self, parts: CallParts) -> None:
        """Keep the parts of a call that fails; where its worker is lost, the call is repeated whole."""
        self._parts = parts if self.divides else None

    def stop(self) -> None:
        """Give up the calls that wait for a worker."""
        if self._opening is not None:
            self._opening.add_done_callback(lambda _: self._is_open() and self._call("stop"))

    async def complete(self, request: Request) -> Completion:
        """Have a worker ask once.

        Raises:
            CallError: This call failed; TransientError if asking again may help, as where the worker is lost.
            OperationalError: No call can succeed until the user fixes something, or the cluster is lost.
        """
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open_workers())
        await asyncio.shield(self._opening)
        digest, parts = "", None
        if self._parts is not None:
            digest = request_digest(self.name, self.parameters(request), request)
            parts = await asyncio.to_thread(self._parts.read, digest)
        call = pickle.dumps((request, digest, parts))
        reply = await asyncio.wrap_future(self._call("complete", f"{request.turn_id} {request.criterion}", call))
        result, forms, self.limits, unfinished, parts = pickle.loads(reply)  # noqa: S301 - from a worker
        self._unfinished = self._unfinished.plus(unfinished)
        if isinstance(result, Completion):
            return result
        if isinstance(result, StructureUnsupported):
            self.forms = forms
        if self._parts is not None and parts is not None:
            await asyncio.to_thread(self._parts.write, digest, parts)
        raise result

    async def aclose(self) -> None:
        """End the workers."""
        if self._is_open():
            await asyncio.wrap_future(self._call("close"))
        await self._model.aclose()

    def _is_open(self) -> bool:
        opening = self._opening
        return opening is not None and opening.done() and not opening.cancelled() and opening.exception() is None


def _reach(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _LAST).close()
    except OSError as error:
        raise OperationalError(f"no Ray cluster can be reached at {address}: {error.strerror or error}") from error
