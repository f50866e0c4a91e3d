"""The transport beneath the SDKs: bodies are read whole within their limit, and redirects go nowhere."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, cast

import httpx

from judge.errors import JudgeError
from judge.models.chat import read_json
from judge.models.connection import read_body
from judge.models.http_errors import check_redirect, connection_error


class Transmission:
    """One of our calls: what its reply may cost, and the reply as it came, which SDKs show only in part.

    Args:
        max_tokens: Most tokens of a completion.
        timeout: Most seconds from the first byte that is sent to the last that arrives.
    """

    def __init__(self, max_tokens: int, timeout: float) -> None:
        self.max_tokens = max_tokens
        self.timeout = timeout
        self.status: int | None = None
        """The status of the reply; None if none came."""
        self.headers: Mapping[str, str] = {}
        self.content = b""


_present: ContextVar[Transmission | None] = ContextVar("present", default=None)
"""The present call; None outside of our calls."""


@contextlib.contextmanager
def guarded(transmission: Transmission) -> Iterator[None]:
    """Check the replies that come through a `GuardedTransport` within this block, and keep them in the transmission."""
    token = _present.set(transmission)
    try:
        yield
    finally:
        _present.reset(token)


class GuardedTransport(httpx.AsyncBaseTransport):
    """Hands requests on to another transport, and checks each reply before an SDK sees it."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; within `guarded`, read its reply too.

        Raises:
            JudgeError: The reply is a redirect, too long, too late or damaged.
        """
        transmission = _present.get()
        if transmission is None:
            return await self._inner.handle_async_request(request)
        # Replies are short, and what is not compressed cannot swell.
        request.headers["Accept-Encoding"] = "identity"
        try:
            # The timeouts of the SDKs start anew with each byte that arrives.
            async with asyncio.timeout(transmission.timeout):
                return await self._whole(request, transmission)
        except TimeoutError as error:
            raise connection_error(error, transmission.timeout) from error

    async def _whole(self, request: httpx.Request, transmission: Transmission) -> httpx.Response:
        reply = await self._inner.handle_async_request(request)
        transmission.status, transmission.headers, transmission.content = reply.status_code, reply.headers, b""
        try:
            check_redirect(reply.status_code, str(request.url), reply.headers.get("location"))
            encoding, parts = reply.headers.get("content-encoding", ""), cast(httpx.AsyncByteStream, reply.stream)
            content = await read_body(parts, encoding, reply.status_code, transmission.max_tokens)
            transmission.content = content
            if reply.status_code == 200 and "stream" not in reply.headers.get("content-type", ""):
                # Over a long text that is no JSON, litellm works for seconds to say so.
                read_json(content)
        finally:
            await reply.aclose()
        described = ("content-encoding", "content-length", "transfer-encoding")
        headers = [header for header in reply.headers.multi_items() if header[0] not in described]
        return httpx.Response(reply.status_code, headers=headers, content=content, extensions=reply.extensions)

    async def aclose(self) -> None:
        """Close the transport that sends."""
        await self._inner.aclose()


def own_error(error: BaseException) -> JudgeError | None:
    """The first error of ours among an error and its causes, because SDKs wrap what a transport raises."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, JudgeError):
            return cause
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return None


def guard(create: Callable[..., httpx.AsyncBaseTransport | None]) -> Callable[..., GuardedTransport]:
    """A function that makes transports, made to make guarded ones; a guarded function stays as it is."""
    if getattr(create, "makes_guarded", False):
        return create  # type: ignore[return-value]

    def create_guarded(*args: Any, **options: Any) -> GuardedTransport:
        return GuardedTransport(create(*args, **options) or httpx.AsyncHTTPTransport())

    create_guarded.makes_guarded = True  # type: ignore[attr-defined]
    return create_guarded
