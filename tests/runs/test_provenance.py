"""Which passages a response rests on."""

import math

import pytest

from judge.runs.ranking import used_provenance
from judge.runs.records import Provenance, Response


def psg(passage_id: str, score: float | None = None, used: bool | None = None, text: str | None = None) -> Provenance:
    return Provenance(passage_id, score, used, text)


@pytest.mark.parametrize(
    ("provenance", "expected", "rule"),
    [
        ([psg("a", 3, True), psg("b", 2, False), psg("c", 1, True)], "ac", "used"),
        ([psg("a", 3, False), psg("b", 2), psg("c", 1)], "abc", "top5"),
        ([psg("a", 1), psg("b", 3), psg("c", 2)], "bca", "top5"),
        ([psg("a", 1), psg("b", 3), psg("c", 1), psg("d", 3)], "bdac", "top5"),  # ties keep the run's order
        ([psg(c, i) for i, c in enumerate("gfedcba")], "abcde", "top5"),
        ([psg("a", 1), psg("b", None), psg("c", 2)], "abc", "top5"),  # a score is missing: the run's order
        ([psg("a", 1), psg("b", math.nan), psg("c", 2)], "abc", "top5"),
        ([psg("a", 1), psg("b", math.inf), psg("c", 2)], "abc", "top5"),
        ([psg("a", 9), psg("a", 8), psg("b", 7), psg("c", 6), psg("d", 5), psg("e", 4), psg("f", 3)], "abcde", "top5"),
        ([psg("a", 3, False), psg("a", 2, True)], "a", "used"),
        ([psg("a", 3, True), psg("a", 2, True), psg("b", 1, True)], "ab", "used"),
        ([psg(c, 1, True) for c in "abcdefg"], "abcdefg", "used"),  # flagged ones are not cut to five
        ([], "", "top5"),
    ],
)
def test_used_provenance(provenance: list[Provenance], expected: str, rule: str) -> None:
    found, fired = used_provenance(Response(1, "text", tuple(provenance)), "ikat2024")
    assert ("".join(passage.passage_id for passage in found), fired) == (expected, rule)


def test_a_passage_listed_twice_keeps_its_first_listing() -> None:
    first, second = psg("a", 2, True, "one"), psg("a", 1, True, "two")
    assert used_provenance(Response(1, "text", (first, second)), "ikat2023") == ((first,), "used")


@pytest.mark.parametrize(("used", "rule"), [(True, "citations"), (None, "top5")])
def test_flagged_passages_of_2025_are_citations(used: bool | None, rule: str) -> None:
    assert used_provenance(Response(1, "text", (psg("a", 1, used),)), "ikat2025") == ((psg("a", 1, used),), rule)
