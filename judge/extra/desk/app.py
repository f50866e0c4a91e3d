"""A desk as an application: pages that show something, and actions that forms ask for.

What is common to all desks is decided here once: an action is carried out only for a form of the desk, and a failure
becomes a page that says what was not done.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from judge.errors import JudgeError
from judge.extra.desk.guard import Guard, Seat, same_secret
from judge.extra.desk.pages import desk_page, plain_page

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
        home, token = self.address("/"), self.seat.form_token
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
    """The application of a desk.

    Args:
        seats: Who may be at it.
        pages: Path to what shows a page, such as `/`, `/{place:int}`.
        actions: Path to what a form asks for; the form's token has been checked when it is called.
        hosts: Further names by which browsers may address the desk; see Guard.
        port: Its port, so that two desks on one machine have different cookies.
    """
    routes = [Route(f"/{{_seat}}{path}", _page(handler), methods=["GET"]) for path, handler in pages.items()]
    routes += [Route(f"/{{_seat}}{path}", _action(handler), methods=["POST"]) for path, handler in actions.items()]
    app = Starlette(
        routes=routes, exception_handlers={HTTPException: _refused, JudgeError: _failed, Exception: _broken}
    )
    return Guard(app, seats, hosts, cookie=f"judge-{port}")


def missing_page() -> NoReturn:
    """End a visit to a page that is not there."""
    raise HTTPException(404)


def _page(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return await handler(Visit(request, {}))

    return answer


def _action(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        form = await _form(request)
        seat: Seat = request.scope["seat"]
        if not same_secret(form.pop("form_token", None), seat.form_token):
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
    heading = {404: "No such page", 405: "No such page"}.get(error.status_code, "Nothing was changed")
    text = "This desk has no page of this address." if heading == "No such page" else error.detail
    return plain_page(heading, text, error.status_code, onward=None)


async def _failed(request: Request, error: Exception) -> Response:
    return plain_page("Nothing was saved", str(error), 500)


async def _broken(request: Request, error: Exception) -> Response:
    text = f"An error of judge itself: {type(error).__name__}: {error}"
    return plain_page("This did not work", text, 500)
