"""Servers of this process: one that answers with what a test makes of a request, and what others are made of."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class Handler(BaseHTTPRequestHandler):
    """Sends JSON or bytes, without any header that a test does not name."""

    def say(self, reply: object, status: int = 200, **headers: str) -> None:
        content = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        self.send_response_only(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def listening(handler: type[Handler]) -> Iterator[str]:
    """The address of a server in a thread while the context lasts."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        # A client that has heard enough hangs up.
        server.handle_error = lambda request, address: None  # type: ignore[method-assign]
        # Every test would wait for half a second, in which a server looks by default whether it is at its end.
        threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


class ScoreServer:
    """Answers every request with what a function makes of it, and keeps what it was asked."""

    def __init__(self, answer: Callable[[Any], tuple[int, Any]], ends: contextlib.ExitStack) -> None:
        asked: list[Any] = []
        self.asked = asked

        class Answer(Handler):
            def do_POST(self) -> None:
                body = json.loads(self.body())
                asked.append((self.path, body))
                status, reply = answer(body)
                self.say(reply, status)

        self.url = ends.enter_context(listening(Answer))


Serve = Callable[[Callable[[Any], tuple[int, Any]]], ScoreServer]
"""Starts one; the fixture `serve` stops them."""


@pytest.fixture
def serve() -> Iterator[Serve]:
    with contextlib.ExitStack() as ends:
        yield lambda answer: ScoreServer(answer, ends)
