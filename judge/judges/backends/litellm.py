"""`litellm/<string>`: any model that litellm knows, by its model string; costs some milliseconds of CPU a call."""

import asyncio
import functools
import logging
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, cast
from weakref import WeakKeyDictionary

import httpx
import msgspec
import openai

import judge.errors as errors
from judge.io.text import did_you_mean
from judge.judges.backends import BACKENDS
from judge.judges.chat import chat_messages, read_body, read_json, response_format, sent_names, without_secrets
from judge.judges.credentials import moved, read_address, refuse_unrecorded
from judge.judges.forms import asked_logprobs, with_probabilities
from judge.judges.http_errors import at, check_redirect, connection_error, error_for, read_refusal
from judge.judges.limits import read_limits
from judge.judges.model import (
    Model,
    ModelOptions,
    Price,
    omitted_by_user,
    refuse_threads,
    room_of,
    sent_parameters,
    set_by_user,
)
from judge.judges.records import AnswerForm, Completion, Request
from judge.records import Criterion

_OTHER_CREDENTIALS = ("azure", "bedrock", "ollama", "sagemaker", "vertex_ai")
"""Providers that also take sign-in files, roles, tokens or defaults, which litellm's check does not see."""
_UNPREPARED = re.compile(r"missing credentials|default credentials|no module named", re.IGNORECASE)
"""Messages of litellm, with status 500, for problems that it meets before it sends anything."""
_PREFIX = re.compile(r"^(?:(?:litellm\.)?(?:Timeout )?[\w-]*(?:Error|Exception|Timeout)(?:: | - ))+")


class _KnownModel:
    """What litellm knows of the model behind a model string."""

    def __init__(self, litellm: Any, model: str) -> None:
        self.litellm = litellm
        self.name = f"litellm/{model}"
        self._model = model
        try:
            bare, self.provider, *_ = litellm.get_llm_provider(model)
        except litellm.BadRequestError as error:
            raise errors.UsageError(
                f"model name {model!r} begins with no backend of judge and no provider that litellm knows"
                f"{did_you_mean(model.partition('/')[0], [*BACKENDS, *map(str, litellm.provider_list)])}"
            ) from error
        self._bare = str(bare)

    def supports_schema(self) -> bool:
        """Whether it takes a JSON schema of the reply."""
        return bool(self.litellm.supports_response_schema(self._model))

    def missing(self) -> list[str]:
        """The environment variables that it needs and that are not set."""
        return list(self.litellm.validate_environment(self._model)["missing_keys"])

    def takes(self, **parameter: object) -> bool:
        """Whether litellm hands a parameter on to the provider."""
        return self.handed(**parameter) is not None

    def handed(self, **parameters: object) -> Any:
        """What litellm makes of parameters for the provider; None if it refuses one of them."""
        try:
            return self.litellm.utils.get_optional_params(
                model=self._bare, custom_llm_provider=self.provider, drop_params=False, **parameters
            )
        except self.litellm.UnsupportedParamsError:
            return None

    def check_effort(self, effort: str, max_tokens: int) -> None:
        """Refuse an effort that litellm does not hand on: some of them it maps to another, or to nothing."""
        allowed = [] if self.takes(reasoning_effort=effort) else ["reasoning_effort"]
        handed = self.handed(reasoning_effort=effort, allowed_openai_params=allowed)
        if handed is None:
            raise errors.UsageError(f"{self.name} does not take the reasoning effort {effort}")
        opposite = "none" if effort != "none" else "high"
        if handed in (self.handed(), self.handed(reasoning_effort=opposite)):
            raise errors.UsageError(
                f"{self.name}: litellm has nothing to send for the reasoning effort {effort}, as its request is the "
                f"same without one or with {opposite}: leave --reasoning-effort out"
            )
        budget = at(handed, int, "thinking", "budget_tokens") or 0
        if budget >= max_tokens:
            raise errors.UsageError(
                f"{self.name}: the reasoning effort {effort} is a budget of {budget} tokens for thoughts, which are "
                f"part of the reply: raise --max-tokens above {budget}"
            )

    def price(self) -> Price | None:
        """The list price in litellm's offline table."""
        for key in (self._model, f"{self.provider}/{self._bare}", self._bare):
            entry = self.litellm.model_cost.get(key, {})
            prompt = entry.get("input_cost_per_token")
            completion = entry.get("output_cost_per_token")
            is_priced = prompt is not None and completion is not None
            if is_priced and str(entry.get("litellm_provider", "")).startswith(self.provider):
                return Price(prompt=prompt, completion=completion, cached=entry.get("cache_read_input_token_cost"))
        return None


class LitellmModel(Model):
    """A judge behind one model string; each call is one HTTP request, because retries belong to the loop."""

    def __init__(self, model: str, options: ModelOptions) -> None:
        self._model = model
        self._options = options
        self._known = _KnownModel(load_litellm(), model)
        self.name = self._known.name
        # litellm reads these by itself, and prefers the option.
        self._moved = {} if options.base_url is not None else moved(self._known.provider, os.environ)
        self.endpoint = ", ".join(f"{name}={value}" for name, value in self._moved.items()) or None
        self.forms: tuple[AnswerForm, ...] = (
            *(("label",) if options.logprobs else ()),
            *(("json",) if self._known.supports_schema() else ()),
            "text",
        )
        self.omitted = omitted_by_user(options)
        self.required = set_by_user(options)
        self.room = room_of(options)
        self.counts_longest = "azure" in model or ".azure." in f"{options.base_url} {self.endpoint}"
        self._has_key = False
        # Reasoning models take no temperature; the default of 0 is then not sent, and any other value is refused.
        self._takes_temperature = self._known.takes(temperature=options.temperature)
        effort = options.reasoning_effort
        self._takes_effort = effort is None or self._known.takes(reasoning_effort=effort)

    @property
    def address(self) -> str | None:
        """The address of the option, else of the environment; None where only litellm knows it."""
        return self._options.base_url or next((url for url in self._moved.values() if "://" in url), None)

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse missing keys, a malformed address, and parameters that litellm would not pass on."""
        refuse_threads(self._options, self.name)
        refuse_unrecorded(os.environ)
        if self._options.base_url is not None and read_address(self._options.base_url).user is not None:
            raise errors.UsageError("--base-url must hold no user name: litellm sends the provider's key")
        if self._options.temperature != 0 and not self._takes_temperature:
            raise errors.UsageError(f"{self.name} takes no temperature {self._options.temperature:g}")
        if self._options.logprobs and not self._known.takes(logprobs=True):
            raise errors.UsageError(f"{self.name} gives no label probabilities (--logprobs)")
        if self._options.seed is not None and not self._known.takes(seed=self._options.seed):
            raise errors.UsageError(f"{self.name} takes no seed")
        if self._options.reasoning_effort is not None:
            self._known.check_effort(self._options.reasoning_effort, self._options.max_tokens)
        self._check_key()

    def _check_key(self) -> None:
        if self._known.provider.startswith(_OTHER_CREDENTIALS):
            return
        missing = [
            name for name in self._known.missing() if not (name.endswith("_API_BASE") and self._options.base_url)
        ]
        if missing:
            raise errors.MissingKeyError(
                f"{self.name} needs a key: set the environment variable {' or '.join(missing)}"
            )

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """Everything that is handed to litellm beside the messages and the address."""
        probable = asked_logprobs(request) if self._options.logprobs else {}
        # litellm passes these on only if told so, the first for Gemini, which takes it, and the second for most names
        # of models, deployments among them: what cannot think refuses it.
        allowed = [
            *(["top_logprobs"] if probable and not self._known.takes(**probable) else []),
            *([] if self._takes_effort else ["reasoning_effort"]),
        ]
        wished = {
            "model": self._model,
            "temperature": self._options.temperature if self._takes_temperature else None,
            "max_tokens": request.room or self._options.max_tokens,
            "seed": self._options.seed,
            "reasoning_effort": self._options.reasoning_effort,
            **response_format(request),
            **probable,
            "allowed_openai_params": allowed or None,
        }
        return sent_parameters(wished, request.omitted)

    def price(self) -> Price | None:
        """The list price in litellm's offline table."""
        return self._known.price()

    async def complete(self, request: Request) -> Completion:
        """Ask once."""
        messages = chat_messages(request)
        if not self._has_key:
            self._check_key()
            self._has_key = True
        transmission = _Transmission(self._options)
        token = _present.set(transmission)
        started = time.perf_counter()
        try:
            # By default, litellm sends a failing call three times. Which of the two settings it obeys has changed.
            answer = await self._known.litellm.acompletion(
                **self.parameters(request),
                **({} if self._options.base_url is None else {"api_base": self._options.base_url}),
                messages=messages,
                timeout=self._options.timeout,
                num_retries=0,
                max_retries=0,
            )
        except openai.OpenAIError as error:  # the base of every error that litellm raises for a provider
            headers = transmission.headers or getattr(error, "litellm_response_headers", None) or {}
            self.limits = read_limits(headers)
            # What litellm says of it, and a traceback would show, may hold the key.
            raise transmission.error or self._error_for(error, transmission, headers, request) from None
        finally:
            _present.reset(token)
        self.limits = read_limits(transmission.headers or answer._hidden_params.get("additional_headers") or {})
        completion = _completion(answer, time.perf_counter() - started, self.address)
        if not self._options.logprobs:
            return completion
        return with_probabilities(completion, getattr(answer.choices[0], "logprobs", None), request)

    async def aclose(self) -> None:
        """Close litellm's connections."""
        await _transport().aclose()

    def _error_for(
        self, error: Any, transmission: "_Transmission", headers: Mapping[str, str], request: Request
    ) -> errors.JudgeError:
        """Our error for one of litellm's, by the reply itself where it came through our transport."""
        litellm = self._known.litellm
        status = getattr(error, "status_code", None) or 500
        text, _, _ = _PREFIX.sub("", getattr(error, "message", str(error))).partition("Traceback (most recent")
        refusal = read_refusal(status, transmission.content if transmission.status == status else text)
        if isinstance(error, litellm.ContextWindowExceededError):
            return errors.ContextLengthError(f"status {status}: {refusal.message}")
        if isinstance(error, litellm.ContentPolicyViolationError):
            return errors.ContentFilterError(f"status {status}: {refusal.message}")
        if status == 500 and _UNPREPARED.search(refusal.message):
            return errors.OperationalError(refusal.message)
        return error_for(
            refusal,
            headers,
            structured=request.form == "json",
            probable=self._options.logprobs,
            sent=sent_names(self.parameters(request), request),
        )


class _Transmission(msgspec.Struct):
    """One of our calls: what its reply may cost, and the reply as it came, which SDKs show only in part."""

    options: ModelOptions
    """Its `timeout` is from the first byte that is sent to the last that arrives."""
    status: int | None = None
    """The status of the reply; None if none came."""
    headers: Mapping[str, str] = {}
    content: bytes = b""
    error: errors.JudgeError | None = None
    """Our error, which SDKs wrap in theirs."""


_present: ContextVar[_Transmission | None] = ContextVar("present", default=None)
"""The present call; None outside of our calls."""


class GuardedTransport(httpx.AsyncBaseTransport):
    """Hands requests on to a transport of the running loop; of our calls, it reads each reply before an SDK sees it.

    `make` makes such a transport. Connections belong to a loop, and several threads may ask, each in a loop of its own.
    """

    def __init__(self, make: Callable[[], httpx.AsyncBaseTransport]) -> None:
        self._make = make
        self._inner: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncBaseTransport] = WeakKeyDictionary()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; a reply that is a redirect, too long, too late or damaged is a JudgeError."""
        transmission = _present.get()
        if transmission is None:
            return await self._sender().handle_async_request(request)
        # Replies are short, and what is not compressed cannot swell.
        request.headers["Accept-Encoding"] = "identity"
        try:
            # The timeouts of the SDKs start anew with each byte that arrives.
            async with asyncio.timeout(transmission.options.timeout):
                return await self._whole(request, transmission)
        except errors.JudgeError as error:
            transmission.error = error
            raise
        except (httpx.RequestError, OSError) as error:
            # litellm sends a request again where a connection breaks, unless it sees another error.
            transmission.error = connection_error(error, transmission.options.timeout)
            raise transmission.error from error

    def _sender(self) -> httpx.AsyncBaseTransport:
        loop = asyncio.get_running_loop()
        if loop not in self._inner:
            self._inner[loop] = self._make()
        return self._inner[loop]

    async def _whole(self, request: httpx.Request, transmission: _Transmission) -> httpx.Response:
        reply = await self._sender().handle_async_request(request)
        transmission.status = reply.status_code
        transmission.headers = reply.headers
        transmission.content = b""
        try:
            check_redirect(reply.status_code, str(request.url), reply.headers.get("location"))
            encoding = reply.headers.get("content-encoding", "")
            parts = cast(httpx.AsyncByteStream, reply.stream)
            content = await read_body(parts, encoding, reply.status_code, transmission.options.max_tokens)
        finally:
            await reply.aclose()
        transmission.content = content
        if reply.status_code == 200 and "stream" not in reply.headers.get("content-type", ""):
            # Over a long text that is no JSON, litellm works for seconds to say so.
            read_json(content)
        described = ("content-encoding", "content-length", "transfer-encoding", "set-cookie")
        headers = [header for header in reply.headers.multi_items() if header[0] not in described]
        return httpx.Response(reply.status_code, headers=headers, content=content, extensions=reply.extensions)

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        if (sender := self._inner.pop(asyncio.get_running_loop(), None)) is not None:
            await sender.aclose()


def _completion(answer: Any, latency: float, endpoint: str | None) -> Completion:
    if not answer.choices:
        raise errors.RejectedError("status 200, but no choices")
    choice = answer.choices[0]
    usage = getattr(answer, "usage", None)
    fields = getattr(choice.message, "provider_specific_fields", None) or {}
    # Its place has changed.
    refusal = getattr(choice.message, "refusal", None) or fields.get("refusal")
    return without_secrets(
        Completion(
            text=refusal or choice.message.content,
            finish_reason="refusal" if refusal else choice.finish_reason,
            model=answer.model,
            system_fingerprint=getattr(answer, "system_fingerprint", None),
            prompt_tokens=getattr(usage, "prompt_tokens", None),
            completion_tokens=getattr(usage, "completion_tokens", None),
            # litellm brings every provider's count under OpenAI's name.
            cached_tokens=getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None),
            thought_tokens=getattr(getattr(usage, "completion_tokens_details", None), "reasoning_tokens", None),
            cost=answer._hidden_params.get("response_cost"),
            latency=latency,
            endpoint=endpoint,
        )
    )


def load_litellm() -> Any:
    """Import litellm, late because it takes seconds; it may fetch nothing and print nothing."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    # Else litellm reads a file `.env` of any folder above, whose variables may move the address and hold other keys.
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    # Else a call may be sent by litellm's library in Rust, past our transport.
    os.environ["LITELLM_RUST"] = "False"
    # These warnings concern litellm's own classes; the user can do nothing about them.
    warnings.filterwarnings("ignore", "Item.* on TypedDict class", UserWarning)
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    import litellm

    _transport()
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = False
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    return litellm


def _own(key: str) -> str:
    return key if _present.get() is None else f"judge:{key}"


@functools.cache
def _transport() -> GuardedTransport:
    """Our transport over litellm's own, which litellm is told to use for every call that does not block."""
    import litellm
    from litellm.caching.llm_caching_handler import LLMClientCache
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler, get_ssl_configuration

    def make() -> httpx.AsyncBaseTransport:
        ssl = get_ssl_configuration()
        checked = {"ssl_verify": ssl} if isinstance(ssl, bool) else {"ssl_context": ssl}
        return AsyncHTTPHandler.create_async_transport(**checked) or httpx.AsyncHTTPTransport()

    transport = GuardedTransport(make)
    client = httpx.AsyncClient(transport=transport, follow_redirects=True)

    class Clients(LLMClientCache):  # type: ignore[misc]
        """Keeps the clients of our calls apart, so that those that a caller of litellm made stay as they are."""

        def get_cache(self, key: str, **options: Any) -> Any:
            return super().get_cache(_own(key), **options)

        def set_cache(self, key: str, value: Any, **options: Any) -> None:
            # litellm keeps each client before it sends anything over it.
            if _present.get() is not None and isinstance(value, AsyncHTTPHandler):
                value.client = client
            super().set_cache(_own(key), value, **options)

    # The first is for providers that are asked through OpenAI's library, the second for all others.
    litellm.aclient_session = client
    litellm.in_memory_llm_clients_cache = Clients()
    return transport


open_model = LitellmModel
