"""What must be written and printed nowhere: the keys and passwords in use, by their values."""

import base64
import html
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import quote, quote_plus, unquote

_SHORTEST = 6
"""Characters of a secret that is removed wherever it stands; removing a shorter one would garble other words."""
_SHORTEST_NAMED = 8
"""The same for a variable that only looks like a secret, by its name."""
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
_forms: set[str] = set()
"""Every way in which a secret in use may be written."""


def remember(secret: str) -> None:
    """Remember a secret in use; what is too short to be one is ignored."""
    if len(secret) >= _SHORTEST:
        _forms.update(_written(secret))


def remember_credentials(text: str) -> None:
    """Remember the user and the password of an address, or of an argument that ends with one."""
    _, mark, rest = text.partition("://")
    credentials, at, _ = rest.rpartition("@")
    if not (mark and at):
        return
    user, colon, password = credentials.partition(":")
    # Some services take the key as the user, without a password.
    for secret in (password, credentials) if colon else (user,):
        remember(secret)
        remember(unquote(secret))
    pair = f"{unquote(user)}:{unquote(password)}"
    _forms.update((f"{credentials}@", f"{pair}@", *_encoded(pair)))


def remember_environment(environment: Mapping[str, str], words: Iterable[str] = ()) -> None:
    """Remember the credentials of proxies, and the secrets whose variables begin with one of these words."""
    import urllib.request  # late, because it would slow down `judge --help`

    for proxy in urllib.request.getproxies_environment().values():
        remember_credentials(proxy)
    for name, value in environment.items():
        if _SECRET_NAME.search(name) and any(name.startswith(f"{word}_") for word in words):
            remember(value.strip())


def scrub(text: str) -> str:
    """The text with `***` for every secret in use, however it is written."""
    if any(form in text for form in _forms):
        for form in sorted(_forms, key=lambda form: (-len(form), form)):
            text = text.replace(form, "***")
    return text


def scrubbed(value: object) -> str | None:
    """A word of a reply as text without secrets; None stays None."""
    return None if value is None else scrub(str(value))


def redact(text: str) -> str:
    """A message with `***` for secrets in use, secret variables of the environment, and whatever looks like a key."""
    return redactor()(text)


def redactor() -> Callable[[str], str]:
    """The same as `redact` for many texts, by the environment as it is now."""
    values = [
        value for name, value in os.environ.items() if len(value) >= _SHORTEST_NAMED and _SECRET_NAME.search(name)
    ]

    def redacted(text: str) -> str:
        text = scrub(text)
        for value in values:
            text = text.replace(value, "***")
        return _LOOKS_SECRET.sub("***", text)

    return redacted


def holds_key(text: str) -> bool:
    """Whether a name or an address holds a key: of a provider's shape, or one that the environment holds.

    Words that people set where a server wants no key, such as `localhost`, are none.

    >>> holds_key("openai/gpt-4.1-mini"), holds_key("server/sk-learn-instruct-7b"), holds_key("m?api_key=1")
    (False, False, True)
    """
    held = (
        value.strip()
        for name, value in os.environ.items()
        if _SECRET_NAME.search(name) and len(value.strip()) >= _SHORTEST_NAMED and re.search("[0-9]", value)
    )
    return _KEY.search(text) is not None or any(value in text for value in held)


def _written(secret: str) -> set[str]:
    """The secret as it stands in headers, addresses, JSON and HTML."""
    escaped = json.dumps(secret)[1:-1]
    plain = json.dumps(secret, ensure_ascii=False)[1:-1]
    # PHP escapes the solidus in JSON.
    solidus = escaped.replace("/", r"\/")
    return {
        secret,
        escaped,
        solidus,
        plain,
        html.escape(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        *_encoded(secret),
    }


def _encoded(secret: str) -> set[str]:
    """The secret in base64, as in `Authorization: Basic`, also without the padding."""
    encoded = secret.encode("utf-8", "surrogateescape")
    texts = (encode(encoded).decode() for encode in (base64.b64encode, base64.urlsafe_b64encode))
    return {form for text in texts for form in (text, text.rstrip("=")) if len(form) >= _SHORTEST}
