"""A connection to one server, straight on aiohttp; one call is one HTTP request, and its reply has a limit."""

import base64
import contextlib
import time
import zlib
from collections.abc import AsyncIterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from judge.errors import OperationalError, RejectedError, TransientError
from judge.judges.chat import read_completion, read_json
from judge.judges.credentials import Address, known_secrets, proxy_for, read_key
from judge.judges.forms import with_probabilities
from judge.judges.http_errors import at, check_redirect, connection_error, error_for, read_refusal
from judge.judges.limits import RateLimits, read_limits, read_time
from judge.judges.model import ModelOptions
from judge.judges.records import Completion, Request

if TYPE_CHECKING:
    import aiohttp

KEY = "JUDGE_API_KEY"  # the name of a variable, not its value
_OF_AN_ERROR = 1 << 16
"""Bytes that are read of a reply with another status than 200; an error says what it is in its first words."""
_OF_A_LIST = 16_384
"""As long as the reply to this many tokens may be; a list of models is shorter."""


class Reply(NamedTuple):
    """What a server sent."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    latency: float
    """Seconds."""


class Connection:
    """Asks one server; the TCP connections stay open for the next requests.

    `options` say the longest reply, the time of one call, and whether probabilities of labels are asked for; `path`
    follows the address. Its user and password are sent where `variable` holds no key.
    """

    def __init__(
        self,
        address: Address,
        options: ModelOptions,
        path: str = "/chat/completions",
        *,
        variable: str = KEY,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._address = address
        self._options = options
        self._url = f"{address.url}{path}"
        self._variable = variable
        self._headers = headers or {}
        self._proxy: str | None = None
        self._session: aiohttp.ClientSession | None = None
        self._secrets = known_secrets(address.whole)
        self.limits: RateLimits | None = None
        """What the server said of its rate limits with its last reply; None if nothing."""

    async def post(self, body: bytes, request: Request) -> Completion:
        """Send a request, as JSON in `body`, and read its completion; the errors are those of `Model.complete`."""
        # A label is asked for by a choice or a grammar, which a server may refuse as it refuses a schema.
        structured, probable = request.form != "text", self._options.logprobs
        reply = await self.fetch(body, structured=structured, probable=probable)
        completion = read_completion(
            reply.body,
            reply.headers,
            structured=structured,
            latency=reply.latency,
            endpoint=self._address.url,
            secrets=self._secrets,
        )
        return with_probabilities(completion, reply.body, request) if probable else completion

    async def fetch(self, body: bytes, *, structured: bool = False, probable: bool = False) -> Reply:
        """Send a request and read what comes back with status 200; the errors are those of `Model.complete`.

        `structured`: it asks for a schema, choice or grammar; `probable`: for probabilities. Servers may refuse both.
        """
        reply = await self._exchange("POST", body)
        self.limits = read_limits(reply.headers)
        if reply.status != 200:
            refusal = read_refusal(reply.status, self._secrets.scrub_message(reply.body.decode("utf-8", "replace")))
            raise error_for(refusal, reply.headers, structured=structured, probable=probable)
        return reply

    async def _exchange(self, method: str, body: bytes | None = None) -> Reply:
        """Send one request, and read its reply whatever the status."""
        import aiohttp

        session = self._session or self._open()
        started = time.perf_counter()
        try:
            sent = session.request(method, self._url, data=body, proxy=self._proxy, allow_redirects=False)
            async with sent as answer:
                check_redirect(answer.status, self._url, answer.headers.get("Location"))
                encoding, parts = answer.headers.get("Content-Encoding", ""), answer.content.iter_any()
                content = await read_body(parts, encoding, answer.status, self._options.max_tokens)
        except (aiohttp.ClientError, OSError) as error:  # a timeout is an OSError
            raise connection_error(error, self._options.timeout) from None
        return Reply(answer.status, content, answer.headers, time.perf_counter() - started)

    async def aclose(self) -> None:
        """Close all TCP connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> "aiohttp.ClientSession":
        """Open the session; called inside the event loop that will use it."""
        import aiohttp

        self._proxy = proxy_for(self._address.url)
        # Replies are short, and what is not compressed cannot swell.
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", **self._headers}
        key = read_key(self._variable)
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        elif self._address.user is not None:
            user = ":".join(self._address.user)
            headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
        self._session = aiohttp.ClientSession(
            # The loop limits the calls in flight; aiohttp's default of 100 would be a hidden second limit.
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=self._options.timeout),
        )
        return self._session


class Pinged(NamedTuple):
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


async def ping(address: Address, variable: str, timeout: float) -> Pinged:
    """Ask an API for its list of models, which costs nothing; `variable` holds the key.

    A CallError if nobody answers in time, or the reply breaks off. An OperationalError if the reply is a redirect, or
    the connection is not secure.
    """
    options = ModelOptions(timeout=timeout, max_tokens=_OF_A_LIST)
    connection = Connection(address, options, "/models", variable=variable)
    try:
        status, body, headers, seconds = await connection._exchange("GET")
    except ValueError as error:
        raise OperationalError(f"the address cannot be asked: {error}") from None
    finally:
        await connection.aclose()
    page = "html" in headers.get("Content-Type", "").lower() or body.lstrip()[:1] == b"<"
    date = read_time(headers.get("Date", ""))
    skew = None if date is None else (date - datetime.now(UTC)).total_seconds()
    with contextlib.suppress(TransientError):
        listed = at(read_json(body), list, "data")
        models = None if listed is None else tuple(at(each, str, "id") or "" for each in listed)
        return Pinged(status, seconds, skew, page, models)
    return Pinged(status, seconds, skew, page, None)


def longest_reply(max_tokens: int) -> int:
    """Most bytes of a reply that judge reads: 1 MiB, and 64 bytes for each token that was asked for.

    >>> longest_reply(1024)
    1114112
    """
    return (1 << 20) + 64 * max_tokens


async def read_body(parts: AsyncIterable[bytes], encoding: str, status: int, max_tokens: int) -> bytes:
    """The body of a reply, decompressed; the body of an error is cut after 64 KiB.

    A RejectedError if the body is longer than a reply can be, or compressed in another way than gzip or deflate. A
    TransientError if the compressed body is damaged or ends early.
    """
    encoding = encoding.strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise RejectedError(f"the reply is compressed with {encoding[:20]!r}; judge reads gzip and deflate")
    # Decompressed here, because neither aiohttp nor httpx bounds what one part may swell to. The header of gzip or of
    # zlib is taken, whichever is there.
    inflate = None if encoding in ("", "identity") else zlib.decompressobj(zlib.MAX_WBITS + 32)
    most = longest_reply(max_tokens) if status == 200 else _OF_AN_ERROR
    body, received = bytearray(), 0
    async for part in parts:
        received += len(part)
        try:
            body += part if inflate is None else inflate.decompress(part, most + 1 - len(body))
        except zlib.error as error:
            raise TransientError(f"the compressed reply is damaged: {error}") from error
        if max(received, len(body)) > most:
            if status != 200:
                return bytes(body[:most])
            raise RejectedError(
                f"the reply is longer than {most} bytes, the most that judge reads with --max-tokens {max_tokens}"
            )
    if inflate is not None and received and not inflate.eof:
        raise TransientError("the compressed reply ends early")
    return bytes(body)
