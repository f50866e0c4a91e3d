"""A connection to one server, straight on aiohttp; one call is one HTTP request."""

import base64
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from judge.models.address import Address, proxy_for, read_key
from judge.models.chat import read_completion
from judge.models.http_errors import check_redirect, connection_error, error_for, logprobs_refused, read_refusal
from judge.models.label_probabilities import with_probabilities
from judge.models.limits import RateLimits, read_limits
from judge.models.model import ModelOptions
from judge.models.records import Completion, Request
from judge.models.reply_body import read_body

if TYPE_CHECKING:
    import aiohttp

KEY = "JUDGE_API_KEY"  # the name of a variable, not its value


class Reply(NamedTuple):
    """What a server sent with status 200."""

    body: bytes
    headers: Mapping[str, str]
    latency: float
    """Seconds."""


class Connection:
    """Asks one server; the TCP connections stay open for the next requests.

    Args:
        address: The server; a user and a password are sent where there is no key.
        options: The longest reply, the time of one call, and whether probabilities of labels are asked for.
        path: What follows the address.
    """

    def __init__(self, address: Address, options: ModelOptions, path: str = "/chat/completions") -> None:
        self._address = address
        self._options = options
        self._endpoint = f"{address.url}{path}"
        self._proxy: str | None = None
        self._session: aiohttp.ClientSession | None = None
        self.limits: RateLimits | None = None
        """What the server said of its rate limits with its last reply; None if nothing."""

    async def post(self, body: bytes, request: Request) -> Completion:
        """Send a request and read its completion.

        Args:
            body: The request as JSON.
            request: The request.

        Raises:
            CallError: This call failed; TransientError if asking again may help.
            OperationalError: No call can succeed until the user fixes something.
        """
        # A label is asked for by a choice or a grammar, which a server may refuse as it refuses a schema.
        structured, probable = request.form != "text", self._options.logprobs
        reply = await self.fetch(body, structured=structured, probable=probable)
        completion = read_completion(reply.body, reply.headers, structured=structured, latency=reply.latency)
        return with_probabilities(completion, reply.body, request) if probable else completion

    async def fetch(self, body: bytes, *, structured: bool = False, probable: bool = False) -> Reply:
        """Send a request and read what comes back with status 200.

        Args:
            body: The request as JSON.
            structured: Whether it asks for a schema, a choice or a grammar, which a server may refuse.
            probable: Whether it asks for probabilities of labels, likewise.

        Raises:
            CallError: This call failed; TransientError if asking again may help.
            OperationalError: No call can succeed until the user fixes something.
        """
        import aiohttp

        session = self._session or self._open()
        started = time.perf_counter()
        try:
            async with session.post(self._endpoint, data=body, proxy=self._proxy, allow_redirects=False) as answer:
                check_redirect(answer.status, self._endpoint, answer.headers.get("Location"))
                encoding, parts = answer.headers.get("Content-Encoding", ""), answer.content.iter_any()
                reply = await read_body(parts, encoding, answer.status, self._options.max_tokens)
        except (aiohttp.ClientError, OSError) as error:  # a timeout is an OSError
            raise connection_error(error, self._options.timeout) from None
        latency = time.perf_counter() - started
        self.limits = read_limits(answer.headers)
        if answer.status != 200:
            refusal = read_refusal(answer.status, reply)
            unasked = logprobs_refused(refusal) if probable else None
            raise unasked or error_for(refusal, answer.headers, structured=structured)
        return Reply(reply, answer.headers, latency)

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
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        key = read_key(KEY)
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
