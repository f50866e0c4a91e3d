"""A server that answers with what a test makes of a request, and keeps what it was asked."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class ScoreServer:
    """Answers every request with what a function makes of it, and keeps what it was asked."""

    def __init__(self, answer: Callable[[Any], tuple[int, Any]]) -> None:
        asked: list[Any] = []
        self.asked = asked

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                asked.append((self.path, body))
                status, reply = answer(body)
                sent = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


Serve = Callable[[Callable[[Any], tuple[int, Any]]], ScoreServer]
"""Starts one; the fixture `serve` of tests/judges stops them."""


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Any], tuple[int, Any]]], ScoreServer]]:
    servers: list[ScoreServer] = []

    def start(answer: Callable[[Any], tuple[int, Any]]) -> ScoreServer:
        servers.append(ScoreServer(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
