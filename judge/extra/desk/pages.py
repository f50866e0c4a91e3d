"""The pages of desks: templates, their style sheets and scripts, and long lists in parts."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from starlette.responses import HTMLResponse, Response

from judge.io.page import look, render_page
from judge.io.stored import sha256

TEMPLATES = Path(__file__).parent / "templates"
ASSETS = "assets"
"""The first part of the addresses of style sheets, scripts and pictures; these are open to everybody."""
_KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def desk_page(template: str, status: int = 200, /, **values: Any) -> Response:
    """A page of a desk, from a template that extends `desk.html`; every inserted value is escaped."""
    return HTMLResponse(render_page(TEMPLATES, template, asset=asset_address, **values), status)


def plain_page(heading: str, text: str, status: int, onward: str | None = None) -> Response:
    """A page with one message, and a link that it follows by itself after a moment."""
    return desk_page("plain.html", status, heading=heading, text=text, onward=onward)


def asset_address(name: str) -> str:
    """The address of a style sheet, a script or a picture; another content has another address."""
    return f"/{ASSETS}/{name}?{sha256(_asset(name))[:12]}"


def asset_file(name: str) -> Response | None:
    """A style sheet, a script or a picture; None if there is none of this name."""
    if name != "base.css" and name not in _names():
        return None
    return Response(_asset(name), media_type=_KINDS[Path(name).suffix], headers={"cache-control": "max-age=3600"})


@cache
def _names() -> frozenset[str]:
    return frozenset(path.name for path in TEMPLATES.iterdir() if path.suffix in _KINDS)


@cache
def _asset(name: str) -> bytes:
    return look().encode() if name == "base.css" else (TEMPLATES / name).read_bytes()


_Entry = TypeVar("_Entry")


class ListPage(NamedTuple, Generic[_Entry]):
    """One page of a list."""

    shown: Sequence[_Entry]
    first: int
    """The place of its first entry in the list, from 0."""
    page: int
    """Its number, from 1."""
    pages: int


def list_page(entries: Sequence[_Entry], asked: str | None, size: int) -> ListPage[_Entry]:
    """The page that an address asks for; the nearest one if there is none of this number.

    >>> list_page("abcde", "2", 2), list_page("abcde", "9", 2)
    (ListPage(shown='cd', first=2, page=2, pages=3), ListPage(shown='e', first=4, page=3, pages=3))
    """
    pages = max(1, -(-len(entries) // size))
    page = min(max(1, whole_number(asked) or 1), pages)
    first = (page - 1) * size
    return ListPage(entries[first : first + size], first, page, pages)


def whole_number(text: str | None) -> int | None:
    """A whole number in an address or a field, of at most eight digits; None for anything else.

    >>> whole_number("07"), whole_number("-1"), whole_number("٣"), whole_number(None)
    (7, None, None, None)
    """
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) <= 8 else None
