"""The body of a reply, read in parts: decompressed here, and never longer than a reply can be. Pure."""

import zlib
from collections.abc import AsyncIterable

from judge.errors import RejectedError, TransientError

_LEAST = 1 << 20
_PER_TOKEN = 64
_OF_AN_ERROR = 1 << 16
"""Bytes that are read of a reply with another status than 200; an error says what it is in its first words."""
_ANY_HEADER = zlib.MAX_WBITS + 32
"""Tells zlib to take the header of gzip or of zlib, whichever is there."""


def longest_reply(max_tokens: int) -> int:
    """Most bytes of a reply that judge reads: 1 MiB, and 64 bytes for each token that was asked for.

    >>> longest_reply(1024)
    1114112
    """
    return _LEAST + _PER_TOKEN * max_tokens


async def read_body(parts: AsyncIterable[bytes], encoding: str, status: int, max_tokens: int) -> bytes:
    """The body of a reply, decompressed; the body of an error is cut after 64 KiB.

    Args:
        parts: The parts of the body as they arrive.
        encoding: The header Content-Encoding; empty if there is none.
        status: The status of the reply.
        max_tokens: Most tokens of a completion.

    Raises:
        RejectedError: The body is longer than a reply can be, or compressed in another way than gzip or deflate.
        TransientError: The compressed body is damaged or ends early.
    """
    most = longest_reply(max_tokens) if status == 200 else _OF_AN_ERROR
    body = _Body(encoding, most)
    async for part in parts:
        if not body.add(part):
            if status != 200:
                return body.content[:most]
            raise RejectedError(
                f"the reply is longer than {most} bytes, the most that judge reads with --max-tokens {max_tokens}"
            )
    if not body.ended:
        raise TransientError("the compressed reply ends early")
    return body.content


class _Body:
    """The parts of a body up to a number of bytes, whether compressed or not."""

    def __init__(self, encoding: str, most: int) -> None:
        encoding = encoding.strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise RejectedError(f"the reply is compressed with {encoding[:20]!r}; judge reads gzip and deflate")
        self._most = most
        self._received = self._size = 0
        self._parts: list[bytes] = []
        self._inflate = None if encoding in ("", "identity") else zlib.decompressobj(_ANY_HEADER)

    def add(self, part: bytes) -> bool:
        """Take the next part; False if the body is longer than it may be."""
        self._received += len(part)
        while self._inflate and part and self._fits():
            if self._inflate.eof:
                # A gzip file may be followed by another.
                self._inflate = zlib.decompressobj(_ANY_HEADER)
            try:
                self._keep(self._inflate.decompress(part, self._most - self._size + 1))
            except zlib.error as error:
                raise TransientError(f"the compressed reply is damaged: {error}") from error
            part = self._inflate.unconsumed_tail or self._inflate.unused_data
        if not self._inflate:
            self._keep(part)
        return self._fits()

    @property
    def content(self) -> bytes:
        """What has arrived."""
        return b"".join(self._parts)

    @property
    def ended(self) -> bool:
        """Whether a compressed body has come to its end."""
        return self._inflate is None or self._inflate.eof or not self._received

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        self._parts.append(part)

    def _fits(self) -> bool:
        return max(self._received, self._size) <= self._most
