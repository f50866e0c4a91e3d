"""Criteria asked together in the loop: one call for all of them, and one second call for what was unreadable."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.ask.account import TYPICAL_REPLY, Settings
from judge.ask.asking import forecast
from judge.ask.loop import assess
from judge.ask.opening import open_one
from judge.ask.prompt import combine
from judge.ask.questions import Questions
from judge.ask.records import Failure, Judgment, tasks
from judge.errors import StructureUnsupported, UsageError
from judge.judges.journal import Journal
from judge.judges.model import ModelOptions, Price
from judge.pool.records import Pool
from tests.ask.clock import assess_at_once
from tests.ask.test_loop import QUICK, Scripted, criterion, pool

GROUNDED = criterion("groundedness", ("passages", "response"))
GROUP = combine([criterion(), GROUNDED])
BOTH = "groundedness: 2\nnaturalness: 3"


def judged(tmp_path: Path, model: Scripted, of: Pool, **options: Any) -> list[Judgment | Failure]:
    with Journal(tmp_path / "journal") as journal:
        return assess_at_once(tasks(of, GROUP), model, journal, of, settings=QUICK, **options)


def said(results: Sequence[Judgment | Failure]) -> list[tuple[str, str, int | str, bool]]:
    return [
        (one.response_id, one.criterion, one.grade, one.repaired)
        if isinstance(one, Judgment)
        else (one.response_id, one.criterion, one.reason, False)
        for one in results
    ]


def test_one_call_answers_every_criterion(tmp_path: Path) -> None:
    model = Scripted(default=BOTH)
    results = judged(tmp_path, model, pool(["a", "b", "c"]))
    assert len(model.asked) == 3
    assert said(results) == [
        *((f"R{number:05}", "groundedness", 2, False) for number in range(3)),
        *((f"R{number:05}", "naturalness", 3, False) for number in range(3)),
    ]
    assert {(one.variant, one.criterion_digest) for one in results} == {(part.variant, part.digest) for part in GROUP}
    again = Scripted(default="never asked")
    assert judged(tmp_path, again, pool(["a", "b", "c"])) == results
    assert again.asked == []


@pytest.mark.parametrize("concurrency", [1, 16])
def test_what_was_unreadable_is_asked_again_once_and_what_was_readable_stands(tmp_path: Path, concurrency: int) -> None:
    script = {
        "one": ["groundedness: 2\nnaturalness: 9", "groundedness: 0\nnaturalness: 1"],
        "both": ["groundedness: 8\nnaturalness: 9", "groundedness: 0\nnaturalness: 1"],
        "all": ["hm", BOTH],
        "never": ["groundedness: 2\nnaturalness: 8", "groundedness: 3\nnaturalness: 9"],
    }
    model = Scripted(script)
    of = pool(list(script))
    with Journal(tmp_path / "journal") as journal:
        wanted = tasks(of, GROUP)
        results = assess(wanted, model, journal, of, settings=Settings(concurrency=concurrency))
        assert len(model.asked) == 8
        assert assess(wanted, Scripted(), journal, of) == results
    assert said(results) == [
        ("R00000", "groundedness", 2, False),
        ("R00001", "groundedness", 0, True),
        ("R00002", "groundedness", 2, True),
        ("R00003", "groundedness", 2, False),
        ("R00000", "naturalness", 1, True),
        ("R00001", "naturalness", 1, True),
        ("R00002", "naturalness", 3, True),
        ("R00003", "naturalness", "unreadable", False),
    ]
    complaints = {
        request.response: request.messages[-1].content.partition(". Answer again.")[0]
        for request in model.asked
        if len(request.messages) == 4
    }
    off = "found grade ' {}', expected one of 0, 1, 2, 3"
    assert complaints == {
        "one": f"Your reply could not be used: naturalness: {off.format(9)}",
        "both": f"Your reply could not be used: groundedness: {off.format(8)}; naturalness: {off.format(9)}",
        "all": "Your reply could not be used: the reply does not end with the lines `groundedness: LABEL`, "
        "`naturalness: LABEL` in this order",
        "never": f"Your reply could not be used: naturalness: {off.format(8)}",
    }


def test_a_response_without_passages_is_judged_by_the_others(tmp_path: Path) -> None:
    model = Scripted(default="Grade: 1")
    results = judged(tmp_path, model, pool(["a"], passages=()))
    assert said(results) == [("R00000", "groundedness", "no_passages", False), ("R00000", "naturalness", 1, False)]
    (request,) = model.asked
    assert request.together == ()
    assert isinstance(results[1], Judgment)
    assert results[1].criterion_digest == GROUP[1].digest


def test_a_judge_without_structured_output_answers_in_lines(tmp_path: Path) -> None:
    model = Scripted({"a": [StructureUnsupported("no schema", lasting=True), BOTH]}, forms=("json", "text"))
    results = judged(tmp_path, model, pool(["a"]))
    assert [(one.form, one.grade) for one in results if isinstance(one, Judgment)] == [("text", 2), ("text", 3)]


def test_a_forecast_counts_one_call_and_every_grade_of_its_reply() -> None:
    of, model = pool(["a", "b"]), Scripted()
    settings = Settings(prices={"*": Price(0.0, 1.0)})
    with Journal(None) as journal:
        row = forecast(Questions(model, journal, of, None), tasks(of, GROUP), settings, 1000)
    assert (row.judgments, row.shared, row.calls) == (4, 2, 2)
    assert (row.cost, row.most) == (4 * TYPICAL_REPLY, 2 * 1000)


def test_a_judge_of_one_label_cannot_be_asked_several_criteria(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="groundedness and support only, asked alone, not groundedness/test"):
        open_one("baseline/overlap", ModelOptions(), GROUP[:1], Settings())
    monkeypatch.setattr("judge.ask.opening.open_model", lambda name, options: Scripted(forms=("label",)))
    with pytest.raises(UsageError, match=r"fake/scripted answers with one label only, .* \(--together\)"):
        open_one("fake/scripted", ModelOptions(), GROUP, Settings())
