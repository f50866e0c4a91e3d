"""The chat-completions protocol of OpenAI and compatible servers: what is sent, how a reply is read, and a connection.

A connection is straight on aiohttp; one call is one HTTP request, and its reply has a limit.
"""

import base64
import codecs
import contextlib
import json
import re
import time
import unicodedata
import zlib
from collections.abc import AsyncIterable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from judge.errors import JudgeError, OperationalError, RejectedError, TransientError
from judge.judges.credentials import Address, Secrets, known_secrets, proxy_for, read_key
from judge.judges.forms import answer_schema, nuggets_schema, with_probabilities
from judge.judges.http_errors import at, check_redirect, connection_error, error_for, read_refusal, shorten
from judge.judges.limits import RateLimits, read_limits
from judge.judges.model import ModelOptions
from judge.judges.records import THOUGHTS, Completion, Request, storable

if TYPE_CHECKING:
    import aiohttp

_MAY_BE_QUOTED = re.compile(r"(?:[/\\⁄∕⧸]|%2f|&#?\w{1,8};)\W{0,3}(?:seed\W{0,3})?think")
"""What a text holds from which a judge may have copied the end of thoughts, however the text escapes it."""


def response_format(request: Request) -> dict[str, Any]:
    """The parameter `response_format` as a mapping to merge into the others; empty unless the form is `json`."""
    if request.form != "json":
        return {}
    if request.lists_nuggets:
        schema = nuggets_schema(request.labels)
    else:
        schema = answer_schema(request.labels, request.sentences)
    verdict = {"name": "verdict", "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": verdict}}


def encoded(sent: Any, request: Request | None = None) -> bytes:
    """A request, or a part of one, as JSON; with the messages of `request` beside its parameters.

    A text that cannot be written as UTF-8 is a RejectedError.
    """
    try:
        return msgspec.json.encode(sent if request is None else {**sent, "messages": request.wire})
    except UnicodeEncodeError as error:
        raise RejectedError(f"the request cannot be sent: {error.reason} at character {error.start}") from error


def sent_names(parameters: Mapping[str, Any], request: Request) -> frozenset[str]:
    """The names of what is sent, with `system` for a system message."""
    return frozenset((*parameters, *(message.role for message in request.messages if message.role == "system")))


def chat_messages(request: Request) -> list[dict[str, str]]:
    """The messages of a request as the protocol writes them; the error is that of `encoded`."""
    messages: list[dict[str, str]] = msgspec.json.decode(encoded(request.messages))
    return messages


def read_json(body: bytes) -> Any:
    """The body of a reply with status 200; a TransientError if it is not JSON."""
    body = body.removeprefix(codecs.BOM_UTF8)
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        try:
            # Python reads NaN and half an emoji, which msgspec refuses; a reply is paid for, whatever it says.
            return json.loads(body.decode("utf-8", "replace"), parse_constant=lambda name: None)
        except (ValueError, RecursionError) as error:
            begins = shorten(body[:100].decode("utf-8", "replace"))
            raise TransientError(f"status 200, but not JSON: it begins {begins!r}") from error


def read_completion(
    body: bytes,
    headers: Mapping[str, str],
    *,
    structured: bool,
    latency: float | None,
    endpoint: str | None = None,
    secrets: Secrets | None = None,
    request: Request | None = None,
    sent: Collection[str] = (),
) -> Completion:
    """The completion in the body of a reply with status 200; its text is the refusal if the model refused.

    Every reply with a choice gives a completion, with the whole body beside what could be read, so that what was paid
    for is recorded before anybody judges it: what is of another type is left out.

    Args:
        body: The body of the reply.
        headers: Its headers.
        structured: Whether a JSON schema was sent.
        latency: Seconds that the reply took; None where nobody timed it.
        endpoint: The address that answered, without credentials.
        secrets: What must not come into the journal; the known secrets if None.
        request: What was asked; without it, nobody knows whether the end of thoughts is quoted.
        sent: The names of its parameters, which a body may refuse with status 200 too.

    Raises:
        JudgeError: The body is not JSON, holds no choice or an error, or the provider broke off.
    """
    reply = read_json(body)
    if not at(reply, list, "choices"):
        raise error_of_reply(body, headers, "choices", structured=structured, sent=sent)
    choice = reply["choices"][0]
    usage = at(reply, dict, "usage") or {}
    reason = at(choice, str, "finish_reason")
    refused = at(choice, str, "message", "refusal")
    if reason == "error":
        raise TransientError("the provider broke off with finish_reason error")
    text = refused or _text_of(choice)
    prompt = usage.get("prompt_tokens")
    cached = _cached(usage, at(reply, dict, "timings") or {})
    if type(prompt) is type(cached) is int and cached > prompt:
        # Anthropic counts what it reads from its cache beside the prompt.
        prompt += cached
    return without_secrets(
        Completion(
            text=text if request is None else _with_opened_thoughts(text, request),
            finish_reason="refusal" if refused else reason,
            model=reply.get("model"),
            system_fingerprint=reply.get("system_fingerprint"),
            prompt_tokens=prompt,
            completion_tokens=_replied(usage),
            cached_tokens=cached,
            thought_tokens=_thoughts(usage),
            latency=latency,
            endpoint=endpoint,
            raw=body.decode("utf-8", "replace"),
        ),
        secrets,
    )


def error_of_reply(
    body: bytes, headers: Mapping[str, str], lacking: str, *, structured: bool, sent: Collection[str] = ()
) -> JudgeError:
    """The error for a reply with status 200 that lacks what it was to hold; it may name another status."""
    refusal = read_refusal(200, body)
    status = next((int(code) for code in refusal.codes if code.isdecimal() and 400 <= int(code) < 600), None)
    if status is None:
        return RejectedError(f"status 200, but no {lacking}: {refusal.message}")
    return error_for(msgspec.structs.replace(refusal, status=status), headers, structured=structured, sent=sent)


def _text_of(choice: Any) -> str:
    """The text of a choice, wherever the server put it; empty if it holds none.

    It is the content, or the `text` of servers that speak /completions. Where both are empty, it is what a model wrote
    as the arguments of its only tool call; of several calls, none is the answer.
    """
    content = _as_text(choice, "message", "content") or at(choice, str, "text")
    if content:
        return content
    parts = at(choice, list, "message", "content") or ()
    text = "".join(at(part, str, "text") or "" for part in parts)
    if text:
        return text
    calls = at(choice, list, "message", "tool_calls") or ()
    if len(calls) == 1:
        return _as_text(calls[0], "function", "arguments")
    return "" if calls else _as_text(choice, "message", "function_call", "arguments")


def _as_text(document: Any, *path: str) -> str:
    """The text at a path; an object there was meant as its JSON, and another value is no text."""
    members = at(document, dict, *path)
    return at(document, str, *path) or ("" if members is None else json.dumps(members, ensure_ascii=False))


def _with_opened_thoughts(text: str, request: Request) -> str:
    """The text with the tag that opens its thoughts, where only the one that closes them came.

    Chat templates write the opening tag at the end of the prompt, so the reply lacks it. The closing tag ends thoughts
    only if nothing that was asked can be its source: a judge may repeat a response that holds one before a grade.
    """
    begun = text.lstrip()
    if begun.startswith(("{", "```", *THOUGHTS)) or not any(end in text for end in THOUGHTS.values()):
        return text
    for message in request.messages:
        if message.role == "assistant":
            # What follows is our own repair, which repeats the judge's own words.
            break
        if _MAY_BE_QUOTED.search(unicodedata.normalize("NFKC", message.content).casefold()):
            return text
    ends = {text.index(end): opening for opening, end in THOUGHTS.items() if end in text}
    first = min(ends)
    opening = ends[first]
    return text if any(each in text[:first] for each in THOUGHTS) else f"{opening}{text}"


def _replied(usage: Mapping[str, Any]) -> Any:
    """The tokens of the reply; some providers leave its thoughts out, and count them in the total alone."""
    prompt, completion, total = (usage.get(f"{name}_tokens") for name in ("prompt", "completion", "total"))
    # Anthropic's count of cached tokens stands beside that of the prompt, so the total may hold them too.
    if usage.get("cache_read_input_tokens") or not (type(prompt) is type(completion) is type(total) is int):
        return completion
    return max(completion, total - prompt)


def _cached(usage: Mapping[str, Any], timings: Mapping[str, Any]) -> Any:
    """The tokens of the prompt that were read from a cache, as OpenAI, DeepSeek, Anthropic or llama.cpp counts them."""
    counts = (
        (at(usage, dict, "prompt_tokens_details") or {}).get("cached_tokens"),
        usage.get("prompt_cache_hit_tokens"),
        usage.get("cache_read_input_tokens"),
        timings.get("cache_n"),
    )
    return next((count for count in counts if count is not None), None)


def _thoughts(usage: Mapping[str, Any]) -> Any:
    """The tokens of the reply that are hidden thoughts; None where nothing tells them from the others.

    OpenAI, DeepSeek, OpenRouter, xAI, vLLM and llama.cpp count them under one name, SGLang and Perplexity beside it.
    Gemini's OpenAI-compatible API counts them in the total alone.
    """
    details = at(usage, dict, "completion_tokens_details") or {}
    for counted in (details.get("reasoning_tokens"), usage.get("reasoning_tokens")):
        if counted is not None:
            return counted
    replied = _replied(usage)
    told = usage.get("completion_tokens")
    return None if replied == told else replied - told


def without_secrets(completion: Completion, secrets: Secrets | None = None) -> Completion:
    """The completion, storable, with a mask for every secret, the known ones if None: a server may repeat the key."""
    kept = storable(completion)
    known = known_secrets() if secrets is None else secrets
    facts = msgspec.structs.asdict(kept).items()
    masked = {name: known.scrub(fact) for name, fact in facts if isinstance(fact, str)} if known else {}
    return msgspec.structs.replace(kept, **masked)


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
        self._heard = False
        """Whether the server ever sent a reply."""
        self.limits: RateLimits | None = None
        """What the server said of its rate limits with its last reply; None if nothing."""

    async def post(self, parameters: Mapping[str, Any], request: Request) -> Completion:
        """Send a request with its parameters and read its completion; the errors are those of `Model.complete`."""
        # A label is asked for by a choice or a grammar, which a server may refuse as it refuses a schema.
        structured = request.form != "text"
        probable = self._options.logprobs
        sent = sent_names(parameters, request)
        reply = await self.fetch(encoded(parameters, request), structured=structured, probable=probable, sent=sent)
        completion = read_completion(
            reply.body,
            reply.headers,
            structured=structured,
            latency=reply.latency,
            endpoint=self._address.url,
            secrets=self._secrets,
            request=request,
            sent=sent,
        )
        return with_probabilities(completion, reply.body, request) if probable else completion

    async def fetch(
        self, body: bytes, *, structured: bool = False, probable: bool = False, sent: Collection[str] = ()
    ) -> Reply:
        """Send a request and read what comes back with status 200; the errors are those of `Model.complete`.

        `structured`: it asks for a schema, choice or grammar; `probable`: for probabilities; `sent`: the names of its
        parameters. Servers may refuse all of them.
        """
        reply = await self._exchange("POST", body)
        self.limits = read_limits(reply.headers)
        if reply.status != 200:
            refusal = read_refusal(reply.status, self._secrets.scrub_message(reply.body.decode("utf-8", "replace")))
            raise error_for(refusal, reply.headers, structured=structured, probable=probable, sent=sent)
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
                encoding = answer.headers.get("Content-Encoding", "")
                parts = answer.content.iter_any()
                content = await read_body(parts, encoding, answer.status, self._options.max_tokens)
        except (aiohttp.ClientError, OSError) as error:  # a timeout is an OSError
            unheard = "" if self._heard else self._url
            raise connection_error(error, self._options.timeout, unheard) from None
        self._heard = True
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
    listed = None
    with contextlib.suppress(TransientError):
        listed = at(read_json(body), list, "data")
    models = None if listed is None else tuple(at(each, str, "id") or "" for each in listed)
    return Pinged(status, seconds, page, models)


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
    body = bytearray()
    received = 0
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
