"""Bodies of replies, cut into parts in every way."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import RejectedError, TransientError
from judge.judges.chat import longest_reply, read_body

MOST = longest_reply(1)  # 1 MiB + 64 bytes


def read(body: bytes, encoding: str = "", status: int = 200, size: int = 1 << 16) -> bytes:
    async def parts() -> AsyncIterator[bytes]:
        for begin in range(0, len(body), size):
            yield body[begin : begin + size]

    return asyncio.run(read_body(parts(), encoding, status, max_tokens=1))


@given(body=st.binary(max_size=300), size=st.integers(1, 50), way=st.sampled_from(["", "gzip", "deflate"]))
def test_a_body_is_read_whole_however_it_is_cut(body: bytes, size: int, way: str) -> None:
    squeezed = {"": body, "gzip": gzip.compress(body, mtime=0), "deflate": zlib.compress(body)}[way]
    assert read(squeezed, way, size=size) == body


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_the_limit_is_exact(encoding: str) -> None:
    def sent(length: int) -> bytes:
        return gzip.compress(b" " * length, 1, mtime=0) if encoding else b" " * length

    assert len(read(sent(MOST), encoding)) == MOST
    with pytest.raises(RejectedError, match=r"longer than 1048640 bytes, .* --max-tokens 1$"):
        read(sent(MOST + 1), encoding)
    assert len(read(sent(MOST), encoding, status=500)) == 65536


def test_empty_members_have_a_limit_too() -> None:
    with pytest.raises(RejectedError, match="longer than 1048640 bytes"):
        read(gzip.compress(b"", mtime=0) * 60_000, "gzip")  # 20 bytes each


@pytest.mark.parametrize(
    ("body", "encoding", "expected", "message"),
    [
        (b"x", "br", RejectedError, "compressed with 'br'"),
        (b"x" * 9, "zstd" * 20, RejectedError, "compressed with 'zstdzstdzstdzstdzstd'"),
        (b"not gzip", "gzip", TransientError, "is damaged"),
        (gzip.compress(b"body", mtime=0)[:-1], "gzip", TransientError, "ends early"),
    ],
)
def test_what_cannot_be_decompressed_is_said(body, encoding, expected, message) -> None:
    with pytest.raises(expected, match=message):
        read(body, encoding)


def test_nothing_is_nothing_however_it_is_compressed() -> None:
    assert read(b"", "gzip") == read(b"") == b""
