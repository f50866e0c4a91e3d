"""Words as ROUGE compares them, in any script. Pure."""

import functools
from typing import Any

_WORD = r"(?V1)\p{Han}|\p{Hiragana}|\p{Katakana}|(?:[[\p{L}\p{N}]--[\p{Han}\p{Hiragana}\p{Katakana}]]\p{M}*)+"


def rouge_words(text: str) -> list[str]:
    """Runs of letters and digits in lower case; a character of Chinese or Japanese is a word, since no space ends one.

    In a text of ASCII they are those of rouge-score before it stems them.

    >>> rouge_words("Café no. 9, naïve_x: 茶です")
    ['café', 'no', '9', 'naïve', 'x', '茶', 'で', 'す']
    """
    words: list[str] = _pattern().findall(text.lower())
    return words


@functools.cache
def _pattern() -> Any:
    import regex

    return regex.compile(_WORD)
