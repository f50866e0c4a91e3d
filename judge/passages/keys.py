"""Passage ids as 64-bit keys: ClueWeb22 ids packed exactly, all others by a cryptographic hash.

The digits of `clueweb22-enDDDD-DD-DDDDD:N` fit into 60 bits, so no two such ids share a key, and no id can be made up
that passes for another. Ids of any other form get 63 bits of BLAKE2b under a
marker bit.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

NUMBER_DIGITS = 7
"""The most digits of a packed passage number; no document has ten million passages."""
WINDOW = 25 + 1 + NUMBER_DIGITS + 1
"""Bytes from the start of an id that `packed_keys` reads: document, separator, number and what follows it."""
OTHER = 1 << 63
"""The bit that marks a hashed key."""

_START = b"clueweb22-en"
_CLUEWEB = re.compile(rb"clueweb22-en([0-9]{4})-([0-9]{2})-([0-9]{5}):(0|[1-9][0-9]{0,6})")
_SCALE: Final[int] = 10**NUMBER_DIGITS
_WINDOW_TYPE = np.dtype(
    {
        "names": ["head", "tail", "a", "b", "dash1", "c", "dash2", "d", "e", "f", "separator", "number"],
        "formats": [
            "<u8",
            "<u4",
            "<u2",
            "<u2",
            "u1",
            "<u2",
            "u1",
            "<u2",
            "<u2",
            "u1",
            "u1",
            f"({NUMBER_DIGITS + 1},)u1",
        ],
        "offsets": [0, 8, 12, 14, 16, 17, 19, 20, 22, 24, 25, 26],
        "itemsize": WINDOW,
    }
)
_HEAD = int.from_bytes(b"clueweb2", "little")
_TAIL = int.from_bytes(b"2-en", "little")


def _pair_values() -> NDArray[np.int64]:
    """Two ASCII digits read as one little-endian integer → their value, -1 for any other two bytes."""
    values = np.full(1 << 16, -1, np.int64)
    tens, ones = np.divmod(np.arange(100), 10)
    values[(tens + 48) | ((ones + 48) << 8)] = np.arange(100)
    return values


_PAIR = _pair_values()
_ZERO, _DASH, _COLON = 48, 45, 58


def key_of(passage_id: bytes) -> int:
    """The key of one passage id in UTF-8."""
    if match := _CLUEWEB.fullmatch(passage_id):
        document = int(match[1] + match[2] + match[3])
        return document * _SCALE + int(match[4])
    return int.from_bytes(hashlib.blake2b(passage_id, digest_size=8).digest(), "little") | OTHER


def keys_of_names(names: Sequence[bytes]) -> Keys:
    """`key_of` for many ids, in one tight loop for those of another form than ClueWeb22's, which are nearly all."""
    hashed = hashlib.blake2b
    digests = b"".join([hashed(name, digest_size=8).digest() for name in names])
    keys: Keys = np.frombuffer(digests, "<u8") | np.uint64(OTHER)
    if _START in b"\n".join(names):
        for place, name in enumerate(names):
            if name.startswith(_START):
                keys[place] = key_of(name)
    return keys


def keys_of(passage_ids: Iterable[str]) -> Keys:
    """The keys of passage ids; a lone surrogate is encoded as it is, so that such an id matches no other."""
    names = [passage_id.encode(errors="surrogatepass") for passage_id in passage_ids]
    lengths = np.fromiter(map(len, names), np.int64, len(names))
    starts = np.cumsum(lengths + 1) - lengths - 1
    content = np.frombuffer(b"\n".join(names) + bytes(WINDOW), np.uint8)
    keys, packed, ends = packed_keys(content, starts, _COLON)
    others = np.flatnonzero(~packed | (ends != starts + lengths))
    keys[others] = keys_of_names([names[place] for place in others])
    return keys


def id_of(key: int) -> str | None:
    """The passage id behind a packed key; None for a hashed key, which does not hold its id."""
    if key & OTHER:
        return None
    document, number = divmod(key, _SCALE)
    digits = f"{document:011}"
    return f"clueweb22-en{digits[:4]}-{digits[4:6]}-{digits[6:]}:{number}"


def packed_keys(
    content: Bytes, starts: NDArray[Any], separator: int
) -> tuple[Keys, NDArray[np.bool_], NDArray[np.int64]]:
    """The keys of the ClueWeb22 ids that begin at `starts`, a block at a time.

    Args:
        content: The bytes; at least `WINDOW` of them follow each start.
        starts: Where the ids begin.
        separator: The byte between document and number.

    Returns:
        The keys; whether each start has a whole packable id, without which its key is meaningless; the number's end.
    """
    windows = np.ndarray((len(content) - WINDOW + 1,), f"V{WINDOW}", content, strides=(1,))
    view = windows[starts].view(_WINDOW_TYPE)
    document = _PAIR[view["a"]]
    good = document >= 0
    for field in ("b", "c", "d", "e"):
        pair = _PAIR[view[field]]
        good &= pair >= 0
        document *= 100
        document += pair
    last = view["f"] - np.uint8(_ZERO)
    document *= 10
    document += last
    good &= (view["head"] == _HEAD) & (view["tail"] == _TAIL) & (last < 10)
    good &= (view["dash1"] == _DASH) & (view["dash2"] == _DASH) & (view["separator"] == separator)
    numbers, digits, sound = _numbers(view["number"])
    document *= _SCALE
    document += numbers
    return document.view(np.uint64), good & sound, np.asarray(starts, np.int64) + 26 + digits


def _numbers(places: Bytes) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Passage numbers at the start of each row of bytes: value, digits, and whether it is in canonical form."""
    figures = places[:, 0] - np.uint8(_ZERO)
    going = figures < 10
    numbers = figures.astype(np.int64)
    digits = going.astype(np.int64)
    sound = going.copy()
    leading_zero = figures == 0
    for place in range(1, places.shape[1]):
        figures = places[:, place] - np.uint8(_ZERO)
        going &= figures < 10
        if not going.any():
            break
        numbers = np.where(going, numbers * 10 + figures, numbers)
        digits += going
    sound &= (digits <= NUMBER_DIGITS) & ~(leading_zero & (digits > 1))
    return numbers, digits, sound
