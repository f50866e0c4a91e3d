"""`server/<model>`: any OpenAI-compatible server (vLLM, llama.cpp, Ollama, …), straight on aiohttp for speed."""

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from judge.errors import RejectedError, UsageError
from judge.models.address import Address, proxy_for, read_address, read_key
from judge.models.chat import read_completion, refuse_threads, response_format
from judge.models.http_errors import check_redirect, connection_error, error_for, read_refusal
from judge.models.limit_headers import read_limits
from judge.models.limits import RateLimits
from judge.models.model import ModelOptions, Price
from judge.models.records import AnswerForm, Completion, Request
from judge.models.reply_body import read_body
from judge.records import Criterion

if TYPE_CHECKING:
    import aiohttp

KEY = "JUDGE_API_KEY"  # the name of a variable, not its value


class ServerModel:
    """A judge at one address; the key, if the server wants one, comes from JUDGE_API_KEY."""

    forms: tuple[AnswerForm, ...] = ("json", "text")
    max_concurrency: int | None = None
    endpoint: str | None = None
    limits: RateLimits | None = None

    def __init__(self, model: str, options: ModelOptions) -> None:
        self.name = f"server/{model}"
        self._model = model
        self._options = options
        self._parameters: dict[tuple[AnswerForm, tuple[str, ...], int], dict[str, Any]] = {}
        self._session: aiohttp.ClientSession | None = None
        self._endpoint = ""
        self._proxy: str | None = None

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse a missing or malformed address and a malformed key.

        Raises:
            UsageError: There is one of these problems.
        """
        refuse_threads(self._options.threads, self.name)
        self._address()
        read_key(KEY)

    def prepare(self, report: Callable[[str, int, int], None]) -> None:
        """Nothing is fetched: the model runs elsewhere."""

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """Everything that is sent beside the messages, and the address without credentials."""
        key = (request.form, request.labels, request.sentences)
        parameters = self._parameters.get(key)
        if parameters is None:
            parameters = {
                "base_url": self._address().url,
                "model": self._model,
                "temperature": self._options.temperature,
                "max_tokens": self._options.max_tokens,
                **({} if self._options.seed is None else {"seed": self._options.seed}),
                **response_format(request),
            }
            self._parameters[key] = parameters
        return parameters

    def price(self) -> Price | None:
        """No price is known: the server is the user's."""
        return None

    async def complete(self, request: Request) -> Completion:
        """Ask once; the connection stays open for the next request.

        Raises:
            CallError: This call failed; TransientError if asking again may help.
            OperationalError: No call can succeed until the user fixes something.
        """
        import aiohttp

        sent = {**self.parameters(request), "messages": request.messages}
        del sent["base_url"]
        try:
            body = msgspec.json.encode(sent)
        except UnicodeEncodeError as error:
            raise RejectedError(f"the request cannot be sent: {error.reason} at character {error.start}") from error
        session = self._session or self._open()
        structured = request.form == "json"
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
            raise error_for(read_refusal(answer.status, reply), answer.headers, structured=structured)
        return read_completion(reply, answer.headers, structured=structured, latency=latency)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _address(self) -> Address:
        if self._options.base_url is None:
            raise UsageError(f"{self.name} needs --base-url, the address of an OpenAI-compatible server")
        return read_address(self._options.base_url)

    def _open(self) -> "aiohttp.ClientSession":
        """Open the session; called inside the event loop that will use it."""
        import aiohttp

        address = self._address()
        self._endpoint = f"{address.url}/chat/completions"
        self._proxy = proxy_for(address.url)
        # Replies are short, and what is not compressed cannot swell.
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        key = read_key(KEY)
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        elif address.user is not None:
            headers["Authorization"] = "Basic " + base64.b64encode(":".join(address.user).encode()).decode()
        self._session = aiohttp.ClientSession(
            # The loop limits the calls in flight; aiohttp's default of 100 would be a hidden second limit.
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=self._options.timeout),
        )
        return self._session


def open_model(model: str, options: ModelOptions) -> ServerModel:
    """The model that a server calls `model`."""
    return ServerModel(model, options)
