"""A certificate's second year: what its words mean, what is said, and which responses are unlike the labeled ones."""

import msgspec
import pytest

from judge.calibrate.carried import carried_words, support_words
from judge.calibrate.certificate import Certificate, make_certificate, statement
from judge.calibrate.certified import Certified, LabeledRange, topic_digest
from judge.calibrate.findings import CalibrationOptions, Carried, LabeledSupport, SupportRow
from judge.calibrate.second_year import carry, plan_second_year
from judge.calibrate.support import Met, labeled_range, measures_of, support
from judge.pool.records import Pool
from judge.records import Estimate, Passage
from tests.calibrate.test_certificate import GRADED, certified, said
from tests.calibration_world import Item, gold_rows, items, labels, panel_of, pooled

OPTIONS = CalibrationOptions(replicates=200)
WITHIN = LabeledSupport("WITHIN", ())
WORLD = items(topics=40, each=5)
NOT_BLIND = "the gold was not graded blind (postedit): it may flatter a judge, and cannot make one trusted"


def certificate(value: float, low: float, high: float, **changed: object) -> tuple[Certified, Certificate]:
    entry = certified(estimate=Estimate(value, low, high, 400, 80), **changed)
    return entry, make_certificate([entry], "2025-11-01")


def carried(
    old: tuple[float, float, float],
    *,
    wrong: int = 0,
    missing: int = 0,
    margin: float = 0.1,
    world: list[Item] = WORLD,
    made: str = "blind",
    **changed: object,
) -> Carried:
    """A judge that gives the assessor's grade, but for `wrong` items of each grade, one a topic, and `missing` ones."""
    entry, of = certificate(*old, **changed)
    grades: dict[tuple[str, str], int | None] = {}
    for place, one in enumerate(world):
        topic, within = divmod(place, 5)
        grade: int | None = one.gold
        if within == 0 and topic < wrong:
            grade = 3 - one.gold
        if within == 1 and topic < missing:
            grade = None
        grades[one.turn_id, one.response_id] = grade
    panel = panel_of(gold_rows(world, made=made), labels("m", grades))
    return carry(
        panel=panel, column=panel.columns[0], split="all", entry=entry, certificate=of, support=WITHIN, margin=margin,
        options=OPTIONS,
    )  # fmt: skip


def test_a_judge_that_agrees_as_before_carries() -> None:
    found = carried((0.85, 0.82, 0.88), wrong=8)
    assert found.found.value is not None
    assert found.found.low is not None
    below = ((found.found.value - found.found.low) ** 2 + (0.88 - 0.85) ** 2) ** 0.5
    assert found.difference.low == pytest.approx(found.found.value - 0.85 - below)
    assert (found.word, found.date, found.verdict, found.margin) == ("CARRIES", "2025-11-01", "TRUSTED", 0.1)
    assert (found.topics_needed, found.worst, found.shared) == (None, None, ())


def test_one_that_errs_on_every_topic_does_not() -> None:
    found = carried((0.95, 0.93, 0.97), wrong=40)
    assert found.word == "DOES NOT CARRY"
    assert found.difference.high is not None
    assert found.difference.high < -0.1


def test_in_between_it_says_how_many_labels_would_decide() -> None:
    found = carried((0.88, 0.86, 0.90), wrong=16)
    assert found.word == "INCONCLUSIVE"
    assert found.topics_needed is not None
    assert found.topics_needed > 40
    assert found.labels_needed == 5 * found.topics_needed
    assert f"about {found.labels_needed} labels on {found.topics_needed} topics would decide" in carried_words(found)


def test_where_nobody_can_tell_how_many_labels_would_decide_it_none_is_said_to() -> None:
    # Four topics have no interval, and more of them would.
    found = carried((0.85, 0.82, 0.88), world=items(topics=4, each=5))
    assert (found.word, found.topics_needed) == ("INCONCLUSIVE", None)
    assert found.reasons == ("the difference has no interval (fewer than 5 topics)",)


def test_labels_that_would_decide_it_are_named_only_where_labels_are_all_that_lacks() -> None:
    world = items(topics=19, each=5)
    assert carried((0.5, 0.48, 0.52), world=world, wrong=1).labels_needed == 100
    assert carried((0.5, 0.48, 0.52), world=world, wrong=1, made="postedit").labels_needed is None
    # In between, more labels of the same making would decide nothing either.
    found = carried((0.88, 0.86, 0.90), wrong=16, made="postedit")
    assert (found.word, found.labels_needed) == ("INCONCLUSIVE", None)
    assert found.reasons[1] == NOT_BLIND


def test_where_the_certificates_own_error_is_too_large_no_number_is_named() -> None:
    found = carried((0.88, 0.60, 0.97), wrong=16)
    assert (found.word, found.topics_needed) == ("INCONCLUSIVE", None)
    assert found.reasons[1].startswith("no number of labels here would decide it: the difference is")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"old": (0.85, 0.83, 0.87), "missing": 35},
            "with the 35 missing grades at the far end of the scale the difference [",
        ),
        ({"made": "postedit"}, NOT_BLIND),
        (
            {"world": items(topics=19, each=5), "wrong": 1},
            "95 judged gold items on 19 topics cannot make a judge trusted: that takes 100 on 20",
        ),
    ],
)
def test_what_keeps_a_judge_from_carrying_is_no_evidence_against_it(options, reason) -> None:
    found = carried(**{"old": (0.5, 0.48, 0.52), **options})
    assert found.word == "INCONCLUSIVE"
    (said,) = found.reasons
    assert said.startswith(reason)


def test_grades_that_are_compared_in_another_way_than_certified_decide_nothing() -> None:
    found = carried((0.85, 0.82, 0.88), binary=True, statistic="kappa")
    reason = "certified by kappa of grades as positive or not, compared as they are here"
    assert (found.word, found.difference.reason) == ("INCONCLUSIVE", reason)
    assert found.reasons[0] == f"the difference has no interval ({reason})"


def test_topics_of_the_certificate_are_left_out() -> None:
    found = carried((0.85, 0.82, 0.88), wrong=8, topic_digests=tuple(map(topic_digest, ["3", "7", "99"])))
    assert found.shared == ("3", "7")
    assert (found.found.n, found.found.topics) == (190, 38)


def test_the_banner_has_one_sentence_on_the_second_year_and_one_on_the_responses() -> None:
    row = Carried(
        criterion="groundedness", certificate="c" * 64, date="2025-11-01", verdict="TRUSTED", statistic="wkappa",
        margin=0.1, word="CARRIES", reasons=("",), certified=Estimate(0.52, 0.46, 0.56, 400, 80),
        found=Estimate(0.50, 0.47, 0.54, 300, 50), difference=Estimate(-0.02, -0.07, 0.05, 300, 50), worst=None,
        shared=(), topics_needed=None, labels_needed=None, support=WITHIN,
    )  # fmt: skip
    entry = certified(carried=row)
    of = make_certificate([entry], "2026-11-01")
    outside = LabeledSupport("OUTSIDE", (SupportRow("words", 20, 240, Estimate(0.31, 0.24, 0.38, 400, 80), 0.05),))
    banner = statement(of, said(of).matches, [GRADED], {"groundedness": outside}).banner
    assert (
        "The agreement certified on 2025-11-01 (TRUSTED) CARRIES to other topics: wkappa 0.52 [0.46, 0.56] there, "
        "0.50 [0.47, 0.54] here, difference -0.02 [-0.07, 0.05], margin 0.1. "
        "The items are OUTSIDE what was labeled: 31 % [24, 38] are beyond 20 to 240 in words."
    ) in banner
    assert said(of).calibrated


# Responses like those that were labeled


def met(words: list[float], grades: list[int] | None = None, topics: int = 20) -> list[Met]:
    """Responses with these lengths, dealt out to topics, and by default with the grades 0 to 3 in turn."""
    given = grades or [place % 4 for place in range(len(words))]
    return [
        Met(str(place % topics), {"words": length}, grade)
        for place, (length, grade) in enumerate(zip(words, given, strict=True))
    ]


BEFORE = LabeledRange(responses=101, ranges={"words": (10.0, 200.0)}, grades={"0": 60, "1": 40, "2": 1})


def test_the_range_is_from_the_1st_to_the_99th_percentile() -> None:
    # Of 0 to 100 these are the second and the last but one.
    found = labeled_range(met([float(length) for length in range(101)]))
    assert found == LabeledRange(
        responses=101, ranges={"words": (1.0, 99.0)}, grades={"0": 26, "1": 25, "2": 25, "3": 25}
    )
    assert labeled_range(met([1.0] * 99)) is None


@pytest.mark.parametrize(
    ("by_topic", "share", "word"),
    [
        ([0] * 20, 0.0, "WITHIN"),
        # One of a hundred on each of five topics: .05 is not more than .05.
        ([1] * 5 + [0] * 15, 0.05, "WITHIN"),
        # All five of two topics: .10 of all, but on topics like these the share may be 0.
        ([5] * 2 + [0] * 18, 0.1, "WITHIN"),
        ([1] * 10 + [0] * 10, 0.1, "OUTSIDE"),
        # No topic differs from another, so there is no interval, and the share is what it is.
        ([2] * 20, 0.4, "OUTSIDE"),
        ([5] * 20, 1.0, "OUTSIDE"),
    ],
)
def test_the_badge_goes_by_the_lower_end_of_the_share_beyond(by_topic: list[int], share: float, word: str) -> None:
    here = [
        Met(str(topic), {"words": 300.0 if place < long else 50.0}, 0)
        for topic, long in enumerate(by_topic)
        for place in range(5)
    ]
    found = support(msgspec.structs.replace(BEFORE, responses=400), here)
    assert found.word == word
    assert (found.rows[0].measure, found.rows[0].beyond.value) == ("words", share)
    assert (found.rows[1].measure, found.rows[1].beyond.value) == ("the judge's grades", 0)


@pytest.mark.parametrize(("labeled", "word"), [(99, "UNKNOWN"), (101, "WITHIN"), (200, "OUTSIDE")])
def test_of_few_labeled_responses_others_of_the_same_kind_lie_beyond_more_often(labeled: int, word: str) -> None:
    # .08 [.07, .09]: more than the .057 that may lie beyond the range of 200, and no more than the .084 of 101.
    here = [
        Met(str(topic), {"words": 300.0 if place < (7, 9)[topic % 2] else 50.0}, 0)
        for topic in range(40)
        for place in range(100)
    ]
    assert support(msgspec.structs.replace(BEFORE, responses=labeled), here).word == word


@pytest.mark.parametrize(
    ("sizes", "beyond", "told"),
    [
        ((25, 25), 50, "fewer than 3 topics here"),
        # .11 of them, but all but two are of one topic.
        ((100, 1, 1), 11, "most items are of one topic here"),
    ],
)
def test_responses_of_few_topics_are_neither_within_nor_outside(sizes: tuple[int, ...], beyond: int, told: str) -> None:
    topics = [str(topic) for topic, size in enumerate(sizes) for _ in range(size)]
    here = [Met(topic, {"words": 300.0 if place < beyond else 50.0}, 0) for place, topic in enumerate(topics)]
    found = support(BEFORE, here)
    assert (found.word, found.reason) == ("UNKNOWN", told)
    assert found.rows[0].beyond.value == beyond / len(topics)


def test_grades_that_hardly_any_labeled_response_had_are_outside() -> None:
    # Of 101 labeled responses 1 had a 2, less than 1 %, and none a 3.
    grades = [0, 1, 2, 3] * 25
    found = support(BEFORE, met([50.0] * 100, grades=grades))
    assert (found.word, found.rows[1].beyond.value) == ("OUTSIDE", 0.5)
    assert "have grades by the judge that hardly any labeled one had" in support_words(found)


def test_what_is_not_known_is_said() -> None:
    assert support_words(support(None, met([1.0] * 30))) == (
        "Whether the items are like those labeled is UNKNOWN: the certificate does not say what the labeled items "
        "were like"
    )
    assert support(BEFORE, ()).word == "UNKNOWN"
    within = support(BEFORE, met([50.0] * 100, grades=[0] * 100))
    assert support_words(within) == "The items are WITHIN what was labeled, by words and the judge's grades"


def test_the_measures_of_a_response_are_its_words_and_their_share_in_its_passages() -> None:
    response = pooled("R1", "The ferry leaves at dawn.", "ape", passages=("p",))
    pool = Pool((response,), {"p": Passage("p", "A ferry leaves the pier at noon.", "collection")}, ())
    # Of ferry, leaves and dawn the passage has two.
    assert measures_of(response, pool) == {"words": 5.0, "overlap with passages": pytest.approx(2 / 3)}
    assert measures_of(response, msgspec.structs.replace(pool, passages={})) == {"words": 5.0}


# Plans


def test_a_plan_has_no_more_labels_a_topic_than_the_certificate() -> None:
    (planned,) = plan_second_year([certified(estimate=Estimate(0.6, 0.56, 0.64, 600, 60), design_effect=1.9)], 0.15)
    assert [design.labels for design in planned.designs] == [4, 8, 10]
    topics = [design.topics or 0 for design in planned.designs]
    assert topics == sorted(topics, reverse=True)
    assert all(T * design.labels >= 100 for T, design in zip(topics, planned.designs, strict=True))
    (plain,) = plan_second_year([certified(estimate=Estimate(0.6, 0.56, 0.64, 600, 60))], 0.15)
    assert [design.labels for design in plain.designs] == [10]
    assert (
        plain.reason
        == "the certificate is without a design effect, so the labels of a topic stay as many as there were"
    )


@pytest.mark.parametrize(("tried", "split", "said"), [(3, "dev", True), (3, "test", False), (1, "dev", False)])
def test_a_plan_says_where_the_certified_value_is_too_good(tried: int, split: str, said: bool) -> None:
    entry = certified(estimate=Estimate(0.6, 0.56, 0.64, 600, 60), tried=tried, split=split)
    (planned,) = plan_second_year([entry], 0.15)
    text = f"the certified judge was chosen among {tried} on the same grades, so its value is too good"
    assert str(planned.caution).startswith(text) == said


def test_a_plan_says_where_no_number_is_enough() -> None:
    (planned,) = plan_second_year([certified(estimate=Estimate(0.6, 0.4, 0.75, 120, 24))], 0.1)
    (design,) = planned.designs
    assert design.topics is None
    assert str(design.reason).startswith("the error of the certified value alone asks for a margin above 0.2")
