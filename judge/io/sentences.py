"""The sentences of a text. Pure."""

import re

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
    wordless = True
    for line in _lines(text):
        for piece in _split_line(line):
            # A sentence is closed once it and what follows both have a word.
            if not sentences or (not wordless and _has_word(piece)):
                sentences.append([])
                wordless = True
            sentences[-1] += piece.split()
            wordless = wordless and not _has_word(piece)
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
    start, pieces = 0, []
    for stop in _STOP.finditer(line, marker.end() if marker else 0):
        if _ends_sentence(line, stop.start(), stop.end()):
            pieces.append(line[start : stop.end()])
            start = stop.end()
    return [piece for piece in (*pieces, line[start:]) if piece.strip()]


def _ends_sentence(line: str, mark: int, end: int) -> bool:
    """Whether the stop at line[mark:end] ends a sentence."""
    following = _NEXT_WORD.match(line, end)
    word = (following[1] if following else None) or ""
    if line[mark] in "。！？":
        return True
    if word[:1].islower():
        return False
    if line[mark:end].rstrip("\"'”’)]*_") != ".":
        return True
    if _INLINE_MARKER.search(line, max(0, mark - 8), mark):
        return False
    before = _LAST_WORD.search(line, max(0, mark - 30), mark)
    last = (before[0] if before else "") + "."
    if last.lower() in _NEVER_LAST:
        return False
    if last.lower() in _ABBREVIATION or _DOTTED.fullmatch(last):
        # Two single letters in a row are initials.
        return word.lower() in _STARTERS and (len(last) > 2 or len(word) > 1)
    return True


def _has_word(piece: str) -> bool:
    return any(character.isalnum() for character in piece)
