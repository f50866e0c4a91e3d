"""Environment variables that move a judge of litellm to another address: recorded, or refused. Pure."""

import re
from collections.abc import Mapping

from judge.errors import UsageError
from judge.models.address import without_credentials
from judge.models.secrets import holds_key

_MOVES = re.compile(r"_?(?:API_BASE|BASE_URL|URL|ENDPOINT|HOST|REGION|REGION_NAME|LOCATION|API_VERSION)$")
"""How the names of such variables end; what comes before names a provider."""
_OTHER_NAMES = {
    "bedrock": ("AWS", "AGENTCORE", "ANTHROPIC_AWS"),
    "chatgpt": ("OPENAI_CHATGPT",),
    "custom": ("OPENAI",),
    "dashscope": ("QWENCLOUD", "QWEN_AI_PLATFORM"),
    "friendliai": ("FRIENDLI",),
    "gemini": ("GOOGLE",),
    "huggingface": ("HF",),
    "meta": ("LLAMA",),
    "sagemaker": ("AWS",),
    "text": ("OPENAI", "CODESTRAL"),
    "vertex": ("VERTEXAI", "GOOGLE"),
    "volcengine": ("ARK",),
    "watsonx": ("WX", "WML", "REGION"),
}
"""First word of a provider to other words that its variables begin with."""
_UNRECORDED = "OPENAI_CUSTOM_HEADERS"
"""Headers may hold keys, and a gateway may choose the model by them."""


def moved(provider: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that may decide which address a provider of litellm is asked at, by name.

    >>> moved("openai", {"OPENAI_API_BASE": "http://localhost:1/v1", "ANTHROPIC_BASE_URL": "http://localhost:2"})
    {'OPENAI_API_BASE': 'http://localhost:1/v1'}

    Raises:
        UsageError: A value holds a user name, which no record may show.
    """
    words = names_of(provider)
    values = {
        name: value.strip()
        for name, value in sorted(environment.items())
        if value.strip() and _MOVES.search(name) and any(f"{name}_".startswith(f"{word}_") for word in words)
    }
    for name, value in values.items():
        if without_credentials(value) != value:
            raise UsageError(f"{name} must hold no user name: litellm sends the provider's key")
        if holds_key(value):
            raise UsageError(f"{name} holds a key, which every output would show: name the address without it")
    return values


def names_of(provider: str) -> tuple[str, ...]:
    """The words with which the variables of a provider of litellm begin."""
    first = re.split(r"[_-]", provider)[0]
    return first.upper(), *_OTHER_NAMES.get(first, ())


def refuse_unrecorded(environment: Mapping[str, str]) -> None:
    """Refuse variables that change where or how a judge is asked, and that no record can show.

    Raises:
        UsageError: One of them is set.
    """
    if environment.get(_UNRECORDED, "").strip():
        raise UsageError(f"{_UNRECORDED} is set: its headers may choose another model, and no record would show it")
    if environment.get("USE_LITELLM_PROXY", "").strip().lower() == "true":
        raise UsageError("USE_LITELLM_PROXY is set: name the proxy as litellm_proxy/MODEL, with --base-url")
