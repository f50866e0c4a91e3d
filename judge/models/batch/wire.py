"""Wire formats: how the lines of a batch are written and read. Pure."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from judge.errors import ContentFilterError, RejectedError
from judge.models.chat import read_completion
from judge.models.http_errors import read_refusal
from judge.models.journal_rows import storable
from judge.models.label_probabilities import with_probabilities
from judge.models.records import Completion, Message, Request
from judge.models.secrets import known_secrets, scrub

CHAT = "/v1/chat/completions"
"""The endpoint that every line of OpenAI's format names."""
_OWN = ("allowed_openai_params",)
"""Parameters that are for the caller and not for the API."""
_ANTHROPIC_REASONS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "refusal": "refusal"}
_GEMINI_REASONS = {"STOP": "stop", "MAX_TOKENS": "length"}
_GEMINI_SETTINGS = {"temperature": "temperature", "max_tokens": "maxOutputTokens", "seed": "seed"}

_Kind = TypeVar("_Kind")


class Returned(NamedTuple):
    """What one line of output says of its question."""

    body: bytes | None = None
    """The reply, as the provider's API would have sent it; None where there is none."""
    error: str = ""
    """Why there is no reply, in the words of the provider."""
    asked: bytes | None = None
    """The body of the request, where the provider repeats it."""


class WireFormat(NamedTuple):
    """How the requests of one kind of batch are written, and how its output is read."""

    name: str
    most_bytes: int
    """Most bytes of a file of requests."""
    body: Callable[[str, Mapping[str, Any], Sequence[Message]], dict[str, Any]]
    """From the API's name of the model, parameters and messages to what the API is sent."""
    line: Callable[[str, Mapping[str, Any]], dict[str, Any]]
    """From the digest and the body to the line."""
    returned: Callable[[bytes], Returned]
    """What a line of output says; raises a msgspec.MsgspecError if it is of another format."""
    completion: Callable[[bytes, Request], Completion]
    """The completion in a reply; raises a JudgeError if there is none."""
    probabilities: bool = False
    """Whether label probabilities are read."""


_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_status = msgspec.json.Decoder(int | None).decode
_word = msgspec.json.Decoder(str).decode


def _field(document: bytes | None, name: str) -> bytes | None:
    """The JSON of a field of an object, byte for byte; None where it is left out or null."""
    text = bytes(_fields(document or b"").get(name, b"null"))
    return None if text == b"null" else text


def _at(document: Any, kind: type[_Kind], *path: str | int) -> _Kind | None:
    """The value at a path of a document; None where it is missing or of another type: what is paid for is read."""
    for step in path:
        try:
            document = document[step]
        except (LookupError, TypeError):
            return None
    return document if type(document) is kind else None


def _document(body: bytes, name: str) -> Any:
    try:
        # Half an emoji, which msgspec refuses, costs no grade.
        return json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise RejectedError(f"no {name}: {error}") from error


def _texts(parts: list[Any] | None) -> str:
    """The text of a reply, without its thoughts."""
    shown = (
        part for part in parts or () if _at(part, str, "type") in (None, "text") and not _at(part, bool, "thought")
    )
    return scrub("".join(_at(part, str, "text") or "" for part in shown))


def _system(messages: Sequence[Message]) -> str:
    return "\n\n".join(message.content for message in messages if message.role == "system")


def _schema(parameters: Mapping[str, Any]) -> Any:
    return parameters.get("response_format", {}).get("json_schema", {}).get("schema")


def _openai_body(model: str, parameters: Mapping[str, Any], messages: Sequence[Message]) -> dict[str, Any]:
    sent = {name: value for name, value in parameters.items() if name not in _OWN}
    return {**sent, "model": model, "messages": messages}


def _openai_returned(line: bytes) -> Returned:
    response, error, asked = (_field(line, name) for name in ("response", "error", "body"))
    status = _status(_field(response, "status_code") or b"null") if response else None
    body = _field(response, "body") if response else None
    if body is not None and status in (None, 200):
        return Returned(body, asked=asked)
    told = f"status {status}: " if status not in (None, 0, 200) else ""
    why = f"{told}{read_refusal(status or 0, body or b'').message}" if told else "no response and no error"
    if error is not None:
        refusal = read_refusal(status or 0, b'{"error":%s}' % error if error.startswith(b'"') else error)
        codes = "" if told else "".join(f"{code}: " for code in sorted(refusal.codes))
        why = f"{told}{codes}{refusal.message}"
    return Returned(error=why, asked=asked)


def _openai_completion(body: bytes, request: Request) -> Completion:
    completion = read_completion(body, {}, structured=request.form != "text", latency=None)
    return with_probabilities(completion, body, request)


def _anthropic_body(model: str, parameters: Mapping[str, Any], messages: Sequence[Message]) -> dict[str, Any]:
    system, schema = _system(messages), _schema(parameters)
    return {
        "model": model,
        **{name: parameters[name] for name in ("max_tokens", "temperature") if name in parameters},
        **({"system": system} if system else {}),
        "messages": [message for message in messages if message.role != "system"],
        **({"output_config": {"format": {"type": "json_schema", "schema": schema}}} if schema else {}),
    }


def _anthropic_returned(line: bytes) -> Returned:
    result = _field(line, "result")
    kind, message, error = _word(_field(result, "type") or b""), _field(result, "message"), _field(result, "error")
    if kind == "succeeded" and message is not None:
        return Returned(message)
    return Returned(error=kind if error is None else f"{kind}: {read_refusal(200, error).message}")


def _anthropic_completion(body: bytes, request: Request) -> Completion:
    message = _document(body, "message as Anthropic writes it")
    parts, reason = _at(message, list, "content"), _at(message, str, "stop_reason")
    if parts is None:
        raise RejectedError("no message as Anthropic writes it: it has no content")
    prompt, cached = _at(message, int, "usage", "input_tokens"), _at(message, int, "usage", "cache_read_input_tokens")
    # Anthropic counts what it reads from its cache and writes there beside the other tokens of the prompt.
    beside = (cached or 0) + (_at(message, int, "usage", "cache_creation_input_tokens") or 0)
    return storable(
        Completion(
            text=_texts(parts),
            finish_reason=known_secrets().scrubbed(_ANTHROPIC_REASONS.get(reason or "", reason)),
            model=known_secrets().scrubbed(_at(message, str, "model")),
            prompt_tokens=None if prompt is None else prompt + beside,
            completion_tokens=_at(message, int, "usage", "output_tokens"),
            cached_tokens=cached,
            raw=scrub(body.decode("utf-8", "replace")),
        )
    )


def _gemini_body(model: str, parameters: Mapping[str, Any], messages: Sequence[Message]) -> dict[str, Any]:
    # The batch and not the line names the model.
    system, schema = _system(messages), _schema(parameters)
    settings = {theirs: parameters[ours] for ours, theirs in _GEMINI_SETTINGS.items() if ours in parameters}
    if schema:
        settings |= {"responseMimeType": "application/json", "responseJsonSchema": schema}
    contents = [
        {"role": "model" if message.role == "assistant" else "user", "parts": [{"text": message.content}]}
        for message in messages
        if message.role != "system"
    ]
    instruction = {"systemInstruction": {"parts": [{"text": system}]}} if system else {}
    return {**instruction, "contents": contents, "generationConfig": settings}


def _gemini_returned(line: bytes) -> Returned:
    response, error, asked = (_field(line, name) for name in ("response", "error", "request"))
    if response is not None:
        return Returned(response, asked=asked)
    if error is None:
        return Returned(error="no response and no error", asked=asked)
    code = _status(_field(error, "code") or b"null")
    message = _word(_field(error, "message") or b'""')
    return Returned(error=message if code is None else f"status {code}: {message}", asked=asked)


def _gemini_completion(body: bytes, request: Request) -> Completion:
    reply = _document(body, "reply as Gemini writes it")
    if not _at(reply, list, "candidates"):
        if blocked := _at(reply, str, "promptFeedback", "blockReason"):
            raise ContentFilterError(f"the prompt was blocked: {blocked}")
        raise RejectedError("a reply without candidates")
    reason = _at(reply, str, "candidates", 0, "finishReason")
    # Thoughts are billed as the rest of the reply is.
    counts = (_at(reply, int, "usageMetadata", name) for name in ("candidatesTokenCount", "thoughtsTokenCount"))
    return storable(
        Completion(
            text=_texts(_at(reply, list, "candidates", 0, "content", "parts")),
            # Every reason beside these is a filter's.
            finish_reason=None if reason is None else _GEMINI_REASONS.get(reason, "content_filter"),
            model=known_secrets().scrubbed(_at(reply, str, "modelVersion")),
            prompt_tokens=_at(reply, int, "usageMetadata", "promptTokenCount"),
            completion_tokens=sum(count or 0 for count in counts) or None,
            cached_tokens=_at(reply, int, "usageMetadata", "cachedContentTokenCount"),
            raw=scrub(body.decode("utf-8", "replace")),
        )
    )


OPENAI = WireFormat(
    "openai", 200_000_000, _openai_body,
    lambda digest, body: {"custom_id": digest, "method": "POST", "url": CHAT, "body": body},
    _openai_returned, _openai_completion, probabilities=True,
)  # fmt: skip
"""OpenAI's Batch API, whose lines Azure, Mistral, vLLM's `run-batch` and most gateways take too."""
ANTHROPIC = WireFormat(
    "anthropic", 256_000_000, _anthropic_body, lambda digest, body: {"custom_id": digest, "params": body},
    _anthropic_returned, _anthropic_completion,
)  # fmt: skip
"""Anthropic's Message Batches."""
GEMINI = WireFormat(
    "gemini", 2_000_000_000, _gemini_body, lambda digest, body: {"key": digest, "request": body},
    _gemini_returned, _gemini_completion,
)  # fmt: skip
"""The files of Gemini's batch mode."""
