"""What providers refuse, in the bodies that they really send, and what the loop is told to do about it."""

import json
from collections.abc import Collection
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge import errors
from judge.errors import (
    AuthenticationError,
    ContentFilterError,
    ContextLengthError,
    LogprobsError,
    ParameterRefused,
    QuotaError,
    RateLimitError,
    RejectedError,
    StructureUnsupported,
    TransientError,
)
from judge.judges.backends.litellm import LitellmModel
from judge.judges.http_errors import error_for, read_refusal
from judge.judges.model import ModelOptions
from tests.mock import Mock, ask, complete

SENT = ("model", "temperature", "max_tokens", "seed", "response_format", "system")


def said(message: str, param: Any = None, code: Any = None, kind: str = "invalid_request_error") -> dict[str, Any]:
    """OpenAI's shape, which most others use."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def gemini(message: str, *fields: dict[str, str]) -> list[dict[str, Any]]:
    details = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": list(fields)}]
    return [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT", "details": details}}]


def openrouter(raw: Any, provider: str = "X", code: int = 400) -> dict[str, Any]:
    inner = raw if isinstance(raw, str) else json.dumps(raw)
    metadata = {"raw": inner, "provider_name": provider, "is_byok": False}
    return {"error": {"message": "Provider returned error", "code": code, "metadata": metadata}, "user_id": "u"}


def proxy(message: str) -> dict[str, Any]:
    """litellm's proxy."""
    group = ". Received Model Group=m\nAvailable Model Group Fallbacks=None"
    return {"error": {"message": f"litellm.BadRequestError: {message}{group}", "type": None, "code": "400"}}


def pydantic(*location: str | int, kind: str = "extra_forbidden", words: str = "Extra inputs are not permitted") -> Any:
    return {"type": kind, "loc": list(location), "msg": words, "input": 0}


def old_vllm(text: str) -> dict[str, Any]:
    return {"object": "error", "message": text, "type": "BadRequestError", "param": None, "code": 400}


DEFAULT = (
    "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is supported."
)
NO_TEMPERATURE = "Unsupported parameter: 'temperature' is not supported with this model."
NO_MAX_TOKENS = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
)
DEPRECATED = {
    "type": "error",
    "error": {"type": "invalid_request_error", "message": "`temperature` is deprecated for this model."},
    "request_id": "req_011",
}
HOSTILE = "unsupported parameter temperature, system role not supported, response_format schema"
ECHO = f"[{{'type': 'missing', 'loc': ('body', 'messages', 0, 'name'), 'msg': 'Field required', 'input': '{HOSTILE}'}}]"

PARAMETERS: list[tuple[int, Any, str]] = [
    # OpenAI, Azure
    (400, said(DEFAULT, "temperature", "unsupported_value"), "temperature"),
    (400, said(DEFAULT), "temperature"),
    (400, said(NO_TEMPERATURE, "temperature", "unsupported_parameter"), "temperature"),
    (400, said(NO_MAX_TOKENS, "max_tokens", "unsupported_parameter"), "max_tokens"),
    (400, {"error": {"message": NO_MAX_TOKENS, "code": "invalid_request_body"}}, "max_tokens"),
    (400, said("Unrecognized request argument supplied: seed"), "seed"),
    (400, said("Unrecognized request arguments supplied: seed, temperature"), "seed"),
    (400, said("Unrecognized request arguments supplied: temperature, seed"), "temperature"),
    (400, said("Unknown parameter: 'max_tokens'. Use 'max_completion_tokens', at most 8192."), "max_tokens"),
    (400, said("It is flagged as unsupported", "temperature"), "temperature"),
    (400, said("Failed to generate JSON with it", "temperature"), "temperature"),
    (400, said("System role not supported", "model"), "system"),
    (400, {"message": "temperature is not supported", "param": "validation_error"}, "temperature"),
    (400, said("Unsupported", code="unsupported_parameter", param="body.temperature"), "temperature"),
    (400, said("Unsupported", param="extra_body.seed"), "seed"),
    (400, said("Parameter: seed", code="unsupported_parameter"), "seed"),
    (400, said("'messages[0].role' does not support 'system' with this model.", "messages[0].role",
        "unsupported_value"), "system"),
    (400, said("The role is refused.", "messages[0].role"), "system"),
    (400, {"error": {"code": 400, "message": "Validation error at #/temperature: Extra inputs are not permitted\n"
        "Validation error at #/store: Extra inputs are not permitted"}}, "temperature"),
    (422, {"error": {"code": "Invalid input", "status": 422, "message": "invalid input error",
        "details": [pydantic("body", "seed")]}}, "seed"),
    (403, said("You are not allowed to set it.", "temperature"), "temperature"),
    (400, said("no", ["body", "temperature"]), "temperature"),
    (400, said("max_tokens is not a recognized parameter"), "max_tokens"),
    (400, said("The parameter 'seed' is not valid for this model"), "seed"),
    # Gateways that give their own error
    (500, said("upstream", "temperature", "unsupported_value"), "temperature"),
    (501, said("upstream", "temperature"), "temperature"),
    (500, {"error": {"message": "failed", "detail": [pydantic("body", "temperature")]}}, "temperature"),
    # Anthropic
    (400, DEPRECATED, "temperature"),
    (400, said("temperature is not supported for claude-fable-5 when set to non-default values"), "temperature"),
    (400, said("`temperature` and `top_p` cannot both be specified for this model. Please use only one."),
        "temperature"),
    (400, said("`temperature` may only be set to 1 when thinking is enabled."), "temperature"),
    (400, said('messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not '
        '"system" as an input message role.'), "system"),
    # Gemini
    (400, gemini('Invalid JSON payload received. Unknown name "seed": Cannot find field.',
        {"description": 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'}), "seed"),
    (400, gemini("Invalid value", {"field": "generation_config.temperature", "description": "no"}), "temperature"),
    (400, gemini("Developer instruction is not enabled for models/gemma-3-27b-it"), "system"),
    # Mistral, three shapes in three years
    (422, {"object": "error", "message": {"detail": [pydantic("body", "seed")]}, "type": "invalid_request_error"},
        "seed"),
    (422, {"object": "error", "message": json.dumps({"detail": [pydantic("body", "seed")]}), "code": "1000"}, "seed"),
    (422, {"object": "Error", "detail": [pydantic("body", "seed")], "message": [pydantic("body", "seed")],
        "type": "invalid_request_error", "code": 3001}, "seed"),
    (422, {"detail": [pydantic("body", "seed"), pydantic("body", "temperature")]}, "seed"),
    # xAI, Fireworks, Groq, Moonshot, GigaChat, DashScope
    (400, {"code": "Client specified an invalid argument", "error": "Argument not supported on this model: seed"},
        "seed"),
    (400, {"code": "Client specified an invalid argument", "error": "Model grok-4 does not support parameter seed."},
        "seed"),
    (400, said("Extra inputs are not permitted, field: 'seed'"), "seed"),
    (400, said("property 'seed' is unsupported, did you mean 'speed'?"), "seed"),
    (400, {"error": {"message": "invalid temperature: only 1 is allowed for this model"}}, "temperature"),
    (422, {"status": 422, "message": "Invalid params: temperature must be in range (0, +inf)"}, "temperature"),
    (400, said("<400> InternalError.Algo.InvalidParameter: Temperature should be in (0.0, 2.0)"), "temperature"),
    # Bedrock behind gateways
    (400, {"message": "Malformed input request: #: extraneous key [seed] is not permitted, please reformat your input "
        "and try again."}, "seed"),
    (400, {"message": "This model doesn't support system messages. Try again without a system message."}, "system"),
    (400, {"message": "Value 'system' at 'messages.1.member.role' failed to satisfy constraint: Member must satisfy "
        "enum value set: [user, assistant]"}, "system"),
    # OpenRouter, litellm's proxy, other routers
    (400, openrouter(said(NO_TEMPERATURE, "temperature"), "OpenAI"), "temperature"),
    (400, openrouter({"detail": [pydantic("body", "seed")]}, "Mistral"), "seed"),
    (400, openrouter("`temperature` is deprecated for this model."), "temperature"),
    (404, said("No endpoints found that support the requested parameters: temperature"), "temperature"),
    (400, proxy(f"AnthropicException - {json.dumps(DEPRECATED)}"), "temperature"),
    (400, proxy(f"AnthropicException - b'{json.dumps(DEPRECATED)}'No fallback model group found"), "temperature"),
    (400, proxy('BedrockException - {"message":"The model returned the following errors: seed: Extra inputs are not '
        'permitted"}'), "seed"),
    (400, proxy('Azure_aiException - {"error":{"message":"x","param":"seed"}}'), "seed"),
    (400, proxy(f"OpenAIException - Error code: 400 - {said(NO_TEMPERATURE, 'temperature')}"), "temperature"),
    (400, proxy("UnsupportedParamsError: gpt-5 models don't support temperature=0. Only temperature=1 is supported."),
        "temperature"),
    (400, proxy("UnsupportedParamsError: bedrock does not support parameters: ['seed'], for model=m. To drop these, "
        "set `litellm.drop_params=True`"), "seed"),
    (400, {"error": {"cause": json.dumps(said(DEFAULT, "temperature")), "code": 400, "message": "call failed"}},
        "temperature"),
    (400, "upstream error: " + json.dumps(said(DEFAULT, "temperature")), "temperature"),
    # vLLM, new and old; SGLang
    (400, said("temperature is unsupported", "temperature", 400, "BadRequestError"), "temperature"),
    (400, old_vllm(str([{"type": "extra_forbidden", "loc": ("body", "seed"), "msg": "Extra inputs are not permitted",
        "input": 1}])), "seed"),
    (400, old_vllm("[{'type': 'literal_error', 'loc': ('body', 'messages', 0, 'typed-dict', 'role'), 'msg': \"Input "
        "should be 'user'\", 'input': 'system'}]"), "system"),
    (400, old_vllm("System role not supported"), "system"),
    (400, said("This model does not allow system prompts"), "system"),
    (400, said("Messages with role 'system' are not supported"), "system"),
    (400, said("The 'system' role is not available"), "system"),
    (422, "Failed to deserialize: messages[0].role: unknown variant `system`, expected one of `user`", "system"),
    (400, said("'system' is not one of ['assistant', 'user'] - 'messages.0.role'"), "system"),
    (400, said("Conversation roles must alternate user/assistant/user/assistant/... Conversation roles must alternate "
        "user/assistant/user/assistant/..."), "system"),
    (400, said("Only user and assistant roles are supported!"), "system"),
    (400, said("This template knows no roles other than user and assistant."), "system"),
    (400, old_vllm("1 validation error for ChatCompletionRequest\ntemperature\n  Extra inputs are not permitted "
        "[type=extra_forbidden, input_value=0, input_type=int]"), "temperature"),
    (400, said("Pydantic schema validation error: temperature is not allowed here"), "temperature"),
    # llama.cpp, whose templates fail with status 500
    (500, {"error": {"code": 500, "message": "While executing CallExpression at line 43, column 28 in source: Error: "
        "Jinja Exception: Only user, assistant and tool roles are supported, got system.", "type": "server_error"}},
        "system"),
    (500, {"error": {"code": 500, "message": "Jinja Exception: System role not supported", "type": "server_error"}},
        "system"),
    # text-generation-inference, Dynamo, Transformers
    (422, {"error": "Input validation error: `temperature` must be strictly positive", "error_type": "validation"},
        "temperature"),
    (400, {"message": "When n > 1, temperature must be greater than 0 to ensure diverse outputs. Got n=2",
        "type": "Bad Request", "code": 400}, "temperature"),
    (400, said("`temperature` (=0.0) has to be a strictly positive float, otherwise your next token scores will be "
        "invalid."), "temperature"),
    # Ranges that leave out 0
    (422, {"detail": [pydantic("body", "temperature", kind="greater_than", words="Input should be greater than 0")]},
        "temperature"),
    (400, said("Expected a value >= 0.01, but got 0 instead.", "temperature"), "temperature"),
    (400, said("temperature must be between 0.1 and 1"), "temperature"),
    (400, said("temperature must be > 0.0"), "temperature"),
    (400, said("temperature must be strictly greater than zero"), "temperature"),
    (400, said("temperature cannot be 0"), "temperature"),
    (400, said("Only values above 0.5 are supported.", "temperature", "unsupported_value"), "temperature"),
    (400, said("temperature is out of range: got 0.0", "temperature"), "temperature"),
]  # fmt: skip


def refused(
    status: int, body: Any, sent: Collection[str] = SENT, *, structured: bool = True, probable: bool = False
) -> errors.JudgeError:
    encoded = body.encode() if isinstance(body, str) else msgspec.json.encode(body)
    return error_for(read_refusal(status, encoded), {}, structured=structured, probable=probable, sent=sent)


@pytest.mark.parametrize("structured", [True, False])
@pytest.mark.parametrize(("status", "body", "parameter"), PARAMETERS)
def test_a_parameter_that_is_named_is_left_out(status: int, body: Any, parameter: str, structured: bool) -> None:
    found = refused(status, body, structured=structured)
    assert isinstance(found, ParameterRefused), found
    assert found.parameter == parameter
    # Whoever did not send it cannot leave it out.
    without = refused(status, body, [name for name in SENT if name != parameter], structured=structured)
    assert getattr(without, "parameter", None) != parameter


FORM = ("model", "response_format")
OTHERS: list[tuple[int, Any, Collection[str], bool, type[errors.JudgeError]]] = [
    # The status, the body, what was sent, whether a schema was, and the error.
    # A limit of tokens outside of its range
    (400, said("max_tokens is too large: 8192. This model supports at most 4096 completion tokens, whereas you "
        "provided 8192.", "max_tokens"), SENT, True, RejectedError),
    (400, said("Param Incorrect", "max_tokens is too large: 1048576. This model supports at most 131072"), SENT, True,
        RejectedError),
    (400, said("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", None, "invalid_request_error"),
        SENT, True, RejectedError),
    (400, said("max_tokens for `llama-3.1-8b-instant` must be less than or equal to 8000"), SENT, True, RejectedError),
    (400, said("max_tokens of 9000 is not supported. The maximum is 8192."), SENT, True, RejectedError),
    (400, said("max_tokens (384000) exceeds model's maximum output tokens (65536)"), SENT, True, RejectedError),
    (400, old_vllm("max_tokens must be at least 1, got -186."), SENT, True, RejectedError),
    (400, said("The parameter `max_completion_tokens` specified in the request are not valid: integer above maximum "
        "value, expected a value <= 12288, but got 32000 instead.", "max_completion_tokens", "InvalidParameter"),
        ("max_completion_tokens",), True, RejectedError),
    (422, {"detail": [pydantic("body", "max_tokens", kind="less_than_equal", words="Input should be less than or "
        "equal to 8192")]}, SENT, False, RejectedError),
    (400, said("`max_completion_tokens` must be less than or equal to `8192`, the maximum value for "
        "`max_completion_tokens` is less than the `context_window` for this model"), ("max_completion_tokens",), True,
        ContextLengthError),
    (400, said("'max_tokens' or 'max_completion_tokens' is too large: 64000. This model's maximum context length is "
        "64001 tokens and your request has 24235 input tokens", "max_tokens"), SENT, True, ContextLengthError),
    # A range that holds 0: the user set another value
    (400, said("temperature must be between 0 and 2"), SENT, True, RejectedError),
    (400, said("Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.",
        "temperature", "decimal_above_max_value"), SENT, True, RejectedError),
    (400, said("temperature must be non-negative, got -1.0.", "temperature", 400), SENT, True, RejectedError),
    (422, {"detail": [pydantic("body", "temperature", kind="less_than_equal", words="Input should be less than or "
        "equal to 2")]}, SENT, False, RejectedError),
    (400, said("temperature cannot be greater than 2"), SENT, True, RejectedError),
    (400, said("temperature must be in [0, 2]"), SENT, True, RejectedError),
    (400, said("temperature must be 1 or less"), SENT, True, RejectedError),
    # What no request can do without
    (400, said("unsupported parameter temperature", "messages"), SENT, False, RejectedError),
    (400, said("unsupported parameter temperature", "input"), SENT, False, RejectedError),
    (400, said("unsupported parameter temperature", "model"), SENT, False, RejectedError),
    (400, said("temperature is not supported", None, "model_not_found"), SENT, False, AuthenticationError),
    (422, {"detail": [pydantic("body", "messages", 1, "content", words="Field required")]}, SENT, False, RejectedError),
    (400, said("'messages' must contain the word 'json' in some form, to use 'response_format'", "messages"), SENT,
        True, StructureUnsupported),
    # Fields decide, and not the words
    (400, said("temperature is not supported with top_p", "top_p"), SENT, False, RejectedError),
    (422, {"detail": [{"loc": ["body", "stream_options"], "msg": "no", "input": HOSTILE}]}, SENT, False, RejectedError),
    (400, old_vllm(ECHO), SENT, False, RejectedError),
    (400, old_vllm(f"1 validation error for Request: name Field required [input_value='{HOSTILE}']"), SENT, False,
        RejectedError),
    (400, said("Unknown variant, expected one of `temperature`, `seed`, `max_tokens`"), SENT, False, RejectedError),
    (400, said("x" * 300 + HOSTILE), SENT, True, RejectedError),
    (400, said("The temperature of the sampler is 0. Images are not supported."), SENT, False, RejectedError),
    (400, said("bytedance/seed-1.6 is not supported"), SENT, False, RejectedError),
    # A name that is a part of another
    (400, said("Unsupported parameter: 'max_completion_tokens'"), ("max_tokens",), False, RejectedError),
    (400, said("Unsupported parameter: 'temperature_last'"), SENT, False, RejectedError),
    (400, said("Unsupported parameter: 'min_temperature'"), SENT, False, RejectedError),
    # The word system alone
    (400, said("file system error"), SENT, False, RejectedError),
    (400, said("The system is overloaded and not available"), SENT, False, RejectedError),
    (400, said("System message must be at the beginning."), SENT, False, RejectedError),
    (400, said("System role is required"), SENT, False, RejectedError),
    (400, said("The file system is not supported"), SENT, False, RejectedError),
    (500, said("After the optional system message, conversation roles must alternate user and assistant roles except "
        "for tool calls and results."), SENT, False, TransientError),
    (500, said("Jinja Exception: Only user, system and assistant roles are supported!"), SENT, False, TransientError),
    (400, said("System role not supported"), FORM, False, RejectedError),
    # The form
    (400, said("model: deepseek/x does not support feature: structured-outputs", None, "INVALID_REQUEST_BODY"), SENT,
        True, StructureUnsupported),
    (400, said("Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."), SENT,
        True, StructureUnsupported),
    (400, said("This response_format type is unavailable now"), SENT, True, StructureUnsupported),
    (422, "Failed to deserialize the JSON body into the target type: response_format: response_format.type "
        "`json_schema` is unavailable now at line 1 column 12440", SENT, True, StructureUnsupported),
    (400, {"error": "'response_format.type' must be 'json_schema' or 'text'"}, SENT, True, StructureUnsupported),
    (400, said("Unsupported JSON schema fields: {'minItems'}", "response_format", "wrong_api_format"), SENT, True,
        StructureUnsupported),
    (400, {"message": "type: Input should be 'text'", "param": "validation_error", "code": "wrong_api_format"}, SENT,
        True, RejectedError),
    (400, said("Invalid parameter", "response_format.json_schema", "unsupported_parameter"), SENT, True,
        StructureUnsupported),
    (422, {"detail": [pydantic("body", "response_format")]}, SENT, True, StructureUnsupported),
    (400, openrouter('{"message":"json_schema is not supported"}'), SENT, True, StructureUnsupported),
    (400, gemini('Invalid JSON payload received. Unknown name "x" at \'generation_config.response_schema\': Cannot '
        "find field."), SENT, True, StructureUnsupported),
    (400, said("Json mode is not enabled for models/gemini-x"), SENT, True, StructureUnsupported),
    (400, said("response_format and temperature are not supported together"), SENT, True, StructureUnsupported),
    (422, {"error": "Input validation error: grammar is not valid: Grammar must have a 'properties' field"}, SENT, True,
        StructureUnsupported),
    (400, old_vllm("The provided JSON schema contains features not supported by xgrammar."), SENT, True,
        StructureUnsupported),
    (400, said("response_format is unsupported"), SENT, False, RejectedError),
    (400, said("schema"), FORM, True, StructureUnsupported),
    # Statuses of the server
    (500, said("Failed to initialize samplers: failed to parse grammar"), SENT, True, StructureUnsupported),
    (500, {"error": "invalid JSON schema in format"}, SENT, True, StructureUnsupported),
    (500, said('Grammar error: Unimplemented keys: ["propertyNames"]'), SENT, True, StructureUnsupported),
    (501, said("response_format is not implemented"), SENT, True, StructureUnsupported),
    (501, said("response_format is not implemented"), SENT, False, TransientError),
    (500, said("Internal Server Error"), SENT, True, TransientError),
    (501, said("Not Implemented"), SENT, True, TransientError),
    (500, said("unsupported parameter temperature"), SENT, True, TransientError),
    (503, said("no", "temperature"), SENT, True, TransientError),
    # A model that is not there, and a provider that is not
    (404, said("No endpoints found that support the requested parameters: response_format"), SENT, True,
        StructureUnsupported),
    (404, said("No endpoints found that can handle the requested parameters. To learn more about provider routing, "
        "visit: https://openrouter.ai/docs/provider-routing", None, 404), SENT, True, StructureUnsupported),
    (404, said("No endpoints found that can handle the requested parameters."), SENT, False, RejectedError),
    (404, said("No endpoints found for openrouter/hunter-alpha:free.", None, 404), SENT, True, AuthenticationError),
    (404, said("The model `x` does not exist", None, "model_not_found"), SENT, True, AuthenticationError),
    (401, said("no", "temperature"), SENT, True, AuthenticationError),
    (403, said("Country, region, or territory not supported", None, "unsupported_country_region_territory"), SENT, True,
        AuthenticationError),
    # What is about neither
    (429, openrouter(said("Rate limited.", "temperature"), code=429), SENT, True, RateLimitError),
    (402, openrouter(said("Insufficient credits")), SENT, True, QuotaError),
    (400, openrouter(said("no", None, "insufficient_quota")), SENT, True, QuotaError),
    (400, openrouter(said("The prompt is too long: 210000 tokens > 200000 maximum")), SENT, True, ContextLengthError),
    (400, said(f"flagged: {HOSTILE}", None, "content_filter"), SENT, True, ContentFilterError),
    (400, said(f"Blocked: {HOSTILE}", "prompt", "content_filter"), SENT, True, ContentFilterError),
    (400, said("Bad prompt: 'loc': ('body', 'seed')"), SENT, False, RejectedError),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "sent", "structured", "expected"), OTHERS)
def test_what_refuses_no_parameter(
    status: int, body: Any, sent: Collection[str], structured: bool, expected: type[errors.JudgeError]
) -> None:
    found = refused(status, body, sent, structured=structured)
    assert type(found) is expected, found
    if isinstance(found, StructureUnsupported):
        assert found.lasting


ONE_GENERATION = [
    said("Failed to generate JSON. Please adjust your prompt. See 'failed_generation' for more details.", None,
        "json_validate_failed"),
    said("Failed to validate JSON. Please adjust your prompt. See 'failed_generation' for more details."),
    said("Generated JSON does not match the expected schema. Please adjust your prompt. See 'failed_generation' for "
        "more details. Error: jsonschema: '/grade' does not validate"),
    {"error": {"message": "no", "code": "json_validate_failed", "failed_generation": HOSTILE}},
    openrouter(said("Failed to generate JSON.", None, "json_validate_failed"), "Groq"),
    said("Failed to generate JSON.", "response_format", "json_validate_failed"),
    {"errors": [{"message": "AiError: JSON Mode couldn't be met", "code": 5024}], "success": False},
    said("Model did not output valid JSON."),
]  # fmt: skip


@pytest.mark.parametrize("body", ONE_GENERATION)
def test_one_generation_that_failed_says_nothing_of_the_form(body: Any) -> None:
    found = refused(400, body)
    assert isinstance(found, StructureUnsupported)
    assert not found.lasting


def test_a_schema_that_cannot_be_validated_is_no_failed_generation() -> None:
    found = refused(400, said("Failed to validate JSON schema"))
    assert isinstance(found, StructureUnsupported)
    assert found.lasting


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, said("Unsupported", "top_logprobs")),
        (500, said("Unsupported", "top_logprobs")),
        (400, said("logprobs is not supported with this model")),
        (404, said("No endpoints found that support the requested parameters: logprobs")),
        (422, {"detail": [pydantic("body", "logprobs")]}),
    ],
)
def test_probabilities_that_are_refused_are_not_left_out(status: int, body: Any) -> None:
    assert type(refused(status, body, (*SENT, "logprobs", "top_logprobs"), probable=True)) is LogprobsError


def test_a_refusal_of_another_parameter_is_none_of_probabilities() -> None:
    found = refused(400, said("no logprobs", "temperature"), (*SENT, "logprobs"), probable=True)
    assert isinstance(found, ParameterRefused)
    assert found.parameter == "temperature"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (openrouter(said("it broke")), "Provider returned error: it broke"),
        (openrouter("it broke"), "Provider returned error: it broke"),
        ({"error": {"message": 'XException - {"message":"it broke"}. More'}}, "XException: it broke"),
        ({"error": {"message": 'XException - b\'{"message":"it broke"}\''}}, "XException: it broke"),
        ({"error": {"message": 'I saw {"text": "a"} and left'}}, 'I saw {"text": "a"} and left'),
        ({"errors": [{"message": "it broke"}]}, "it broke"),
        ({"error": "Bad Request", "message": "it broke"}, "Bad Request: it broke"),
        ({"message": {"detail": [{"msg": "it broke"}]}}, '[{"msg": "it broke"}]'),
    ],
)
def test_the_message_of_the_provider_behind_another_is_shown(body: Any, message: str) -> None:
    assert read_refusal(400, msgspec.json.encode(body)).message == message


def test_the_number_is_that_of_the_provider_that_answered() -> None:
    body = openrouter({"error": {"message": "no", "code": 502}}, code=429)
    assert [code for code in read_refusal(200, msgspec.json.encode(body)).codes if code.isdecimal()] == ["429"]


BEHIND_LITELLM = [
    (400, said(DEFAULT, "temperature", "unsupported_value"), "temperature"),
    (400, openrouter(said(NO_TEMPERATURE, "temperature")), "temperature"),
    (400, proxy(f"AnthropicException - {json.dumps(DEPRECATED)}"), "temperature"),
    (422, {"detail": [pydantic("body", "max_tokens")]}, "max_tokens"),
    (400, old_vllm("System role not supported"), "system"),
    (500, said("Jinja Exception: System role not supported"), "system"),
]


@pytest.mark.parametrize(("status", "body", "parameter"), BEHIND_LITELLM)
def test_litellm_hides_no_refusal(mock: Mock, no_keys: None, status: int, body: Any, parameter: str) -> None:
    mock.script({"status": status, "body": body})
    model = LitellmModel("hosted_vllm/mock", ModelOptions(base_url=mock.base_url))
    with pytest.raises(ParameterRefused) as found:
        complete(model, ask("json"))
    assert found.value.parameter == parameter
    assert found.value.status == status


@pytest.mark.parametrize(
    "body", ['{"detail":%s}', '{"detail":[{"loc":[%s]}]}', '{"error":{"message":%s}}', 'x {"message":%s}', "%s"]
)
def test_a_body_that_is_nested_as_deep_as_can_be_is_survived(body: str) -> None:
    # What can be decoded at one depth of calls cannot be encoded at another.
    for depth in range(800, 1010):
        nested = body % f"{'[' * depth}{']' * depth}"
        assert type(error_for(read_refusal(400, nested), {}, structured=True, sent=SENT)) is RejectedError


NAMES = st.sampled_from([*SENT, "logprobs", "structured_outputs", "", "a.b", "messages[0].role", "Größe"])
WORDS = st.sampled_from([DEFAULT, NO_MAX_TOKENS, HOSTILE, ECHO, "response_format", "must be > 0", "[{", '{"message":'])
TEXTS = st.text() | NAMES | WORDS
KEYS = st.sampled_from(["error", "errors", "message", "detail", "details", "metadata", "raw", "param", "loc", "code"])
BODIES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KEYS | st.text(), inner, max_size=5)
        | inner.map(lambda body: json.dumps({"error": body}))
    ),
    max_leaves=12,
)


@given(
    body=st.binary() | BODIES.map(lambda body: json.dumps(body).encode()),
    status=st.integers(100, 599),
    sent=st.sets(NAMES | st.text()),
    structured=st.booleans(),
    probable=st.booleans(),
)
def test_any_refusal_is_one_of_our_errors(
    body: bytes, status: int, sent: set[str], structured: bool, probable: bool
) -> None:
    found = error_for(read_refusal(status, body), {}, structured=structured, probable=probable, sent=sent)
    assert isinstance(found, errors.JudgeError)
    assert found.status == status
    if isinstance(found, ParameterRefused):
        assert found.parameter in sent - {"model", "messages", "response_format", "structured_outputs", "grammar"}
    if isinstance(found, StructureUnsupported):
        assert structured
