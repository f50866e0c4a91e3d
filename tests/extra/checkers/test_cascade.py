"""A cascade by its name and bounds: what is settled, and how results say who judged."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.ask.asking import Judge
from judge.ask.criteria import find_criterion
from judge.ask.records import Failure, Judgment, PickedTasks, SentenceSupport, tasks
from judge.ask.results import labels_of
from judge.ask.returned import SettledCount, judge_notes, settled_counts
from judge.errors import UsageError
from judge.extra.checkers.cascade import Cascade, CascadeJudge, parse_cascade
from judge.judges.backends import judges_in
from tests.ask.test_loop import criterion, pool
from tests.calibration_world import failure, judgment

SENTENCES = "groundedness/sentences"
CASCADE = Cascade("checker/overlap", 0.1, 0.8)
NAME = "checker/overlap@0.1:0.8+server/m"


def checked(*told: tuple[str, float | None], grade: int = 2) -> Judgment:
    """A judgment of the checker: a label and the highest probability for each sentence."""
    return msgspec.structs.replace(
        judgment("1_1", "R00001", grade, "checker/overlap", SENTENCES),
        sentences=tuple(label for label, _ in told),
        support=tuple(SentenceSupport((), probability) for _, probability in told),
    )


@pytest.mark.parametrize(("told", "settled"), [
    ((("supported", 0.8), ("unsupported", 0.1)), True),
    ((("supported", 1.0), ("unsupported", 0.0), ("no_claim", None)), True),
    ((("contradicted", 0.05),), True),
    ((("supported", 0.79),), False),
    ((("unsupported", 0.11),), False),
    ((("supported", 0.9), ("supported", 0.5)), False),
    # Nothing was claimed, so the checker was sure of nothing.
    ((("no_claim", None),), False),
    ((), False),
])  # fmt: skip
def test_an_item_is_settled_if_every_sentence_lies_beyond_a_bound(told, settled) -> None:
    assert CASCADE.settles(checked(*told)) == settled


def test_a_failure_is_not_settled() -> None:
    assert not CASCADE.settles(failure("1_1", "R00001", "provider_error", "checker/overlap"))


def test_a_probability_that_was_rounded_up_to_the_bound_settles_nothing() -> None:
    # .5999996 is recorded as .6, and lies below the threshold .6.
    high = Cascade("checker/overlap", 0.55, 0.6)
    assert high.threshold == 0.6
    assert not high.settles(checked(("unsupported", 0.6)))


@pytest.mark.parametrize(("low", "high", "first"), [
    (0.1, 0.8, "checker/overlap"),
    (0.49, 0.5, "checker/overlap"),
    (0.5, 0.8, "checker/overlap@0.8"),
    (0.0, 0.4, "checker/overlap@0.4"),
])  # fmt: skip
def test_the_checker_has_its_usual_name_where_its_usual_threshold_lies_between_the_bounds(low, high, first) -> None:
    cascade = Cascade("checker/overlap", low, high)
    assert cascade.first == first
    for opened in (first, "checker/overlap@0.9"):
        judge = CascadeJudge(cascade, Judge((), name=opened), Judge((), name="server/m"))
        assert judge.whole == f"checker/overlap@{low:g}:{high:g}+server/m"


@given(
    st.sampled_from(
        ["checker/overlap", "checker/server/org/a+b", "checker/server/x@1/b", "checker/server/x#join=[SEP]"]
    ),
    st.integers(0, 999),
    st.integers(1, 1000),
    st.sampled_from(["openai/gpt-x", "server/a+b@0.1:0.2", "litellm/x"]),
)
def test_a_cascade_reads_as_it_is_written(checker: str, low: int, more: int, model: str) -> None:
    cascade = Cascade(checker, low / 1000, min(1000, low + more) / 1000)
    assert parse_cascade(str(cascade)) == cascade
    assert judges_in(f"{cascade}+{model}") == (checker, model)
    assert judges_in(model) == (model,)


@pytest.mark.parametrize("text", [
    "", "checker/overlap", "checker/overlap@0.5", "checker/overlap@0.8:0.1", "checker/overlap@0.5:0.5",
    "checker/overlap@-0.1:0.5", "checker/overlap@0.1:1.1", "checker/overlap@a:b", "checker/overlap@nan:1",
    "baseline/overlap@0.1:0.8", "openai/x@0.1:0.8", "checker/overlap@0.1:0.8:0.9", "@0.1:0.8",
])  # fmt: skip
def test_other_texts_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"such as checker/overlap@0\.1:0\.8"):
        parse_cascade(text)


def test_an_at_sign_in_a_path_is_no_threshold() -> None:
    assert parse_cascade("checker/onnx/models/m@v2@0.1:0.8").checker == "checker/onnx/models/m@v2"


@pytest.mark.parametrize(("text", "without"), [
    ("checker/overlap@0.7@0.1:0.8", "checker/overlap@0.1:0.8"),
    ("checker/server/x#supports=1@0.6@0.25:0.8", "checker/server/x#supports=1@0.25:0.8"),
    ("checker/onnx/models@2/x@0.6@0.1:0.8", "checker/onnx/models@2/x@0.1:0.8"),
])  # fmt: skip
def test_a_checker_with_a_threshold_is_refused_with_what_to_write(text: str, without: str) -> None:
    with pytest.raises(UsageError, match="the bounds say which threshold") as refused:
        parse_cascade(text)
    assert f"write {without} (--cascade)" in str(refused.value)


@given(st.text())
def test_any_text_is_a_cascade_or_is_refused(text: str) -> None:
    try:
        cascade = parse_cascade(f"checker/overlap@{text}")
    except UsageError as error:
        assert str(error).isprintable()
    else:
        assert 0 <= cascade.low < cascade.high <= 1


def results() -> list[Judgment | Failure]:
    """Two settled, one asked, one that failed, one without evidence; and one of another criterion."""
    sure = msgspec.structs.replace(checked(("supported", 1.0)), cascade=NAME, model=None)
    settled = [msgspec.structs.replace(sure, response_id=name) for name in ("R1", "R2")]
    asked = [
        judgment("1_1", "R3", 1, prompt=SENTENCES),
        msgspec.structs.replace(failure("1_1", "R4", "budget"), variant="sentences"),
        msgspec.structs.replace(failure("1_1", "R5", "no_passages"), variant="sentences"),
    ]
    digest = settled[0].criterion_digest
    return [
        *settled,
        *(msgspec.structs.replace(one, cascade=NAME, criterion_digest=digest) for one in asked),
        judgment("1_1", "R1", 3, prompt="naturalness/graded"),
    ]


def test_results_say_how_much_was_settled() -> None:
    (row,) = settled_counts(results())
    assert row == SettledCount("groundedness", NAME, "checker/overlap", 2, 2, 1, 0)
    assert [isinstance(one, Judgment) and one.settled for one in results()] == [True, True, *[False] * 4]
    (note,) = judge_notes(results())
    assert note == (
        "groundedness: checker/overlap settled 2 of 4 judgments (50 %), and 2 went to server/m. So the grades are "
        f"those of two judges: {NAME}."
    )
    assert judge_notes([judgment("1_1", "R1", 3)]) == ()
    # The grades are of two judges only where both judged.
    assert judge_notes(results()[2:3]) == (
        "groundedness: checker/overlap settled 0 of 1 judgment (0 %), and 1 went to server/m.",
    )
    assert judge_notes(results()[:2]) == (
        "groundedness: checker/overlap settled 2 of 2 judgments (100 %), and 0 went to server/m.",
    )


def test_items_on_which_the_checker_failed_are_counted() -> None:
    asked, unasked = (msgspec.structs.replace(one, checker_failed="provider_error") for one in results()[2:4])
    told = [*results()[:2], asked, unasked]
    assert settled_counts(told) == (SettledCount("groundedness", NAME, "checker/overlap", 2, 2, 0, 2),)
    assert "went to server/m. On 2 of these the checker failed. So the grades" in judge_notes(told)[0]


def test_the_two_judges_are_one_column_of_labels() -> None:
    columns = labels_of(results(), "judgments.jsonl", "d")
    assert [(column.judge, column.prompt, len(column.labels)) for column in columns] == [
        (NAME, SENTENCES, 5),
        ("server/m", "naturalness/graded", 1),
    ]
    assert [label.settled for label in columns[0].labels] == [True, True, False, False, False]
    # The model that a provider names is that of the judge that was asked; the checker is in the name.
    assert columns[0].models_returned == ("m-2026",)


def test_records_without_a_cascade_are_written_as_before() -> None:
    for one in (judgment("1_1", "R1", 3), failure("1_1", "R1", "budget")):
        assert "cascade" not in msgspec.json.decode(msgspec.json.encode(one))
        assert one.whole_judge == "server/m"


def test_samples_of_one_question_share_the_answer_of_the_checker() -> None:
    two = pool(["a", "b"])
    grounded, natural = find_criterion(SENTENCES), criterion("naturalness")
    wanted = tasks(two, [natural, grounded]).varied(lambda prompt: ((prompt, 0), (prompt, 1)))
    judge = CascadeJudge(CASCADE, Judge((), name="checker/overlap"), Judge((), name="server/m"))
    # Two responses in two samples go to the other judge alone, and four tasks are two questions.
    asked = judge.questions(wanted)
    assert [(task.response.response_id, task.criterion.name, task.sample) for task in asked] == [
        ("R00000", "groundedness", 0),
        ("R00001", "groundedness", 0),
    ]
    sure, unsure = checked(("supported", 1.0)), checked(("supported", 0.5))
    assert [answer for _, answer in judge.beside(wanted, [sure, unsure])] == [None] * 4 + [sure] * 2 + [unsure] * 2
    assert list(judge.left(wanted, [sure, unsure])) == [0, 1, 2, 3, 6, 7]
    rest = [judgment("1_1", "R1", grade) for grade in range(4)] * 2
    found = list(judge.results(wanted, [sure, unsure], rest[:6]))
    assert [(one.cascade, one.judge, one.sample) for one in found] == [
        *[(None, "server/m", 0)] * 4,
        *[(NAME, "checker/overlap", sample) for sample in (0, 1)],
        *[(NAME, "server/m", 0)] * 2,
    ]


def test_picked_tasks_keep_their_sample_or_have_a_given_one() -> None:
    wanted = tasks(pool(["a", "b"]), [criterion()]).varied(lambda prompt: ((prompt, 0), (prompt, 1)))
    assert [task.sample for task in PickedTasks(wanted, [3, 0])] == [1, 0]
    assert [task.sample for task in PickedTasks(wanted, [3, 0], sample=0)] == [0, 0]
    assert [task.sample for task in PickedTasks(wanted, [3, 1], sample=0)[:1]] == [0]
