"""Workers who contradict known items are left out of that topic, in all criteria, and everything is told."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.crowd.known import KnownFile, KnownItem, Removal, few_labels, filter_workers, without_known
from judge.crowd.labels import Item
from judge.errors import InputError
from judge.io.ids import topic_of
from judge.records import Problem
from tests.conftest import put, refused
from tests.crowd.world import SCALE, Rows, crowd, rows

KNOWN = KnownItem("1_1", "K", "relevance", (0, 1))
RELEVANCE: Rows = [
    ("ann", "1_1", "K", 0), ("ben", "1_1", "K", 2), ("cid", "1_1", "K", 3), ("ann", "1_2", "A", 3),
    ("ben", "1_2", "A", 0), ("cid", "1_2", "A", 0), ("ben", "2_1", "A", 1), ("cid", "1_3", "B", 1),
]  # fmt: skip
NOVELTY: Rows = [("cid", "1_1", "K", 0), ("cid", "1_2", "A", 2), ("dan", "1_2", "A", 1)]


def test_who_contradicts_a_known_item_is_left_out_of_that_topic_in_all_criteria() -> None:
    labels = {"relevance": crowd(RELEVANCE), "novelty": crowd(NOVELTY, "novelty")}
    kept, audit = filter_workers(labels, [KNOWN])
    # Ben and cid gave the known item 2 and 3, where 0 and 1 are acceptable; ben's label in topic 2 stays.
    assert rows(kept["relevance"]) == [("ann", "1_2", "A", 3), ("ben", "2_1", "A", 1)]
    assert rows(kept["novelty"]) == [("dan", "1_2", "A", 1)]
    assert audit.removals == (
        Removal(worker="ben", label=2, known=KNOWN),
        Removal(worker="cid", label=3, known=KNOWN),
    )
    assert audit.removed == (("1", "ben"), ("1", "cid"))
    assert audit.labels_removed == {"relevance": {"1": 3}, "novelty": {"1": 1}}
    # Ann, ben and cid met it in topic 1; dan in topic 1 and ben in topic 2 met none.
    assert (audit.checked, audit.unchecked, audit.tolerated, audit.known) == (3, 2, 0, 1)
    # Known items leave every criterion, and emptied items stay.
    assert kept["relevance"].items == (Item("1_2", "A"), Item("1_3", "B"), Item("2_1", "A"))
    assert kept["novelty"].items == (Item("1_2", "A"),)


def test_how_many_the_rule_removes_by_chance() -> None:
    """Two workers meet three known items in topic 1, one of them one more in topic 2; one label of seven fails."""
    given = [(worker, f"1_{n}", "K", 0) for worker in ("a", "b") for n in (1, 2, 3)]
    given += [("a", "2_1", "K", 3), ("c", "2_1", "A", 1)]
    known = [KnownItem(turn, "K", "relevance", (0, 1)) for turn in ("1_1", "1_2", "1_3", "2_1")]
    _, audit = filter_workers({"relevance": crowd(given)}, known)
    assert (audit.met, audit.checked, audit.unchecked) == ({3: 2, 1: 1}, 3, 1)
    assert audit.error == 1 / 7
    assert audit.expected(0.1, 0) == pytest.approx(2 * (1 - 0.9**3) + 0.1)
    assert audit.expected(0.1, 1) == pytest.approx(2 * (3 * 0.1**2 * 0.9 + 0.1**3))
    _, tolerant = filter_workers({"relevance": crowd(given)}, known, max_fails=1)
    assert (tolerant.met, tolerant.error, tolerant.removed) == (audit.met, audit.error, ())


def test_fails_of_a_topic_add_up_over_items_and_criteria_but_not_over_topics() -> None:
    known = [KnownItem(turn, "K", name, (0,)) for turn in ("1_1", "1_2", "2_1") for name in ("relevance", "novelty")]
    of = {
        "relevance": crowd([("a", "1_1", "K", 3), ("b", "1_1", "K", 3), ("b", "2_1", "K", 3), ("c", "1_1", "K", 3)]),
        "novelty": crowd([("a", "1_2", "K", 3), ("c", "1_1", "K", 0)], "novelty"),
    }
    _, audit = filter_workers(of, known, max_fails=1)
    assert audit.removed == (("1", "a"),)
    assert (len(audit.removals), audit.tolerated) == (2, 3)


def test_items_with_few_labels() -> None:
    labels = {"relevance": crowd(RELEVANCE)}
    before = without_known(labels, [KNOWN])["relevance"]
    kept = filter_workers(labels, [KNOWN])[0]["relevance"]
    few = [("1_2", "A", "relevance", 1, 3), ("1_3", "B", "relevance", 0, 1), ("2_1", "A", "relevance", 1, 1)]
    assert few_labels(kept, before, 2) == tuple(few)
    assert few_labels(kept, before, 1) == (few[1],)


ROW = st.tuples(*map(st.sampled_from, ("abc", ("1_1", "1_2", "2_1"), "KAB", SCALE)))
LABELS = st.lists(ROW, min_size=1, unique_by=lambda row: row[:3])
ACCEPTABLE = st.sets(st.sampled_from(SCALE), min_size=1).map(lambda grades: tuple(sorted(grades)))
NAMED = (*map(st.sampled_from, (("1_1", "2_1"), "KB")), st.just("relevance"))
KNOWN_ITEMS = st.lists(st.builds(KnownItem, *NAMED, ACCEPTABLE), unique_by=lambda item: item[:2])


@given(LABELS, KNOWN_ITEMS, st.integers(0, 2), st.integers(0, 3))
def test_the_filter_is_the_rule_said_row_by_row(given: Rows, known: list[KnownItem], fails: int, away: int) -> None:
    acceptable = {item[:2]: item.acceptable for item in known}
    times: dict[tuple[str, str], int] = {}
    for worker, turn, item, label in given:
        if (turn, item) in acceptable and min(abs(label - one) for one in acceptable[turn, item]) > away:
            times[worker, topic_of(turn)] = times.get((worker, topic_of(turn)), 0) + 1
    kept, audit = filter_workers({"relevance": crowd(given)}, known, max_fails=fails, max_deviation=away)
    assert rows(kept["relevance"]) == [
        row for row in given if row[1:3] not in acceptable and times.get((row[0], topic_of(row[1])), 0) <= fails
    ]
    assert set(audit.removed) == {(topic, worker) for (worker, topic), n in times.items() if n > fails}
    gone = sum(n for n in times.values() if n > fails)
    assert (len(audit.removals), audit.tolerated) == (gone, sum(times.values()) - gone)


# Known items as files


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("k.tsv", "turn_id\tresponse_id\tcriterion\tacceptable\n1_10\tK\trelevance\t3\n1_1\tK\trelevance\t1, 0\n"),
        ("k.csv", 'turn_id,question_id,acceptable\n1_1,K,"0,1"\n1_10,K,3\n'),
        ("k.csv", "turn_id,item_id,acceptable\n1_1,K,0|1\n1_10,K,3\n"),
        (
            "k.jsonl",
            '{"turn_id":"1_1","item_id":"K","acceptable":[1,0,1]}\n{"turn_id":"1_10","item_id":"K","acceptable":3}\n',
        ),
    ],
)
def test_known_items_are_read(tmp_path: Path, name: str, content: str) -> None:
    known = KnownFile(put(tmp_path / name, content)).known({"relevance": SCALE})
    assert known == (KNOWN, KnownItem("1_10", "K", "relevance", (3,)))


def test_every_fault_of_known_items_is_listed(tmp_path: Path) -> None:
    content = (
        "turn_id\tresponse_id\tcriterion\tacceptable\n1_1\tK\trelevance\t0\n1_1\tK\trelevance\t1\n\tK\trelevance\t1\n"
        "1_1\t\trelevance\t1\n1_1\tL\tbeauty\t1\n1_1\tL\trelevance\t4\n1_1\tL\trelevance\t\n1_1\tL\trelevance\t0-3\n"
        "1_1\tL\t\t1\n"
    )
    warnings: list[Problem] = []
    known = KnownFile(put(tmp_path / "k.tsv", content))
    problems = refused(known.known, {"relevance": SCALE, "novelty": SCALE}, warnings)
    assert [one.path for one in problems] == [f"line {n}" for n in (3, 4, 5, 7, 8, 9, 10)]
    assert [(one.code, one.severity, one.path) for one in warnings] == [("unknown_criterion", "warning", "line 6")]
    words = ("earlier line", "turn_id", "response_id", "acceptable", "acceptable", "acceptable", "criterion")
    assert all(word in one.message for word, one in zip(words, problems, strict=True))


@pytest.mark.parametrize(
    "content",
    [
        *("turn_id\tacceptable\n", "{", '{"acceptable": [true]}', '{"acceptable": "1.5"}'),
        '{"turn_id": "1_1", "item_id": "K", "criterion": "beauty", "acceptable": 1}',
    ],
)
def test_what_is_no_list_of_known_items(tmp_path: Path, content: str) -> None:
    with pytest.raises(InputError):
        KnownFile(put(tmp_path / "k", content)).known({"relevance": SCALE})


def test_a_known_file_names_items_and_criteria_before_any_scale(tmp_path: Path) -> None:
    content = "turn_id,response_id,criterion,acceptable\n1_1,K,relevance,0\n1_1,K,nat,9\n1_2,L,,0\n,M,,0\n"
    found = KnownFile(put(tmp_path / "k.csv", content))
    assert found.items == {Item("1_1", "K"), Item("1_2", "L"), Item("", "M")}
    assert found.criteria == ("relevance", "nat")
    rows = "turn_id,response_id,acceptable\n1_1,K,0\n"
    scales = {"relevance": SCALE, "nat": SCALE}
    assert KnownFile(put(tmp_path / "k.csv", rows)).known(scales, only="nat") == (KnownItem("1_1", "K", "nat", (0,)),)


def test_a_known_item_that_was_shown_twice_counts_twice() -> None:
    labels = crowd([("a", "1_1", "K", 3), ("a", "1_1", "K", 2), ("b", "1_1", "K", 3), ("b", "1_1", "K", 0)])
    known = [KnownItem("1_1", "K", "relevance", (0, 1))]
    _, audit = filter_workers({"relevance": labels}, known, max_fails=1)
    assert audit.removed == (("1", "a"),)
    assert (len(audit.removals), audit.tolerated) == (2, 1)
