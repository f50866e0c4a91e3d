"""The transport beneath the SDKs: bodies are read whole within their limit, and redirects go nowhere."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple, cast

import httpx

from judge.errors import JudgeError
from judge.models.chat import check_json
from judge.models.http_errors import check_redirect, connection_error
from judge.models.reply_body import read_body


class _Limits(NamedTuple):
    max_tokens: int
    timeout: float


_limits: ContextVar[_Limits | None] = ContextVar("limits", default=None)
"""What the reply to the present call may cost; None outside of our calls."""


@contextlib.contextmanager
def guarded(max_tokens: int, timeout: float) -> Iterator[None]:
    """Check the replies that come through a `GuardedTransport` within this block.

    Args:
        max_tokens: Most tokens of a completion.
        timeout: Most seconds from the first byte that is sent to the last that arrives.
    """
    token = _limits.set(_Limits(max_tokens, timeout))
    try:
        yield
    finally:
        _limits.reset(token)


class GuardedTransport(httpx.AsyncBaseTransport):
    """Hands requests on to another transport, and checks each reply before an SDK sees it."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; within `guarded`, read its reply too.

        Raises:
            JudgeError: The reply is a redirect, too long, too late or damaged.
        """
        limits = _limits.get()
        if limits is None:
            return await self._inner.handle_async_request(request)
        # Replies are short, and what is not compressed cannot swell.
        request.headers["Accept-Encoding"] = "identity"
        try:
            # The timeouts of the SDKs start anew with each byte that arrives.
            async with asyncio.timeout(limits.timeout):
                return await self._whole(request, limits.max_tokens)
        except TimeoutError as error:
            raise connection_error(error, limits.timeout) from error

    async def _whole(self, request: httpx.Request, max_tokens: int) -> httpx.Response:
        reply = await self._inner.handle_async_request(request)
        try:
            check_redirect(reply.status_code, str(request.url), reply.headers.get("location"))
            encoding, parts = reply.headers.get("content-encoding", ""), cast(httpx.AsyncByteStream, reply.stream)
            content = await read_body(parts, encoding, reply.status_code, max_tokens)
            if reply.status_code == 200 and "stream" not in reply.headers.get("content-type", ""):
                # Over a long text that is no JSON, litellm works for seconds to say so.
                check_json(content)
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
