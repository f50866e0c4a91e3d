import re
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judge.io.words import containment, content_words, words_of

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


@given(st.text(st.sampled_from("aBZ09_ '’\n-.éßİŉſﬁΣ\u0345\u0301") | st.characters(), max_size=40))
@example("rock'n'roll 'tis dogs' o''clock ''")
@example("x\u0345y Straße İstanbul")
def test_words_are_runs_of_letters_and_digits_with_at_most_one_apostrophe_inside(text: str) -> None:
    assert words_of(text) == [word.casefold() for word in WORD.findall(unicodedata.normalize("NFKC", text))]


@pytest.mark.slow
def test_only_one_character_is_folded_to_one_of_another_kind() -> None:
    """This is why a text may be folded as a whole before its words are looked for."""

    def kind(character: str) -> int:
        return 2 if character in "'’" else WORD.match(character) is not None

    characters = map(chr, range(sys.maxunicode + 1))
    folded = ((character, character.casefold()) for character in characters)
    assert [one for one, other in folded if not other or (len(other) == 1 and kind(one) != kind(other))] == ["\u0345"]


def test_content_words_are_folded_and_stop_words_gone() -> None:
    assert content_words("The Ferry's LAST trip was in 1998, wasn't it?") == [
        "ferry's",
        "last",
        "trip",
        "1998",
        "wasn't",
    ]


@pytest.mark.parametrize(
    ("response", "passages", "expected"),
    [
        ("ferry noon pier", ["ferry at noon", "the pier"], 3 / 3),
        ("ferry noon tram", ["ferry at noon"], 2 / 3),
        ("ferry ferry tram", ["ferry"], 2 / 3),
        ("the of and", ["the of and"], 0.0),
        ("", ["ferry"], 0.0),
        ("ferry", [], 0.0),
    ],
)
def test_containment(response: str, passages: list[str], expected: float) -> None:
    assert containment(response, passages) == pytest.approx(expected)
