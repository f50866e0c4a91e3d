import pytest

from judge.text.words import containment, content_words


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
