"""The chat-completions protocol of OpenAI and compatible servers: what is sent, and how a reply is read."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from judge.errors import RejectedError, TransientError, UsageError
from judge.models.forms import answer_schema, group_schema, nuggets_schema
from judge.models.http_errors import error_for, read_refusal, shorten
from judge.models.journal_rows import storable
from judge.models.records import Completion, Request
from judge.models.secrets import Secrets, known_secrets


def refuse_threads(threads: int | None, name: str) -> None:
    """Refuse `--threads` for a judge that does not run on this machine.

    Raises:
        UsageError: A number was given.
    """
    if threads is not None:
        raise UsageError(f"--threads is for local models; {name} does not run here")


def refuse_replicas(replicas: Sequence[str], name: str) -> None:
    """Refuse further addresses for a judge that is asked at one.

    Raises:
        UsageError: There are some.
    """
    if replicas:
        raise UsageError(f"--base-url may be repeated for server/… only; {name} is asked at one address")


def response_format(request: Request) -> dict[str, Any]:
    """The parameter `response_format` as a mapping to merge into the others; empty unless the form is `json`."""
    if request.form != "json":
        return {}
    if request.lists_nuggets:
        schema = nuggets_schema(request.labels)
    elif request.together:
        schema = group_schema(request.together)
    else:
        schema = answer_schema(request.labels, request.sentences)
    verdict = {"name": "verdict", "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": verdict}}


def chat_messages(request: Request) -> list[dict[str, str]]:
    """The messages of a request as the protocol writes them.

    Raises:
        RejectedError: A text cannot be written as UTF-8.
    """
    try:
        for message in request.messages:
            message.content.encode()
    except UnicodeEncodeError as error:
        raise RejectedError(f"the request cannot be sent: {error.reason} at character {error.start}") from error
    return [{"role": message.role, "content": message.content} for message in request.messages]


class _Part(msgspec.Struct, gc=False):
    text: str | None = None


class _Message(msgspec.Struct, gc=False):
    content: str | list[_Part] | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct, gc=False):
    message: _Message
    finish_reason: str | None = None


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    """Tokens in the words of OpenAI; `prompt_cache_hit_tokens` is DeepSeek's, `cache_read_input_tokens` Anthropic's."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Timings(msgspec.Struct, gc=False):
    """What llama.cpp adds to a reply."""

    cache_n: int | None = None


class _Reply(msgspec.Struct, gc=False):
    choices: list[_Choice] = []
    model: str | None = None
    system_fingerprint: str | None = None
    usage: _Usage | None = None
    timings: _Timings | None = None


_DECODER = msgspec.json.Decoder(_Reply)


def _decode(body: bytes) -> _Reply:
    """The parts of a reply that a judgment needs.

    Raises:
        ValueError: The body is not JSON.
    """
    try:
        return _DECODER.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # A reply is paid for, whatever it says beside its text: what is of another type, or no number, is left out.
        # Half an emoji is cut off as a lone surrogate, which msgspec refuses and Python reads.
        return _as_far_as_readable(json.loads(body.decode("utf-8", "replace"), parse_constant=lambda name: None))


def _as_far_as_readable(document: Any) -> _Reply:
    reply = _members(document)
    choices = reply.get("choices")
    usage = _members(reply.get("usage"))
    details = _Details(_members(usage.get("prompt_tokens_details")).get("cached_tokens"))
    return _Reply(
        choices=[_choice(_members(choice)) for choice in choices] if isinstance(choices, list) else [],
        model=_text(reply.get("model")),
        system_fingerprint=_text(reply.get("system_fingerprint")),
        usage=_Usage(
            usage.get("prompt_tokens"),
            usage.get("completion_tokens"),
            usage.get("total_tokens"),
            details,
            usage.get("prompt_cache_hit_tokens"),
            usage.get("cache_read_input_tokens"),
        ),
        timings=_Timings(_members(reply.get("timings")).get("cache_n")),
    )


def _choice(choice: Mapping[str, Any]) -> _Choice:
    message = _members(choice.get("message"))
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(_text(_members(part).get("text")) or "" for part in content)
    return _Choice(_Message(_text(content), _text(message.get("refusal"))), _text(choice.get("finish_reason")))


def _members(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def check_json(body: bytes) -> None:
    """Check that the body of a reply with status 200 can be read.

    Raises:
        TransientError: The body is not JSON.
    """
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except msgspec.DecodeError:
        try:
            # Python reads half an emoji, which msgspec refuses.
            json.loads(body.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            raise _not_json(body) from error


def _not_json(body: bytes) -> TransientError:
    begins = shorten(body[:100].decode("utf-8", "replace"))
    return TransientError(f"status 200, but not JSON: it begins {begins!r}")


def read_completion(
    body: bytes,
    headers: Mapping[str, str],
    *,
    structured: bool,
    latency: float | None,
    endpoint: str | None = None,
    secrets: Secrets | None = None,
) -> Completion:
    """The completion in the body of a reply with status 200; its text is the refusal if the model refused.

    Every reply with a choice gives a completion, with the whole body beside what could be read, so that what was paid
    for is recorded before anybody judges it.

    Args:
        body: The body of the reply.
        headers: The headers of the reply.
        structured: Whether a JSON schema was sent.
        latency: Seconds that the reply took; None where nobody timed it.
        endpoint: The address that answered, without credentials.
        secrets: What must not come into the journal, though the reply repeats it; the known ones if None.

    Raises:
        TransientError: The body is not JSON, or the provider broke off.
        RejectedError: The body is JSON without choices.
        JudgeError: The body is an error, which some gateways send with status 200.
    """
    try:
        reply = _decode(body)
    except (ValueError, RecursionError) as error:
        raise _not_json(body) from error
    if not reply.choices:
        refusal = read_refusal(200, body)
        status = next((int(code) for code in refusal.codes if code.isdecimal() and 400 <= int(code) < 600), None)
        if status is None:
            raise RejectedError(f"status 200, but no choices: {refusal.message}")
        raise error_for(msgspec.structs.replace(refusal, status=status), headers, structured=structured)
    choice = reply.choices[0]
    if choice.finish_reason == "error":
        raise TransientError("the provider broke off with finish_reason error")
    content, refusal_text = choice.message.content, choice.message.refusal
    if isinstance(content, list):
        content = "".join(part.text or "" for part in content)
    usage, secrets = reply.usage or _Usage(), secrets or known_secrets()
    return storable(
        Completion(
            # A server that repeats the key must not bring it into the journal.
            text=secrets.scrub(refusal_text or content or ""),
            finish_reason="refusal" if refusal_text else secrets.scrubbed(choice.finish_reason),
            model=secrets.scrubbed(reply.model),
            system_fingerprint=secrets.scrubbed(reply.system_fingerprint),
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=_replied(usage),
            cached_tokens=_cached(reply),
            latency=latency,
            endpoint=endpoint,
            raw=secrets.scrub(body.decode("utf-8", "replace")),
        )
    )


def _replied(usage: _Usage) -> int | None:
    """The tokens of the reply; some providers leave its thoughts out, and count them in the total alone."""
    prompt, completion, total = usage.prompt_tokens, usage.completion_tokens, usage.total_tokens
    # Anthropic's count of cached tokens stands beside that of the prompt, so the total may hold them too.
    if usage.cache_read_input_tokens or not (type(prompt) is type(completion) is type(total) is int):
        return completion
    return max(completion, total - prompt)


def _cached(reply: _Reply) -> int | None:
    """The tokens of the prompt that were read from a cache, by the first count that there is."""
    usage = reply.usage or _Usage()
    details, timings = usage.prompt_tokens_details or _Details(), reply.timings or _Timings()
    counts = details.cached_tokens, usage.prompt_cache_hit_tokens, usage.cache_read_input_tokens, timings.cache_n
    return next((count for count in counts if count is not None), None)
