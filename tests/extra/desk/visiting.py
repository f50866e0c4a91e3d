"""Visits to a desk without a server: requests as a browser sends them, to the application itself."""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import httpx
import pytest
from starlette.types import ASGIApp

from judge.extra.desk.app import Guard, Listener, listen

ADDRESS = "http://127.0.0.1:8765"


class Visitor:
    """A browser with its cookies; redirects are not followed."""

    def __init__(self, app: ASGIApp, address: str = ADDRESS) -> None:
        self._runner = asyncio.Runner()
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=address)
        self.address = address

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self._runner.run(self._client.get(path, headers=headers))

    def enter(self, path: str, token: str) -> httpx.Response:
        """Open the link of a seat, and then the page that it leads to."""
        assert self.get(f"{path}?token={token}").status_code == 303
        return self.get(path)

    def send(self, path: str, fields: dict[str, str], **headers: str) -> httpx.Response:
        """Send a form with these fields and no other."""
        headers = {"origin": self.address, "sec-fetch-site": "same-origin"} | headers
        return self._runner.run(self._client.post(path, data=fields, headers=headers))

    @contextmanager
    def meanwhile(self, page: httpx.Response, path: str, **fields: str) -> Iterator["asyncio.Task[httpx.Response]"]:
        """A form of a page on its way while other requests are made; it has its answer at the end."""
        sending = self._runner.get_loop().create_task(self._client.post(path, data=_token(page) | fields))
        yield sending
        self._runner.get_loop().run_until_complete(sending)

    def submit(self, page: httpx.Response, path: str, **fields: str) -> httpx.Response:
        """Send a form of a page, with the page's own token."""
        return self.send(path, _token(page) | fields)


def _token(page: httpx.Response) -> dict[str, str]:
    (token,) = set(re.findall(r'name="form_token" value="(\w+)"', page.text))
    return {"form_token": token}


def label_at_once(patch: pytest.MonkeyPatch) -> None:
    """Let every desk that is served be one at which all assessors give all their labels, and which then ends."""

    def serve(app: Guard, listener: Listener, ready: Callable[[], None]) -> None:
        with listener.socket:
            ready()
            label_all(app)

    # Any port, because another test may have a desk as well.
    patch.setattr("judge.extra.desk.assess.listen", lambda host, port: listen(host, 0))
    patch.setattr("judge.extra.desk.assess.serve_desk", serve)


def label_all(app: Guard) -> None:
    """Give every label that an assess desk asks for, as each of its assessors: the first level of the rubric."""
    with Visitor(app) as visitor:
        for seat in app.seats.values():
            home = f"/{seat.path}/"
            assert visitor.get(f"{home}?token={seat.token}").status_code == 303
            while place := visitor.get(home).headers.get("location"):
                page = visitor.get(place)
                visitor.submit(page, place, grade=re.findall('name="grade" value="([^"]+)"', page.text)[0], comment="")
