"""The head of a GGUF file, and what is no such file."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import InputError
from judge.judges.engine import trained_context


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def head(*entries: bytes, magic: bytes = b"GGUF", version: int = 3) -> bytes:
    return magic + struct.pack("<IQQ", version, 0, len(entries)) + b"".join(entries)


ARCHITECTURE = entry("general.architecture", 8, text("qwen2"))
TAGS = entry("general.tags", 9, struct.pack("<IQ", 8, 2) + text("a") + text("b"))
NUMBERS = entry("some.numbers", 9, struct.pack("<IQ3H", 2, 3, 1, 2, 3))
FLAG = entry("some.flag", 7, b"\x01")
CONTEXT = entry("qwen2.context_length", 4, struct.pack("<I", 32768))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (head(ARCHITECTURE, CONTEXT), 32768),
        (head(ARCHITECTURE, TAGS, NUMBERS, FLAG, CONTEXT), 32768),
        (head(CONTEXT, version=2), 32768),
        (head(entry("x.context_length", 10, struct.pack("<Q", 8192))), 8192),
        (head(ARCHITECTURE, TAGS), None),
        (head(), None),
    ],
)
def test_the_trained_context_is_found(tmp_path: Path, data: bytes, expected: int | None) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(data + b"tensors follow")
    assert trained_context(path) == expected


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is no GGUF file"),
        (b"PK\x03\x04", "is no GGUF file"),
        (b"GGUF", "it ends early"),
        (head(version=1), "GGUF version 1, expected 2 or 3"),
        (head(ARCHITECTURE, CONTEXT)[:-1], "it ends early"),
        (head(entry("x", 99, b"")), "a value of unknown type 99"),
        (head(entry("x", 9, struct.pack("<IQ", 4, 1 << 40))), "a table of 1099511627776 entries"),
        (head(struct.pack("<Q", 1 << 60)), "a value of 1152921504606846976 bytes"),
        (head(entry("x", 9, struct.pack("<IQ", 9, 1) * 5000)), "damaged GGUF file"),
    ],
)
def test_damage_is_one_clear_error(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message) as caught:
        trained_context(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        trained_context(tmp_path / "none.gguf")


@given(st.binary(max_size=200))
def test_random_bytes_after_the_magic_never_cause_another_error(tmp_path_factory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("gguf") / "m.gguf"
    path.write_bytes(b"GGUF\x03\x00\x00\x00" + data)
    try:
        found = trained_context(path)
    except InputError:
        return
    assert found is None or isinstance(found, int)
