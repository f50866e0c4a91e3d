"""How many tokens spaCy's English rules make of a text, counted chunk by chunk with a memo.

spaCy splits a text on white space and works on each chunk alone, so the counts of the chunks add up. Only afterwards
it looks for its special cases over the finished tokens, and finds one across a space too: `:` and `)` of ": )". A text
in which that may happen is counted by spaCy as a whole.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacy.tokenizer import Tokenizer  # type: ignore[import-not-found]
    from spacy.tokens import Doc

# spaCy's English rules peel a run of punctuation or emoji one sign at a time, searching the whole rest of the
# run at every step: 8,000 signs take 8 s. Runs are tokenized in pieces of this length.
MAX_RUN = 1_000
_LONG_RUN = re.compile(rf"\S{{{MAX_RUN}}}(?=\S)")

# Only special cases split letters from letters, and such a sign after a small letter is always a token.
_PLAIN = re.compile(r"([A-Za-z]*[a-z])([.,;:?!]?)")

_MEMO_CHARS = 1 << 20
"""Characters of the chunks that are remembered, some 150,000 words; one text may go beyond it."""


class EnglishTokens:
    """The tokenizer of `spacy.blank("en")`, exact for texts with white space in every MAX_RUN characters."""

    def __init__(self, tokenizer: "Tokenizer") -> None:
        """Take the tokenizer, whose rules must not change afterwards."""
        self._tokenizer = tokenizer
        self._cases = _SpecialCases(tokenizer)
        self._memo = _Memo(tokenizer, self._cases)

    def count(self, text: str, words: Sequence[str], spaces: Sequence[str]) -> int:
        """The number of tokens of a text.

        Args:
            text: The text.
            words: The text, split on white space.
            spaces: The stretches of white space that are tokens.
        """
        if len(text) > MAX_RUN and len(max(words, key=len, default="")) > MAX_RUN:
            return sum(map(len, self.docs(text)))
        if self._memo.characters > _MEMO_CHARS:
            self._memo = _Memo(self._tokenizer, self._cases)
        memo = self._memo
        total = sum(map(memo.__getitem__, words)) + sum(map(memo.__getitem__, spaces))
        if not memo.first.keys().isdisjoint(words) and self._across(words):
            return len(self._tokenizer(text))
        return total

    def docs(self, text: str) -> "list[Doc]":
        """The tokens of a text in consecutive pieces, which are split only inside runs longer than MAX_RUN."""
        return [self._tokenizer(piece) for piece in _pieces(text)]

    def _across(self, words: Sequence[str]) -> bool:
        """Whether a special case may be found across the space between two of the words."""
        first, last, adjacent = self._memo.first, self._memo.last, self._cases.adjacent
        return any(
            not adjacent.isdisjoint((before, after) for before in last[left] for after in first[right])
            for left, right in pairwise(words)
            if right in first and left in last
        )


class _SpecialCases:
    """The special cases that spaCy looks for over finished tokens, as its other rules split them."""

    def __init__(self, tokenizer: "Tokenizer") -> None:
        bare = type(tokenizer)(
            tokenizer.vocab,
            prefix_search=tokenizer.prefix_search,
            suffix_search=tokenizer.suffix_search,
            infix_finditer=tokenizer.infix_finditer,
            token_match=tokenizer.token_match,
            url_match=tokenizer.url_match,
        )
        self.every = frozenset(tokenizer.rules)
        split = {case: [token.text for token in bare(case)] for case in tokenizer.rules}
        self._split = {case: tokens for case, tokens in split.items() if len(tokens) > 1}
        self._sizes = sorted({len(case) for case in self._split})
        self.adjacent = {pair for tokens in self._split.values() for pair in pairwise(tokens)}
        self._before = {before for before, _ in self.adjacent}
        self._after = {after for _, after in self.adjacent}

    def first(self, chunk: str, token: str) -> set[str]:
        """The later tokens of special cases that a chunk may have begun with, if in the end it begins with `token`."""
        begun = [case[0] for size in self._sizes if (case := self._split.get(chunk[:size]))]
        return self._after.intersection((token, *begun))

    def last(self, chunk: str, token: str) -> set[str]:
        """The earlier tokens of special cases that a chunk may have ended with, if in the end it ends with `token`."""
        ended = [case[-1] for size in self._sizes if (case := self._split.get(chunk[-size:]))]
        return self._before.intersection((token, *ended))


class _Memo(dict[str, int]):
    """The number of tokens of a chunk; a chunk that is not known yet is looked at by spaCy."""

    def __init__(self, tokenizer: "Tokenizer", cases: _SpecialCases) -> None:
        super().__init__()
        self._tokenizer = tokenizer
        self._cases = cases
        self.characters = 0
        self.first: dict[str, set[str]] = {}
        """For chunks that may be the end of a special case: the tokens that they may begin with."""
        self.last: dict[str, set[str]] = {}
        """For chunks that may be the beginning of a special case: the tokens that they may end with."""

    def __missing__(self, chunk: str) -> int:
        word = _PLAIN.fullmatch(chunk)
        if word is not None and self._cases.every.isdisjoint((chunk, word[1])):
            number, ends = (2, (word[1], word[2])) if word[2] else (1, (chunk, chunk))
        else:
            doc = self._tokenizer(chunk)
            number, ends = len(doc), (doc[0].text, doc[-1].text)
        if first := self._cases.first(chunk, ends[0]):
            self.first[chunk] = first
        if last := self._cases.last(chunk, ends[1]):
            self.last[chunk] = last
        self[chunk] = number
        self.characters += len(chunk)
        return number


@functools.cache
def load_english() -> EnglishTokens:
    """The counter of English tokens; loading spaCy takes most of a second, so it is done once."""
    import spacy

    return EnglishTokens(spacy.blank("en").tokenizer)


def _pieces(text: str) -> Iterator[str]:
    """The text in consecutive pieces, split only inside runs longer than MAX_RUN."""
    start = 0
    for match in _LONG_RUN.finditer(text):
        yield text[start : match.end()]
        start = match.end()
    yield text[start:]
