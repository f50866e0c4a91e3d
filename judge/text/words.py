"""The content words of a text, and how many of them occur in other texts. Pure."""

import re
import unicodedata
from collections.abc import Sequence

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


_STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are as at be because been before being below between both
    but by can could did do does doing down during each few for from further had has have having he her here hers
    him his how i if in into is it its itself just let may me might more most must my no nor not now of off on
    once only or other our ours out over own same shall she should so some such than that the their theirs them
    then there these they this those through to too under until up upon us very was we were what when where which
    while who whom why will with would you your yours
    """.split()
)


def content_words(text: str) -> list[str]:
    """The words of a text without stop words, case-folded, in order."""
    words = (word.casefold() for word in _WORD.findall(unicodedata.normalize("NFKC", text)))
    return [word for word in words if word not in _STOP_WORDS]


def containment(response: str, passages: Sequence[str]) -> float:
    """Share of the response's content-word tokens that occur in the passages; 0 for a response without any.

    >>> containment("The ferry leaves at noon.", ["A ferry leaves the pier at noon."])
    1.0
    >>> containment("The ferry leaves at dawn.", ["A ferry leaves the pier at noon."])
    0.6666666666666666
    """
    words = content_words(response)
    if not words:
        return 0.0
    known = {word for passage in passages for word in content_words(passage)}
    return sum(word in known for word in words) / len(words)
