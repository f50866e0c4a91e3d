"""What the completions of a journal took, by judge."""

from pathlib import Path

import pytest

from judge.errors import InputError
from judge.models.records import Completion
from judge.models.spending import read_spending
from tests.models.test_journal_export import filled


def took(seconds: float | None, reason: str = "stop", **more: object) -> Completion:
    return Completion(text="Grade: 1", finish_reason=reason, model="m-1", latency=seconds, **more)  # type: ignore[arg-type]


def test_sums_percentiles_and_words(tmp_path: Path) -> None:
    answers: dict[str, Completion | str] = {
        "a": took(1.0, prompt_tokens=100, completion_tokens=10, cached_tokens=64, cost=0.25, attempts=3),
        "b": took(2.0, prompt_tokens=50, completion_tokens=5, cost=0.5),
        "c": took(4.0, "length"),
        "d": took(None, system_fingerprint="fp"),
    }
    path = filled(tmp_path / "j", answers)
    filled(path, {"a": took(7.0)}, judge="b/another")
    other, row = read_spending(path)
    assert (other.judge, other.completions, other.seconds_p50) == ("b/another", 1, 7.0)
    assert (row.completions, row.attempts) == (4, 3 + 1 + 1 + 1)
    assert (row.prompt_tokens, row.cached_tokens, row.completion_tokens, row.counted) == (150, 64, 15, 2)
    assert (row.cost, row.priced) == (0.75, 2)
    # Of 1, 2 and 4 seconds, half took at most the second, and 95 % at most the third.
    assert (row.seconds, row.timed, row.seconds_p50, row.seconds_p95) == (7.0, 3, 2.0, 4.0)
    assert row.finish_reasons == {"length": 1, "stop": 3}
    assert (row.forms, row.models, row.fingerprints) == ({"text": 4}, {"m-1": 4}, {"": 3, "fp": 1})
    assert row.first <= row.last


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such journal"):
        read_spending(tmp_path / "absent")
