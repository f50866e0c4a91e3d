"""A Python function as a judge, from its reply to the judgments of a run."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.io.installed import bundled
from judge.judges.journal_tools import read_journal
from tests.conftest import annex
from tests.mock import ask

pytestmark = pytest.mark.fast


async def slowly(messages: list[dict[str, str]]) -> int:
    await asyncio.sleep(0)
    return 2


def broken(messages: list[dict[str, str]]) -> str:
    raise ValueError("no such\nword")


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda messages: "Fine.\nGrade: 2", "Fine.\nGrade: 2"),
        (lambda messages: 2, "Grade: 2"),
        (slowly, "Grade: 2"),
        (lambda messages: slowly(messages), "Grade: 2"),
        (lambda messages: 7, "Grade: 7"),
        (lambda messages: messages[-1]["role"], "user"),
        (broken, "mine/v1: ValueError: no such word"),
        (lambda messages: 2.5, "mine/v1: TypeError: 'float' object cannot be interpreted as an integer"),
        (lambda messages: None, "mine/v1: TypeError: 'NoneType' object cannot be interpreted as an integer"),
    ],
)
def test_what_a_function_returns_is_its_reply(function: Callable[..., Any], said: str) -> None:
    try:
        found = asyncio.run(judge.FunctionJudge("mine/v1", function).complete(ask())).text
    except judge.JudgeError as error:
        found = str(error)
    assert found == said


@pytest.mark.parametrize("name", ["mine", "/v1", "mine/", "server/m", "litellm/openai/m", "a\n/b"])
def test_a_name_that_no_record_can_have_is_refused(name: str) -> None:
    with pytest.raises(judge.UsageError, match="expected name/version"):
        judge.FunctionJudge(name, lambda messages: 1)


def test_a_function_judges_a_run_and_is_asked_once(tmp_path: Path) -> None:
    calls: list[str] = []

    def grade(messages: list[dict[str, str]]) -> str | int:
        calls.append(messages[-1]["content"])
        if len(calls) == 3:
            raise ValueError("not this one")
        return 9 if len(calls) == 1 else "It reads well.\nGrade: 2"

    def run(**more: Any) -> Any:
        model = judge.FunctionJudge("mine/v1", grade)
        plan = judge.Plan(
            runs=bundled("examples") / "runs", criteria=["naturalness"], model=model, concurrency=1,
            out=tmp_path / "out", **more,
        )  # fmt: skip
        return judge.run(plan)

    outcome = run()
    assert {result.judge for result in outcome.results} == {"mine/v1"}
    assert [failure.reason for failure in outcome.failures] == ["provider_error"]
    assert "not this one" in outcome.failures[0].detail
    assert {entry.judge for entry in read_journal(tmp_path / "out" / "journal.sqlite")} == {"mine/v1"}
    asked = len(calls)
    # The failed call is made again, and nothing else.
    assert not run().failures and len(calls) == asked + 1
    annex("scale")
    with pytest.raises(judge.UsageError, match="by their names"):
        run(engine="ray", replace=True)
