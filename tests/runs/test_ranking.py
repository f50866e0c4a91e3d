"""Which passages a response rests on, and a run's passages as one ranking a turn."""

from math import inf, nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.runs.formats import read_run
from judge.runs.ranking import provenance_run, ranking, used_provenance
from judge.runs.records import Provenance, Response, Run, RunTurn
from tests.build import psg


@pytest.mark.parametrize(
    ("provenance", "expected", "rule"),
    [
        ([psg("a", 3, True), psg("b", 2, False), psg("c", 1, True)], "ac", "used"),
        ([psg("a", 3, False), psg("b", 2), psg("c", 1)], "abc", "top5"),
        ([psg("a", 1), psg("b", 3), psg("c", 2)], "bca", "top5"),
        ([psg("a", 1), psg("b", 3), psg("c", 1), psg("d", 3)], "bdac", "top5"),  # ties keep the run's order
        ([psg(c, i) for i, c in enumerate("gfedcba")], "abcde", "top5"),
        ([psg("a", 1), psg("b", None), psg("c", 2)], "abc", "top5"),  # a score is missing: the run's order
        ([psg("a", 1), psg("b", nan), psg("c", 2)], "abc", "top5"),
        ([psg("a", 1), psg("b", inf), psg("c", 2)], "abc", "top5"),
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


Given = list[tuple[int, list[tuple[str, float | None]]]]
"""Responses of a turn: rank, and passages with scores."""


def run_of(*turns: tuple[str, Given], format: str = "ikat2024", run_id: str = "r") -> Run:
    made = tuple(
        RunTurn(
            turn_id,
            tuple(
                Response(rank, "text", tuple(Provenance(key, score, None, None) for key, score in passages))
                for rank, passages in responses
            ),
        )
        for turn_id, responses in turns
    )
    return Run(run_id, "automatic", None, format, "r.json", "d", True, made)


@pytest.mark.parametrize(
    ("responses", "order"),
    [
        ([(1, [("a", 0.1), ("b", 0.9), ("c", 0.5)])], "bca"),
        # Equal scores in the order of the list, though evaluation tools would turn them round.
        ([(1, [("a", 0.5), ("b", 0.5), ("c", 0.9)])], "cab"),
        # Halved at rank 1, divided by three at rank 2: a 0.2, b 0.3, c 0.25, d 0.1.
        ([(2, [("c", 0.75), ("d", 0.3)]), (1, [("a", 0.4), ("b", 0.6)])], "bcad"),
        # The first occurrence counts, though 0.9 / 3 > 0.2 / 2: a 0.1, b 0.15.
        ([(1, [("a", 0.2), ("b", 0.3)]), (2, [("a", 0.9)])], "ba"),
        # One response may have scores below zero.
        ([(1, [("a", -9.0), ("b", -1.0), ("c", 0.5)])], "cba"),
        # Of several, -3 / 3 would stand above -3 / 2: the first response's passages come first instead.
        ([(1, [("a", -3.0), ("b", -2.0)]), (2, [("c", -3.0), ("a", -1.0)])], "bac"),
        ([(1, [("b", None), ("a", None)])], "ba"),
        ([(1, [("b", 0.1), ("a", None), ("c", 0.9)])], "bac"),
        ([(1, [("b", 0.1), ("a", nan), ("c", 0.9)])], "bac"),
        ([(1, [("b", 0.1), ("a", inf), ("c", 0.9)])], "bac"),
        # One response without scores: the other's passages still stand by theirs.
        ([(1, [("b", 0.1), ("a", 0.2)]), (2, [("d", None), ("c", 0.9)])], "abdc"),
        # Ranks that are none still divide by something.
        ([(-1, [("a", 0.2)]), (0, [("b", 0.1)])], "ab"),
        ([(1, []), (2, [])], ""),
        ([], ""),
    ],
)
def test_order_of_passages(responses: Given, order: str) -> None:
    found = ranking(run_of(("1_1", responses)))
    assert found == {"1_1": [(key, float(len(order) - place)) for place, key in enumerate(order)]}


def test_passages_of_2025_belong_to_the_turn() -> None:
    shared: list[tuple[str, float | None]] = [("a", 0.5), ("b", 0.7), ("c", 0.7)]
    found = ranking(run_of(("1-1_1", [(1, shared), (2, [*shared, ("extra", 0.6)])]), format="ikat2025"))
    assert [key for key, _ in found["1-1_1"]] == ["b", "c", "extra", "a"]


def test_a_turn_counts_a_thousand_passages() -> None:
    passages: list[tuple[str, float | None]] = [(f"p{n}", float(n)) for n in range(1200)]
    found = ranking(run_of(("1_1", [(1, passages)])))["1_1"]
    assert (len(found), found[0], found[-1]) == (1000, ("p1199", 1000.0), ("p200", 1.0))


def test_lines_of_a_run() -> None:
    turns: list[tuple[str, Given]] = [("9-1_10", [(1, [("x:1", 1e-9), ("y:2", 2e-9)])]), ("9-1_2", [(1, [("z 3", 7)])])]
    assert provenance_run(run_of(*turns, ("9-1_3", []), run_id="my run")) == (
        "9-1_2 Q0 z%203 1 1 my%20run\n9-1_10 Q0 y:2 1 2 my%20run\n9-1_10 Q0 x:1 2 1 my%20run\n"
    )


@given(
    st.lists(
        st.tuples(
            st.integers(-2, 5),
            st.lists(st.tuples(st.sampled_from("abcdefgh"), st.none() | st.floats(width=32)), max_size=9),
        ),
        max_size=4,
    ),
    st.sampled_from(["cast2022", "ikat2023", "ikat2024", "ikat2025"]),
)
def test_scores_fall_and_every_passage_stands_once(responses: Given, format: str) -> None:
    found = ranking(run_of(("1_1", responses), format=format))["1_1"]
    assert sorted(key for key, _ in found) == sorted({key for _, passages in responses for key, _ in passages})
    assert [score for _, score in found] == [float(n) for n in range(len(found), 0, -1)]


# Real data


@pytest.mark.parametrize("name", ["cast2022/sample_run.json", "ikat/2023/sample_run.json", "ikat/2024/sample_run.json"])
def test_the_order_is_that_of_the_official_script_up_to_ties(shared: Path, name: str) -> None:
    run = read_run(shared / name).run
    assert run
    found = ranking(run)
    for turn in run.turns:
        official: dict[str, float] = {}
        for response in turn.responses:
            for passage in response.provenance:
                official.setdefault(passage.passage_id, (passage.score or 0.0) / (response.rank + 1))
        values = [official[key] for key, _ in found[turn.turn_id]]
        assert len(values) == len(official)
        assert values == sorted(values, reverse=True)
