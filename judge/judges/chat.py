"""The chat-completions protocol of OpenAI and compatible servers: what is sent, and how a reply is read."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from judge.errors import RejectedError, TransientError
from judge.judges.credentials import Secrets, known_secrets
from judge.judges.forms import answer_schema, group_schema, nuggets_schema
from judge.judges.http_errors import at, error_for, read_refusal, shorten
from judge.judges.records import Completion, Request, storable


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


def encoded(sent: Any, request: Request | None = None) -> bytes:
    """A request, or a part of one, as JSON; with the messages of `request` beside its parameters.

    A text that cannot be written as UTF-8 is a RejectedError.
    """
    try:
        return msgspec.json.encode(sent if request is None else {**sent, "messages": request.wire})
    except UnicodeEncodeError as error:
        raise RejectedError(f"the request cannot be sent: {error.reason} at character {error.start}") from error


def chat_messages(request: Request) -> list[dict[str, str]]:
    """The messages of a request as the protocol writes them; the error is that of `encoded`."""
    messages: list[dict[str, str]] = msgspec.json.decode(encoded(request.messages))
    return messages


def read_json(body: bytes) -> Any:
    """The body of a reply with status 200; a TransientError if it is not JSON."""
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

    Raises:
        JudgeError: The body is not JSON, holds no choice or an error, or the provider broke off.
    """
    reply = read_json(body)
    if not at(reply, list, "choices"):
        refusal = read_refusal(200, body)
        status = next((int(code) for code in refusal.codes if code.isdecimal() and 400 <= int(code) < 600), None)
        if status is None:
            raise RejectedError(f"status 200, but no choices: {refusal.message}")
        raise error_for(msgspec.structs.replace(refusal, status=status), headers, structured=structured)
    choice, usage = reply["choices"][0], at(reply, dict, "usage") or {}
    reason, refused = at(choice, str, "finish_reason"), at(choice, str, "message", "refusal")
    if reason == "error":
        raise TransientError("the provider broke off with finish_reason error")
    parts = at(choice, list, "message", "content") or ()
    text = refused or at(choice, str, "message", "content") or "".join(at(part, str, "text") or "" for part in parts)
    return without_secrets(
        Completion(
            text=text,
            finish_reason="refusal" if refused else reason,
            model=reply.get("model"),
            system_fingerprint=reply.get("system_fingerprint"),
            prompt_tokens=usage.get("prompt_tokens"),
            completion_tokens=_replied(usage),
            cached_tokens=_cached(usage, at(reply, dict, "timings") or {}),
            latency=latency,
            endpoint=endpoint,
            raw=body.decode("utf-8", "replace"),
        ),
        secrets,
    )


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


def without_secrets(completion: Completion, secrets: Secrets | None = None) -> Completion:
    """The completion, storable, with a mask for every secret, the known ones if None: a server may repeat the key."""
    kept, known = storable(completion), known_secrets() if secrets is None else secrets
    facts = msgspec.structs.asdict(kept).items()
    masked = {name: known.scrub(fact) for name, fact in facts if isinstance(fact, str)} if known else {}
    return msgspec.structs.replace(kept, **masked)
