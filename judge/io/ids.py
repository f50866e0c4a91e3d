"""The order of ids, the topic in a turn id and the theme in a topic id; every id is a string. Pure."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, get_args

from judge.errors import UsageError

NaturalKey = tuple[tuple[tuple[int, int, str], ...], str]
"""The sort key that `natural_key` returns."""
Cluster = Literal["topic", "theme"]
"""The unit that was sampled, over which intervals, tests and splits go."""
CLUSTERS: tuple[Cluster, ...] = get_args(Cluster)

_DIGITS = re.compile(r"(\d+)")
_OWN_DIGITS = 16
"""Hexadecimal digits of a conversation's digest: no two conversations share them by chance."""
_UNREACHED = "unreached"


# Every table sorts the same ids again.
@lru_cache(maxsize=65_536)
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


def natural_order(ids: Iterable[str]) -> tuple[NaturalKey, ...]:
    """Key that sorts tuples of ids, each by its integers."""
    return tuple(map(natural_key, ids))


def topic_of(turn_id: str) -> str:
    """The topic id inside a turn id: everything before the last underscore.

    >>> topic_of("9-1_3"), topic_of("132_1-1")
    ('9-1', '132')
    """
    return turn_id.rpartition("_")[0] or turn_id


def conversation_turn_id(turn_id: str, digest: str) -> str:
    """The id of a turn of an interactive run, by the digest of the conversation up to it.

    >>> conversation_turn_id("1-1_3", "5f2c9a01be42d370ffff")
    '1-1_3~5f2c9a01be42d370'
    """
    return f"{turn_id}~{digest[:_OWN_DIGITS]}"


def unreached_turn(topic_id: str) -> str:
    """The id that stands for a topic that an interactive run never reached.

    >>> unreached_turn("2-1"), is_own_turn("2-1_0~unreached"), topic_of("2-1_0~unreached")
    ('2-1_0~unreached', True, '2-1')
    """
    return f"{topic_id}_0~{_UNREACHED}"


def is_own_turn(turn_id: str) -> bool:
    """Whether a turn is one of an interactive run; no turn of a topics file has such an id.

    >>> is_own_turn("1-1_3~5f2c9a01be42d370"), is_own_turn("1-1_3")
    (True, False)
    """
    return "~" in turn_id.rpartition("_")[2]


def is_unreached(turn_id: str) -> bool:
    """Whether an id stands for a topic that an interactive run never reached."""
    return turn_id.endswith(f"_0~{_UNREACHED}")


def run_turn_id(turn_id: str) -> str:
    """The id of a turn as its run gives it.

    >>> run_turn_id("1-1_3~5f2c9a01be42d370"), run_turn_id("1-1_3")
    ('1-1_3', '1-1_3')
    """
    return turn_id.rpartition("~")[0] if is_own_turn(turn_id) else turn_id


def check_cluster(cluster: str) -> None:
    """Refuse a unit that is neither topic nor theme, as a UsageError; a plan in Python may hold any text."""
    if cluster not in CLUSTERS:
        raise UsageError(f"cluster {cluster!r}: expected {' or '.join(CLUSTERS)}")


def cluster_of(topic_id: str, cluster: Cluster) -> str:
    """The unit that a topic belongs to: itself, or its theme, which is everything before the first hyphen.

    In iKAT, `9-1` and `9-2` are conversations of two personas about theme `9`. A topic without a hyphen is its own
    theme.

    >>> cluster_of("9-1", "theme"), cluster_of("132", "theme"), cluster_of("9-1", "topic")
    ('9', '132', '9-1')
    """
    return topic_id if cluster == "topic" else topic_id.partition("-")[0] or topic_id


def clustering(topic_ids: Iterable[str], cluster: Cluster) -> tuple[str, ...]:
    """The note of outputs that do not count topics as the units, with the number of units; none where they do.

    >>> clustering(["9-1", "9-2", "10-1"], "theme")[0]
    'clustered by theme: 2 themes of 3 topics; intervals and tests are over themes, and count these as topics'
    """
    if cluster == "topic":
        return ()
    topics = set(topic_ids)
    themes = len({cluster_of(topic_id, cluster) for topic_id in topics})
    counted = " of ".join(
        f"{number} {noun}{'' if number == 1 else 's'}" for number, noun in ((themes, "theme"), (len(topics), "topic"))
    )
    return (f"clustered by theme: {counted}; intervals and tests are over themes, and count these as topics",)
