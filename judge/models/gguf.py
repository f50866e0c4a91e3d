"""The head of a GGUF file: what must be known of a model before it is loaded.

Layout: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3, little endian).
"""

import struct
from pathlib import Path
from typing import BinaryIO

import msgspec

from judge.errors import InputError

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Type code to struct letter."""
_STRING, _ARRAY = 8, 9
_CONTROL = 3
"""Token type of marks such as the end of a message."""
_LONGEST = 1 << 26
"""More bytes in one text, or entries in one table, than this are damage, not data."""


class Head(msgspec.Struct, frozen=True):
    """What a GGUF file says of itself."""

    context: int | None
    """Tokens the model was trained to see at once."""
    control: tuple[str, ...]
    """The tokens that steer a conversation; in a text they must not be taken for what they look like."""


def read_head(path: Path) -> Head:
    """Read the head of a GGUF file.

    Raises:
        InputError: The file cannot be read or is not GGUF.
    """
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise InputError(f"{path}: is no GGUF file")
            version, _, count = struct.unpack("<IQQ", _take(file, 20))
            if version not in (2, 3):
                raise InputError(f"{path}: GGUF version {version}, expected 2 or 3")
            entries = dict(_entry(file) for _ in range(count))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (EOFError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: damaged GGUF file: {error}") from error
    context = entries.get(f"{entries.get('general.architecture')}.context_length")
    tokens, types = entries.get("tokenizer.ggml.tokens"), entries.get("tokenizer.ggml.token_type")
    control: tuple[str, ...] = ()
    if isinstance(tokens, list) and isinstance(types, list) and len(tokens) == len(types):
        control = tuple(str(token) for token, kind in zip(tokens, types, strict=True) if kind == _CONTROL)
    return Head(context if isinstance(context, int) else None, control)


def _take(file: BinaryIO, size: int) -> bytes:
    if size > _LONGEST * 8:
        raise ValueError(f"a value of {size} bytes")
    taken = file.read(size)
    if len(taken) != size:
        raise EOFError("it ends early")
    return taken


def _integer(file: BinaryIO, letter: str) -> int:
    value: int = struct.unpack(f"<{letter}", _take(file, struct.calcsize(f"<{letter}")))[0]
    return value


def _text(file: BinaryIO) -> str:
    return _take(file, _integer(file, "Q")).decode("utf-8", "replace")


def _entry(file: BinaryIO) -> tuple[str, object]:
    key = _text(file)
    return key, _value(file, _integer(file, "I"))


def _value(file: BinaryIO, kind: int) -> object:
    if kind == _STRING:
        return _text(file)
    if kind == _ARRAY:
        inner, count = _integer(file, "I"), _integer(file, "Q")
        if count > _LONGEST:
            raise ValueError(f"a table of {count} entries")
        if inner in _NUMBERS:
            form = f"<{count}{_NUMBERS[inner]}"
            return list(struct.unpack(form, _take(file, struct.calcsize(form))))
        return [_value(file, inner) for _ in range(count)]
    if kind in _NUMBERS:
        form = f"<{_NUMBERS[kind]}"
        return struct.unpack(form, _take(file, struct.calcsize(form)))[0]
    raise ValueError(f"a value of unknown type {kind}")
