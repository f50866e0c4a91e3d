"""A desk at an address of this machine, until it is told to stop."""

import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, NamedTuple

import uvicorn
from pydantic import Field
from starlette.types import ASGIApp

from judge.ask.own_loop import finish
from judge.errors import OperationalError, UsageError
from judge.extra.desk.app import LOCAL, Seat
from judge.io.plan import Option, Options

PORT = 8765
"""The port of a desk, if no other is asked for."""
_PATIENCE = 2
"""Seconds that answers under way may take at the end."""


class DeskAddress(Options, section="address"):
    """Where a desk answers."""

    host: Annotated[str, Option(metavar="NAME")] = "127.0.0.1"
    """Network interface to answer at (default 127.0.0.1: this machine alone)."""
    port: Annotated[int, Field(ge=0, le=65535), Option(metavar="N")] = PORT
    """Port to answer at; 0 takes a free one."""


class Listener(NamedTuple):
    """An address at which a desk will answer."""

    socket: socket.socket
    host: str
    port: int

    @property
    def local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in LOCAL

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names by which browsers may address it."""
        return (self.host,) if self.local else (self.host, socket.gethostname(), socket.getfqdn())

    def links(self, seats: Sequence[Seat]) -> tuple[tuple[str, str], ...]:
        """Whose each seat is, and the link that opens it."""
        host = socket.gethostname() if self.host in ("", "0.0.0.0", "::") else self.host  # noqa: S104 - a comparison
        host = f"[{host}]" if ":" in host else host
        return tuple((seat.name, f"http://{host}:{self.port}/{seat.path}/?token={seat.token}") for seat in seats)


def listen(host: str = "127.0.0.1", port: int = PORT) -> Listener:
    """Take an address."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--host {host}: no address of this machine") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # Listened to at once: until then, a second desk could take the port as well.
        listener.listen()
    except OSError as error:
        listener.close()
        raise OperationalError(
            f"{host}:{port}: cannot be used: {error.strerror}; stop what answers there, or take another --port "
            "(0 takes a free one)"
        ) from error
    return Listener(listener, host, int(listener.getsockname()[1]))


def serve_desk(app: ASGIApp, listener: Listener, ready: Callable[[], None] = lambda: None) -> None:
    """Answer at an address until Ctrl-C or a signal to end, then finish what is under way."""
    config = uvicorn.Config(
        app, http="h11", ws="none", lifespan="off", log_config=None, log_level="critical", access_log=False,
        server_header=False, proxy_headers=False, timeout_graceful_shutdown=_PATIENCE,
    )  # fmt: skip
    server = _Server(config)

    async def job() -> None:
        ready()
        await server.serve(sockets=[listener.socket])

    def drain() -> None:
        server.should_exit = True

    with listener.socket, contextlib.suppress(KeyboardInterrupt):
        finish(job, drain)


class _Server(uvicorn.Server):
    """A server that leaves the signals to the loop around it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing to capture."""
        yield
