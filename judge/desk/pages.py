"""The pages of desks: templates, and the style sheets and scripts that they ask for."""

from functools import cache
from pathlib import Path
from typing import Any

from starlette.responses import HTMLResponse, Response

from judge.draw.page import look, render_page
from judge.files.stored import sha256

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
