"""The words of a text, its content words, its sentences, and its words as Lucene 5.1 finds them. Pure."""

import functools
import re
import string
import unicodedata
from collections.abc import Iterator, Sequence, Set
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex
    from nltk.stem.porter import PorterStemmer

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_SPACED = "".join(
    character.lower() if character in f"{string.ascii_letters}{string.digits}'" else " "
    for character in map(chr, range(128))
)
"""For each ASCII character: itself in lower case if it may be in a word, else a space."""
_YPOGEGRAMMENI = "\u0345"
"""The one character that no word has and that is folded to one that a word may have."""

COPIED_RUN = 8
"""Consecutive words of another text that count as copied: too many to occur by chance."""
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


def words_of(text: str) -> list[str]:
    """The words of a text, case-folded, after NFKC, in order.

    >>> words_of("Don't go to the CAFÉ!")
    ["don't", 'go', 'to', 'the', 'café']
    """
    normalized = text if text.isascii() else unicodedata.normalize("NFKC", text)
    if normalized.isascii():
        return _ascii_words(normalized)
    folded = normalized.casefold()
    # One call instead of one a word, where each character is folded to one of its kind.
    if len(folded) == len(normalized) and _YPOGEGRAMMENI not in normalized:
        return _WORD.findall(folded)
    return [word.casefold() for word in _WORD.findall(normalized)]


def _ascii_words(text: str) -> list[str]:
    """As `words_of`, at a fifth of the cost."""
    parts = text.translate(_SPACED).split()
    if "'" not in text:
        return parts
    words: list[str] = []
    for part in parts:
        words.extend(_WORD.findall(part) if "'" in part else (part,))
    return words


def content_words(text: str) -> list[str]:
    """The words of a text without stop words, case-folded, in order."""
    return without_stop_words(words_of(text))


def without_stop_words(words: Sequence[str]) -> list[str]:
    """The words that are no stop words, in order."""
    return [word for word in words if word not in _STOP_WORDS]


def word_runs(words: Sequence[str], length: int = COPIED_RUN) -> Iterator[tuple[str, ...]]:
    """Every `length` consecutive words."""
    return zip(*(words[start:] for start in range(length)), strict=False)


def containment(response: str, passages: Sequence[str]) -> float:
    """Share of the response's content-word tokens that occur in the passages; 0 for a response without any.

    >>> containment("The ferry leaves at noon.", ["A ferry leaves the pier at noon."])
    1.0
    >>> containment("The ferry leaves at dawn.", ["A ferry leaves the pier at noon."])
    0.6666666666666666
    """
    words = content_words(response)
    return share_known(words, set().union(*map(words_of, passages))) if words else 0.0


def share_known(words: Sequence[str], known: Set[str]) -> float:
    """Share of the words that are among the known ones."""
    return sum(map(known.__contains__, words)) / len(words)


_HAS_WORD = re.compile(r"[^\W_]")

_BULLET = re.compile(r"(?:[-*•‣◦–]|\(?(?:[0-9]{1,3}|[A-Za-z])[.)]|#{1,6})\s")

# A stop takes a whole run of marks, so that a million dots cost a million steps. Every stop begins with one of a few
# signs, which the engine then looks for at once: this takes a seventh of the time of two alternatives.
_STOP = re.compile(
    r"[.!?…。！？](?:(?<=[.!?…])(?<![.!?…][\s\S])[.!?…]*+[\"'”’)\]*_]*+(?=\s)|(?<=[。！？])[。！？]*[”’）」』]*)"
)

_LAST_WORD = re.compile(r"[^\s(\[\"'“‘]*$")

_NEXT_WORD = re.compile(r"[\s\"'“‘(\[*_]*([^\W\d_]+)?")

_ABBREVIATION = frozenset(
    "dr. mr. mrs. ms. prof. st. sr. jr. vs. etc. fig. no. vol. al. approx. dept. est. inc. ltd. co. gen. gov. sen. "
    "rep. rev. hon. capt. sgt. col. lt. mt. ft. ave. jan. feb. mar. apr. jun. jul. aug. sep. sept. oct. nov. dec. "
    "ca. cf. pp. ed. eds. ph.d.".split()
)

_NEVER_LAST = frozenset(
    "dr. mr. mrs. ms. prof. st. vs. fig. gen. gov. sen. rep. rev. hon. capt. sgt. col. lt. cf. e.g. i.e.".split()
)

_INLINE_MARKER = re.compile(r"(?:^|[:;.!?]\s)\s*\(?[0-9]{1,2}$")

_DOTTED = re.compile(r"(?:[^\W\d_]\.)+")

_STARTERS = frozenset(
    "a after all also although an and as at because before both but by during each even every for from he her here "
    "his how however i if in it its many most my no now of on one our she since so some such that the their then there "
    "these they this those though to today we what when where which while who why with yes you your".split()
)
"""Words that begin a new sentence after `U.S.` or `etc.` when they have a capital."""


def split_sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text, each on one line; together they hold every character that is not white space.

    Line breaks end a sentence unless the next line goes on in lower case; list items stand alone; abbreviations,
    initials and decimal points end nothing. Marks without a word go with the sentence before them.

    >>> split_sentences("Dr. Lee paid $3.50. Is it U.S. law? Yes.")
    ('Dr. Lee paid $3.50.', 'Is it U.S. law?', 'Yes.')
    """
    sentences: list[list[str]] = []
    open_words = False
    for line in _lines(text):
        for piece in _split_line(line):
            has_words = _HAS_WORD.search(piece) is not None
            # A sentence is closed once it and what follows both have a word.
            if not sentences or (open_words and has_words):
                sentences.append([])
                open_words = False
            sentences[-1] += piece.split()
            open_words = open_words or has_words
    return tuple(map(" ".join, sentences))


def _lines(text: str) -> list[str]:
    """Lines of a text; wrapped lines are joined again."""
    lines: list[list[str]] = []
    open_line = False
    for line in map(str.strip, text.splitlines()):
        if line and open_line and line[0].islower():
            lines[-1].append(line)
        elif line:
            lines.append([line])
        open_line = bool(line) and line[-1] not in ".!?…:;。！？"
    return [" ".join(line) for line in lines]


def _split_line(line: str) -> list[str]:
    marker = _BULLET.match(line)
    start = 0
    pieces = []
    for stop in _STOP.finditer(line, marker.end() if marker else 0):
        if _ends_sentence(line, stop.start(), stop.end()):
            pieces.append(line[start : stop.end()])
            start = stop.end()
    return [piece for piece in (*pieces, line[start:]) if piece.strip()]


def _ends_sentence(line: str, mark: int, end: int) -> bool:
    """Whether the stop at line[mark:end] ends a sentence."""
    if line[mark] in "。！？":
        return True
    following = _NEXT_WORD.match(line, end)
    word = (following[1] if following else None) or ""
    if word[:1].islower():
        return False
    if line[mark:end].rstrip("\"'”’)]*_") != ".":
        return True
    if line[mark - 1 : mark].isdecimal() and _INLINE_MARKER.search(line, max(0, mark - 8), mark):
        return False
    before = _LAST_WORD.search(line, max(0, mark - 30), mark)
    last = (before[0] if before else "") + "."
    if last.lower() in _NEVER_LAST:
        return False
    if last.lower() in _ABBREVIATION or _DOTTED.fullmatch(last):
        # Two single letters in a row are initials.
        return word.lower() in _STARTERS and (len(last) > 2 or len(word) > 1)
    return True


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
    return [word for word in map(_lower, _words(text)) if not (stop and word in STOP_WORDS)]


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
def _patterns() -> "tuple[regex.Pattern[str], ...]":
    """What begins a word, a word (letters and digits, and signs between two of a kind), low lines, and their word."""
    rest = r"[\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]*+"
    import regex

    # Signs such as the cedilla alone are letters of Unicode since 7.0, later than Lucene's 6.3.
    hebrew = r"\p{WB=Hebrew_Letter}"
    letter = r"[[\p{WB=ALetter}\p{WB=Hebrew_Letter}]--\p{Sk}]"
    digit = r"[\p{WB=Numeric}\uff10-\uff19]"
    katakana = r"\p{WB=Katakana}"
    low = r"[\p{WB=ExtendNumLet}--\u202f]"
    single = r"[\p{Script=Han}\p{Script=Hiragana}]"
    other = r"\p{LB=Complex_Context}"
    in_word = r"[\p{WB=MidLetter}\p{WB=MidNumLet}:\u02d7']"
    in_number = r"[\p{WB=MidNum}\p{WB=MidNumLet}']"
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
