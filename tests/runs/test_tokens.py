import json
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokenizer import Tokenizer

from judge.errors import InputError, UsageError
from judge.runs.records import TokenRule
from judge.runs.tokens import MAX_CHARS, MAX_RUN, RULES, TokenCounter, joined_words, rule_effect, truncated

pytestmark = pytest.mark.slow

NLP = spacy.blank("en")
BARE = Tokenizer(NLP.vocab)
COUNT = TokenCounter()
LIMITED = {limit: TokenCounter("bare", limit) for limit in range(1, 9)}
WHITESPACE = {limit: TokenCounter("whitespace", limit) for limit in range(1, 9)}
for counter in (COUNT, *LIMITED.values()):
    counter("")  # loads spaCy here, so that no example of a property pays for it

awkward = st.sampled_from(list("aB1 \n\t.,:;)('\"-$/@’é\u00a0\u3000😀"))
texts = st.text(awkward | st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)


@pytest.mark.parametrize(
    ("text", "bare", "english", "whitespace"),
    [
        ("", 0, 0, 0),
        ("Hello", 1, 1, 1),
        # ' ' Hello ' ' world, it's $5.   against   ' ' Hello ' ' world , it 's $ 5 .
        (" Hello  world, it's $5.", 6, 10, 4),
        ("Hello world ", 2, 2, 2),  # one trailing space belongs to the token before it
        ("Hello world  ", 3, 3, 2),  # the second one is a token
        ("a\nb", 3, 3, 2),
        ("a\u00a0b", 3, 3, 2),
        ("½ cup", 2, 2, 2),  # NFKC writes the fraction with U+2044, no space
        ("a\u00b4b", 1, 1, 2),  # NFKC turns the spacing accent into a space and a mark
    ],
)
def test_the_three_ways_of_counting(text: str, bare: int, english: int, whitespace: int) -> None:
    found = COUNT(text)
    assert (found.bare, found.english, found.whitespace, found.cut) == (bare, english, whitespace, None)


WORDS = ("ferry", "leaves", "at", "noon") * 100
INVISIBLE = "\u2060\u2800\u200b\u200c\u200d\u3164\u00ad\ufe0f\U000e0020"


@pytest.mark.parametrize("join", [*INVISIBLE, *"_/·-|。的☆", ".☆."])
def test_words_joined_within_the_limit_are_counted(join: str) -> None:
    text = join.join(WORDS)
    assert COUNT.over(text) is None
    assert joined_words(text, 250) == (400, 399 if join in INVISIBLE else 0)


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("".join(WORDS), None),
        ("".join(WORDS) * 3, (425, 0)),
        (" ".join("".join(map(str.title, WORDS[:4])) for _ in range(200)), (400, 0)),
        (" ".join(WORDS[:200]).replace("r", "r\u00ad"), (300, 100)),
        (" ".join(WORDS[:200]).replace("leaves", "le\u00adaves", 25), None),
        ("👩\u200d🔬 1\ufe0f\u20e3 and ❤\ufe0f " * 20, None),
        ("می\u200cخواهم " * 240, None),
        ("क\u094d\u200dष " * 240, None),
        ("ใจ\u200bดี" * 900, None),
        ("东京都市圏は便利です。" * 900, None),
        ("བོད་སྐད་" * 900, None),
        ("Donaudampfschifffahrtsgesellschaft liegt am Ufer " * 62, None),
        ("a well-known state-of-the-art ferry, isn't it " * 30, None),
        ("see https://example.org/timetable/2024/northern-pier/ferry_to_the_island?day=monday&page=2 now " * 20, None),
        ("it said 1,234,567.89 or $3.50 (12%) " * 35, None),
    ],
)
def test_honest_texts_have_no_joined_words(text: str, joined: tuple[int, int] | None) -> None:
    assert COUNT.over(text) is None
    assert joined_words(text, 250) == joined


@given(texts)
def test_counts_are_those_of_spacy_and_of_the_2025_validator(text: str) -> None:
    found = COUNT(text)
    assert found.bare == len(BARE(text))
    assert found.english == len(NLP.tokenizer(text))
    assert found.whitespace == len(unicodedata.normalize("NFKC", text).split())


specials = st.sampled_from(sorted(filter(str.strip, NLP.tokenizer.rules)))


@given(st.lists(specials | texts | st.tuples(texts, specials).map("".join), max_size=6), st.sampled_from("  \n"))
def test_special_cases_side_by_side_are_counted_as_by_spacy(parts: list[str], space: str) -> None:
    text = space.join(parts)
    assert COUNT(text).english == len(NLP.tokenizer(text))


SPACES = "".join(filter(str.isspace, map(chr, range(sys.maxunicode + 1))))
NEARLY_SPACES = "\x01\x08\x1b\x7f\xad\u034f\u061c\u115f\u180e\u200b\u200d\u200e\u2060\u2800\u3164\ufeff"


def bare_end(text: str, limit: int) -> int | None:
    doc = BARE(text)
    return doc[limit - 1].idx + len(doc[limit - 1]) if len(doc) > limit else None


@pytest.mark.long
@settings(max_examples=2_000)
@given(
    st.text(st.sampled_from(f"{SPACES}{NEARLY_SPACES}") | st.sampled_from("   ab.é😀\n\t"), max_size=16),
    st.integers(1, 8),
)
def test_the_bare_tokens_are_those_of_spacy_whatever_the_white_space(text: str, limit: int) -> None:
    found = LIMITED[limit](text)
    assert (found.bare, found.cut) == (len(BARE(text)), bare_end(text, limit))


@given(texts, st.sampled_from(RULES), st.integers(1, 8))
def test_only_a_text_over_the_limit_is_told_of_as_over_it(text: str, rule: TokenRule, limit: int) -> None:
    counter = TokenCounter(rule, limit)
    found = counter(text)
    assert counter.over(text) == (found if getattr(found, rule) > limit else None)


def test_a_text_within_the_limit_needs_no_spacy() -> None:
    code = """
import sys
from judge.runs.tokens import TokenCounter
counters = [TokenCounter(rule, 2) for rule in ("bare", "whitespace")]
assert [counter.over("one two") for counter in counters] == [None, None] and counters[0].versions
assert "spacy" not in sys.modules
assert [counter.over("one two three").english for counter in counters] == [3, 3]
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("rule", "limit", "text", "kept"),
    [
        ("bare", 2, "one two three", "one two"),
        ("bare", 3, "one two three", None),
        ("bare", 1, "one two", "one"),
        ("bare", 2, " one two", " one"),
        ("bare", 2, "it's $5. Yes", "it's $5."),
        ("english", 2, "it's $5. Yes", "it's"),
        ("english", 4, "it's $5. Yes", "it's $5"),
        ("bare", 2, "naïve 😀 end", "naïve 😀"),  # offsets are characters, not bytes
        ("whitespace", 2, " one  two three ", " one  two"),
        ("whitespace", 3, " one  two three ", None),
        ("whitespace", 1, "one\u3000two", "one"),
        ("whitespace", 2, "it's $5. Yes", "it's $5."),
        ("whitespace", 2, "one a\u00b4b two", "one"),  # the second chunk counts for two
        ("whitespace", 3, "one a\u00b4b two", "one a\u00b4b"),
        ("whitespace", 1, "a\u00b4b two", ""),  # and is never cut in two
    ],
)
def test_cut_is_the_end_of_the_last_token_within_the_limit(rule, limit, text, kept) -> None:
    cut = TokenCounter(rule, limit)(text).cut
    assert (None if cut is None else text[:cut]) == kept


def whitespace_length(text: str) -> int:
    return len(unicodedata.normalize("NFKC", text).split())


@given(
    st.text(awkward | st.sampled_from("\u00b4\u00a8\u0301\u0308\u1fee\ufefb\x85\x1c\u2028"), max_size=30) | texts,
    st.integers(1, 8),
)
def test_the_whitespace_cut_is_the_longest_beginning_within_the_limit(text: str, limit: int) -> None:
    cut = WHITESPACE[limit](text).cut
    ends = [0, *(match.end() for match in re.finditer(r"\S+", text))]
    within = [end for end in ends if whitespace_length(text[:end]) <= limit]
    assert (cut is not None) == (whitespace_length(text) > limit)
    if cut is not None:
        assert cut == max(within)


def test_what_is_left_of_a_text_is_within_the_limit() -> None:
    kept, tokens = truncated("it's $5. Yes", TokenCounter("english", 2))
    assert (kept, tokens.english, tokens.cut) == ("it's", 2, None)
    assert truncated("it's", TokenCounter("english", 2))[0] == "it's"


def test_what_a_limit_would_change_in_a_run() -> None:
    turns = [["one two three four", "five"], ["one two three"], ["one", "a\u00b4b\u00b4c\u00b4d"], []]
    found = rule_effect(turns, TokenCounter("whitespace", 3), COUNT)
    # Over: four words, of which one is lost, and a chunk that counts for four and goes whole; the latter ranks second.
    assert (found.rule, found.over, found.at_limit, found.longest) == ("whitespace", 2, 1, 4)
    assert (found.tokens_lost, found.emptied, found.unanswered) == (1 + 4, 1, 1)
    found = rule_effect(turns, TokenCounter("bare", 3), COUNT)
    assert (found.rule, found.over, found.at_limit, found.longest) == ("bare", 1, 1, 4)
    assert (found.tokens_lost, found.emptied, found.unanswered) == (1, 0, 1)
    nothing = rule_effect([], TokenCounter("bare", 3), COUNT)
    assert (nothing.over, nothing.longest) == (0, 0)


@pytest.mark.parametrize("sign", ["(", "😀", "a"])
def test_a_run_beyond_the_limit_is_counted_in_pieces(sign: str) -> None:
    counter = TokenCounter("english", limit=5)
    run = sign * (4 * MAX_RUN + 7)
    found = counter(f"one two {run} end")
    per_piece = len(NLP.tokenizer(sign * MAX_RUN))
    assert found.bare == 4
    assert found.english == 3 + 4 * per_piece + len(NLP.tokenizer(sign * 7))
    expected = len("one two ") + (3 if per_piece > 1 else 3 * MAX_RUN)  # tokens 3, 4 and 5: three signs or three pieces
    assert found.cut == expected


def test_a_run_at_the_limit_is_counted_whole() -> None:
    text = "ab." * (MAX_RUN // 3) + "c"
    assert len(text) == MAX_RUN
    assert COUNT(text).english == len(NLP.tokenizer(text))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x" * (MAX_CHARS + 1), "1,000,001 characters is too long"),
        ("ab\ud800c", "a NUL or a lone surrogate"),
        ("ab\0c", "a NUL or a lone surrogate"),
    ],
)
def test_what_validation_refuses_is_refused_again(text: str, says: str) -> None:
    for count in (COUNT, COUNT.over):
        with pytest.raises(InputError, match=says):
            count(text)


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="must be 1 or more, not 0"):
        TokenCounter(limit=0)


def test_the_memo_is_bounded_and_gives_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.runs.tokens._MEMO_SIZE", 2)
    counter = TokenCounter()
    first = [counter(text) for text in ("a", "b c", "d e f", "a")]
    assert [count.bare for count in first] == [1, 2, 3, 1]
    assert len(counter._memo) == 2
    assert counter("a") is first[3]


def test_versions_name_spacy() -> None:
    assert COUNT.versions == {"spacy": spacy.__version__}


def test_no_regin_response_is_over_250_bare_tokens(shared: Path) -> None:
    """The edge at 250 is why the guideline's measure is the bare tokenizer."""
    bank = json.loads((shared / "cast-regin/response_evaluation/response_bank.json").read_text("utf-8"))
    counts = [COUNT(text) for text in bank.values()]
    assert len(counts) == 1511
    assert max(count.bare for count in counts) == 250
    assert sum(count.bare == 250 for count in counts) == 211
    assert sum(count.english > 250 for count in counts) == 428


def test_regin_counts_are_the_recorded_ones_row_by_row(shared: Path) -> None:
    lines = (shared / "cast-regin/regin_responses_with_context.jsonl").read_text("utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    assert len(rows) == 1626
    for row in rows:
        found = COUNT(row["response"])
        assert (found.bare, found.english) == (row["tokens_spacy_bare"], row["tokens_spacy_en"])
