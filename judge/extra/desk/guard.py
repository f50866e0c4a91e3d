"""Who may see a desk: whoever has the link, through pages of the desk alone.

A link holds the token of a seat. The first visit turns it into a cookie that no script can read and that no page of
another site can make a browser send. Every seat has a path and a cookie of its own, so that two assessors who share a
browser cannot label under each other's name.
"""

import hashlib
import hmac
import ipaddress
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from judge.extra.desk.pages import ASSETS, asset_file, plain_page

LOCAL = ("localhost", "127.0.0.1", "::1")
"""The names of this machine to itself."""
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    # With `no-referrer`, browsers would hide the origin of a form too, which is checked below.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_TOKEN = re.compile("[0-9a-f]{32}")
_SEAT = re.compile("[A-Za-z0-9_-]{1,40}")


class Seat(NamedTuple):
    """A place at a desk for one person."""

    path: str
    """The first part of its addresses: letters, digits, `_` and `-`."""
    name: str
    """Whose it is."""
    token: str
    """The secret in its link."""

    @property
    def form_token(self) -> str:
        """What every form of this seat sends back; a page of another site cannot know it."""
        return hmac.new(self.token.encode(), b"form", hashlib.sha256).hexdigest()


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_hex(16)


def checked_token(token: object) -> str:
    """A token that was kept, as `new_token` made it.

    Raises:
        ValueError: It is none, so that a guess might open the seat.
    """
    if not (isinstance(token, str) and _TOKEN.fullmatch(token)):
        raise ValueError("the secret of a link is damaged")
    return token


class Guard:
    """Lets in who may be here, and keeps every answer inside the browser window that asked for it.

    `scope["seat"]` of the guarded application is the seat of the visitor. `hosts` are further names by which browsers
    may address the desk. An IP address may always be used: a foreign site can make its own name lead here, but not a
    number. Each port needs a cookie of its own.
    """

    def __init__(self, app: ASGIApp, seats: Iterable[Seat], hosts: Iterable[str] = (), cookie: str = "judge") -> None:
        self._app = app
        self.seats = tuple(seats)
        self._seats: Mapping[str, Seat] = {seat.path: seat for seat in self.seats}
        self._hosts = frozenset(name.lower() for name in (*LOCAL, *hosts))
        self._cookie = cookie
        if wrong := [path for path in self._seats if not _SEAT.fullmatch(path) or path == ASSETS]:
            raise ValueError(f"no paths of seats: {wrong}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            raise RuntimeError(f"a desk answers http, not {scope['type']}")

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._answer(request := Request(scope))
        if answer is None:
            scope["seat"] = self._seats.get(_first(request))
        await (answer or self._app)(scope, receive, secured)

    def _answer(self, request: Request) -> Response | None:
        """The answer to a request that is not handed on."""
        if not self._addressed(request.headers.get("host", "")):
            return plain_page("Not this address", "A desk answers under the address in its link only.", 403)
        first = _first(request)
        if first == ASSETS:
            file = asset_file(request.url.path.removeprefix(f"/{ASSETS}/"))
            return file or plain_page("No such file", "The desk has no file of this name.", 404)
        seat = self._seats.get(first)
        given = request.query_params.get("token")
        if seat is None or not same_secret(given or request.cookies.get(self._cookie), seat.token):
            return plain_page(
                "This desk is not open to you",
                "Open it with the whole link that you were given: the part after “token=” is what lets you in.",
                403,
            )
        if given is not None:
            return self._admit(request, seat)
        if request.method not in ("GET", "HEAD") and not _from_here(request):
            return plain_page("Not from this desk", "Another page has sent this form. Nothing was changed.", 403)
        return None

    def _addressed(self, host: str) -> bool:
        """Whether the name in a request is one of the desk's; the port may be another, as behind a tunnel."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in self._hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _admit(self, request: Request, seat: Seat) -> Response:
        """Take the token out of the address bar, and keep it in a cookie."""
        path = quote(request.url.path)
        if request.headers.get("sec-fetch-site") == "cross-site":
            # A browser that comes from another site, such as a web mailer, sends the cookie only from a page of ours.
            answer: Response = plain_page("Your desk", "You have been let in.", 200, onward=path)
        else:
            answer = RedirectResponse(path, 303)
        answer.set_cookie(self._cookie, seat.token, path=f"/{seat.path}/", httponly=True, samesite="strict")
        return answer


def _first(request: Request) -> str:
    return request.url.path.split("/", 2)[1]


def same_secret(given: str | None, token: str) -> bool:
    """Whether a secret is the right one, in a time that tells nothing about it."""
    return given is not None and hmac.compare_digest(given.encode(), token.encode())


def _from_here(request: Request) -> bool:
    """Whether a page of the desk sent a form, as far as the browser tells; the form's own token is checked as well."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    if site not in (None, "same-origin"):
        return False
    try:
        return origin is None or urlsplit(origin).netloc == request.headers.get("host")
    except ValueError:
        return False
