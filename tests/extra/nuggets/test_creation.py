"""Sources, candidates and merging, by hand."""

import pytest
from msgspec import structs

from judge.ask.criteria import find_criterion
from judge.ask.records import Failure, Judgment
from judge.extra.nuggets import Nugget, create
from judge.pool.records import Pool, PooledResponse
from judge.records import Passage
from tests.build import pooled
from tests.extra.nuggets.world import response

CREATION, MERGING, IMPORTANCE = map(find_criterion, ("nugget_creation", "nugget_merging", "nugget_importance"))


def using(number: int, turn_id: str, *passages: str) -> PooledResponse:
    return pooled(f"R{number:05d}", turn_id, text=f"Text {number}.", passages=passages)


POOL = Pool(
    (
        using(1, "1-1_2", "p1", "p2"),
        using(2, "1-1_10", "p3"),
        using(3, "1-1_2", "p2", "lost"),
        using(4, "1-1_2~5f2c9a01be42d370", "p1"),
    ),
    {
        "p1": Passage("p1", "Passage one.", "collection"),
        "p2": Passage("p2", "Passage two.", "collection"),
        "p3": Passage("p3", "Passage three.", "collection"),
    },
    (),
)


def labeled(turn_id: str, labels: list[str]) -> Judgment:
    return Judgment(
        *("", turn_id, "1-1", "c", "v", 1, False, None, None, None, tuple(labels), "server/m", None, "", ""),
        *("json", False, 0),
    )


FAILED = Failure("R1", "1-1_2", "1-1", "c", "v", "unreadable", "why", "Hm.", "server/m", "", "d", 0)


@pytest.mark.parametrize(("kind", "expected"), [
    # p2 before p1: two responses used it. 1-1_2 before 1-1_10: natural order.
    ("passages", {"1-1_2": ["p2", "p1"], "1-1_10": ["p3"]}),
    ("responses", {"1-1_2": ["R00001", "R00003"], "1-1_10": ["R00002"]}),
    ("both", {"1-1_2": ["p2", "p1", "R00001", "R00003"], "1-1_10": ["p3", "R00002"]}),
])  # fmt: skip
def test_the_sources_of_a_turn_are_its_passages_and_responses(
    kind: create.SourceKind, expected: dict[str, list[str]]
) -> None:
    found = create.turn_sources(POOL, kind)
    named = {turn: [each.passage or each.response_id for each in sources] for turn, sources in found.by_turn.items()}
    assert list(named.items()) == list(expected.items())
    assert (found.lacking, found.irrelevant, found.own_turns) == (int(kind != "responses"), 0, 1)


def test_qrels_say_which_passages_are_sources_and_which_comes_first() -> None:
    grades = {"1-1_2": {"p1": 3, "p2": 2}, "1-1_10": {"p3": 1}}
    found = create.turn_sources(POOL, "passages", grades, 2)
    assert [(each.passage, each.relevance) for each in found.by_turn["1-1_2"]] == [("p1", 3), ("p2", 2)]
    assert "1-1_10" not in found.by_turn
    assert found.irrelevant == 1
    assert create.turn_sources(POOL, "both", {}, 1).by_turn["1-1_10"][0].response_id == "R00002"


def source(name: str, relevance: int | None = None) -> create.NuggetSource:
    is_response = name.startswith("R")
    return create.NuggetSource("1-1_2", name, None if is_response else name, name if is_response else None, relevance)


def test_the_first_of_every_source_comes_before_the_second_of_any() -> None:
    listed = [(source("p1", 2), ("A.", "B.", "C.")), (source("p2", 3), ("D.",)), (source("R00001"), ("a", "E."))]
    found = create.candidates_of(listed)
    assert [candidate.text for candidate in found] == ["A.", "D.", "B.", "E.", "C."]
    # `a` is `A.` in other letters: one candidate of both sources, with the grade of the passage.
    assert found[0] == Nugget("", "1-1", "A.", "1-1_2", relevance=2, passages=("p1",), responses=("R00001",))
    assert found[1].relevance == 3


def candidates(*texts: str) -> list[Nugget]:
    return [Nugget("", "1-1", text, "1-1_2") for text in texts]


def test_candidates_are_merged_block_by_block() -> None:
    texts = [f"Fact {number}." for number in range(create.BLOCK + 2)]
    merging = create.TurnMerging("1-1_2", candidates(*texts), 30)
    first = merging.task(MERGING)
    assert (first.known, first.candidates) == ((), tuple(texts[: create.BLOCK]))
    merging.take(labeled("1-1_2", ["new", "repeat"] + ["repeat"] * (create.BLOCK - 2)))
    assert not merging.done
    second = merging.task(MERGING)
    assert (second.known, second.candidates) == (("Fact 0.",), tuple(texts[create.BLOCK :]))
    merging.take(labeled("1-1_2", ["repeat", "new"]))
    assert merging.done
    assert [candidate.text for candidate in merging.kept] == ["Fact 0.", f"Fact {create.BLOCK + 1}."]


def test_the_very_first_candidate_repeats_nothing() -> None:
    merging = create.TurnMerging("1-1_2", candidates("A.", "B."), 30)
    merging.take(labeled("1-1_2", ["repeat", "repeat"]))
    assert [candidate.text for candidate in merging.kept] == ["A."]


def test_enough_nuggets_end_the_merging() -> None:
    merging = create.TurnMerging("1-1_2", candidates(*map(str, range(create.BLOCK + 5))), 3)
    merging.take(labeled("1-1_2", ["new"] * create.BLOCK))
    assert merging.done
    assert [candidate.text for candidate in merging.kept] == ["0", "1", "2"]
    assert len(merging.waiting) == 5


def test_one_candidate_needs_no_call_and_a_failure_ends_the_turn() -> None:
    alone = create.TurnMerging("1-1_2", candidates("A."), 30)
    assert alone.done and [candidate.text for candidate in alone.kept] == ["A."]
    failed = create.TurnMerging("1-1_2", candidates("A.", "B."), 30)
    failed.take(FAILED)
    assert failed.done and not failed.kept and failed.failure is FAILED


def test_weighed_nuggets_keep_their_sources() -> None:
    first, second = candidates("A.", "B.")
    kept = [structs.replace(first, passages=("p1",), responses=("R00001",), relevance=3), second]
    assert create.list_task("1-1_2", IMPORTANCE, kept).candidates == ("A.", "B.")
    rows = create.weighed("1-1_2", kept, labeled("1-1_2", ["vital", "okay"]), "server/m")
    assert [(row.nugget_id, row.topic_id, row.text, row.importance) for row in rows] == [
        ("1-1_2/1", "1-1", "A.", "vital"),
        ("1-1_2/2", "1-1", "B.", "okay"),
    ]
    assert (rows[0].passages, rows[0].responses, rows[0].relevance, rows[0].made_by) == (
        *(("p1",), ("R00001",)),
        *(3, "server/m"),
    )


def test_a_failure_names_its_source() -> None:
    row = create.creation_failure("creation", FAILED, source("p1"))
    assert (row.turn_id, row.step, row.passage, row.response_id, row.reason, row.raw) == (
        *("1-1_2", "creation", "p1", None),
        *("unreadable", "Hm."),
    )
    task = source("p1").task(CREATION)
    assert (task.response.response_id, task.response.text, task.response.passages) == ("p1", "p1", ())
    assert response(1, "1-1_2").turn_id == task.response.turn_id
