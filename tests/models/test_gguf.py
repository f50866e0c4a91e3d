"""The head of a GGUF file, and what is no such file."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import InputError
from judge.models.engine import trained_context


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def head(*entries: bytes) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + b"".join(entries)


ARCHITECTURE = entry("general.architecture", 8, text("qwen2"))
TAGS = entry("general.tags", 9, struct.pack("<IQ", 8, 2) + text("a") + text("b.context_length"))
CONTEXT = entry("qwen2.context_length", 4, struct.pack("<I", 32768))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (head(ARCHITECTURE, CONTEXT), 32768),
        (head(ARCHITECTURE, TAGS, CONTEXT), 32768),
        (head(entry("x.context_length", 10, struct.pack("<Q", 8192))), 8192),
        (head(ARCHITECTURE, TAGS), None),
        (head(ARCHITECTURE, CONTEXT[:-1])[:-8], None),
        (head(), None),
    ],
)
def test_the_trained_context_is_found(tmp_path: Path, data: bytes, expected: int | None) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(data + b"\0tensors follow")
    assert trained_context(path) == expected


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", None])
def test_another_file_is_one_clear_error(tmp_path: Path, data: bytes | None) -> None:
    path = tmp_path / "m.gguf"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InputError, match="cannot be read" if data is None else "is no GGUF file") as caught:
        trained_context(path)
    assert str(path) in str(caught.value)


@given(st.binary(max_size=200))
def test_random_bytes_after_the_magic_never_cause_an_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("gguf") / "m.gguf"
    path.write_bytes(b"GGUF\x03\x00\x00\x00" + data)
    found = trained_context(path)
    assert found is None or found >= 0
