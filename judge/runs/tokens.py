"""The token limit, counted in the ways that the field uses, with spaCy's version on record."""

import functools
import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise, repeat
from typing import TYPE_CHECKING, get_args

import msgspec

from judge.errors import InputError, UsageError
from judge.io.text import storable
from judge.runs.profiles import Limits
from judge.runs.records import TokenCount, TokenRule

if TYPE_CHECKING:
    from spacy.tokenizer import Tokenizer  # type: ignore[import-not-found]
    from spacy.tokens import Doc

RULES: tuple[TokenRule, ...] = get_args(TokenRule)
MAX_CHARS = 1_000_000
"""The most characters of a text that is tokenized; validation refuses longer ones first."""

_CHUNK = re.compile(r"\S+")

# spaCy's English rules peel a run of punctuation or emoji one sign at a time, searching the whole rest of the
# run at every step: 8,000 signs take 8 s. Runs are tokenized in pieces of this length.
MAX_RUN = 1_000
_LONG_RUN = re.compile(rf"\S{{{MAX_RUN}}}(?=\S)")

# The spaces on whose sides spaCy's English rules find the same tokens alone as together: no special case of theirs
# (emoticons, times, contractions) has the one character before the other.
_APART = re.compile(r" (?<=[\w,.)?!%\"”] )(?=[\w(\"“$])(?!(?<=\. )[OD_])")
_LONGEST_KEPT = 100
"""Characters of the longest part of a text whose tokens are remembered."""

# spaCy's tokenizer without rules: white space splits, one space after a word belongs to the word, and the rest of
# the white space is a token too.
_BARE_SPACE = r"\A\s+|(?<=\S)(?: \s+|[^\S ]\s*)"
_SPACE_TOKEN = re.compile(_BARE_SPACE)
_BARE_TOKEN = re.compile(rf"\S+|{_BARE_SPACE}")

# Soft hyphens, zero-width and blank characters, marks of direction and tags, where they follow Latin, Greek or Cyrillic
# script: in emoji, and in scripts that join or part their letters by them, they belong to the text.
_INVISIBLE = re.compile(
    r"(?<=[\x20-\x7e\u00c0-\u058f\u1e00-\u1fff\u2010-\u2027])"
    r"[\u00ad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]+"
)
LONG_WORD = 12
"""Letters of a word that counts as one. A longer one counts as several, which adds little in any language."""
# Signs end a word, apostrophes do not. Scripts without spaces (Thai to Khmer, Chinese, Japanese) have no words here.
_WORD = re.compile(
    r"[^\s!-&(-/:-@\[-`{-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7\u2000-\u200b\u200e-\u2018\u201a-\u206f\u2190-\u2bff"
    r"\u3000-\u303f\ufe30-\ufe6f\uff00-\uff0f\U0001f000-\U0001faff"
    r"\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
    rf"{{1,{LONG_WORD}}}"
)
MOST_WORDS = 1.5
"""Words that an honest text within the limit may have, as a multiple of it; no text of earlier tracks came to more."""
MOST_INVISIBLE = 0.1
"""Invisible characters that it may have, as a share of the limit."""

_MEMO_SIZE = 1 << 16


class RuleEffect(msgspec.Struct, frozen=True):
    """The responses of a run over the limit by one rule, and the effect of truncating or excluding them."""

    rule: TokenRule
    over: int
    """Responses over the limit."""
    at_limit: int
    """Responses of exactly the limit; many of them suggest that the team cut its texts by this rule."""
    longest: int
    """Tokens of the longest response."""
    tokens_lost: int
    """Tokens that truncation takes from the responses over the limit."""
    emptied: int
    """Responses that truncation leaves without text, so that they are excluded."""
    unanswered: int
    """Turns whose best-ranked response exclusion leaves out; none ranked lower takes its place."""


class TokenCounter:
    """Counts a text by every rule; a text that was counted before costs a dictionary look-up.

    `bare` is `spacy.tokenizer.Tokenizer(vocab)`, the measure that the TREC iKAT guidelines name; it has no rules, so
    it is counted here without spaCy, which takes longer to load than a run to check. `english` is the tokenizer of
    `spacy.blank("en")`, exact for texts with white space in every `MAX_RUN` characters.
    `whitespace` is what the iKAT 2025 validator counts: `split()` after NFKC.
    """

    def __init__(self, rule: TokenRule = "bare", limit: int = 250) -> None:
        if limit < 1:
            raise UsageError(f"the token limit must be 1 or more, not {limit}")
        self.rule: TokenRule = rule
        self.limit = limit
        self._memo: dict[bytes, TokenCount] = {}
        self._others: dict[tuple[TokenRule, int], TokenCounter] = {}

    def held_to(self, limits: Limits) -> "TokenCounter":
        """The counter by the rule and the limit of a profile: this one or another, always the same."""
        wanted = (limits.token_rule, limits.token_limit)
        if wanted == (self.rule, self.limit):
            return self
        if wanted not in self._others:
            self._others[wanted] = TokenCounter(*wanted)
        return self._others[wanted]

    @property
    def versions(self) -> dict[str, str]:
        """Package versions that the counts depend on, for the manifest."""
        from importlib.metadata import version

        return {"spacy": version("spacy")}

    def __call__(self, text: str) -> TokenCount:
        """The lengths of a text and the offset at which `rule` and `limit` would cut it."""
        _refuse(text)
        # Keyed by digest, so that the memo's size does not depend on the texts' lengths.
        key = hashlib.blake2b(text.encode(), digest_size=16).digest()
        counts = self._memo.get(key)
        if counts is None:
            counts = self._count(text)
            if len(self._memo) >= _MEMO_SIZE:
                del self._memo[next(iter(self._memo))]
            self._memo[key] = counts
        return counts

    def forget(self) -> None:
        """Let go of what was counted, since no text is counted again."""
        for counter in (self, *self._others.values()):
            counter._memo.clear()
        _english_tokens.cache_clear()

    def over(self, text: str) -> TokenCount | None:
        """The lengths of a text that is over the limit by the rule; None for any other text.

        Under `bare` and `whitespace` a text within the limit does not need spaCy; under `english` only one that has
        no more characters than it may have tokens.
        """
        _refuse(text)
        at_most = {"bare": _count_bare, "whitespace": _count_whitespace, "english": len}[self.rule]
        if at_most(text) <= self.limit:
            return None
        tokens = self(text)
        return None if tokens.cut is None else tokens

    def _count(self, text: str) -> TokenCount:
        counts = TokenCount(_count_bare(text), _count_english(text), _count_whitespace(text), None)
        if getattr(counts, self.rule) <= self.limit:
            return counts
        ends = _ENDS[self.rule](text)
        return msgspec.structs.replace(counts, cut=next(islice(ends, self.limit - 1, None)))


def countable(text: str) -> bool:
    """Whether a text has tokens and can be counted; validation reports other texts."""
    return bool(text.strip()) and len(text) <= MAX_CHARS and storable(text)


def joined_words(text: str, limit: int) -> tuple[int, int] | None:
    """Words and invisible characters of a text with far more of them than the limit lets expect; None for others."""
    if len(text) <= MOST_INVISIBLE * limit:
        return None
    hidden = 0 if text.isascii() else sum(map(len, _INVISIBLE.findall(text)))
    # Each word takes two characters at least, with the sign that ends it.
    if len(text) < 2 * MOST_WORDS * limit and hidden <= MOST_INVISIBLE * limit:
        return None
    chunks = (_INVISIBLE.sub(" ", text) if hidden else text).split()
    # Most are words by themselves, which is quickly seen.
    others = " ".join([chunk for chunk in chunks if len(chunk) > LONG_WORD or not chunk.isalpha()])
    words = len(chunks) - len(others.split()) + len(_WORD.findall(others))
    return (words, hidden) if words > MOST_WORDS * limit or hidden > MOST_INVISIBLE * limit else None


def truncated(text: str, count_tokens: Callable[[str], TokenCount]) -> tuple[str, TokenCount]:
    """The text cut to the limit of a `TokenCounter`, with its lengths; the whole text if it is within the limit."""
    tokens = count_tokens(text)
    # The rest may count differently on its own, hence the loop; each round shortens the text.
    while tokens.cut is not None:
        text = text[: tokens.cut]
        tokens = count_tokens(text)
    return text, tokens


def rule_effect(
    turns: Iterable[Sequence[str]], counter: TokenCounter, lengths_of: Callable[[str], TokenCount]
) -> RuleEffect:
    """The effect of the counter's rule and limit on a run, given the texts of each turn that would be pooled by rank.

    `lengths_of` is a counter with any rule, for the lengths of all texts; `counter` counts those over the limit.
    """
    lengths: list[int] = []
    over = lost = emptied = unanswered = 0
    for texts in turns:
        for place, text in enumerate(texts):
            length: int = getattr(lengths_of(text), counter.rule)
            lengths.append(length)
            if length <= counter.limit:
                continue
            left, tokens = truncated(text, counter)
            over += 1
            lost += length - getattr(tokens, counter.rule)
            emptied += not left.strip()
            unanswered += place == 0
    return RuleEffect(
        rule=counter.rule,
        over=over,
        at_limit=lengths.count(counter.limit),
        longest=max(lengths, default=0),
        tokens_lost=lost,
        emptied=emptied,
        unanswered=unanswered,
    )


def _refuse(text: str) -> None:
    if len(text) > MAX_CHARS:
        raise InputError(f"a text of {len(text):,} characters is too long to tokenize (limit {MAX_CHARS:,})")
    if not storable(text):
        raise InputError("a text holds a NUL or a lone surrogate")


def _count_english(text: str) -> int:
    parts = _APART.split(text)
    # Long ones would fill the memory of what was counted before.
    short = max(map(len, parts)) <= _LONGEST_KEPT
    return sum(map(_english_tokens if short else _english_tokens.__wrapped__, parts))


@functools.lru_cache(_MEMO_SIZE)
def _english_tokens(part: str) -> int:
    return sum(map(len, _english_docs(part)))


def _english_docs(text: str) -> "list[Doc]":
    """The tokens of a text by spaCy's English rules, in pieces that are split only inside runs longer than MAX_RUN."""
    starts = [0, *(match.end() for match in _LONG_RUN.finditer(text))]
    return [_english()(text[start:end]) for start, end in pairwise([*starts, len(text)])]


@functools.cache
def _english() -> "Tokenizer":
    """The tokenizer of `spacy.blank("en")`; loading spaCy takes most of a second, so it is done once."""
    import spacy

    return spacy.blank("en").tokenizer


def _english_ends(text: str) -> Iterator[int]:
    """The offset of the end of each token."""
    offset = 0
    for doc in _english_docs(text):
        yield from (offset + token.idx + len(token) for token in doc)
        offset += len(doc.text)


def _count_bare(text: str) -> int:
    words = text.split()
    # With single spaces between the words, as in nearly every text, no white space counts.
    return len(words) + (0 if " ".join(words) == text else len(_SPACE_TOKEN.findall(text)))


def _bare_ends(text: str) -> Iterator[int]:
    return (token.end() for token in _BARE_TOKEN.finditer(text))


def _count_whitespace(text: str) -> int:
    return len((text if text.isascii() else unicodedata.normalize("NFKC", text)).split())


def _whitespace_ends(text: str) -> Iterator[int]:
    """The offset at which a text with so many tokens can be cut: a chunk of several tokens counts whole or not at all.

    NFKC keeps white space and composes nothing across it, so the counts of the chunks add up. A chunk may count for
    more than one token, since NFKC writes a spacing accent with a space.
    """
    end = 0
    for chunk in _CHUNK.finditer(text):
        yield from repeat(end, _count_whitespace(chunk[0]) - 1)
        end = chunk.end()
        yield end


_ENDS = {"bare": _bare_ends, "english": _english_ends, "whitespace": _whitespace_ends}
