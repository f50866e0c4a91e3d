"""Whether an API answers at an address at all: one request for its list of models, which costs nothing."""

import base64
import email.utils
import time
from datetime import UTC, datetime

import msgspec

from judge.errors import OperationalError
from judge.models.address import Address, proxy_for
from judge.models.http_errors import check_redirect, connection_error
from judge.models.reply_body import read_body

_TOKENS = 16_384
"""As long as the reply to this many tokens may be; a list of models is shorter."""


class Reached(msgspec.Struct, frozen=True):
    """What answered at an address."""

    status: int
    seconds: float
    """Until the whole reply was there."""
    skew: float | None
    """Seconds that the clock behind the address is ahead of ours; None if its reply names no date."""
    page: bool
    """Whether the reply is an HTML page."""
    models: tuple[str, ...] | None
    """The models that it lists; None if the reply is no such list."""


class _Listed(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Listed]


async def reach(where: Address, key: str | None, timeout: float) -> Reached:
    """Ask an API for its models.

    Args:
        where: The root of the API; its user and password are sent where there is no key.
        key: Sent as a bearer token; None sends none.
        timeout: Most seconds.

    Raises:
        CallError: Nobody answers in time, or the reply breaks off.
        OperationalError: The reply is a redirect, or the connection is not secure.
    """
    import aiohttp

    address = f"{where.url}/models"
    headers = {"Accept-Encoding": "identity"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    elif where.user is not None:
        headers["Authorization"] = "Basic " + base64.b64encode(":".join(where.user).encode()).decode()
    started = time.perf_counter()
    try:
        async with (
            aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=timeout),
            ) as session,
            session.get(address, proxy=proxy_for(where.url), allow_redirects=False) as answer,
        ):
            check_redirect(answer.status, address, answer.headers.get("Location"))
            encoding, parts = answer.headers.get("Content-Encoding", ""), answer.content.iter_any()
            body = await read_body(parts, encoding, answer.status, _TOKENS)
    except (aiohttp.ClientError, OSError) as error:  # a timeout is an OSError
        raise connection_error(error, timeout) from None
    except ValueError as error:
        raise OperationalError(f"the address cannot be asked: {error}") from None
    html = "html" in answer.headers.get("Content-Type", "").lower() or body.lstrip()[:1] == b"<"
    skew = _skew(answer.headers.get("Date"), datetime.now(UTC))
    return Reached(answer.status, time.perf_counter() - started, skew, html, _models(body))


def _models(body: bytes) -> tuple[str, ...] | None:
    try:
        return tuple(listed.id for listed in msgspec.json.decode(body, type=_Models).data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _skew(date: str | None, now: datetime) -> float | None:
    try:
        there = email.utils.parsedate_to_datetime(date or "")
    except ValueError:
        return None
    there = there if there.tzinfo else there.replace(tzinfo=UTC)
    return (there - now).total_seconds()
