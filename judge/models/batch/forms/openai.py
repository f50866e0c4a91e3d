"""The form of OpenAI's Batch API, which Azure, Mistral, vLLM's `run-batch` and most gateways take too. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from judge.models.batch.forms.form import NOTHING, BatchForm, bare_model, given
from judge.models.batch.records import Returned
from judge.models.chat import read_completion
from judge.models.http_errors import read_refusal
from judge.models.label_probabilities import with_probabilities
from judge.models.records import Completion, Message, Request

URL = "/v1/chat/completions"
_OWN = ("base_url", "api_base", "environment", "allowed_openai_params")
"""Parameters that are for the caller and not for the API."""


class _Response(msgspec.Struct):
    status_code: int | None = None
    body: msgspec.Raw = NOTHING


class _Line(msgspec.Struct):
    """A line of output; an engine that repeats the request has its `body` beside the response."""

    response: _Response | None = None
    error: msgspec.Raw = NOTHING
    body: msgspec.Raw = NOTHING


_decode = msgspec.json.Decoder(_Line).decode


def _body(judge: str, parameters: Mapping[str, Any], messages: Sequence[Message]) -> dict[str, Any]:
    sent = {name: value for name, value in parameters.items() if name not in _OWN}
    return {**sent, "model": bare_model(parameters, judge), "messages": messages}


def _line(digest: str, body: Mapping[str, Any]) -> dict[str, Any]:
    return {"custom_id": digest, "method": "POST", "url": URL, "body": body}


def _returned(line: bytes) -> Returned:
    read = _decode(line)
    response, asked = read.response, given(read.body)
    body = None if response is None or response.status_code not in (None, 200) else given(response.body)
    return Returned(body, "" if body is not None else _why(read), asked)


def _why(line: _Line) -> str:
    """Why a line has no reply: the error of the batch, or that of the call."""
    response, error = line.response, given(line.error)
    status = 0 if response is None else response.status_code or 0
    told = f"status {status}: " if status not in (0, 200) else ""
    if error is not None:
        refusal = read_refusal(status, b'{"error":%s}' % error if error.startswith(b'"') else error)
        codes = "" if told else "".join(f"{code}: " for code in sorted(refusal.codes))
        return f"{told}{codes}{refusal.message}"
    if response is None or not told:
        return "no response and no error"
    return f"{told}{read_refusal(status, bytes(response.body)).message}"


def _completion(body: bytes, request: Request) -> Completion:
    completion = read_completion(body, {}, structured=request.form != "text", latency=None)
    return with_probabilities(completion, body, request)


FORM = BatchForm("openai", 50_000, 200_000_000, _body, _line, _returned, _completion, True, 0.5)
SERVED = FORM._replace(most_lines=5_000, share=None)
"""For an engine of your own: `vllm run-batch` writes nothing before its last line, and one bad line ends the file."""
