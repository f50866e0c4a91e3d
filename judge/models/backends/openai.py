"""`openai/<model>`: OpenAI's API, or another one at `--base-url`, through its SDK on the aiohttp transport."""

import functools
import importlib.util
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from judge.errors import MissingKeyError, UsageError
from judge.models.address import proxy_for, read_address, read_key, without_credentials
from judge.models.chat import chat_messages, read_completion, refuse_replicas, refuse_threads, response_format
from judge.models.http_errors import connection_error, error_for, logprobs_refused, read_refusal
from judge.models.label_probabilities import asked_logprobs, label_tokens, with_probabilities
from judge.models.limits import read_limits
from judge.models.model import Model, ModelOptions, Price
from judge.models.moved import refuse_unrecorded
from judge.models.records import AnswerForm, Completion, Request
from judge.records import Criterion

if TYPE_CHECKING:
    import openai

KEY = "OPENAI_API_KEY"  # the name of a variable, not its value
USUAL = "https://api.openai.com/v1"
_REASONING = re.compile(r"(ft:)?(o\d|gpt-5(?!-chat))")


class OpenAIModel(Model):
    """A judge behind the SDK; each call is one HTTP request, because retries belong to the loop."""

    def __init__(self, model: str, options: ModelOptions) -> None:
        self.name = f"openai/{model}"
        self._model = model
        self._options = options
        self.forms: tuple[AnswerForm, ...] = ("label", "json", "text") if options.logprobs else ("json", "text")
        self._reasons = _REASONING.match(model) is not None
        # The SDK would read the variable itself, and no record would show the address of the judge.
        self._base_url = options.base_url or os.environ.get("OPENAI_BASE_URL") or None
        self.endpoint = None if options.base_url else self._base_url and without_credentials(self._base_url)
        self.counts_longest = ".azure." in (self._base_url or "")
        self._client: openai.AsyncOpenAI | None = None

    @property
    def address(self) -> str | None:
        """The address of the option, else of the environment; None for OpenAI's own."""
        return None if self._base_url is None else read_address(self._base_url).url

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse a missing key, a malformed address, and a temperature where the model takes none.

        Raises:
            UsageError: There is one of these problems.
        """
        refuse_threads(self._options.threads, self.name)
        refuse_replicas(self._options.replicas, self.name)
        refuse_unrecorded(os.environ)
        source = "--base-url" if self._options.base_url else "OPENAI_BASE_URL"
        if self._base_url is not None and read_address(self._base_url, source).user is not None:
            raise UsageError(f"{source} must hold no user name: the SDK sends the key of OPENAI_API_KEY")
        if self._reasons and self._options.logprobs:
            raise UsageError(f"{self.name} is a reasoning model, which gives no label probabilities (--logprobs)")
        if self._reasons and self._options.temperature != 0:
            raise UsageError(f"{self.name} is a reasoning model, which takes no temperature")
        self._key()

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """Everything that is sent beside the messages."""
        limit = "max_completion_tokens" if self._reasons else "max_tokens"
        return {
            "model": self._model,
            **({} if self._reasons else {"temperature": self._options.temperature}),
            limit: label_tokens(request.labels) if request.form == "label" else self._options.max_tokens,
            **({} if self._options.seed is None else {"seed": self._options.seed}),
            **response_format(request),
            **(asked_logprobs(request) if self._options.logprobs else {}),
        }

    def price(self) -> Price | None:
        """OpenAI's list price from litellm's data file; None at another address."""
        return list_price(self._model) if self._base_url is None else None

    async def complete(self, request: Request) -> Completion:
        """Ask once.

        Raises:
            CallError: This call failed; TransientError if asking again may help.
            OperationalError: No call can succeed until the user fixes something.
        """
        import httpx
        import openai

        from judge.models.transport import Transmission, guarded, own_error

        sent = {**self.parameters(request), "messages": chat_messages(request)}
        client = self._client or self._open()
        structured = request.form == "json"
        started = time.perf_counter()
        try:
            # Not `chat.completions.create`: converting to and from its types doubles the CPU time of a call.
            with guarded(Transmission(self._options.max_tokens, self._options.timeout)):
                answer = await client.post("/chat/completions", cast_to=httpx.Response, body=sent)
        except openai.APIStatusError as error:
            response = error.response
            self.limits = read_limits(response.headers)
            refusal = read_refusal(response.status_code, response.content)
            # What the SDK says of it, and a traceback would show, may hold the key.
            unasked = logprobs_refused(refusal) if self._options.logprobs else None
            raise unasked or error_for(refusal, response.headers, structured=structured) from None
        except openai.APIConnectionError as error:
            raise own_error(error) or connection_error(error, self._options.timeout) from None
        latency = time.perf_counter() - started
        self.limits = read_limits(answer.headers)
        completion = read_completion(
            answer.content,
            answer.headers,
            structured=structured,
            latency=latency,
            endpoint=self.address or USUAL,
        )
        if self._options.logprobs:
            completion = with_probabilities(completion, answer.content, request)
        return msgspec.structs.replace(completion, cost=self._cost(completion))

    async def aclose(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def _key(self) -> str:
        key = read_key(KEY)
        if key is None:
            raise MissingKeyError(f"{self.name} needs a key: set the environment variable {KEY}")
        return key

    def _open(self) -> "openai.AsyncOpenAI":
        """Open the client; called inside the event loop that will use it."""
        import httpx
        import httpx_aiohttp
        import openai

        from judge.models.transport import GuardedTransport

        address = self.address or USUAL
        proxy = proxy_for(address)
        sender = httpx_aiohttp.AiohttpTransport(
            # The loop limits the calls in flight; 0 is aiohttp's word for no limit.
            limits=httpx.Limits(max_connections=0),
            proxy=None if proxy is None else httpx.Proxy(proxy),
        )
        self._client = openai.AsyncOpenAI(
            api_key=self._key(),
            base_url=address,
            timeout=self._options.timeout,
            max_retries=0,
            http_client=httpx.AsyncClient(transport=GuardedTransport(sender), timeout=self._options.timeout),
        )
        return self._client

    def _cost(self, completion: Completion) -> float | None:
        price = self.price()
        if price is None or completion.prompt_tokens is None or completion.completion_tokens is None:
            return None
        return price.cost(completion.prompt_tokens, completion.cached_tokens or 0, completion.completion_tokens)


class _Entry(msgspec.Struct, gc=False):
    input_cost_per_token: float | None = None
    output_cost_per_token: float | None = None
    cache_read_input_token_cost: float | None = None


@functools.cache
def list_price(model: str) -> Price | None:
    """The price in litellm's data file, or None; read without importing litellm, because that takes seconds."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return None
    file = Path(spec.origin).with_name("model_prices_and_context_window_backup.json")
    try:
        entries = msgspec.json.decode(file.read_bytes(), type=dict[str, _Entry])
    except (OSError, msgspec.DecodeError):
        return None
    entry = entries.get(model, _Entry())
    if entry.input_cost_per_token is None or entry.output_cost_per_token is None:
        return None
    return Price(entry.input_cost_per_token, entry.output_cost_per_token, entry.cache_read_input_token_cost)


def open_model(model: str, options: ModelOptions) -> OpenAIModel:
    """The model that OpenAI calls `model`."""
    return OpenAIModel(model, options)
