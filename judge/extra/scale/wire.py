"""Wire formats: how the lines of a batch are written and read. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from judge.errors import ContentFilterError, RejectedError
from judge.judges.chat import read_completion, without_secrets
from judge.judges.http_errors import Refusal, at, read_refusal
from judge.judges.label_probabilities import with_probabilities
from judge.judges.records import Completion, Message, Request

CHAT = "/v1/chat/completions"
"""The endpoint that every line of OpenAI's format names."""
_ANTHROPIC_REASONS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "refusal": "refusal"}
_GEMINI_REASONS = {"STOP": "stop", "MAX_TOKENS": "length"}
_GEMINI_SETTINGS = {"temperature": "temperature", "max_tokens": "maxOutputTokens", "seed": "seed"}

BatchLine = dict[str, Any]


def _texts(parts: list[Any] | None) -> str:
    """The text of a reply, without its thoughts."""
    shown = (part for part in parts or () if at(part, str, "type") in (None, "text") and not at(part, bool, "thought"))
    return "".join(at(part, str, "text") or "" for part in shown)


def _system(messages: Sequence[Message]) -> str:
    return "\n\n".join(message.content for message in messages if message.role == "system")


def _schema(parameters: Mapping[str, Any]) -> Any:
    return parameters.get("response_format", {}).get("json_schema", {}).get("schema")


def openai_line(digest: str, model: str, parameters: Mapping[str, Any], messages: Sequence[Message]) -> BatchLine:
    """A request to OpenAI's Batch API, whose lines Azure, Mistral, vLLM's `run-batch` and most gateways take too."""
    # This parameter is for litellm, and not for the API.
    sent = {name: value for name, value in parameters.items() if name != "allowed_openai_params"}
    body = {**sent, "model": model, "messages": messages}
    return {"custom_id": digest, "method": "POST", "url": CHAT, "body": body}


def read_openai(line: BatchLine, request: Request) -> Completion:
    """The completion in a line of OpenAI's output.

    Raises:
        JudgeError: There is none, and why, in the words of the provider; of `read_anthropic` and `read_gemini` too.
    """
    response = at(line, dict, "response") or {}
    status, body = at(response, int, "status_code"), response.get("body")
    reply = msgspec.json.encode(body)
    if isinstance(body, dict) and status in (None, 200):
        completion = read_completion(reply, {}, structured=request.form != "text", latency=None)
        return with_probabilities(completion, reply, request)
    told = f"status {status}: " if status not in (None, 0, 200) else ""
    why = f"{told}{read_refusal(status or 0, reply).message}" if told else "no response and no error"
    if error := line.get("error"):
        refusal = _refusal(status or 0, error)
        codes = "" if told else "".join(f"{code}: " for code in sorted(refusal.codes))
        why = f"{told}{codes}{refusal.message}"
    raise RejectedError(why)


def _refusal(status: int, error: Any) -> Refusal:
    """What a line says of an error, an object or words."""
    return read_refusal(status, msgspec.json.encode({"error": error} if isinstance(error, str) else error))


def anthropic_line(digest: str, model: str, parameters: Mapping[str, Any], messages: Sequence[Message]) -> BatchLine:
    """A request to Anthropic's Message Batches."""
    system, schema = _system(messages), _schema(parameters)
    sent = {
        "model": model,
        **{name: parameters[name] for name in ("max_tokens", "temperature") if name in parameters},
        **({"system": system} if system else {}),
        "messages": [message for message in messages if message.role != "system"],
        **({"output_config": {"format": {"type": "json_schema", "schema": schema}}} if schema else {}),
    }
    return {"custom_id": digest, "params": sent}


def read_anthropic(line: BatchLine, request: Request) -> Completion:
    """The completion in a line of Anthropic's output, in the words of chat completions."""
    message, error = at(line, dict, "result", "message"), (at(line, dict, "result") or {}).get("error")
    kind = at(line, str, "result", "type") or "no result"
    if kind != "succeeded" or message is None:
        raise RejectedError(f"{kind}: {_refusal(200, error).message}" if error else kind)
    parts, reason = at(message, list, "content"), at(message, str, "stop_reason")
    if parts is None:
        raise RejectedError("no message as Anthropic writes it: it has no content")
    prompt, cached = at(message, int, "usage", "input_tokens"), at(message, int, "usage", "cache_read_input_tokens")
    # Anthropic counts what it reads from its cache and writes there beside the other tokens of the prompt.
    beside = (cached or 0) + (at(message, int, "usage", "cache_creation_input_tokens") or 0)
    return without_secrets(
        Completion(
            text=_texts(parts),
            finish_reason=_ANTHROPIC_REASONS.get(reason or "", reason),
            model=message.get("model"),
            prompt_tokens=None if prompt is None else prompt + beside,
            completion_tokens=at(message, int, "usage", "output_tokens"),
            cached_tokens=cached,
            raw=msgspec.json.encode(message).decode(),
        )
    )


def gemini_line(digest: str, model: str, parameters: Mapping[str, Any], messages: Sequence[Message]) -> BatchLine:
    """A request in the files of Gemini's batch mode; the batch and not the line names the model."""
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
    return {"key": digest, "request": {**instruction, "contents": contents, "generationConfig": settings}}


def read_gemini(line: BatchLine, request: Request) -> Completion:
    """The completion in a line of Gemini's output, likewise."""
    reply, error = at(line, dict, "response"), line.get("error")
    if reply is None:
        code, told = at(error, int, "code"), error if isinstance(error, str) else at(error, str, "message")
        why = told or "no response and no error"
        raise RejectedError(why if code is None else f"status {code}: {why}")
    if not at(reply, list, "candidates"):
        if blocked := at(reply, str, "promptFeedback", "blockReason"):
            raise ContentFilterError(f"the prompt was blocked: {blocked}")
        raise RejectedError("a reply without candidates")
    reason = at(reply, str, "candidates", 0, "finishReason")
    # Thoughts are billed as the rest of the reply is.
    counts = (at(reply, int, "usageMetadata", name) for name in ("candidatesTokenCount", "thoughtsTokenCount"))
    return without_secrets(
        Completion(
            text=_texts(at(reply, list, "candidates", 0, "content", "parts")),
            # Every reason beside these is a filter's.
            finish_reason=None if reason is None else _GEMINI_REASONS.get(reason, "content_filter"),
            model=reply.get("modelVersion"),
            prompt_tokens=at(reply, int, "usageMetadata", "promptTokenCount"),
            completion_tokens=sum(count or 0 for count in counts) or None,
            cached_tokens=at(reply, int, "usageMetadata", "cachedContentTokenCount"),
            raw=msgspec.json.encode(reply).decode(),
        )
    )
