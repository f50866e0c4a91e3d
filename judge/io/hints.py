"""What a mistyped name may have meant. Pure."""

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?` with the known name that is nearest; "" if none is near.

    >>> did_you_mean("groundednes", ["groundedness", "naturalness"]), did_you_mean("xyz", ["groundedness"])
    ('; did you mean groundedness?', '')
    """
    near = nearest(word, known)
    return f"; did you mean {near}?" if near else ""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that is nearest to a word, upper and lower case alike; None if none is near."""
    # The hyphens of an option tell nothing.
    folded = {name.casefold().lstrip("-"): name for name in known}
    # Long strangers' words take long to compare, and no name of ours is long.
    near = difflib.get_close_matches(word.casefold().lstrip("-")[:80], folded, n=1, cutoff=0.6)
    return folded[near[0]] if near else None
