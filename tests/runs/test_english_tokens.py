import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import spacy
from hypothesis import example, given, settings
from hypothesis import strategies as st

from judge.io.safe import storable
from judge.runs.english_tokens import _PLAIN, EnglishTokens
from judge.runs.tokens import TokenCounter

pytestmark = pytest.mark.slow

TOKENIZER = spacy.blank("en").tokenizer
TOKENS = EnglishTokens(TOKENIZER)
COUNT = TokenCounter()
EXAMPLES = Path(__file__).parents[2] / "examples"

# What spaCy treats in a special way, the signs that it splits off, and the white space between.
cases = st.sampled_from(sorted(TOKENIZER.rules))
halves = st.sampled_from([half for case in sorted(TOKENIZER.rules) for half in (case[:-1], case[1:]) if half])
signs = st.text(st.sampled_from("aB1.,:;)('\"-$/@’é😀—–%#*_<>[]{}=|\\^°C8pPDoO"), min_size=1, max_size=4)
words = st.sampled_from("word U.S. 3km 10a.m 5 http://x.y/z a@b.co ... … '' `` can't (8 Ph.D don’t e.g St".split())
spaces = st.sampled_from(["", " ", " ", " ", "  ", "\n", " \n", "\n\n", "\t", "\u00a0", "\u3000", "\u2028"])
awkward = st.lists(st.tuples(cases | halves | signs | words, spaces), max_size=8).map(
    lambda parts: "".join(part + space for part, space in parts)
)


@pytest.mark.long
@settings(max_examples=1_500)
@given(awkward)
@example(": )")
@example("x: ) ) y")
@example("at 5 a.m . and 10a.m . and so on")
@example("a :- ) b")
@example("a 8- ) ) b")
@example("° C. and °C . and ° c")
def test_a_text_has_as_many_tokens_as_spacy_makes_of_it(text: str) -> None:
    assert COUNT(text).english == len(TOKENIZER(text))


@given(st.from_regex(_PLAIN, fullmatch=True) | st.from_regex(re.compile(r"[a-z]{1,3}[.,;:?!]?"), fullmatch=True))
def test_a_plain_chunk_has_the_tokens_that_need_no_spacy(chunk: str) -> None:
    assert COUNT(chunk).english == len(TOKENIZER(chunk))


def test_every_special_case_alone_and_beside_every_sign() -> None:
    for case in TOKENIZER.rules:
        for text in (case, f"{case}.", f"({case})", f"{case} )", f": {case}", f"a{case}", f"{case},"):
            assert COUNT(text).english == len(TOKENIZER(text)), text


def test_the_halves_of_every_special_case_across_a_space() -> None:
    texts = [f"x {case[:cut]} {case[cut:]} y" for case in TOKENIZER.rules for cut in range(1, len(case))]
    assert [COUNT(text).english for text in texts] == [len(TOKENIZER(text)) for text in texts]


def test_a_special_case_across_a_space_is_left_to_spacy(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = EnglishTokens(TOKENIZER)
    asked: list[str] = []
    monkeypatch.setattr(tokens, "_tokenizer", lambda text: asked.append(text) or TOKENIZER(text))
    assert tokens.count("so : ) it is", ["so", ":", ")", "it", "is"], []) == 5
    assert tokens.count("so it is", ["so", "it", "is"], []) == 3
    assert asked == ["so : ) it is"]


def test_no_special_case_over_finished_tokens_has_white_space() -> None:
    assert not any(token.isspace() for pair in TOKENS._cases.adjacent for token in pair)


def test_chunks_are_forgotten_when_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.runs.english_tokens._MEMO_CHARS", 40)
    tokens = EnglishTokens(TOKENIZER)
    texts = [f"a{number}-b: ) x{number}, can't go (8 ) :" for number in range(50)]
    assert [tokens.count(text, text.split(), []) for text in texts] == [len(TOKENIZER(text)) for text in texts]
    assert tokens._memo.characters <= 40 + max(map(len, texts))


def strings(value: object) -> Iterator[str]:
    """Every text inside a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


def texts_of(folder: Path) -> Iterator[str]:
    """The texts in the JSON files of a folder; of other files, the lines."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".json", ".jsonl", ".md", ".txt", ".tsv", ".csv"} and path.stat().st_size < 12_000_000:
            content = path.read_text("utf-8", "replace")
            for document in [content] if path.suffix == ".json" else content.split("\n"):
                try:
                    yield from strings(json.loads(document))
                except ValueError:
                    yield document


def differing(folder: Path) -> list[str]:
    texts = {text for text in texts_of(folder) if len(text) < 20_000 and storable(text)}
    assert len(texts) > 100
    return [text for text in sorted(texts) if COUNT(text).english != len(TOKENIZER(text))]


def test_the_texts_of_the_examples() -> None:
    assert differing(EXAMPLES) == []


@pytest.mark.long
def test_the_texts_of_public_data(shared: Path) -> None:
    assert differing(shared) == []


def test_texts_of_public_data_joined_by_other_white_space(shared: Path) -> None:
    bank = json.loads((shared / "cast-regin/response_evaluation/response_bank.json").read_text("utf-8"))
    for left, right in pairwise(bank.values()):
        for space in ("\n", "  ", " \n ", "\u00a0"):
            text = f"{left[-40:]}{space}{right[:40]}".replace(" ", space, 3)
            assert COUNT(text).english == len(TOKENIZER(text))
