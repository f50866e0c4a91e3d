"""Addresses and keys of the APIs that serve judges; no message from here holds credentials."""

import os
import re
from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec

from judge.errors import UsageError


class Address(msgspec.Struct, frozen=True):
    """The address of an API: `url` without credentials, and the user and password that it had, if any."""

    url: str
    user: tuple[str, str] | None = None


def read_address(base_url: str) -> Address:
    """The root of an API, from the value of `--base-url`; an address without a path gets `/v1`.

    >>> read_address("http://localhost:8000").url
    'http://localhost:8000/v1'
    >>> read_address("https://example.org/api/v1/chat/completions").url
    'https://example.org/api/v1'

    Raises:
        UsageError: The value is no http or https address, or has a query.
    """
    try:
        parts = urlsplit(base_url.strip())
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"--base-url is not an address: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError("--base-url must be an address like http://localhost:8000/v1")
    if parts.query or parts.fragment:
        raise UsageError("--base-url must end with its path, without ? or #")
    path = parts.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
    netloc = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    user = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return Address(urlunsplit((parts.scheme, netloc, path, "", "")), user)


def read_key(variable: str) -> str | None:
    """The API key in an environment variable; None if the variable is unset or empty.

    Raises:
        UsageError: The value cannot be an HTTP header.
    """
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"{variable} holds characters that no API key has")
    return key or None


_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


def without_credentials(address: str) -> str:
    """The address without user and password."""
    return _CREDENTIALS.sub("", address)
