import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import UsageError
from judge.judges.backends import open_model
from judge.judges.backends.baseline import Overlap
from judge.judges.model import ModelOptions
from judge.judges.records import Completion
from judge.records import Level, Scale
from tests.ask.test_loop import criterion
from tests.conftest import ask

UP = Scale(tuple(Level(grade, str(grade), "x") for grade in range(4)), "higher", (2, 3), None)
DOWN = Scale((Level(0, "no", "grounded"), Level(1, "yes", "not grounded")), "lower", (0,), None)


def grade(scale: Scale, response: str, *passages: str) -> Completion:
    request = ask("label", scale=scale, labels=scale.labels, response=response, passages=passages)
    return asyncio.run(Overlap().complete(request))


@pytest.mark.parametrize(
    ("response", "label", "expected"),
    [
        ("ferry noon pier", "3", 3.0),  # 3 of 3 words
        ("ferry noon tram", "2", 2.0),  # 2/3 of the scale's 3 steps
        ("ferry tram", "2", 1.5),  # half-way between 1 and 2
        ("tram", "0", 0.0),
    ],
)
def test_containment_is_spread_over_the_scale(response: str, label: str, expected: float) -> None:
    completion = grade(UP, response, "ferry noon pier")
    assert completion.text == label
    assert sum(float(name) * p for name, p in completion.probabilities.items()) == pytest.approx(expected, abs=1e-5)


def test_an_inverted_scale_is_read_the_right_way_round() -> None:
    assert grade(DOWN, "ferry", "ferry").text == "no"
    assert grade(DOWN, "tram", "ferry").text == "yes"


@given(st.text(max_size=80), st.lists(st.text(max_size=80), max_size=3))
def test_probabilities_are_a_distribution_and_the_label_is_on_the_scale(response: str, passages: list[str]) -> None:
    completion = grade(UP, response, *passages)
    assert completion.text in UP.labels
    assert sum(completion.probabilities.values()) == pytest.approx(1)
    assert all(0 <= p <= 1 for p in completion.probabilities.values())


def test_it_refuses_what_it_cannot_see() -> None:
    Overlap().check([criterion("groundedness", ("response", "passages"))])
    with pytest.raises(UsageError, match="groundedness and support only"):
        Overlap().check([criterion("naturalness")])


@pytest.mark.parametrize(
    ("name", "message"),
    [("gpt-4", "has no backend"), ("server/", "has no backend"), ("baseline/other", "no baseline called 'other'")],
)
def test_names_that_mean_nothing(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_model(name, ModelOptions())


def test_the_baseline_opens_by_name() -> None:
    assert open_model("baseline/overlap").name == "baseline/overlap"


def test_it_refuses_prompts_that_go_sentence_by_sentence() -> None:
    with pytest.raises(UsageError, match="groundedness and support only"):
        Overlap().check([msgspec.structs.replace(criterion("groundedness"), answer="sentences")])
