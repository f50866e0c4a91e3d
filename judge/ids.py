"""Order and anatomy of ids; every id is a string."""

import re

_DIGITS = re.compile(r"(\d+)")


def natural_key(text: str) -> tuple[tuple[int, int | str], ...]:
    """Key that sorts by the integers inside an id, so that `9-1_2` comes before `9-1_10`.

    >>> sorted(["9-1_10", "9-1_2", "10-1_1"], key=natural_key)
    ['9-1_2', '9-1_10', '10-1_1']
    """
    parts = _DIGITS.split(text)
    # A tag before each part keeps int and str from ever being compared.
    return tuple((1, int(part)) if i % 2 else (0, part) for i, part in enumerate(parts))


def topic_of(turn_id: str) -> str:
    """The topic id inside a turn id: all before the last underscore.

    >>> topic_of("9-1_3"), topic_of("132_1-1")
    ('9-1', '132')
    """
    return turn_id.rpartition("_")[0] or turn_id
