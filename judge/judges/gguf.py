"""The header of a GGUF file, which says what must be known before a model is loaded.

Layout: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3, little endian).
"""

import struct
from pathlib import Path
from typing import Any, BinaryIO

from judge.errors import InputError

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""GGUF type code to letter of `struct`."""
_STRING, _ARRAY = 8, 9
_LONGEST = 1 << 26
"""Most entries in one table; a text may have eight times as many bytes. A larger number is damage, not data."""


def trained_context(path: Path) -> int | None:
    """Number of tokens that a model was trained to see at once; None if its file does not say.

    Raises:
        InputError: The file cannot be read, is damaged or is no GGUF file.
    """
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise InputError(f"{path}: is no GGUF file")
            version, _, count = _numbers(file, "IQQ")
            if version not in (2, 3):
                raise InputError(f"{path}: GGUF version {version}, expected 2 or 3")
            for _ in range(count):
                key, value = _value(file, _STRING), _value(file, *_numbers(file, "I"))
                if key.endswith(".context_length") and isinstance(value, int):
                    return value
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (EOFError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: damaged GGUF file: {error}") from error
    return None


def _numbers(file: BinaryIO, letters: str) -> tuple[Any, ...]:
    return struct.unpack(f"<{letters}", _take(file, struct.calcsize(f"<{letters}")))


def _take(file: BinaryIO, size: int) -> bytes:
    if size > _LONGEST * 8:
        raise ValueError(f"a value of {size} bytes")
    taken = file.read(size)
    if len(taken) != size:
        raise EOFError("it ends early")
    return taken


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _take(file, *_numbers(file, "Q")).decode("utf-8", "replace")
    if kind == _ARRAY:
        inner, count = _numbers(file, "IQ")
        if count > _LONGEST:
            raise ValueError(f"a table of {count} entries")
        return [_value(file, inner) for _ in range(count)]
    if kind in _NUMBERS:
        return _numbers(file, _NUMBERS[kind])[0]
    raise ValueError(f"a value of unknown type {kind}")
