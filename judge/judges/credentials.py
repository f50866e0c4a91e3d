"""Addresses and keys of the APIs that serve judges, the variables that move them, and what must be written nowhere.

Keys and passwords that a process was given are known by their values; no message and no record holds them.
"""

import base64
import functools
import html
import ipaddress
import itertools
import json
import os
import re
import sys
import urllib.request
from collections.abc import Mapping
from urllib.parse import quote, quote_plus, unquote, urlsplit, urlunsplit

import msgspec

from judge.errors import MissingKeyError, UsageError

MASK = "***"
"""What stands in place of a secret."""
_SHORTEST = 12
"""Characters of a secret at least."""
_FEWEST_CHANGES = 3
"""How often a secret goes from one kind of character to another at least; kinds are lower case, upper case, digits and
the rest. A word, a word with a number behind it and a date have fewer or no letter, and replies may hold them."""
_LONG_TOLD, _SHORT_TOLD, _SHORTEST_BEGUN = 12, 6, 8
"""Least characters of what messages lose, without a digit and with one, and of the beginning of a secret there."""
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$")
_LOOKS_SECRET = re.compile(
    r"(?<=://)[^/@\s]+@|\b(?:sk|pk|rk)-[\w*.-]{6,}|(?<=Bearer )\S+"
    # Not "Basic authentication".
    r"|(?<=Basic )(?=\w[\w+/-]*[A-Z0-9+/=])[\w+/=-]{4,}"
)
_KEY = re.compile(
    # Of one shape with names such as `sk-learn-7b`: a key has letters of both cases and digits, or is hexadecimal.
    r"(?<![A-Za-z0-9])(?:sk|pk|rk)-(?:(?=[\w-]*[a-z])(?=[\w-]*[A-Z])(?=[\w-]*[0-9])[\w-]{20,}|[0-9a-f]{32,})"
    r"|(?<![A-Za-z0-9])(?:AIza[\w-]{30,}|AKIA[0-9A-Z]{16}|eyJ[\w-]{10,}\.[\w-]{10,}"
    r"|(?:gsk|hf|r8|ghp|github_pat)_[A-Za-z0-9]{20,}|(?:xai|nvapi|pplx|fw|csk|tgp_v1)-[\w-]{24,})"
    r"|(?i:[?&#;](?:[\w-]*(?:key|token|secret|password|signature|sig|auth))=[^&\s])"
)
"""Keys by the shapes that providers give them, and parameters of an address that are named like one."""
_BEFORE = r"(?:(?<![^\W_])|(?<=\\[bfnrt])|(?<=\\u[0-9a-fA-F]{4}))"
"""The border of a word, also in JSON, where a letter before it may end an escaped character."""


class Secrets:
    """Some secrets, and every way in which one may be written in headers, addresses, JSON and HTML."""

    def __init__(self, values: frozenset[str], told: frozenset[str] = frozenset()) -> None:
        """Take the secrets, and those values that may be mere words or numbers, which only messages lose."""
        self._forms, self._pattern = _search(values)
        self._told_forms, self._told_pattern = _search(values | told)
        begun = sorted({form for value in values | told if _telling(value) for form in _written(_telling(value))})
        self._begun = (
            re.compile(f"{_BEFORE}(?:{'|'.join(map(re.escape, begun))})[^\\s\"'<>\\\\,;()]*") if begun else None
        )

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._forms)

    def scrub(self, text: str) -> str:
        """The text with MASK for every secret that stands there whole, between the borders of words."""
        # Nearly no text holds one, and this search is much faster than that of the expression.
        return self._pattern.sub(MASK, text) if any(form in text for form in self._forms) else text

    def scrub_message(self, text: str) -> str:
        """As `scrub`, also of values that may be mere words, and of every word that begins as a secret does.

        A provider may mask the last characters only. A message costs nothing, so it may lose too much.
        """
        if any(form in text for form in self._told_forms):
            text = self._told_pattern.sub(MASK, text)
        return text if self._begun is None else self._begun.sub(MASK, text)


def known_secrets(*addresses: str) -> Secrets:
    """The secrets of the environment, of the command line and of these addresses.

    They are the values of variables that are named like one, and the passwords of addresses, if they have the form of
    one (`is_secret`). A user name is none, and with its password it is one whatever its form.
    """
    found = set(_named().values())
    pairs = set[str]()
    for place in (*os.environ.values(), *sys.argv[1:], *addresses):
        if credentials := _passwords(place):
            *passwords, pair = credentials
            found.update(passwords)
            pairs.add(pair)
    told = frozenset(filter(_is_told, found | pairs))
    return _of(frozenset(filter(is_secret, found)) | (told & pairs), told)


def secret_names() -> tuple[str, ...]:
    """The variables of the environment whose values are secrets, by name."""
    return tuple(sorted(name for name, value in _named().items() if is_secret(value)))


def _named() -> dict[str, str]:
    """The values of the variables that are named like a secret."""
    return {name: value.strip() for name, value in os.environ.items() if _SECRET_NAME.search(name)}


@functools.lru_cache(maxsize=16)
def _of(values: frozenset[str], told: frozenset[str]) -> Secrets:
    return Secrets(values, told)


def _search(values: frozenset[str]) -> tuple[tuple[str, ...], re.Pattern[str]]:
    """Every form of some values, and an expression that finds them between the borders of words."""
    forms = tuple(sorted({form for value in values for form in _written(value)}, key=lambda form: -len(form)))
    return forms, re.compile(f"{_BEFORE}(?:{'|'.join(map(re.escape, forms))})(?![^\\W_])")


def is_secret(value: str) -> bool:
    """Whether a value has the form of a secret: the shape of a provider's key, or long and of mixed characters.

    Replies are paid for, and lose nothing that may be a word, a number or a date.

    >>> [is_secret(value) for value in ("key-of-mine-7", "sk-" + "aB3" * 8, "123456", "2026-11-28", "groundedness12")]
    [True, True, False, False, False]
    """
    if _KEY.fullmatch(value):
        return True
    kinds = ["lower" if c.islower() else "upper" if c.isupper() else "digit" if c.isdigit() else "other" for c in value]
    changes = sum(kind != after for kind, after in itertools.pairwise(kinds))
    return len(value) >= _SHORTEST and any(map(str.isalpha, value)) and changes >= _FEWEST_CHANGES


def _is_told(value: str) -> bool:
    return len(value) >= (_SHORT_TOLD if re.search("[0-9]", value) else _LONG_TOLD)


def _telling(secret: str) -> str:
    """The first characters of a secret, 8 and half of it at least, which tell too much; "" where a mere word begins so.

    What stands before a colon may be the name of a user.
    """
    named = secret.rfind(":") + 1
    end = named + max(_SHORTEST_BEGUN, (len(secret) - named + 1) // 2)
    # Whole bytes end there in base64 too.
    end += -end % 3
    return secret[:end] if end <= len(secret) and re.search("[0-9]", secret) and _is_told(secret[named:end]) else ""


def _passwords(text: str) -> tuple[str, ...]:
    """The password of an address, or of an argument that ends with one; alone, and last with the user as it is sent."""
    credentials, at, _ = text.partition("://")[2].rpartition("@")
    user, colon, password = credentials.partition(":")
    if not (at and colon):
        return ()
    return password, unquote(password), f"{unquote(user)}:{unquote(password)}"


def scrub(text: str) -> str:
    """The text with MASK for every known secret."""
    return known_secrets().scrub(text)


def redact(text: str) -> str:
    """A message with MASK for every known secret, for the first half of one, and for whatever looks like a key."""
    return _LOOKS_SECRET.sub(MASK, known_secrets().scrub_message(text))


def holds_key(text: str) -> bool:
    """Whether a name or an address holds a key: of a provider's shape, or one that the environment holds.

    Words that people set where a server wants no key, such as `localhost`, are none.

    >>> holds_key("openai/gpt-4.1-mini"), holds_key("server/sk-learn-instruct-7b"), holds_key("m?api_key=1")
    (False, False, True)
    """
    return _KEY.search(text) is not None or any(value in text for value in _named().values() if is_secret(value))


def _written(secret: str) -> set[str]:
    encoded = secret.encode("utf-8", "surrogateescape")
    in_base64 = {encode(encoded).decode() for encode in (base64.b64encode, base64.urlsafe_b64encode)}
    escaped = json.dumps(secret)[1:-1]
    return {
        secret,
        escaped,
        # PHP escapes the solidus in JSON.
        escaped.replace("/", r"\/"),
        json.dumps(secret, ensure_ascii=False)[1:-1],
        html.escape(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        *in_base64,
        *(text.rstrip("=") for text in in_base64),
    }


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
        host = parts.hostname
        port = parts.port
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
    host = parts.hostname or ""
    port = parts.port
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
    "bedrock": ("AWS", "AGENTCORE", "ANTHROPIC_AWS"), "chatgpt": ("OPENAI_CHATGPT",), "custom": ("OPENAI",),
    "dashscope": ("QWENCLOUD", "QWEN_AI_PLATFORM"), "friendliai": ("FRIENDLI",), "gemini": ("GOOGLE",),
    "huggingface": ("HF",), "meta": ("LLAMA",), "sagemaker": ("AWS",), "text": ("OPENAI", "CODESTRAL"),
    "vertex": ("VERTEXAI", "GOOGLE"), "vllm": ("HOSTED_VLLM",), "volcengine": ("ARK",),
    "watsonx": ("WX", "WML", "REGION"),
}  # fmt: skip
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
