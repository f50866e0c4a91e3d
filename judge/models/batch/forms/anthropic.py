"""The form of Anthropic's Message Batches. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from judge.errors import RejectedError
from judge.models.batch.forms.form import NOTHING, BatchForm, bare_model, given
from judge.models.batch.records import Returned
from judge.models.http_errors import read_refusal
from judge.models.records import Completion, Message, Request
from judge.models.secrets import redact, scrub, scrubbed
from judge.models.storable import storable

_REASONS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "refusal": "refusal"}
"""Why a message ends, in the words that chat completions use."""


class _Result(msgspec.Struct):
    type: str
    message: msgspec.Raw = NOTHING
    error: msgspec.Raw = NOTHING


class _Line(msgspec.Struct):
    result: _Result


class _Part(msgspec.Struct):
    type: str = ""
    text: str = ""


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(msgspec.Struct):
    content: list[_Part]
    model: str | None = None
    stop_reason: str | None = None
    usage: _Usage | None = None


_decode = msgspec.json.Decoder(_Line).decode


def _body(judge: str, parameters: Mapping[str, Any], messages: Sequence[Message]) -> dict[str, Any]:
    taken = {name: parameters[name] for name in ("max_tokens", "temperature") if name in parameters}
    schema = parameters.get("response_format", {}).get("json_schema", {}).get("schema")
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    return {
        "model": bare_model(parameters, judge),
        **taken,
        **({"system": system} if system else {}),
        "messages": [message for message in messages if message.role != "system"],
        **({"output_config": {"format": {"type": "json_schema", "schema": schema}}} if schema else {}),
    }


def _line(digest: str, body: Mapping[str, Any]) -> dict[str, Any]:
    return {"custom_id": digest, "params": body}


def _returned(line: bytes) -> Returned:
    result = _decode(line).result
    message, error = given(result.message), given(result.error)
    if result.type == "succeeded" and message is not None:
        return Returned(message)
    why = "" if error is None else f": {read_refusal(200, error).message}"
    return Returned(error=f"{result.type}{why}")


def _completion(body: bytes, request: Request) -> Completion:
    try:
        message = msgspec.json.decode(body, type=_Message)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RejectedError(f"no message as Anthropic writes it: {error}") from error
    usage = message.usage or _Usage()
    # Anthropic counts what it reads from its cache beside the other tokens of the prompt.
    prompt = [usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens]
    return storable(
        Completion(
            text=scrub("".join(part.text for part in message.content if part.type == "text")),
            finish_reason=scrubbed(_REASONS.get(message.stop_reason or "", message.stop_reason)),
            model=scrubbed(message.model),
            prompt_tokens=None if usage.input_tokens is None else sum(number or 0 for number in prompt),
            completion_tokens=usage.output_tokens,
            cached_tokens=usage.cache_read_input_tokens,
            raw=redact(body.decode("utf-8", "replace")),
        )
    )


FORM = BatchForm("anthropic", 100_000, 256_000_000, _body, _line, _returned, _completion, False, 0.5)
