"""The mock server as a real process on this machine, for any test or measurement that needs an endpoint."""

import asyncio
import contextlib
import http.client
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from judge.judges.model import Model
from judge.judges.records import AnswerForm, Completion, Message, Request
from judge.records import Level as Level
from judge.records import Scale as Scale
from tests.build import scale
from tests.time_limit import PATIENCE

SCALE = scale()
SCRIPT = Path(__file__).with_name("server.py")


def ask(form: AnswerForm = "text", text: str = "Is it grounded?", sentences: int = 0, **changed: Any) -> Request:
    """A request with one system and one user message; `changed` replaces fields."""
    messages = (Message("system", "You grade responses."), Message("user", text))
    asked = Request(
        "R00001", "1-1_1", "groundedness", form, messages, SCALE, SCALE.labels, sentences, response="", passages=()
    )
    return msgspec.structs.replace(asked, **changed)


class Mock:
    """A running mock server, spoken to over its own connection."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.base_url = f"{self.url}/v1"

    def http(self, method: str, path: str, document: object = None) -> tuple[int, Any]:
        """Status and decoded body of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            body = None if document is None else json.dumps(document)
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def config(self, **options: object) -> None:
        """Change options of the server; see `Options` in server.py."""
        status, answer = self.http("POST", "/__config", options)
        assert status == 200, answer

    def script(self, *steps: dict[str, Any]) -> None:
        """Answers for the next requests: any of status, headers, body, delay, drop."""
        self.config(script=list(steps))

    def reset(self) -> None:
        """Back to the first options and to no counts."""
        self.http("POST", "/__reset")

    def stats(self) -> dict[str, Any]:
        """What the server counted since the last reset."""
        counted: dict[str, Any] = self.http("GET", "/__stats")[1]
        return counted

    def paid_per_item(self) -> dict[str, int]:
        """Paid calls by the digest of the request's messages."""
        paid: dict[str, int] = self.http("GET", "/__items")[1]
        return paid

    def last(self) -> tuple[dict[str, str], dict[str, Any]]:
        """Headers (names in lower case) and body of the last completion request."""
        seen = self.http("GET", "/__last")[1]
        lines = [line.partition(":") for line in seen["head"].split("\r\n")[1:] if line]
        headers = {name.lower(): value.strip() for name, _, value in lines}
        return headers, json.loads(seen["body"])


@contextlib.contextmanager
def start_mock(*arguments: str) -> Iterator[Mock]:
    """A mock server in its own process, ended with the block; `arguments` as on its command line."""
    process = subprocess.Popen(
        [sys.executable, "-E", "-s", str(SCRIPT), "--port", "0", *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield Mock(int(process.stdout.readline()))
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)
        process.stdout.close()


def complete(model: Model, request: Request) -> Completion:
    """Ask a judge once, and close it."""
    completion: Completion = used(model, lambda model: model.complete(request))
    return completion


def used(judge: Any, work: Callable[[Any], Awaitable[Any]]) -> Any:
    """What comes of work with a judge or a scorer, which is closed after it."""

    async def whole() -> Any:
        try:
            return await work(judge)
        finally:
            await judge.aclose()

    return asyncio.run(whole())


def wait_for_paid(mock: Mock, process: subprocess.Popen[Any], least: int) -> None:
    """Return once a process that asks the server has paid for so many calls."""
    deadline = time.monotonic() + PATIENCE
    while (paid := sum(mock.paid_per_item().values())) < least:
        assert process.poll() is None, "it ended before it could be stopped"
        if time.monotonic() > deadline:
            # It would go on paying in the tests that follow.
            process.kill()
            pytest.fail(f"{paid} calls after {PATIENCE:.0f} seconds")
        time.sleep(0.01)
