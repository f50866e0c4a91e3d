"""Which passages that responses use are relevant, and groundedness on relevant ones: every mean worked out."""

import pytest

from judge.ask.criteria import find_criterion
from judge.pool.records import Pool
from judge.records import Estimate
from judge.results.used import PassageUse, RunUse, UsedPassages, used_markdown, used_passages, uses_relevant
from judge.stats.means import mean_interval
from tests import calibration_world as world
from tests.build import pooled

GROUNDEDNESS = find_criterion("groundedness/graded")
RELEVANCE = find_criterion("passage_relevance")
# Of each response the passages that it uses, and its groundedness.
RESPONSES = {
    "R1": ("1_1", ("A", "B"), 3),
    "R2": ("2_1", ("C",), 2),
    "R3": ("3_1", ("D", "E"), 1),
    "R4": ("4_1", (), 2),
}
# The judge's grades of passages: 2 and 3 are relevant. The text of D is missing, and E of turn 1_1 is another question.
GRADES = {("1_1", "A"): 3, ("1_1", "B"): 0, ("2_1", "C"): 1, ("3_1", "D"): None, ("3_1", "E"): 0, ("1_1", "E"): 3}


def responses() -> Pool:
    return Pool(
        tuple(
            pooled(response_id, turn_id, "run", passages=passages)
            for response_id, (turn_id, passages, _) in RESPONSES.items()
        ),
        {},
        (),
    )


def judged(people: dict[str, dict[str, int]] | None = None) -> UsedPassages:
    grounded = [
        world.judgment(turn_id, response_id, grade, "server/m", "groundedness/graded")
        for response_id, (turn_id, _, grade) in RESPONSES.items()
    ]
    items = []
    grades = []
    for number, ((turn_id, passage_id), grade) in enumerate(GRADES.items()):
        item_id = f"R{number:05d}"
        items.append(pooled(item_id, turn_id, "run", text="", passages=(passage_id,), unit="passage"))
        if grade is None:
            missing = {"criterion": "passage_relevance", "criterion_digest": RELEVANCE.digest}
            grades.append(world.failure(turn_id, item_id, "no_passages", "server/m", **missing))
        else:
            grades.append(world.judgment(turn_id, item_id, grade, "server/m", "passage_relevance/graded"))
    used = used_passages(
        responses(),
        grounded,
        [GROUNDEDNESS],
        listed=Pool(tuple(items), {}, ()),
        grades=grades,
        relevance=RELEVANCE,
        people=people or {},
    )
    assert used is not None
    return used


def only_run(used: UsedPassages) -> RunUse:
    (run,) = used.runs
    return run


def over(values: list[float], topics: list[str], ends: tuple[float, float], what: str = "grades") -> Estimate:
    return mean_interval(values, topics, bounds=ends, what=what)


def test_a_passage_without_a_grade_is_unknown_and_moves_bounds_alone() -> None:
    run = only_run(judged())
    assert (run.responses, run.none_relevant, run.unknown, run.no_passages) == (4, 2, 1, 1)
    # R1 uses one relevant passage of two, R2 none of one, R3 none of the one that has a grade; R4 uses nothing.
    assert run.relevant.mean == over([1 / 2, 0 / 1, 0 / 1], ["1", "2", "3"], (0, 1), "shares")
    assert run.relevant.at_worst == pytest.approx((1 / 2 + 0 / 1 + 0 / 2) / 3)
    assert run.relevant.at_best == pytest.approx((1 / 2 + 0 / 1 + 1 / 2) / 3)


def test_a_grade_counts_where_a_used_passage_is_relevant_and_else_as_the_worst() -> None:
    run = only_run(judged())
    assert run.mean == over([3, 2, 1, 2], ["1", "2", "3", "4"], (0, 3))
    assert run.on_relevant is not None
    # R3 may use a relevant passage, so the mean is without it.
    assert run.on_relevant.mean == over([3, 0, 0], ["1", "2", "4"], (0, 3))
    assert run.on_relevant.at_worst == (3 + 0 + 0 + 0) / 4
    assert run.on_relevant.at_best == (3 + 0 + 1 + 0) / 4


def test_the_grade_of_people_counts_before_that_of_the_judge() -> None:
    # A is not relevant after all, C is, and D is as good as iKAT's scale has it: beyond the end of the judge's.
    used = judged({"1_1": {"A": 1}, "2_1": {"C": 2}, "3_1": {"D": 4}})
    assert [(one.passage_id, one.judge, one.people, one.relevant, one.reason) for one in used.passages] == [
        ("A", 3, 1, False, ""),
        ("B", 0, None, False, ""),
        ("C", 1, 2, True, ""),
        ("D", None, 4, True, "no_passages"),
        ("E", 0, None, False, ""),
    ]
    run = only_run(used)
    assert (run.none_relevant, run.unknown) == (2, 0)
    assert run.on_relevant is not None and run.on_relevant.sure
    assert run.on_relevant.mean.value == (0 + 2 + 1 + 0) / 4
    assert run.relevant.mean.value == pytest.approx((0 / 2 + 1 / 1 + 1 / 2) / 3)


def test_what_nobody_was_asked_about_is_not_irrelevant() -> None:
    used = used_passages(responses(), [], [], listed=Pool((), {}, ()), grades=[], relevance=RELEVANCE, people={})
    assert used is not None
    assert {(one.relevant, one.reason) for one in used.passages} == {(None, "not_pooled")}
    run = only_run(used)
    assert (run.none_relevant, run.unknown, run.no_passages) == (1, 3, 1)
    assert (run.relevant.mean.value, run.relevant.mean.reason) == (None, "no shares")
    assert (run.relevant.at_worst, run.relevant.at_best) == (0, 1)
    assert (run.criterion, run.mean, run.on_relevant) == ("", None, None)


def test_the_table_for_people_has_bounds_only_where_something_is_unknown() -> None:
    unsure = used_markdown(judged(), "banner")
    assert "| run | 0.17 [" in unsure and "| 2 of 4 | 1 | 0.17 to 0.33 | 0.75 to 1.00 |" in unsure
    sure = used_markdown(judged({"3_1": {"D": 0}}), "banner")
    assert "unknown |" not in sure and "bounds |" not in sure
    assert "judge's grade counts for 4, people's for 1; 0 without a grade" in sure


def test_pairs_and_dialogues_use_no_passages() -> None:
    pairs = Pool((pooled("R1", "1_1", "a", "b", unit="pair"),), {}, ())
    assert used_passages(pairs, [], [], Pool((), {}, ()), [], RELEVANCE, {}) is None


@pytest.mark.parametrize(
    ("use", "expected"), [([True, None], True), ([False, False], False), ([None], None), ([None, False], None)]
)
def test_one_relevant_passage_is_enough(use: list[bool | None], expected: bool | None) -> None:
    assert uses_relevant(use) is expected


def test_a_passage_that_two_texts_have_counts_once() -> None:
    key = "#" + "0" * 64
    pool = Pool((pooled("R1", "1_1", "run", passages=("A", f"A{key}")),), {}, ())
    used = used_passages(pool, [], [], Pool((), {}, ()), [], RELEVANCE, {"1_1": {"A": 3}})
    assert used is not None
    row = PassageUse(
        response_id="R1", turn_id="1_1", passage_id="A", judge=None, people=3, relevant=True, reason="not_pooled"
    )
    assert used.passages == (row,)
