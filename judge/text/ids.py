"""The order of ids, and the topic in a turn id; every id is a string."""

import re

NaturalKey = tuple[tuple[tuple[int, int, str], ...], str]
"""The sort key that `natural_key` returns."""

_DIGITS = re.compile(r"(\d+)")


def natural_key(text: str) -> NaturalKey:
    """Key that sorts by the integers inside an id, so that `9-1_2` comes before `9-1_10`.

    >>> sorted(["9-1_10", "9-1_2", "10-1_1"], key=natural_key)
    ['9-1_2', '9-1_10', '10-1_1']
    """
    parts: list[tuple[int, int, str]] = []
    for place, part in enumerate(_DIGITS.split(text)):
        if place % 2:
            # Compared by length and digits, not as an int: a hostile id may have more digits than int() takes.
            digits = part.lstrip("0")
            parts.append((1, len(digits), digits))
        else:
            parts.append((0, 0, part))
    # The id itself decides between ids that differ only in leading zeros.
    return tuple(parts), text


def topic_of(turn_id: str) -> str:
    """The topic id inside a turn id: everything before the last underscore.

    >>> topic_of("9-1_3"), topic_of("132_1-1")
    ('9-1', '132')
    """
    return turn_id.rpartition("_")[0] or turn_id
