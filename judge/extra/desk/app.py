"""The desk as an application at an address: pages, actions that forms ask for, and who may see them.

Whoever has the link is let in, through pages of the desk alone. A link holds the token of a seat. The first visit turns
it into a cookie that no script can read and that no page of another site can make a browser send. Every seat has a path
and a cookie of its own, so that two assessors who share a browser cannot label under each other's name.

An action is carried out only for a form of the desk, and a failure becomes a page that says what was not done.
"""

import contextlib
import hashlib
import hmac
import ipaddress
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import parse_qsl, quote, urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from judge.ask.running import finish
from judge.errors import JudgeError, OperationalError, UsageError
from judge.extra.desk.markup import bold_markup, light_markup
from judge.io.files import sha256
from judge.io.page import look, render_page

TEMPLATES = Path(__file__).parent / "templates"
ASSETS = "assets"
"""The first part of the addresses of style sheets, scripts and pictures; these are open to everybody."""
_KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def desk_page(template: str, status: int = 200, /, **values: Any) -> Response:
    """A page of a desk, from a template that extends `desk.html`; every inserted value is escaped."""
    given = {"asset": asset_address, "light": light_markup, "bold": bold_markup}
    return HTMLResponse(render_page(TEMPLATES, template, **given, **values), status)


def plain_page(heading: str, text: str, status: int, onward: str | None = None) -> Response:
    """A page with one message, and a link that it follows by itself after a moment."""
    return desk_page("plain.html", status, heading=heading, text=text, onward=onward)


def asset_address(name: str) -> str:
    """The address of a style sheet, a script or a picture; another content has another address."""
    return f"/{ASSETS}/{name}?{sha256(_assets()[name])[:12]}"


@cache
def _assets() -> Mapping[str, bytes]:
    """The style sheets, the scripts and the pictures by name."""
    own = {path.name: path.read_bytes() for path in TEMPLATES.iterdir() if path.suffix in _KINDS}
    return {"base.css": look().encode(), **own}


def whole_number(text: str | None) -> int | None:
    """A whole number in an address or a field, of at most eight digits; None for anything else.

    >>> whole_number("07"), whole_number("-1"), whole_number("٣"), whole_number(None)
    (7, None, None, None)
    """
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) <= 8 else None


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
    """A token that was kept, as `new_token` made it."""
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
        self.seats: Mapping[str, Seat] = {seat.path: seat for seat in seats}
        self._hosts = frozenset(name.lower() for name in (*LOCAL, *hosts))
        self._cookie = cookie
        if wrong := [path for path in self.seats if not _SEAT.fullmatch(path) or path == ASSETS]:
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
            scope["seat"] = self.seats.get(_first(request))
        await (answer or self._app)(scope, receive, secured)

    def _answer(self, request: Request) -> Response | None:
        if not self._addressed(request.headers.get("host", "")):
            return plain_page("Not this address", "A desk answers under the address in its link only.", 403)
        if len(request.url.path) > LONGEST_PATH:
            return plain_page("No such page", f"The address is longer than {LONGEST_PATH:,} characters.", 414)
        first = _first(request)
        if first == ASSETS:
            name = request.url.path.removeprefix(f"/{ASSETS}/")
            if name not in _assets():
                return plain_page("No such file", "The desk has no file of this name.", 404)
            kept = {"cache-control": "max-age=3600"}
            return Response(_assets()[name], media_type=_KINDS[Path(name).suffix], headers=kept)
        seat = self.seats.get(first)
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
            parts = urlsplit(f"//{host}")
            name = parts.hostname or ""
            # A port that is none is a ValueError.
            if parts.netloc != host or "@" in host or parts.port == 0:
                return False
            return name in self._hosts or bool(ipaddress.ip_address(name))
        except ValueError:
            return False

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


class Busy(OperationalError):
    """The store of a desk cannot be written now; trying again may help."""


def same_secret(given: str | None, token: str) -> bool:
    """Whether a secret is the right one, in a time that tells nothing about it."""
    return given is not None and hmac.compare_digest(given.encode(), token.encode())


def _from_here(request: Request) -> bool:
    """Whether a page of the desk sent a form, as far as the browser tells; the form's own token is checked as well."""
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site")
    if site not in (None, "same-origin"):
        return False
    try:
        return origin is None or urlsplit(origin).netloc == request.headers.get("host")
    except ValueError:
        return False


LONGEST_PATH = 1000
"""Characters of an address, without what follows its question mark."""
LARGEST_FORM = 1 << 20
"""Bytes of a form."""
MOST_FIELDS = 100


class Visit:
    """One request by somebody who has a seat."""

    def __init__(self, request: Request, form: Mapping[str, str]) -> None:
        self.seat: Seat = request.scope["seat"]
        self.given: Mapping[str, Any] = request.path_params
        """The variable parts of the path."""
        self.query: Mapping[str, str] = request.query_params
        self.form = form
        """The fields of the form; empty for a page."""

    def page(self, template: str, status: int = 200, /, **values: Any) -> Response:
        """A page for this seat; a form in it has the hidden field `form_token`."""
        home = self.address("/")
        token = self.seat.form_token
        return desk_page(template, status, seat=self.seat, home=home, form_token=token, **values)

    def go(self, path: str) -> Response:
        """Lead the browser to a page of this seat."""
        return RedirectResponse(self.address(path), 303)

    def address(self, path: str) -> str:
        """The address of a page of this seat, by its path among the pages of the desk."""
        return f"/{self.seat.path}{path}"


Handler = Callable[[Visit], Awaitable[Response]]
"""Answers a visit. Work that takes long belongs in `asyncio.to_thread`: the desk answers nobody else meanwhile."""


def desk_app(
    seats: Iterable[Seat],
    pages: Mapping[str, Handler],
    actions: Mapping[str, Handler],
    hosts: Iterable[str] = (),
    port: int = 0,
) -> Guard:
    """The application of a desk, at which `seats` may be.

    `pages`: path (such as `/`, `/{place:int}`) to what shows a page. `actions`: path to what a form asks for; the
    form's token has been checked when it is called. `hosts`: see Guard. `port`: so that two desks on one machine have
    different cookies.
    """
    routes: list[Route] = []
    for method, handlers in (("GET", pages), ("POST", actions)):
        for path, handler in handlers.items():
            routes.append(Route(f"/{{_seat}}{path}", _answer(handler), methods=[method]))
    app = Starlette(
        routes=routes, exception_handlers={HTTPException: _refused, JudgeError: _failed, Exception: _broken}
    )
    return Guard(app, seats, hosts, cookie=f"judge-{port}")


def missing_page() -> NoReturn:
    """End a visit to a page that is not there."""
    raise HTTPException(404)


def _answer(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        form = await _form(request) if request.method == "POST" else {}
        seat: Seat = request.scope["seat"]
        if request.method == "POST" and not same_secret(form.pop("form_token", None), seat.form_token):
            raise HTTPException(403, "This form is not from this desk, or the desk's link has changed since.")
        return await handler(Visit(request, form))

    return answer


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form as browsers send it; of a repeated one the last."""
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > LARGEST_FORM:
                raise HTTPException(413, f"The form is larger than {LARGEST_FORM:,} bytes.")
    except ClientDisconnect as error:
        raise HTTPException(400, "The form was cut off on its way.") from error
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise HTTPException(400, "This is not a form as browsers send it.") from error
    return dict(fields)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - the handler of this class alone
    if error.status_code in (404, 405):
        return plain_page("No such page", "This desk has no page of this address.", error.status_code)
    return plain_page("Nothing was changed", error.detail, error.status_code)


async def _failed(request: Request, error: Exception) -> Response:
    if isinstance(error, Busy):
        return plain_page("Nothing was saved", f"{error}. Go back, and try again.", 503)
    return plain_page("Nothing was saved", str(error), 500)


async def _broken(request: Request, error: Exception) -> Response:
    return plain_page("This did not work", f"An error of judge itself: {type(error).__name__}: {error}", 500)


PORT = 8765
"""The port of a desk, if no other is asked for."""
_PATIENCE = 2
"""Seconds that answers under way may take at the end."""


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
