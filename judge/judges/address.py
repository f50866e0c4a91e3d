"""Addresses and keys of the APIs that serve judges, and the variables that move them; no message holds credentials."""

import ipaddress
import os
import re
import urllib.request
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec

from judge.errors import MissingKeyError, UsageError
from judge.judges.secrets import holds_key


class Address(msgspec.Struct, frozen=True):
    """The address of an API: `url` without credentials, and the user and password that it had, if any."""

    url: str
    user: tuple[str, str] | None = None

    @property
    def whole(self) -> str:
        """The address with user and password, for no eyes."""
        return self.url if self.user is None else self.url.replace("://", f"://{':'.join(self.user)}@", 1)


def read_address(base_url: str, source: str = "--base-url") -> Address:
    """The root of an API, from an address that the user gives; one without a path gets `/v1`.

    >>> read_address("http://localhost:8000").url
    'http://localhost:8000/v1'
    >>> read_address("https://example.org/api/v1/chat/completions").url
    'https://example.org/api/v1'

    `source` is the option or variable that holds it. Whatever is no http or https address is a UsageError.
    """
    try:
        parts = urlsplit(base_url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        # What Python says of it may quote a part of the password, and so may the traceback.
        raise UsageError(f"{source} is not an address: its host or port cannot be read{_ENCODE}") from None
    if holds_key(f"{host}{parts.path}?{parts.query}#{parts.fragment}"):
        raise UsageError(
            f"{source} holds a key, which every output would show: a key belongs into the provider's variable, such as "
            "JUDGE_API_KEY for server/…"
        )
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError(f"{source} must be an address like http://localhost:8000/v1")
    if "@" in f"{parts.path}{parts.query}{parts.fragment}":
        raise UsageError(f"{source} has an @ after its host{_ENCODE}")
    if parts.query or parts.fragment:
        raise UsageError(f"{source} must end with its path, without ? or #")
    path = parts.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
    netloc = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    user = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return Address(urlunsplit((parts.scheme, netloc, path, "", "")), user)


_ENCODE = "; in a password, / ? # and @ are written %2F %3F %23 and %40"


def origin(url: str) -> str:
    """Scheme, host and port of an address, by which a browser tells one site from another (RFC 6454).

    >>> origin("HTTPS://ann:pw@Example.org:443/v1?x")
    'https://example.org'
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://" + (f"[{host}]" if ":" in host else host) + ("" if port in (None, usual) else f":{port}")


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address (`HTTPS_PROXY`, `NO_PROXY`); None for this machine.

    This replaces aiohttp's `trust_env`, which also sends passwords from `~/.netrc` and reads both at every call.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost" or host.endswith(".localhost")
    if local or urllib.request.proxy_bypass(host):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy:
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def needed_key(judge: str, variable: str) -> str:
    """The API key of a judge that is not asked without one; a MissingKeyError where there is none."""
    key = read_key(variable)
    if key is None:
        raise MissingKeyError(f"{judge} needs a key: set the environment variable {variable}")
    return key


def read_key(variable: str) -> str | None:
    """The API key in an environment variable; None if unset or empty, a UsageError if it can be no HTTP header."""
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"{variable} holds characters that no API key has")
    return key or None


def without_credentials(address: str) -> str:
    """An address, or an argument that ends with one, without user and password.

    Everything from `://` to the last `@` goes, so that no character of a password stays, whichever they are.
    """
    before, mark, after = address.partition("://")
    return before + mark + after.rpartition("@")[2] if mark else address


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
    "vllm": ("HOSTED_VLLM",),
    "volcengine": ("ARK",),
    "watsonx": ("WX", "WML", "REGION"),
}
"""First word of a provider to other words that its variables begin with."""


def moved(provider: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that may decide which address a provider of litellm is asked at, by name.

    >>> moved("openai", {"OPENAI_API_BASE": "http://localhost:1/v1", "ANTHROPIC_BASE_URL": "http://localhost:2"})
    {'OPENAI_API_BASE': 'http://localhost:1/v1'}
    """
    first = re.split(r"[_-]", provider)[0]
    words = (first.upper(), *_OTHER_NAMES.get(first, ()))
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


def refuse_unrecorded(environment: Mapping[str, str]) -> None:
    """Refuse variables that change where or how a judge is asked, and that no record can show."""
    if environment.get("OPENAI_CUSTOM_HEADERS", "").strip():
        raise UsageError(
            "OPENAI_CUSTOM_HEADERS is set: its headers may choose another model, and no record would show it"
        )
    if environment.get("USE_LITELLM_PROXY", "").strip().lower() == "true":
        raise UsageError("USE_LITELLM_PROXY is set: name the proxy as litellm_proxy/MODEL, with --base-url")
