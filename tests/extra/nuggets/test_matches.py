"""Files of matches: read with every problem, and joined to a pool and a bank without a silent mistake."""

from pathlib import Path

import pytest

from judge.errors import InputError
from judge.extra.nuggets import MatchedNugget
from judge.extra.nuggets.labels import join, parse_matches, read_matches
from judge.gold.rows import text_digest
from judge.io.files import jsonl_bytes
from judge.io.text import digest
from tests.conftest import put, refused
from tests.extra.nuggets.world import bank, nugget, pool, response, row

POOL = pool(response(1, "1-1_1", "a"), response(2, "1-1_1", "b"), response(3, "1-1_2", "a"))
BANK = bank(nugget("1-1_1/1"), nugget("1-1_2/1"), nugget("1-1/1"))


def test_matches_are_read_as_they_were_written() -> None:
    rows = (row(1, "1-1_1/1", "contradicts"), row(3, "1-1/1", "partly", "1-1_2", inclusion_probability=0.5))
    assert jsonl_bytes(rows).count(b"\n") == 2
    again = parse_matches(jsonl_bytes(rows), "m")
    assert [fields(each) for each in again] == [fields(each) for each in rows]


def fields(match: MatchedNugget) -> list[object]:
    return [getattr(match, name) for name in MatchedNugget.__struct_fields__]


def test_every_problem_of_a_file_is_listed_with_its_line() -> None:
    good = b'{"turn_id":"1-1_1","nugget_id":"n","label":"supports","response_id":"R00001","assessor":"ann"}\n'
    bad = b'{"turn_id":"1-1_1","nugget_id":"n","label":"partly",'
    content = (
        good + good
        + b'{"turn_id":"1-1_1","nugget_id":"n","label":"yes","response_id":"R00001","assessor":"ann"}\n'
        + bad + b'"response_id":"R00001"}\n'
        + bad + b'"assessor":"bob"}\n'
        + bad + b'"run_id":"a","assessor":"bob","inclusion_probability":0}\n'
        + bad + b'"run_id":"a","assessor":"bob","colour":1}\n'
    )  # fmt: skip
    assert [(problem.path, problem.code) for problem in refused(parse_matches, content, "m")] == [
        ("line 2: $", "bad_match"), ("line 3: $.label", "bad_match"), ("line 4: $", "bad_match"),
        ("line 5: $", "bad_match"), ("line 6: $.inclusion_probability", "bad_match"), ("line 7: $", "bad_match"),
    ]  # fmt: skip
    with pytest.raises(InputError, match="not usable as matches"):
        parse_matches(b"\n", "m")


def test_a_response_goes_by_its_id_or_by_the_run_that_ranked_it_first() -> None:
    rows = (row(1, "1-1_1/1", "supports"), row(0, "1-1_1/1", "partly", response_id=None, run_id="b"))
    assert join(rows, (), BANK, POOL, "m").labels == {
        ("R00001", "1-1_1/1"): "supports",
        ("R00002", "1-1_1/1"): "partly",
    }
    renamed = (row(0, "1-1_1/1", "partly", response_id=None, run_id="team-1"),)
    assert join(renamed, (), BANK, POOL, "m", {"team-1": "b"}).labels == {("R00002", "1-1_1/1"): "partly"}


@pytest.mark.parametrize(("votes", "label"), [
    (("supports", "partly", "partly"), "partly"),
    (("supports", "does_not"), "does_not"),
    (("supports", "contradicts"), "contradicts"),
    (("supports", "supports", "contradicts"), "supports"),
])  # fmt: skip
def test_the_label_of_most_counts_and_of_equally_many_the_worse_one(votes, label) -> None:
    rows = [row(1, "1-1_1/1", vote, assessor=f"w{place}") for place, vote in enumerate(votes)]
    for order in (rows, rows[::-1]):
        assert join(order, (), BANK, POOL, "m").labels == {("R00001", "1-1_1/1"): label}


def test_nobody_votes_twice_on_a_pair() -> None:
    rows = [
        row(1, "1-1_1/1", "supports"),
        row(1, "1-1_1/1", "partly"),
        row(1, "1-1_1/1", "supports", assessor="bob"),
        row(2, "1-1_1/1", "partly"),
        row(2, "1-1_1/1", "partly"),
        row(0, "1-1_1/1", "supports", response_id=None, run_id="a"),
    ]
    assert [problem.message for problem in refused(join, rows, (), BANK, POOL, "m")] == [
        "a second match of R00001 by 'ann': expected one",
        "a second match of R00002 by 'ann': expected one",
        "a second match of R00001 by 'ann': expected one",
    ]
    judged = [row(1, "1-1_1/1", "partly", assessor=None, judge="server/m")]
    assert join(judged, (), BANK, POOL, "m").labels
    assert [problem.message for problem in refused(join, judged * 2, (), BANK, POOL, "m")] == [
        "a second match of R00001 by 'server/m': expected one"
    ]


def test_a_response_of_two_runs_may_be_matched_under_both() -> None:
    shared = pool(response(1, "1-1_1", "a", "b"))
    first, second = (row(0, "1-1_1/1", "supports", response_id=None, run_id=run_id) for run_id in ("a", "b"))
    bob = row(1, "1-1_1/1", "partly", assessor="bob")
    # One vote of ann and one of bob: the worse label counts.
    assert join([first, second, bob], (), BANK, shared, "m").labels == {("R00001", "1-1_1/1"): "partly"}
    other = row(0, "1-1_1/1", "partly", response_id=None, run_id="b")
    joined = join([first, other], (), BANK, shared, "m")
    assert joined.labels == {("R00001", "1-1_1/1"): "supports"}
    assert joined.notes == (
        "1 match left out: another run's match of the same response and nugget came first, and differs",
    )
    with pytest.raises(InputError, match="1 row with problems"):
        join([first, row(0, "1-1_1/1", "partly", response_id=None, run_id="a")], (), BANK, shared, "m")


def test_rows_that_are_not_of_this_bank_or_pool_are_refused() -> None:
    text, fact = text_digest("Text 1."), digest("Fact 1-1_1/1.")
    assert join([row(1, "1-1_1/1", "supports", text_sha256=text, nugget_sha256=fact)], (), BANK, POOL, "m").labels
    rows = [
        row(1, "1-1_1/9", "supports"),
        row(1, "1-1_2/1", "supports", "1-1_1"),
        row(1, "1-1_1/1", "supports", nugget_sha256="0" * 64),
        row(2, "1-1_1/1", "supports", text_sha256=text),
    ]
    assert [problem.message for problem in refused(join, rows, (), BANK, POOL, "m")] == [
        "the bank has no such nugget",
        "the nugget is of '1-1_2', and the response of turn '1-1_1'",
        "the text of the nugget has changed since it was matched: match again",
        "the pool has another text as R00002: the match is of another pool",
    ]


def test_rows_of_other_responses_are_counted_unless_all_are() -> None:
    rows = [row(1, "1-1_1/1", "supports"), row(9, "1-1_1/1", "supports"), row(1, "1-1_2/1", "supports")]
    assert join(rows, (), BANK, POOL, "m").outside == 2
    with pytest.raises(InputError, match="no match is of a response of the pool"):
        join(rows[1:], (), BANK, POOL, "m")
    named = [row(0, "1-1_1/1", "supports", response_id=None, run_id=run_id) for run_id in ("r10", "r2")]
    with pytest.raises(InputError, match=r"the rows name 'r2', 'r10', and the pool has 'a', 'b'"):
        join(named, (), BANK, POOL, "m")


def test_people_and_judges_are_not_mixed() -> None:
    rows = [row(1, "1-1_1/1", "supports"), row(2, "1-1_1/1", "supports", assessor=None, judge="server/m")]
    with pytest.raises(InputError, match="of people and of judges"):
        join(rows, (), BANK, POOL, "m")


def test_the_labels_of_cone_rag(tmp_path: Path) -> None:
    path = put(tmp_path / "human-study-matching-labels.txt", "1_14_4_1_iires-1\t0\n2_14_4_12_rali-3\t1\n")
    assert [(each.turn_id, each.nugget_id, each.run_id, each.label) for each in read_matches(path)] == [
        ("14_4", "14_4/1", "iires-1", "does_not"),
        ("14_4", "14_4/12", "rali-3", "supports"),
    ]
    path.write_text("1_14_4_1_iires-1\t0\nnonsense\n")
    assert [problem.path for problem in refused(read_matches, path)] == ["line 2"]


def test_two_tasks_of_cone_rag_are_two_people(tmp_path: Path) -> None:
    path = put(tmp_path / "human-study-matching-labels.txt", "1_1_1_1_a\t0\n2_1_1_1_a\t1\n")
    there = pool(response(1, "1_1", "a"))
    assert join(read_matches(path), (), bank(nugget("1_1/1")), there, "m").labels == {("R00001", "1_1/1"): "does_not"}
