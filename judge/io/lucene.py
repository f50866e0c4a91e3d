"""The words of a text as Lucene 5.1 finds them: its StandardAnalyzer and its EnglishAnalyzer. Pure.

Words are those of Unicode's UAX #29, without what is no letter, digit, ideograph or syllable.
"""

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    from nltk.stem.porter import PorterStemmer


LONGEST = 255
"""Characters of a word; a longer one is cut into words of this length."""
STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with".split()
)
"""Lucene's list for English."""
_POSSESSIVES = ("'s", "\u2019s", "\uff07s", "'S", "\u2019S", "\uff07S")


def standard_words(text: str, *, stop: bool = True) -> list[str]:
    """The words in lower case; with `stop` without the stop words, which Lucene's StandardAnalyzer keeps from 8.0 on.

    >>> standard_words("The 12 Angry Men's wi-fi, at 3.14")
    ['12', 'angry', "men's", 'wi', 'fi', '3.14']
    """
    words = map(_lower, _words(text))
    return [word for word in words if not (stop and word in STOP_WORDS)]


def english_words(text: str) -> list[str]:
    """The stems of the words without possessives and stop words; needs the extra `rouge`, which brings nltk.

    >>> english_words("Columbia's computer science department")
    ['columbia', 'comput', 'scienc', 'depart']
    """
    words = (_lower(word[:-2] if word.endswith(_POSSESSIVES) else word) for word in _words(text))
    stem = _stemmer().stem
    return [stem(word, to_lowercase=False) for word in words if word not in STOP_WORDS]


@functools.cache
def _stemmer() -> "PorterStemmer":
    from nltk.stem.porter import PorterStemmer

    # Lucene's stemmer departs from the paper as Porter's own programs do.
    return PorterStemmer(mode=PorterStemmer.MARTIN_EXTENSIONS)


def _words(text: str) -> Iterator[str]:
    begin, word, low, core = _patterns()
    place = 0
    while (start := begin.search(text, place)) is not None:
        place = start.start()
        # As Lucene's buffer does, the window cuts a long word.
        if match := word.match(text, place, place + LONGEST):
            yield match[0]
            place = match.end()
            continue
        # Low lines alone, or too many of them before a letter: those that fit in the window with it begin a word.
        end = low.match(text, place).end()
        place = max(place + 1, end - LONGEST + 1) if core.match(text, end) else end


def _lower(word: str) -> str:
    # Letter by letter, since Lucene knows neither a final sigma nor lower case of two letters.
    return word.lower() if word.isascii() else "".join(letter.lower()[:1] for letter in word)


@functools.cache
def _patterns() -> tuple[regex.Pattern[str], ...]:
    """What a word begins with, a word, low lines, and what makes them a word.

    A word is letters and digits with what stands between two letters or two digits.
    """
    rest = r"[\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]*+"
    # Signs such as the cedilla alone are letters of Unicode since 7.0, later than Lucene's 6.3.
    hebrew, letter = r"\p{WB=Hebrew_Letter}", r"[[\p{WB=ALetter}\p{WB=Hebrew_Letter}]--\p{Sk}]"
    digit, katakana, low = r"[\p{WB=Numeric}\uff10-\uff19]", r"\p{WB=Katakana}", r"[\p{WB=ExtendNumLet}--\u202f]"
    single, other = r"[\p{Script=Han}\p{Script=Hiragana}]", r"\p{LB=Complex_Context}"
    in_word, in_number = r"[\p{WB=MidLetter}\p{WB=MidNumLet}:\u02d7']", r"[\p{WB=MidNum}\p{WB=MidNumLet}']"
    letters = (
        rf'{hebrew}{rest}"{rest}(?={hebrew})|{hebrew}{rest}\'{rest}'
        rf"|{letter}{rest}(?:{in_word}{rest}{letter}{rest})*+"
    )
    digits = rf"{digit}{rest}(?:{in_number}{rest}(?={digit}))?+"
    run = rf"(?:(?:{katakana}{rest})++|(?:{letters}|{digits})++)"
    joined = rf"(?:{low}{rest})*+{run}(?:(?:{low}{rest})++{run})*+(?:{low}{rest})*+"
    core = "|".join((letter, digit, katakana))
    patterns = (
        "|".join((core, low, single, other)),
        rf"{joined}|{single}{rest}|{other}++",
        rf"(?:{low}{rest})++",
        core,
    )
    return tuple(regex.compile(pattern, regex.V1) for pattern in patterns)
