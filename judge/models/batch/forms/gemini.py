"""The form of the files of Gemini's batch mode. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from judge.errors import ContentFilterError, RejectedError
from judge.models.batch.forms.form import NOTHING, BatchForm, given
from judge.models.batch.records import Returned
from judge.models.records import Completion, Message, Request
from judge.models.secrets import redact, scrub, scrubbed
from judge.models.storable import storable

_REASONS = {"STOP": "stop", "MAX_TOKENS": "length"}
"""Why a candidate ends, in the words that chat completions use; every other reason is a filter's."""
_SETTINGS = {"temperature": "temperature", "max_tokens": "maxOutputTokens", "seed": "seed"}


class _Status(msgspec.Struct):
    code: int | None = None
    message: str = ""


class _Line(msgspec.Struct):
    response: msgspec.Raw = NOTHING
    error: _Status | None = None
    request: msgspec.Raw = NOTHING


class _Part(msgspec.Struct):
    text: str = ""
    thought: bool = False


class _Content(msgspec.Struct):
    parts: list[_Part] = []


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content = msgspec.field(default_factory=_Content)
    finish_reason: str | None = None


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None


class _Usage(msgspec.Struct, rename="camel"):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    cached_content_token_count: int | None = None


class _Reply(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] = []
    model_version: str | None = None
    usage_metadata: _Usage = msgspec.field(default_factory=_Usage)
    prompt_feedback: _Feedback = msgspec.field(default_factory=_Feedback)


_decode = msgspec.json.Decoder(_Line).decode


def _body(judge: str, parameters: Mapping[str, Any], messages: Sequence[Message]) -> dict[str, Any]:
    settings = {theirs: parameters[ours] for ours, theirs in _SETTINGS.items() if ours in parameters}
    schema = parameters.get("response_format", {}).get("json_schema", {}).get("schema")
    if schema:
        settings |= {"responseMimeType": "application/json", "responseJsonSchema": schema}
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    return {
        **({"systemInstruction": {"parts": [{"text": system}]}} if system else {}),
        "contents": [
            {"role": "model" if message.role == "assistant" else "user", "parts": [{"text": message.content}]}
            for message in messages
            if message.role != "system"
        ],
        "generationConfig": settings,
    }


def _line(digest: str, body: Mapping[str, Any]) -> dict[str, Any]:
    return {"key": digest, "request": body}


def _returned(line: bytes) -> Returned:
    read = _decode(line)
    reply, asked = given(read.response), given(read.request)
    if reply is not None:
        return Returned(reply, asked=asked)
    status = read.error or _Status(message="no response and no error")
    return Returned(error=f"{'' if status.code is None else f'status {status.code}: '}{status.message}", asked=asked)


def _completion(body: bytes, request: Request) -> Completion:
    try:
        reply = msgspec.json.decode(body, type=_Reply)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RejectedError(f"no reply as Gemini writes it: {error}") from error
    if not reply.candidates:
        blocked = reply.prompt_feedback.block_reason
        if blocked:
            raise ContentFilterError(f"the prompt was blocked: {blocked}")
        raise RejectedError("a reply without candidates")
    first, usage = reply.candidates[0], reply.usage_metadata
    replied = [usage.candidates_token_count, usage.thoughts_token_count]
    reason = first.finish_reason
    return storable(
        Completion(
            text=scrub("".join(part.text for part in first.content.parts if not part.thought)),
            finish_reason=None if reason is None else _REASONS.get(reason, "content_filter"),
            model=scrubbed(reply.model_version),
            prompt_tokens=usage.prompt_token_count,
            completion_tokens=sum(number or 0 for number in replied) if any(replied) else None,
            cached_tokens=usage.cached_content_token_count,
            raw=redact(body.decode("utf-8", "replace")),
        )
    )


FORM = BatchForm("gemini", 1_000_000, 2_000_000_000, _body, _line, _returned, _completion, False, 0.5)
