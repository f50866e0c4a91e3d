"""The values of a run's turns by each convention, and as boards of other tools."""

import math
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import InputError
from judge.extra.evaluate import BOARDS, Over, board_lines, measured_run, read_board
from tests.conftest import put

TURNS = st.from_regex(r"[1-9]{1,2}-[12]_[1-9]{1,2}", fullmatch=True)


def test_what_a_turn_without_a_value_counts_depends_on_the_convention() -> None:
    counts: dict[Over, dict[str, float]] = {
        "qrels": {"1_9": 2.0, "1_10": 0.0, "2_1": 0.0},
        "answered": {"1_9": 2.0},
        "worst": {"1_9": 2.0, "1_10": 3.0, "2_1": 3.0},
    }
    for over, expected in counts.items():
        run = measured_run("a", "m", {"1_9": 2, "3_1": 1.0}, ["1_10", "1_9", "2_1"], over, bounds=None, worst=3.0)
        assert repr(run.values) == repr(expected)
        assert run.mean.n == len(expected)
        assert run.mean.value == sum(expected.values()) / len(expected)


def test_a_turn_that_is_repeated_counts_once() -> None:
    run = measured_run("a", "m", {"1_1": 1.0}, ["2_1", "1_1", "1_1"], "qrels")
    assert list(run.values.items()) == [("1_1", 1.0), ("2_1", 0.0)]
    assert (run.mean.value, run.mean.n) == (1 / 2, 2)


def test_a_value_that_is_not_a_number_is_refused() -> None:
    for over in get_args(Over):
        with pytest.raises(ValueError, match="m of a is not a number in turn 2_1"):
            measured_run("a", "m", {"1_1": 1.0, "2_1": math.nan}, ["1_1", "2_1"], over)


@given(st.dictionaries(TURNS, st.floats(-5, 5), min_size=1), st.sampled_from(sorted(BOARDS)))
def test_a_board_reads_back_what_it_says(tmp_path_factory, values, form: str) -> None:
    runs = [measured_run(run, "m", values, values, "answered", bounds=None) for run in ("a", "b-2")]
    path = put(tmp_path_factory.mktemp("board") / "b", board_lines(form, runs, turns=True))
    said = ((run.run_id, turn, v) for run in runs for turn, v in {**run.values, "all": run.mean.value}.items())
    assert read_board(path, form) == {(a, "m", of): pytest.approx(v, abs=5.1e-5) for a, of, v in said}
    with pytest.raises(InputError, match=f"not a board in the form of {form}"):
        read_board(put(path, "a\tb\tnan\n"), form)
