"""Cut points of expected grades: by hand on a few items, and their choice by cross-validation."""

import math

import numpy as np
import pytest

from judge.ask.results import Label
from judge.calibrate.cuts import (
    CutItems,
    Scoring,
    best_kind,
    codes_by,
    fit_cuts,
    fitted,
    folds_of,
    nested,
    validated,
)
from judge.gold.rows import GoldRow
from judge.io.text import digest
from tests import build
from tests.calibration_world import labels, panel_of, row

SCORING = Scoring((0, 1, 2), "percent")


def table(text: str) -> CutItems:
    """Items from rows of topic, expected grade and people's grade."""
    rows = [line.split() for line in text.strip().splitlines()]
    return CutItems(
        expected=np.array([float(expected) for _, expected, _ in rows]),
        human=np.array([int(human) for _, _, human in rows]),
        weights=np.ones(len(rows)),
        topic=np.array([int(topic) for topic, _, _ in rows]),
    )


# Cuts at .3 and .9 give all eight the people's grade; those in the middle, .5 and 1.5, only five.
EIGHT = table("""
0 0.1 0
0 0.2 0
0 0.4 1
1 0.6 1
1 0.8 1
1 1.0 2
2 1.4 2
2 1.8 2
""")


def test_a_grade_is_the_number_of_cuts_that_are_reached() -> None:
    assert codes_by(EIGHT.expected, (0.3, 0.9)).tolist() == [0, 0, 1, 1, 1, 2, 2, 2]
    assert codes_by(EIGHT.expected, (0.5, 1.5)).tolist() == [0, 0, 0, 1, 1, 1, 1, 2]
    # A cut that is met is reached.
    assert codes_by(np.array([0.5, 1.5, 2.0]), (0.5, 1.5)).tolist() == [1, 2, 2]


@pytest.mark.parametrize(
    ("kind", "cuts", "share"),
    [
        ("middle", (0.5, 1.5), 5 / 8),
        # Moved together by -.2, which brings the first between .2 and .4, they get all but the item of 1.0.
        ("shifted", (0.3, 1.3), 7 / 8),
        ("free", (0.3, 0.9), 1.0),
    ],
)
def test_eight_items_by_hand(kind: str, cuts: tuple[float, ...], share: float) -> None:
    assert fitted(EIGHT, SCORING, kind) == cuts  # type: ignore[arg-type]
    assert SCORING.of_cuts(EIGHT, cuts) == share


TWO = Scoring((0, 1), "percent")

# Of four items, a cut at .3 and one at .7 each get three right.
FOUR = table("""
0 0.2 0
0 0.4 1
0 0.6 0
0 0.8 1
""")


@pytest.mark.parametrize(("weights", "cut", "share"), [((1, 1, 9, 1), 0.7, 11 / 12), ((1, 9, 1, 1), 0.3, 11 / 12)])
def test_items_count_by_their_weights(weights: tuple[int, ...], cut: float, share: float) -> None:
    heavy = FOUR._replace(weights=np.array(weights, dtype=np.float64))
    assert fitted(heavy, TWO, "free") == (cut,)
    assert TWO.of_cuts(heavy, (cut,)) == share


# Three topics. People's cut is at .3 in all of them; the middle is at .5.
EQUAL = table("""
0 0.1 0
0 0.4 1
0 0.9 1
1 0.2 0
1 0.4 1
1 0.8 1
2 0.1 0
2 0.4 1
2 0.7 1
""")

# In topic 0 people's cut is at .3, in topic 1 at .7, in topic 2 at .5: what is learned elsewhere does not help.
UNEQUAL = table("""
0 0.1 0
0 0.4 1
0 0.9 1
1 0.1 0
1 0.6 0
1 0.9 1
2 0.1 0
2 0.4 0
2 0.6 1
""")


def test_the_choice_by_cross_validation_by_hand() -> None:
    ranks = np.array([0, 1, 2])
    # Each topic is graded by the cut of the two others, which is .3 or .25: all nine are right, of the middle's six.
    values = validated(EQUAL, TWO, ranks)
    assert values == {"middle": 6 / 9, "shifted": 1.0, "free": 1.0}
    assert best_kind(values) == "shifted"
    assert nested(EQUAL, TWO, ranks) == 1.0
    # Without topic 0, .5 is as good as any other, five of six, and so it is without topic 1: two of three each. Without
    # topic 2, .25 and .75 get five of six and .5 four, and the lower one is taken: two of three, of the middle's three.
    values = validated(UNEQUAL, TWO, ranks)
    assert values == {"middle": 7 / 9, "shifted": 6 / 9, "free": 6 / 9}
    assert best_kind(values) == "middle"
    # With two topics the middle is never worse, so it is chosen in each fold.
    assert nested(UNEQUAL, TWO, ranks) == 7 / 9


def test_the_order_of_topics_follows_from_the_seed_alone() -> None:
    names = ["1-1", "2-1", "3-1", "10-2"]
    ranks = folds_of(names, 7)
    assert [names[place] for place in np.argsort(ranks)] == sorted(names, key=lambda name: digest(f"7\n{name}"))


def world(cut: float, topics: int = 6) -> tuple[list[GoldRow], list[Label]]:
    """People who grade 1 from a cut on, and a judge who does from .5 on."""
    values = (0.1, 0.2, 0.35, 0.45, 0.6, 0.9)
    rows: list[GoldRow] = []
    said: list[Label] = []
    for topic in range(1, topics + 1):
        for place, expected in enumerate(values):
            human = int(expected >= cut)
            rows.append(row(f"{topic}_1", f"R{topic}{place}", human))
            said.append(Label(f"{topic}_1", f"R{topic}{place}", int(expected >= 0.5), expected=expected))
    return rows, said


def test_what_a_fit_reports() -> None:
    rows, said = world(0.3)
    found = panel_of(rows, labels("m", said), scale=build.scale((0, 1), positive=(1,)))
    result = fit_cuts(found, found.columns[0], 1)
    assert (result.kind, result.n, result.topics, result.without) == ("shifted", 36, 6, 0)
    assert 0.2 < result.cuts[0] < 0.35
    assert (result.fitted, result.nested, result.optimism) == (1.0, 1.0, 0.0)
    # The judge has four of six right, by chance 2/6 * 4/6 * 2: (4/6 - 4/9) / (1 - 4/9).
    assert result.judged == pytest.approx(0.4)
    assert result.gain == pytest.approx(1.0 - result.judged)  # type: ignore[operator]
    assert result.gains


def test_a_judge_that_cuts_right_already_gains_nothing() -> None:
    rows, said = world(0.5)
    said[3] = Label(said[3].turn_id, said[3].response_id, 0)
    found = panel_of(rows, labels("m", said), scale=build.scale((0, 1), positive=(1,)))
    result = fit_cuts(found, found.columns[0], 1)
    assert (result.kind, result.cuts, result.judged, result.gains) == ("middle", (0.5,), 1.0, False)
    assert (result.n, result.without) == (35, 1)


def test_agreement_that_is_undefined_chooses_the_middle() -> None:
    assert best_kind({"middle": math.nan, "shifted": math.nan, "free": math.nan}) == "middle"
    assert best_kind({"middle": math.nan, "shifted": 0.1, "free": 0.1}) == "shifted"
