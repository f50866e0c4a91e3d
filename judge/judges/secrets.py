"""What must be written and printed nowhere: the keys and passwords that a process was given, by their values."""

import base64
import functools
import html
import json
import os
import re
import sys
from collections.abc import Iterator
from urllib.parse import quote, quote_plus, unquote

MASK = "***"
"""What stands in place of a secret."""
_LONG, _SHORTEST, _SHORTEST_NAMED = 12, 6, 8
"""Least characters of a secret without a digit, since replies may hold words like `localhost`; of one with a digit; and
of one with a digit that may stand in no name and no address."""
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

    def __init__(self, values: frozenset[str]) -> None:
        self._forms = tuple(sorted({form for value in values for form in _written(value)}, key=lambda form: -len(form)))
        self._pattern = re.compile(f"{_BEFORE}(?:{'|'.join(map(re.escape, self._forms))})(?![^\\W_])")
        begun = sorted({form for value in values if _telling(value) for form in _written(_telling(value))})
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
        """As `scrub`, also of every word that begins as a secret does: a provider may mask the last characters only."""
        text = self.scrub(text)
        return text if self._begun is None else self._begun.sub(MASK, text)


def known_secrets(*addresses: str) -> Secrets:
    """The secrets of the environment, of the command line and of these addresses.

    They are the values of variables that are named like one, and the passwords of addresses. A user name is none.
    """
    named = (value.strip() for name, value in os.environ.items() if _SECRET_NAME.search(name))
    places = (*os.environ.values(), *sys.argv[1:], *addresses)
    found = {*named, *(secret for place in places if "://" in place for secret in _passwords(place))}
    return _of(frozenset(filter(_is_secret, found)))


@functools.lru_cache(maxsize=16)
def _of(values: frozenset[str]) -> Secrets:
    return Secrets(values)


def _is_secret(value: str) -> bool:
    return len(value) >= (_SHORTEST if re.search("[0-9]", value) else _LONG)


def _telling(secret: str) -> str:
    """The first characters of a secret, 8 and half of it at least, which tell too much; "" where a mere word begins so.

    What stands before a colon may be the name of a user.
    """
    named = secret.rfind(":") + 1
    end = named + max(_SHORTEST_NAMED, (len(secret) - named + 1) // 2)
    # Whole bytes end there in base64 too.
    end += -end % 3
    return secret[:end] if end <= len(secret) and re.search("[0-9]", secret) and _is_secret(secret[named:end]) else ""


def _passwords(text: str) -> Iterator[str]:
    """The password of an address, or of an argument that ends with one; alone, and with the user as it is sent."""
    credentials, at, _ = text.partition("://")[2].rpartition("@")
    user, colon, password = credentials.partition(":")
    if at and colon:
        yield from (password, unquote(password), f"{unquote(user)}:{unquote(password)}")


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
    held = (
        value.strip()
        for name, value in os.environ.items()
        if _SECRET_NAME.search(name) and len(value.strip()) >= _SHORTEST_NAMED and re.search("[0-9]", value)
    )
    return _KEY.search(text) is not None or any(value in text for value in held)


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
